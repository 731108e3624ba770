//! The states of a session.

use crew_base::id::RunId;
use crew_base::message::{SharedMessage, ToolCall};
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;

use crate::answer::Answer;
use crate::queue::Queued;

/// What a session is doing. `Boundary` lasts only within one step.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nothing; a prompt may start a run.
    Idle,
    /// Waiting for what the crew records at a safe boundary.
    Boundary(Then),
    /// A request is under way.
    Streaming(Stream),
    /// Tools of one answer run.
    Tools(Batch),
    /// A failed request waits for its retry.
    Backoff(Backoff),
}

/// What follows a boundary.
#[derive(Debug)]
pub(crate) enum Then {
    /// The run starts with these messages.
    Start(Vec<Queued>),
    /// The turn is over.
    TurnEnded(TurnEnd),
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// Tools ran and the model is to see their results.
    Tools,
    /// Nothing was asked for, or all results end the run.
    Stop,
    /// The answer failed for good; the loop run ends (`host.md` 3.1.5).
    Failed,
    /// The run was aborted.
    Aborted,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) run: RunId,
    pub(crate) answer: Answer,
    /// `message_start` was told.
    pub(crate) announced: bool,
    /// The request directly follows tool results.
    pub(crate) after_results: bool,
    /// Entries that are written once this request has begun.
    pub(crate) written: usize,
}

/// The tools of one answer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) answer: SharedMessage,
    pub(crate) slots: Vec<Slot>,
    pub(crate) aborted: bool,
}

/// One call of a batch.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) call: ToolCall,
    pub(crate) state: SlotState,
}

/// How far a call is.
#[derive(Debug)]
pub(crate) enum SlotState {
    /// The tool runs.
    Running {
        /// Its run.
        run: RunId,
        /// When it began.
        started: Time,
    },
    /// It has its one result.
    Ended {
        /// The result.
        outcome: ToolOutcome,
        /// Absent when it did not run.
        duration_ms: Option<u64>,
    },
}

impl Batch {
    pub(crate) fn is_done(&self) -> bool {
        self.slots.iter().all(|slot| matches!(slot.state, SlotState::Ended { .. }))
    }

    pub(crate) fn running(&self, run: RunId) -> Option<usize> {
        self.slots.iter().position(
            |slot| matches!(slot.state, SlotState::Running { run: known, .. } if known == run),
        )
    }
}

/// A wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) until: Time,
}
