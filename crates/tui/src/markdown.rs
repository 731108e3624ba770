//! Markdown as rows (`terminal.md` TERM-21, TERM-23, TERM-62).
//!
//! A text is cut into chunks that no later text can change; each is drawn by
//! itself. Must never give a prose row that is wider than asked. Read
//! `markdown::chunk` for the cutting, `markdown::draw` for one chunk.

mod chunk;
mod draw;
mod table;

pub use chunk::{Chunk, Chunker};
pub use draw::draw;
pub(crate) use draw::{code_blocks, code_text, draw_coloured};

use crate::cells::Row;

/// A row to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its cells.
    pub row: Row,
    /// Prose was broken to fit; other lines are left whole, so that a copied
    /// line is whole, and are broken by the terminal (TERM-23).
    pub is_prose: bool,
}

impl Line {
    /// A line that was broken to fit.
    pub fn prose(row: Row) -> Line {
        Line { row, is_prose: true }
    }

    /// A line that the terminal breaks.
    pub fn whole(row: Row) -> Line {
        Line { row, is_prose: false }
    }

    /// The same with blanks in front (TERM-59).
    pub fn indented(self, columns: usize) -> Line {
        if self.row.is_empty() {
            return self;
        }
        let mut row = Row::new();
        row.space(columns);
        row.append(&self.row);
        Line { row, is_prose: self.is_prose }
    }
}

/// A whole text as lines.
pub fn render(text: &str, columns: usize) -> Vec<Line> {
    let mut chunker = Chunker::default();
    let mut chunks = chunker.push(text);
    chunks.extend(chunker.finish());
    chunks.iter().flat_map(|chunk| draw(chunk, columns)).collect()
}

/// Prose in one style, broken to fit; line feeds stay.
pub fn plain(text: &str, columns: usize, style: crate::theme::Style) -> Vec<Line> {
    let lines = crate::cells::clean_lines(text);
    let rows = lines.iter().flat_map(|line| Row::of(line, style).wrap(columns, 0));
    rows.map(Line::prose).collect()
}
