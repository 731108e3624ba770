//! One pass over the lines of a session file: finds the header and fills the
//! index, with memory for one line at a time (`host.md` 2.2.5, 2.2.8).
//!
//! Reads only; repairs and migration are done by `open`. A damaged line costs a
//! warning and nothing else.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

use crew_base::definition::Warning;
use crew_base::entry::{Header, HeaderKind, SESSION_VERSION, read_line};
use crew_base::id::{EntryId, SessionId};
use crew_base::json::mend_surrogates;
use crew_base::limits::{SESSION_LINE_BYTES_MAX, SESSION_WARNINGS_MAX};
use crew_base::time::Time;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::index::{Index, Indexed, Kind};

/// What a pass over a file found.
pub(crate) struct Scan {
    /// The header and its line; `None` when the file is no session.
    pub(crate) header: Option<(Header, String)>,
    /// The entries; empty for a file that must be migrated first.
    pub(crate) index: Index,
    /// Damage, by line.
    pub(crate) warnings: Vec<Warning>,
    /// Whether the last line has its line feed.
    pub(crate) ends_with_feed: bool,
}

/// Scans a session file. Ends early when the first object is no header, or when
/// the header asks for a migration (`host.md` 2.2.5, 2.5).
pub(crate) fn scan(path: &Path, reader: &mut dyn BufRead) -> io::Result<Scan> {
    let mut scan =
        Scan { header: None, index: Index::default(), warnings: Vec::new(), ends_with_feed: true };
    let mut notes = Notes::new(path);
    let mut lines = LineReader::new(reader);
    while let Some(line) = lines.next()? {
        scan.ends_with_feed = line.fed;
        let (trimmed, had_zeros) = line.trimmed();
        if had_zeros {
            notes.add(line.number, "zero bytes, skipped");
        }
        let Some(peek) = peek(trimmed.bytes) else {
            if !trimmed.bytes.is_empty() || line.too_long {
                notes.add(line.number, "unreadable, skipped");
            }
            continue;
        };
        if scan.header.is_none() {
            scan.header = header(trimmed.bytes);
            match &scan.header {
                Some((header, _)) if header.version >= SESSION_VERSION => continue,
                _ => break,
            }
        }
        if peek.kind.text() == Some("session") {
            notes.add(line.number, "a second header, skipped");
        } else if let Some(indexed) = peek.indexed(&trimmed) {
            let entry = || read_line(&String::from_utf8_lossy(trimmed.bytes)).ok();
            scan.index.push(indexed, entry);
        } else {
            notes.add(line.number, "no entry, its type or id is missing");
        }
    }
    scan.warnings = notes.end();
    Ok(scan)
}

/// Reads lines with their place, and no more than one into memory.
pub(crate) struct LineReader<'a> {
    reader: &'a mut dyn BufRead,
    line: Vec<u8>,
    next_start: u64,
    number: usize,
}

/// One line without its line feed.
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// From 1.
    pub(crate) number: usize,
    /// Place of its first byte in the file.
    pub(crate) start: u64,
    /// Whether it had its line feed.
    pub(crate) fed: bool,
    /// Whether it was longer than the limit; `bytes` is empty then.
    pub(crate) too_long: bool,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(reader: &'a mut dyn BufRead) -> LineReader<'a> {
        LineReader { reader, line: Vec::new(), next_start: 0, number: 0 }
    }

    /// The next line; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        const BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;
        if self.line.capacity() > BUFFER_BYTES_MAX {
            self.line = Vec::new();
        }
        self.line.clear();
        let limit = SESSION_LINE_BYTES_MAX as u64;
        let mut part = (&mut *self.reader).take(limit);
        let mut read = part.read_until(b'\n', &mut self.line)? as u64;
        if read == 0 {
            return Ok(None);
        }
        let mut fed = self.line.last() == Some(&b'\n');
        let too_long = read == limit && !fed;
        if fed {
            self.line.pop();
        } else if too_long {
            self.line = Vec::new();
            let skipped;
            (skipped, fed) = skip_line(self.reader)?;
            read += skipped;
        }
        let start = self.next_start;
        self.next_start += read;
        self.number += 1;
        Ok(Some(Line { bytes: &self.line, number: self.number, start, fed, too_long }))
    }
}

fn skip_line(reader: &mut dyn BufRead) -> io::Result<(u64, bool)> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((skipped, false));
        }
        let feed = buffer.iter().position(|byte| *byte == b'\n');
        let used = feed.map_or(buffer.len(), |at| at + 1);
        reader.consume(used);
        skipped += used as u64;
        if feed.is_some() {
            return Ok((skipped, true));
        }
    }
}

impl<'a> Line<'a> {
    /// The line without blanks, and without the zero bytes that a crash of the
    /// system can leave beside good records (faults.md C077); tells whether
    /// there were such.
    pub(crate) fn trimmed(&self) -> (Line<'a>, bool) {
        let is_edge = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
        let bytes = self.bytes;
        let from = bytes.iter().position(|b| !is_edge(b)).unwrap_or(bytes.len());
        let to = bytes.iter().rposition(|b| !is_edge(b)).map_or(from, |at| at + 1);
        let had_zeros = bytes[..from].contains(&0) || bytes[to..].contains(&0);
        let trimmed = Line { bytes: &bytes[from..to], start: self.start + from as u64, ..*self };
        (trimmed, had_zeros)
    }
}

/// The base fields of a line (`host.md` 2.4).
#[derive(Default)]
pub(crate) struct Peek<'a> {
    pub(crate) kind: Word<'a>,
    id: Word<'a>,
    parent_id: Word<'a>,
    timestamp: Word<'a>,
    role: Word<'a>,
}

/// The text of a value, if it is text.
#[derive(Clone, Default)]
pub(crate) struct Word<'a>(Option<Cow<'a, str>>);

impl Word<'_> {
    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Peek<'_> {
    /// The kind of the entry, if the line has a `type`.
    pub(crate) fn entry_kind(&self) -> Option<Kind> {
        let word = self.kind.text()?;
        Some(Kind::parse(word, self.role.text()))
    }

    fn indexed(&self, line: &Line<'_>) -> Option<Indexed> {
        Some(Indexed {
            id: EntryId::new(self.id.text()?),
            parent_id: self.parent_id.text().map(EntryId::new),
            kind: self.entry_kind()?,
            time: self.timestamp.text().map_or(Time(0), time_of),
            start: line.start,
            len: line.bytes.len(),
        })
    }
}

/// Reads the base fields of a line and checks that all of it is one JSON
/// object; `None` when it is not.
pub(crate) fn peek(line: &[u8]) -> Option<Peek<'_>> {
    if line.first() != Some(&b'{') {
        return None;
    }
    if let Ok(peek) = serde_json::from_slice(line) {
        return Some(peek);
    }
    // Rare: bytes or escapes that are no valid text in a field we look at.
    let text = String::from_utf8_lossy(line);
    let mended = mend_surrogates(&text);
    let peek: Peek<'_> = serde_json::from_str(&mended).ok()?;
    let owned = |word: Word<'_>| Word(word.0.map(|text| Cow::Owned(text.into_owned())));
    Some(Peek {
        kind: owned(peek.kind),
        id: owned(peek.id),
        parent_id: owned(peek.parent_id),
        timestamp: owned(peek.timestamp),
        role: owned(peek.role),
    })
}

/// Reads a header and keeps its line (`host.md` 2.3); `None` for another object.
pub(crate) fn header(line: &[u8]) -> Option<(Header, String)> {
    let line = String::from_utf8_lossy(line).into_owned();
    let value: Value = crew_base::json::from_text(&line).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    if text("type") != Some("session") {
        return None;
    }
    let version = value.get("version").and_then(Value::as_u64).unwrap_or(1);
    let header = Header {
        kind: HeaderKind::Session,
        version: u32::try_from(version).unwrap_or(u32::MAX),
        id: SessionId::new(text("id")?),
        timestamp: text("timestamp").unwrap_or_default().to_owned(),
        cwd: text("cwd").unwrap_or_default().to_owned(),
        parent_session: text("parentSession").map(str::to_owned),
    };
    Some((header, line))
}

/// Reads an ISO time; zero when it is none or lies before 1970.
pub(crate) fn time_of(iso: &str) -> Time {
    let parsed = iso.parse::<jiff::Timestamp>();
    let ms = parsed.map_or(0, jiff::Timestamp::as_millisecond);
    Time(u64::try_from(ms).unwrap_or(0))
}

/// Warnings about one file, bounded in number.
struct Notes<'a> {
    path: &'a Path,
    warnings: Vec<Warning>,
    more: usize,
}

impl Notes<'_> {
    fn new(path: &Path) -> Notes<'_> {
        Notes { path, warnings: Vec::new(), more: 0 }
    }

    fn add(&mut self, line: usize, what: &str) {
        if self.warnings.len() < SESSION_WARNINGS_MAX {
            self.push(format!("line {line}: {what}"));
        } else {
            self.more += 1;
        }
    }

    fn push(&mut self, message: String) {
        let path = self.path.to_string_lossy().into_owned();
        self.warnings.push(Warning { path, message });
    }

    fn end(mut self) -> Vec<Warning> {
        if self.more > 0 {
            self.push(format!("{} more damaged lines, skipped", self.more));
        }
        self.warnings
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Peek<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Peek<'a>, D::Error> {
        deserializer.deserialize_map(PeekVisitor)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Type,
    Id,
    ParentId,
    Timestamp,
    Message,
    #[serde(other)]
    Other,
}

struct PeekVisitor;

impl<'de> Visitor<'de> for PeekVisitor {
    type Value = Peek<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Peek<'de>, A::Error> {
        let mut peek = Peek::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Type => peek.kind = map.next_value()?,
                Key::Id => peek.id = map.next_value()?,
                Key::ParentId => peek.parent_id = map.next_value()?,
                Key::Timestamp => peek.timestamp = map.next_value()?,
                Key::Message => peek.role = map.next_value::<Role<'de>>()?.0,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(peek)
    }
}

/// The `role` of a message object; nothing for any other value.
struct Role<'a>(Word<'a>);

impl<'de> Deserialize<'de> for Role<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Role<'de>, D::Error> {
        let visitor = Lenient { member: Some("role") };
        deserializer.deserialize_any(visitor).map(Role)
    }
}

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<'de>, D::Error> {
        deserializer.deserialize_any(Lenient { member: None })
    }
}

/// Takes text, or the text of one member of an object; passes over all else.
struct Lenient {
    member: Option<&'static str>,
}

impl<'de> Visitor<'de> for Lenient {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
        Ok(Word(self.member.is_none().then_some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Word<'de>, E> {
        let text = || Cow::Owned(text.to_owned());
        Ok(Word(self.member.is_none().then(text)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_unit<E>(self) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Word<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Word(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Word<'de>, A::Error> {
        let mut found = Word(None);
        while let Some(key) = map.next_key::<Word<'de>>()? {
            if self.member.is_some() && key.text() == self.member {
                found = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_fields_are_found_in_any_order_and_any_company() {
        let check = |line: &str, expected: Option<(&str, &str, Option<&str>, Option<&str>)>| {
            let peek = peek(line.as_bytes());
            let found = peek.as_ref().map(|p| {
                let text = |word: &Word<'_>| word.text().map(str::to_owned);
                (text(&p.kind), text(&p.id), text(&p.parent_id), text(&p.role))
            });
            let expected = expected.map(|(kind, id, parent, role)| {
                let text = |t: &str| Some(t.to_owned());
                (text(kind), text(id), parent.and_then(text), role.and_then(text))
            });
            assert_eq!(found, expected, "{line}");
        };
        check(
            r#"{"message":{"content":[{"role":"x"}],"role":"user"},"id":"a","type":"message","parentId":null}"#,
            Some(("message", "a", None, Some("user"))),
        );
        check(
            r#"{"type":"message","id":"a","parentId":"\ud83d","message":[1.5,{"role":"user"}]}"#,
            Some(("message", "a", Some("\u{fffd}"), None)),
        );
        check(r#"{"type":"x","id":"a","n":[{},-1,true]} "#, Some(("x", "a", None, None)));
        check(r#"{"type":"x","id":"a""#, None);
        check(r#"{"type":"x","id":"a"}{"#, None);
        check("[1]", None);
        check("", None);
    }

    #[test]
    fn a_time_that_is_none_counts_as_zero() {
        let check = |text: &str, ms: u64| assert_eq!(time_of(text), Time(ms));
        check("2026-11-30T13:43:03.871Z", 1_796_046_183_871);
        check("2026-11-30T14:43:03.871+01:00", 1_796_046_183_871);
        check("yesterday", 0);
        check("1960-01-01T00:00:00Z", 0);
    }
}
