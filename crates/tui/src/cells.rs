//! Rows of cells: the only form in which text reaches a terminal.
//!
//! Owns the boundary of `terminal.md` TERM-58: every text becomes cells through
//! [`Row::push`], which cleans it. Must never hold a control character. Read
//! `cells::clean` for what is removed, `cells::wrap` for how rows are broken.

mod clean;
mod wrap;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::theme::Style;

pub use clean::{clean_lines, clean_text};

/// Combining marks kept on one cell (TERM-58).
const MARKS_MAX: usize = 8;

/// A line of styled cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    text: String,
    cells: Vec<Cell>,
}

/// One grapheme of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// Byte behind its last one.
    end: u32,
    /// Columns: 1 or 2.
    width: u8,
    style: Style,
}

/// A cell as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glyph<'a> {
    /// The grapheme.
    pub symbol: &'a str,
    /// Columns: 1 or 2.
    pub width: usize,
    /// How it looks.
    pub style: Style,
}

impl Row {
    /// A row without cells.
    pub fn new() -> Row {
        Row::default()
    }

    /// A row of one text.
    pub fn of(text: &str, style: Style) -> Row {
        let mut row = Row::new();
        row.push(text, style);
        row
    }

    /// Adds text, cleaned; line feeds become spaces.
    pub fn push(&mut self, text: &str, style: Style) -> &mut Row {
        if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            for byte in 0..text.len() {
                self.add(&text[byte..=byte], 1, style);
            }
            return self;
        }
        for symbol in clean_text(text).graphemes(true) {
            let symbol = marks_cut(symbol);
            let width = width(symbol);
            if width > 0 {
                self.add(symbol, width, style);
            }
        }
        self
    }

    /// Adds a number of blanks.
    pub fn space(&mut self, columns: usize) -> &mut Row {
        for _ in 0..columns {
            self.add(" ", 1, Style::default());
        }
        self
    }

    /// Adds the cells of another row.
    pub fn append(&mut self, other: &Row) -> &mut Row {
        for glyph in other.glyphs() {
            self.add(glyph.symbol, glyph.width, glyph.style);
        }
        self
    }

    fn add(&mut self, symbol: &str, width: usize, style: Style) {
        self.text.push_str(symbol);
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.cells.push(Cell { end, width: if width > 1 { 2 } else { 1 }, style });
    }

    /// The cells in order.
    pub fn glyphs(&self) -> impl DoubleEndedIterator<Item = Glyph<'_>> {
        (0..self.cells.len()).map(|at| self.glyph(at))
    }

    /// Number of cells, wide ones counted once.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.cells.iter().map(|cell| usize::from(cell.width)).sum()
    }

    /// The text without its style.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn glyph(&self, at: usize) -> Glyph<'_> {
        let start = if at == 0 { 0 } else { self.cells[at - 1].end as usize };
        let cell = self.cells[at];
        Glyph {
            symbol: &self.text[start..cell.end as usize],
            width: usize::from(cell.width),
            style: cell.style,
        }
    }

    /// The cells of a range of cell numbers.
    pub fn part(&self, from: usize, to: usize) -> Row {
        let mut row = Row::new();
        for at in from..to.min(self.len()) {
            let glyph = self.glyph(at);
            row.add(glyph.symbol, glyph.width, glyph.style);
        }
        row
    }

    /// At most `columns` wide, with `…` in place of what is left out
    /// (`crew.md` WID-13).
    pub fn cut(&self, columns: usize) -> Row {
        if self.width() <= columns {
            return self.clone();
        }
        let mut row = Row::new();
        let mut used = 0;
        for glyph in self.glyphs() {
            if used + glyph.width + 1 > columns {
                if columns > 0 {
                    row.add("…", 1, glyph.style);
                }
                return row;
            }
            used += glyph.width;
            row.add(glyph.symbol, glyph.width, glyph.style);
        }
        row
    }

    /// At most `columns` wide with the first columns left out instead of the
    /// last, `…` in their place.
    pub fn cut_left(&self, columns: usize) -> Row {
        if self.width() <= columns || columns == 0 {
            return if columns == 0 { Row::new() } else { self.clone() };
        }
        let mut used = 1;
        let mut from = self.len();
        for at in (0..self.len()).rev() {
            used += usize::from(self.cells[at].width);
            if used > columns {
                break;
            }
            from = at;
        }
        let mut row = Row::of("…", Style::default());
        row.append(&self.part(from, self.len()));
        row
    }

    /// Every cell with a changed style.
    pub fn restyled(mut self, change: impl Fn(Style) -> Style) -> Row {
        for cell in &mut self.cells {
            cell.style = change(cell.style);
        }
        self
    }

    /// The same cells, each in the style of the byte of [`Row::text`] where it
    /// begins.
    pub fn styled_by(mut self, style: impl Fn(usize) -> Style) -> Row {
        let mut start = 0;
        for cell in &mut self.cells {
            cell.style = style(start);
            start = cell.end as usize;
        }
        self
    }

    /// Left part, blanks, right part that ends at column `columns`; the right
    /// part goes first when both do not fit.
    pub fn spread(left: &Row, right: &Row, columns: usize) -> Row {
        if right.is_empty() || left.width() + 2 + right.width() > columns {
            let mut row = left.cut(columns);
            if left.is_empty() {
                row = right.cut(columns);
            }
            return row;
        }
        let mut row = left.clone();
        row.space(columns - left.width() - right.width());
        row.append(right);
        row
    }
}

/// Columns of a grapheme: 0, 1 or 2.
pub fn width(symbol: &str) -> usize {
    symbol.width().min(2)
}

/// Columns of a text that was not made cells yet.
pub fn text_width(text: &str) -> usize {
    text.graphemes(true).map(width).sum()
}

/// Whether terminals judge the width of a grapheme differently (TERM-33).
pub fn is_shaky(symbol: &str) -> bool {
    if symbol.is_ascii() {
        return false;
    }
    let doubtful = |c: char| {
        matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{200d}' | '\u{1f1e6}'..='\u{1f1ff}')
            || matches!(c, '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}')
    };
    symbol.chars().any(doubtful) || symbol.width() != symbol.width_cjk() && !is_drawing(symbol)
}

/// Signs that we draw ourselves and that every terminal gives one column when
/// it is not set to a wide locale.
fn is_drawing(symbol: &str) -> bool {
    matches!(symbol, "─" | "│" | "├" | "└" | "·" | "…" | "↑" | "↓" | "←" | "→" | "•" | "●" | "▌")
}

fn marks_cut(symbol: &str) -> &str {
    let mut marks = 0;
    for (at, c) in symbol.char_indices().skip(1) {
        if unicode_width::UnicodeWidthChar::width(c) == Some(0) && c != '\u{200d}' {
            marks += 1;
        }
        if marks > MARKS_MAX {
            return &symbol[..at];
        }
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Row {
        Row::of(text, Style::default())
    }

    // C109, C110, case 28: the one boundary lets no control character through.
    #[test]
    fn no_control_character_becomes_a_cell() {
        for byte in (0..=0x1fu8).chain(0x7f..=0x9f) {
            let text = format!("a{}b", char::from(byte));
            let row = plain(&text);
            assert!(!row.text().chars().any(char::is_control), "{byte:#x}");
            assert_eq!(row.text().chars().next(), Some(if byte == b'\r' { 'b' } else { 'a' }));
        }
    }

    #[test]
    fn direction_controls_are_shown_by_number() {
        for c in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
            let row = plain(&format!("a{c}b"));
            assert_eq!(row.text(), format!("a<U+{:04X}>b", u32::from(c)));
        }
    }

    #[test]
    fn invisible_characters_take_no_cell() {
        assert_eq!(plain("a\u{200b}\u{feff}\u{2060}b").text(), "ab");
        let stacked = format!("e{}x", "\u{301}".repeat(40));
        let row = plain(&stacked);
        assert_eq!(row.len(), 2);
        assert_eq!(row.text().chars().filter(|c| *c == '\u{301}').count(), MARKS_MAX);
    }

    #[test]
    fn widths_are_those_of_the_tables() {
        let check = |text: &str, columns: usize| assert_eq!(plain(text).width(), columns, "{text}");
        check("abc", 3);
        check("日本", 4);
        check("👨‍👩‍👧", 2);
        check("⏹️", 2);
        check("e\u{301}", 1);
    }

    // Case 42.
    #[test]
    fn doubtful_widths_are_known() {
        for symbol in ["⏹️", "⚠️", "🇩🇪", "👨‍👩‍👧", "§"] {
            assert!(is_shaky(symbol), "{symbol}");
        }
        for symbol in ["a", "日", "✅", "…", "é"] {
            assert!(!is_shaky(symbol), "{symbol}");
        }
    }

    #[test]
    fn rows_are_cut_by_columns() {
        let check = |text: &str, columns, expected: &str| {
            assert_eq!(plain(text).cut(columns).text(), expected);
        };
        check("hello", 5, "hello");
        check("hello", 4, "hel…");
        check("日本語", 4, "日…");
        check("hello", 0, "");
        assert_eq!(plain("~/a/b/c").cut_left(5).text(), "…/b/c");
    }

    #[test]
    fn two_parts_stand_at_both_ends() {
        assert_eq!(Row::spread(&plain("ab"), &plain("c"), 6).text(), "ab   c");
        assert_eq!(Row::spread(&plain("abcd"), &plain("efg"), 6).text(), "abcd");
    }
}
