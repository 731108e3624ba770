//! The driver with a scripted child: ladder, drop, busy and abort under both
//! contracts (`task.md` MEET-7).

#[path = "support/pending.rs"]
mod pending;
#[path = "support/child.rs"]
mod support;

use crew_base::id::RunId;
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall};
use crew_base::session::RunEnd;
use crew_base::time::Time;
use crew_cycle::schema::OutputSchema;
use crew_cycle::yielded::Yields;
use crew_cycle::{AbortKind, Act, Contract, Driver, Limits, Outcome, Reports};
use serde_json::{Value, json};

use support::{Child, child, task};

fn accept_task(child: &mut Child<Yields>) {
    child.yields(json!({"data": {"ok": 1}}));
}

fn accept_crew(child: &mut Child<Reports>) {
    let answer = json!({"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall",
        "id": "r", "name": "crew_report", "arguments": {"outcome": "completed", "report": "R"}}]});
    child.driver.message(&from_text::<Message>(&answer.to_string()).expect("a message"));
    child.result("r", "crew_report", false);
    child.settle(RunEnd::Ended);
}

/// Runs a test under both contracts; it gets the way to hand in.
macro_rules! both {
    ($limits:expr, $test:expr) => {{
        $test(child(Reports::default(), $limits), accept_crew as fn(&mut Child<Reports>));
        $test(task($limits), accept_task as fn(&mut Child<Yields>));
    }};
}

fn aborted(kind: AbortKind, reason: &str) -> Outcome {
    Outcome::Aborted { kind, reason: reason.to_owned() }
}

// EXEC-6, EXEC-8, EXEC-10; task.md 12 rows 29, 33.
#[test]
fn reminders_come_as_the_contract_says_and_then_the_cycle_is_missing() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        let count = C::TERMS.reminders_max;
        for number in 1..=count {
            child.say();
            let forced = if number == count && C::TERMS.forces_last { "!" } else { "" };
            assert_eq!(child.seen.last(), Some(&format!("reminder {number}{forced}")));
        }
        child.say();
        assert_eq!(child.ended(), &Outcome::Missing { reminders: count });
    }
    both!(Limits::default(), test);
}

#[test]
fn a_hand_in_on_a_reminder_ends_the_cycle_well() {
    fn test<C: Contract>(mut child: Child<C>, accept: fn(&mut Child<C>)) {
        child.say();
        accept(&mut child);
        assert_eq!(child.ended(), &Outcome::Accepted);
    }
    both!(Limits::default(), test);
}

// EXEC-10, EXEC-25; task.md 12 row 33.
#[test]
fn a_model_error_gets_no_reminder() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.fail();
        assert_eq!(child.seen, ["first"]);
        let Outcome::ModelError { error, provider, model } = child.ended() else { panic!() };
        assert_eq!(
            (error.as_str(), provider.as_str(), model.as_str()),
            ("provider said no", "fake", "m1")
        );
    }
    both!(Limits::default(), test);
}

// EXEC-3, MEET-10; task.md 12 row 25.
#[test]
fn a_dropped_prompt_is_submitted_again_with_growing_waits() {
    fn test<C: Contract>(mut child: Child<C>, accept: fn(&mut Child<C>)) {
        for wait in [250, 500, 1000] {
            child.drop_prompt(true);
            assert_eq!(child.driver.deadline(), Some(child.now + wait));
            child.wait(wait - 1);
            let sent = child.prompts.len();
            child.wait(1);
            assert_eq!(child.prompts.len(), sent + 1);
        }
        accept(&mut child);
        assert_eq!(child.ended(), &Outcome::Accepted);
    }
    both!(Limits::default(), test);
}

// EXEC-3; task.md 12 row 26.
#[test]
fn a_prompt_dropped_four_times_fails_by_its_label() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.say();
        for _ in 0..3 {
            child.drop_prompt(true);
            child.wait(1000);
        }
        child.drop_prompt(true);
        let label = C::TERMS.reminder_label;
        let text = format!("{label} never reached the model (4 attempts)");
        assert_eq!(child.ended(), &Outcome::Failed(text));
    }
    /// Each prompt has its own count, and a reminder is counted once.
    fn own_count<C: Contract>(mut child: Child<C>, accept: fn(&mut Child<C>)) {
        for _ in 0..3 {
            child.drop_prompt(true);
            child.wait(1000);
        }
        child.say();
        for _ in 0..3 {
            child.drop_prompt(true);
            child.wait(1000);
        }
        accept(&mut child);
        assert_eq!(child.ended(), &Outcome::Accepted);
        assert!(!child.seen.iter().any(|entry| entry.starts_with("reminder 2")));
    }
    both!(Limits::default(), test);
    both!(Limits::default(), own_count);
}

#[test]
fn a_session_that_does_not_become_idle_fails_the_prompt() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.drop_prompt(false);
        child.wait(4_999);
        assert!(child.outcome.is_none());
        child.wait(1);
        let text = "first prompt never reached the model; the session did not become idle";
        assert_eq!(child.ended(), &Outcome::Failed(text.to_owned()));
    }
    both!(Limits::default(), test);
}

#[test]
fn a_session_that_becomes_idle_gets_the_prompt_after_the_back_off() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.drop_prompt(false);
        child.wait(3_000);
        child.settle(RunEnd::Ended);
        child.wait(250);
        assert_eq!(child.seen, ["first", "first"]);
    }
    both!(Limits::default(), test);
}

// EXEC-4; task.md 12 rows 27, 28.
#[test]
fn a_busy_session_needs_recovery() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.driver.busy("already running".to_owned());
        child.take();
        assert_eq!(child.ended(), &Outcome::Failed("already running".to_owned()));
    }
    both!(Limits::default(), test);
}

#[test]
fn recovery_tries_three_times_and_ignores_the_other_turn() {
    fn test<C: Contract>(mut child: Child<C>, accept: fn(&mut Child<C>)) {
        for _ in 0..2 {
            child.driver.busy("already running".to_owned());
            child.take();
            // What the other turn does is not ours.
            child.answer("foreign", &[("f", C::TERMS.tool)], "toolUse");
            child.result("f", C::TERMS.tool, true);
            child.driver.recovered();
            child.take();
        }
        assert_eq!(child.seen, ["first", "recover", "first", "recover", "first"]);
        assert!(!child.driver.contract().is_accepted());
        accept(&mut child);
        assert_eq!(child.ended(), &Outcome::Accepted);
    }
    fn third<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        for _ in 0..2 {
            child.driver.busy("already running".to_owned());
            child.driver.recovered();
        }
        child.driver.busy("already running".to_owned());
        child.take();
        assert_eq!(child.ended(), &Outcome::Failed("already running".to_owned()));
    }
    let limits = || Limits { recovers_busy: true, ..Limits::default() };
    both!(limits(), test);
    both!(limits(), third);
}

// EXEC-19, EXEC-20.
#[test]
fn an_abort_stops_the_turn_and_the_first_reason_wins() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.abort(AbortKind::Timeout, "too long");
        child.abort(AbortKind::Caller, "by the caller");
        assert_eq!(child.seen, ["first", "stop"], "once");
        assert!(child.outcome.is_none(), "the turn has to settle");
        child.settle(RunEnd::Aborted);
        assert_eq!(child.ended(), &aborted(AbortKind::Timeout, "too long"));
    }
    both!(Limits::default(), test);
}

#[test]
fn an_abort_during_a_wait_ends_at_once() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.drop_prompt(true);
        child.abort(AbortKind::Shutdown, "the host ends");
        assert_eq!(child.ended(), &aborted(AbortKind::Shutdown, "the host ends"));
        child.wait(10_000);
        assert_eq!(child.seen, ["first"]);
    }
    both!(Limits::default(), test);
}

// EXEC-19.
#[test]
fn later_kinds_replace_only_what_the_order_says() {
    fn check(first: AbortKind, second: AbortKind, wins: AbortKind) {
        let test = |end: &Outcome| {
            let reason = if wins == first { "1" } else { "2" };
            assert_eq!(end, &aborted(wins, reason), "{first:?} then {second:?}");
        };
        test(&two_aborts(child(Reports::default(), Limits::default()), first, second));
        test(&two_aborts(task(Limits::default()), first, second));
    }
    use AbortKind::{Budget, Caller, Shutdown, Terminate, Timeout};
    check(Budget, Shutdown, Shutdown);
    check(Budget, Caller, Caller);
    check(Terminate, Caller, Caller);
    check(Terminate, Shutdown, Terminate);
    check(Caller, Shutdown, Caller);
    check(Timeout, Shutdown, Timeout);
    check(Shutdown, Caller, Shutdown);
    check(Timeout, Caller, Timeout);
    check(Caller, Timeout, Caller);
}

fn two_aborts<C: Contract>(mut child: Child<C>, first: AbortKind, second: AbortKind) -> Outcome {
    child.abort(first, "1");
    child.abort(second, "2");
    child.settle(RunEnd::Aborted);
    child.ended().clone()
}

// EXEC-24, EXEC-28.
#[test]
fn a_child_stopped_elsewhere_is_aborted_with_the_text_of_its_message() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.answer("", &[], "aborted");
        child.settle(RunEnd::Aborted);
        assert_eq!(child.ended(), &aborted(AbortKind::Caller, "provider said no"));
    }
    both!(Limits::default(), test);
}

#[test]
fn an_abort_before_the_session_exists_ends_at_once() {
    fn test<C: Contract>(contract: C) {
        let mut driver = Driver::new(Time(0), contract, Limits::default());
        driver.abort(AbortKind::Caller, "early".to_owned());
        assert_eq!(driver.take_acts(), [Act::Ended(aborted(AbortKind::Caller, "early"))]);
        driver.begin("late".to_owned());
        assert_eq!(driver.take_acts(), []);
    }
    test(Reports::default());
    test(Yields::new(OutputSchema::none()));
}

/// A call of `yield` with the id `y`.
fn call(arguments: Value) -> ToolCall {
    ToolCall {
        id: "y".into(),
        name: "yield".into(),
        arguments: Raw::of(&arguments),
        thought_signature: None,
        namespace: None,
        arguments_error: None,
    }
}

// EXEC-23, OP-23; task.md 12 row 37.
#[test]
fn a_committed_yield_survives_the_callers_signal() {
    for kind in [AbortKind::Caller, AbortKind::Shutdown] {
        let mut child = task(Limits::default());
        child.answer("", &[("y", "yield")], "toolUse");
        assert!(child.driver.call(&call(json!({"data": 1}))).terminate);
        child.take();
        child.abort(kind, "too late");
        child.result("y", "yield", false);
        child.boundary();
        assert_eq!(child.seen, ["first", "stop"]);
        assert_eq!(child.ended(), &Outcome::Accepted);
    }
}

// EXEC-23: the turn behind a good yield ends with the signal, a failed attempt
// in it does not count.
#[test]
fn a_signal_stops_the_turn_behind_a_committed_yield() {
    for kind in [AbortKind::Caller, AbortKind::Shutdown] {
        let mut child = task(Limits::default());
        child.driver.job_started("job-1", "make");
        child.yields(json!({"data": 1}));
        assert_eq!(child.seen.last().map(String::as_str), Some("notice"));
        child.answer("", &[("w", "wait")], "toolUse");
        assert!(child.driver.wait(RunId(9), &Raw::of(&json!({}))).is_none());
        assert_eq!(child.job_ends("job-1").len(), 1);
        child.result("w", "wait", false);
        child.boundary();
        child.answer("", &[], "error");
        child.abort(kind, "too late");
        assert_eq!(child.seen.last().map(String::as_str), Some("stop"));
        child.settle(RunEnd::Aborted);
        assert_eq!(child.ended(), &Outcome::Accepted);
    }
}

// BARRIER-1; task.md 12 row 44: what a `wait` in the same batch watches is
// suppressed, also once that call is cancelled.
#[test]
fn a_yield_beside_a_running_wait_is_terminal() {
    let mut child = task(Limits::default());
    child.driver.job_started("job-1", "make");
    assert!(child.driver.wait(RunId(9), &Raw::of(&json!({}))).is_none());
    child.answer("", &[("w", "wait"), ("y", "yield")], "toolUse");
    assert!(child.driver.call(&call(json!({"data": 1}))).terminate);
    assert!(child.driver.cancel_wait(RunId(9)));
    child.result("w", "wait", true);
    child.result("y", "yield", false);
    child.boundary();
    assert_eq!(child.seen, ["first", "stop"]);
    assert_eq!(child.ended(), &Outcome::Accepted);
}

// EXEC-22; task.md 12 row 36.
#[test]
fn the_runtime_limit_beats_a_yield_that_has_not_settled() {
    let mut child = task(Limits { runtime_ms: Some(700), ..Limits::default() });
    assert_eq!(child.driver.deadline(), Some(Time(700)));
    child.driver.job_started("j", "sleep");
    child.yields(json!({"data": 1}));
    child.wait(700);
    child.settle(RunEnd::Aborted);
    let reason = "runtime limit reached (task.maxRuntimeMs=700)";
    assert_eq!(child.ended(), &aborted(AbortKind::Timeout, reason));
    assert_eq!(child.driver.contract().items().len(), 1, "the data stay");
    child.wait(700);
    assert_eq!(child.driver.deadline(), None);
}

// EXEC-9; task.md 12 rows 31, 32.
#[test]
fn a_section_is_final_on_the_last_reminder_only() {
    let section = json!({"data": "x", "type": ["part"]});
    let mut third = task(Limits::default());
    (0..3).for_each(|_| third.say());
    third.yields(section.clone());
    assert_eq!(third.ended(), &Outcome::Accepted);

    let mut second = task(Limits::default());
    (0..2).for_each(|_| second.say());
    second.yields(section);
    second.say();
    assert_eq!(second.seen.last().map(String::as_str), Some("reminder 3!"));
    assert!(second.outcome.is_none());
    // Between drop retries the latch is off.
    assert!(second.driver.is_latched());
    second.drop_prompt(true);
    assert!(!second.driver.is_latched());
}

// EXEC-12: spent under `yield`; the one follow-up of the crew is the last word.
#[test]
fn a_reminder_that_fails_in_the_host_is_spent_where_the_contract_says_so() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.say();
        assert_eq!(child.seen, ["first", "reminder 1"]);
        child.settle(RunEnd::Failed("disk full".to_owned()));
        if C::TERMS.spends_failed_reminders {
            assert_eq!(child.seen, ["first", "reminder 1", "reminder 2"]);
            assert!(child.outcome.is_none());
        } else {
            assert_eq!(child.ended(), &Outcome::Failed("disk full".to_owned()));
        }
    }
    fn first<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.settle(RunEnd::Failed("disk full".to_owned()));
        assert_eq!(child.ended(), &Outcome::Failed("disk full".to_owned()));
    }
    both!(Limits::default(), test);
    both!(Limits::default(), first);
}

// EXEC-20: an abort while a reminder or its wait is under way ends the ladder.
#[test]
fn an_abort_on_a_reminder_sends_no_further_one() {
    fn test<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.say();
        child.abort(AbortKind::Caller, "enough");
        child.settle(RunEnd::Aborted);
        assert_eq!(child.ended(), &aborted(AbortKind::Caller, "enough"));
        assert_eq!(child.seen, ["first", "reminder 1", "stop"]);
    }
    fn between<C: Contract>(mut child: Child<C>, _: fn(&mut Child<C>)) {
        child.say();
        child.drop_prompt(true);
        child.abort(AbortKind::Timeout, "too long");
        assert_eq!(child.ended(), &aborted(AbortKind::Timeout, "too long"));
        child.wait(10_000);
        assert_eq!(child.seen, ["first", "reminder 1"]);
    }
    both!(Limits::default(), test);
    both!(Limits::default(), between);
}

// EXEC-26; task.md 12 row 39. Calls that no tool ever saw count too.
#[test]
fn six_refused_calls_in_a_row_fail_the_run() {
    let mut child = task(Limits::default());
    for _ in 0..5 {
        child.yields(json!({"data": 1, "error": "e"}));
    }
    child.yields(json!({"data": 1, "type": ["x"]}));
    for n in 0..6 {
        assert!(child.outcome.is_none(), "{n}");
        child.answer("", &[("u", "yield")], "toolUse");
        child.result("u", "yield", true);
        child.boundary();
    }
    let text = "stopped after 6 rejected yield calls in a row; last: refused";
    assert_eq!(child.ended(), &Outcome::Failed(text.to_owned()));
}
