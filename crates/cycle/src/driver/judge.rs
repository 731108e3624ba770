//! What follows when the child is idle: the loop of BARRIER-2 and the ladder.

use crew_base::limits::INVALIDATIONS_MAX;
use crew_base::message::StopReason;
use crew_base::session::RunEnd;
use crew_base::time::Time;

use super::{AbortKind, Act, Driver, Ending, Outcome, Phase, Purpose};
use crate::contract::{Contract, Synthetic};

impl<C: Contract> Driver<C> {
    /// The child session is idle: its run ended so, or it has become idle
    /// after a dropped prompt.
    pub fn settled(&mut self, now: Time, end: &RunEnd) {
        match std::mem::replace(&mut self.phase, Phase::Settling) {
            Phase::Dropped { submission, attempt, .. } => self.back_off(now, submission, attempt),
            Phase::Running { submission, .. } => self.turn_ended(end, submission.purpose),
            other @ (Phase::New
            | Phase::BackingOff { .. }
            | Phase::Recovering { .. }
            | Phase::Settling
            | Phase::Ended) => self.phase = other,
        }
    }

    fn turn_ended(&mut self, end: &RunEnd, purpose: Purpose) {
        let was_stopped = std::mem::take(&mut self.stopping);
        self.jobs.take_back();
        self.check_budget();
        if self.has_ended() {
            return;
        }
        if self.ending.is_some() {
            self.end();
            return;
        }
        match end {
            RunEnd::Ended => {}
            RunEnd::Aborted if was_stopped => {}
            RunEnd::Aborted => {
                self.aborted_elsewhere();
                return;
            }
            RunEnd::Failed(error) => {
                let is_spent = match purpose {
                    Purpose::Reminder(_) => C::TERMS.spends_failed_reminders,
                    // A notice that failed changes nothing (BARRIER-4).
                    Purpose::Notice => true,
                    Purpose::First | Purpose::Results => false,
                };
                if !is_spent {
                    self.fail(error.clone());
                    return;
                }
            }
        }
        let was_cut = self.last.as_ref().is_some_and(|l| l.stop_reason == StopReason::Aborted);
        if was_cut && !was_stopped {
            self.aborted_elsewhere();
            return;
        }
        self.advance();
    }

    /// Somebody else stopped the child; that is a caller signal (EXEC-24, EXEC-28).
    fn aborted_elsewhere(&mut self) {
        let cut = self.last.as_ref().filter(|last| last.stop_reason == StopReason::Aborted);
        let reason = cut.and_then(|last| last.error.clone());
        let reason = reason.unwrap_or_else(|| "the run was aborted".to_owned());
        self.abort(AbortKind::Caller, reason);
        if !self.has_ended() {
            self.advance();
        }
    }

    /// One round of BARRIER-2 for an idle child.
    pub(super) fn advance(&mut self) {
        let is_accepted = self.contract.is_accepted();
        if is_accepted && !self.holds_back() {
            self.end();
        } else if is_accepted && !self.notice_sent && self.jobs.running().next().is_some() {
            self.notice_sent = true;
            let notice = self.jobs.notice();
            self.submit(Purpose::Notice, vec![notice], false);
        } else if is_accepted {
            self.settle();
        } else if self.last_error().is_some() {
            self.end();
        } else if self.holds_back() && !self.budget.is_stopped() && !self.is_used_up() {
            // The ladder pauses; it is entered anew afterwards (BARRIER-5, EXEC-13).
            self.ladder.enter();
            self.settle();
        } else {
            self.remind();
        }
    }

    /// Whether the last reminder of the ladder was sent; then pending work is
    /// not settled any more (BARRIER-10).
    fn is_used_up(&self) -> bool {
        self.ladder.clone().next(false).is_none()
    }

    fn remind(&mut self) {
        let Some(reminder) = self.ladder.next(self.budget.is_stopped()) else {
            self.end();
            return;
        };
        let text = self.contract.reminder(reminder);
        let message = Synthetic { custom_type: C::TERMS.reminder_type, text };
        let forces = reminder.is_last() && C::TERMS.forces_last;
        self.submit(Purpose::Reminder(reminder), vec![message], forces);
    }

    /// Hands the results that wait to the idle child, or waits for some (BARRIER-6).
    fn settle(&mut self) {
        self.phase = Phase::Settling;
        if !self.jobs.has_results() {
            return;
        }
        if self.contract.is_accepted() && self.invalidations + 1 >= INVALIDATIONS_MAX {
            self.invalidate();
            self.ending = Some(Ending::Stale);
            self.end();
            return;
        }
        let results = self.jobs.deliver();
        self.submit(Purpose::Results, results, false);
    }

    fn last_error(&self) -> Option<Outcome> {
        let last = self.last.as_ref().filter(|last| last.stop_reason == StopReason::Error)?;
        let error = last.error.clone().unwrap_or_else(|| "the model request failed".to_owned());
        Some(Outcome::ModelError {
            error,
            provider: last.provider.clone(),
            model: last.model.clone(),
        })
    }

    /// Ends the cycle with what holds at this moment.
    pub(super) fn end(&mut self) {
        let outcome = match self.ending.take() {
            Some(Ending::Abort(kind, reason)) => Outcome::Aborted { kind, reason },
            Some(Ending::Fail(text)) => Outcome::Failed(text),
            Some(Ending::Stale) => Outcome::Stale,
            None => self.natural_end(),
        };
        self.phase = Phase::Ended;
        self.out.push(Act::Ended(outcome));
    }

    /// The end of a cycle that nobody cut short; an error of the last answer
    /// stands even beside a good hand-in (EXEC-25).
    fn natural_end(&self) -> Outcome {
        if let Some(error) = self.last_error() {
            return error;
        }
        if self.contract.is_accepted() {
            Outcome::Accepted
        } else if self.is_stale {
            Outcome::Stale
        } else if self.budget.is_stopped() {
            let reason = self.budget.reason(false);
            Outcome::Aborted { kind: AbortKind::Budget, reason }
        } else {
            Outcome::Missing { reminders: self.ladder.sent() }
        }
    }
}
