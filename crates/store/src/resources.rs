//! Where skills and prompt templates come from, and the lists in settings that
//! add, exclude and force them (`host.md` 5.3.4, 5.7.1).
//!
//! Knows paths only; what a file means is with `skills` and `prompts`.

mod selection;

use std::path::{Path, PathBuf};

pub(crate) use selection::Selection;

/// Places and lists for one kind of resource, trust already decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// `.pi` of the working directory.
    pub project_dir: PathBuf,
    /// The agent directory.
    pub agent_dir: PathBuf,
    /// The user's home, for `~` and `~/.agents`; `None` leaves both out.
    pub home: Option<PathBuf>,
    /// Whether project sources may be used (`host.md` 5.6.5).
    pub trusted: bool,
    /// Whether more than the given paths is used: false with `--no-skills`.
    pub discover: bool,
    /// The list of the user's settings.
    pub user_list: Vec<String>,
    /// The list of the project's settings.
    pub project_list: Vec<String>,
    /// Paths of the command line, relative to the working directory.
    pub paths: Vec<String>,
}

/// Which source a resource came from, in falling priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A list in the project's settings.
    ProjectSettings,
    /// The folder in `.pi`.
    ProjectFolder,
    /// `.agents` of the working directory or above.
    ProjectAgents,
    /// A list in the user's settings.
    UserSettings,
    /// The folder in the agent directory.
    UserFolder,
    /// `~/.agents`.
    UserAgents,
    /// In the binary.
    Bundled,
    /// An option of the command line.
    CommandLine,
}

impl Origin {
    /// `project`, `user` or `temporary`, as `sourceInfo` names it (`host.md`
    /// 7.3.11).
    pub fn scope(self) -> &'static str {
        match self {
            Origin::ProjectSettings | Origin::ProjectFolder | Origin::ProjectAgents => "project",
            Origin::UserSettings | Origin::UserFolder | Origin::UserAgents | Origin::Bundled => {
                "user"
            }
            Origin::CommandLine => "temporary",
        }
    }

    /// `local`, `auto`, `builtin` or `cli`, as `sourceInfo` names it (`host.md`
    /// 7.3.11).
    pub fn kind(self) -> &'static str {
        match self {
            Origin::ProjectSettings | Origin::UserSettings => "local",
            Origin::ProjectFolder
            | Origin::ProjectAgents
            | Origin::UserFolder
            | Origin::UserAgents => "auto",
            Origin::Bundled => "builtin",
            Origin::CommandLine => "cli",
        }
    }
}

impl Sources {
    /// The user's settings list, read against the agent directory.
    pub(crate) fn user_selection(&self) -> Selection {
        Selection::read(&self.user_list, &self.agent_dir, self.home.as_deref())
    }

    /// The project's settings list, read against `.pi`.
    pub(crate) fn project_selection(&self) -> Selection {
        Selection::read(&self.project_list, &self.project_dir, self.home.as_deref())
    }

    /// A path of the command line, made absolute.
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        resolve(path, &self.cwd, self.home.as_deref())
    }
}

/// A path as a person writes it: `~` is the home, the rest relative to `base`.
fn resolve(path: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => base.join(path),
    }
}

/// A path for warnings and prompts.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Entries of a folder by the bytes of their names; none when it cannot be read.
pub(crate) fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_by(|a, b| {
        let bytes = |path: &PathBuf| path.as_os_str().as_encoded_bytes().to_vec();
        bytes(a).cmp(&bytes(b))
    });
    paths
}
