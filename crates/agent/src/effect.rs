//! What a session wants done, and what it tells.

use crew_base::entry::Entry;
use crew_base::id::{CallId, EntryId, RunId};
use crew_base::json::Raw;
use crew_base::message::{SharedMessage, ToolCall, Usage};
use crew_base::model::{ModelEvent, ModelRequest, ThinkingLevel};
use crew_base::session::{DeliveryId, RunEnd};
use crew_base::tool::{ToolOutcome, ToolProgress};

use crate::compaction::{CompactionReason, CompactionResult};

/// An output of the machine, in the order it must be carried out.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Write this entry before anything that follows.
    Append(Entry),
    /// Ask the model; the stream ends with `Finished` or `Failed`.
    StartModel {
        /// Names the stream.
        run: RunId,
        /// The request.
        request: ModelRequest,
    },
    /// Run a tool; ends with `ToolEnded`.
    RunTool {
        /// Names the run.
        run: RunId,
        /// The call, of a tool that was offered.
        call: ToolCall,
    },
    /// Read a place in the session tree and what lies between it and the leaf;
    /// ends with `BranchRead`.
    ReadBranch {
        /// Names the reading.
        run: RunId,
        /// The leaf that may be left.
        from: Option<EntryId>,
        /// The entry that was chosen.
        to: EntryId,
    },
    /// Stop a stream or a tool.
    Cancel {
        /// What to stop.
        run: RunId,
    },
    /// A safe boundary (`crew.md` CTX-6): answer at once with
    /// [`crate::Input::Proceed`].
    Boundary,
    /// This result now stands in the record.
    Entered(DeliveryId),
    /// These results could not be recorded and go back, oldest first
    /// (`crew.md` SAFE-4).
    Refused(Vec<DeliveryId>),
    /// A move in the tree ended; answers whoever asked for it.
    MoveEnded(MoveEnd),
    /// Tell the faces.
    Update(Update),
    /// The session run (`host.md` 3.1.1), or a compaction or a move outside of
    /// one, is over; the agent is idle.
    Settled(RunEnd),
}

/// How a move in the session tree ended (`host.md` 2.8.2).
#[derive(Clone, Debug, PartialEq)]
pub enum MoveEnd {
    /// The session stands elsewhere.
    Moved(Box<Moved>),
    /// It was cancelled; the leaf is where it was.
    Cancelled,
    /// It failed, for people; the leaf is where it was.
    Failed(String),
}

/// Where a session stands after a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The entry that the next one follows; `None` is before everything.
    pub leaf: Option<EntryId>,
    /// Text for the editor, of a message that is to be written anew.
    pub draft: Option<String>,
    /// The summary of what was left, if one was made.
    pub summary: Option<Entry>,
}

/// What a face is told of a session (`host.md` 3.2).
#[expect(clippy::large_enum_variant, reason = "moved once, from the agent to a face")]
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A loop run began.
    AgentStart,
    /// A turn began.
    TurnStart,
    /// A message began; an answer has no content yet.
    MessageStart(SharedMessage),
    /// The answer grew: one of the block events.
    MessageUpdate {
        /// The block event.
        event: ModelEvent,
        /// Usage so far.
        usage: Usage,
    },
    /// A message is complete and stored.
    MessageEnd(SharedMessage),
    /// A tool starts, or would have.
    ToolStart {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
        /// As the model gave them.
        arguments: Raw,
    },
    /// A tool shows what it has.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
        /// As the model gave them.
        arguments: Raw,
        /// So far.
        progress: ToolProgress,
    },
    /// A tool ended.
    ToolEnd {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
        /// What it gave back.
        outcome: ToolOutcome,
        /// Absent when it did not run.
        duration_ms: Option<u64>,
    },
    /// An answer and its tool results are complete.
    TurnEnd {
        /// The answer.
        message: SharedMessage,
        /// Its results in call order.
        results: Vec<SharedMessage>,
    },
    /// A loop run ended.
    AgentEnd {
        /// All messages it added.
        messages: Vec<SharedMessage>,
        /// A retry follows.
        will_retry: bool,
    },
    /// The session run ended.
    AgentSettled {
        /// By an abort.
        aborted: bool,
    },
    /// The typed messages that wait (`host.md` 3.4.9).
    QueueUpdate {
        /// Texts in order.
        steering: Vec<String>,
        /// Texts in order.
        follow_up: Vec<String>,
    },
    /// A wait before a retry began.
    RetryStart {
        /// Counted from 1.
        attempt: u32,
        /// At most.
        attempts_max: u32,
        /// Without the random part.
        delay_ms: u64,
        /// What failed.
        error: String,
    },
    /// Retrying is over.
    RetryEnd {
        /// Whether an answer came.
        success: bool,
        /// Retries made.
        attempt: u32,
        /// The last error.
        final_error: Option<String>,
    },
    /// A compaction began.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction ended. One that never began, because it was cancelled
    /// before or because an overflow came back, has no start.
    CompactionEnd {
        /// Why it was made.
        reason: CompactionReason,
        /// What it gave, if it succeeded.
        result: Option<CompactionResult>,
        /// It was cancelled.
        aborted: bool,
        /// The request that found too little room is made again.
        will_retry: bool,
        /// Why it failed.
        error: Option<String>,
    },
    /// A branch that is left is being summarised.
    BranchSummaryStart,
    /// A move in the tree ended.
    MoveEnd(MoveEnd),
    /// A summary request failed and is made again after a wait
    /// (`host.md` 3.6.8).
    SummaryRetryScheduled {
        /// Counted from 1.
        attempt: u32,
        /// At most.
        attempts_max: u32,
        /// Without the random part.
        delay_ms: u64,
        /// What failed.
        error: String,
    },
    /// A summary request is made again.
    SummaryRetryStart {
        /// Of which compaction; `None` for a branch that is left.
        reason: Option<CompactionReason>,
    },
    /// Retrying a summary request is over.
    SummaryRetryFinished,
    /// An entry that is no message was written.
    EntryAppended(Entry),
    /// Another thinking level is in force.
    ThinkingLevelChanged(ThinkingLevel),
    /// The session has another name, or none.
    SessionInfoChanged(Option<String>),
}
