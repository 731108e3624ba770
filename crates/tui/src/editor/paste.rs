//! Pastes: what is kept of them, and large ones as markers (`host.md` 8.9).

use crew_base::text::units;

use super::{Action, Editor};

/// Lines and UTF-16 units above which a paste becomes a marker (`host.md` 8.9).
const LINES_MAX: usize = 10;
const UNITS_MAX: usize = 1000;
/// First character of the private range that stands for pastes.
const FIRST: u32 = 0xf_0000;
const LAST: u32 = 0xf_fffd;
/// Columns a tab becomes.
const TAB: &str = "    ";

/// A large paste.
#[derive(Clone, Debug)]
pub(super) struct Paste {
    marker: char,
    text: String,
    /// What is shown.
    pub(super) label: String,
}

/// Whether a character stands for a paste.
pub(super) fn is_marker(c: char) -> bool {
    (FIRST..=LAST).contains(&u32::from(c))
}

/// Text as it may enter the buffer: line breaks are line feeds, tabs are
/// blanks, other controls and marker characters are gone.
pub(super) fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', TAB);
    text.chars().filter(|c| *c == '\n' || !(c.is_control() || is_marker(*c))).collect()
}

impl Editor {
    /// Takes a paste; a large one becomes a marker that is shown, moved over
    /// and deleted as one (`host.md` 8.9).
    pub fn paste(&mut self, text: &str) {
        let mut text = plain(text);
        let before = self.buffer[..self.cursor].chars().next_back();
        let is_path = text.starts_with(['/', '~']) && !text.contains('\n');
        if is_path && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            text.insert(0, ' ');
        }
        let lines = text.split('\n').count();
        let size = units(&text);
        if lines <= LINES_MAX && size <= UNITS_MAX {
            self.insert_text(&text);
            return;
        }
        let number = self.pastes_made + 1;
        let Some(marker) = u32::try_from(self.pastes_made)
            .ok()
            .and_then(|made| char::from_u32(FIRST + made))
            .filter(|marker| is_marker(*marker))
        else {
            self.insert_text(&text);
            return;
        };
        self.pastes_made = number;
        let label = if lines > LINES_MAX {
            format!("[paste #{number} +{lines} lines]")
        } else {
            format!("[paste #{number} {size} chars]")
        };
        self.pastes.push(Paste { marker, text, label });
        self.remember(Action::Other);
        self.buffer.insert(self.cursor, marker);
        self.cursor += marker.len_utf8();
    }

    pub(super) fn paste_of(&self, c: char) -> Option<&Paste> {
        if !is_marker(c) {
            return None;
        }
        self.pastes.iter().find(|paste| paste.marker == c)
    }

    /// A piece of the buffer with pastes in place.
    pub(super) fn expand(&self, piece: &str) -> String {
        let mut text = String::with_capacity(piece.len());
        for c in piece.chars() {
            match self.paste_of(c) {
                Some(paste) => text.push_str(&paste.text),
                None => text.push(c),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_paste_is_one_marker_and_comes_out_whole() {
        let mut editor = Editor::default();
        editor.insert_text("see ");
        let large = "x\ry\r\n".repeat(8);
        editor.paste(&large);
        assert_eq!(editor.shown(), "see [paste #1 +17 lines]");
        assert_eq!(editor.text(), format!("see {}", "x\ny\n".repeat(8)));
        editor.left();
        assert_eq!(editor.cursor(), 4);
        editor.delete();
        assert_eq!(editor.text(), "see ");
        editor.undo();
        assert!(editor.text().ends_with("y\n"));
        editor.paste(&"w".repeat(1001));
        assert!(editor.shown().contains("[paste #2 1001 chars]"));
    }

    #[test]
    fn small_pastes_are_cleaned_and_typed() {
        let check = |before: &str, paste: &str, after: &str| {
            let mut editor = Editor::default();
            editor.insert_text(before);
            editor.paste(paste);
            assert_eq!(editor.text(), after);
        };
        check("", "a\tb\u{1b}[31m\u{7}", "a    b[31m");
        check("see", "/tmp/x", "see /tmp/x");
        check("see ", "/tmp/x", "see /tmp/x");
        check("a", "b\rc", "ab\nc");
    }

    // A character of the marker range cannot be typed or pasted.
    #[test]
    fn nobody_can_type_a_marker() {
        let mut editor = Editor::default();
        editor.insert('\u{f0000}');
        editor.paste("a\u{f0001}b");
        assert_eq!(editor.buffer(), "ab");
    }
}
