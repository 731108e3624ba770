//! The states of a session.

use std::sync::Arc;

use crew_base::id::{EntryId, RunId};
use crew_base::message::{SharedMessage, ToolCall, Usage};
use crew_base::model::ModelSpec;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;

use crate::answer::Answer;
use crate::branch::{Branch, BranchWish};
use crate::compaction::summary::{Files, Part};
use crate::compaction::{CompactionReason, Plan};
use crate::queue::Queued;

/// What a session is doing. `Boundary` lasts only within one step.
#[expect(clippy::large_enum_variant, reason = "each session has exactly one")]
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
    /// The older part of the context is being summarised.
    Compacting(Box<Compacting>),
    /// The session goes to another place in its tree.
    Moving(Box<Moving>),
}

/// What a session waits for that is no work of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The first word of an answer; the request may still be held back.
    Answer(RunId),
    /// The next try of a request that failed, at this moment.
    Retry(Time),
    /// A summary of the older part of its context.
    Compaction,
}

impl Phase {
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        match self {
            Phase::Idle | Phase::Boundary(_) | Phase::Tools(_) | Phase::Moving(_) => None,
            Phase::Streaming(stream) => match (stream.resend_at, stream.announced) {
                (Some(at), _) => Some(Waiting::Retry(at)),
                (None, true) => None,
                (None, false) => Some(Waiting::Answer(stream.run)),
            },
            Phase::Backoff(backoff) => Some(Waiting::Retry(backoff.until)),
            Phase::Compacting(_) => Some(Waiting::Compaction),
        }
    }
}

impl Phase {
    /// The summary that is asked for, if any is.
    pub(crate) fn asked(&mut self) -> Option<&mut Asked> {
        match self {
            Phase::Compacting(compacting) => Some(&mut compacting.asked),
            Phase::Moving(moving) => match &mut moving.stage {
                MoveStage::Reading { .. } => None,
                MoveStage::Summarising { asked, .. } => Some(asked),
            },
            Phase::Idle
            | Phase::Boundary(_)
            | Phase::Streaming(_)
            | Phase::Tools(_)
            | Phase::Backoff(_) => None,
        }
    }

    /// When the next try at a summary begins.
    pub(crate) fn summary_due(&self) -> Option<Time> {
        let asked = match self {
            Phase::Compacting(compacting) => &compacting.asked,
            Phase::Moving(moving) => match &moving.stage {
                MoveStage::Reading { .. } => return None,
                MoveStage::Summarising { asked, .. } => asked,
            },
            Phase::Idle
            | Phase::Boundary(_)
            | Phase::Streaming(_)
            | Phase::Tools(_)
            | Phase::Backoff(_) => return None,
        };
        match asked.stage {
            Stage::Waiting(until) => Some(until),
            Stage::Planned | Stage::Asking { .. } => None,
        }
    }
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
    /// How often it was sent again.
    pub(crate) resends: u32,
    /// When it is sent again; it is under way while this is empty.
    pub(crate) resend_at: Option<Time>,
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

/// A compaction under way (`host.md` 3.8).
#[derive(Debug)]
pub(crate) struct Compacting {
    pub(crate) reason: CompactionReason,
    pub(crate) plan: Plan,
    pub(crate) after: After,
    /// What the person wants the summary to attend to.
    pub(crate) focus: Option<String>,
    /// The parts of the summary that are there.
    pub(crate) answers: Vec<String>,
    pub(crate) asked: Asked,
}

/// A move in the tree under way (`host.md` 2.8.2, 2.8.3).
#[derive(Debug)]
pub(crate) struct Moving {
    /// The entry that was chosen.
    pub(crate) target: EntryId,
    pub(crate) wish: Option<BranchWish>,
    pub(crate) label: Option<String>,
    pub(crate) stage: MoveStage,
}

/// How far a move is.
#[derive(Debug)]
pub(crate) enum MoveStage {
    /// Both branches are being read.
    Reading {
        /// The reading.
        run: RunId,
    },
    /// What is left is being summarised.
    Summarising { branch: Box<Branch>, part: Part, files: Files, asked: Box<Asked> },
}

/// Requests for a summary: their sum, and how far the present one is.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The model that was in use when it began.
    pub(crate) model: Arc<ModelSpec>,
    pub(crate) usage: Usage,
    /// Retries of the part that is asked for.
    pub(crate) attempt: u32,
    pub(crate) stage: Stage,
}

impl Asked {
    pub(crate) fn new(model: Arc<ModelSpec>) -> Asked {
        Asked { model, usage: Usage::default(), attempt: 0, stage: Stage::Planned }
    }
}

/// How far the part that is asked for is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Not asked for.
    Planned,
    /// A request is under way.
    Asking {
        /// Its run.
        run: RunId,
        /// What came of it so far.
        answer: Box<Answer>,
        /// Entries that are written once it has begun.
        written: usize,
    },
    /// A failed request waits for its retry.
    Waiting(Time),
}

/// What a compaction was made for, and goes on with.
#[derive(Debug)]
pub(crate) enum After {
    /// A run that starts with these messages, and with results that wait.
    Start(Vec<Queued>),
    /// The boundary behind a turn of the running loop run.
    Turn(TurnEnd),
    /// The end of a loop run.
    Loop,
    /// The request that found too little room; these entries are its attempt.
    Retry(Vec<EntryId>),
    /// Nothing: the person asked for it.
    Manual,
}
