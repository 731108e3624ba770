//! The alternate screen of boards, pickers and the transcript (TERM-14).

use super::pen::Pen;
use super::{Cells, Size, used};

/// What the alternate screen shows.
#[derive(Debug, Default)]
pub(super) struct Full {
    rows: Vec<Option<Cells>>,
    size: Option<Size>,
}

impl Full {
    pub(super) fn draw(&mut self, pen: &mut Pen, size: Size, rows: &[Cells]) {
        if self.size != Some(size) {
            self.size = Some(size);
            self.rows = vec![None; size.rows];
        }
        let blank = Cells::new();
        for (y, before) in self.rows.iter_mut().enumerate() {
            let cells = rows.get(y).unwrap_or(&blank);
            let length = used(cells);
            let is_same = before.as_ref().is_some_and(|before| {
                before == cells || used(before) == length && before[..length] == cells[..length]
            });
            if is_same {
                continue;
            }
            pen.place(y, 0);
            match before.as_deref() {
                Some(before) => pen.row(before, cells, length),
                None => {
                    pen.erase_row();
                    pen.row(&[], cells, length);
                }
            }
            *before = Some(cells.clone());
        }
    }

    pub(super) fn place_cursor(&mut self, pen: &mut Pen, cursor: Option<(usize, usize)>) {
        match cursor {
            Some((row, column)) => pen.place(row, column),
            // Hidden, out of the way of what a terminal prints by itself.
            None => pen.place(0, 0),
        }
    }

    pub(super) fn doubt(&mut self) {
        self.rows.iter_mut().for_each(|row| *row = None);
    }
}
