//! A turn that must call one tool, and runs that are stopped at a boundary
//! (`task.md` EXEC-8, EXEC-16, EXEC-26).

use crew_agent::{RetrySettings, Settings};
use crew_base::model::ModelErrorKind;
use crew_base::tool::ToolOutcome;
use crew_testkit::session_play::SessionPlay;

fn play() -> SessionPlay {
    SessionPlay::new(Settings::default())
}

fn forced(play: &SessionPlay) -> Vec<&str> {
    play.forced().iter().map(|tool| tool.as_deref().unwrap_or("-")).collect()
}

// EXEC-8: one turn, not the run.
#[test]
fn only_the_first_turn_of_the_next_run_must_call_the_tool() {
    let mut play = play();
    play.agent.force_tool(Some("bash"));
    play.prompt("go");
    play.call(&[("a", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    play.say("done");
    play.prompt("again");
    play.say("done");
    assert_eq!(forced(&play), ["bash", "-", "-"]);
}

// EXEC-8: a retry is the same request.
#[test]
fn retries_and_resends_must_call_it_too() {
    let retry = RetrySettings { resends_max: 1, ..RetrySettings::default() };
    let mut play = SessionPlay::new(Settings { retry, ..Settings::default() });
    play.agent.force_tool(Some("bash"));
    play.prompt("go");
    play.fail(ModelErrorKind::Server, Some(503));
    play.wait();
    play.fail(ModelErrorKind::Overloaded, Some(529));
    play.wait();
    play.call(&[("a", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    play.say("done");
    assert_eq!(forced(&play), ["bash", "bash", "bash", "-"]);
}

#[test]
fn a_run_that_fails_or_is_aborted_forgets_the_tool() {
    for fails in [true, false] {
        let mut play = play();
        play.agent.force_tool(Some("bash"));
        play.prompt("go");
        if fails {
            play.fail(ModelErrorKind::Credential, Some(401));
        } else {
            play.input(crew_agent::Input::Abort);
        }
        assert!(play.agent.is_idle());
        play.prompt("again");
        assert_eq!(forced(&play), ["bash", "-"], "fails: {fails}");
    }
}

// EXEC-16, EXEC-26: no request follows the results, and what they say stays.
#[test]
fn a_stop_at_a_boundary_ends_the_run_behind_the_results() {
    let mut play = play();
    play.prompt("go");
    play.call(&[("a", "bash")]);
    play.log();
    play.stop_at_boundary();
    play.status("noted");
    play.tool("a", ToolOutcome::text("A"));
    let log = play.log();
    assert!(log.iter().any(|line| line.starts_with("write") && line.contains("noted")), "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("idle Aborted"), "{log:?}");
    assert_eq!(play.requests(), 1);
    play.prompt("again");
    assert_eq!(play.requests(), 2, "the stop was for one run");
}

#[test]
fn a_stop_at_the_first_boundary_records_the_prompt_and_asks_nothing() {
    let mut play = play();
    play.stop_at_boundary();
    play.prompt("go");
    let log = play.log();
    assert!(log.iter().any(|line| line.contains("user: go")), "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("idle Aborted"), "{log:?}");
    assert_eq!(play.requests(), 0);
}

// What waited for the end of the run waits for the next one.
#[test]
fn a_stop_at_a_boundary_starts_nothing_that_waits() {
    let mut play = play();
    play.prompt("go");
    play.follow_up("later");
    play.stop_at_boundary();
    play.say("done");
    assert!(play.agent.is_idle());
    assert_eq!(play.requests(), 1);
}
