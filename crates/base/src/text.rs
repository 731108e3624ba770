//! Small pure text helpers that several crates need.

/// Whether nothing is left after removing Unicode whitespace (`crew.md` 0).
pub fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// The first `chars_max` characters, with `…` in place of the rest.
pub fn excerpt(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Length in UTF-16 code units (`host.md` 0 "units").
pub fn units(text: &str) -> usize {
    // A byte that begins a character is one unit, that of a pair two. Whole
    // sessions are measured before their first request, so bytes are counted in
    // runs whose sum fits into one.
    const RUN: usize = 127;
    let unit = |byte: &u8| u8::from(byte & 0xC0 != 0x80) + u8::from(*byte >= 0xF0);
    let run = |bytes: &[u8]| usize::from(bytes.iter().map(unit).sum::<u8>());
    text.as_bytes().chunks(RUN).map(run).sum()
}

/// The longest prefix of at most `units_max` UTF-16 units; never half a pair.
pub fn cut_units(text: &str, units_max: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > units_max {
            return &text[..at];
        }
    }
    text
}

/// Inline sanitising (`crew.md` ACT-8): removes CSI and OSC sequences, turns
/// control characters into spaces, folds whitespace, trims.
pub fn sanitise_inline(text: &str) -> String {
    let stripped = strip_escapes(text);
    let spaced: String = stripped.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes text of several lines safe to print: escape sequences are removed and
/// every control character but tab and line feed becomes a space.
pub fn sanitise_block(text: &str) -> String {
    strip_escapes(text)
        .chars()
        .filter(|c| *c != '\r')
        .map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c })
        .collect()
}

/// Removes terminal escape sequences of the CSI, OSC, DCS, APC, PM and SOS
/// forms, seven and eight bit, complete or cut off. A string sequence ends at a
/// line feed at the latest, so that it cannot hide the rest of a text.
fn strip_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let introducer = match c {
            '\u{1b}' => match chars.peek() {
                Some('[') => Some('['),
                Some(']' | 'P' | '_' | '^' | 'X') => Some(']'),
                _ => {
                    kept.push(' ');
                    continue;
                }
            },
            '\u{9b}' => Some('['),
            '\u{9d}' | '\u{90}' | '\u{9f}' | '\u{9e}' | '\u{98}' => Some(']'),
            _ => None,
        };
        let Some(kind) = introducer else {
            kept.push(c);
            continue;
        };
        if c == '\u{1b}' {
            chars.next();
        }
        if kind == '[' {
            skip_control_sequence(&mut chars);
        } else {
            skip_string_sequence(&mut chars);
        }
    }
    kept
}

fn skip_control_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.peek().copied() {
        if !('\u{20}'..='\u{7e}').contains(&c) {
            return;
        }
        chars.next();
        if ('\u{40}'..='\u{7e}').contains(&c) {
            return;
        }
    }
}

fn skip_string_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.peek().copied() {
        if c == '\n' {
            return;
        }
        chars.next();
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if chars.peek() == Some(&'\\') => {
                chars.next();
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_clean_line_remains_of_hostile_text() {
        let check = |input: &str, expected: &str| assert_eq!(sanitise_inline(input), expected);
        check("  a\n\tb  ", "a b");
        check("x\u{1b}[31mred\u{1b}[0m", "xred");
        check("a\u{1b}]52;c;AAAA\u{7}b", "ab");
        check("a\u{1b}]8;;http://x\u{1b}\\link", "alink");
        check("a\u{9b}2Jb\u{85}c", "ab c");
        check("tail\u{1b}", "tail");
        check("cut\u{1b}[12", "cut");
    }

    #[test]
    fn a_block_keeps_its_lines_and_loses_its_controls() {
        assert_eq!(sanitise_block("a\r\nb\u{1b}[2J\u{7}\tc"), "a\nb \tc");
    }

    #[test]
    fn cutting_never_splits_a_pair() {
        assert_eq!(cut_units("a😀b", 2), "a");
        assert_eq!(cut_units("a😀b", 3), "a😀");
        assert_eq!(units("a😀b"), 4);
        assert_eq!(excerpt("äöü", 2), "äö…");
        assert_eq!(excerpt("äö", 2), "äö");
    }
}
