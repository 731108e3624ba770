//! Moves of an owner in its session tree within the whole (`host.md` 2.8.2,
//! 2.8.3, 3.1.11, 3.4.6).

use std::sync::Arc;

use crew_base::id::EntryId;
use crew_base::message::{Message, SharedMessage};
use crew_base::model::ThinkingLevel;
use crew_engine::Event;
use crew_engine::api::{Branch, BranchWish, Command, Left, Refusal};
use crew_testkit::play::{Play, a};

fn navigate(play: &mut Play, summary: bool) -> crew_engine::api::CommandId {
    play.give(Command::Navigate {
        session: a(),
        to: "aaaa".into(),
        summary: summary.then(BranchWish::default),
        label: None,
    })
}

/// The branches are read: one message is kept, one is left.
fn read(play: &mut Play) {
    let kept = Arc::new(Message::user_text("kept", play.now));
    read_to(play, vec![("aaaa".into(), kept)]);
}

/// The branches are read: this is kept, one message is left.
fn read_to(play: &mut Play, context: Vec<(EntryId, SharedMessage)>) {
    let (session, run, ..) = play.readings.remove(0);
    let said = |text: &str| Arc::new(Message::user_text(text, play.now));
    let branch = Branch {
        leaf: Some("aaaa".into()),
        draft: None,
        context,
        thinking: ThinkingLevel::Off,
        left: vec![Left { message: said("left behind"), details: None }],
    };
    play.event(Event::BranchRead { session, run, result: Ok(Box::new(branch)) });
}

fn exchange(play: &mut Play) {
    assert_eq!(play.prompt("A", "first"), Ok(()));
    play.say(&a(), "answered");
}

#[test]
fn a_move_is_answered_when_it_has_ended() {
    let mut play = Play::default();
    exchange(&mut play);
    let id = navigate(&mut play, false);
    assert_eq!(play.answer(id), None);
    read(&mut play);
    assert_eq!(play.answer(id), Some(Ok(())));
    assert_eq!(play.prompt("A", "next"), Ok(()));
    assert!(play.asked(&a()).contains(&"user: kept".to_owned()), "{:?}", play.asked(&a()));
    assert!(!play.asked(&a()).iter().any(|line| line.contains("first")));
}

#[test]
fn a_move_is_refused_while_anything_runs() {
    // host.md 2.8.2
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "first"), Ok(()));
    let id = navigate(&mut play, false);
    assert_eq!(play.answer(id), Some(Err(Refusal::Busy)));
    play.say(&a(), "answered");
    let first = navigate(&mut play, true);
    let second = navigate(&mut play, false);
    assert_eq!((play.answer(first), play.answer(second)), (None, Some(Err(Refusal::Busy))));
    let elsewhere =
        Command::Navigate { session: "B".into(), to: "aaaa".into(), summary: None, label: None };
    assert_eq!(play.command(elsewhere), Err(Refusal::UnknownSession));
}

#[test]
fn prompts_are_refused_and_results_wait_while_a_branch_is_summarised() {
    // host.md 3.1.11, 3.4.6; crew.md DEL-5
    let mut play = Play::default();
    exchange(&mut play);
    let child = play.spawn("A", &["work"]).remove(0);
    play.say(&a(), "spawned");
    let id = navigate(&mut play, true);
    read(&mut play);
    assert_eq!(play.prompt("A", "now"), Err(Refusal::Busy));
    let message = Message::user_text("now", play.now);
    assert_eq!(play.command(Command::PromptOrSteer(a(), message)), Err(Refusal::Busy));
    play.report(&child, "ONE");
    assert_eq!(play.customs("A", "crew-result").len(), 0);
    play.say(&a(), "NOTES");
    assert_eq!(play.answer(id), Some(Ok(())));
    // The result started a run on the branch that was gone to.
    assert_eq!(play.customs("A", "crew-result").len(), 1);
    let asked = play.asked(&a()).join("\n");
    assert!(asked.contains("kept") && asked.contains("ONE"), "{asked}");
    assert!(!asked.contains("user: first"), "{asked}");
}

#[test]
fn a_move_that_fails_or_is_cancelled_says_so() {
    let mut play = Play::default();
    exchange(&mut play);
    let id = navigate(&mut play, false);
    let (session, run, ..) = play.readings.remove(0);
    play.event(Event::BranchRead { session, run, result: Err("gone".into()) });
    assert_eq!(play.answer(id), Some(Err(Refusal::MoveFailed("gone".into()))));
    let id = navigate(&mut play, true);
    read(&mut play);
    assert_eq!(play.abort("A"), Ok(()));
    assert_eq!(play.answer(id), Some(Err(Refusal::MoveCancelled)));
    assert_eq!(play.prompt("A", "goes on"), Ok(()));
    assert!(play.asked(&a()).contains(&"user: first".to_owned()));
}

#[test]
fn leaving_cancels_a_move() {
    let mut play = Play::default();
    exchange(&mut play);
    let id = navigate(&mut play, true);
    read(&mut play);
    assert_eq!(play.command(Command::Leave(a())), Ok(()));
    assert_eq!(play.answer(id), Some(Err(Refusal::MoveCancelled)));
    assert_eq!(play.closed, [a()]);
}

#[test]
fn a_summary_is_no_request_of_the_owner_for_its_reminders() {
    // crew.md CTX-17
    let mut play = Play::default();
    exchange(&mut play);
    let child = play.spawn("A", &["work"]).remove(0);
    play.report(&child, "ONE");
    play.say(&a(), "spawned");
    play.say(&a(), "seen");
    let snapshots = play.customs("A", "crew-status").len();
    for _ in 0..40 {
        navigate(&mut play, true);
        let agent = play.engine.agent(&a()).expect("it is open");
        let all = agent.record().messages().enumerate();
        let context = all.map(|(at, m)| (EntryId::new(format!("e{at}")), Arc::clone(m))).collect();
        read_to(&mut play, context);
        play.say(&a(), "NOTES");
    }
    assert_eq!(play.prompt("A", "next"), Ok(()));
    assert_eq!(play.customs("A", "crew-status").len(), snapshots);
    assert_eq!(play.customs("A", "crew-reminder").len(), 0);
}

#[test]
fn a_snapshot_that_was_left_behind_is_given_again() {
    // crew.md CTX-11: as after a compaction, work is still open.
    let mut play = Play::default();
    exchange(&mut play);
    let child = play.spawn("A", &["work"]).remove(0);
    play.say(&a(), "spawned");
    let before = play.customs("A", "crew-status").len();
    navigate(&mut play, false);
    read(&mut play);
    assert_eq!(play.prompt("A", "next"), Ok(()));
    let snapshots = play.customs("A", "crew-status");
    assert_eq!(snapshots.len(), before + 1, "{snapshots:?}");
    assert!(snapshots.last().is_some_and(|last| last.contains(&child.id)));
}
