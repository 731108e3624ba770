//! The structure of a run and the order of what faces are told
//! (`host.md` 3.1, 3.2, 3.3).

use crew_agent::{Input, Settings};
use crew_base::message::{Block, StopReason, ThinkingBlock};
use crew_base::model::ModelEvent;
use crew_base::tool::{ToolOutcome, ToolProgress};
use crew_testkit::fixtures;
use crew_testkit::session_play::SessionPlay;
use serde_json::json;

fn play() -> SessionPlay {
    SessionPlay::new(Settings::default())
}

/// Drops the system message, which every first request brings.
fn told(play: &mut SessionPlay) -> Vec<String> {
    let mut log = play.log();
    log.retain(|line| !line.ends_with("system"));
    log
}

// host.md 3.1.2, 3.1.3, 3.1.8, 2.4.8.
#[test]
fn a_prompt_is_one_loop_run_of_one_turn_and_each_entry_is_written_before_it_is_told() {
    let mut play = play();
    play.prompt("hi");
    play.say("hello");
    let expected = [
        "agent_start",
        "turn_start",
        "write user: hi",
        "message_start user",
        "message_end user: hi",
        "ask with 2",
        "message_start assistant",
        "write Stop: hello",
        "message_end Stop: hello",
        "turn_end 0",
        "agent_end",
        "agent_settled aborted=false",
        "idle Ended",
    ];
    assert_eq!(told(&mut play), expected);
}

// host.md 3.3.2: starts in order, ends as they finish, results in call order.
#[test]
fn parallel_tools_end_as_they_finish_and_their_results_stand_in_call_order() {
    let mut play = play();
    play.prompt("go");
    told(&mut play);
    play.call(&[("a", "bash"), ("b", "read")]);
    play.now = play.now + 7;
    play.tool("b", ToolOutcome::text("B"));
    play.tool("a", ToolOutcome::error("A"));
    let expected = [
        "message_start assistant",
        "write ToolUse: bash(a) + read(b)",
        "message_end ToolUse: bash(a) + read(b)",
        "tool_start bash a",
        "tool_start read b",
        "run bash a",
        "run read b",
        "tool_end read b ok",
        "tool_end bash a error",
        "write a error: A",
        "message_start result",
        "message_end a error: A",
        "write b ok: B",
        "message_start result",
        "message_end b ok: B",
        "turn_end 2",
        "turn_start",
        "ask with 5",
    ];
    assert_eq!(told(&mut play), expected);
}

// host.md 3.3.4, 3.3.6, product.md P-10: the batch goes on without them.
#[test]
fn calls_that_cannot_run_get_an_error_at_once_and_the_others_run() {
    let mut play = play();
    play.prompt("go");
    told(&mut play);
    let mut broken = fixtures::call("b", "bash", &json!({}));
    broken.arguments_error = Some("not closed".to_owned());
    let unknown = fixtures::call("u", "crew_spawn", &json!({}));
    let good = fixtures::call("g", "read", &json!({}));
    let blocks = [unknown, broken, good].map(Block::ToolCall).to_vec();
    play.stream(fixtures::answer(blocks));
    let log = told(&mut play);
    let at = |line: &str| log.iter().position(|known| known == line).expect(line);
    assert!(at("tool_end crew_spawn u error not run") < at("tool_start bash b"));
    assert!(at("tool_end bash b error not run") < at("run read g"));
    assert_eq!(log.iter().filter(|line| line.starts_with("run ")).count(), 1);
    play.tool("g", ToolOutcome::text("fine"));
    let asked = play.asked();
    assert!(asked[2].starts_with("u error: unknown tool `crew_spawn`"), "{}", asked[2]);
    assert!(asked[2].contains("bash, read"), "{}", asked[2]);
    assert!(asked[3].contains("not closed"), "{}", asked[3]);
    assert_eq!(asked[4], "g ok: fine");
}

// host.md 3.3.7.
#[test]
fn an_answer_cut_by_the_output_limit_runs_none_of_its_calls() {
    let mut play = play();
    play.prompt("go");
    let call = Block::ToolCall(fixtures::call("a", "bash", &json!({})));
    let mut events = vec![ModelEvent::Started];
    events.extend(fixtures::block(0, call));
    events.push(fixtures::finished(StopReason::Length));
    play.stream(events);
    assert!(!play.log().iter().any(|line| line.starts_with("run ")));
    assert!(play.asked()[2].starts_with("a error: the answer hit the output limit"));
}

// host.md 3.3.12, crew.md HOST-5.
#[test]
fn a_batch_ends_the_run_only_if_every_result_asks_for_it_and_nothing_waits() {
    let ends = || ToolOutcome { terminate: true, ..ToolOutcome::text("bye") };
    let check = |other: ToolOutcome, steered: bool, requests: usize| {
        let mut play = play();
        play.prompt("go");
        play.call(&[("a", "bash"), ("b", "read")]);
        if steered {
            play.steer("wait");
        }
        play.tool("a", ends());
        play.tool("b", other);
        assert_eq!(play.requests(), requests);
        assert_eq!(play.agent.is_idle(), requests == 1);
    };
    check(ends(), false, 1);
    check(ToolOutcome::text("more"), false, 2);
    check(ends(), true, 2);
}

// host.md 3.3.9.
#[test]
fn progress_is_told_until_the_tool_has_ended() {
    let mut play = play();
    play.prompt("go");
    play.call(&[("a", "bash"), ("b", "bash")]);
    play.log();
    let run = play.tool_run("a");
    let progress = || ToolProgress { content: vec![Block::text("half")], details: None };
    play.input(Input::ToolProgress { run, progress: progress() });
    assert_eq!(play.log(), ["tool_update bash a"]);
    play.tool("a", ToolOutcome::text("all"));
    play.log();
    play.input(Input::ToolProgress { run, progress: progress() });
    play.tool("a", ToolOutcome::text("twice"));
    assert!(play.log().is_empty());
}

// product.md P-9d, host.md 3.6.1: text and thoughts are endings, nothing is not.
#[test]
fn an_empty_answer_is_a_failure_unless_it_follows_tool_results() {
    let thoughts = || {
        let thinking = ThinkingBlock { thinking: "hm".into(), ..ThinkingBlock::default() };
        fixtures::answer(vec![Block::Thinking(thinking)])
    };
    let nothing = || fixtures::answer(Vec::new());
    let check = |events: Vec<ModelEvent>, after_tools: bool, fails: bool| {
        let mut play = play();
        play.prompt("go");
        if after_tools {
            play.call(&[("a", "bash")]);
            play.tool("a", ToolOutcome::text("x"));
        }
        play.log();
        play.stream(events);
        let retries = play.log().iter().any(|line| line.starts_with("retry_start"));
        assert_eq!(retries, fails);
    };
    check(nothing(), false, true);
    check(nothing(), true, false);
    check(thoughts(), false, false);
}

// host.md 3.1.6, 2.7.3: a change made during the run counts from the next turn.
#[test]
fn the_prompt_is_patched_between_turns_and_stays_equal_otherwise() {
    let mut play = play();
    play.prompt("go");
    let mut wanted = play.agent.record().prompt().clone();
    wanted.tools.remove(0);
    play.agent.want_prompt(wanted);
    play.call(&[("a", "bash")]);
    play.log();
    play.tool("a", ToolOutcome::text("x"));
    assert_eq!(play.log().iter().filter(|line| *line == "write system").count(), 1);
    assert!(!play.agent.record().prompt().offers("bash"));
    play.call(&[("b", "read")]);
    play.log();
    play.tool("b", ToolOutcome::text("x"));
    assert!(!play.log().contains(&"write system".to_owned()));
    // A tool that is gone is refused when it is called (product.md P-10).
    play.call(&[("c", "bash")]);
    assert!(play.log().contains(&"tool_end bash c error not run".to_owned()));
}

// host.md 3.1.10: a failure of the host is told like an answer.
#[test]
fn a_run_that_cannot_ask_a_model_says_so_and_settles() {
    let mut agent = crew_agent::Agent::new("s".into(), Default::default(), Settings::default());
    let mut ids = crew_base::id::Ids::new(1);
    let now = crew_base::time::Time(1);
    let prompt = Input::Prompt(vec![crew_base::message::Message::user_text("hi", now)]);
    let mut lines = Vec::new();
    for input in [prompt, Input::Proceed(Vec::new())] {
        let effects = agent.step(now, &mut ids, input);
        lines.extend(effects.iter().filter_map(crew_testkit::trace::line));
    }
    let expected = [
        "message_start assistant",
        "message_end Error:  (no model is selected)",
        "turn_end 0",
        "agent_end",
        "agent_settled aborted=false",
        "idle Failed(\"no model is selected\")",
    ];
    assert_eq!(lines[lines.len() - 6..], expected);
}
