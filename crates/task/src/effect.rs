//! What the tool wants done, and what it tells.

use std::sync::Arc;

use serde_json::Value;

use crew_base::definition::Definition;
use crew_base::id::{CallId, RunId, SessionId};
use crew_base::message::{Message, SharedMessage, Usage};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_base::tool::{ToolDefinition, ToolOutcome, ToolProgress};

use crate::artifact;
use crate::effort::Effort;
use crate::isolation;

/// An output of [`crate::Tasks`], in the order it must be carried out.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask the person; ends with `Tasks::asked`.
    Ask {
        /// Who calls.
        session: SessionId,
        /// The call.
        run: RunId,
        /// What is shown (DISP-4).
        view: String,
    },
    /// Make the artifact folder and list what is in it; ends with
    /// `Tasks::leased` (TASK-SPAWN-18).
    Lease {
        /// Who calls.
        session: SessionId,
        /// The call.
        run: RunId,
        /// The folder; `None` is a fresh temporary one.
        folder: Option<String>,
    },
    /// Make a copy; ends with `Tasks::isolated`.
    Isolate(isolation::Plan),
    /// Make a child session; ends with `Tasks::opened` or `Tasks::open_failed`.
    Open(Box<OpenTask>),
    /// Start a run of a child session.
    Prompt {
        /// The child.
        session: SessionId,
        /// In order.
        messages: Vec<Message>,
        /// The tool that the first request must name, where the model can.
        forced_tool: Option<&'static str>,
    },
    /// Abort the running turn of a child session; it settles as aborted.
    Stop {
        /// The child.
        session: SessionId,
    },
    /// Close a child session with everything it started; ends with
    /// `Tasks::closed`.
    Close {
        /// The child.
        session: SessionId,
    },
    /// Start a background command; ends with `Tasks::job_ended`.
    StartJob {
        /// The child.
        session: SessionId,
        /// Names the job in that child.
        job: String,
        /// The command.
        command: String,
    },
    /// A call that was routed here has its result.
    ToolEnded {
        /// Who called.
        session: SessionId,
        /// The call.
        run: RunId,
        /// The result.
        outcome: ToolOutcome,
        /// To stand on the tool result (OBS-5).
        usage: Option<Usage>,
    },
    /// A running call shows what it has.
    Progress {
        /// Who called.
        session: SessionId,
        /// The call.
        run: RunId,
        /// `details.progress` (OBS-6).
        progress: ToolProgress,
    },
    /// Write the files of a child; ends with `Tasks::written`.
    WriteArtifact {
        /// The child.
        session: SessionId,
        /// Names and contents.
        write: artifact::Write,
    },
    /// Read from a copy what is to be committed for its child, as a diff of at
    /// most `DIFF_BYTES_MAX` bytes; ends with `Tasks::described`.
    Describe {
        /// The child.
        session: SessionId,
        /// Names the copy.
        handle: u64,
    },
    /// Make one request to the model of the calling session, without tools;
    /// ends with `Tasks::worded` (ISO-9).
    Word {
        /// The child.
        session: SessionId,
        /// Whose model answers.
        parent: SessionId,
        /// The conversation.
        messages: Vec<SharedMessage>,
    },
    /// The answer to that request is no longer wanted; nothing follows.
    StopWording {
        /// The child.
        session: SessionId,
    },
    /// Capture a copy and bring its changes back; ends with `Tasks::integrated`.
    Integrate {
        /// The child.
        session: SessionId,
        /// What and how.
        capture: isolation::Capture,
    },
    /// Remove a copy, once nothing of its child is left; nothing follows.
    Discard {
        /// Names the copy.
        handle: u64,
    },
    /// The call is over: delete a temporary folder once its children are gone
    /// (ART-10, ART-12); nothing follows.
    EndLease {
        /// The folder.
        folder: String,
    },
    /// Tell the faces.
    Update(Update),
}

/// What is needed to make a child session (SESS-1 to SESS-7).
#[derive(Clone, Debug)]
pub struct OpenTask {
    /// Id of the new session.
    pub session: SessionId,
    /// Child id.
    pub id: String,
    /// Its transcript.
    pub file: String,
    /// The calling session, for working directory, trust and settings.
    pub parent: SessionId,
    /// File of the calling session, for the header.
    pub parent_file: Option<String>,
    /// Its agent.
    pub definition: Arc<Definition>,
    /// Model selectors in order; the first usable one is taken, later ones are
    /// fallbacks, the parent's model the last (TASK-SPAWN-13).
    pub models: Vec<String>,
    /// The parent's model at this moment.
    pub parent_model: Option<Arc<ModelSpec>>,
    /// Effort of the call (TASK-SPAWN-12).
    pub effort: Option<Effort>,
    /// Ceiling for the level that effort gives.
    pub max_effort: ThinkingLevel,
    /// Names of its tools, in order.
    pub tools: Vec<String>,
    /// Its `yield`.
    pub yield_tool: ToolDefinition,
    /// Its part of the system prompt.
    pub prompt_part: String,
    /// Working directory in a copy; `None` is that of the parent.
    pub cwd: Option<String>,
    /// It may call `task` itself.
    pub may_delegate: bool,
}

/// Where a child is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its session exists.
    Started,
    /// Exit 0, not aborted.
    Completed,
    /// Another exit.
    Failed,
    /// Ended from outside, or gave up.
    Aborted,
}

impl Phase {
    /// The word on the stream (OBS-6).
    pub fn word(self) -> &'static str {
        match self {
            Phase::Started => "started",
            Phase::Completed => "completed",
            Phase::Failed => "failed",
            Phase::Aborted => "aborted",
        }
    }
}

/// A lifecycle event (OBS-6; `product.md` P-20).
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Who called.
    pub parent: SessionId,
    /// The child session.
    pub session: SessionId,
    /// What happened.
    pub phase: Phase,
    /// Child id.
    pub id: String,
    /// Agent name.
    pub agent: String,
    /// The call.
    pub call: CallId,
    /// Position in the call.
    pub index: usize,
    /// Its transcript.
    pub file: String,
}

impl Update {
    /// The event of RPC and JSON streams.
    pub fn json(&self) -> Value {
        serde_json::json!({
            "type": "crew_task", "phase": self.phase.word(), "id": self.id, "agent": self.agent,
            "toolCallId": self.call, "index": self.index, "sessionFile": self.file,
        })
    }
}
