//! Bytes of one frame: styles, cells and moves.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier, Style};

use crate::cells::{Glyph, is_shaky, width};
use crate::theme::Theme;

/// Gathers the bytes of one frame.
pub(super) struct Pen {
    pub(super) theme: Theme,
    bytes: String,
    style: Style,
    wrote: bool,
}

impl Pen {
    pub(super) fn new(theme: Theme) -> Pen {
        Pen { theme, bytes: String::new(), style: Style::default(), wrote: false }
    }

    /// Whether anything is to be sent.
    pub(super) fn has_written(&self) -> bool {
        self.wrote
    }

    /// A control of ours.
    pub(super) fn raw(&mut self, bytes: &str) {
        self.bytes.push_str(bytes);
        self.wrote = true;
    }

    pub(super) fn up(&mut self, rows: usize) {
        if rows > 0 {
            self.raw(&format!("\x1b[{rows}A"));
        }
    }

    pub(super) fn down(&mut self, rows: usize) {
        if rows > 0 {
            self.raw(&format!("\x1b[{rows}B"));
        }
    }

    /// To a column, counted from 0.
    pub(super) fn column(&mut self, column: usize) {
        if column == 0 {
            self.raw("\r");
        } else {
            self.raw(&format!("\x1b[{}G", column + 1));
        }
    }

    /// To a place of the alternate screen.
    pub(super) fn place(&mut self, row: usize, column: usize) {
        self.raw(&format!("\x1b[{};{}H", row + 1, column + 1));
    }

    pub(super) fn erase_row(&mut self) {
        self.plain();
        self.raw("\x1b[2K");
    }

    pub(super) fn plain(&mut self) {
        self.set_style(Style::default());
    }

    fn set_style(&mut self, style: Style) {
        if style == self.style {
            return;
        }
        self.style = style;
        let mut codes = String::from("\x1b[0");
        let modifiers = [
            (Modifier::BOLD, ";1"),
            (Modifier::DIM, ";2"),
            (Modifier::ITALIC, ";3"),
            (Modifier::UNDERLINED, ";4"),
            (Modifier::REVERSED, ";7"),
            (Modifier::CROSSED_OUT, ";9"),
        ];
        for (modifier, code) in modifiers {
            if style.add_modifier.contains(modifier) {
                codes.push_str(code);
            }
        }
        if let Some(number) = style.fg.and_then(palette) {
            codes.push_str(&format!(";{number}"));
        }
        codes.push('m');
        self.raw(&codes);
    }

    /// Writes the cells of a row that differ from what is there. The cursor
    /// stands in the row.
    ///
    /// A row that gets shorter is erased whole: some terminals take the cells
    /// behind an erased end for part of the row when its width changes, and
    /// break it into more rows than can be seen (TERM-25).
    pub(super) fn row(&mut self, before: &[Cell], cells: &[Cell], used: usize) {
        let shrinks = used < super::used(before);
        if shrinks {
            self.column(0);
            self.erase_row();
        }
        let before = if shrinks { &[] } else { before };
        let mut at = shrinks.then_some(0);
        for (x, cell) in cells.iter().enumerate().take(used) {
            if before.get(x) == Some(cell) || cell.symbol().is_empty() {
                continue;
            }
            if at != Some(x) {
                self.column(x);
            }
            at = self.cell(cell, x);
        }
    }

    /// Writes one cell and gives the column behind it, if it is certain.
    fn cell(&mut self, cell: &Cell, x: usize) -> Option<usize> {
        let symbol = cell.symbol();
        let columns = width(symbol).max(1);
        let shaky = is_shaky(symbol);
        if shaky && columns == 2 {
            // Whatever width the terminal gives it, both cells are ours.
            self.plain();
            self.raw("  ");
            self.column(x);
        }
        let style = cell.style();
        let foreground = style.fg.filter(|colour| *colour != Color::Reset);
        let mut plain = Style::default().add_modifier(style.add_modifier);
        plain.fg = foreground;
        self.set_style(plain);
        self.raw(symbol);
        (!shaky).then_some(x + columns)
    }

    /// Writes one cell of a printed row.
    pub(super) fn glyph(&mut self, glyph: Glyph<'_>) {
        let style = self.theme.cell(glyph.style);
        self.set_style(style);
        let symbol = self.theme.symbol(glyph.symbol).to_owned();
        self.raw(&symbol);
    }

    /// The frame: hidden cursor, one synchronised update.
    pub(super) fn finish(mut self, cursor: bool) -> Vec<u8> {
        if !self.wrote {
            return Vec::new();
        }
        self.plain();
        let show = if cursor { "\x1b[?25h" } else { "" };
        format!("\x1b[?2026h\x1b[?25l{}{show}\x1b[?2026l", self.bytes).into_bytes()
    }
}

/// The number of a palette colour as foreground.
#[expect(clippy::wildcard_enum_match_arm, reason = "the theme uses the 16 palette colours only")]
fn palette(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 30,
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::Gray => 37,
        Color::DarkGray => 90,
        Color::LightRed => 91,
        Color::LightGreen => 92,
        Color::LightYellow => 93,
        Color::LightBlue => 94,
        Color::LightMagenta => 95,
        Color::LightCyan => 96,
        Color::White => 97,
        _ => return None,
    })
}
