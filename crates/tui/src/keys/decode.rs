//! From bytes to keys (`terminal.md` TERM-17; cases 20, 21, 38, 40).
//!
//! A sequence that was cut by the end of a read is completed by the next one.
//! An escape byte with nothing behind it is Esc after [`ESCAPE_MS`]; an
//! unfinished sequence is dropped after [`SEQUENCE_MS`].

use crew_base::time::Time;

use super::sequence::{Parsed, parse};
use super::{Code, Input, Key};

/// How long an escape byte may wait for the rest of its sequence (TERM-17).
const ESCAPE_MS: u64 = 50;
/// How long an unfinished sequence may wait for its end.
const SEQUENCE_MS: u64 = 1_000;
/// How long a paste stays open after its end mark, for text that holds one
/// itself (case 38).
const PASTE_MS: u64 = 30;
/// Bytes of one unfinished sequence.
const SEQUENCE_BYTES_MAX: usize = 4096;
/// Bytes of one paste.
const PASTE_BYTES_MAX: usize = 64 * 1024 * 1024;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Turns reads of a terminal into [`Input`]s.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Inside a paste: everything since its start mark.
    pasting: bool,
    /// Place behind the last end mark found in the open paste.
    pasted: Option<usize>,
    last_read: Time,
}

impl Decoder {
    /// Takes the bytes of one read.
    pub fn feed(&mut self, now: Time, bytes: &[u8], out: &mut Vec<Input>) {
        // Decides about what waited before these bytes came.
        self.settle(now, out);
        let lone_escape = !self.pasting && self.bytes == [0x1b];
        if lone_escape && !bytes.first().is_some_and(|byte| b"[O]P_^".contains(byte)) {
            // Two reads: Esc and another key, not Alt.
            self.bytes.clear();
            out.push(Input::Key(Key::plain(Code::Esc)));
        }
        self.bytes.extend_from_slice(bytes);
        self.last_read = now;
        self.decode(out);
    }

    /// When [`Decoder::settle`] has something to decide.
    pub fn deadline(&self) -> Option<Time> {
        if self.bytes.is_empty() || self.pasting && self.pasted.is_none() {
            return None;
        }
        Some(self.last_read + self.patience())
    }

    /// Decides about what is unfinished when its time is over.
    pub fn settle(&mut self, now: Time, out: &mut Vec<Input>) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        if let Some(end) = self.pasted.take() {
            self.pasting = false;
            let rest = self.bytes.split_off(end);
            let paste = std::mem::replace(&mut self.bytes, rest);
            out.push(Input::Paste(pasted_text(&paste)));
            self.decode(out);
            return;
        }
        if self.bytes == [0x1b] {
            out.push(Input::Key(Key::plain(Code::Esc)));
        }
        self.bytes.clear();
    }

    fn patience(&self) -> u64 {
        if self.pasted.is_some() {
            PASTE_MS
        } else if self.bytes == [0x1b] {
            ESCAPE_MS
        } else {
            SEQUENCE_MS
        }
    }

    fn decode(&mut self, out: &mut Vec<Input>) {
        let mut at = 0;
        while !self.pasting && at < self.bytes.len() {
            let rest = &self.bytes[at..];
            if rest.starts_with(PASTE_START) {
                at += PASTE_START.len();
                self.pasting = true;
                break;
            }
            match parse(rest) {
                Parsed::Unfinished if rest.len() <= SEQUENCE_BYTES_MAX => break,
                Parsed::Unfinished => at = self.bytes.len(),
                Parsed::Done(length, input) => {
                    out.extend(input);
                    at += length.max(1);
                }
            }
        }
        self.bytes.drain(..at);
        if self.pasting {
            self.look_for_end(out);
        }
    }

    /// Finds the last end mark before another paste begins: marks inside the
    /// text belong to it.
    fn look_for_end(&mut self, out: &mut Vec<Input>) {
        let from = self.pasted.unwrap_or(0);
        if let Some(start) = find(&self.bytes[from..], PASTE_START)
            && let Some(end) = rfind(&self.bytes[..from + start], PASTE_END)
        {
            let rest = self.bytes.split_off(end + PASTE_END.len());
            let paste = std::mem::replace(&mut self.bytes, rest);
            out.push(Input::Paste(pasted_text(&paste)));
            self.pasting = false;
            self.pasted = None;
            self.decode(out);
            return;
        }
        if let Some(end) = rfind(&self.bytes[from.saturating_sub(PASTE_END.len())..], PASTE_END) {
            self.pasted = Some(from.saturating_sub(PASTE_END.len()) + end + PASTE_END.len());
        }
        if self.bytes.len() > PASTE_BYTES_MAX {
            self.bytes.truncate(PASTE_BYTES_MAX);
        }
    }
}

/// The text of a paste without the marks in it.
fn pasted_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace("\u{1b}[201~", "").replace("\u{1b}[200~", "")
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn rfind(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).rposition(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(reads: &[(u64, &[u8])]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for (at, bytes) in reads {
            decoder.feed(Time(*at), bytes, &mut out);
        }
        decoder.settle(Time(1 << 40), &mut out);
        decoder.settle(Time(1 << 41), &mut out);
        out
    }

    fn check(bytes: &[u8], expected: Key) {
        assert_eq!(decode(&[(0, bytes)]), [Input::Key(expected)], "{bytes:?}");
    }

    #[test]
    fn legacy_and_enhanced_keys_mean_the_same() {
        let plain = Key::plain;
        check(b"a", Key::char('a'));
        check("ä".as_bytes(), Key::char('ä'));
        check(b"\r", plain(Code::Enter));
        check(b"\n", Key::ctrl('j'));
        check(b"\x7f", plain(Code::Backspace));
        check(b"\x08", plain(Code::Backspace));
        check(b"\t", plain(Code::Tab));
        check(b"\x1b[Z", plain(Code::Tab).with_shift());
        check(b"\x01", Key::ctrl('a'));
        check(b"\x1f", Key::ctrl('_'));
        check(b"\x1d", Key::ctrl(']'));
        check(b"\x1c", Key::ctrl('\\'));
        check(b"\x1b", plain(Code::Esc));
        check(b"\x1bb", Key::char('b').with_alt());
        check(b"\x1b\r", plain(Code::Enter).with_alt());
        check(b"\x1b\x7f", plain(Code::Backspace).with_alt());
        check(b"\x1b[A", plain(Code::Up));
        check(b"\x1bOA", plain(Code::Up));
        check(b"\x1b[1;3A", plain(Code::Up).with_alt());
        check(b"\x1b[3~", plain(Code::Delete));
        check(b"\x1b[5~", plain(Code::PageUp));
        check(b"\x1b[H", plain(Code::Home));
        check(b"\x1b[27u", plain(Code::Esc));
        check(b"\x1b[13;2u", plain(Code::Enter).with_shift());
        check(b"\x1b[27;2;13~", plain(Code::Enter).with_shift());
        check(b"\x1b[97;5u", Key::ctrl('a'));
        check(b"\x1b[101;6u", Key::ctrl('e').with_shift());
        check(b"\x1b[112;3u", Key::char('p').with_alt());
        check(b"\x1bOP", plain(Code::F(1)));
        check(b"\x1b\x1b[A", plain(Code::Up).with_alt());
    }

    // TERM-17: releases and repeats.
    #[test]
    fn a_release_does_nothing_and_a_repeat_is_a_press() {
        assert_eq!(decode(&[(0, b"\x1b[97;1:3u")]), []);
        assert_eq!(decode(&[(0, b"\x1b[1;1:3A")]), []);
        assert_eq!(decode(&[(0, b"\x1b[97;1:2u")]), [Input::Key(Key::char('a'))]);
    }

    // Case 40, TERM-34.
    #[test]
    fn late_and_split_answers_of_the_terminal_are_no_keys() {
        let nothing: [Input; 0] = [];
        assert_eq!(decode(&[(2000, b"\x1b[?1"), (2900, b"u")]), [Input::Enhanced]);
        assert_eq!(decode(&[(0, b"\x1b"), (30, b"[I")]), [Input::Focus(true)]);
        assert_eq!(decode(&[(0, b"\x1b["), (30, b"O")]), [Input::Focus(false)]);
        assert_eq!(decode(&[(0, b"\x1b[?64;1;9c")]), nothing);
        assert_eq!(decode(&[(0, b"\x1b]11;rgb:0/0/0\x1b\\")]), nothing);
        assert_eq!(
            decode(&[(0, b"\x1b]11;rgb:0/0"), (500, b"/0\x07x")]),
            [Input::Key(Key::char('x'))]
        );
        assert_eq!(decode(&[(0, b"\x1bP1+r544e\x1b\\")]), nothing);
        assert_eq!(decode(&[(0, b"\x1b[12;40R")]), nothing);
        assert_eq!(decode(&[(0, b"\x1b[?2026;2$y")]), nothing);
    }

    // TERM-17: 50 ms, and Alt only within one read.
    #[test]
    fn an_escape_byte_alone_is_esc_after_its_time() {
        let esc = Input::Key(Key::plain(Code::Esc));
        let x = Input::Key(Key::char('x'));
        assert_eq!(decode(&[(0, b"\x1b"), (10, b"x")]), [esc.clone(), x.clone()]);
        assert_eq!(decode(&[(0, b"\x1b"), (60, b"[A")]).first(), Some(&esc));
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        decoder.feed(Time(100), b"\x1b", &mut out);
        assert_eq!((decoder.deadline(), out.len()), (Some(Time(150)), 0));
        decoder.settle(Time(149), &mut out);
        assert!(out.is_empty());
        decoder.settle(Time(150), &mut out);
        assert_eq!(out, [esc]);
        assert_eq!(decoder.deadline(), None);
    }

    // Case 38.
    #[test]
    fn a_paste_with_its_own_end_mark_inside_is_one_paste() {
        let paste = |text: &str| Input::Paste(text.to_owned());
        assert_eq!(decode(&[(0, b"\x1b[200~a\rb\x1b[201~")]), [paste("a\rb")]);
        let split: [(u64, &[u8]); 3] =
            [(0, b"\x1b[200~one\x1b[20"), (5, b"1~rm -rf\r"), (9, b"two\x1b[201~")];
        assert_eq!(decode(&split), [paste("onerm -rf\rtwo")]);
        let two = b"\x1b[200~a\x1b[201~x\x1b[200~b\x1b[201~";
        assert_eq!(decode(&[(0, two)]), [paste("a"), Input::Key(Key::char('x')), paste("b")]);
        let key = [(0, &b"\x1b[200~a\x1b[201~"[..]), (100, &b"\r"[..])];
        assert_eq!(decode(&key), [paste("a"), Input::Key(Key::plain(Code::Enter))]);
    }

    #[test]
    fn letters_split_between_reads_are_put_together() {
        let bytes = "日".as_bytes();
        assert_eq!(decode(&[(0, &bytes[..1]), (5, &bytes[1..])]), [Input::Key(Key::char('日'))]);
        assert_eq!(decode(&[(0, b"\xffa")]).last(), Some(&Input::Key(Key::char('a'))));
    }
}
