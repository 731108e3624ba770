//! Reads a window of lines from a stream in constant memory (`host.md` 4.2.1
//! to 4.2.4).

use crew_base::limits::{TOOL_BYTES_MAX, TOOL_LINES_MAX};

use crate::truncate::{Totals, Truncation, size};

/// Gathers the asked lines while the whole file passes by.
pub(crate) struct Window {
    /// First line, from 0.
    first: u64,
    /// Lines wanted.
    wanted: u64,
    kept: Vec<u8>,
    kept_lines: u64,
    selected_bytes: u64,
    selected_feeds: u64,
    /// The last two selected bytes.
    last_bytes: [Option<u8>; 2],
    /// Size of the first selected line.
    first_line_bytes: u64,
    /// Number of the line that is being read, from 0.
    line: u64,
    /// Bytes behind the window.
    behind: u64,
    all_bytes: u64,
}

/// What a window holds at the end.
pub(crate) struct Selected {
    /// For the model: content and trailer.
    pub(crate) text: String,
    /// Set when a limit was hit.
    pub(crate) truncation: Option<Truncation>,
}

/// The offset lies behind the last of so many lines.
pub(crate) struct PastEnd {
    pub(crate) total: u64,
}

impl Window {
    /// `offset` counts from 1, smaller values mean 1.
    pub(crate) fn new(offset: u64, limit: Option<u64>) -> Window {
        Window {
            first: offset.max(1) - 1,
            wanted: limit.map_or(u64::MAX, |limit| limit.max(1)),
            kept: Vec::new(),
            kept_lines: 0,
            selected_bytes: 0,
            selected_feeds: 0,
            last_bytes: [None; 2],
            first_line_bytes: 0,
            line: 0,
            behind: 0,
            all_bytes: 0,
        }
    }

    /// Takes the next bytes of the file.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.all_bytes += bytes.len() as u64;
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let ends = piece.ends_with(b"\n");
            if self.line >= self.first.saturating_add(self.wanted) {
                self.behind += piece.len() as u64;
            } else if self.line >= self.first {
                self.select(piece, ends);
            }
            self.line += u64::from(ends);
        }
    }

    fn select(&mut self, piece: &[u8], ends: bool) {
        self.selected_bytes += piece.len() as u64;
        self.selected_feeds += u64::from(ends);
        for byte in &piece[piece.len().saturating_sub(2)..] {
            self.last_bytes = [self.last_bytes[1], Some(*byte)];
        }
        if self.line == self.first {
            self.first_line_bytes += (piece.len() - usize::from(ends)) as u64;
        }
        // One line and one byte more than fit tell that something is missing.
        let room = (TOOL_BYTES_MAX + 1).saturating_sub(self.kept.len());
        if self.kept_lines <= TOOL_LINES_MAX as u64 {
            self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
            self.kept_lines += u64::from(ends);
        }
    }

    /// The file has ended. Lines of a file: its line feeds plus one (4.1.3).
    pub(crate) fn finish(mut self) -> Result<Selected, PastEnd> {
        let total = self.line + 1;
        if self.first >= total {
            return Err(PastEnd { total });
        }
        if self.all_bytes == 0 {
            return Ok(Selected { text: "[The file is empty.]".to_owned(), truncation: None });
        }
        let ends_in_window = self.first.saturating_add(self.wanted) < total;
        if ends_in_window {
            self.drop_separator();
        }
        let text = String::from_utf8_lossy(&self.kept);
        // Invalid bytes become a longer character.
        let growth = (text.len() - self.kept.len()) as u64;
        let unended = self.last_bytes[1].is_some_and(|byte| byte != b'\n');
        let totals = Totals {
            lines: self.selected_feeds + u64::from(unended),
            bytes: self.selected_bytes + growth,
        };
        let truncation = Truncation::head(&text, totals);
        let note = self.note(&truncation, total, ends_in_window);
        let mut text = truncation.content.clone();
        if let Some(note) = note {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&note);
        }
        let truncation = truncation.is_cut().then_some(truncation);
        Ok(Selected { text, truncation })
    }

    /// The line feed between the window and the next line is not part of it.
    fn drop_separator(&mut self) {
        if self.kept.len() as u64 == self.selected_bytes {
            self.kept.pop();
        }
        self.selected_bytes -= 1;
        self.selected_feeds -= 1;
        self.last_bytes = [None, self.last_bytes[0]];
    }

    /// The bracketed trailer (`host.md` 4.2.2, 4.2.3).
    fn note(&self, truncation: &Truncation, total: u64, ends_in_window: bool) -> Option<String> {
        let first = self.first + 1;
        let limit = size(TOOL_BYTES_MAX as u64);
        if truncation.first_line_exceeds_limit {
            let line = size(self.first_line_bytes);
            return Some(format!(
                "[Line {first} has {line}, more than the limit of {limit}. To see a part of it, \
                 use bash: sed -n '{first}p' FILE | cut -c1-2000]"
            ));
        }
        if let Some(by) = truncation.by {
            let last = self.first + truncation.output_lines;
            let cause = match by {
                crate::truncate::Limit::Lines => String::new(),
                crate::truncate::Limit::Bytes => format!(" (limit {limit})"),
            };
            let next = last + 1;
            return Some(format!(
                "[Lines {first}-{last} of {total} are shown{cause}. Continue with offset={next}.]"
            ));
        }
        // What follows a last line feed is no line worth a note.
        if ends_in_window && self.behind > 0 {
            let next = self.first + self.wanted + 1;
            let left = total - (next - 1);
            return Some(format!("[More lines follow: {left}. Continue with offset={next}.]"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        text: &str,
        offset: u64,
        limit: Option<u64>,
        chunk: usize,
    ) -> Result<Selected, PastEnd> {
        let mut window = Window::new(offset, limit);
        text.as_bytes().chunks(chunk).for_each(|c| window.push(c));
        window.finish()
    }

    fn text(text: &str, offset: u64, limit: Option<u64>) -> String {
        let by_byte = read(text, offset, limit, 1).map(|s| s.text).ok().unwrap();
        let at_once = read(text, offset, limit, 1 << 20).map(|s| s.text).ok().unwrap();
        assert_eq!(by_byte, at_once);
        at_once
    }

    #[test]
    fn a_window_shows_raw_lines_and_what_is_left() {
        // host.md 4.2.1, 4.2.2
        let check = |offset, limit, expected: &str| {
            assert_eq!(text("l1\nl2\nl3\n", offset, limit), expected);
        };
        check(1, None, "l1\nl2\nl3\n");
        check(0, None, "l1\nl2\nl3\n");
        check(2, Some(1), "l2\n\n[More lines follow: 2. Continue with offset=3.]");
        check(3, Some(1), "l3");
        check(3, Some(9), "l3\n");
        check(4, None, "");
        assert_eq!(text("a\n\n\nb", 2, Some(1)), "[More lines follow: 2. Continue with offset=3.]");
        assert_eq!(text("a\r\nb", 1, None), "a\r\nb");
        assert_eq!(text("", 1, None), "[The file is empty.]");
    }

    #[test]
    fn an_offset_past_the_end_tells_the_total() {
        let error = read("l1\nl2\n", 4, None, 100).err().unwrap();
        assert_eq!(error.total, 3);
    }

    #[test]
    fn whole_lines_stop_at_the_line_limit() {
        // host.md 4.1.3, 4.1.4
        let file: String = (1..=3000).map(|n| format!("{n}\n")).collect();
        let selected = read(&file, 1, None, 1000).ok().unwrap();
        assert!(selected.text.contains("\n2000\n\n[Lines 1-2000 of 3001"));
        assert!(selected.text.contains("offset=2001"));
        let truncation = selected.truncation.unwrap();
        assert_eq!((truncation.totals.lines, truncation.output_lines), (3000, 2000));
        let exact = &file[..file.find("2001").unwrap()];
        assert!(read(exact, 1, None, 1000).ok().unwrap().truncation.is_none());
        let window = read(&file, 1, Some(2000), 1000).ok().unwrap();
        assert!(window.truncation.is_none());
        assert!(window.text.ends_with("[More lines follow: 1001. Continue with offset=2001.]"));
    }

    #[test]
    fn whole_lines_stop_at_the_byte_limit() {
        let file = format!("{}\n", "x".repeat(999)).repeat(100);
        let selected = read(&file, 1, None, 4096).ok().unwrap();
        assert!(selected.text.contains("Lines 1-51 of 101 are shown (limit 50.0KB)"));
        assert_eq!(selected.truncation.unwrap().totals.bytes, 100_000);
    }

    #[test]
    fn a_giant_first_line_gives_a_note_and_no_content() {
        // host.md 4.2.3
        let file = format!("{}\nsecond\n", "y".repeat(60_000));
        let selected = read(&file, 1, None, 4096).ok().unwrap();
        assert!(selected.text.starts_with("[Line 1 has 58.6KB"), "{}", selected.text);
        assert!(selected.truncation.unwrap().first_line_exceeds_limit);
        let selected = read(&file, 1, Some(1), 4096).ok().unwrap();
        assert!(!selected.text.contains("yyy"));
    }

    #[test]
    fn invalid_bytes_are_replaced_and_stay_in_the_limit() {
        // C136
        let mut window = Window::new(1, None);
        let line = [&[0xFF; 99][..], b"\n"].concat();
        (0..400).for_each(|_| window.push(&line));
        let selected = window.finish().ok().unwrap();
        assert!(selected.truncation.unwrap().content.len() <= TOOL_BYTES_MAX);
    }
}
