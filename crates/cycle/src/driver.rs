//! One cycle from the first prompt to its end, under either contract
//! (`task.md` 6, 7, 15).
//!
//! Owns submission with its retries, the reminder ladder, the order of aborts
//! and the barrier. Must never know exit codes, statuses or files: front ends
//! map an [`Outcome`]. A step is a method; what follows is taken with
//! [`Driver::take_acts`]. Read `driver::judge` for the loop of BARRIER-2.

mod calls;
mod judge;
mod submit;

use std::collections::BTreeSet;

use crew_base::id::CallId;
use crew_base::limits::INVALIDATIONS_MAX;
use crew_base::message::{AssistantMessage, Message, StopReason};
use crew_base::time::Time;

use crate::barrier::{Jobs, RESULT_TYPE};
use crate::budget::{Budget, Verdict};
use crate::contract::{Contract, Synthetic};
use crate::ladder::{Ladder, Reminder};

/// What bounds a cycle; the default bounds nothing.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Requests.
    pub budget: Budget,
    /// Wall clock from the moment the driver is made (EXEC-2).
    pub runtime_ms: Option<u64>,
    /// Somebody answers [`Act::Recover`] (EXEC-4).
    pub recovers_busy: bool,
}

/// Who ends a cycle from outside (EXEC-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortKind {
    /// Who waits for the result, or an abort of this child alone.
    Caller,
    /// The host ends.
    Shutdown,
    /// A failure inside the host.
    Terminate,
    /// The runtime limit.
    Timeout,
    /// The request budget.
    Budget,
}

/// How a cycle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was handed in counts.
    Accepted,
    /// It was handed in before results that it does not cover (BARRIER-8).
    Stale,
    /// Nothing was handed in.
    Missing {
        /// Reminders of the whole run.
        reminders: u32,
    },
    /// The last answer ended in an error of the provider.
    ModelError {
        /// The error text.
        error: String,
        /// Who was asked.
        provider: String,
        /// For what.
        model: String,
    },
    /// The run failed.
    Failed(String),
    /// It was ended from outside.
    Aborted {
        /// By whom.
        kind: AbortKind,
        /// In words.
        reason: String,
    },
}

/// What a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The assignment.
    First,
    /// A reminder.
    Reminder(Reminder),
    /// The notice of pending work.
    Notice,
    /// Background results for an idle child.
    Results,
}

/// A prompt for the child session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// What it is for.
    pub purpose: Purpose,
    /// In order.
    pub messages: Vec<Synthetic>,
    /// A tool that the first request must name, where the model can (EXEC-8).
    pub forced_tool: Option<&'static str>,
}

/// What the driver wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Start a run of the child session.
    Submit(Submission),
    /// End the running turn at once; it settles as aborted.
    StopTurn,
    /// Wait until the other turn is over, then call [`Driver::recovered`].
    Recover,
    /// The cycle is over; nothing follows.
    Ended(Outcome),
}

/// What happens at a safe boundary of the child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    /// No further request may follow.
    pub stops: bool,
    /// To be recorded there, in order.
    pub messages: Vec<Synthetic>,
}

/// The machine of one cycle.
#[derive(Debug)]
pub struct Driver<C> {
    contract: C,
    budget: Budget,
    jobs: Jobs,
    ladder: Ladder,
    phase: Phase,
    recovers_busy: bool,
    runtime: Option<(Time, u64)>,
    last: Option<Last>,
    ending: Option<Ending>,
    /// The turn was told to stop and has not settled.
    stopping: bool,
    notice_sent: bool,
    invalidations: u32,
    is_stale: bool,
    /// Nothing was pending when the hand-in was accepted: cancelling the calls
    /// beside it, a `wait` for instance, brings nothing back (BARRIER-1).
    was_free: bool,
    refusals: u32,
    /// Calls of the completion tool that were judged in this turn.
    judged: BTreeSet<CallId>,
    /// A verdict has to come before the budget is looked at (EXEC-18).
    owes_check: bool,
    /// Notices for the next boundary.
    notices: Vec<Synthetic>,
    out: Vec<Act>,
}

#[derive(Debug)]
enum Phase {
    /// The session is being made.
    New,
    /// A prompt was handed over.
    Running {
        submission: Submission,
        attempt: u32,
    },
    /// It was dropped; the session has until then to become idle.
    Dropped {
        submission: Submission,
        attempt: u32,
        until: Time,
    },
    /// It was dropped; it is handed over again then.
    BackingOff {
        submission: Submission,
        attempt: u32,
        until: Time,
    },
    /// Another turn runs (EXEC-4).
    Recovering {
        submission: Submission,
        attempt: u32,
    },
    /// Idle; jobs run.
    Settling,
    Ended,
}

/// What the last answer said about its end.
#[derive(Debug)]
struct Last {
    stop_reason: StopReason,
    error: Option<String>,
    provider: String,
    model: String,
    /// Tool results came after it, so a request follows a boundary.
    has_results: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    Abort(AbortKind, String),
    /// Ended inside as failed, not aborted (EXEC-26).
    Fail(String),
    Stale,
}

impl<C: Contract> Driver<C> {
    /// A driver for a session that is yet to be made; the runtime limit counts
    /// from now.
    pub fn new(now: Time, contract: C, limits: Limits) -> Driver<C> {
        Driver {
            contract,
            budget: limits.budget,
            jobs: Jobs::default(),
            ladder: Ladder::new(C::TERMS.reminders_max),
            phase: Phase::New,
            recovers_busy: limits.recovers_busy,
            runtime: limits.runtime_ms.filter(|ms| *ms > 0).map(|ms| (now + ms, ms)),
            last: None,
            ending: None,
            stopping: false,
            notice_sent: false,
            invalidations: 0,
            is_stale: false,
            was_free: false,
            refusals: 0,
            judged: BTreeSet::new(),
            owes_check: false,
            notices: Vec::new(),
            out: Vec::new(),
        }
    }

    /// What is to be done, in order.
    #[must_use]
    pub fn take_acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.out)
    }

    /// The contract and what was handed in.
    pub fn contract(&self) -> &C {
        &self.contract
    }

    /// Completed answers.
    pub fn requests(&self) -> u32 {
        self.budget.requests()
    }

    /// The background jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Whether the cycle is over.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// When to call [`Driver::tick`].
    pub fn deadline(&self) -> Option<Time> {
        let wait = match &self.phase {
            Phase::Dropped { until, .. } | Phase::BackingOff { until, .. } => Some(*until),
            Phase::Ended => return None,
            Phase::New | Phase::Running { .. } | Phase::Recovering { .. } | Phase::Settling => None,
        };
        [wait, self.runtime.map(|(until, _)| until)].into_iter().flatten().min()
    }

    /// Takes a message that the child recorded. Those of a foreign turn are
    /// not looked at (EXEC-4).
    pub fn message(&mut self, message: &Message) {
        match self.phase {
            Phase::Running { .. } | Phase::Settling => {}
            Phase::New
            | Phase::Dropped { .. }
            | Phase::BackingOff { .. }
            | Phase::Recovering { .. }
            | Phase::Ended => return,
        }
        self.contract.message(message);
        match message {
            Message::Assistant(answer) => self.answer(answer),
            Message::ToolResult(result) => {
                if let Some(last) = &mut self.last {
                    last.has_results = true;
                }
                let unjudged = !self.judged.contains(&result.tool_call_id);
                if result.tool_name == C::TERMS.tool && result.is_error && unjudged {
                    let text: String =
                        result.content.iter().filter_map(|block| block.as_text()).collect();
                    self.refused(&text);
                }
            }
            Message::Custom(custom) if custom.custom_type == RESULT_TYPE => {
                if self.jobs.injected(&custom.content.text()) {
                    self.result_entered();
                }
            }
            Message::System(_)
            | Message::User(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => {}
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) {
        self.last = Some(Last {
            stop_reason: answer.stop_reason,
            error: answer.error_message.clone(),
            provider: answer.provider.clone(),
            model: answer.model.clone(),
            has_results: false,
        });
        self.judged.clear();
        if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            return;
        }
        self.budget.count();
        self.owes_check = true;
        if !answer.tool_calls().any(|call| call.name == C::TERMS.tool) {
            self.check_budget();
        }
    }

    fn check_budget(&mut self) {
        if !std::mem::take(&mut self.owes_check) || self.contract.is_accepted() {
            return;
        }
        match self.budget.check() {
            Verdict::Fine => {}
            Verdict::Notice(notice) => self.notices.push(notice),
            Verdict::Stop => self.stop_turn(),
            Verdict::Kill => {
                let reason = self.budget.reason(true);
                self.set_ending(Ending::Abort(AbortKind::Budget, reason));
            }
        }
    }

    /// A background result entered the conversation (BARRIER-7).
    fn result_entered(&mut self) {
        if self.ending.is_some() || !self.contract.is_accepted() {
            return;
        }
        self.invalidate();
        if self.invalidations >= INVALIDATIONS_MAX {
            self.set_ending(Ending::Stale);
        }
    }

    fn invalidate(&mut self) {
        self.contract.invalidate();
        self.was_free = false;
        self.invalidations += 1;
        self.is_stale = true;
        self.ladder.enter();
    }

    /// A safe boundary between a turn's tool results and what follows: what is
    /// to be recorded there, and whether the run goes on at all (OBS-8).
    pub fn boundary(&mut self) -> Boundary {
        self.check_budget();
        if self.stopping || self.ending.is_some() {
            return Boundary { stops: true, messages: Vec::new() };
        }
        let continues = self.last.as_ref().is_some_and(|last| last.has_results);
        if !continues {
            return Boundary::default();
        }
        let mut messages = std::mem::take(&mut self.notices);
        messages.extend(self.jobs.deliver());
        Boundary { stops: false, messages }
    }

    /// Ends the cycle from outside. What was handed in and holds nothing back
    /// any more stays good (EXEC-23); the order of kinds is that of EXEC-19.
    pub fn abort(&mut self, kind: AbortKind, reason: String) {
        let is_signal = matches!(kind, AbortKind::Caller | AbortKind::Shutdown);
        if self.has_ended() {
            return;
        }
        if is_signal && self.is_committed() {
            self.end_committed();
        } else {
            self.set_ending(Ending::Abort(kind, reason));
        }
    }

    /// Ends what still runs behind a good hand-in: its turn, or one about
    /// pending work. An attempt that failed meanwhile does not count; it would
    /// have been made again.
    fn end_committed(&mut self) {
        match self.phase {
            Phase::Running { .. } if self.stopping => {}
            Phase::Running { .. } => {
                self.last = None;
                self.stop_turn();
            }
            Phase::New
            | Phase::Dropped { .. }
            | Phase::BackingOff { .. }
            | Phase::Recovering { .. }
            | Phase::Settling => self.end(),
            Phase::Ended => {}
        }
    }

    /// Whether an accepted hand-in needs nothing but the turn's end.
    fn is_committed(&self) -> bool {
        self.ending.is_none() && self.contract.is_accepted() && !self.holds_back()
    }

    /// Whether pending jobs hold the end back.
    fn holds_back(&self) -> bool {
        C::TERMS.has_barrier && !self.was_free && self.jobs.is_pending()
    }

    fn set_ending(&mut self, new: Ending) {
        let replaces = match (&self.ending, &new) {
            (None, _) => true,
            (
                Some(Ending::Abort(AbortKind::Budget, _)),
                Ending::Abort(AbortKind::Shutdown | AbortKind::Caller, _),
            )
            | (
                Some(Ending::Abort(AbortKind::Terminate, _) | Ending::Fail(_)),
                Ending::Abort(AbortKind::Caller, _),
            ) => true,
            (Some(_), _) => false,
        };
        if replaces {
            self.ending = Some(new);
        }
        match self.phase {
            Phase::Running { .. } => self.stop_turn(),
            Phase::New
            | Phase::Dropped { .. }
            | Phase::BackingOff { .. }
            | Phase::Recovering { .. }
            | Phase::Settling => self.end(),
            Phase::Ended => {}
        }
    }

    fn stop_turn(&mut self) {
        if matches!(self.phase, Phase::Running { .. }) && !self.stopping {
            self.stopping = true;
            self.out.push(Act::StopTurn);
        }
    }

    fn fail(&mut self, text: String) {
        self.ending.get_or_insert(Ending::Fail(text));
        self.end();
    }

    /// Serves what is due.
    pub fn tick(&mut self, now: Time) {
        if self.has_ended() {
            return;
        }
        if let Some((until, limit_ms)) = self.runtime
            && now >= until
        {
            self.runtime = None;
            let reason = format!("runtime limit reached (task.maxRuntimeMs={limit_ms})");
            self.abort(AbortKind::Timeout, reason);
        }
        let is_due = match &self.phase {
            Phase::Dropped { until, .. } | Phase::BackingOff { until, .. } => now >= *until,
            Phase::New
            | Phase::Running { .. }
            | Phase::Recovering { .. }
            | Phase::Settling
            | Phase::Ended => false,
        };
        if !is_due {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Settling) {
            Phase::BackingOff { submission, attempt, .. } => self.resubmit(submission, attempt),
            Phase::Dropped { submission, .. } => {
                let label = submit::label::<C>(&submission);
                self.fail(format!(
                    "{label} never reached the model; the session did not become idle"
                ));
            }
            other @ (Phase::New
            | Phase::Running { .. }
            | Phase::Recovering { .. }
            | Phase::Settling
            | Phase::Ended) => self.phase = other,
        }
    }
}
