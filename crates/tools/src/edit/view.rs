//! The text of a file as edits see it, and the way back to its bytes
//! (`host.md` 4.4.2, 4.4.6). Pure.
//!
//! The view has no BOM, its line breaks are single line feeds, invalid bytes
//! are U+FFFD. A position of the view leads to the position in the bytes.

use std::borrow::Cow;
use std::ops::Range;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A file as edits see it.
pub(super) struct View<'a> {
    /// The bytes of the file.
    pub(super) bytes: &'a [u8],
    /// The normalised text.
    pub(super) text: String,
    /// Where view and bytes begin to run at another distance: positions in
    /// both, rising.
    marks: Vec<(usize, usize)>,
    /// Starts of the view's lines.
    lines: Vec<usize>,
    has_line_feed: bool,
}

impl<'a> View<'a> {
    /// Reads the bytes of a file.
    pub(super) fn of(bytes: &'a [u8]) -> View<'a> {
        let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let mut view = View {
            bytes,
            text: String::with_capacity(bytes.len()),
            marks: vec![(0, start)],
            lines: vec![0],
            has_line_feed: bytes.contains(&b'\n'),
        };
        let mut at = start;
        for chunk in bytes[start..].utf8_chunks() {
            view.add(chunk.valid(), at);
            at += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                at += chunk.invalid().len();
                view.text.push('\u{fffd}');
                view.mark(at);
            }
        }
        view
    }

    fn add(&mut self, valid: &str, mut at: usize) {
        let mut rest = valid;
        while let Some(found) = rest.find(['\r', '\n']) {
            self.text.push_str(&rest[..found]);
            self.text.push('\n');
            self.lines.push(self.text.len());
            let length = if rest[found..].starts_with("\r\n") { 2 } else { 1 };
            at += found + length;
            if length == 2 {
                self.mark(at);
            }
            rest = &rest[found + length..];
        }
        self.text.push_str(rest);
    }

    fn mark(&mut self, byte: usize) {
        self.marks.push((self.text.len(), byte));
    }

    /// The position in the bytes of a position in the view.
    pub(super) fn byte(&self, position: usize) -> usize {
        let next = self.marks.partition_point(|(view, _)| *view <= position);
        let (view, byte) = self.marks[next - 1];
        byte + (position - view)
    }

    /// The bytes of a range of the view.
    pub(super) fn bytes_of(&self, range: Range<usize>) -> &'a [u8] {
        &self.bytes[self.byte(range.start)..self.byte(range.end)]
    }

    /// Number of the line that holds a position, from 0.
    pub(super) fn line_of(&self, position: usize) -> usize {
        line_of(&self.lines, position)
    }

    /// The range of a line in the view, its line feed included.
    pub(super) fn line(&self, line: usize) -> Range<usize> {
        line_range(&self.lines, line, self.text.len())
    }

    /// The line ending that is inserted for a match that starts at a position:
    /// that of its line, else that of the line before (`host.md` 4.4.6).
    pub(super) fn ending_at(&self, position: usize) -> &'static str {
        let line = self.line_of(position);
        let after = (line..self.lines.len()).find_map(|line| self.ending(line));
        let before = || (0..line).rev().find_map(|line| self.ending(line));
        after.or_else(before).unwrap_or("\n")
    }

    /// The ending of a line; `None` for the last one, and for a lone CR in a
    /// file that has line feeds, where it is data.
    fn ending(&self, line: usize) -> Option<&'static str> {
        match self.terminator(line) {
            b"\r\n" => Some("\r\n"),
            b"\n" => Some("\n"),
            b"\r" if !self.has_line_feed => Some("\r"),
            _ => None,
        }
    }

    /// The bytes that end a line, none for the last one.
    pub(super) fn terminator(&self, line: usize) -> &'a [u8] {
        let range = self.line(line);
        if line + 1 == self.lines.len() {
            return &[];
        }
        self.bytes_of(range.end - 1..range.end)
    }
}

/// Starts of the lines of a text.
pub(super) fn line_starts(text: &str) -> Vec<usize> {
    let after_feeds = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(after_feeds).collect()
}

/// Number of the line that holds a position, from 0.
pub(super) fn line_of(starts: &[usize], position: usize) -> usize {
    starts.partition_point(|start| *start <= position) - 1
}

/// The range of a line, its line feed included.
pub(super) fn line_range(starts: &[usize], line: usize, length: usize) -> Range<usize> {
    let end = starts.get(line + 1).copied().unwrap_or(length);
    starts[line]..end
}

/// Text of an argument with the view's line breaks.
pub(super) fn normal_breaks(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_leads_back_to_its_byte() {
        let bytes = b"\xef\xbb\xbfa\r\nb\rc\n\xffd\r\n\r\ne";
        let view = View::of(bytes);
        assert_eq!(view.text, "a\nb\nc\n\u{fffd}d\n\ne");
        let check = |part: &str, expected: &[u8]| {
            let at = view.text.find(part).unwrap();
            assert_eq!(view.bytes_of(at..at + part.len()), expected, "{part:?}");
        };
        check("a\n", b"a\r\n");
        check("b\nc\n", b"b\rc\n");
        check("\u{fffd}d", b"\xffd");
        check("d\n\ne", b"d\r\n\r\ne");
        assert_eq!(view.bytes_of(0..view.text.len()), &bytes[3..]);
    }

    #[test]
    fn the_inserted_ending_is_that_of_the_line() {
        // host.md 4.4.6
        let check = |bytes: &[u8], part: &str, expected: &str| {
            let view = View::of(bytes);
            let at = view.text.find(part).unwrap();
            assert_eq!(view.ending_at(at), expected, "{bytes:?} {part}");
        };
        check(b"a\r\nb\nc", "a", "\r\n");
        check(b"a\r\nb\nc", "b", "\n");
        check(b"a\r\nb\r\nc", "c", "\r\n");
        check(b"a\rb\nc\r\n", "a", "\n");
        check(b"a\rb\rc", "a", "\r");
        check(b"a\rb\rc", "c", "\r");
        check(b"a", "a", "\n");
    }
}
