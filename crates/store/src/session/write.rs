//! The writing end of a session file: one write call for each line, and repair
//! of what a failed one left behind (`host.md` 2.2.2 to 2.2.6).
//!
//! Knows bytes, not entries. Never overwrites and never reorders.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::Path;

use crate::error::{Error, Result, io_error};
use crate::files;

/// A session file opened for append.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    /// Part of a line stands at the end of the file and could not be removed.
    torn: bool,
    #[cfg(test)]
    pub(crate) bytes_left: Option<usize>,
}

impl Writer {
    /// Creates the file with its first lines in one write (`host.md` 2.2.2).
    /// On failure nothing is left behind.
    pub(crate) fn create(path: &Path, lines: &[u8], lock: bool) -> Result<Writer> {
        if let Some(folder) = path.parent() {
            files::create_private_dir(folder)?;
        }
        let mut writer = Writer::new(files::create_exclusive(path)?);
        if lock {
            writer.lock(path)?;
        }
        if let Err(error) = writer.write(lines) {
            let _ = fs::remove_file(path);
            return Err(io_error("write", path)(error));
        }
        Ok(writer)
    }

    /// Opens an existing file; with `lock`, refuses one that another process of
    /// ours holds (`host.md` 12.8).
    pub(crate) fn open(path: &Path, lock: bool) -> Result<Writer> {
        let file = OpenOptions::new().append(true).open(path).map_err(io_error("open", path))?;
        let writer = Writer::new(file);
        if lock {
            writer.lock(path)?;
        }
        Ok(writer)
    }

    pub(crate) fn new(file: File) -> Writer {
        Writer {
            file,
            torn: false,
            #[cfg(test)]
            bytes_left: None,
        }
    }

    /// The lock goes with the descriptor, so a killed process leaves none. File
    /// systems without locks are used without.
    fn lock(&self, path: &Path) -> Result<()> {
        match self.file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
            Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(()),
        }
    }

    /// Appends one line in one write call and yields the place of its first
    /// byte (`host.md` 2.2.3). A failed call leaves the file as it was, or at
    /// least so that the next line stands alone (2.2.4, 2.2.6).
    pub(crate) fn append(&mut self, mut line: String) -> io::Result<u64> {
        let len = line.len() as u64 + 1;
        line.push('\n');
        if self.torn {
            line.insert(0, '\n');
        }
        self.write(line.as_bytes())?;
        // The position after an append is that behind our own bytes, also when
        // others append to the same file.
        let end = self.file.stream_position()?;
        Ok(end.saturating_sub(len))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = loop {
            match self.write_once(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written == bytes.len() {
            self.torn = false;
            return Ok(());
        }
        let removed = self.remove_tail(written);
        self.torn |= written > 0 && !removed;
        Err(io::Error::new(ErrorKind::StorageFull, "only a part could be written"))
    }

    /// Removes the part of a line just written, if nothing follows it.
    fn remove_tail(&mut self, written: usize) -> bool {
        let end = match self.file.stream_position() {
            Ok(end) => end,
            Err(_) => return false,
        };
        let is_last = self.file.metadata().is_ok_and(|file| file.len() == end);
        let start = end.saturating_sub(written as u64);
        is_last && self.file.set_len(start).is_ok()
    }

    /// Ends a last line that lacks its line feed (`host.md` 2.2.6).
    pub(crate) fn feed(&mut self) -> io::Result<()> {
        self.write(b"\n")
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(not(test))]
    fn write_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    /// Under test a disk may be full after some bytes.
    #[cfg(test)]
    fn write_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.bytes_left {
            None => self.file.write(bytes),
            Some(0) => Err(ErrorKind::StorageFull.into()),
            Some(left) => {
                let written = self.file.write(&bytes[..left.min(bytes.len())])?;
                self.bytes_left = Some(left - written);
                Ok(written)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_fits_in_part_is_taken_back_and_the_next_stands_alone() {
        // host.md 2.2.4, 11.7
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("s.jsonl");
        let mut writer = Writer::create(&path, b"head\n", false).unwrap();
        writer.bytes_left = Some(3);
        assert!(writer.append("first line".into()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "head\n");
        assert!(writer.append("still full".into()).is_err());
        writer.bytes_left = None;
        assert_eq!(writer.append("second".into()).unwrap(), 5);
        assert_eq!(fs::read_to_string(&path).unwrap(), "head\nsecond\n");
    }

    #[test]
    fn a_torn_line_that_others_wrote_behind_gets_its_feed() {
        // host.md 2.2.6, 2.2.9
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("s.jsonl");
        let mut writer = Writer::create(&path, b"head\n", false).unwrap();
        writer.torn = true;
        assert_eq!(writer.append("own".into()).unwrap(), 6);
        assert_eq!(writer.append("next".into()).unwrap(), 10);
        assert_eq!(fs::read_to_string(&path).unwrap(), "head\n\nown\nnext\n");
    }

    #[test]
    fn a_full_disk_is_told_and_loses_nothing() {
        // host.md 2.2.4
        let full = Path::new("/dev/full");
        if let Ok(file) = OpenOptions::new().append(true).open(full) {
            let mut writer = Writer::new(file);
            let error = writer.append("line".into()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
    }

    #[test]
    fn a_failed_first_write_leaves_no_file() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("a/s.jsonl");
        fs::write(world.path().join("a"), "a file, no folder").unwrap();
        assert!(matches!(Writer::create(&path, b"head\n", false), Err(Error::Io { .. })));
        fs::remove_file(world.path().join("a")).unwrap();
        Writer::create(&path, b"head\n", false).unwrap();
        assert!(matches!(Writer::create(&path, b"head\n", false), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"head\n");
    }

    #[test]
    fn a_second_opener_is_refused_until_the_first_is_gone() {
        // host.md 12.8, faults.md C079
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("s.jsonl");
        let first = Writer::create(&path, b"head\n", true).unwrap();
        assert!(matches!(Writer::open(&path, true), Err(Error::InUse { .. })));
        drop(first);
        Writer::open(&path, true).unwrap();
    }
}
