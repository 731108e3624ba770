//! Server-sent events: bytes in, events out (`host.md` 9.2.8).
//!
//! Right at every split of the bytes; CR, LF and CRLF end lines; one leading
//! byte order mark is dropped; bad UTF-8 becomes U+FFFD, judged by whole
//! lines. Must never do IO nor know what the data means.

use crew_base::limits::SSE_EVENT_BYTES_MAX;

/// An event grew beyond [`SSE_EVENT_BYTES_MAX`]; nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTooLong;

/// Incremental decoder of one body.
#[derive(Default)]
pub struct SseDecoder {
    /// Bytes of a line whose end has not been seen.
    partial: Vec<u8>,
    /// The last byte was a CR that ended a line; a LF belongs to it.
    after_cr: bool,
    /// A first line was read, so no byte order mark can follow.
    begun: bool,
    event: String,
    data: String,
    has_data: bool,
}

impl SseDecoder {
    /// Takes the next bytes and hands each complete event, its name or "" and
    /// its data, to `on_event`. Events without a data line are dropped.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        on_event: &mut dyn FnMut(&str, &str),
    ) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = line_end(rest) {
            let (line, ending) = (&rest[..end], rest[end]);
            rest = &rest[end + 1..];
            if ending == b'\r' {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.partial.is_empty() {
                self.line(line, on_event);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole, on_event);
                whole.clear();
                self.partial = whole;
            }
            self.check_length(0)?;
        }
        self.check_length(rest.len())?;
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the body: a tail without its blank line counts as an event.
    pub fn end(&mut self, on_event: &mut dyn FnMut(&str, &str)) {
        let tail = std::mem::take(&mut self.partial);
        if !tail.is_empty() {
            self.line(&tail, on_event);
        }
        self.dispatch(on_event);
    }

    fn check_length(&self, more: usize) -> Result<(), EventTooLong> {
        if self.partial.len() + self.data.len() + more > SSE_EVENT_BYTES_MAX {
            return Err(EventTooLong);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], on_event: &mut dyn FnMut(&str, &str)) {
        const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut line = line;
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }

    fn dispatch(&mut self, on_event: &mut dyn FnMut(&str, &str)) {
        if self.has_data {
            on_event(self.event.trim(), &self.data);
        }
        self.has_data = false;
        self.data.clear();
        self.event.clear();
    }
}

/// Where the first line end stands.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], step: usize) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut on_event = |name: &str, data: &str| events.push((name.to_owned(), data.to_owned()));
        let mut decoder = SseDecoder::default();
        for piece in bytes.chunks(step) {
            decoder.feed(piece, &mut on_event).unwrap();
        }
        decoder.end(&mut on_event);
        events
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        for step in [1, 2, 3, 7, usize::MAX] {
            let events = read(text.as_bytes(), step.min(text.len().max(1)));
            let events: Vec<_> = events.iter().map(|(n, d)| (&**n, &**d)).collect();
            assert_eq!(events, expected, "{text:?} in pieces of {step}");
        }
    }

    #[test]
    fn every_line_end_and_every_split_gives_the_same_events() {
        // host.md 9.2.8; C100.
        for end in ["\n", "\r", "\r\n"] {
            let text = "\u{feff}event: a\n: note\ndata: {\"é\":\n\
                        data:\"🚀\"}\nid: 4\n\ndata\n\ndata:  two\n\nevent: lost\n\n"
                .replace('\n', end);
            check(&text, &[("a", "{\"é\":\n\"🚀\"}"), ("", ""), ("", " two")]);
        }
    }

    #[test]
    fn a_tail_without_a_blank_line_is_the_last_event() {
        check("data: 1\n\nevent: e\ndata: 2", &[("", "1"), ("e", "2")]);
        check("data: 1\r", &[("", "1")]);
        check("", &[]);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(read(b"data: a\xFFb\n\n", 1), [("".to_owned(), "a\u{fffd}b".to_owned())]);
    }

    #[test]
    fn an_event_without_end_is_refused_at_the_limit() {
        let line = vec![b'x'; 1024 * 1024];
        let mut decoder = SseDecoder::default();
        let mut refused = false;
        for _ in 0..=SSE_EVENT_BYTES_MAX / line.len() {
            refused |= decoder.feed(&line, &mut |_, _| {}).is_err();
        }
        assert!(refused);
        let mut data = b"data: ".to_vec();
        data.extend(&line);
        data.push(b'\n');
        let mut decoder = SseDecoder::default();
        let pieces = SSE_EVENT_BYTES_MAX / line.len() + 1;
        let refused = (0..pieces).any(|_| decoder.feed(&data, &mut |_, _| {}).is_err());
        assert!(refused);
    }
}
