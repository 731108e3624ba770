//! Prepares sessions: their file, model, prompt and tools.
//!
//! Everything here may block on files and runs on a blocking thread; nothing
//! here starts work. Read `workspace::prepare` for owners and children.

mod prepare;
mod resources;
mod selection;
mod task;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crew_base::definition::Discovery;
use crew_base::id::SessionId;
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::Opened;
use crew_engine::api::task::Approval;
use crew_model::auth::Credentials;
use crew_model::catalog::Catalog;
use crew_store::definitions::{Catalog as Definitions, Folders, Found};
use crew_store::paths::{SessionFolder, project_dir};
use crew_store::session::log::SessionLog;
use crew_store::settings::typed::Settings;
use crew_store::trust::Trust;
use crew_tools::{ShellConfig, Toolbox};

/// Where sessions are kept.
#[derive(Clone, Debug)]
pub enum SessionPlace {
    /// In files of this folder.
    Folder(SessionFolder),
    /// In memory only.
    Memory,
}

/// Which model the person wants (`host.md` 1.7).
#[derive(Clone, Debug, Default)]
pub struct ModelWish {
    /// `--model`.
    pub model: Option<String>,
    /// `--provider`.
    pub provider: Option<String>,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// `--models`, else `enabledModels`.
    pub scope: Vec<String>,
}

/// Which tools the person wants (`host.md` 6.2.2, `product.md` P-14g).
#[derive(Clone, Debug, Default)]
pub struct ToolWish {
    /// `--tools` with plain names or `*` patterns: the owner's allowlist.
    pub only: Option<Vec<String>>,
    /// `--tools` with `+name` and `-name` only.
    pub changes: Vec<String>,
    /// `--exclude-tools`: binds owner and children.
    pub exclude: Vec<String>,
    /// `--no-tools`.
    pub no_tools: bool,
    /// `--no-builtin-tools`.
    pub no_builtin: bool,
}

/// What the person says about the prompt (`host.md` 5).
#[derive(Clone, Debug, Default)]
pub struct PromptWish {
    /// `--system-prompt`.
    pub system: Option<String>,
    /// `--append-system-prompt`.
    pub append: Vec<String>,
    /// `--no-context-files`.
    pub no_context_files: bool,
    /// `--skill`.
    pub skills: Vec<String>,
    /// `--no-skills`.
    pub no_skills: bool,
}

/// Everything that sessions are prepared from.
pub struct WorkspaceConfig {
    /// Working directory of new sessions, absolute.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// `host.md` 1.1.1.
    pub agent_dir: PathBuf,
    /// The decision about the project.
    pub trust: Trust,
    /// In force at start.
    pub settings: Arc<Settings>,
    /// All models.
    pub catalog: Arc<Catalog>,
    /// Keys of providers.
    pub credentials: Arc<Credentials>,
    /// The built-in tools.
    pub toolbox: Arc<Toolbox>,
    /// Where sessions are kept.
    pub sessions: SessionPlace,
    /// Model options.
    pub model: ModelWish,
    /// Tool options.
    pub tools: ToolWish,
    /// Prompt options.
    pub prompt: PromptWish,
    /// Folder for what need not last.
    pub tmp: PathBuf,
    /// Variables that every command gets beside those of its session.
    pub command_env: Vec<(String, String)>,
    /// Somebody answers the questions of owners (`task.md` OBS-3).
    pub can_ask: bool,
    /// Limits of the output that `task` returns.
    pub task_output: TaskOutput,
    /// How deep an owner of this process stands, as the engine is told too.
    pub depth: u32,
}

/// Limits of the output that `task` returns, where they are not the usual ones
/// (`task.md` 1.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskOutput {
    /// In bytes.
    pub bytes_max: Option<usize>,
    /// In lines.
    pub lines_max: Option<usize>,
}

/// Prepares sessions and finds definitions.
pub struct Workspace {
    config: WorkspaceConfig,
    definitions: Mutex<Definitions>,
    /// Warnings about settings that are read again and again.
    told: Mutex<BTreeSet<String>>,
}

/// What a session works with.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Its working directory.
    pub(crate) cwd: PathBuf,
    /// The directory whose project files count: not the copy that an isolated
    /// child works in.
    pub(crate) project: PathBuf,
    /// What its tools may do unasked; read when it was opened.
    pub(crate) approval: Arc<Approval>,
    /// What prompts are made from, as the owner found it when it was opened;
    /// its children see the same (`crew.md` ISO-5).
    resources: Arc<resources::Resources>,
}

/// What a child takes over from its owner.
pub(crate) struct Parent {
    /// The owner's session file.
    pub(crate) file: Option<PathBuf>,
    /// The owner's scope.
    pub(crate) scope: Arc<Scope>,
}

/// A prepared session.
pub(crate) struct Prepared {
    pub(crate) opened: Opened,
    pub(crate) log: SessionLog,
    pub(crate) scope: Arc<Scope>,
    pub(crate) is_owner: bool,
    pub(crate) warnings: Vec<String>,
}

/// Tells a program that a command starts how deep it stands (C064).
pub const DEPTH_VARIABLE: &str = "CREW_DEPTH";

impl Scope {
    /// Variables for commands (`host.md` 1.2.6).
    pub(crate) fn tool_env(
        &self,
        session: &SessionId,
        file: Option<&Path>,
        model: Option<&(Arc<ModelSpec>, ThinkingLevel)>,
    ) -> Vec<(String, String)> {
        let mut values = vec![("SESSION_ID", session.to_string())];
        if let Some(file) = file {
            values.push(("SESSION_FILE", file.to_string_lossy().into_owned()));
        }
        if let Some((model, thinking)) = model {
            values.push(("PROVIDER", model.provider.clone()));
            values.push(("MODEL", model.id.clone()));
            values.push(("REASONING_LEVEL", thinking.word().to_owned()));
        }
        let named = |prefix: &str| -> Vec<(String, String)> {
            values.iter().map(|(name, value)| (format!("{prefix}_{name}"), value.clone())).collect()
        };
        [named("PI"), named("CREW")].concat()
    }
}

impl Workspace {
    /// A workspace; reads nothing yet.
    pub fn new(config: WorkspaceConfig) -> Workspace {
        Workspace { config, definitions: Mutex::default(), told: Mutex::default() }
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.config.toolbox
    }

    pub(crate) fn tmp(&self) -> &Path {
        &self.config.tmp
    }

    /// Variables of a command of a session.
    pub(crate) fn command_env(&self) -> &[(String, String)] {
        &self.config.command_env
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.config.home.clone()
    }

    pub(crate) fn shell(&self) -> ShellConfig {
        let settings = &self.config.settings;
        ShellConfig {
            path: settings.shell_path.as_ref().map(PathBuf::from),
            prefix: settings.shell_command_prefix.clone(),
            bin_dir: Some(self.config.agent_dir.join("bin")),
        }
    }

    /// Whether the project's gated resources may be used in a directory. Trust
    /// that was only implied, because there were none, covers none that appear
    /// later, so it comes to the same as no trust (`product.md` P-14d).
    fn trusts(&self, cwd: &Path) -> bool {
        match self.config.trust {
            Trust::Trusted => cwd == self.config.cwd,
            Trust::Implied | Trust::Untrusted | Trust::Ask => false,
        }
    }

    /// The definitions of this moment (`crew.md` CAT-8).
    pub(crate) fn discover(&self, scope: &Scope) -> Discovery {
        self.find_definitions(&scope.project).discovery
    }

    fn find_definitions(&self, project: &Path) -> Found {
        let folders =
            Folders { user_dir: self.config.agent_dir.clone(), project_dir: project_dir(project) };
        let trusted = self.trusts(project);
        match self.definitions.lock() {
            Ok(mut definitions) => definitions.discover(&folders, trusted),
            // A panic while holding the lock leaves a cache that is not used again.
            Err(_) => Definitions::default().discover(&folders, trusted),
        }
    }
}
