//! What the crew wants done, and what it tells.

use std::sync::Arc;

use serde_json::{Value, json};

use crew_base::definition::Definition;
use crew_base::entry::EntryBody;
use crew_base::id::{SessionId, SubagentId};
use crew_base::message::Usage;
use crew_base::model::ModelSpec;
use crew_base::session::{DeliveryId, ResultMessage};
use crew_cycle::Facts;

use crate::roster::Status;

/// An output of the crew, in the order it must be carried out.
#[expect(clippy::large_enum_variant, reason = "few in a step, and moved once")]
#[derive(Clone, Debug)]
pub enum Effect {
    /// Prepare a child session.
    Open(Box<OpenChild>),
    /// Start the next part of a cycle in a child.
    Prompt {
        /// The child session.
        session: SessionId,
        /// The user prompt, exactly.
        text: String,
    },
    /// Stop a child's work and dispose of it.
    Close {
        /// The child session.
        session: SessionId,
        /// Left in its file when it ended without a result (LIFE-5).
        ending: Option<Ending>,
    },
    /// Hand results to an attached owner (DEL-5).
    Deliver {
        /// The owner session.
        owner: SessionId,
        /// In order.
        results: Vec<ResultMessage>,
    },
    /// Append an entry to an attached owner that starts nothing.
    Note {
        /// The owner session.
        owner: SessionId,
        /// The entry.
        body: EntryBody,
        /// The delivery it records, if any.
        delivery: Option<DeliveryId>,
    },
    /// Tell the faces.
    Update(Update),
}

/// What is needed to prepare a child session (HOST-8).
#[derive(Clone, Debug)]
pub struct OpenChild {
    /// Id of the new session.
    pub session: SessionId,
    /// The subagent it runs.
    pub subagent: SubagentId,
    /// Its owner, for working directory, trust and parent link.
    pub owner: SessionId,
    /// The role.
    pub definition: Arc<Definition>,
    /// Session name (ISO-9).
    pub title: String,
    /// The owner's model at spawn; used only when the definition names none
    /// (MOD-3).
    pub owner_model: Option<Arc<ModelSpec>>,
}

/// What is kept of an ending without a result (`product.md` P-11).
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// `error` or `aborted`.
    pub status: Status,
    /// Error text or reason.
    pub text: String,
    /// Last text and tools run.
    pub facts: Facts,
    /// Working time of all cycles.
    pub worked_ms: u64,
}

impl Ending {
    /// The data of a `crew.ending` entry and the shared part of cards.
    pub fn json(&self) -> Value {
        let name = if self.status == Status::Aborted { "reason" } else { "error" };
        json!({
            "status": self.status.word(),
            name: self.text,
            "lastText": self.facts.last_text,
            "toolsRun": self.facts.tools_run,
            "workedMs": self.worked_ms,
        })
    }
}

/// What happened to one subagent (`product.md` P-20: it names all that a
/// client needs to show it).
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The owner session.
    pub owner: SessionId,
    /// The child session.
    pub session: SessionId,
    /// The subagent.
    pub subagent: SubagentId,
    /// Name of its definition.
    pub definition: String,
    /// Its brief.
    pub brief: String,
    /// `provider/model-id`, once known.
    pub model: Option<String>,
    /// Its status now.
    pub status: Status,
    /// What happened.
    pub kind: UpdateKind,
}

/// Kinds of [`Update`].
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateKind {
    /// It exists.
    Spawned,
    /// A new cycle began after an answer of the owner.
    Responded,
    /// A tool started in it.
    Activity {
        /// Shown name of the tool.
        tool: String,
        /// What it works on, redacted.
        target: String,
    },
    /// A cycle settled.
    Settled {
        /// Report, error or reason.
        text: String,
        /// Its tokens and cost so far.
        usage: Usage,
    },
    /// A result stands in the owner's record; for one whose subagent is gone
    /// (an error) it comes after `Closed`.
    Delivered,
    /// It is gone.
    Closed,
}
