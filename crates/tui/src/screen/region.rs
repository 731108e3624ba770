//! The live region at the end of the main screen (TERM-9, TERM-25).
//!
//! The block is the region with the blank rows above it. Invariant: the cursor
//! stands in row `at` of the block, and the rows of the block are those in
//! `rows`. Moves are relative to the cursor, because the row of the screen is
//! not known and changes with its size.

use super::pen::Pen;
use super::{Cells, Size, used};
use crate::cells::is_shaky;
use crate::markdown::Line;

/// What stands at the end of the main screen.
#[derive(Debug, Default)]
pub(super) struct Region {
    /// Rows of the block, from its top; `None` where it is in doubt.
    rows: Vec<Option<Cells>>,
    /// How many of them are blank rows above the region.
    blanks: usize,
    /// Row and column of the cursor in the block.
    at: (usize, usize),
    size: Option<Size>,
}

impl Region {
    pub(super) fn draw(&mut self, pen: &mut Pen, size: Size, prints: &[Line], rows: Vec<Cells>) {
        if self.size.is_some_and(|drawn| drawn != size) {
            self.reflow(pen, size);
        }
        self.size = Some(size);
        if !prints.is_empty() {
            self.print(pen, size, prints);
        }
        let room = size.rows.saturating_sub(1).max(rows.len());
        let height = self.rows.len().min(room).max(rows.len());
        self.blanks = height - rows.len();
        let blank = Cells::new();
        let mut next = vec![blank; self.blanks];
        next.extend(rows);
        // A block that is too high for a lower screen loses rows at its top.
        let lost = self.rows.len().saturating_sub(next.len());
        if lost > 0 {
            for row in 0..lost {
                self.to(pen, row);
                pen.erase_row();
            }
            self.to(pen, lost);
            self.rows.drain(..lost);
            self.at.0 = 0;
        }
        for (y, cells) in next.into_iter().enumerate() {
            self.draw_row(pen, y, cells);
        }
    }

    fn draw_row(&mut self, pen: &mut Pen, y: usize, cells: Cells) {
        let length = used(&cells);
        let before = self.rows.get(y).cloned();
        match before {
            Some(Some(before)) => {
                let is_same = used(&before) == length && before[..length] == cells[..length];
                if !is_same {
                    self.to(pen, y);
                    pen.row(&before, &cells, length);
                }
                self.rows[y] = Some(cells);
            }
            Some(None) => {
                self.to(pen, y);
                pen.column(0);
                pen.erase_row();
                pen.row(&[], &cells, length);
                self.rows[y] = Some(cells);
            }
            None => {
                self.append_row(pen, y);
                pen.row(&[], &cells, length);
                self.rows.push(Some(cells));
            }
        }
    }

    /// Opens a row below the last one; the terminal scrolls where it must.
    fn append_row(&mut self, pen: &mut Pen, y: usize) {
        if y > 0 {
            self.to(pen, y - 1);
            pen.plain();
            pen.raw("\r\n");
        } else {
            pen.column(0);
        }
        self.at = (y, 0);
    }

    /// Moves to a row that exists.
    fn to(&mut self, pen: &mut Pen, row: usize) {
        if row < self.at.0 {
            pen.up(self.at.0 - row);
        } else {
            pen.down(row - self.at.0);
        }
        self.at.0 = row;
    }

    /// Prints rows at the top of the block: they fill its blank rows first,
    /// what is more pushes the region down.
    fn print(&mut self, pen: &mut Pen, size: Size, prints: &[Line]) {
        self.to(pen, 0);
        let old = self.rows.len();
        let mut printed = 0;
        for line in prints {
            let height = height(line, size.columns);
            // Of a line of several rows the old ones below go first: a wide
            // cell that does not fit leaves one that is not overwritten.
            let below = (height - 1).min(old.saturating_sub(printed + 1));
            for _ in 0..below {
                pen.down(1);
                pen.erase_row();
            }
            pen.up(below);
            pen.column(0);
            if printed < old {
                pen.erase_row();
            }
            write_line(pen, line);
            pen.plain();
            pen.raw("\r\n");
            printed += height;
        }
        let left = old.saturating_sub(printed);
        self.rows = vec![None; left];
        self.at = (0, 0);
        if left == 0 {
            // The row the cursor stands in is the first one of the block.
            self.rows.push(None);
        }
    }

    /// After a size change: where each row stands now is counted, every one of
    /// them is erased, and the block is empty but as high (TERM-25).
    fn reflow(&mut self, pen: &mut Pen, size: Size) {
        let columns = size.columns.max(1);
        let rows = |cells: &Option<Cells>| {
            cells.as_ref().map_or(1, |cells| used(cells).div_ceil(columns).max(1))
        };
        let heights: Vec<usize> = self.rows.iter().map(rows).collect();
        let above = heights.iter().take(self.at.0).sum::<usize>() + self.at.1 / columns;
        let total = heights.iter().sum::<usize>().clamp(1, size.rows.saturating_sub(1).max(1));
        let above = above.min(size.rows.saturating_sub(1));
        pen.up(above);
        pen.column(0);
        pen.raw("\x1b7");
        for row in 0..heights.iter().sum::<usize>().min(size.rows) {
            if row > 0 {
                pen.down(1);
            }
            pen.erase_row();
        }
        pen.raw("\x1b8");
        let height = if self.rows.is_empty() { 0 } else { total };
        self.rows = Vec::new();
        self.at = (0, 0);
        // The last row of the block stays where it is.
        for y in 0..height {
            self.append_row(pen, y);
            self.rows.push(Some(Cells::new()));
        }
    }

    /// The main screen is back after the alternate one, cursor and all.
    pub(super) fn back(&mut self, pen: &mut Pen) {
        pen.plain();
    }

    /// Erases the region and prints last lines in its place.
    pub(super) fn clear(&mut self, pen: &mut Pen, size: Size, last: &[Line]) {
        if self.size.is_some_and(|drawn| drawn != size) {
            self.reflow(pen, size);
        }
        let rows = self.rows.len();
        for row in (0..rows).rev() {
            self.to(pen, row);
            pen.erase_row();
        }
        self.to(pen, 0);
        pen.column(0);
        for line in last {
            write_line(pen, line);
            pen.plain();
            pen.raw("\r\n");
        }
        *self = Region::default();
    }

    pub(super) fn place_cursor(&mut self, pen: &mut Pen, cursor: Option<(usize, usize)>) {
        let bottom = self.rows.len().saturating_sub(1);
        let (row, column) = match cursor {
            Some((row, column)) => ((self.blanks + row).min(bottom), column),
            None => (bottom, 0),
        };
        self.to(pen, row);
        pen.column(column);
        self.at = (row, column);
    }

    pub(super) fn doubt(&mut self) {
        self.rows.iter_mut().for_each(|row| *row = None);
    }
}

fn write_line(pen: &mut Pen, line: &Line) {
    let mut column = 0;
    for glyph in line.row.glyphs() {
        let shaky = is_shaky(glyph.symbol);
        pen.glyph(glyph);
        column += glyph.width;
        if shaky && line.is_prose {
            pen.column(column);
        }
    }
}

/// Rows of the screen that a printed line takes.
fn height(line: &Line, columns: usize) -> usize {
    let mut rows = 1;
    let mut column = 0;
    for glyph in line.row.glyphs() {
        if column + glyph.width > columns {
            rows += 1;
            column = 0;
        }
        column += glyph.width;
    }
    rows
}
