//! The draft as rows of a width, with the place of the cursor.

use unicode_segmentation::UnicodeSegmentation;

use super::Editor;
use crate::cells::{Row, text_width};
use crate::theme::{ACCENT, TEXT};

/// The draft at one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Visual lines, top first.
    lines: Vec<Line>,
    /// Row and column of the cursor.
    pub cursor: (usize, usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    row: Row,
    /// Byte place and column of each unit, then of the end.
    places: Vec<(usize, usize)>,
}

/// One unit that is never split: a grapheme or a marker.
struct Unit<'a> {
    at: usize,
    text: &'a str,
    width: usize,
    is_marker: bool,
}

impl Layout {
    /// Number of rows, at least one.
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// One row.
    pub fn row(&self, at: usize) -> &Row {
        &self.lines[at].row
    }

    /// Byte place nearest to a column of a row.
    pub(super) fn place(&self, row: usize, column: usize) -> usize {
        let places = &self.lines[row].places;
        let fits = places.iter().rev().find(|(_, start)| *start <= column);
        fits.or(places.first()).map_or(0, |(at, _)| *at)
    }
}

impl Editor {
    /// Breaks the draft into rows; the last column is left for the cursor.
    pub fn layout(&self, columns: usize) -> Layout {
        let room = columns.saturating_sub(1).max(1);
        let mut lines = Vec::new();
        let mut start = 0;
        for text in self.buffer.split('\n') {
            self.lay_line(text, start, room, &mut lines);
            start += text.len() + 1;
        }
        let mut cursor = (0, 0);
        for (row, line) in lines.iter().enumerate() {
            if let Some((_, column)) = line.places.iter().find(|(at, _)| *at == self.cursor()) {
                // A place at a break belongs to the start of the next row.
                cursor = (row, *column);
            }
        }
        Layout { lines, cursor }
    }

    fn lay_line(&self, text: &str, start: usize, room: usize, lines: &mut Vec<Line>) {
        let units = self.units(text, start, room);
        let mut from = 0;
        loop {
            let (end, last) = break_units(&units[from..], room);
            let end = from + end;
            let mut line = Line { row: Row::new(), places: Vec::new() };
            let mut column = 0;
            for unit in &units[from..end] {
                line.places.push((unit.at, column));
                line.row.push(unit.text, if unit.is_marker { ACCENT } else { TEXT });
                column += unit.width;
            }
            if last {
                line.places.push((start + text.len(), column));
                lines.push(line);
                return;
            }
            lines.push(line);
            from = end;
        }
    }

    fn units<'a>(&'a self, text: &'a str, start: usize, room: usize) -> Vec<Unit<'a>> {
        let mut units = Vec::new();
        let mut at = start;
        for grapheme in text.graphemes(true) {
            let marker = grapheme.chars().next().and_then(|c| self.paste_of(c));
            let shown = marker.map_or(grapheme, |paste| paste.label.as_str());
            let is_marker = marker.is_some();
            let width = text_width(shown).min(room);
            units.push(Unit { at, text: shown, width, is_marker });
            at += grapheme.len();
        }
        units
    }
}

/// How many units stand on the row, and whether they are the last ones.
fn break_units(units: &[Unit<'_>], room: usize) -> (usize, bool) {
    let mut used = 0;
    let mut after_blank = None;
    for (at, unit) in units.iter().enumerate() {
        used += unit.width;
        // A blank may stand in the column that is left for the cursor.
        if used > room + usize::from(unit.text == " ") {
            let end = after_blank.filter(|blank| *blank > 0).unwrap_or(at.max(1));
            return (end, false);
        }
        if unit.text == " " {
            after_blank = Some(at + 1);
        }
    }
    (units.len(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, columns: usize, expected: &[&str], cursor: (usize, usize)) {
        let mut editor = Editor::default();
        editor.set(text);
        let layout = editor.layout(columns);
        let rows: Vec<_> = (0..layout.rows()).map(|row| layout.row(row).text()).collect();
        assert_eq!((rows, layout.cursor), (expected.to_vec(), cursor), "{text:?}");
    }

    #[test]
    fn drafts_are_wrapped_by_words_and_the_cursor_follows() {
        check("", 10, &[""], (0, 0));
        check("one two three", 9, &["one two ", "three"], (1, 5));
        check("abcdefghij", 6, &["abcde", "fghij"], (1, 5));
        check("a\n", 6, &["a", ""], (1, 0));
        check("日本語", 5, &["日本", "語"], (1, 2));
    }

    // C137: no row is wider than the terminal, whatever it is.
    #[test]
    fn no_row_is_wider_than_the_terminal() {
        let mut editor = Editor::default();
        editor.insert_text("日本 👨‍👩‍👧 and_a_long_word ");
        editor.paste(&"line\n".repeat(20));
        for columns in 3..40 {
            let layout = editor.layout(columns);
            for row in 0..layout.rows() {
                let width = layout.row(row).width();
                let is_marker = layout.row(row).text().contains("paste");
                assert!(width <= columns || is_marker, "{columns}: {width}");
            }
        }
    }
}
