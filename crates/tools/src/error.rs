//! Why a tool failed, by cause. Words for the model come from `Display`;
//! nothing here prints or retries.

use std::io;

use crew_base::json::Raw;
use crew_base::tool::ToolOutcome;
use crew_task::address::Refusal;

use crate::truncate::size;

/// Causes of a failed call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call was cancelled (`host.md` 4.1.8).
    #[error("The operation was aborted.")]
    Aborted,
    /// The system refused something about a file (`host.md` 4.4.8).
    #[error("{path}: {} ({source})", code(source))]
    File {
        /// As the model wrote it.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A folder stands where a file is needed.
    #[error("{path} is a directory. Use ls to see what is in it.")]
    IsDirectory {
        /// As the model wrote it.
        path: String,
    },
    /// A file stands where a folder is needed.
    #[error("{path} is not a directory.")]
    NotDirectory {
        /// As the model wrote it.
        path: String,
    },
    /// A pipe, socket or device stands where a regular file is needed.
    #[error("{path} is not a regular file.")]
    NotRegular {
        /// As the model wrote it.
        path: String,
    },
    /// A pipe or device gave nothing for too long.
    #[error("{path} gave no data for {seconds} s.")]
    Silent {
        /// As the model wrote it.
        path: String,
        /// How long was waited.
        seconds: u64,
    },
    /// `offset` lies behind the end (`host.md` 4.2.1).
    #[error("Offset {offset} is past the end: the file has {total} lines.")]
    OffsetPastEnd {
        /// As asked.
        offset: u64,
        /// Lines of the file.
        total: u64,
    },
    /// Somebody else changed the file (`product.md` P-14).
    #[error(
        "{path} was changed by somebody else since this session last read or wrote it. \
         Nothing was written. Read the file again, then decide what to write."
    )]
    Changed {
        /// As the model wrote it.
        path: String,
    },
    /// More than the tool holds in memory.
    #[error("{path} is too large for this tool: {}, at most {} are possible.", size(*bytes), size(*bytes_max))]
    TooLarge {
        /// As the model wrote it.
        path: String,
        /// What it is.
        bytes: u64,
        /// What is possible.
        bytes_max: u64,
    },
    /// An edit that cannot be made; nothing was written.
    #[error("{path}: {problem}")]
    Edit {
        /// As the model wrote it.
        path: String,
        /// What is wrong.
        problem: EditError,
    },
    /// An `agent://` address gives nothing (`task.md` ART-8).
    #[error("{0}.")]
    Address(Refusal),
    /// A pattern that does not compile.
    #[error("The pattern is not valid: {reason}")]
    Pattern {
        /// What the engine said.
        reason: String,
    },
    /// `timeout` out of range (`host.md` 4.3.3).
    #[error(
        "timeout must be more than 0 and at most {TIMEOUT_SECONDS_MAX} seconds, not {seconds}."
    )]
    Timeout {
        /// As asked.
        seconds: f64,
    },
    /// The working directory of the session is gone.
    #[error("The working directory does not exist: {path}")]
    NoWorkingDirectory {
        /// The folder.
        path: String,
    },
    /// The configured shell is missing.
    #[error("The configured shell does not exist: {path}")]
    NoShell {
        /// Setting `shellPath`.
        path: String,
    },
    /// The shell could not be started.
    #[error("The command could not be started: {} ({source})", code(source))]
    Start {
        /// What the system said.
        source: io::Error,
    },
    /// The host is ending and starts nothing any more.
    #[error("The operation was aborted: the host is ending.")]
    Closed,
    /// The tool itself broke.
    #[error("The tool failed inside.")]
    Internal,
}

/// Why edits do not apply (`host.md` 4.4.3). Indices count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No edit was given.
    #[error("edits is empty. Give at least one.")]
    None,
    /// An edit with an empty `oldText`.
    #[error("{}oldText is empty. Give the text to replace.", at(*index))]
    Empty {
        /// `None` when it is the only edit.
        index: Option<usize>,
    },
    /// The text does not occur.
    #[error(
        "{}oldText was not found. It must equal the text of the file, blanks and line breaks \
         included; read the file again.{}", at(*index), near(*line)
    )]
    NotFound {
        /// `None` when it is the only edit.
        index: Option<usize>,
        /// Where its first line stands, counted from 1.
        line: Option<usize>,
    },
    /// The text occurs more than once.
    #[error("{}oldText occurs {count} times. Add lines around it until it is unique.", at(*index))]
    Ambiguous {
        /// `None` when it is the only edit.
        index: Option<usize>,
        /// How often.
        count: usize,
    },
    /// Two edits want the same text.
    #[error("edits[{first}] and edits[{second}] overlap. Make one edit of them.")]
    Overlap {
        /// The one that starts first.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The result equals the original.
    #[error("The edits change nothing.")]
    Unchanged,
    /// A line to be rewritten is not valid UTF-8.
    #[error(
        "Line {line} is not valid UTF-8 and oldText matches it only loosely. Use a shell command."
    )]
    NotText {
        /// Counted from 1.
        line: usize,
    },
}

/// Longest time limit of a command, in seconds (`host.md` 4.3.3).
pub(crate) const TIMEOUT_SECONDS_MAX: f64 = 2_147_483.647;

impl Error {
    /// Names the file of a system error.
    pub(crate) fn file(path: &str, source: io::Error) -> Error {
        Error::File { path: path.to_owned(), source }
    }

    /// The failed result: a text, and `{}` as details (`host.md` 3.3.10).
    pub fn outcome(&self) -> ToolOutcome {
        failure(self.to_string())
    }
}

/// A failed result of one text with empty details.
pub(crate) fn failure(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { details: Some(Raw::empty_object()), ..ToolOutcome::error(text) }
}

fn at(index: Option<usize>) -> String {
    index.map_or(String::new(), |i| format!("edits[{i}]: "))
}

fn near(line: Option<usize>) -> String {
    line.map_or(String::new(), |n| {
        format!(" Its first line stands at line {n}, the text after it differs.")
    })
}

/// The system's short name of an error, for example `ENOENT`.
pub(crate) fn code(error: &io::Error) -> String {
    use rustix::io::Errno;
    const NAMES: [(Errno, &str); 21] = [
        (Errno::NOENT, "ENOENT"),
        (Errno::ACCESS, "EACCES"),
        (Errno::PERM, "EPERM"),
        (Errno::ISDIR, "EISDIR"),
        (Errno::NOTDIR, "ENOTDIR"),
        (Errno::ROFS, "EROFS"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::DQUOT, "EDQUOT"),
        (Errno::LOOP, "ELOOP"),
        (Errno::NAMETOOLONG, "ENAMETOOLONG"),
        (Errno::MFILE, "EMFILE"),
        (Errno::NFILE, "ENFILE"),
        (Errno::BUSY, "EBUSY"),
        (Errno::IO, "EIO"),
        (Errno::TXTBSY, "ETXTBSY"),
        (Errno::FBIG, "EFBIG"),
        (Errno::INVAL, "EINVAL"),
        (Errno::NXIO, "ENXIO"),
        (Errno::TOOBIG, "E2BIG"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::NOMEM, "ENOMEM"),
    ];
    let Some(raw) = error.raw_os_error() else {
        return error.kind().to_string();
    };
    NAMES
        .iter()
        .find(|(errno, _)| errno.raw_os_error() == raw)
        .map_or_else(|| format!("error {raw}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named_with_the_code_of_the_system() {
        // host.md 4.4.8
        let text = Error::file("a.txt", io::Error::from_raw_os_error(2)).to_string();
        assert!(text.starts_with("a.txt: ENOENT"), "{text}");
    }

    #[test]
    fn a_thrown_failure_has_empty_details() {
        // host.md 3.3.10
        let outcome = Error::Aborted.outcome();
        assert!(outcome.is_error && outcome.joined_text().contains("aborted"));
        assert_eq!(outcome.details, Some(Raw::empty_object()));
    }
}
