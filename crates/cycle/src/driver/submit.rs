//! Handing prompts to the child session, and what becomes of those it does not
//! take (EXEC-3, EXEC-4).

use crew_base::limits::{BUSY_SUBMISSIONS_MAX, DROP_IDLE_MS_MAX, SUBMISSIONS_MAX};
use crew_base::time::Time;

use super::{Act, Driver, Phase, Purpose, Submission};
use crate::contract::{Contract, Synthetic};

impl<C: Contract> Driver<C> {
    /// The session exists; the assignment is handed over.
    pub fn begin(&mut self, prompt: String) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        let first = Synthetic { custom_type: None, text: prompt };
        self.submit(Purpose::First, vec![first], false);
    }

    pub(super) fn submit(&mut self, purpose: Purpose, messages: Vec<Synthetic>, forces: bool) {
        let forced_tool = forces.then_some(C::TERMS.tool);
        let submission = Submission { purpose, messages, forced_tool };
        self.hand_over(submission, 1);
    }

    pub(super) fn hand_over(&mut self, submission: Submission, attempt: u32) {
        self.out.push(Act::Submit(submission.clone()));
        self.phase = Phase::Running { submission, attempt };
    }

    /// The session discarded the prompt before any request (EXEC-3).
    pub fn dropped(&mut self, now: Time, is_idle: bool) {
        let Some((submission, attempt)) = self.take_running() else { return };
        self.jobs.take_back();
        if self.ending.is_some() {
            self.end();
        } else if attempt >= SUBMISSIONS_MAX {
            let label = label::<C>(&submission);
            self.fail(format!("{label} never reached the model ({attempt} attempts)"));
        } else if is_idle {
            self.back_off(now, submission, attempt);
        } else {
            let until = now + DROP_IDLE_MS_MAX;
            self.phase = Phase::Dropped { submission, attempt, until };
        }
    }

    pub(super) fn back_off(&mut self, now: Time, submission: Submission, attempt: u32) {
        const FIRST_MS: u64 = 250;
        let until = now + (FIRST_MS << (attempt - 1).min(2));
        self.phase = Phase::BackingOff { submission, attempt, until };
    }

    /// The session already runs a turn and refused the prompt with this error
    /// (EXEC-4). Only the first prompt is tried again, and only with recovery.
    pub fn busy(&mut self, error: String) {
        let Some((submission, attempt)) = self.take_running() else { return };
        if self.ending.is_some() {
            self.end();
        } else if submission.purpose == Purpose::First
            && self.recovers_busy
            && attempt < BUSY_SUBMISSIONS_MAX
        {
            self.phase = Phase::Recovering { submission, attempt };
            self.out.push(Act::Recover);
        } else {
            self.fail(error);
        }
    }

    /// The other turn is over; what it handed in does not count.
    pub fn recovered(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::New) {
            Phase::Recovering { submission, attempt } => {
                self.contract.reset();
                self.was_free = false;
                self.last = None;
                self.hand_over(submission, attempt + 1);
            }
            other @ (Phase::New
            | Phase::Running { .. }
            | Phase::Dropped { .. }
            | Phase::BackingOff { .. }
            | Phase::Settling
            | Phase::Ended) => self.phase = other,
        }
    }

    pub(super) fn take_running(&mut self) -> Option<(Submission, u32)> {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Running { submission, attempt } => Some((submission, attempt)),
            other @ (Phase::New
            | Phase::Dropped { .. }
            | Phase::BackingOff { .. }
            | Phase::Recovering { .. }
            | Phase::Settling
            | Phase::Ended) => {
                self.phase = other;
                None
            }
        }
    }

    pub(super) fn resubmit(&mut self, submission: Submission, attempt: u32) {
        // Results that wait are taken afresh, so that none is sent twice.
        if submission.purpose == Purpose::Results {
            let messages = self.jobs.deliver();
            self.hand_over(Submission { messages, ..submission }, attempt + 1);
        } else {
            self.hand_over(submission, attempt + 1);
        }
    }
}

/// What a prompt is called when it is dropped for good (`task.md` 1.7).
pub(super) fn label<C: Contract>(submission: &Submission) -> &'static str {
    match submission.purpose {
        Purpose::First => "first prompt",
        Purpose::Reminder(_) => C::TERMS.reminder_label,
        Purpose::Notice => "pending-work notice",
        Purpose::Results => "background result",
    }
}
