//! What enters the engine.

use std::sync::Arc;

use crew_agent::{Loaded, Prompt};
use crew_base::definition::Discovery;
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::model::{ModelEvent, ModelSpec, ThinkingLevel};
use crew_base::tool::{ToolOutcome, ToolProgress};

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
    /// An entry could not be written.
    AppendFailed {
        /// Whose.
        session: SessionId,
        /// The entry.
        entry: EntryId,
        /// Why, for people.
        error: String,
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
}
