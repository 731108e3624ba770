//! Tools as models see them and as sessions record them.

use serde::{Deserialize, Serialize};

use crate::json::Raw;
use crate::message::{Block, Usage};

/// A tool offered to a model (`host.md` 2.7.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// Unique name.
    pub name: String,
    /// What it does, in our words.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub parameters: Raw,
    /// Kept, not used (`host.md` 4.1.10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Raw>,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// For faces, never for models.
    pub details: Option<Raw>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Asks that the run ends after this batch (`host.md` 3.3.12).
    pub terminate: bool,
    /// What the tool itself spent at providers; none if nothing was reported
    /// (`task.md` OBS-5).
    pub usage: Option<Usage>,
}

impl ToolOutcome {
    /// A good result of one text.
    pub fn text(text: impl Into<String>) -> ToolOutcome {
        ToolOutcome {
            content: vec![Block::text(text)],
            details: None,
            is_error: false,
            terminate: false,
            usage: None,
        }
    }

    /// A failure of one text.
    pub fn error(text: impl Into<String>) -> ToolOutcome {
        ToolOutcome { is_error: true, ..ToolOutcome::text(text) }
    }

    /// Text of all text blocks, joined by line feeds.
    pub fn joined_text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// What a running tool shows so far (`host.md` 3.2 `tool_execution_update`).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolProgress {
    /// The result as it stands.
    pub content: Vec<Block>,
    /// For faces.
    pub details: Option<Raw>,
}
