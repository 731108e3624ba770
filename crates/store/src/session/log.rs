//! One session that entries are appended to. It is read through `snapshot`.
//!
//! Before the first prompt, and for sessions without a file, the lines lie in
//! memory in exactly the bytes a file would hold. Never chooses parents or ids.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, Header};

use super::index::{Index, Indexed, Kind};
use super::scan;
use super::snapshot::Snapshot;
use super::write::Writer;
use crate::error::{Result, io_error};

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

/// A session that is open for appending; what it holds is read as a
/// [`Snapshot`].
#[derive(Debug)]
pub struct SessionLog {
    header: Header,
    header_line: String,
    lock: bool,
    entries: Snapshot,
    /// Absent while the lines lie in memory.
    writer: Option<Writer>,
}

/// A log is read like the snapshot of this moment.
impl Deref for SessionLog {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.entries
    }
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
        let image = format!("{header_line}\n").into_bytes();
        SessionLog {
            header: plan.header,
            header_line,
            lock: plan.lock,
            entries: Snapshot::new(plan.path, Index::default(), Some(image)),
            writer: None,
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
            lock,
            entries: Snapshot::new(Some(path), index, None),
            writer: Some(writer),
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

    /// Whether the file exists.
    pub fn is_saved(&self) -> bool {
        self.writer.is_some()
    }

    /// What the session holds at this moment, to be read elsewhere.
    pub fn snapshot(&self) -> Snapshot {
        self.entries.clone()
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
        if let Some(writer) = &mut self.writer {
            let path = self.entries.path().unwrap_or(Path::new(""));
            indexed.len = line.len();
            indexed.start = writer.append(line).map_err(io_error("write", path))?;
            self.entries.push(indexed, entry);
            return Ok(());
        }
        let makes_file = indexed.kind.makes_file();
        let before = self.entries.push_line(&line);
        if makes_file && let Err(error) = self.save() {
            self.entries.cut_image(before);
            return Err(error);
        }
        indexed.len = line.len();
        indexed.start = before as u64;
        self.entries.push(indexed, entry);
        Ok(())
    }

    /// Adds a line in memory, whatever its kind, without making a file.
    pub(crate) fn stage(
        &mut self,
        mut indexed: Indexed,
        line: String,
        entry: impl FnOnce() -> Option<Entry>,
    ) {
        indexed.len = line.len();
        indexed.start = self.entries.push_line(&line) as u64;
        self.entries.push(indexed, entry);
    }

    /// Writes what lies in memory to the planned file, in one exclusive create
    /// and one write; nothing to do for sessions without a file.
    pub(crate) fn save(&mut self) -> Result<()> {
        if let (Some(image), Some(path)) = (self.entries.image(), self.entries.path()) {
            self.writer = Some(Writer::create(path, image, self.lock)?);
            self.entries.drop_image();
        }
        Ok(())
    }

    /// Makes all appended entries durable.
    pub fn sync(&mut self) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        writer.sync().map_err(io_error("sync", self.entries.path().unwrap_or(Path::new(""))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crew_base::entry::{EntryBody, HeaderKind};
    use crew_base::id::EntryId;
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
            if let Some(writer) = &mut log.writer {
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
