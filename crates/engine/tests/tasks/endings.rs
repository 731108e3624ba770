//! How calls end from outside, and what is left then (`task.md` OBS-10, SESS-9,
//! SESS-12, MEET-5).

use crew_engine::api::Command;
use crew_engine::api::task::Policy;
use crew_engine::{Event, TaskWork};
use crew_testkit::play::{Play, a};
use serde_json::json;

use super::{calling, check_rest, is_idle, result};

// OBS-10, TASK-SPAWN-15, MEET-5.
#[test]
fn an_abort_of_the_owner_ends_its_children_and_every_item_has_its_line() {
    let mut play = Play::default();
    play.setup.settings.max_concurrency = 1;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["one", "two"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "sleep 9"}))]);
    assert_eq!(play.abort("A"), Ok(()));
    let (text, is_error) = result(&play);
    assert!(text.contains("cancelled by the caller") && text.contains("k2"), "{text}");
    assert!(!is_error);
    assert_eq!(play.closed, [child]);
    assert_eq!(play.requests(&a()).len(), 1);
    check_rest(&play);
}

// DISP-3: nobody is asked about a call that is over.
#[test]
fn a_cancelled_question_is_withdrawn() {
    let mut play = Play::default();
    play.setup.approval.can_ask = true;
    play.setup.approval.tools.insert("task".to_owned(), Policy::Prompt);
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["look"]);
    let Some(TaskWork::Ask { run, .. }) = play.works.pop() else { panic!("{:?}", play.works) };
    play.log();
    assert_eq!(play.abort("A"), Ok(()));
    assert!(play.log().contains(&"A cancels".to_owned()));
    assert!(is_idle(&play, &a()));
    play.event(Event::TaskAnswered { run, is_allowed: true });
    assert!(play.task_plans.is_empty());
    check_rest(&play);
}

// A call that is cancelled before anything was read for it.
#[test]
fn a_cancelled_call_that_waits_for_its_setup_starts_nothing() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["one"]);
    assert_eq!(play.abort("A"), Ok(()));
    assert!(is_idle(&play, &a()));
    assert!(play.works());
    assert!(play.works.is_empty() && play.task_plans.is_empty());
    check_rest(&play);
}

// EXEC-1, SESS-9: cancelled while its session is being made.
#[test]
fn a_child_that_is_cancelled_while_it_opens_is_closed() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["one"]);
    while play.works() {}
    let child = play.task_child("k1");
    assert_eq!(play.abort("A"), Ok(()));
    assert_eq!(play.closed, std::slice::from_ref(&child));
    assert!(play.task_result(&a()).is_none(), "something of it may live");
    play.event(Event::SessionClosed { session: child.clone() });
    assert!(result(&play).0.contains("cancelled"));
    assert!(play.entries(&child).is_empty());
    check_rest(&play);
}

// SESS-12; task.md 12 row 85.
#[test]
fn a_child_that_does_not_end_in_time_is_not_waited_for() {
    let mut play = calling(&["one"]);
    let child = play.task_child("k1");
    play.is_obedient = false;
    assert_eq!(play.abort("A"), Ok(()));
    while play.task_result(&a()).is_none() {
        play.tick();
        while play.works() {}
    }
    let (text, _) = result(&play);
    assert!(text.contains("cleanup took longer"), "{text}");
    play.event(Event::SessionClosed { session: child });
    check_rest(&play);
}

// MEET-5: quitting ends them by the host.
#[test]
fn a_quit_ends_children_before_it_exits() {
    let mut play = calling(&["one"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "sleep 9"}))]);
    play.is_obedient = false;
    assert_eq!(play.command(Command::Quit), Ok(()));
    assert!(!play.exited);
    play.event(Event::SessionClosed { session: child });
    while play.works() {}
    assert!(play.exited);
    assert!(result(&play).0.contains("background work was shut down"));
    assert_eq!(play.requests(&a()).len(), 1);
}

// The grace bounds it.
#[test]
fn a_quit_does_not_wait_for_a_child_that_hangs() {
    let mut play = calling(&["one"]);
    let child = play.task_child("k1");
    play.hangs = true;
    play.call(&child, &[("bash", json!({"command": "sleep 9"}))]);
    play.is_obedient = false;
    assert_eq!(play.command(Command::Quit), Ok(()));
    while !play.exited {
        play.tick();
    }
    assert!(play.closed.contains(&child) && play.closed.contains(&a()));
}

// An owner whose record failed is idle, but not at rest while children end.
#[test]
fn the_owner_is_at_rest_only_once_its_children_are_gone() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    play.is_obedient = false;
    play.log();
    let entry = play.entries(&a()).last().unwrap().id.clone();
    play.append_fails(&a(), entry);
    assert!(is_idle(&play, &a()));
    assert!(!play.log().contains(&"A at rest".to_owned()));
    play.event(Event::SessionClosed { session: child });
    while play.works() {}
    assert!(play.log().contains(&"A at rest".to_owned()));
    check_rest(&play);
}

// OBS-12, ART-10: a temporary folder ends with its call.
#[test]
fn the_folder_of_an_unsaved_owner_is_given_back() {
    let mut play = Play::empty();
    play.is_obedient = false;
    let open = Command::Open {
        session: a(),
        source: crew_engine::Source::New { name: None },
        adopts: None,
    };
    play.give(open);
    play.opening().1.file = None;
    assert!(play.opens(None));
    play.is_obedient = true;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["look"]);
    assert!(play.task_plans[0].file.starts_with("/tmp/fresh/"));
    play.yields(&play.task_child("k1").clone(), json!({"n": 1}));
    assert!(!result(&play).0.contains("agent://"));
    assert!(matches!(play.works.last(), Some(TaskWork::EndLease { .. })));
}
