//! Subagent definitions as discovery hands them to the crew (`crew.md` 10).

use std::sync::Arc;

use crate::model::ThinkingLevel;

/// A definition after overrides and tool deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Unique name, case-sensitive.
    pub name: String,
    /// What the role is for.
    pub description: String,
    /// Where it came from.
    pub source: Source,
    /// Its file, or a name for a bundled one.
    pub path: String,
    /// `provider/model-id` as configured, malformed ones too (CAT-16); `None`
    /// means the owner's model.
    pub model: Option<String>,
    /// `None` means the host's default for the model.
    pub thinking: Option<ThinkingLevel>,
    /// The resolved allowlist; never holds `crew_report` (CAT-29).
    pub tools: Vec<String>,
    /// `None` means all discovered skills.
    pub skills: Option<Vec<String>>,
    /// Automatic compaction in the child (CAT-18).
    pub compaction: bool,
    /// The role prompt, maybe empty.
    pub prompt: String,
}

/// Source of a definition, in falling priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// `<project-dir>/agents`.
    Project,
    /// `<user-dir>/agents`.
    User,
    /// In the binary.
    Bundled,
}

impl Source {
    /// The word used in results.
    pub fn word(self) -> &'static str {
        match self {
            Source::Project => "project",
            Source::User => "user",
            Source::Bundled => "bundled",
        }
    }
}

/// What one discovery found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discovery {
    /// By source priority, then by file name (TOOL-14); no shadowed ones.
    pub definitions: Vec<Arc<Definition>>,
    /// What was wrong, and where.
    pub warnings: Vec<Warning>,
    /// The two folders in which definitions can be placed (TOOL-16).
    pub folders: Vec<String>,
}

/// A problem in a file that did not stop anything else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The file or folder.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// The default tool set of a subagent, in order (CAT-23).
pub const DEFAULT_CHILD_TOOLS: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];
