//! Recovery from a context that was too long (`host.md` 3.7, 3.8.5).

use crew_agent::{CompactionReason, Input};
use crew_base::entry::EntryBody;
use crew_base::message::{Block, StopReason, Usage};
use crew_base::model::ModelErrorKind;
use crew_base::session::RunEnd;

use crate::world::{World, model, result, settings};

const OVERFLOW: CompactionReason = CompactionReason::Overflow;

fn asking() -> World {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.exchange("second question", &"y".repeat(200), 200);
    world.prompt("third question");
    world.updates.clear();
    world
}

fn summarise(world: &mut World) {
    while world.agent.is_compacting() {
        world.answer("s", 20);
    }
}

// host.md 3.8.5, 3.2.
#[test]
fn an_overflow_compacts_and_asks_again_once() {
    let mut world = asking();
    world.overflow();
    assert!(world.agent.is_compacting());
    assert_eq!(world.shape(), ["turn_end", "agent_end", "compaction_start"]);
    summarise(&mut world);
    assert_eq!(world.ends(), [(OVERFLOW, false, true, None)]);
    let context = world.context();
    assert!(context[0].starts_with('s'), "{context:?}");
    assert_eq!(context.last().map(String::as_str), Some("third question"));
    // The attempt is omitted before the compaction is written.
    let kinds: Vec<_> = world.log.iter().map(|entry| entry.body.kind()).collect();
    assert_eq!(kinds[kinds.len() - 2..], ["context_edit", "compaction"]);
    world.answer("done", 100);
    assert_eq!(world.settled.last(), Some(&RunEnd::Ended));
}

// host.md 11.57.
#[test]
fn a_second_overflow_for_the_same_message_is_an_error_and_no_loop() {
    let mut world = asking();
    world.overflow();
    summarise(&mut world);
    let requests = world.requests.len();
    world.overflow();
    assert!(world.agent.is_idle());
    assert_eq!(world.requests.len(), requests);
    let ends = world.ends();
    assert_eq!(ends.len(), 2);
    assert_eq!((ends[1].0, ends[1].1, ends[1].2), (OVERFLOW, false, false));
    assert!(ends[1].3.is_some());
    let newest = world.agent.record().messages().last().cloned().expect("the attempt");
    assert_eq!(newest.as_assistant().map(|a| a.stop_reason), Some(StopReason::Error));
    // The next message may recover again.
    world.prompt(&"z".repeat(400));
    world.overflow();
    assert!(world.agent.is_compacting());
}

// host.md 11.58.
#[test]
fn an_overflow_of_a_model_that_is_no_longer_in_use_compacts_nothing() {
    let mut world = asking();
    world.agent.use_model(model("larger", 100_000), world.agent.thinking());
    world.overflow();
    assert!(world.agent.is_idle());
    assert!(world.ends().is_empty());
}

#[test]
fn without_anything_to_compact_an_overflow_is_a_plain_error() {
    let mut world = World::new(settings(50));
    world.prompt("first question");
    world.overflow();
    assert!(world.agent.is_idle());
    assert!(world.ends().is_empty());
    assert!(!world.shape().contains(&"retry"));
    let edits = world.log.iter().filter(|entry| entry.body.kind() == "context_edit");
    assert_eq!(edits.count(), 0);
    let mut off = settings(50);
    off.compaction.enabled = false;
    let mut world = World::new(off);
    world.exchange("q", &"y".repeat(400), 100);
    world.prompt("q");
    world.overflow();
    assert!(world.agent.is_idle() && world.ends().is_empty());
}

// host.md 11.47.
#[test]
fn a_rate_limit_that_speaks_of_tokens_is_retried() {
    let mut world = asking();
    world.fail(ModelErrorKind::RateLimit, "429: too many tokens, rate limit");
    assert!(!world.agent.is_compacting());
    assert!(world.agent.deadline().is_some());
}

// host.md 3.8.7.
#[test]
fn an_input_that_is_itself_too_long_is_summarised() {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.prompt(&"z".repeat(400));
    world.overflow();
    assert!(world.asked().contains(&"z".repeat(400)));
    summarise(&mut world);
    let entry = world.compactions()[0];
    let EntryBody::Compaction { first_kept_entry_id, .. } = &entry.body else {
        panic!("{entry:?}")
    };
    assert_eq!(*first_kept_entry_id, entry.id);
    assert_eq!(world.context(), ["s"]);
    world.answer("done", 100);
    assert_eq!(world.context(), ["s", "done"]);
}

// host.md 3.7.4, 11.39.
#[test]
fn a_cut_answer_is_omitted_with_its_calls_and_results() {
    let mut world = asking();
    world.call(&["bash", "read"], 300, StopReason::Length);
    assert!(world.tools.is_empty());
    assert!(world.agent.is_compacting());
    summarise(&mut world);
    let edits = world.log.iter().filter(|entry| entry.body.kind() == "context_edit");
    assert_eq!(edits.count(), 3);
    assert_eq!(world.context().last().map(String::as_str), Some("third question"));
    // It is cut again: the error results are answered no more.
    world.call(&["bash"], 300, StopReason::Length);
    assert!(world.agent.is_idle());
    assert_eq!(world.ends().len(), 2);
}

#[test]
fn an_answer_cut_at_the_models_own_limit_is_kept() {
    let mut world = asking();
    let usage = Usage { output: 100, total_tokens: 300, ..Usage::default() };
    world.finish(vec![Block::text("long")], usage, StopReason::Length);
    assert!(world.agent.is_idle());
    assert_eq!(world.context().last().map(String::as_str), Some("long"));
    // With calls the model gets the chance to make them again (3.3.7).
    let mut world = asking();
    let usage = Usage { output: 100, total_tokens: 300, ..Usage::default() };
    let requests = world.requests.len();
    world.call(&["bash"], 300, StopReason::ToolUse);
    world.tools_end("r");
    world.finish(vec![Block::text("long")], usage, StopReason::Length);
    assert_eq!(world.requests.len(), requests + 1);
}

// host.md 3.7.3, 3.8.5.
#[test]
fn a_silent_overflow_compacts_without_asking_again() {
    let mut world = asking();
    let usage = Usage { input: 1200, output: 5, total_tokens: 1205, ..Usage::default() };
    world.finish(vec![Block::text("fine")], usage, StopReason::Stop);
    summarise(&mut world);
    assert_eq!(world.ends(), [(OVERFLOW, false, false, None)]);
    assert!(world.agent.is_idle());
    assert_eq!(world.context().last().map(String::as_str), Some("fine"));
}

#[test]
fn a_whole_answer_allows_another_recovery() {
    let mut world = asking();
    world.overflow();
    summarise(&mut world);
    world.call(&["bash"], 300, StopReason::ToolUse);
    world.tools_end(&"r".repeat(400));
    world.overflow();
    assert!(world.agent.is_compacting());
}

#[test]
fn a_failed_summary_ends_the_run_and_what_waits_starts_another() {
    let mut world = asking();
    world.overflow();
    world.feed(Input::Results(vec![result(1)]));
    world.fail(ModelErrorKind::Provider, "400: no");
    assert_eq!(world.ends(), [(OVERFLOW, false, false, Some("400: no"))]);
    assert_eq!(world.entered.len(), 1);
    assert!(!world.agent.is_idle());
    let edits = world.log.iter().filter(|entry| entry.body.kind() == "context_edit");
    assert_eq!(edits.count(), 0, "nothing is stored of what failed");
}

#[test]
fn an_abort_during_the_recovery_settles_as_aborted() {
    let mut world = asking();
    world.overflow();
    world.feed(Input::Abort);
    assert_eq!(world.ends(), [(OVERFLOW, true, false, None)]);
    assert_eq!(world.settled.last(), Some(&RunEnd::Aborted));
    assert_eq!(world.shape().last(), Some(&"aborted"));
}

#[test]
fn a_retry_counts_as_ended_when_the_recovery_after_it_fails() {
    let mut world = asking();
    world.fail(ModelErrorKind::Overloaded, "529: overloaded");
    world.wait();
    world.overflow();
    world.fail(ModelErrorKind::Provider, "400: no");
    let shape = world.shape();
    assert_eq!(shape[shape.len() - 3..], ["compaction_end", "retry_end", "settled"]);
}
