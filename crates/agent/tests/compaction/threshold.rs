//! Compaction by the threshold (`host.md` 3.8.1 to 3.8.3).

use crew_agent::{CompactionReason, Effect, Input, QueueMode};
use crew_base::id::EntryId;
use crew_base::message::{CompactionSummaryMessage, Message, StopReason};
use crew_base::model::ModelErrorKind;
use crew_base::session::RunEnd;
use crew_base::time::Time;

use crate::past_threshold;
use crate::world::{WINDOW, World, custom, model, result, settings};

const DONE: (CompactionReason, bool, bool, Option<&str>) =
    (CompactionReason::Threshold, false, false, None);

#[test]
fn after_a_run_the_context_is_compacted_before_the_run_settles() {
    let mut world = past_threshold();
    assert!(world.agent.is_compacting());
    assert_eq!(world.settled.len(), 1);
    assert!(world.asked().contains("first question"), "{}", world.asked());
    assert!(!world.asked().contains(&"y".repeat(200)));
    world.answer("the history", 20);
    // The cut splits the second turn: its beginning is a part of its own.
    assert!(world.asked().contains("second question"));
    world.answer("the turn", 20);
    assert!(world.agent.is_idle());
    assert_eq!(world.settled, [RunEnd::Ended, RunEnd::Ended]);
    assert_eq!(world.ends(), [DONE]);
    let shape = world.shape();
    assert_eq!(
        shape[shape.len() - 4..],
        ["agent_end", "compaction_start", "compaction_end", "settled"]
    );
    let context = world.context();
    assert_eq!(context.len(), 2, "{context:?}");
    assert!(context[0].starts_with("the history") && context[0].contains("the turn"));
}

// host.md 11.52.
#[test]
fn usage_from_before_a_compaction_does_not_trigger_another() {
    let mut world = past_threshold();
    world.answer("h", 20);
    world.answer("t", 20);
    assert_eq!(world.agent.context_tokens(), None);
    world.prompt("third question");
    assert!(!world.agent.is_compacting());
    world.answer("short", 120);
    assert!(world.agent.is_idle());
    assert_eq!(world.agent.context_tokens(), Some(120));
    assert_eq!(world.ends(), [DONE]);
}

// host.md 11.55, 3.8.2.
#[test]
fn one_huge_result_compacts_before_the_next_request_of_the_same_run() {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.prompt("look");
    world.call(&["read", "bash"], 200, StopReason::ToolUse);
    world.updates.clear();
    world.tools_end(&"r".repeat(2600));
    assert!(world.agent.is_compacting());
    world.answer("h", 20);
    world.answer("t", 20);
    assert_eq!(world.shape(), ["turn_end", "compaction_start", "compaction_end", "turn_start"],);
    // host.md 11.56: the results alone exceed what is kept; their call stays.
    let context = world.context();
    assert_eq!(context[1], "[c1][c2]");
    assert_eq!(context.len(), 4);
    world.answer("done", 300);
    assert_eq!(world.shape().last(), Some(&"settled"));
}

#[test]
fn before_the_next_turn_steering_does_not_enter_early() {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.prompt("look");
    world.call(&["bash"], 900, StopReason::ToolUse);
    world.steer("one");
    world.steer("two");
    world.tools_end(&"r".repeat(200));
    assert!(world.agent.is_compacting());
    assert!(!world.context().contains(&"one".to_owned()));
    assert_eq!(world.agent.queue_modes().0, QueueMode::OneAtATime);
    world.answer("h", 20);
    world.answer("t", 20);
    // host.md 11.31: exactly one for each turn.
    assert_eq!(world.context().last().map(String::as_str), Some("one"));
    world.answer("yes", 100);
    assert_eq!(world.context().last().map(String::as_str), Some("two"));
}

// host.md 11.53.
#[test]
fn failures_leave_the_threshold_to_the_last_good_answer() {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.exchange("second question", &"y".repeat(200), 700);
    world.prompt(&"z".repeat(600));
    for _ in 0..3 {
        world.fail(ModelErrorKind::Overloaded, "529: overloaded");
        world.wait();
    }
    world.fail(ModelErrorKind::Overloaded, "529: overloaded");
    // 700 counted, and 150 for the prompt behind them.
    assert!(world.agent.is_compacting(), "{:?}", world.shape());
}

// host.md 11.54.
#[test]
fn without_any_usage_the_estimate_decides() {
    let mut world = World::new(settings(50));
    world.exchange(&"a".repeat(1600), "short", 0);
    assert!(world.agent.is_idle());
    world.exchange(&"b".repeat(1600), "short", 0);
    assert!(world.agent.is_compacting());
}

#[test]
fn switched_off_or_without_a_window_nothing_is_compacted() {
    let mut off = settings(50);
    off.compaction.enabled = false;
    let mut world = World::new(off);
    world.exchange("q", "a", 100);
    world.exchange("q", &"y".repeat(200), 5000);
    assert!(world.agent.is_idle());
    let mut world = World::new(settings(50));
    world.agent.use_model(model("m", 0), world.agent.thinking());
    world.exchange("q", "a", 100);
    world.exchange("q", &"y".repeat(200), 5000);
    assert!(world.agent.is_idle());
    assert!(world.ends().is_empty());
}

// host.md 3.8.9: having nothing to compact is no event of an automatic one.
#[test]
fn a_context_that_is_all_recent_is_left_alone_silently() {
    let mut world = World::new(settings(100_000));
    world.exchange("q", "a", 5000);
    assert!(world.agent.is_idle());
    assert!(world.ends().is_empty());
}

// host.md 11.33, 3.4.6.
#[test]
fn a_follow_up_queued_during_the_compaction_is_delivered_without_the_person() {
    let mut world = past_threshold();
    let message = Message::user_text("and then?", Time(0));
    world.feed(Input::FollowUp(message));
    world.answer("h", 20);
    world.answer("t", 20);
    assert_eq!(world.context().last().map(String::as_str), Some("and then?"));
    world.answer("that", 100);
    assert_eq!(world.settled.len(), 2, "one session run for each prompt");
}

// host.md 3.4.6, crew.md DEL-5.
#[test]
fn results_that_arrive_during_the_compaction_start_a_run_when_it_has_ended() {
    let mut world = past_threshold();
    world.feed(Input::Results(vec![result(1), result(2)]));
    assert!(world.entered.is_empty());
    world.answer("h", 20);
    world.answer("t", 20);
    assert_eq!(world.entered.len(), 2);
    assert!(world.asked().contains("result 2"));
}

// host.md 3.4.7, 3.4.8.
#[test]
fn what_is_held_during_the_compaction_enters_behind_it() {
    let mut world = past_threshold();
    world.feed(Input::Inject(custom("crew-user", "noted")));
    world.feed(Input::InjectAfterRun(Message::user_text("ran ls", Time(0))));
    assert!(!world.context().contains(&"noted".to_owned()));
    world.answer("h", 20);
    world.answer("t", 20);
    let context = world.context();
    assert_eq!(context[context.len() - 2..], ["noted", "ran ls"]);
    assert!(world.agent.is_idle());
}

// product.md P-14h, crew.md RES-11.
#[test]
fn a_childs_context_is_compacted_before_its_next_prompt_and_never_after_its_report() {
    let mut world = World::new(settings(50));
    world.agent.become_child(true);
    world.exchange("assignment", "looking", 100);
    world.exchange("go on", &"y".repeat(200), 900);
    assert!(world.agent.is_idle(), "the report is not delayed");
    world.prompt("one more thing");
    assert!(world.agent.is_compacting());
    assert!(!world.context().contains(&"one more thing".to_owned()));
    world.answer("h", 20);
    world.answer("t", 20);
    assert_eq!(world.context().last().map(String::as_str), Some("one more thing"));
    let shape = world.shape();
    assert_eq!(
        shape[shape.len() - 4..],
        ["compaction_start", "compaction_end", "agent_start", "turn_start"]
    );
}

// crew.md CAT-18, CTX-31.
#[test]
fn the_definition_says_whether_a_child_compacts() {
    let mut off = settings(50);
    off.compaction.enabled = false;
    for (compaction, expected) in [(true, true), (false, false)] {
        let mut world = World::new(off.clone());
        world.agent.become_child(compaction);
        world.exchange("assignment", "looking", 100);
        world.exchange("go on", &"y".repeat(200), 900);
        world.prompt("next");
        assert_eq!(world.agent.is_compacting(), expected);
    }
}

/// A session that is due and whose compaction comes before its prompt.
fn due_before_prompt() -> World {
    let mut world = past_threshold();
    world.feed(Input::Abort);
    // A whole answer forgets that the compaction was cancelled.
    world.agent.become_child(true);
    world.exchange("third question", "third answer", 950);
    world
}

// host.md 3.5.1: effective from the moment a prompt is accepted.
#[test]
fn an_abort_before_the_prompt_entered_records_it_without_a_request() {
    let mut world = due_before_prompt();
    let requests = world.requests.len();
    world.prompt("fourth question");
    assert!(world.agent.is_compacting());
    world.feed(Input::Abort);
    assert_eq!(world.requests.len(), requests + 1, "only the summary was asked for");
    assert_eq!(world.cancelled.last(), Some(&world.run()));
    assert_eq!(world.settled.last(), Some(&RunEnd::Aborted));
    let newest: Vec<_> = world.agent.record().messages().rev().take(2).cloned().collect();
    let answer = newest[0].as_assistant().expect("an answer stands last");
    assert_eq!(answer.stop_reason, StopReason::Aborted);
    assert!(matches!(newest[1].as_ref(), Message::User(_)));
    assert!(world.compactions().is_empty());
}

// product.md P-14c.
#[test]
fn results_that_wait_for_the_compaction_can_be_taken_back() {
    let mut world = due_before_prompt();
    world.feed(Input::Results(vec![result(1), result(2)]));
    assert!(world.agent.is_compacting());
    assert!(world.entered.is_empty());
    assert_eq!(world.agent.take_results(None).len(), 2);
    world.feed(Input::Abort);
    assert!(world.agent.is_idle());
    assert!(world.entered.is_empty());
    assert_eq!(world.settled.last(), Some(&RunEnd::Aborted));
}

#[test]
fn results_enter_together_once_the_compaction_before_their_run_ended() {
    let mut world = due_before_prompt();
    world.feed(Input::Results(vec![result(1)]));
    world.feed(Input::Results(vec![result(2)]));
    while world.agent.is_compacting() {
        world.answer("s", 20);
    }
    assert_eq!(world.entered.len(), 2);
    assert!(world.asked().contains("result 1") && world.asked().contains("result 2"));
}

#[test]
fn a_failed_summary_does_not_stop_the_prompt_and_is_not_tried_again_at_once() {
    let mut world = due_before_prompt();
    world.prompt("fourth question");
    world.fail(ModelErrorKind::Provider, "400: no such thing");
    assert!(!world.agent.is_compacting());
    assert!(world.asked().contains("fourth question"));
    let (reason, aborted, retry, error) = *world.ends().last().expect("an end");
    assert_eq!((reason, aborted, retry), (CompactionReason::Threshold, false, false));
    assert_eq!(error, Some("400: no such thing"));
    assert!(world.compactions().is_empty());
}

// crew.md CTX-11, CTX-27.
#[test]
fn a_snapshot_that_was_compacted_away_is_no_longer_the_newest() {
    let mut world = World::new(settings(50));
    world.status = Some(custom("crew-status", "running"));
    world.exchange("first question", "first answer", 100);
    world.status = None;
    assert!(world.agent.record().newest_custom("crew-status").is_some());
    world.exchange("second question", &"y".repeat(200), 900);
    while world.agent.is_compacting() {
        world.answer("s", 20);
    }
    assert!(world.agent.record().newest_custom("crew-status").is_none());
}

// host.md 2.2.4.
#[test]
fn a_compaction_that_could_not_be_written_is_undone() {
    let mut world = past_threshold();
    let before = world.context();
    world.answer("h", 20);
    world.answer("t", 20);
    assert_ne!(world.context(), before);
    let entry = world.compactions()[0].id.clone();
    let at = world.log.iter().position(|logged| logged.id == entry).expect("it was logged");
    world.log.truncate(at);
    world.feed(Input::AppendFailed { entry, error: "disk full".into() });
    assert_eq!(world.context(), before);
    assert_eq!(world.agent.context_tokens(), Some(900));
    // It is due again at the next prompt.
    world.prompt("third question");
    assert!(world.agent.is_compacting());
}

#[test]
fn an_entry_that_could_not_be_written_ends_the_compaction_too() {
    let mut world = past_threshold();
    let entry = world.log.last().expect("something was written").id.clone();
    world.log.pop();
    world.feed(Input::AppendFailed { entry, error: "disk full".into() });
    assert!(world.agent.is_idle());
    assert_eq!(world.cancelled.len(), 1);
    assert_eq!(world.settled.last(), Some(&RunEnd::Failed("disk full".into())));
    assert_eq!(world.ends()[0].3, Some("disk full"));
}

// host.md 3.6.8.
#[test]
fn a_summary_request_is_tried_again_with_the_budget_of_all_requests() {
    let mut world = past_threshold();
    for attempt in 1..=3 {
        world.fail(ModelErrorKind::Overloaded, "529: overloaded");
        assert!(world.agent.is_compacting(), "attempt {attempt}");
        world.wait();
    }
    world.fail(ModelErrorKind::Overloaded, "529: overloaded");
    assert!(world.agent.is_idle());
    let again = world.shape().iter().filter(|word| **word == "summary_again").count();
    assert_eq!(again, 3);
    assert_eq!(world.ends()[0].3, Some("529: overloaded"));
    assert_eq!(
        world.shape()[world.shape().len() - 3..],
        ["summary_finished", "compaction_end", "settled"]
    );

    let mut world = past_threshold();
    world.fail(ModelErrorKind::Overloaded, "529: overloaded");
    world.feed(Input::Abort);
    assert!(world.agent.is_idle() && world.agent.deadline().is_none());
    assert_eq!(world.ends(), [(CompactionReason::Threshold, true, false, None)]);
}

/// A session found on disk whose context begins with a summary.
fn resumed(answered_at: u64) -> World {
    let summary = CompactionSummaryMessage {
        summary: "OLD\n\n<read-files>\nold.rs\n</read-files>".into(),
        tokens_before: 5,
        timestamp: Time(50),
    };
    let mut answer = World::new(settings(50));
    answer.exchange("q", &"y".repeat(400), 900);
    let newest = answer.agent.record().newest_custom("none");
    assert!(newest.is_none());
    let stored = answer.agent.record().messages().last().expect("an answer").as_ref().clone();
    let Message::Assistant(mut stored) = stored else { panic!("an answer") };
    stored.timestamp = Time(answered_at);
    let loaded = vec![
        (EntryId::new("c"), Message::CompactionSummary(summary)),
        (EntryId::new("k"), Message::user_text("kept", Time(40))),
        (EntryId::new("l"), Message::Assistant(stored)),
    ];
    World::over(loaded, settings(50))
}

#[test]
fn a_resumed_context_knows_what_is_newer_than_its_compaction() {
    // host.md 3.8.3.
    let mut old = resumed(45);
    assert_eq!(old.agent.context_tokens(), None);
    old.prompt("go on");
    assert!(!old.agent.is_compacting());
    let mut new = resumed(60);
    assert_eq!(new.agent.context_tokens(), Some(900));
    new.prompt("go on");
    assert!(new.agent.is_compacting());
    assert!(new.asked().contains("kept"));
}

// host.md 3.8.8, 3.8.13.
#[test]
fn the_previous_summary_goes_into_the_next_one() {
    let mut world = resumed(60);
    world.prompt("go on");
    // Only the beginning of a turn is summarised: the old summary stands in.
    assert!(!world.asked().contains("OLD"));
    world.answer("new part", 20);
    let summary = world.last_result().summary;
    assert!(summary.starts_with("OLD\n"), "{summary}");
    assert!(summary.contains("new part"));
    assert!(summary.ends_with("<read-files>\nold.rs\n</read-files>"), "{summary}");
    assert_eq!(summary.matches("<read-files>").count(), 1);
}

#[test]
fn a_late_event_of_a_cancelled_summary_changes_nothing() {
    let mut world = past_threshold();
    world.feed(Input::Abort);
    let settled = world.settled.len();
    world.answer("late", 20);
    assert!(world.compactions().is_empty());
    assert_eq!(world.settled.len(), settled);
    let effects = world.agent.step(world.now, &mut world.ids, Input::Tick);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::StartModel { .. })));
    assert_eq!(WINDOW, 1000);
}

// host.md 1.3.8: resolution per value, and a bad value is an error at use.
#[test]
fn sizes_of_the_model_in_use_win_and_bad_ones_compact_nothing_unasked() {
    use crew_agent::{CompactionOverrides, CompactionSizes};
    let with = |models: &[(&str, Result<CompactionSizes, String>)], error: Option<&str>| {
        let mut settings = settings(50);
        let models = models.iter().map(|(name, sizes)| ((*name).to_owned(), sizes.clone()));
        settings.compaction_overrides =
            CompactionOverrides { models: models.collect(), error: error.map(str::to_owned) };
        let mut world = World::new(settings);
        world.exchange("first question", "first answer", 100);
        world.exchange("second question", &"y".repeat(200), 700);
        world
    };
    let sizes = |reserve_tokens| Ok(CompactionSizes { reserve_tokens, keep_recent_tokens: 50 });
    // The window is 1000: 700 are past it only with this reserve.
    assert!(!with(&[], None).agent.is_compacting());
    assert!(with(&[("p/m", sizes(400))], None).agent.is_compacting());
    assert!(!with(&[("p/other", sizes(400))], None).agent.is_compacting());
    let mut bad = with(&[("p/m", Err("no number".into()))], None);
    assert!(!bad.agent.is_compacting());
    bad.compact();
    assert_eq!(bad.ends()[0].3, Some("no number"));
    let mut bad = with(&[("p/other", sizes(400))], Some("no size"));
    bad.compact();
    assert_eq!(bad.ends()[0].3, Some("no size"));
    assert!(with(&[("p/m", sizes(400))], Some("no size")).agent.is_compacting());
}
