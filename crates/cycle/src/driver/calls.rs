//! Calls of the child that this crate answers: the completion tool and jobs.

use crew_base::id::RunId;
use crew_base::json::Raw;
use crew_base::limits::{EXCERPT_CHARS_MAX, YIELD_REFUSALS_MAX};
use crew_base::message::ToolCall;
use crew_base::text::excerpt;
use crew_base::tool::ToolOutcome;

use super::{Driver, Ending, Phase, Purpose};
use crate::contract::Contract;
use crate::yielded::{Verdict, Yields};

impl Driver<Yields> {
    /// Judges one call of `yield`. A terminal one stops the turn (YIELD-15):
    /// carry out what [`Driver::take_acts`] gives before the outcome is fed.
    pub fn call(&mut self, call: &ToolCall) -> ToolOutcome {
        self.judged.insert(call.id.clone());
        if self.stopping || self.ending.is_some() || self.has_ended() {
            return ToolOutcome::error("cancelled: this run is over");
        }
        let outcome = match self.contract.call(&call.arguments, self.is_latched()) {
            Verdict::Refused(text) => {
                self.refused(&text);
                ToolOutcome::error(text)
            }
            Verdict::Part(text) => {
                self.refusals = 0;
                ToolOutcome::text(text)
            }
            Verdict::Terminal(text) => {
                self.refusals = 0;
                self.is_stale = false;
                self.was_free = !self.jobs.is_pending();
                self.stop_turn();
                ToolOutcome { terminate: true, ..ToolOutcome::text(text) }
            }
        };
        self.check_budget();
        outcome
    }

    /// Whether any accepted call is terminal (EXEC-9). Armed only while the
    /// last reminder is handed over and runs.
    pub fn is_latched(&self) -> bool {
        match &self.phase {
            Phase::Running { submission, .. } => match submission.purpose {
                Purpose::Reminder(reminder) => reminder.is_last(),
                Purpose::First | Purpose::Notice | Purpose::Results => false,
            },
            Phase::New
            | Phase::Dropped { .. }
            | Phase::BackingOff { .. }
            | Phase::Recovering { .. }
            | Phase::Settling
            | Phase::Ended => false,
        }
    }
}

impl<C: Contract> Driver<C> {
    /// A call of the completion tool was refused (EXEC-26).
    pub(super) fn refused(&mut self, text: &str) {
        if !C::TERMS.has_barrier || self.stopping || self.ending.is_some() {
            return;
        }
        self.refusals += 1;
        if self.refusals >= YIELD_REFUSALS_MAX {
            let (count, last) = (self.refusals, excerpt(text, EXCERPT_CHARS_MAX));
            let text = format!("stopped after {count} rejected yield calls in a row; last: {last}");
            self.set_ending(Ending::Fail(text));
        }
    }

    /// A background job of the child began.
    pub fn job_started(&mut self, id: &str, label: &str) {
        self.jobs.started(id, label);
    }

    /// A background job ended. Answers the calls of `wait` that this completes;
    /// an idle child gets the result as a new turn.
    pub fn job_ended(
        &mut self,
        id: &str,
        exit_code: Option<i64>,
        output: &str,
    ) -> Vec<(RunId, ToolOutcome)> {
        let answers = self.jobs.finished(id, exit_code, output);
        if matches!(self.phase, Phase::Settling) && answers.is_empty() {
            self.advance();
        }
        answers
    }

    /// A call of `wait`; no outcome until its jobs have ended.
    pub fn wait(&mut self, run: RunId, arguments: &Raw) -> Option<ToolOutcome> {
        self.jobs.wait(run, arguments)
    }

    /// A call of `wait` was cancelled; tells whether it was one.
    pub fn cancel_wait(&mut self, run: RunId) -> bool {
        self.jobs.cancel_wait(run)
    }
}
