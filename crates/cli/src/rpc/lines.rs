//! Commands as they come in: lines of standard input (`host.md` 7.1.1).
//!
//! Splits bytes at line feeds and nothing else; knows no command. Reading
//! blocks, so a thread of its own does it, and the process ends without it.

use std::io::{self, Read};

use crew_base::limits::{RPC_LINE_BYTES_MAX, RPC_LINES_AHEAD_MAX};
use tokio::sync::{mpsc, oneshot};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// One line, or why it is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its text, without line feed and one carriage return before it.
    Text(String),
    /// It cannot be a command; the reason, for the client.
    Bad(String),
}

/// Lines in order, and word of the end of the input ahead of them.
pub(super) struct Lines {
    /// `None` after the last line.
    pub(super) lines: mpsc::Receiver<Line>,
    /// Resolves when the last line was read, handled or not.
    pub(super) ended: oneshot::Receiver<()>,
}

/// Starts reading standard input.
pub(super) fn start() -> io::Result<Lines> {
    let (sender, lines) = mpsc::channel(RPC_LINES_AHEAD_MAX);
    let (end, ended) = oneshot::channel();
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        read(io::stdin().lock(), &sender);
        // Nobody waits for it when the program is ending.
        let _ = end.send(());
    })?;
    Ok(Lines { lines, ended })
}

/// Reads until the end; an error ends the input as its end does.
fn read(mut input: impl Read, lines: &mpsc::Sender<Line>) {
    let mut splitter = Splitter::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let bytes = match input.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) | Ok(0) => break,
            Ok(count) => &chunk[..count],
        };
        let found = splitter.feed(bytes);
        if found.into_iter().any(|line| lines.blocking_send(line).is_err()) {
            return;
        }
    }
    if let Some(line) = splitter.end() {
        // A closed channel means that nobody listens any more.
        let _ = lines.blocking_send(line);
    }
}

/// Gathers bytes into lines of bounded length.
#[derive(Default)]
struct Splitter {
    held: Vec<u8>,
    /// The line under way is too long; its bytes are dropped.
    is_too_long: bool,
}

impl Splitter {
    fn feed(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.hold(&bytes[..at]);
            lines.push(self.take());
            bytes = &bytes[at + 1..];
        }
        self.hold(bytes);
        lines
    }

    /// The last line, if it had no line feed.
    fn end(&mut self) -> Option<Line> {
        (self.is_too_long || !self.held.is_empty()).then(|| self.take())
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.held.len() + bytes.len() > RPC_LINE_BYTES_MAX;
        if self.is_too_long {
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn take(&mut self) -> Line {
        let mut held = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.is_too_long) {
            let text = format!("a line is longer than {} MB", RPC_LINE_BYTES_MAX >> 20);
            return Line::Bad(text);
        }
        if held.last() == Some(&b'\r') {
            held.pop();
        }
        match String::from_utf8(held) {
            Ok(text) => Line::Text(text),
            Err(error) => Line::Bad(error.utf8_error().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<Line> {
        let mut splitter = Splitter::default();
        let mut lines: Vec<Line> = chunks.iter().flat_map(|chunk| splitter.feed(chunk)).collect();
        lines.extend(splitter.end());
        lines
    }

    #[test]
    fn lines_end_at_line_feeds_only() {
        // host.md 7.1.1
        let check = |chunks: &[&[u8]], expected: &[&str]| {
            let expected: Vec<Line> =
                expected.iter().map(|text| Line::Text((*text).to_owned())).collect();
            assert_eq!(lines(chunks), expected);
        };
        check(&[b"a\nb\r\nc"], &["a", "b", "c"]);
        check(&[b"a", b"b\n", b"\n"], &["ab", ""]);
        check(&["x\u{2028}y\u{2029}z\u{85}\n".as_bytes()], &["x\u{2028}y\u{2029}z\u{85}"]);
        check(&[b"a\r", b"\r\n"], &["a\r"]);
        check(&[b"a\r\n", b""], &["a"]);
        check(&[b""], &[]);
        check(&["é\n".as_bytes().split_at(1).0, "é\n".as_bytes().split_at(1).1], &["é"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_told_and_passed_over() {
        // C130
        let got = lines(&[b"\xff\xfe\nok\n\xc3"]);
        assert!(matches!(&got[0], Line::Bad(text) if text.contains("utf-8")), "{got:?}");
        assert_eq!(got[1], Line::Text("ok".to_owned()));
        assert!(matches!(&got[2], Line::Bad(_)));
    }

    #[test]
    fn a_line_without_end_is_dropped_as_it_comes() {
        // C130
        let mut splitter = Splitter::default();
        let block = vec![b'x'; RPC_LINE_BYTES_MAX / 2];
        for _ in 0..5 {
            assert_eq!(splitter.feed(&block), []);
            assert!(splitter.held.len() <= RPC_LINE_BYTES_MAX);
        }
        let got = splitter.feed(b"x\nnext\n");
        assert!(matches!(&got[0], Line::Bad(text) if text.contains("64 MB")), "{got:?}");
        assert_eq!(got[1], Line::Text("next".to_owned()));
        assert_eq!(splitter.end(), None);
    }

    #[test]
    fn reading_tells_of_every_line_and_then_ends() {
        let (sender, mut receiver) = mpsc::channel(RPC_LINES_AHEAD_MAX);
        read(&b"{}\nlast"[..], &sender);
        drop(sender);
        let mut got = Vec::new();
        while let Some(line) = receiver.blocking_recv() {
            got.push(line);
        }
        assert_eq!(got, [Line::Text("{}".to_owned()), Line::Text("last".to_owned())]);
    }
}
