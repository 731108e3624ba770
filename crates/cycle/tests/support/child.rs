//! A child session that a test plays step by step.

use crew_base::id::{CallId, RunId};
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall};
use crew_base::session::RunEnd;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_cycle::schema::OutputSchema;
use crew_cycle::yielded::Yields;
use crew_cycle::{AbortKind, Act, Contract, Driver, Limits, Outcome, Purpose, Submission};
use serde_json::{Value, json};

/// A child session that the test plays, step by step.
pub(crate) struct Child<C> {
    pub(crate) driver: Driver<C>,
    pub(crate) now: Time,
    /// What was submitted, in short: `first`, `reminder 2`, `reminder 3!`
    /// (forced), `notice`, `results`; beside it `stop` and `recover`.
    pub(crate) seen: Vec<String>,
    pub(crate) prompts: Vec<Submission>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) calls: u32,
}

pub(crate) fn child<C: Contract>(contract: C, limits: Limits) -> Child<C> {
    let driver = Driver::new(Time(0), contract, limits);
    let (seen, prompts) = (Vec::new(), Vec::new());
    let mut child = Child { driver, now: Time(0), seen, prompts, outcome: None, calls: 0 };
    child.driver.begin("do it".to_owned());
    child.take();
    child
}

pub(crate) fn task(limits: Limits) -> Child<Yields> {
    child(Yields::new(OutputSchema::none()), limits)
}

impl<C: Contract> Child<C> {
    pub(crate) fn take(&mut self) {
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

    pub(crate) fn answer(&mut self, text: &str, calls: &[(&str, &str)], stop: &str) {
        let mut blocks = vec![json!({"type": "text", "text": text})];
        blocks.extend(calls.iter().map(
            |(id, tool)| json!({"type": "toolCall", "id": id, "name": tool, "arguments": {}}),
        ));
        let answer = json!({"role": "assistant", "content": blocks, "stopReason": stop,
            "errorMessage": "provider said no", "provider": "fake", "model": "m1"});
        self.driver.message(&from_text::<Message>(&answer.to_string()).expect("a message"));
        self.take();
    }

    pub(crate) fn result(&mut self, id: &str, tool: &str, is_error: bool) {
        let result = json!({"role": "toolResult", "toolCallId": id, "toolName": tool,
            "content": [{"type": "text", "text": "refused"}], "isError": is_error});
        self.driver.message(&from_text::<Message>(&result.to_string()).expect("a message"));
        self.take();
    }

    pub(crate) fn settle(&mut self, end: RunEnd) {
        self.driver.settled(self.now, &end);
        self.take();
    }

    /// A turn of text alone.
    pub(crate) fn say(&mut self) {
        self.answer("words", &[], "stop");
        self.settle(RunEnd::Ended);
    }

    /// One request with a tool; the run goes on unless it was stopped.
    pub(crate) fn work(&mut self) {
        self.calls += 1;
        let id = format!("w{}", self.calls);
        self.answer("", &[(&id, "bash")], "toolUse");
        self.result(&id, "bash", false);
        self.boundary();
    }

    pub(crate) fn boundary(&mut self) -> usize {
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

    pub(crate) fn fail(&mut self) {
        self.answer("", &[], "error");
        self.settle(RunEnd::Ended);
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now + ms;
        self.driver.tick(self.now);
        self.take();
    }

    pub(crate) fn drop_prompt(&mut self, is_idle: bool) {
        self.driver.dropped(self.now, is_idle);
        self.take();
    }

    pub(crate) fn abort(&mut self, kind: AbortKind, reason: &str) {
        self.driver.abort(kind, reason.to_owned());
        self.take();
    }

    pub(crate) fn ended(&self) -> &Outcome {
        self.outcome.as_ref().expect("the cycle has ended")
    }
}

impl Child<Yields> {
    /// One answer with one `yield`, up to the end of its turn.
    pub(crate) fn yields(&mut self, arguments: Value) -> ToolOutcome {
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

    pub(crate) fn job_ends(&mut self, id: &str) -> Vec<(RunId, ToolOutcome)> {
        let answers = self.driver.job_ended(id, Some(0), "out");
        self.take();
        answers
    }
}
