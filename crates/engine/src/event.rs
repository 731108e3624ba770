//! What enters the engine.

use std::sync::Arc;

use crew_agent::{Branch, Loaded, Prompt};
use crew_base::definition::Discovery;
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::model::{ModelEvent, ModelSpec, ThinkingLevel};
use crew_base::tool::{ToolOutcome, ToolProgress};
use crew_task::approval::Approval;
use crew_task::isolation::{Integration, Prepared};
use crew_task::{Lease, Setup};

use crate::api::{Command, CommandId};

/// One event. Those of a session or run that the engine no longer knows are
/// late and dropped.
#[expect(clippy::large_enum_variant, reason = "moved once into the engine")]
#[derive(Clone, Debug)]
pub enum Event {
    /// A face asks for something.
    Command(CommandId, Command),
    /// A session was prepared, or could not be.
    SessionOpened {
        /// The session.
        session: SessionId,
        /// What there is, or why not, for people.
        result: Result<Box<Opened>, String>,
    },
    /// A stream said something.
    Model {
        /// Whose.
        session: SessionId,
        /// The stream.
        run: RunId,
        /// In order.
        events: Vec<ModelEvent>,
    },
    /// A running tool shows what it has.
    ToolProgress {
        /// Whose.
        session: SessionId,
        /// The tool's run.
        run: RunId,
        /// So far.
        progress: ToolProgress,
    },
    /// A tool ended.
    ToolEnded {
        /// Whose.
        session: SessionId,
        /// The tool's run.
        run: RunId,
        /// What it gave back.
        outcome: ToolOutcome,
    },
    /// Definition files were read.
    Discovered {
        /// The discovery.
        run: RunId,
        /// What was found.
        discovery: Arc<Discovery>,
    },
    /// The branches of a move in the tree were read, or could not be.
    BranchRead {
        /// Whose.
        session: SessionId,
        /// The reading.
        run: RunId,
        /// What was found, or why not, for people.
        result: Result<Box<Branch>, String>,
    },
    /// An entry could not be written.
    AppendFailed {
        /// Whose.
        session: SessionId,
        /// The entry.
        entry: EntryId,
        /// Why, for people.
        error: String,
    },
    /// Nothing of a closed session is left: its file is free, and every process
    /// that it started has ended.
    SessionClosed {
        /// Which.
        session: SessionId,
    },
    /// Settings, approval and agents were read for calls of `task`.
    TaskSetup {
        /// The reading.
        run: RunId,
        /// What was found.
        setup: Arc<Setup>,
    },
    /// The person answered whether a call of `task` may run.
    TaskAnswered {
        /// The call.
        run: RunId,
        /// It may.
        is_allowed: bool,
    },
    /// The artifact folder of a call of `task` is there, or could not be made.
    TaskLeased {
        /// The call.
        run: RunId,
        /// The folder, or why not, for the model.
        lease: Result<Lease, String>,
    },
    /// The copy of a `task` child is there, or could not be made.
    TaskIsolated {
        /// The child.
        session: SessionId,
        /// The copy, or why not, for the model.
        result: Result<Prepared, String>,
    },
    /// A background command of a `task` child ended.
    JobEnded {
        /// The child.
        session: SessionId,
        /// The job.
        job: String,
        /// None if it was killed.
        exit_code: Option<i64>,
        /// Cut as in `host.md` 4.3.6.
        output: String,
    },
    /// The files of a `task` child were written, or not.
    ArtifactWritten {
        /// The child.
        session: SessionId,
        /// Path of the text file, or why it was not written.
        path: Result<String, String>,
    },
    /// What is to be committed for a `task` child was read.
    TaskDescribed {
        /// The child.
        session: SessionId,
        /// A diff of at most `DIFF_BYTES_MAX` bytes; `None` if there is nothing.
        diff: Result<Option<String>, String>,
    },
    /// The changes of a `task` child were brought back, or kept.
    TaskIntegrated {
        /// The child.
        session: SessionId,
        /// How it ended, or why it could not be tried, for the model.
        result: Result<Integration, String>,
    },
    /// A deadline has passed.
    Tick,
}

/// A prepared session.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Planned or existing path of its file; none in memory.
    pub file: Option<String>,
    /// Its model; an owner may have none.
    pub model: Option<Arc<ModelSpec>>,
    /// The model that was asked for could not be used (`task.md`
    /// TASK-SPAWN-13); only for `task` children.
    pub is_fallback: bool,
    /// What is asked when requests to it fail for good, in order.
    pub fallbacks: Vec<(Arc<ModelSpec>, ThinkingLevel)>,
    /// Clamped to the model by the engine.
    pub thinking: ThinkingLevel,
    /// Sections and offered tools, those of the crew included.
    pub prompt: Prompt,
    /// What its file holds.
    pub loaded: Loaded,
    /// There was no file.
    pub is_new: bool,
    /// A name to record in a new file.
    pub name: Option<String>,
    /// What an owner's tools may do unasked (`task.md` OBS-3).
    pub approval: Approval,
}
