//! One session: appends entries, knows what stands where, reads it back.
//!
//! Before the first prompt, and for sessions without a file, the lines lie in
//! memory in exactly the bytes a file would hold. Never chooses parents or ids.

use std::fs::File;
use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, Header, read_line};
use crew_base::id::EntryId;

use super::index::{Index, Indexed, Kind};
use super::project::{Projection, project};
use super::read::{Lines, Source};
use super::scan;
use super::write::Writer;
use crate::error::{Error, Result, io_error};

/// A new session (`host.md` 2.2.2).
#[derive(Clone, Debug)]
pub struct Plan {
    /// First line of the file.
    pub header: Header,
    /// Where the file will be; `None` keeps the session in memory for good.
    pub path: Option<PathBuf>,
    /// Whether to hold the file against other processes of ours
    /// (`host.md` 12.8).
    pub lock: bool,
}

/// A session that is open for appending.
#[derive(Debug)]
pub struct SessionLog {
    header: Header,
    header_line: String,
    path: Option<PathBuf>,
    lock: bool,
    index: Index,
    lines: Place,
}

/// Where the lines are.
#[derive(Debug)]
enum Place {
    /// In memory: the bytes of the file to be.
    Memory(Vec<u8>),
    /// In the file.
    File(Writer),
}

impl SessionLog {
    /// Begins a session; nothing is on disk before its first user or assistant
    /// message (`host.md` 2.2.2).
    pub fn create(plan: Plan) -> SessionLog {
        let header_line =
            serde_json::to_string(&plan.header).expect("a header holds only text and a number");
        SessionLog::with_header(plan, header_line)
    }

    /// As [`SessionLog::create`], with unknown header fields in the line.
    pub(crate) fn with_header(plan: Plan, header_line: String) -> SessionLog {
        SessionLog {
            header: plan.header,
            lines: Place::Memory(format!("{header_line}\n").into_bytes()),
            header_line,
            path: plan.path,
            lock: plan.lock,
            index: Index::default(),
        }
    }

    /// Wraps a file that was scanned.
    pub(crate) fn opened(
        header: (Header, String),
        path: PathBuf,
        index: Index,
        writer: Writer,
        lock: bool,
    ) -> SessionLog {
        SessionLog {
            header: header.0,
            header_line: header.1,
            path: Some(path),
            lock,
            index,
            lines: Place::File(writer),
        }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The header as it stands in the file, unknown fields included.
    pub fn header_line(&self) -> &str {
        &self.header_line
    }

    /// The file, also while it is only planned; `None` in memory
    /// (`host.md` 7.3.1).
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether the file exists.
    pub fn is_saved(&self) -> bool {
        match self.lines {
            Place::File(_) => true,
            Place::Memory(_) => false,
        }
    }

    /// What stands where.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The last entry of the file, the leaf after loading (`host.md` 2.2.7).
    pub fn last(&self) -> Option<&EntryId> {
        self.index.entries().last().map(|entry| &entry.id)
    }

    /// Appends one entry (`host.md` 2.2.3). On an error the session is as it
    /// was before the call (2.2.4) and can go on.
    pub fn append(&mut self, entry: &Entry) -> Result<()> {
        let indexed = Indexed {
            id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            kind: Kind::of(&entry.body),
            time: scan::time_of(&entry.timestamp),
            start: 0,
            len: 0,
        };
        self.append_line(indexed, entry.line(), || Some(entry.clone()))
    }

    /// Appends a line whose base fields are known; its place is filled in.
    fn append_line(
        &mut self,
        mut indexed: Indexed,
        line: String,
        entry: impl FnOnce() -> Option<Entry>,
    ) -> Result<()> {
        if let Place::File(writer) = &mut self.lines {
            let path = self.path.as_deref().unwrap_or(Path::new(""));
            indexed.len = line.len();
            indexed.start = writer.append(line).map_err(io_error("write", path))?;
            self.index.push(indexed, entry);
            return Ok(());
        }
        let makes_file = indexed.kind.makes_file();
        let before = self.image_len();
        self.push_line(&line);
        if makes_file && let Err(error) = self.save() {
            if let Place::Memory(image) = &mut self.lines {
                image.truncate(before);
            }
            return Err(error);
        }
        indexed.len = line.len();
        indexed.start = before as u64;
        self.index.push(indexed, entry);
        Ok(())
    }

    /// Adds a line in memory, whatever its kind, without making a file.
    pub(crate) fn stage(
        &mut self,
        mut indexed: Indexed,
        line: String,
        entry: impl FnOnce() -> Option<Entry>,
    ) {
        indexed.start = self.image_len() as u64;
        indexed.len = line.len();
        self.push_line(&line);
        self.index.push(indexed, entry);
    }

    fn image_len(&self) -> usize {
        match &self.lines {
            Place::Memory(image) => image.len(),
            Place::File(_) => 0,
        }
    }

    fn push_line(&mut self, line: &str) {
        if let Place::Memory(image) = &mut self.lines {
            image.extend_from_slice(line.as_bytes());
            image.push(b'\n');
        }
    }

    /// Writes what lies in memory to the planned file, in one exclusive create
    /// and one write; nothing to do for sessions without a file.
    pub(crate) fn save(&mut self) -> Result<()> {
        if let (Place::Memory(image), Some(path)) = (&self.lines, &self.path) {
            let writer = Writer::create(path, image, self.lock)?;
            self.lines = Place::File(writer);
        }
        Ok(())
    }

    /// Makes all appended entries durable.
    pub fn sync(&mut self) -> Result<()> {
        match &self.lines {
            Place::Memory(_) => Ok(()),
            Place::File(writer) => {
                let path = self.path.as_deref().unwrap_or(Path::new(""));
                writer.sync().map_err(io_error("sync", path))
            }
        }
    }

    /// The context at a leaf (`host.md` 2.6); `None` is the place before
    /// everything.
    pub fn project(&self, leaf: Option<&EntryId>) -> Result<Projection> {
        let Some(leaf) = leaf else {
            return Ok(Projection::default());
        };
        let path = self.index.path(leaf);
        project(self.index.entries(), &path, &mut self.lines()?).map_err(self.read_error())
    }

    /// One entry, read from its line.
    pub fn entry(&self, id: &EntryId) -> Result<Entry> {
        let unknown = || Error::UnknownEntry { id: id.as_str().to_owned() };
        let at = self.index.position(id).ok_or_else(unknown)?;
        let mut lines = self.lines()?;
        let text = lines.text(&self.index.entries()[at]).map_err(self.read_error())?;
        read_line(&text).map_err(|_| unknown())
    }

    /// Calls a function with the entries from a place on, in file order, each
    /// with its line as it stands (`host.md` 2.6.7).
    pub fn each_line(&self, from: usize, mut visit: impl FnMut(&Indexed, &str)) -> Result<()> {
        let mut lines = self.lines()?;
        for entry in self.index.entries().iter().skip(from) {
            visit(entry, &lines.text(entry).map_err(self.read_error())?);
        }
        Ok(())
    }

    /// A reader over the lines.
    pub(crate) fn lines(&self) -> Result<Lines<'_>> {
        Ok(Lines::new(match (&self.lines, &self.path) {
            (Place::File(_), Some(path)) => {
                Source::File(File::open(path).map_err(io_error("read", path))?)
            }
            (Place::Memory(image), _) => Source::Image(image),
            (Place::File(_), None) => return Err(Error::NotSaved),
        }))
    }

    /// Names the file in an error of reading it.
    pub(crate) fn read_error(&self) -> impl FnOnce(std::io::Error) -> Error {
        io_error("read", self.path.as_deref().unwrap_or(Path::new("")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::entry::{EntryBody, HeaderKind};
    use crew_base::message::Message;
    use crew_base::time::Time;

    fn user(id: &str, parent: Option<&str>) -> Entry {
        Entry {
            id: id.into(),
            parent_id: parent.map(EntryId::from),
            timestamp: Time(1).iso(),
            body: EntryBody::Message { message: Message::user_text("text", Time(1)) },
        }
    }

    #[test]
    fn a_failed_append_leaves_the_session_as_it_was() {
        // host.md 2.2.4, 11.7
        let world = tempfile::tempdir().unwrap();
        let header = Header {
            kind: HeaderKind::Session,
            version: 3,
            id: "s".into(),
            timestamp: Time(0).iso(),
            cwd: "/".into(),
            parent_session: None,
        };
        let mut log = SessionLog::create(Plan {
            header,
            path: Some(world.path().join("s.jsonl")),
            lock: false,
        });
        log.append(&user("a", None)).unwrap();
        let full = |log: &mut SessionLog, left| {
            if let Place::File(writer) = &mut log.lines {
                writer.bytes_left = left;
            }
        };
        full(&mut log, Some(20));
        assert!(matches!(log.append(&user("b", Some("a"))), Err(Error::Io { .. })));
        assert_eq!(log.last(), Some(&"a".into()));
        full(&mut log, None);
        log.append(&user("c", Some("a"))).unwrap();
        assert_eq!(log.index().entries().len(), 2);
        assert_eq!(log.entry(&"c".into()).unwrap(), user("c", Some("a")));
        let text = std::fs::read_to_string(world.path().join("s.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 3);
    }
}
