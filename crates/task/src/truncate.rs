//! The tail that a record keeps (ART-1).

/// Text within limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The end of the text.
    pub text: String,
    /// Something was dropped.
    pub is_cut: bool,
}

/// The last whole lines within both limits; a line that alone is too long
/// gives its end, cut at a character.
pub fn tail(text: &str, bytes_max: usize, lines_max: usize) -> Tail {
    let mut start = text.len();
    let mut lines = 0;
    // A final line break belongs to the line before it.
    while start > 0 && lines < lines_max {
        let before = &text[..start];
        let body = before.strip_suffix('\n').unwrap_or(before);
        let line_start = body.rfind('\n').map_or(0, |at| at + 1);
        if text.len() - line_start > bytes_max {
            if lines == 0 {
                start = end_of_line(text, bytes_max);
            }
            break;
        }
        start = line_start;
        lines += 1;
    }
    Tail { text: text[start..].to_owned(), is_cut: start > 0 }
}

fn end_of_line(text: &str, bytes_max: usize) -> usize {
    let mut at = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    // ART-1; task.md 12 row 64.
    #[test]
    fn the_last_whole_lines_are_kept() {
        let check = |text: &str, bytes: usize, lines: usize, expected: &str, is_cut: bool| {
            let kept = tail(text, bytes, lines);
            assert_eq!((kept.text.as_str(), kept.is_cut), (expected, is_cut), "{text:?}");
        };
        check("", 10, 2, "", false);
        check("a\nb\nc", 10, 2, "b\nc", true);
        check("a\nb\nc\n", 10, 2, "b\nc\n", true);
        check("a\nb\n", 10, 2, "a\nb\n", false);
        check("aaa\nbbb", 4, 9, "bbb", true);
        check("aaa\nbbb", 7, 9, "aaa\nbbb", false);
        check("head\nééé", 5, 9, "éé", true);
        check("head\nééé", 4, 9, "éé", true);
        check("x", 1, 1, "x", false);
    }

    #[test]
    fn eight_thousand_lines_leave_five_thousand() {
        let text: String = (0..8000).map(|n| format!("line {n}\n")).collect();
        let kept = tail(&text, 500_000, 5000);
        assert_eq!(kept.text.lines().count(), 5000);
        assert!(kept.text.starts_with("line 3000\n") && kept.is_cut);
    }
}
