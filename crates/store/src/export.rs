//! Exports of a session: a self-contained page and a file of one branch
//! (`host.md` 2.8.10, 2.6.7).
//!
//! Shows the raw entries, not the model's context: omitted attempts, summarised
//! history and other branches stay visible. Everything a session holds is
//! untrusted and reaches a page only through the escaping of `markup`. Memory is
//! bounded by the index and the longest line. Must never change a session. Read
//! `page` first, then `transcript`.

mod call;
mod card;
mod children;
mod entry;
mod jsonl;
mod markup;
mod message;
mod page;
mod survey;
mod task;
mod transcript;
mod view;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crew_base::id::EntryId;
use crew_base::time::Time;

use crate::error::{Error, Result, io_error};
use crate::paths;
use crate::session::log::SessionLog;
use view::{Scanned, View};

/// What a page shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportOptions {
    /// Appends the transcripts of the session's children, linked from the calls
    /// that spawned them.
    pub children: bool,
    /// Where the active branch ends; `None` means the last entry of the file.
    pub leaf: Option<EntryId>,
}

/// Writes a session as one page that needs nothing else: no script, no file, no
/// network (`host.md` 2.8.10). The active branch is shown in full, other
/// branches and all other entries folded (2.6.7). Fails with [`Error::Io`] when
/// the session cannot be read or `out` not be written.
pub fn html(log: &SessionLog, options: &ExportOptions, out: &mut dyn Write) -> Result<()> {
    let mut out = BufWriter::new(out);
    let written = of_log(log, options, &mut out).and_then(|()| Ok(out.flush()?));
    written.map_err(|failure| failure.named(Path::new(STREAM)))
}

/// Writes the active branch as a session file of its own: the header with a new
/// time and without a parent, unknown fields kept, then the branch that ends at
/// `leaf` (`None` is the last entry), chained by `parentId`; lines are copied
/// byte for byte otherwise (`host.md` 2.8.10, 2.7.12).
pub fn jsonl(
    log: &SessionLog,
    leaf: Option<&EntryId>,
    created: Time,
    out: &mut dyn Write,
) -> Result<()> {
    let mut out = BufWriter::new(out);
    let written = jsonl::write(log, leaf, created, &mut out).and_then(|()| Ok(out.flush()?));
    written.map_err(|failure| failure.named(Path::new(STREAM)))
}

/// As [`html()`], into a file that appears whole or not at all: a temporary file
/// beside it, then a rename. Follows the umask (`product.md` P-14a); an existing
/// file keeps its mode and a link its place. Creates no folders; refuses a
/// folder and the session's own file ([`Error::Exists`]).
pub fn html_to_file(log: &SessionLog, options: &ExportOptions, path: &Path) -> Result<()> {
    to_file(log.path(), path, |out| of_log(log, options, out))
}

/// As [`html_to_file`], for a session file that is only read: it is neither
/// locked, repaired nor migrated. [`Error::NotASession`] when it is none.
pub fn file_to_html(session: &Path, options: &ExportOptions, path: &Path) -> Result<()> {
    let scanned = Scanned::open(session)?;
    to_file(Some(session), path, |out| page::write(scanned.view()?, Some(session), options, out))
}

fn of_log(log: &SessionLog, options: &ExportOptions, out: &mut dyn Write) -> Done {
    page::write(View::of_log(log)?, log.path(), options, out)
}

/// As [`jsonl()`], into a file under the terms of [`html_to_file`].
pub fn jsonl_to_file(
    log: &SessionLog,
    leaf: Option<&EntryId>,
    created: Time,
    path: &Path,
) -> Result<()> {
    to_file(log.path(), path, |out| jsonl::write(log, leaf, created, out))
}

/// Names the page of a session file, for the current directory
/// (`host.md` 2.8.10).
pub fn default_name(session_file: &Path) -> String {
    let stem = session_file.file_stem().unwrap_or_default();
    format!("crew-session-{}.html", stem.to_string_lossy())
}

/// What stopped an export.
enum Failure {
    /// A session could not be read.
    Read(Error),
    /// The target could not be written.
    Write(io::Error),
}

/// How the parts of an export end.
type Done = std::result::Result<(), Failure>;

impl Failure {
    fn named(self, target: &Path) -> Error {
        match self {
            Failure::Read(error) => error,
            Failure::Write(source) => io_error("write", target)(source),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Read(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Write(error)
    }
}

fn to_file(
    session: Option<&Path>,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Done,
) -> Result<()> {
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
        return Err(io_error("write", path)(io::ErrorKind::IsADirectory.into()));
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if existing.is_some() && session.is_some_and(|own| paths::resolved(own) == target) {
        return Err(Error::Exists { path: path.to_owned() });
    }
    // A pipe or a terminal cannot be replaced by a rename.
    if existing.as_ref().is_some_and(|file| !file.is_file()) {
        let file = OpenOptions::new().write(true).open(path).map_err(io_error("write", path))?;
        return fill(&file, write).map_err(|failure| failure.named(path));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".crew-").suffix(".tmp");
    let made = with_umask(&mut builder).tempfile_in(folder.unwrap_or(Path::new(".")));
    let temporary = made.map_err(io_error("create", path))?;
    fill(temporary.as_file(), write).map_err(|failure| failure.named(path))?;
    if let Some(existing) = existing {
        let kept = temporary.as_file().set_permissions(existing.permissions());
        kept.map_err(io_error("write", path))?;
    }
    temporary.as_file().sync_all().map_err(io_error("write", path))?;
    temporary.persist(&target).map_err(|failed| io_error("write", path)(failed.error))?;
    Ok(())
}

fn fill(file: &File, write: impl FnOnce(&mut dyn Write) -> Done) -> Done {
    let mut writer = BufWriter::new(file);
    write(&mut writer)?;
    Ok(writer.flush()?)
}

/// Temporary files are private unless told otherwise; the system takes the
/// umask off this mode.
#[cfg(unix)]
fn with_umask<'a, 'b, 'c>(
    builder: &'a mut tempfile::Builder<'b, 'c>,
) -> &'a mut tempfile::Builder<'b, 'c> {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn with_umask<'a, 'b, 'c>(
    builder: &'a mut tempfile::Builder<'b, 'c>,
) -> &'a mut tempfile::Builder<'b, 'c> {
    builder
}

/// What errors call a target that has no path.
const STREAM: &str = "the export";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_after_its_session_file() {
        // host.md 2.8.10
        let check =
            |file: &str, expected: &str| assert_eq!(default_name(Path::new(file)), expected);
        check(
            "/s/2026-11-30T13-43-03-766Z_01a2.jsonl",
            "crew-session-2026-11-30T13-43-03-766Z_01a2.html",
        );
        check("a.b.jsonl", "crew-session-a.b.html");
        check("plain", "crew-session-plain.html");
    }
}
