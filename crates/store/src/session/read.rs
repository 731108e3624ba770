//! Reads lines back by their place, from a file or from memory, with one buffer
//! for neighbouring lines.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::index::Indexed;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 512 * 1024;

/// Where the lines are.
pub(crate) enum Source<'a> {
    /// A session that is not, or not yet, on disk.
    Image(&'a [u8]),
    /// A session file.
    File(File),
}

/// Reads lines in any order; cheapest in file order.
pub(crate) struct Lines<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    buffer_start: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(source: Source<'a>) -> Lines<'a> {
        Lines { source, buffer: Vec::new(), buffer_start: 0 }
    }

    /// The bytes of an entry's line, without its line feed.
    pub(crate) fn bytes(&mut self, entry: &Indexed) -> io::Result<&[u8]> {
        let file = match &mut self.source {
            Source::Image(image) => {
                let start = entry.start as usize;
                let line = image.get(start..start + entry.len);
                return line.ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
            }
            Source::File(file) => file,
        };
        let end = entry.start + entry.len as u64;
        let held = self.buffer_start..self.buffer_start + self.buffer.len() as u64;
        if entry.start < held.start || end > held.end {
            file.seek(SeekFrom::Start(entry.start))?;
            let wanted = entry.len.max(CHUNK_BYTES) as u64;
            self.buffer.clear();
            self.buffer.shrink_to(CHUNK_BYTES * 8);
            self.buffer_start = entry.start;
            file.take(wanted).read_to_end(&mut self.buffer)?;
        }
        let from = (entry.start - self.buffer_start) as usize;
        let line = self.buffer.get(from..from + entry.len);
        line.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The line as text; bytes that are no UTF-8 become U+FFFD.
    pub(crate) fn text(&mut self, entry: &Indexed) -> io::Result<Cow<'_, str>> {
        let bytes = self.bytes(entry)?;
        // Nearly always right, and faster than looking for what to replace.
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        })
    }
}
