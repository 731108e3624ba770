//! What faces see of subagents and of results that wait (`terminal.md`
//! TERM-40, TERM-61; `crew.md` WID-2, ACT-2).

use crew_base::model::ModelErrorKind;
use crew_base::tool::ToolOutcome;
use crew_engine::api::{RowStatus, Status, SubagentView, Wait};
use crew_testkit::play::{Play, a, spawn_arguments};
use serde_json::json;

fn view(play: &Play) -> SubagentView {
    play.engine.subagents(&a()).remove(0)
}

// TERM-40.
#[test]
fn a_subagent_says_what_it_waits_for() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", spawn_arguments("b"))]);
    assert!(play.discovers());
    assert_eq!((view(&play).waits, view(&play).thinking), (Some(Wait::Opening), None));
    assert!(play.opens(None));
    assert_eq!(view(&play).waits, Some(Wait::Model));
    assert!(view(&play).thinking.is_some());
    let session = view(&play).session;
    play.call(&session, &[("read", json!({"path": "src"}))]);
    assert_eq!(view(&play).waits, None, "a tool runs");
    play.tool_ends(&session, ToolOutcome::text("a"));
    play.fail(&session, ModelErrorKind::Server, Some(500));
    let Some(Wait::Retry(at)) = view(&play).waits else { panic!("{:?}", view(&play).waits) };
    assert!(at > play.now);
}

// TERM-40, P-13: the pause that a provider asked one session for holds the
// others too.
#[test]
fn a_pause_of_the_provider_is_told_with_its_end() {
    let mut play = Play::default();
    let [one, other] = <[_; 2]>::try_from(play.spawn("A", &["a", "b"])).unwrap();
    play.fail(&one.session, ModelErrorKind::Overloaded, Some(529));
    play.call(&other.session, &[("read", json!({"path": "src"}))]);
    play.tool_ends(&other.session, ToolOutcome::text("a"));
    let views = play.engine.subagents(&a());
    let Some(Wait::CoolDown(until)) = views[1].waits else { panic!("{:?}", views[1].waits) };
    assert!(until > play.now);
    assert_eq!(play.engine.wait_of(&a()), None, "the owner is idle");
    assert_eq!(play.prompt("A", "meanwhile"), Ok(()));
    assert_eq!(play.engine.wait_of(&a()), Some(Wait::CoolDown(until)));
}

// WID-2, ACT-2, ACT-6.
#[test]
fn a_view_holds_rows_failures_usage_and_words() {
    let mut play = Play::default();
    let child = play.spawn("A", &["b"]).remove(0);
    play.call(&child.session, &[("read", json!({"path": "src"})), ("read", json!({"path": "x"}))]);
    play.tool_ends(&child.session, ToolOutcome::text("a"));
    let seen = view(&play);
    let rows: Vec<_> = seen.rows.iter().map(|row| (row.target.as_str(), row.status)).collect();
    assert_eq!(rows, [("src", RowStatus::Done), ("x", RowStatus::Running)]);
    play.tool_ends(&child.session, ToolOutcome::error("no such file"));
    let seen = view(&play);
    assert_eq!((seen.tool_calls, seen.failures, seen.settled), (2, 1, None));
    assert!(seen.usage.output > 0, "{:?}", seen.usage);
    play.say(&child.session, "I forgot the report");
    assert_eq!(view(&play).last_text.as_deref(), Some("I forgot the report"));
    play.call(
        &child.session,
        &[("crew_report", json!({"outcome": "needs_input", "needs": "Which?", "report": "r"}))],
    );
    let seen = view(&play);
    assert_eq!((seen.status, seen.settled.as_deref()), (Status::NeedsInput, Some("Which?")));
    assert_eq!(seen.waits, None);
}

// TERM-61: results wait for the next request; stops are no results.
#[test]
fn results_that_wait_for_the_next_request_are_counted() {
    let mut play = Play::default();
    let [one, two, three] = <[_; 3]>::try_from(play.spawn("A", &["a", "b", "c"])).unwrap();
    assert_eq!(play.prompt("A", "meanwhile"), Ok(()));
    play.report(&one, "R1");
    play.report(&two, "R2");
    let stop = crew_engine::api::Command::AbortSubagent(
        a(),
        crew_base::id::SubagentId::new(three.id.as_str()),
    );
    assert_eq!(play.command(stop), Ok(()));
    assert_eq!(play.engine.results_waiting(&a()), 2);
    play.say(&a(), "an answer");
    assert_eq!(play.engine.results_waiting(&a()), 0);
}
