//! Retry, abort, and entries that could not be written (`host.md` 3.5, 3.6,
//! 2.2.4).

use crew_agent::{Input, RetrySettings, Settings};
use crew_base::message::Block;
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent};
use crew_base::tool::ToolOutcome;
use crew_testkit::fixtures;
use crew_testkit::session_play::SessionPlay;

fn play() -> SessionPlay {
    SessionPlay::new(Settings::default())
}

fn overloaded(play: &mut SessionPlay) {
    play.fail(ModelErrorKind::Overloaded, Some(529));
}

// host.md 3.6.3.
#[test]
fn a_retry_tells_its_end_drops_the_attempt_waits_and_asks_again_without_it() {
    let mut play = play();
    play.prompt("go");
    play.log();
    overloaded(&mut play);
    let expected = [
        "message_start assistant",
        "write Error:  (scripted failure)",
        "message_end Error:  (scripted failure)",
        "turn_end 0",
        "agent_end will retry",
        "retry_start 1/3 2000ms scripted failure",
        "write context_edit",
        "entry context_edit",
    ];
    assert_eq!(play.log(), expected);
    play.wait();
    assert_eq!(play.log(), ["agent_start", "turn_start", "ask with 2"]);
    assert_eq!(play.asked(), ["user: go"]);
}

// host.md 3.6.4, 11.48: told right after the answer's end, and counted anew.
#[test]
fn a_good_answer_ends_the_retries_and_resets_their_count() {
    let mut play = play();
    play.prompt("go");
    overloaded(&mut play);
    play.wait();
    overloaded(&mut play);
    play.wait();
    play.log();
    play.call(&[("a", "bash")]);
    let log = play.log();
    let end = log.iter().position(|line| line.starts_with("message_end")).unwrap();
    assert_eq!(log[end + 1], "retry_end true 2 -");
    play.tool("a", ToolOutcome::text("A"));
    play.log();
    overloaded(&mut play);
    assert!(play.log().contains(&"retry_start 1/3 2000ms scripted failure".to_owned()));
}

// host.md 3.6.2, 3.6.4: attempt counts the retries made; C088.
#[test]
fn retries_double_their_wait_and_are_exhausted_after_the_last() {
    let mut play = play();
    play.prompt("go");
    let mut waits = Vec::new();
    for _ in 0..3 {
        overloaded(&mut play);
        let deadline = play.agent.deadline().unwrap();
        waits.push(deadline.since(play.now));
        play.wait();
    }
    // The wait is longer than announced by at most a fifth (P-14e).
    for (waited, announced) in waits.iter().zip([2000, 4000, 8000]) {
        assert!((announced..=announced + announced / 5).contains(waited), "{waited}");
    }
    play.log();
    overloaded(&mut play);
    let log = play.log();
    assert!(log.contains(&"retry_end false 3 scripted failure".to_owned()));
    assert_eq!(log.last().unwrap(), "idle Ended");
    assert_eq!(play.agent.deadline(), None);
}

// host.md 3.6.2: the server's delay counts when it is longer, up to the bound.
#[test]
fn the_server_may_ask_for_a_longer_wait() {
    let check = |asked: u64, announced: &str| {
        let mut play = play();
        play.prompt("go");
        play.log();
        let error = ModelError {
            status: Some(429),
            retry_after_ms: Some(asked),
            ..ModelError::new(ModelErrorKind::RateLimit, "slow down")
        };
        play.stream(vec![ModelEvent::Failed(error)]);
        let expected = format!("retry_start 1/3 {announced}ms slow down");
        assert!(play.log().contains(&expected), "{expected}");
    };
    check(5_000, "5000");
    check(100, "2000");
    check(3_600_000, "60000");
}

// host.md 3.6.1, 3.6.6.
#[test]
fn what_cannot_get_better_is_not_tried_again() {
    let check = |settings: RetrySettings, kind: ModelErrorKind, status: Option<u16>| {
        let mut play = SessionPlay::new(Settings { retry: settings, ..Settings::default() });
        play.prompt("go");
        play.log();
        play.fail(kind, status);
        let log = play.log();
        assert!(!log.iter().any(|line| line.starts_with("retry")), "{kind:?}");
        assert_eq!(log.last().unwrap(), "idle Ended");
    };
    check(RetrySettings::default(), ModelErrorKind::Credential, Some(401));
    check(RetrySettings::default(), ModelErrorKind::Refusal, None);
    check(RetrySettings::default(), ModelErrorKind::Provider, Some(400));
    let never = RetrySettings { enabled: false, ..RetrySettings::default() };
    check(never, ModelErrorKind::Overloaded, Some(529));
}

// product.md P-9d: a stream that failed after a tool ran is continued.
#[test]
fn a_failure_after_tools_ran_keeps_their_results() {
    let mut play = play();
    play.prompt("go");
    play.call(&[("a", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    overloaded(&mut play);
    play.wait();
    assert_eq!(play.asked(), ["user: go", "ToolUse: bash(a)", "a ok: A"]);
}

// host.md 3.6.4, 11.51.
#[test]
fn aborting_the_wait_ends_the_retry_and_settles_once() {
    let mut play = play();
    play.prompt("go");
    overloaded(&mut play);
    play.log();
    play.input(Input::Abort);
    let expected =
        ["retry_end false 1 the retry was cancelled", "agent_settled aborted=true", "idle Aborted"];
    assert_eq!(play.log(), expected);
    assert_eq!(play.agent.deadline(), None);
    play.input(Input::Tick);
    play.input(Input::Abort);
    assert!(play.log().is_empty());
}

// host.md 3.5.2, 3.1.5: what streamed is kept, cut calls are not.
#[test]
fn an_aborted_answer_keeps_its_text_and_runs_nothing() {
    let mut play = play();
    play.prompt("go");
    let call = Block::ToolCall(fixtures::call("a", "bash", &serde_json::json!({})));
    let mut events = vec![ModelEvent::Started];
    events.extend(fixtures::block(0, Block::text("half")));
    events.push(ModelEvent::BlockStart { index: 1, block: call });
    play.stream(events);
    play.log();
    play.input(Input::Abort);
    let expected = [
        "cancel",
        "write Aborted: half (the request was aborted)",
        "message_end Aborted: half (the request was aborted)",
        "turn_end 0",
        "agent_end",
        "agent_settled aborted=true",
        "idle Aborted",
    ];
    assert_eq!(play.log(), expected);
    // What the stream still says is late.
    play.say("more");
    assert!(play.log().is_empty());
}

// host.md 3.1.4: aborted before the response began.
#[test]
fn an_abort_before_the_response_tells_a_start_and_an_end() {
    let mut play = play();
    play.prompt("go");
    play.log();
    play.input(Input::Abort);
    let log = play.log();
    assert_eq!(log[1], "message_start assistant");
    assert!(log[3].starts_with("message_end Aborted"), "{log:?}");
}

// host.md 3.3.8, 11.38: every call has one result, then the run is over.
#[test]
fn an_abort_during_tools_waits_for_each_result() {
    let mut play = play();
    play.prompt("go");
    play.call(&[("a", "bash"), ("b", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    play.log();
    play.input(Input::Abort);
    assert_eq!(play.log(), ["cancel"]);
    assert!(!play.agent.is_idle());
    play.tool("b", ToolOutcome::error("the operation was aborted"));
    let log = play.log();
    assert!(log.contains(&"write b error: the operation was aborted".to_owned()));
    assert_eq!(log.last().unwrap(), "idle Aborted");
    assert_eq!(play.requests(), 1);
}

// host.md 3.4.5, 12.5: kept, not delivered, entering with the next run.
#[test]
fn an_abort_keeps_the_queues() {
    let mut play = play();
    play.prompt("go");
    play.steer("typed");
    play.results(&[1]);
    play.input(Input::Abort);
    assert!(play.agent.is_idle());
    play.input(Input::Wake);
    let asked = play.asked();
    assert!(asked.contains(&"crew-result: result 1".to_owned()), "{asked:?}");
    assert!(asked.contains(&"user: typed".to_owned()), "{asked:?}");
}

// host.md 2.2.4, 3.1.10: the leaf goes back, the run ends as failed.
#[test]
fn an_entry_that_was_not_written_is_taken_back_with_all_behind_it() {
    let mut play = play();
    play.prompt("one");
    play.say("fine");
    let leaf = play.agent.record().leaf().cloned();
    play.prompt("two");
    play.log();
    play.write_fails(0);
    assert_eq!(play.agent.record().leaf(), leaf.as_ref());
    let log = play.log();
    assert_eq!(log[0], "cancel");
    assert_eq!(log.last().unwrap(), "idle Failed(\"disk full\")");
    play.prompt("three");
    assert_eq!(play.asked(), ["user: one", "Stop: fine", "user: three"]);
}

// host.md 2.2.4: what a request that has begun stands on was written.
#[test]
fn an_entry_behind_a_request_that_began_cannot_fail_any_more() {
    let mut play = play();
    play.prompt("one");
    play.stream(vec![ModelEvent::Started]);
    play.log();
    play.write_fails(0);
    assert!(play.log().is_empty());
    play.say("fine");
    assert!(play.agent.is_idle());
}

// crew.md SAFE-4: results among them go back, oldest first.
#[test]
fn results_that_were_not_written_are_given_back_in_order() {
    let mut play = play();
    play.results(&[4, 5, 6]);
    play.log();
    play.write_fails(1);
    assert!(play.log().contains(&"refused 5 6".to_owned()));
    let context: Vec<_> = play.agent.record().messages().collect();
    assert_eq!(context.len(), 2, "the prompt and result 4");
}

// host.md 3.1.10: tools of a run that failed are told as ended.
#[test]
fn a_failed_write_during_tools_ends_each_of_them_for_faces() {
    let mut play = play();
    play.prompt("go");
    play.call(&[("a", "bash"), ("b", "read")]);
    play.tool("a", ToolOutcome::text("A"));
    play.log();
    play.write_fails(0);
    let log = play.log();
    assert_eq!(log[0], "cancel");
    assert!(log.contains(&"tool_end read b error not run".to_owned()), "{log:?}");
    assert!(play.agent.is_idle());
    play.tool("b", ToolOutcome::text("late"));
    assert!(play.log().is_empty());
}

// crew.md CTX-6, CTX-7: the status stands behind the results and before the
// next request.
#[test]
fn what_the_crew_says_at_a_boundary_stands_between_results_and_request() {
    let mut play = play();
    play.status("first");
    play.prompt("go");
    assert_eq!(play.asked(), ["crew-status: first", "user: go"]);
    play.call(&[("a", "bash")]);
    play.status("second");
    play.tool("a", ToolOutcome::text("A"));
    assert_eq!(play.asked()[3..], ["a ok: A", "crew-status: second"]);
}
