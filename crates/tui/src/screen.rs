//! The scrollback driver: finished rows go into the terminal's own history,
//! below them stands a live region that is redrawn in place.
//!
//! Owns what the terminal shows of us. Must never clear what was there before,
//! never place a row number from before a size change, and never write a byte
//! when nothing changed (`terminal.md` TERM-2, TERM-9, TERM-25, TERM-28,
//! TERM-31). All moves on the main screen are relative: where the region
//! stands is never asked. Read `screen::pen` for bytes, `screen::region` for
//! the main screen, `screen::full` for the alternate one.

mod full;
mod pen;
mod region;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;

use crate::cells::Row;
use crate::markdown::Line;
use crate::theme::Theme;
use pen::Pen;

/// Columns and rows of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

/// What is to be seen now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Rows from the top, none wider than the terminal.
    pub rows: Vec<Row>,
    /// Row and column of the cursor; hidden without one.
    pub cursor: Option<(usize, usize)>,
    /// The whole screen, in the alternate one (TERM-14).
    pub is_full: bool,
}

/// What the terminal shows.
#[derive(Debug)]
pub struct Screen {
    theme: Theme,
    main: region::Region,
    full: Option<full::Full>,
    cursor: Option<(usize, usize)>,
}

/// Cells of one row; a wide cell is followed by an empty symbol.
type Cells = Vec<Cell>;

impl Screen {
    /// A screen of which nothing is drawn yet; the cursor is taken to stand at
    /// the start of a row.
    pub fn new(theme: Theme) -> Screen {
        Screen { theme, main: region::Region::default(), full: None, cursor: None }
    }

    /// Other colours and icons; everything is drawn anew.
    pub fn set_theme(&mut self, theme: Theme) {
        if self.theme != theme {
            self.theme = theme;
            self.redraw();
        }
    }

    /// Modes of a face that is shown: pasted text is marked, focus is
    /// reported, keys are told apart where the terminal can (TERM-17).
    pub fn start(&self) -> Vec<u8> {
        b"\r\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[?u".to_vec()
    }

    /// The bytes that make the terminal show a picture with some rows printed
    /// above it; nothing when it does already. One write inside synchronised
    /// output (TERM-31). Rows are printed on the main screen only.
    pub fn frame(&mut self, size: Size, prints: &[Line], picture: &Picture) -> Vec<u8> {
        let mut pen = Pen::new(self.theme);
        if picture.is_full {
            let is_new = self.full.is_none();
            let full = self.full.get_or_insert_default();
            if is_new {
                pen.raw("\x1b[?1049h\x1b[>1u");
            }
            full.draw(&mut pen, size, &paint(&picture.rows, size, self.theme));
            if picture.cursor != self.cursor || pen.has_written() {
                full.place_cursor(&mut pen, picture.cursor);
            }
        } else {
            if self.full.take().is_some() {
                pen.raw("\x1b[<u\x1b[?1049l");
                self.main.back(&mut pen);
                self.cursor = None;
            }
            let rows = paint(&picture.rows, size, self.theme);
            self.main.draw(&mut pen, size, prints, rows);
            if picture.cursor != self.cursor || pen.has_written() {
                self.main.place_cursor(&mut pen, picture.cursor);
            }
        }
        self.cursor = picture.cursor;
        pen.finish(picture.cursor.is_some())
    }

    /// Leaves everything as it was: the region is gone, the last lines are
    /// printed in its place, all modes are reset (TERM-27).
    pub fn end(&mut self, size: Size, last: &[Line]) -> Vec<u8> {
        let mut pen = Pen::new(self.theme);
        if self.full.take().is_some() {
            pen.raw("\x1b[<u\x1b[?1049l");
            self.main.back(&mut pen);
        }
        self.main.clear(&mut pen, size, last);
        pen.raw("\x1b[<u\x1b[?1004l\x1b[?2004l");
        self.cursor = None;
        pen.finish(true)
    }

    /// Bytes that reset every mode whatever is shown: for a panic or a signal
    /// that leaves no time (TERM-27).
    pub fn panic_bytes(is_full: bool) -> &'static [u8] {
        if is_full {
            b"\x1b[<u\x1b[?1049l\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[0m\x1b[?25h\r\n"
        } else {
            b"\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[0m\x1b[?25h\r\n"
        }
    }

    /// Whether the alternate screen is shown.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Everything is drawn anew with the next frame (Ctrl+L).
    pub fn redraw(&mut self) {
        self.main.doubt();
        if let Some(full) = &mut self.full {
            full.doubt();
        }
        self.cursor = None;
    }
}

/// Paints rows into cells of this terminal.
fn paint(rows: &[Row], size: Size, theme: Theme) -> Vec<Cells> {
    let columns = u16::try_from(size.columns).unwrap_or(u16::MAX);
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, height));
    for (y, row) in rows.iter().enumerate().take(usize::from(height)) {
        let mut x = 0;
        for glyph in row.glyphs() {
            if x + glyph.width > usize::from(columns) {
                break;
            }
            let index = y * usize::from(columns) + x;
            let cell = &mut buffer.content[index];
            cell.set_symbol(theme.symbol(glyph.symbol));
            cell.set_style(theme.cell(glyph.style));
            if glyph.width == 2 {
                buffer.content[index + 1].set_symbol("");
            }
            x += glyph.width;
        }
    }
    if columns == 0 {
        return rows.iter().map(|_| Vec::new()).collect();
    }
    buffer.content.chunks(usize::from(columns)).map(<[Cell]>::to_vec).collect()
}

/// Columns up to the last cell that shows something.
fn used(cells: &[Cell]) -> usize {
    let blank = Cell::EMPTY;
    let shows = |cell: &Cell| cell.symbol() != " " || cell.style() != blank.style();
    cells.iter().rposition(shows).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests;
