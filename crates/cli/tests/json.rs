//! JSON mode (`host.md` 6.1.4, 7.4): one golden transcript and its corners.

mod common;

use common::golden::{Names, golden, normal};
use common::server::{Gate, Reply};
use common::{World, until};
use serde_json::{Value, json};

#[test]
fn a_run_with_a_tool_and_a_child_gives_the_golden_transcript() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| {
        if request.is_child() {
            return Reply::report("found it").behind(&held);
        }
        match request.body["messages"].to_string().matches("\"role\":\"assistant\"").count() {
            0 => Reply::call("read", json!({"path": "n.txt"})),
            1 => Reply::text("Sending one.").and_call(
                "crew_spawn",
                json!({"subagent": "scout", "brief": "look", "task": {
                    "goal": "look around", "context": ["none"], "instructions": ["as usual"]
                }}),
            ),
            2 => Reply::text("It is on its way."),
            _ => Reply::text("All done."),
        }
    });
    world.project_file("n.txt", "hi\n");
    let running = world.spawn(&["--mode", "json", "go"]);
    // The result comes to an idle owner, always at the same place.
    until("the first run has settled", || running.out().contains("agent_settled"));
    gate.open();
    let run = running.wait();
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    let mut names = Names::default();
    let project = world.project().to_string_lossy().into_owned();
    let events = run.events().into_iter().map(|event| normal(event, &project, &mut names));
    // Only when the child was opened is a matter of timing.
    let (crew, own): (Vec<Value>, Vec<Value>) =
        events.partition(|event| event["type"].as_str().unwrap().starts_with("crew_"));
    let text: String = own.iter().chain(&crew).map(|event| format!("{event}\n")).collect();
    golden("json_tool_and_child.jsonl", &text);
}

#[test]
fn a_failed_answer_is_an_event_and_no_failure() {
    // host.md 6.1.4
    let world = World::new(|_| Reply::status(400, "", "no"));
    let run = world.run(&["--mode", "json", "x"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let events = run.events();
    assert_eq!(events[0]["type"], "session");
    assert!(events.iter().any(|event| event["message"]["stopReason"] == "error"));
    assert_eq!(events.last().unwrap()["type"], "agent_settled");
}

#[test]
fn retries_are_told_as_events() {
    // host.md 3.6.3, 3.6.4, C091
    let tried = std::sync::atomic::AtomicUsize::new(0);
    let world =
        World::new(move |_| match tried.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::status(529, "", "busy"),
            _ => Reply::text("fine"),
        });
    let run = world.run(&["--mode", "json", "x"]);
    let events = run.events();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for kind in ["auto_retry_start", "entry_appended", "auto_retry_end"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let ends = events.iter().filter(|event| event["type"] == "agent_end");
    let retries: Vec<_> = ends.map(|event| event["willRetry"].as_bool().unwrap()).collect();
    assert_eq!(retries, [true, false]);
}

#[test]
fn a_session_that_cannot_be_opened_exits_one() {
    let world = World::new(|_| Reply::text("never"));
    world.project_file("x.jsonl", "no session");
    let run = world.run(&["--mode", "json", "--session", "./x.jsonl", "y"]);
    run.is(1, "");
    run.tells(&["not a session"]);
}
