//! The way of a result to its owner, and only there: `crew.md` 6, 8 and the
//! rows of its section 21 that are about them.

use crew_base::tool::ToolOutcome;
use crew_testkit::play::{Child, Play, a, spawn_arguments};
use serde_json::json;

const DAY_MS: u64 = 86_400_000;

/// Owner `A` with this many children, and another owner `B` that is attached.
fn away(children: usize) -> (Play, Vec<Child>) {
    let mut play = Play::default();
    let briefs: Vec<_> = (0..children).map(|number| format!("b{number}")).collect();
    let briefs: Vec<_> = briefs.iter().map(String::as_str).collect();
    let open = play.spawn("A", &briefs);
    assert_eq!(play.open("B", None), Ok(()));
    play.log();
    (play, open)
}

/// Reports that an owner has in its record, in order.
fn received(play: &Play, owner: &str) -> Vec<String> {
    let results = play.customs(owner, "crew-result");
    let report = |content: &String| {
        let value: serde_json::Value = serde_json::from_str(content).expect("a result is JSON");
        let report = value["result"]["report"].as_str().or(value["error"].as_str());
        report.expect("a report or an error").to_owned()
    };
    results.iter().map(report).collect()
}

// Row 37, DEL-5: a turn starts although peers still run.
#[test]
fn a_result_starts_a_run_in_an_idle_owner_whatever_its_peers_do() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b", "c", "d"]);
    let before = play.requests(&a()).len();
    play.report(&open[2], "C");
    assert_eq!(play.requests(&a()).len(), before + 1);
    assert_eq!(received(&play, "A"), ["C"]);
}

// Row 36, DEL-5, DEL-14.
#[test]
fn a_result_for_a_streaming_owner_enters_before_its_next_request() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b", "c", "d"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    play.report(&open[0], "A");
    assert!(received(&play, "A").is_empty());
    play.say(&a(), "talking");
    assert_eq!(received(&play, "A"), ["A"]);
    assert!(play.asked(&a()).last().unwrap().starts_with("crew-result"));
}

// C010, P-9a: each marker once in one further request.
#[test]
fn five_results_that_settle_during_a_tool_call_cost_one_request() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b", "c", "d", "e"]);
    assert_eq!(play.prompt("A", "work"), Ok(()));
    play.call(&a(), &[("bash", json!({}))]);
    let before = play.requests(&a()).len();
    for (number, child) in open.iter().enumerate() {
        play.report(child, &format!("M{number}"));
    }
    play.tool_ends(&a(), ToolOutcome::text("ok"));
    assert_eq!(play.requests(&a()).len(), before + 1);
    assert_eq!(received(&play, "A"), ["M0", "M1", "M2", "M3", "M4"]);
    play.say(&a(), "seen");
    assert_eq!(play.requests(&a()).len(), before + 1, "C007, C008: nothing comes twice");
}

// Row 38, DEL-6: an abort never starts a turn and is in no context.
#[test]
fn an_abort_entry_is_drawn_and_nothing_else() {
    let mut play = Play::default();
    play.spawn("A", &["a"]);
    let before = play.requests(&a()).len();
    let abort = crew_testkit::play::abort_crew("A");
    assert_eq!(play.command(abort), Ok(()));
    assert_eq!(play.requests(&a()).len(), before);
    assert_eq!(play.customs("A", "crew-abort").len(), 1);
    assert_eq!(play.prompt("A", "on"), Ok(()));
    assert!(!play.asked(&a()).iter().any(|line| line.contains("aborted by")));
}

// Row 5, DEL-1, DEL-18, OWN-2; C032: nothing appears in the other session.
#[test]
fn a_result_for_a_detached_owner_waits_for_it() {
    let (mut play, open) = away(1);
    play.report(&open[0], "R");
    assert!(received(&play, "A").is_empty() && received(&play, "B").is_empty());
    assert!(play.log().iter().all(|line| !line.starts_with("A ") && !line.starts_with("B ")));
    // Row 6, DEL-8: nothing in the attaching step; on the next turn it starts.
    assert_eq!(play.attach("A"), Ok(()));
    assert!(received(&play, "A").is_empty());
    play.tick();
    assert_eq!(received(&play, "A"), ["R"]);
    assert!(play.asked(&a()).last().unwrap().contains("crew-result"));
    assert!(received(&play, "B").is_empty());
}

// Row 7, DEL-9: behind the older ones, all before one request.
#[test]
fn what_settles_while_a_flush_is_pending_goes_behind_the_older() {
    let (mut play, open) = away(2);
    play.report(&open[0], "old");
    assert_eq!(play.attach("A"), Ok(()));
    let before = play.requests(&a()).len();
    play.report(&open[1], "new");
    assert!(received(&play, "A").is_empty());
    play.tick();
    assert_eq!(received(&play, "A"), ["old", "new"]);
    assert_eq!(play.requests(&a()).len(), before + 1);
}

// Row 8, DEL-12: another owner is there when the flush runs.
#[test]
fn a_flush_gives_only_to_the_owner_that_is_attached_when_it_runs() {
    let (mut play, open) = away(1);
    play.report(&open[0], "R");
    assert_eq!(play.attach("A"), Ok(()));
    assert_eq!(play.attach("B"), Ok(()));
    assert_eq!(play.engine.deadline(), None, "B has nothing to flush");
    play.event(crew_testkit::play::tick());
    assert!(received(&play, "A").is_empty() && received(&play, "B").is_empty());
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!(received(&play, "A"), ["R"]);
}

// Row 9, DEL-12: nobody is attached when it runs; nothing is dropped.
#[test]
fn a_flush_without_an_owner_does_nothing() {
    let (mut play, open) = away(1);
    play.report(&open[0], "R");
    assert_eq!(play.attach("A"), Ok(()));
    assert_eq!(play.detach("A"), Ok(()));
    play.now = play.now + 2 * DAY_MS;
    play.event(crew_testkit::play::tick());
    play.now = play.now + 1;
    assert_eq!(play.engine.crew().undelivered(&a()), 1);
}

// Rows 10 to 12, DEL-10, DEL-11; C011: time alone delivers nothing again.
#[test]
fn a_result_waits_a_whole_day_and_no_longer() {
    let check = |age_ms: u64, expected: &[&str]| {
        let (mut play, open) = away(1);
        play.report(&open[0], "R");
        play.now = play.now + age_ms;
        assert_eq!(play.attach("A"), Ok(()));
        play.tick();
        assert_eq!(received(&play, "A"), expected);
        play.now = play.now + 36_000_000;
        play.event(crew_testkit::play::tick());
        assert_eq!(received(&play, "A"), expected);
    };
    check(DAY_MS, &["R"]);
    check(DAY_MS + 1, &[]);

    // Row 12: a flush drops what is too old for anybody.
    let (mut play, open) = away(1);
    play.report(&open[0], "R");
    assert_eq!(play.attach("A"), Ok(()));
    let other = {
        assert_eq!(play.attach("B"), Ok(()));
        play.spawn("B", &["mine"]).remove(0)
    };
    assert_eq!(play.open("C", None), Ok(()));
    play.report(&other, "B's");
    play.now = play.now + DAY_MS + 1;
    assert_eq!(play.attach("B"), Ok(()));
    assert_eq!(play.engine.crew().undelivered(&a()), 1);
    play.tick();
    assert_eq!(play.engine.crew().undelivered(&a()), 0);
}

// P-14c, DEL-13: steered, not recorded, and the owner is left.
#[test]
fn a_result_that_was_steered_goes_back_when_its_owner_is_detached() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    play.report(&open[0], "first");
    assert_eq!(play.detach("A"), Ok(()));
    play.report(&open[1], "second");
    assert!(received(&play, "A").is_empty());
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!(received(&play, "A"), ["first", "second"]);
}

// DEL-5: aborted with results waiting, the owner takes them as an idle one.
#[test]
fn a_result_that_waits_through_an_abort_starts_the_next_run() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    play.report(&open[0], "R");
    assert_eq!(play.abort("A"), Ok(()));
    assert_eq!(received(&play, "A"), ["R"]);
    assert!(!play.engine.agent(&a()).unwrap().is_idle());
}

// DEL-7, DEL-15: a success and the later abort, in order.
#[test]
fn a_queued_success_stays_in_place_before_the_abort_entry() {
    let (mut play, open) = away(1);
    play.report(&open[0], "R");
    let abort = crew_testkit::play::abort_crew("A");
    assert_eq!(play.command(abort), Ok(()));
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!(received(&play, "A"), ["R"]);
    assert_eq!(play.customs("A", "crew-abort").len(), 1);
}

// Rows 13 and 14, OWN-4 to OWN-9; C001, C028: once, in the fork.
#[test]
fn a_fork_adopts_subagents_and_what_waits_for_them() {
    let mut play = Play::default();
    let open = play.spawn("A", &["waits", "works"]);
    assert_eq!(play.open("B", None), Ok(()));
    play.report(&open[0], "queued");
    assert_eq!(play.open("F", Some("A")), Ok(()));
    assert!(received(&play, "F").is_empty(), "OWN-8: adopted before the flush");
    play.tick();
    assert_eq!(received(&play, "F"), ["queued"]);
    play.say(&"F".into(), "seen");
    // Row 15, OWN-12 and OWN-11: the cycle goes on and reports to the fork.
    play.report(&open[1], "later");
    play.say(&"F".into(), "seen");
    assert_eq!(received(&play, "F"), ["queued", "later"]);
    assert!(received(&play, "A").is_empty());
    assert_eq!((play.statuses("A").len(), play.statuses("F").len()), (0, 2));
    // Row 14, OWN-9, CTX-13: the old session has no rights any more.
    assert_eq!(play.attach("A"), Ok(()));
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_done", json!({"subagent_id": open[0].id}))]);
    assert!(play.tool_result(&a()).contains("another session"));
    assert_eq!(play.customs("A", "crew-status").last().unwrap(), r#"{"crew_status":[]}"#);
}

// P-14c, OWN-5: the old session is still attached and streams.
#[test]
fn a_fork_of_a_running_session_takes_what_was_steered_into_it() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    play.report(&open[0], "R");
    assert_eq!(play.open("F", Some("A")), Ok(()));
    play.tick();
    assert_eq!((received(&play, "F"), received(&play, "A")), (vec!["R".to_owned()], vec![]));
}

// P-14j: what the old session has is not delivered again.
#[test]
fn a_fork_does_not_get_what_the_old_session_received() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a"]);
    play.report(&open[0], "R");
    play.say(&a(), "seen");
    assert_eq!(play.open("F", Some("A")), Ok(()));
    assert_eq!(play.engine.deadline(), None);
    assert_eq!((received(&play, "F").len(), play.statuses("F")), (0, vec!["completed"]));
}

// Row 16, OWN-7; rows 17, OWN-3, OWN-10.
#[test]
fn nothing_is_adopted_without_a_file_or_without_a_fork() {
    let mut play = Play::empty();
    play.is_obedient = false;
    assert_eq!(play.open("A", None), Err(crew_testkit::play::no_answer()));
    play.opening().1.file = None;
    assert!(play.opens(None));
    play.is_obedient = true;
    play.spawn("A", &["a"]);
    assert_eq!(play.open("F", Some("A")), Ok(()));
    assert_eq!((play.statuses("A").len(), play.statuses("F").len()), (1, 0));

    let mut play = Play::default();
    let open = play.spawn("A", &["a"]);
    assert_eq!(play.open("N", None), Ok(()));
    play.report(&open[0], "R");
    assert_eq!((play.statuses("A").len(), play.statuses("N").len()), (1, 0));
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!((received(&play, "A").len(), received(&play, "N").len()), (1, 0));
}

// Row 18, OWN-6: an error whose subagent is gone moves too.
#[test]
fn a_queued_error_of_a_subagent_that_is_gone_moves_with_the_fork() {
    let (mut play, open) = away(1);
    play.fail(&open[0].session, crew_base::model::ModelErrorKind::Credential, Some(401));
    assert!(play.statuses("A").is_empty());
    assert_eq!(play.open("F", Some("A")), Ok(()));
    play.tick();
    assert_eq!(received(&play, "F"), ["scripted failure"]);
}

// SAFE-4, OP-29: what the record refused is kept, in order, for the next try.
#[test]
fn a_result_that_could_not_be_written_is_sent_again_later_and_once() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b"]);
    play.report(&open[0], "first");
    let entry = play.last_entry(&a(), "crew-result");
    play.append_fails(&a(), entry);
    assert!(play.log().iter().any(|line| line == "A failed: disk full"));
    // At rest although it waits: nothing more comes by itself.
    play.report(&open[1], "second");
    play.tick();
    let mut all = received(&play, "A");
    assert_eq!(all.remove(0), "first", "the lost write");
    assert_eq!(all, ["first", "second"]);
}

// DEL-8 within one step: entries are written in the order of their chain.
#[test]
fn an_abort_in_the_batch_that_takes_results_in_breaks_no_chain() {
    let mut play = Play::default();
    let open = play.spawn("A", &["a", "b"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    play.report(&open[0], "one");
    play.report(&open[1], "two");
    let ids = json!({"subagent_ids": [open[1].id]});
    play.call(&a(), &[("crew_abort", ids), ("crew_status", json!({}))]);
    let entries = play.entries(&a());
    for pair in entries.windows(2) {
        assert_eq!(pair[1].parent_id.as_ref(), Some(&pair[0].id));
    }
    assert_eq!(received(&play, "A"), ["one", "two"]);
}

// C035: prompts still reach the owner and all results come.
#[test]
fn seven_children_that_end_leave_the_owner_where_it_is() {
    let mut play = Play::default();
    let briefs = ["a", "b", "c", "d", "e", "f", "g"];
    let open = play.spawn("A", &briefs);
    for child in &open {
        play.report(child, &child.id);
        play.say(&a(), "seen");
    }
    assert_eq!(received(&play, "A"), open.iter().map(|one| one.id.clone()).collect::<Vec<_>>());
    assert_eq!(play.prompt("A", "still there"), Ok(()));
    assert_eq!(play.asked(&a()).last().unwrap(), "user: still there");
}

// C032: two owners with equal names of definitions and briefs.
#[test]
fn two_owners_get_their_own_results_only() {
    let mut play = Play::default();
    let first = play.spawn("A", &["same"]).remove(0);
    assert_eq!(play.open("B", None), Ok(()));
    let second = play.spawn("B", &["same"]).remove(0);
    play.report(&first, "for A");
    play.report(&second, "for B");
    assert_eq!(received(&play, "B"), ["for B"]);
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!((received(&play, "A"), received(&play, "B").len()), (vec!["for A".into()], 1));
}

// C047 in the pure part: no slot is kept; all end with their owner's abort.
#[test]
fn finished_subagents_do_not_keep_others_from_starting() {
    let mut play = Play::default();
    for _ in 0..20 {
        let child = play.spawn("A", &["one more"]).remove(0);
        play.report(&child, "R");
        play.say(&a(), "seen");
    }
    assert_eq!(play.statuses("A").len(), 20);
    assert_eq!(play.prompt("A", "stop"), Ok(()));
    play.call(&a(), &[("crew_abort", json!({"all": true}))]);
    assert_eq!((play.statuses("A").len(), play.closed.len()), (0, 20));
}

// C037, C038, ISO-10: what the owner and its other children were told.
#[test]
fn a_child_sees_its_own_task_and_nothing_else() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "secret of the owner"), Ok(()));
    play.call(&a(), &[("crew_spawn", spawn_arguments("x")), ("crew_spawn", spawn_arguments("y"))]);
    assert_eq!(play.command(crew_testkit::play::steer("A", "steer marker")), Ok(()));
    play.say(&a(), "ok");
    for (child, goal) in play.children("A").iter().zip(["goal of x", "goal of y"]) {
        let asked = play.asked(&child.session);
        assert_eq!(asked.len(), 1);
        assert_eq!(
            asked[0],
            format!("user: ## Goal\n\n{goal}\n\n## Context\n\nNone.\n\n## Instructions\n\n1. i")
        );
    }
    assert!(play.asked(&a()).contains(&"user: steer marker".to_owned()));
}
