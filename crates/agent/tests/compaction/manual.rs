//! Compaction by hand (`host.md` 3.8.16, 7.3.6).

use crew_agent::{CompactionReason, Input};
use crew_base::message::{Message, StopReason, Usage};
use crew_base::model::ModelErrorKind;
use crew_base::session::RunEnd;
use crew_base::time::Time;

use crate::world::{World, result, settings};

const MANUAL: CompactionReason = CompactionReason::Manual;

fn two_exchanges() -> World {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.exchange("second question", &"y".repeat(200), 200);
    world
}

// host.md 11.60, 3.8.10.
#[test]
fn the_focus_is_used_in_both_parts_of_a_split_turn() {
    let mut world = two_exchanges();
    world.feed(Input::Compact { instructions: Some("LOOK AT THIS".into()) });
    assert!(world.asked().contains("LOOK AT THIS") && world.asked().contains("first question"));
    world.answer("h", 20);
    assert!(world.asked().contains("LOOK AT THIS") && world.asked().contains("second question"));
    world.answer("t", 20);
    assert_eq!(world.ends(), [(MANUAL, false, false, None)]);
    // Outside of a session run there is no run to settle.
    assert_eq!(world.shape().iter().filter(|word| **word == "settled").count(), 2);
    assert_eq!(world.settled.len(), 3);
    assert_eq!(world.last_result().usage.map(|usage| usage.total_tokens), Some(40));
}

#[test]
fn nothing_to_compact_has_its_fixed_texts() {
    // host.md 7.3.6, 3.8.9.
    let mut world = World::new(settings(50));
    world.compact();
    let small = "Nothing to compact (session too small)";
    assert_eq!(world.ends(), [(MANUAL, false, false, Some(small))]);
    world.exchange("q", "a", 10);
    world.compact();
    assert_eq!(world.ends()[1], (MANUAL, false, false, Some(small)));
    let mut world = two_exchanges();
    world.compact();
    world.answer("h", 20);
    world.answer("t", 20);
    world.compact();
    assert_eq!(world.ends()[1], (MANUAL, false, false, Some("Already compacted")));
    assert!(world.agent.is_idle());
    assert_eq!(world.compactions().len(), 1);
}

// host.md 11.61.
#[test]
fn an_abort_cancels_it_without_an_entry_and_leaves_the_session_idle() {
    let mut world = two_exchanges();
    world.compact();
    let run = world.run();
    world.feed(Input::Abort);
    assert_eq!(world.cancelled, [run]);
    assert_eq!(world.ends(), [(MANUAL, true, false, None)]);
    assert!(world.agent.is_idle() && world.compactions().is_empty());
    assert_eq!(world.settled.last(), Some(&RunEnd::Aborted));
}

// host.md 11.59, 3.8.10.
#[test]
fn a_summary_that_is_cut_or_calls_a_tool_or_says_nothing_is_not_stored() {
    let check = |spoil: fn(&mut World)| {
        let mut world = two_exchanges();
        world.compact();
        let before = world.context();
        spoil(&mut world);
        assert!(world.agent.is_idle());
        assert!(world.compactions().is_empty());
        assert_eq!(world.context(), before);
        let (reason, aborted, _, error) = world.ends()[0];
        assert_eq!((reason, aborted), (MANUAL, false));
        assert!(error.is_some());
    };
    check(|world| {
        let text = vec![crew_base::message::Block::text("cut")];
        world.finish(text, Usage::default(), StopReason::Length);
    });
    check(|world| world.call(&["read"], 10, StopReason::ToolUse));
    check(|world| {
        let thought = crew_base::message::ThinkingBlock {
            thinking: "only this".into(),
            ..Default::default()
        };
        let blocks = vec![crew_base::message::Block::Thinking(thought)];
        world.finish(blocks, Usage::default(), StopReason::Stop);
    });
    check(|world| world.fail(ModelErrorKind::Credential, "401: no"));
    // The second part fails after the first was there.
    check(|world| {
        world.answer("h", 20);
        world.call(&["read"], 10, StopReason::ToolUse);
    });
}

#[test]
fn it_aborts_the_request_under_way_and_does_not_continue_the_turn() {
    let mut world = two_exchanges();
    world.prompt("third question");
    let run = world.run();
    world.compact();
    assert_eq!(world.cancelled, [run]);
    assert!(world.agent.is_compacting());
    assert_eq!(world.shape().last(), Some(&"compaction_start"));
    assert_eq!(world.shape()[world.shape().len() - 2], "aborted");
    while world.agent.is_compacting() {
        world.answer("s", 20);
    }
    assert!(world.agent.is_idle());
    assert_eq!(world.compactions().len(), 1);
}

#[test]
fn it_waits_for_the_results_of_the_tools_it_stops() {
    let mut world = two_exchanges();
    world.prompt("third question");
    world.call(&["bash", "read"], 300, StopReason::ToolUse);
    world.compact();
    assert!(!world.agent.is_compacting());
    assert_eq!(world.cancelled.len(), 2);
    world.tools_end("stopped");
    assert!(world.agent.is_compacting());
    // An abort in between takes the wish back, with one answer to it.
    let mut world = two_exchanges();
    world.prompt("third question");
    world.call(&["bash"], 300, StopReason::ToolUse);
    world.compact();
    world.feed(Input::Abort);
    assert_eq!(world.ends(), [(MANUAL, true, false, None)]);
    world.tools_end("stopped");
    assert!(world.agent.is_idle());
}

#[test]
fn it_takes_the_place_of_an_automatic_one() {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.exchange("second question", &"y".repeat(200), 900);
    let threshold = world.run();
    world.compact();
    assert_eq!(world.cancelled, [threshold]);
    while world.agent.is_compacting() {
        world.answer("s", 20);
    }
    let ends = world.ends();
    assert_eq!(
        ends,
        [(CompactionReason::Threshold, true, false, None), (MANUAL, false, false, None)]
    );
    assert_eq!(world.compactions().len(), 1);
}

#[test]
fn during_a_wait_for_a_retry_it_ends_the_wait() {
    let mut world = two_exchanges();
    world.prompt("third question");
    world.fail(ModelErrorKind::Overloaded, "529: overloaded");
    world.compact();
    assert!(world.agent.is_compacting());
    assert!(world.agent.deadline().is_none());
}

#[test]
fn results_wait_for_it_and_are_woken_by_its_end() {
    let mut world = two_exchanges();
    world.compact();
    world.feed(Input::Results(vec![result(1)]));
    world.feed(Input::Wake);
    assert!(world.entered.is_empty());
    world.answer("h", 20);
    world.answer("t", 20);
    assert!(world.agent.has_results());
    // The engine wakes an attached owner that came to rest.
    world.feed(Input::Wake);
    assert_eq!(world.entered.len(), 1);
}

#[test]
fn typed_messages_wait_for_the_next_run() {
    // host.md 7.3.4.
    let mut world = two_exchanges();
    world.compact();
    world.steer("later");
    world.answer("h", 20);
    world.answer("t", 20);
    assert!(world.agent.is_idle());
    world.prompt("third question");
    assert!(world.asked().contains("later"));
}

#[test]
fn entries_without_context_before_the_cut_stay_with_it() {
    // host.md 3.8.6.
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    let body = crew_base::entry::EntryBody::SessionInfo { name: Some("n".into()) };
    world.feed(Input::Note { body, delivery: None });
    let noted = world.log.last().expect("the note").id.clone();
    let long = Message::user_text("z".repeat(400), Time(0));
    world.feed(Input::Prompt(vec![long]));
    world.answer("a", 200);
    world.compact();
    world.answer("h", 20);
    assert_eq!(world.last_result().first_kept_entry_id, noted);
    assert_eq!(world.context().len(), 3);
}
