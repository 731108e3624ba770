//! Moves in the session tree (`host.md` 2.8.2, 2.8.3, 3.8.12).

use std::sync::Arc;

use crew_agent::{Branch, BranchWish, Control, Input, Left, RetrySettings, Settings};
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::EntryId;
use crew_base::message::{Block, Message, SharedMessage, StopReason};
use crew_base::model::{ModelErrorKind, ThinkingLevel};
use crew_base::time::Time;
use crew_testkit::fixtures;
use crew_testkit::session_play::{SessionPlay, custom};

/// A session after one exchange, and the entry of the first message.
fn exchanged() -> (SessionPlay, EntryId) {
    let mut play = SessionPlay::new(Settings::default());
    play.prompt("first");
    play.say("answer");
    let first = play.written().iter().find(|entry| is_user(entry)).expect("it was written");
    let first = first.id.clone();
    play.log();
    (play, first)
}

fn is_user(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::Message { message: Message::User(_) })
}

fn shared(text: &str) -> SharedMessage {
    Arc::new(Message::user_text(text, Time(1)))
}

/// Stands at `leaf` with one message there and one that is left.
fn branch(leaf: &str) -> Branch {
    Branch {
        leaf: Some(leaf.into()),
        draft: None,
        context: vec![(leaf.into(), shared("kept"))],
        thinking: ThinkingLevel::Off,
        left: vec![Left { message: shared("left behind"), details: None }],
    }
}

fn navigate(play: &mut SessionPlay, to: &str, summary: bool, label: Option<&str>) {
    let summary = summary.then(BranchWish::default);
    play.input(Input::Navigate { to: to.into(), summary, label: label.map(str::to_owned) });
}

fn last(play: &SessionPlay) -> &Entry {
    play.written().last().expect("something was written")
}

fn context(play: &SessionPlay) -> Vec<String> {
    let messages = play.agent.record().messages();
    messages.map(|message| crew_testkit::trace::message_line(message)).collect()
}

#[test]
fn the_leaf_moves_and_the_next_entry_follows_it() {
    // host.md 2.8.2, 2.4.1, 11.28.
    let (mut play, _) = exchanged();
    navigate(&mut play, "aaaa", false, None);
    assert!(play.agent.is_moving() && !play.agent.is_idle());
    play.branch(Ok(Branch { draft: Some("again".into()), ..branch("bbbb") }));
    let log = play.log();
    assert_eq!(log[0], "read branch to aaaa");
    assert!(log[1].contains("again") && log[1].contains("bbbb"), "{log:?}");
    assert_eq!(log[2..], ["idle Ended"]);
    assert_eq!(play.agent.record().leaf(), Some(&"bbbb".into()));
    assert_eq!(context(&play), ["user: kept"]);
    play.prompt("next");
    let system = play.written().iter().rev().nth(1).expect("the prompt");
    assert_eq!(system.parent_id, Some("bbbb".into()), "{system:?}");
    assert_eq!(play.asked(), ["user: kept", "user: next"]);
}

#[test]
fn before_everything_the_next_entry_is_a_root() {
    let (mut play, first) = exchanged();
    navigate(&mut play, first.as_str(), false, None);
    let start = Branch { leaf: None, context: Vec::new(), ..branch("unused") };
    play.branch(Ok(start));
    assert_eq!(play.agent.record().leaf(), None);
    let before = play.written().len();
    play.prompt("anew");
    assert_eq!(play.written()[before].parent_id, None);
    assert_eq!(play.asked(), ["user: anew"]);
}

#[test]
fn going_to_where_it_stands_does_nothing() {
    let (mut play, _) = exchanged();
    let leaf = play.agent.record().leaf().cloned().expect("a leaf");
    let before = context(&play);
    navigate(&mut play, leaf.as_str(), true, None);
    assert!(play.agent.is_idle());
    assert_eq!((play.agent.record().leaf(), context(&play)), (Some(&leaf), before));
}

#[test]
fn a_summary_stands_behind_the_place_that_was_gone_to() {
    // host.md 2.8.3: parent = new leaf, fromId = old leaf; the label is on it.
    let (mut play, _) = exchanged();
    let old = play.agent.record().leaf().cloned().expect("a leaf");
    play.input(Input::Navigate {
        to: "aaaa".into(),
        summary: Some(BranchWish { instructions: Some("ONLY NAMES".into()) }),
        label: Some("plan B".into()),
    });
    let mut left = branch("aaaa");
    let mut calling = crew_base::message::AssistantMessage {
        content: vec![Block::ToolCall(fixtures::call(
            "c",
            "edit",
            &serde_json::json!({"path": "src/a.rs"}),
        ))],
        ..assistant()
    };
    calling.stop_reason = StopReason::ToolUse;
    left.left.push(Left { message: Arc::new(Message::Assistant(calling)), details: None });
    play.branch(Ok(left));
    let asked = play.asked().join("\n");
    assert!(asked.contains("left behind") && asked.contains("ONLY NAMES"), "{asked}");
    assert!(!asked.contains("kept"), "{asked}");
    assert_eq!(play.agent.record().leaf(), Some(&old), "nothing has moved yet");
    play.say("NOTES");
    let [summary, label] = &play.written()[play.written().len() - 2..] else { panic!() };
    assert_eq!(summary.parent_id, Some("aaaa".into()));
    let EntryBody::BranchSummary { from_id, summary: text, details, usage, from_hook } =
        &summary.body
    else {
        panic!("{summary:?}")
    };
    assert_eq!(from_id, old.as_str());
    assert_eq!(text, "NOTES\n\n<modified-files>\nsrc/a.rs\n</modified-files>");
    let details = details.as_ref().map(|details| details.text().to_owned());
    let expected = r#"{"readFiles":[],"modifiedFiles":["src/a.rs"]}"#;
    assert_eq!((details.as_deref(), *from_hook), (Some(expected), Some(false)));
    assert!(usage.is_some());
    assert_eq!(label.parent_id.as_ref(), Some(&summary.id));
    let EntryBody::Label { target_id, label } = &label.body else { panic!("{label:?}") };
    assert_eq!((target_id, label.as_deref()), (&summary.id, Some("plan B")));
    assert_eq!(context(&play), ["user: kept", "summary"]);
    assert!(play.agent.is_idle());
}

fn assistant() -> crew_base::message::AssistantMessage {
    let mut play = SessionPlay::new(Settings::default());
    play.prompt("x");
    play.say("y");
    let newest = play.agent.record().messages().rev().find_map(|m| m.as_assistant().cloned());
    newest.expect("an answer")
}

#[test]
fn a_label_without_a_summary_is_on_the_chosen_entry() {
    let (mut play, _) = exchanged();
    navigate(&mut play, "aaaa", false, Some("here"));
    play.branch(Ok(branch("bbbb")));
    let label = last(&play);
    assert_eq!(label.parent_id, Some("bbbb".into()));
    let EntryBody::Label { target_id, label } = &label.body else { panic!("{label:?}") };
    assert_eq!((target_id.as_str(), label.as_deref()), ("aaaa", Some("here")));
}

#[test]
fn nothing_left_to_say_makes_no_summary() {
    let (mut play, _) = exchanged();
    let requests = play.requests();
    navigate(&mut play, "aaaa", true, None);
    play.branch(Ok(Branch { left: Vec::new(), ..branch("aaaa") }));
    assert_eq!((play.requests(), play.agent.is_idle()), (requests, true));
    assert_eq!(play.agent.record().leaf(), Some(&"aaaa".into()));
}

/// Nothing was written and the session stands where it stood.
fn unmoved(name: &str, spoil: impl Fn(&mut SessionPlay)) {
    let (mut play, _) = exchanged();
    let (leaf, before) = (play.agent.record().leaf().cloned(), context(&play));
    let entries = play.written().len();
    navigate(&mut play, "aaaa", true, Some("label"));
    spoil(&mut play);
    assert!(play.agent.is_idle(), "{name}");
    assert_eq!(play.agent.record().leaf().cloned(), leaf, "{name}");
    assert_eq!((context(&play), play.written().len()), (before, entries), "{name}");
    play.prompt("goes on");
    assert_eq!(play.asked().last().map(String::as_str), Some("user: goes on"), "{name}");
}

#[test]
fn a_move_that_fails_or_is_cancelled_changes_nothing() {
    // host.md 2.8.3, 3.5.1, 3.8.10.
    unmoved("unread", |play| play.branch(Err("no such entry".into())));
    unmoved("cancelled while reading", |play| play.input(Input::Abort));
    unmoved("cancelled while asking", |play| {
        play.branch(Ok(branch("aaaa")));
        play.input(Input::Abort);
        assert!(play.log().contains(&"cancel".to_owned()));
    });
    unmoved("read too late", |play| {
        play.input(Input::Abort);
        play.branch(Ok(branch("aaaa")));
    });
    unmoved("request refused", |play| {
        play.branch(Ok(branch("aaaa")));
        play.fail(ModelErrorKind::Credential, Some(401));
    });
    unmoved("tool called", |play| {
        play.branch(Ok(branch("aaaa")));
        play.call(&[("c", "bash")]);
    });
    unmoved("too large", |play| {
        let message = shared(&"x".repeat(4 * 100_000));
        play.branch(Ok(Branch { left: vec![Left { message, details: None }], ..branch("aaaa") }));
    });
}

#[test]
fn a_summary_that_cannot_be_written_takes_the_move_back() {
    // host.md 2.2.4.
    let (mut play, _) = exchanged();
    let (leaf, before) = (play.agent.record().leaf().cloned(), context(&play));
    navigate(&mut play, "aaaa", true, Some("label"));
    play.branch(Ok(branch("aaaa")));
    play.say("NOTES");
    play.write_fails(1);
    assert_eq!((play.agent.record().leaf().cloned(), context(&play)), (leaf, before));
}

#[test]
fn a_label_that_cannot_be_written_leaves_the_move() {
    let (mut play, _) = exchanged();
    navigate(&mut play, "aaaa", false, Some("label"));
    play.branch(Ok(branch("aaaa")));
    play.write_fails(0);
    assert_eq!(play.agent.record().leaf(), Some(&"aaaa".into()));
    assert_eq!(context(&play), ["user: kept"]);
}

#[test]
fn a_failed_summary_is_asked_for_again_within_the_budget() {
    // host.md 3.6.8.
    let settings = Settings {
        retry: RetrySettings { retries_max: 1, ..RetrySettings::default() },
        ..Settings::default()
    };
    let mut play = SessionPlay::new(settings);
    play.prompt("first");
    play.say("answer");
    navigate(&mut play, "aaaa", true, None);
    play.branch(Ok(branch("aaaa")));
    play.fail(ModelErrorKind::Server, Some(503));
    assert!(play.agent.is_moving());
    play.wait();
    let log = play.log().join("\n");
    assert!(log.contains("SummaryRetryScheduled") && log.contains("SummaryRetryStart"), "{log}");
    play.say("NOTES");
    assert!(play.log().join("\n").contains("SummaryRetryFinished"));
    assert_eq!(context(&play), ["user: kept", "summary"]);
}

#[test]
fn results_and_what_is_typed_meanwhile_wait_for_the_new_branch() {
    // host.md 3.4.6, 3.4.7, crew.md DEL-13.
    let (mut play, _) = exchanged();
    navigate(&mut play, "aaaa", true, None);
    play.branch(Ok(branch("aaaa")));
    play.results(&[1]);
    play.steer("typed");
    play.input(Input::Inject(custom("crew-user", "answered")));
    play.say("NOTES");
    assert_eq!(context(&play), ["user: kept", "summary", "crew-user: answered"]);
    assert!(play.agent.has_results());
    play.input(Input::Wake);
    let expected =
        ["user: kept", "summary", "crew-user: answered", "crew-result: result 1", "user: typed"];
    assert_eq!(play.asked(), expected);
}

#[test]
fn a_compaction_asked_for_meanwhile_cancels_the_move() {
    let (mut play, _) = exchanged();
    let leaf = play.agent.record().leaf().cloned();
    navigate(&mut play, "aaaa", true, None);
    play.branch(Ok(branch("aaaa")));
    play.input(Input::Compact { instructions: None });
    let log = play.log().join("\n");
    assert!(log.contains("Cancelled") && log.contains("CompactionStart"), "{log}");
    assert_eq!(play.agent.record().leaf().cloned(), leaf);
}

#[test]
fn the_level_in_force_is_recorded_on_a_branch_that_implies_another() {
    // host.md 2.4.3, 11.26.
    let check = |implied: ThinkingLevel, expected: usize| {
        let (mut play, _) = exchanged();
        navigate(&mut play, "aaaa", false, None);
        play.branch(Ok(Branch { thinking: implied, ..branch("aaaa") }));
        let before = play.written().len();
        play.prompt("next");
        play.say("x");
        play.prompt("and");
        let is_level = |entry: &&Entry| matches!(entry.body, EntryBody::ThinkingLevelChange { .. });
        assert_eq!(play.written()[before..].iter().filter(is_level).count(), expected);
    };
    check(ThinkingLevel::Off, 0);
    check(ThinkingLevel::High, 1);
}

#[test]
fn a_label_is_an_entry_and_an_empty_one_removes_it() {
    // host.md 2.4.5.
    let (play, first) = exchanged();
    let mut agent = play.agent;
    let mut ids = crew_base::id::Ids::new(9);
    for (text, expected) in [("plan B", Some("plan B")), ("", None)] {
        let control = Control::Label(first.clone(), text.to_owned());
        let effects = agent.control(Time(1), &mut ids, control);
        let Some(crew_agent::Effect::Append(entry)) = effects.first() else { panic!() };
        let EntryBody::Label { target_id, label } = &entry.body else { panic!("{entry:?}") };
        assert_eq!((target_id, label.as_deref()), (&first, expected));
    }
}
