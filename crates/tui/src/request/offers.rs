//! What pickers offer: models and stored sessions.

use std::path::PathBuf;

use crew_engine::api::Status;

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOffer {
    /// `provider/id`.
    pub reference: String,
    /// Its name for people.
    pub name: String,
    /// Window and price.
    pub facts: String,
    /// Why it cannot be used, if it cannot.
    pub lacks: Option<String>,
    /// Whether it is the current one.
    pub is_current: bool,
    /// Whether it is the default.
    pub is_default: bool,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// No file sets it.
    Default,
    /// The person's file.
    User,
    /// The project's file, which wins and is not written here.
    Project,
}

/// A setting that can be changed by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOffer {
    /// Its dotted key.
    pub key: String,
    /// What it decides.
    pub what: String,
    /// Its value.
    pub value: String,
    /// All of its values, in the order keys go through.
    pub choices: Vec<String>,
    /// Who set it.
    pub origin: SettingOrigin,
}

/// A stored session that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOffer {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// Its name or its first words.
    pub title: String,
    /// Whether it has a name.
    pub is_named: bool,
    /// Its working directory with `~`.
    pub cwd: String,
    /// Milliseconds since its last message.
    pub age_ms: u64,
    /// Messages.
    pub messages: usize,
    /// What it cost with its subagents, in dollars.
    pub cost: f64,
    /// Text that searches look into.
    pub text: String,
    /// Whether it is the shown one.
    pub is_current: bool,
    /// Whether it came from another one by a fork.
    pub is_fork: bool,
    /// Its subagents.
    pub children: Vec<ChildOffer>,
}

/// A stored session of a subagent.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildOffer {
    /// Its file.
    pub path: PathBuf,
    /// Its name.
    pub title: String,
    /// How it ended, if its file says so.
    pub outcome: Option<Status>,
    /// Milliseconds since its last message.
    pub age_ms: u64,
    /// Messages.
    pub messages: usize,
    /// What it cost, in dollars.
    pub cost: f64,
}
