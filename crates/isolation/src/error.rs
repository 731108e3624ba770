//! The one error type of this crate: variants by cause, with their data.
//!
//! Its texts reach a model as the reason of a failed call; names in them are
//! safe to show.

use std::io;
use std::path::{Path, PathBuf};

use crate::bytes::shown_path;

/// Why a copy could not be made or looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Isolation needs a repository (`task.md` ISO-2).
    #[error(
        "{} is not in the working tree of a git repository; run `git init` there, or call without \
         `isolated`",
        shown_path(path)
    )]
    NotARepository {
        /// The working directory.
        path: PathBuf,
    },
    /// The program `git` is missing or cannot be started.
    #[error("the program `git` cannot be started: {source}")]
    NoGit {
        /// What the system said.
        source: io::Error,
    },
    /// Git refused.
    #[error("git could not {action}: {said}")]
    Git {
        /// A verb with its object, in English.
        action: &'static str,
        /// What git said, safe to show.
        said: String,
    },
    /// More uncommitted content than a baseline may have (`task.md` ISO-2).
    #[error(
        "{} has at least {bytes} bytes of uncommitted content, more than the {bytes_max} that an \
         isolated copy takes along; commit or ignore some of it",
        shown_path(path)
    )]
    TooLarge {
        /// The repository.
        path: PathBuf,
        /// What was counted before counting stopped.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", shown_path(path))]
    Io {
        /// A verb: `read`, `write`, `create`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A path that a child must be told is not valid text.
    #[error("{} is not valid text", shown_path(path))]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The caller cancelled; nothing was kept and nothing applied.
    #[error("cancelled")]
    Cancelled,
    /// No copy has this handle.
    #[error("there is no isolated copy {handle}")]
    UnknownCopy {
        /// As given to the caller by `prepare`.
        handle: u64,
    },
}

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Makes an [`Error::Io`] of what the system said.
pub(crate) fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Io { action, path: path.to_owned(), source }
}
