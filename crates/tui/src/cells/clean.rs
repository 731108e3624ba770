//! What is removed from text that is not ours (`terminal.md` TERM-58).

/// Columns a tab becomes.
const TAB: &str = "    ";

/// One clean line: line feeds become spaces.
pub fn clean_text(text: &str) -> String {
    clean_lines(text).join(" ")
}

/// Clean lines of a text: escape sequences and control characters are gone,
/// tabs are spaces, a carriage return starts its line anew, direction controls
/// are shown by number.
pub fn clean_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => lines.push(std::mem::take(&mut line)),
            '\r' if chars.peek() == Some(&'\n') || chars.peek().is_none() => {}
            '\r' => line.clear(),
            '\t' => line.push_str(TAB),
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{61c}' => {
                line.push_str(&format!("<U+{:04X}>", u32::from(c)));
            }
            // Line and paragraph separators would be line breaks to some.
            '\u{2028}' | '\u{2029}' => line.push(' '),
            c if c.is_control() => {}
            c => line.push(c),
        }
    }
    lines.push(line);
    lines
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek().copied() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            chars.next();
            skip_string(chars);
        }
        Some('\u{20}'..='\u{2f}') => {
            while chars.next_if(|c| ('\u{20}'..='\u{2f}').contains(c)).is_some() {}
            chars.next_if(|c| ('\u{30}'..='\u{7e}').contains(c));
        }
        Some('\u{30}'..='\u{7e}') => {
            chars.next();
        }
        Some(_) | None => {}
    }
}

fn skip_control_sequence(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
        if c >= '\u{40}' {
            return;
        }
    }
}

/// A string sequence ends at a line feed at the latest, so that it cannot hide
/// the rest of a text.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
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
    fn sequences_are_removed_whole() {
        let check = |text: &str, expected: &str| assert_eq!(clean_text(text), expected);
        check("x\u{1b}[31mred\u{1b}[0m", "xred");
        check("a\u{1b}]52;c;AAAA\u{7}b", "ab");
        check("a\u{1b}]8;;http://x\u{1b}\\link", "alink");
        check("a\u{9b}2Jb\u{85}c", "abc");
        check("a\u{1b}Pq#0\u{9c}b", "ab");
        check("a\u{1b}(Bb\u{1b}cd\u{1b}7e", "abde");
        check("cut\u{1b}[12", "cut");
        check("tail\u{1b}", "tail");
        check("a\u{1b}]0;never ends\nb", "a b");
        check("a\tb", "a    b");
    }

    // Case 31: a progress bar leaves its last state.
    #[test]
    fn a_carriage_return_starts_the_line_anew() {
        let check = |text: &str, expected: &[&str]| assert_eq!(clean_lines(text), expected);
        check("10%\r20%\r100%\nok", &["100%", "ok"]);
        check("a\r\nb\r\n", &["a", "b", ""]);
        check("done\r", &["done"]);
    }
}
