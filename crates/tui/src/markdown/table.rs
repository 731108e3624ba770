//! Tables: cells wrap down to a few columns; below that each row becomes
//! `header: value` lines (`terminal.md` TERM-62).

use super::Line;
use crate::cells::Row;
use crate::theme::{MUTED, Style};

/// Narrowest column of a cell that is wrapped.
const CELL_COLUMNS_MIN: usize = 8;
/// Between two cells.
const GAP: &str = " │ ";

/// A table while it is read.
pub(super) struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<Row>>,
}

impl Table {
    pub(super) fn new(right: Vec<bool>) -> Table {
        Table { right, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn start_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(Row::new());
        }
    }

    pub(super) fn push(&mut self, text: &str, style: Style) {
        let is_head = self.rows.len() == 1;
        let style = if is_head { style.bold() } else { style };
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push(text, style);
        }
    }

    pub(super) fn draw(&self, columns: usize) -> Vec<Line> {
        let Some(widths) = self.widths(columns) else { return self.listed(columns) };
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, &widths));
            if number == 0 {
                let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::prose(Row::of(&rule.join("─┼─"), MUTED)));
            }
        }
        lines
    }

    /// Column widths that fit, or nothing when the columns are too narrow.
    fn widths(&self, columns: usize) -> Option<Vec<usize>> {
        let count = self.right.len().max(1);
        let natural: Vec<usize> = (0..count)
            .map(|at| {
                let cells = self.rows.iter().filter_map(|row| row.get(at));
                cells.map(Row::width).max().unwrap_or(0).max(1)
            })
            .collect();
        let room = columns.checked_sub(GAP.chars().count() * (count - 1))?;
        if natural.iter().sum::<usize>() <= room {
            return Some(natural);
        }
        let mut widths = natural.clone();
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max_by_key(|width| **width)?;
            if *widest <= CELL_COLUMNS_MIN {
                return None;
            }
            *widest -= 1;
        }
        Some(widths)
    }

    fn row_lines(&self, row: &[Row], widths: &[usize]) -> Vec<Line> {
        let empty = Row::new();
        let cells: Vec<Vec<Row>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| row.get(at).unwrap_or(&empty).wrap(*width, 0))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let line = |number: usize| {
            let mut line = Row::new();
            for (at, cell) in cells.iter().enumerate() {
                if at > 0 {
                    line.push(GAP, MUTED);
                }
                let part = cell.get(number).unwrap_or(&empty);
                let pad = widths[at].saturating_sub(part.width());
                let is_right = self.right.get(at) == Some(&true);
                line.space(if is_right { pad } else { 0 });
                line.append(part);
                let is_last = at + 1 == cells.len();
                line.space(if is_right || is_last { 0 } else { pad });
            }
            Line::prose(line)
        };
        (0..height).map(line).collect()
    }

    fn listed(&self, columns: usize) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(Line::prose(Row::new()));
            }
            for (at, cell) in row.iter().enumerate() {
                let mut line = head.get(at).cloned().unwrap_or_default();
                line.push(": ", MUTED);
                line.append(cell);
                lines.extend(line.wrap(columns, 2).into_iter().map(Line::prose));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use crate::markdown::render;

    fn check(text: &str, columns: usize, expected: &[&str]) {
        let lines = render(text, columns);
        let lines: Vec<_> = lines.iter().map(|line| line.row.text()).collect();
        assert_eq!(lines, expected);
    }

    const TABLE: &str =
        "| file | lines |\n|------|------:|\n| src/parser/list.rs | 12 |\n| b | 7 |";

    #[test]
    fn cells_wrap_and_then_become_lines() {
        let wide = [
            "file               │ lines",
            "───────────────────┼─",
            "src/parser/list.rs │    12",
            "b                  │     7",
        ];
        let rule = "─".repeat(18) + "─┼─" + &"─".repeat(5);
        check(
            TABLE,
            40,
            &wide.map(|line| if line.starts_with('─') { rule.as_str() } else { line }),
        );
        check(
            TABLE,
            12,
            &["file:", "  src/parser", "  /list.rs", "lines: 12", "", "file: b", "lines: 7"],
        );
    }
}
