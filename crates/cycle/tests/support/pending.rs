//! Budget and barrier of a `task` child with a scripted session and a double of
//! the job manager (`task.md` 6.3, 7).

use crew_base::id::RunId;
use crew_base::json::Raw;
use crew_base::session::RunEnd;
use crew_cycle::budget::Budget;
use crew_cycle::yielded::Yields;
use crew_cycle::{AbortKind, Act, Contract, Limits, Outcome};
use serde_json::json;

use crate::support::{Child, task};

fn budget(requests: u32) -> Limits {
    Limits { budget: Budget::new(Some(requests), true), ..Limits::default() }
}

fn aborted(kind: AbortKind, reason: &str) -> Outcome {
    Outcome::Aborted { kind, reason: reason.to_owned() }
}

// EXEC-15 to EXEC-17; task.md 12 rows 34, 35.
#[test]
fn the_budget_gives_notice_stops_and_forces_one_reminder() {
    let mut child = task(budget(4));
    (0..3).for_each(|_| child.work());
    child.answer("", &[("b", "bash")], "toolUse");
    child.result("b", "bash", false);
    assert_eq!(child.boundary(), 1, "the notice");
    child.work();
    child.work();
    assert_eq!(child.seen, ["first", "stop", "reminder 3!"]);
    child.yields(json!({"data": 1}));
    assert_eq!(child.ended(), &Outcome::Accepted);
}

#[test]
fn a_child_that_ignores_the_stop_is_aborted() {
    let mut text = task(budget(4));
    (0..6).for_each(|_| text.work());
    text.say();
    assert_eq!(
        text.ended(),
        &aborted(AbortKind::Budget, "request budget used up (7 requests, budget 4)")
    );
    let mut work = task(budget(4));
    (0..11).for_each(|_| work.work());
    let reason =
        "request budget used up (11 requests, budget 4); no yield after the forced wrap-up";
    assert_eq!(work.ended(), &aborted(AbortKind::Budget, reason));
}

// EXEC-18.
#[test]
fn a_yield_at_the_threshold_counts_before_the_budget() {
    let mut child = task(budget(2));
    child.work();
    child.work();
    child.yields(json!({"data": 1}));
    assert_eq!(child.ended(), &Outcome::Accepted);
    assert_eq!(child.driver.requests(), 3);
    // Refused, the check is made afterwards.
    let mut child = task(budget(2));
    child.work();
    child.work();
    child.yields(json!({}));
    assert_eq!(child.seen, ["first", "stop", "reminder 3!"]);
}

// BARRIER-3, BARRIER-4, BARRIER-7; task.md 12 rows 40, 41.
#[test]
fn a_yield_waits_for_jobs_and_is_renewed_after_their_result() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "make");
    child.yields(json!({"data": "first"}));
    assert_eq!(child.seen, ["first", "stop", "notice"]);
    let notice = &child.prompts.last().unwrap().messages[0].text;
    assert!(notice.contains("j1") && notice.contains("make"), "{notice}");
    child.say();
    assert_eq!(child.seen.len(), 3, "nothing until the job ends");
    child.job_ends("j1");
    assert_eq!(child.seen.last().map(String::as_str), Some("results"));
    assert!(!child.driver.contract().is_accepted());
    child.yields(json!({"data": "second"}));
    assert_eq!(child.ended(), &Outcome::Accepted);
    assert_eq!(child.driver.contract().items().len(), 2);
}

// BARRIER-8, EXEC-13; task.md 12 rows 42, 88.
#[test]
fn a_stale_yield_gets_a_full_ladder_and_then_fails() {
    let mut child = task(Limits::default());
    child.say();
    child.say();
    child.driver.job_started("j1", "make");
    child.yields(json!({"data": "first"}));
    child.say();
    child.job_ends("j1");
    (0..4).for_each(|_| child.say());
    assert_eq!(child.seen[5..], ["results", "reminder 1", "reminder 2", "reminder 3!"]);
    assert_eq!(child.ended(), &Outcome::Stale);
}

// BARRIER-5, EXEC-11; task.md 12 row 43.
#[test]
fn an_idle_child_with_a_job_is_not_reminded() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "make");
    child.say();
    assert_eq!(child.seen, ["first"]);
    child.job_ends("j1");
    assert_eq!(child.seen, ["first", "results"]);
    child.yields(json!({"data": 1}));
    assert_eq!(child.ended(), &Outcome::Accepted);
}

// BARRIER-10; task.md 12 row 91.
#[test]
fn a_model_error_settles_nothing() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "make");
    child.fail();
    assert!(matches!(child.ended(), Outcome::ModelError { .. }));
}

// task.md 12 row 61.
#[test]
fn a_model_error_stands_beside_an_accepted_yield() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "make");
    child.yields(json!({"data": 1}));
    child.fail();
    child.job_ends("j1");
    child.fail();
    assert!(matches!(child.ended(), Outcome::ModelError { .. }));
    assert_eq!(child.driver.contract().items().len(), 1);
}

// BARRIER-1; task.md 12 row 44.
#[test]
fn a_waited_for_job_holds_nothing_up() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "make");
    assert!(child.driver.wait(RunId(7), &Raw::empty_object()).is_none());
    let answers = child.job_ends("j1");
    assert_eq!(answers[0].0, RunId(7));
    child.yields(json!({"data": 1}));
    assert_eq!(child.seen, ["first", "stop"]);
    assert_eq!(child.ended(), &Outcome::Accepted);
}

// OBS-8: between a turn's results and the next request.
#[test]
fn a_result_enters_a_running_turn_at_its_boundary() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "make");
    child.job_ends("j1");
    child.answer("", &[("b", "bash")], "toolUse");
    child.result("b", "bash", false);
    assert_eq!(child.boundary(), 1);
    child.yields(json!({"data": 1}));
    assert_eq!(child.ended(), &Outcome::Accepted, "it was seen before the yield");
}

// BARRIER-7, OP-20; task.md 12 row 89.
#[test]
fn each_late_result_needs_a_newer_yield_and_one_notice_is_enough() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "one");
    child.driver.job_started("j2", "two");
    child.yields(json!({"data": 1}));
    child.say();
    child.job_ends("j1");
    child.yields(json!({"data": 2}));
    assert_eq!(child.seen.iter().filter(|act| *act == "notice").count(), 1);
    child.job_ends("j2");
    child.yields(json!({"data": 3}));
    assert_eq!(child.ended(), &Outcome::Accepted);
}

// BARRIER-7; task.md 12 row 90.
#[test]
fn a_result_after_the_signal_changes_nothing() {
    let mut child = task(Limits { runtime_ms: Some(5), ..Limits::default() });
    child.driver.job_started("j1", "one");
    child.yields(json!({"data": 1}));
    child.wait(5);
    assert!(child.driver.boundary().stops);
    child.job_ends("j1");
    assert!(child.driver.contract().is_accepted());
}

// EXEC-3, BARRIER-4; task.md 12 row 87.
#[test]
fn a_notice_that_never_arrives_fails_the_run_and_keeps_the_data() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "one");
    child.yields(json!({"data": 1}));
    for _ in 0..3 {
        child.drop_prompt(true);
        child.wait(1000);
    }
    child.drop_prompt(true);
    let text = "pending-work notice never reached the model (4 attempts)";
    assert_eq!(child.ended(), &Outcome::Failed(text.to_owned()));
    assert_eq!(child.driver.contract().items().len(), 1);
}

#[test]
fn a_notice_that_fails_in_the_host_changes_nothing() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "one");
    child.yields(json!({"data": 1}));
    child.settle(RunEnd::Failed("disk full".to_owned()));
    assert!(child.outcome.is_none());
    child.job_ends("j1");
    child.yields(json!({"data": 2}));
    assert_eq!(child.ended(), &Outcome::Accepted);
}

// OP-22.
#[test]
fn a_child_that_starts_a_job_after_each_result_ends_as_stale() {
    let mut child = task(Limits::default());
    let mut rounds = 0;
    while child.outcome.is_none() {
        rounds += 1;
        assert!(rounds < 40, "it has to end");
        let id = format!("j{rounds}");
        child.driver.job_started(&id, "again");
        child.yields(json!({"data": rounds}));
        if rounds == 1 {
            child.say();
        }
        child.job_ends(&id);
    }
    assert_eq!((child.ended(), rounds), (&Outcome::Stale, 25));
}

// EXEC-19: a job that ends after a drop is sent once.
#[test]
fn dropped_results_are_sent_again_and_not_twice() {
    let mut child = task(Limits::default());
    child.driver.job_started("j1", "one");
    child.say();
    let results = |child: &mut Child<Yields>| {
        child.driver.job_ended("j1", Some(0), "out");
        let acts = child.driver.take_acts();
        let [Act::Submit(submission)] = acts.as_slice() else { panic!("{acts:?}") };
        submission.messages.len()
    };
    assert_eq!(results(&mut child), 1);
    child.drop_prompt(true);
    child.driver.tick(child.now + 250);
    let acts = child.driver.take_acts();
    let [Act::Submit(again)] = acts.as_slice() else { panic!("{acts:?}") };
    assert_eq!(again.messages.len(), 1);
    child.driver.message(&again.messages[0].message(child.now));
    assert!(!child.driver.jobs().is_pending());
}
