//! A session as an export reads it: index and lines, of an open log or of a file
//! that is only looked at.
//!
//! Must never repair, migrate or lock what it reads.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, Header, read_line};

use crate::error::{Error, Result, io_error};
use crate::session::index::{Index, Indexed};
use crate::session::log::SessionLog;
use crate::session::scan;

/// What an export needs of one session.
pub(super) struct View<'a> {
    pub(super) header: &'a Header,
    pub(super) index: &'a Index,
    read: Box<ReadLine<'a>>,
}

/// Reads the line of an entry.
type ReadLine<'a> = dyn FnMut(&Indexed) -> Result<String> + 'a;

/// A session file that was scanned without opening it for appending.
pub(super) struct Scanned {
    pub(super) path: PathBuf,
    header: Header,
    index: Index,
}

impl<'a> View<'a> {
    pub(super) fn of_log(log: &'a SessionLog) -> Result<View<'a>> {
        let mut lines = log.lines()?;
        let read = move |entry: &Indexed| match lines.text(entry) {
            Ok(line) => Ok(line.into_owned()),
            Err(error) => Err(log.read_error()(error)),
        };
        Ok(View { header: log.header(), index: log.index(), read: Box::new(read) })
    }

    /// The entry at a place, or its line when it is no entry we can read.
    pub(super) fn entry(&mut self, place: usize) -> Result<std::result::Result<Entry, String>> {
        let line = self.line(place)?;
        Ok(read_line(&line).map_err(|_| line))
    }

    /// The line at a place; bytes that are no UTF-8 become U+FFFD.
    pub(super) fn line(&mut self, place: usize) -> Result<String> {
        (self.read)(&self.index.entries()[place])
    }
}

impl Scanned {
    /// Scans a file; one of an older version shows no entries.
    pub(super) fn open(path: &Path) -> Result<Scanned> {
        let file = File::open(path).map_err(io_error("read", path))?;
        let mut reader = BufReader::new(file);
        let found = scan::scan(path, &mut reader).map_err(io_error("read", path))?;
        let (header, _) =
            found.header.ok_or_else(|| Error::NotASession { path: path.to_owned() })?;
        Ok(Scanned { path: path.to_owned(), header, index: found.index })
    }

    pub(super) fn view(&self) -> Result<View<'_>> {
        let mut file = File::open(&self.path).map_err(io_error("read", &self.path))?;
        let read = move |entry: &Indexed| {
            let mut line = vec![0; entry.len];
            let done = file.seek(SeekFrom::Start(entry.start));
            done.and_then(|_| file.read_exact(&mut line)).map_err(io_error("read", &self.path))?;
            Ok(String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
        };
        Ok(View { header: &self.header, index: &self.index, read: Box::new(read) })
    }
}
