//! The driver with a scripted child: ladder, drop, busy and abort under both
//! contracts (`task.md` MEET-7), budget and barrier under that of `task`.

use crew_base::id::{CallId, RunId};
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall};
use crew_base::session::RunEnd;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_cycle::budget::Budget;
use crew_cycle::schema::OutputSchema;
use crew_cycle::yielded::Yields;
use crew_cycle::{AbortKind, Act, Contract, Driver, Limits, Outcome, Purpose, Reports, Submission};
use serde_json::{Value, json};

/// A child session that the test plays, step by step.
struct Child<C> {
    driver: Driver<C>,
    now: Time,
    /// What was submitted, in short: `first`, `reminder 2`, `reminder 3!`
    /// (forced), `notice`, `results`; beside it `stop` and `recover`.
    seen: Vec<String>,
    prompts: Vec<Submission>,
    outcome: Option<Outcome>,
    calls: u32,
}

fn child<C: Contract>(contract: C, limits: Limits) -> Child<C> {
    let driver = Driver::new(Time(0), contract, limits);
    let (seen, prompts) = (Vec::new(), Vec::new());
    let mut child = Child { driver, now: Time(0), seen, prompts, outcome: None, calls: 0 };
    child.driver.begin("do it".to_owned());
    child.take();
    child
}

fn task(limits: Limits) -> Child<Yields> {
    child(Yields::new(OutputSchema::none()), limits)
}

fn budget(requests: u32) -> Limits {
    Limits { budget: Budget::new(Some(requests), true), ..Limits::default() }
}

impl<C: Contract> Child<C> {
    fn take(&mut self) {
        for act in self.driver.take_acts() {
            match act {
                Act::Submit(submission) => {
                    let forced = if submission.forced_tool.is_some() { "!" } else { "" };
                    self.seen.push(match submission.purpose {
                        Purpose::First => "first".to_owned(),
                        Purpose::Reminder(reminder) => {
                            format!("reminder {}{forced}", reminder.number)
                        }
                        Purpose::Notice => "notice".to_owned(),
                        Purpose::Results => "results".to_owned(),
                    });
                    for message in &submission.messages {
                        self.driver.message(&message.message(self.now));
                    }
                    self.prompts.push(submission);
                }
                Act::StopTurn => self.seen.push("stop".to_owned()),
                Act::Recover => self.seen.push("recover".to_owned()),
                Act::Ended(outcome) => {
                    assert!(self.outcome.replace(outcome).is_none(), "a cycle ends once");
                }
            }
        }
    }

    fn answer(&mut self, text: &str, calls: &[(&str, &str)], stop: &str) {
        let mut blocks = vec![json!({"type": "text", "text": text})];
        blocks.extend(calls.iter().map(
            |(id, tool)| json!({"type": "toolCall", "id": id, "name": tool, "arguments": {}}),
        ));
        let answer = json!({"role": "assistant", "content": blocks, "stopReason": stop,
            "errorMessage": "provider said no", "provider": "fake", "model": "m1"});
        self.driver.message(&from_text::<Message>(&answer.to_string()).expect("a message"));
        self.take();
    }

    fn result(&mut self, id: &str, tool: &str, is_error: bool) {
        let result = json!({"role": "toolResult", "toolCallId": id, "toolName": tool,
            "content": [{"type": "text", "text": "refused"}], "isError": is_error});
        self.driver.message(&from_text::<Message>(&result.to_string()).expect("a message"));
        self.take();
    }

    fn settle(&mut self, end: RunEnd) {
        self.driver.settled(self.now, &end);
        self.take();
    }

    /// A turn of text alone.
    fn say(&mut self) {
        self.answer("words", &[], "stop");
        self.settle(RunEnd::Ended);
    }

    /// One request with a tool; the run goes on unless it was stopped.
    fn work(&mut self) {
        self.calls += 1;
        let id = format!("w{}", self.calls);
        self.answer("", &[(&id, "bash")], "toolUse");
        self.result(&id, "bash", false);
        self.boundary();
    }

    fn boundary(&mut self) -> usize {
        let boundary = self.driver.boundary();
        self.take();
        for message in &boundary.messages {
            self.driver.message(&message.message(self.now));
        }
        self.take();
        if boundary.stops {
            self.settle(RunEnd::Aborted);
        }
        boundary.messages.len()
    }

    fn fail(&mut self) {
        self.answer("", &[], "error");
        self.settle(RunEnd::Ended);
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + ms;
        self.driver.tick(self.now);
        self.take();
    }

    fn drop_prompt(&mut self, is_idle: bool) {
        self.driver.dropped(self.now, is_idle);
        self.take();
    }

    fn abort(&mut self, kind: AbortKind, reason: &str) {
        self.driver.abort(kind, reason.to_owned());
        self.take();
    }

    fn ended(&self) -> &Outcome {
        self.outcome.as_ref().expect("the cycle has ended")
    }
}

impl Child<Yields> {
    /// One answer with one `yield`, up to the end of its turn.
    fn yields(&mut self, arguments: Value) -> ToolOutcome {
        self.calls += 1;
        let id = format!("y{}", self.calls);
        self.answer("", &[(&id, "yield")], "toolUse");
        let call = ToolCall {
            id: CallId::new(id.as_str()),
            name: "yield".into(),
            arguments: Raw::of(&arguments),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        };
        let outcome = self.driver.call(&call);
        self.take();
        self.result(&id, "yield", outcome.is_error);
        self.boundary();
        outcome
    }

    fn job_ends(&mut self, id: &str) -> Vec<(RunId, ToolOutcome)> {
        let answers = self.driver.job_ended(id, Some(0), "out");
        self.take();
        answers
    }
}

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
    both!(Limits::default(), test);
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
    let limits = || Limits { recovers_busy: true, ..Limits::default() };
    both!(limits(), test);

    let mut third = task(limits());
    for _ in 0..2 {
        third.driver.busy("already running".to_owned());
        third.driver.recovered();
    }
    third.driver.busy("already running".to_owned());
    third.take();
    assert_eq!(third.ended(), &Outcome::Failed("already running".to_owned()));
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

#[test]
fn later_kinds_replace_only_what_the_order_says() {
    let check = |first: AbortKind, second: AbortKind, wins: AbortKind| {
        let mut child = task(Limits::default());
        child.abort(first, "1");
        child.abort(second, "2");
        child.settle(RunEnd::Aborted);
        let reason = if wins == first { "1" } else { "2" };
        assert_eq!(child.ended(), &aborted(wins, reason), "{first:?} then {second:?}");
    };
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
    let mut driver = Driver::new(Time(0), Yields::new(OutputSchema::none()), Limits::default());
    driver.abort(AbortKind::Caller, "early".to_owned());
    assert_eq!(driver.take_acts(), [Act::Ended(aborted(AbortKind::Caller, "early"))]);
    driver.begin("late".to_owned());
    assert_eq!(driver.take_acts(), []);
}

// EXEC-23, OP-23; task.md 12 row 37.
#[test]
fn a_committed_yield_survives_the_callers_signal() {
    for kind in [AbortKind::Caller, AbortKind::Shutdown] {
        let mut child = task(Limits::default());
        child.answer("", &[("y", "yield")], "toolUse");
        let call = ToolCall {
            id: "y".into(),
            name: "yield".into(),
            arguments: Raw::of(&json!({"data": 1})),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        };
        assert!(child.driver.call(&call).terminate);
        child.take();
        child.abort(kind, "too late");
        child.result("y", "yield", false);
        child.boundary();
        assert_eq!(child.seen, ["first", "stop"]);
        assert_eq!(child.ended(), &Outcome::Accepted);
    }
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

// EXEC-12.
#[test]
fn a_reminder_that_fails_in_the_host_is_spent() {
    let mut child = task(Limits::default());
    child.say();
    child.settle(RunEnd::Failed("disk full".to_owned()));
    assert_eq!(child.seen, ["first", "reminder 1", "reminder 2"]);
    let mut first = task(Limits::default());
    first.settle(RunEnd::Failed("disk full".to_owned()));
    assert_eq!(first.ended(), &Outcome::Failed("disk full".to_owned()));
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
