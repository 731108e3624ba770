//! Snapshots and reminders: `crew.md` 9 and rows 70 to 79 of its section 21.

use crew_base::tool::ToolOutcome;
use crew_testkit::play::{Play, a};
use serde_json::json;

fn snapshots(play: &Play) -> Vec<String> {
    play.customs("A", "crew-status")
}

fn reminders(play: &Play) -> usize {
    play.customs("A", "crew-reminder").len()
}

/// Runs the owner through this many model requests.
fn requests(play: &mut Play, count: usize) {
    assert_eq!(play.prompt("A", "go"), Ok(()));
    for _ in 1..count {
        play.call(&a(), &[("bash", json!({}))]);
        play.tool_ends(&a(), ToolOutcome::text("ok"));
    }
    play.say(&a(), "done");
}

// Row 70, CTX-1, CTX-6, CTX-7.
#[test]
fn a_spawn_is_followed_by_one_snapshot_behind_all_results() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b"]);
    let expected = format!(
        r#"{{"crew_status":[{{"subagent_id":"{}","status":"running"}},{{"subagent_id":"{}","status":"running"}}]}}"#,
        open[0].id, open[1].id
    );
    assert_eq!(snapshots(&play), [expected]);
    let asked = play.asked(&a());
    let at = asked.iter().position(|line| line.starts_with("crew-status")).unwrap();
    assert!(asked[at - 1].starts_with("call-") && asked[at - 2].starts_with("call-"));
    assert_eq!(at, asked.len() - 1, "before the next request");
}

// Rows 71 and 72, CTX-8 to CTX-10.
#[test]
fn nothing_open_is_said_once_and_only_if_something_was() {
    let mut play = Play::default();
    requests(&mut play, 3);
    assert!(snapshots(&play).is_empty());
    let child = play.spawn("A", &["a"]).remove(0);
    play.report(&child, "R");
    play.call(&a(), &[("crew_done", json!({"subagent_id": child.id}))]);
    play.say(&a(), "closed");
    assert_eq!(snapshots(&play).last().unwrap(), r#"{"crew_status":[]}"#);
    let count = snapshots(&play).len();
    requests(&mut play, 3);
    assert_eq!(snapshots(&play).len(), count);
}

// Row 78, CTX-14, CTX-24 to CTX-28: the record is the list that requests are
// made from, so what was recorded at the end of a turn stands at one place in
// every later request, of this run and of those after it.
#[test]
fn a_snapshot_stands_at_its_recorded_place_in_every_later_request() {
    let mut play = Play::default();
    play.spawn("A", &["a"]);
    let first = play.asked(&a());
    let places = |asked: &[String]| -> Vec<usize> {
        let is_status = |line: &&String| line.starts_with("crew-status");
        let all = asked.iter().enumerate();
        all.filter(|(_, line)| is_status(line)).map(|(at, _)| at).collect()
    };
    assert_eq!(places(&first), [first.len() - 1]);
    play.say(&a(), "spawned");
    requests(&mut play, 3);
    let later = play.asked(&a());
    assert_eq!(later[..first.len()], first, "what was sent is never changed");
    assert_eq!(places(&later), places(&first));
    assert_eq!(snapshots(&play).len(), 1);
    // In the record it stands where it stands in the requests: behind all results.
    let written = play.written(&a());
    let status = written.iter().position(|line| line.contains("crew-status")).unwrap();
    assert_eq!(written.iter().filter(|line| line.contains("crew-status")).count(), 1);
    assert!(written[status - 1].contains("call-"), "{written:?}");
}

// CTX-8: several changes between two boundaries give the final state.
#[test]
fn changes_between_two_boundaries_give_one_snapshot() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    let before = snapshots(&play).len();
    play.report(&open[0], "A");
    play.report(&open[1], "B");
    play.say(&a(), "talking");
    assert_eq!(snapshots(&play).len(), before + 1);
    assert_eq!(snapshots(&play).last().unwrap().matches("completed").count(), 2);
}

// CTX-16: the new status is there before the first request of the run.
#[test]
fn a_run_that_a_result_starts_knows_the_status_first() {
    let mut play = Play::default();
    let child = play.spawn("A", &["a"]).remove(0);
    play.report(&child, "R");
    let asked = play.asked(&a());
    let place = |kind: &str| asked.iter().rposition(|line| line.starts_with(kind)).unwrap();
    assert!(asked[place("crew-status")].contains("completed"));
    assert!(place("crew-status") > asked.len() - 3 && place("crew-result") > asked.len() - 3);
}

// Row 75, CTX-18, CTX-21; row 76, CTX-20.
#[test]
fn ten_requests_bring_a_reminder_of_those_that_wait_and_ten_more_another() {
    let mut play = Play::default();
    play.spawn("A", &["runs"]);
    requests(&mut play, 30);
    assert_eq!(reminders(&play), 0, "running subagents cause none");

    let mut play = Play::default();
    let child = play.spawn("A", &["a"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    requests(&mut play, 9);
    assert_eq!(reminders(&play), 1, "one request took the result in");
    let expected =
        format!(r#"{{"crew_reminder":[{{"subagent_id":"{}","status":"completed"}}]}}"#, child.id);
    assert_eq!(play.customs("A", "crew-reminder"), [expected]);
    requests(&mut play, 9);
    assert_eq!(reminders(&play), 1);
    requests(&mut play, 1);
    assert_eq!(reminders(&play), 2);
}

// Row 77, CTX-19: a due snapshot takes precedence and resets the counter.
#[test]
fn a_snapshot_comes_instead_of_a_reminder() {
    let mut play = Play::default();
    let child = play.spawn("A", &["a"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    requests(&mut play, 8);
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let respond = json!({"subagent_id": child.id, "message": "m"});
    play.call(&a(), &[("crew_respond", respond)]);
    play.say(&a(), "ok");
    play.report(&child, "R2");
    play.say(&a(), "seen");
    assert_eq!(reminders(&play), 0);
    requests(&mut play, 8);
    assert_eq!(reminders(&play), 0);
}

// Row 79, CTX-22: hours pass and an idle owner is left alone.
#[test]
fn an_idle_owner_is_not_woken_for_status() {
    let mut play = Play::default();
    let child = play.spawn("A", &["a"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    assert_eq!(play.engine.deadline(), None);
    play.log();
    play.now = play.now + 10 * 3_600_000;
    play.event(crew_testkit::play::tick());
    assert!(play.log().is_empty());
}

// CTX-3, CTX-4: hidden, with an id of its own that is not in the content.
#[test]
fn status_messages_are_hidden_and_have_ids() {
    let mut play = Play::default();
    play.spawn("A", &["a"]);
    play.spawn("A", &["b"]);
    let mut ids = Vec::new();
    for entry in play.entries(&a()) {
        if let crew_base::entry::EntryBody::CustomMessage { custom_type, display, details, content } =
            &entry.body
            && custom_type == "crew-status"
        {
            let id = details.as_ref().unwrap().value()["id"].as_str().unwrap().to_owned();
            assert!(!display && !content.text().contains(&id));
            ids.push(id);
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 2);
}

// TOOL-19: a look at the status is neither a snapshot nor a reset.
#[test]
fn a_status_call_resets_no_counter() {
    let mut play = Play::default();
    let child = play.spawn("A", &["a"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    assert_eq!(play.prompt("A", "go"), Ok(()));
    for _ in 0..8 {
        play.call(&a(), &[("crew_status", json!({}))]);
    }
    play.say(&a(), "done");
    assert_eq!(reminders(&play), 1);
}
