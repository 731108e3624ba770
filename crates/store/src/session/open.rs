//! Loads a session file: repair of its end, migration of old versions, one
//! pass, and the context at its leaf (`host.md` 2.2.5 to 2.2.8).

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use crew_base::definition::Warning;
use crew_base::entry::{Header, SESSION_VERSION};

use super::log::{Plan, SessionLog};
use super::migrate;
use super::project::Projection;
use super::scan::{Scan, scan};
use super::write::Writer;
use crate::error::{Error, Result, io_error};

/// Bytes read from a session file at once.
const READ_BYTES: usize = 512 * 1024;

/// A loaded session.
#[derive(Debug)]
pub struct Opened {
    /// The session, ready for appending.
    pub log: SessionLog,
    /// The context at the last entry, which is the leaf (`host.md` 2.2.7).
    pub context: Projection,
    /// Damage that was skipped.
    pub warnings: Vec<Warning>,
}

/// Opens a session by path (`host.md` 2.2.5). A missing file gives a new session
/// bound to that path, an empty one gets `fresh` as its header, a file that is
/// no session is refused untouched. With `lock`, a session that another process
/// of ours holds is refused as [`Error::InUse`] (12.8).
pub fn open(path: &Path, fresh: Header, lock: bool) -> Result<Opened> {
    let begin = |header| SessionLog::create(Plan { header, path: Some(path.to_owned()), lock });
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Opened::new(begin(fresh))),
        Err(error) => return Err(io_error("read", path)(error)),
        Ok(file) if file.is_dir() => {
            return Err(io_error("read", path)(ErrorKind::IsADirectory.into()));
        }
        Ok(file) if file.len() == 0 => {
            let mut writer = Writer::open(path, lock)?;
            let log = begin(fresh);
            let header = (log.header().clone(), log.header_line().to_owned());
            writer.append(header.1.clone()).map_err(io_error("write", path))?;
            let index = log.index().clone();
            let log = SessionLog::opened(header, path.to_owned(), index, writer, lock);
            return Ok(Opened::new(log));
        }
        Ok(_) => {}
    }
    // Held before the pass, so that no writer of ours can append behind it.
    let mut writer = Writer::open(path, lock)?;
    let mut found = scan_file(path)?;
    let version = found.header.as_ref().map(|(header, _)| header.version);
    if version.ok_or_else(|| not_a_session(path))? < SESSION_VERSION {
        migrate::rewrite(path)?;
        writer = Writer::open(path, lock)?;
        found = scan_file(path)?;
    }
    if !found.ends_with_feed {
        writer.feed().map_err(io_error("write", path))?;
    }
    let header = found.header.ok_or_else(|| not_a_session(path))?;
    let log = SessionLog::opened(header, path.to_owned(), found.index, writer, lock);
    let context = log.project(log.last())?;
    Ok(Opened { log, context, warnings: found.warnings })
}

impl Opened {
    fn new(log: SessionLog) -> Opened {
        Opened { log, context: Projection::default(), warnings: Vec::new() }
    }
}

fn scan_file(path: &Path) -> Result<Scan> {
    let file = File::open(path).map_err(io_error("read", path))?;
    let mut reader = BufReader::with_capacity(READ_BYTES, file);
    scan(path, &mut reader).map_err(io_error("read", path))
}

fn not_a_session(path: &Path) -> Error {
    Error::NotASession { path: path.to_owned() }
}
