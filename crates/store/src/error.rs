//! The one error type of this crate: variants by cause, with their data.
//!
//! Never holds a finished sentence for users; `cli::error` words it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// A verb: `read`, `write`, `create`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The first object of the file is no session header (`host.md` 2.2.5).
    #[error("{} is not a session", path.display())]
    NotASession {
        /// The file, left untouched.
        path: PathBuf,
    },
    /// A new session was to be written where a file already is.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process of ours has the session open (`host.md` 12.8).
    #[error("{} is open in another process", path.display())]
    InUse {
        /// The session file.
        path: PathBuf,
    },
    /// A session that is not on disk yet cannot be forked (`host.md` 2.8.6).
    #[error("the session has not been saved yet")]
    NotSaved,
    /// No entry of that id in this session.
    #[error("no entry {id}")]
    UnknownEntry {
        /// The id that was asked for.
        id: String,
    },
    /// The file is not valid JSON of the expected shape; it was not written.
    #[error("{} does not parse: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else holds the lock directory (`host.md` 1.3.4).
    #[error("{} is locked", path.display())]
    Locked {
        /// The lock directory.
        path: PathBuf,
    },
    /// Project settings of an untrusted project (`host.md` 5.6.5).
    #[error("project settings of an untrusted project are not written")]
    Untrusted,
}

/// What the store's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// Names the action and the path of a failed system call.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
