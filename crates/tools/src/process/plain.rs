//! Turns the bytes of a person's command into plain text, piece by piece
//! (`host.md` 4.3.9). Pure; sequences and characters may be split anywhere.

/// Removes escape sequences, control characters but tab and line feed, and
/// U+FFF9 to U+FFFB.
#[derive(Default)]
pub(crate) struct Plain {
    /// Start of a character whose rest has not come.
    pending: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate such as `(`.
    Intermediate,
    /// In a control sequence, until its final character.
    Control,
    /// In a string sequence, until BEL, ST or a line feed.
    Text8,
    /// In a string sequence after ESC.
    Text8Escape,
}

impl Plain {
    /// Takes the next bytes, gives the text that is certain.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.filter(valid, &mut text);
                    return text;
                }
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    self.filter(&String::from_utf8_lossy(valid), &mut text);
                    let Some(length) = error.error_len() else {
                        self.pending = bad.to_vec();
                        return text;
                    };
                    self.filter("\u{fffd}", &mut text);
                    rest = &bad[length..];
                }
            }
        }
    }

    /// The end has come.
    pub(crate) fn finish(&mut self) -> String {
        let mut text = String::new();
        if !std::mem::take(&mut self.pending).is_empty() {
            self.filter("\u{fffd}", &mut text);
        }
        text
    }

    fn filter(&mut self, input: &str, text: &mut String) {
        for c in input.chars() {
            self.state = self.next(c, text);
        }
    }

    fn next(&self, c: char, text: &mut String) -> State {
        match self.state {
            State::Text => plain(c, text),
            State::Escape => match c {
                '[' => State::Control,
                ']' | 'P' | '_' | '^' | 'X' => State::Text8,
                ' '..='/' => State::Intermediate,
                '0'..='~' => State::Text,
                _ => plain(c, text),
            },
            State::Intermediate => match c {
                ' '..='/' => State::Intermediate,
                '0'..='~' => State::Text,
                _ => plain(c, text),
            },
            State::Control => match c {
                ' '..='?' => State::Control,
                '@'..='~' => State::Text,
                _ => plain(c, text),
            },
            State::Text8 => match c {
                '\u{7}' | '\u{9c}' => State::Text,
                '\n' => plain(c, text),
                '\u{1b}' => State::Text8Escape,
                _ => State::Text8,
            },
            State::Text8Escape => match c {
                '\n' => plain(c, text),
                '\\' => State::Text,
                '\u{1b}' => State::Text8Escape,
                _ => State::Text8,
            },
        }
    }
}

fn plain(c: char, text: &mut String) -> State {
    match c {
        '\u{1b}' => return State::Escape,
        '\u{9b}' => return State::Control,
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => return State::Text8,
        '\n' | '\t' => text.push(c),
        '\u{fff9}'..='\u{fffb}' => {}
        _ if c.is_control() => {}
        _ => text.push(c),
    }
    State::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(input: &[u8], chunk: usize) -> String {
        let mut plain = Plain::default();
        let mut text: String = input.chunks(chunk).map(|c| plain.push(c)).collect();
        text.push_str(&plain.finish());
        text
    }

    #[test]
    fn no_fragment_is_left_however_the_bytes_are_split() {
        // host.md 4.3.9, 11.69
        let check = |input: &str, expected: &str| {
            for chunk in 1..=input.len().max(1) {
                assert_eq!(whole(input.as_bytes(), chunk), expected, "{input:?} by {chunk}");
            }
        };
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}b", "alinkb");
        check("a\u{1b}(Bb\u{1b}7c", "abc");
        check("a\r\nb\tc\u{0}\u{7f}\u{85}d", "a\nb\tcd");
        check("x\u{fff9}y\u{fffb}z", "xyz");
        check("é😀\u{9b}2Jok", "é😀ok");
        check("\u{1b}]0;open title\nnext", "\nnext");
        check("", "");
    }

    #[test]
    fn invalid_bytes_become_the_replacement_character() {
        assert_eq!(whole(b"a\xffb\xe2\x82", 1), "a\u{fffd}b\u{fffd}");
    }
}
