//! Breaking a row into rows that fit.

use super::Row;

impl Row {
    /// Breaks between words; a word that is wider than a row is broken where
    /// the row ends. Rows after the first begin with `indent` blanks. Never
    /// gives a row wider than `columns`, unless that is less than a wide cell.
    pub fn wrap(&self, columns: usize, indent: usize) -> Vec<Row> {
        let columns = columns.max(1);
        let indent = if indent + 8 <= columns { indent } else { 0 };
        let mut rows = Vec::new();
        let mut start = 0;
        while start < self.len() {
            let room = columns - if rows.is_empty() { 0 } else { indent };
            let (end, next) = self.break_at(start, room);
            let mut row = Row::new();
            if !rows.is_empty() {
                row.space(indent);
            }
            row.append(&self.part(start, end));
            rows.push(row);
            start = next;
        }
        if rows.is_empty() {
            rows.push(Row::new());
        }
        rows
    }

    /// Breaks where a terminal would: at the last column.
    pub fn wrap_hard(&self, columns: usize) -> Vec<Row> {
        let columns = columns.max(1);
        let mut rows = Vec::new();
        let mut start = 0;
        while start < self.len() {
            let end = self.fitting(start, columns);
            rows.push(self.part(start, end));
            start = end;
        }
        if rows.is_empty() {
            rows.push(Row::new());
        }
        rows
    }

    /// The cell behind the last one that fits, at least one.
    fn fitting(&self, start: usize, columns: usize) -> usize {
        let mut used = 0;
        let mut at = start;
        while at < self.len() {
            used += self.glyph(at).width;
            if used > columns && at > start {
                break;
            }
            at += 1;
        }
        at
    }

    /// End of the row that begins at `start`, and where the next one begins.
    fn break_at(&self, start: usize, columns: usize) -> (usize, usize) {
        let end = self.fitting(start, columns);
        let is_space = |at: usize| self.glyph(at).symbol == " ";
        if end == self.len() {
            return (end, end);
        }
        // Blanks at the break are neither shown nor carried over.
        let skip = |mut at: usize| {
            while at < self.len() && is_space(at) {
                at += 1;
            }
            at
        };
        let trimmed = |mut at: usize| {
            while at > start && is_space(at - 1) {
                at -= 1;
            }
            at
        };
        if is_space(end) {
            return (trimmed(end), skip(end));
        }
        let mut at = end;
        while at > start && !is_space(at - 1) && !breaks_after(self.glyph(at - 1).symbol) {
            at -= 1;
        }
        if at == start || (start..at).all(is_space) {
            return (end, end);
        }
        (trimmed(at), skip(at))
    }
}

/// Scripts without blanks between words may be broken after any sign.
fn breaks_after(symbol: &str) -> bool {
    symbol.chars().next().is_some_and(|c| {
        matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
            || matches!(c, '\u{20000}'..='\u{3ffff}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Style;

    fn check(text: &str, columns: usize, indent: usize, expected: &[&str]) {
        let rows = Row::of(text, Style::default()).wrap(columns, indent);
        let rows: Vec<_> = rows.iter().map(Row::text).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        check("the quick brown fox", 10, 0, &["the quick", "brown fox"]);
        check("a incomprehensible b", 8, 0, &["a", "incompre", "hensible", "b"]);
        check("one two three", 11, 2, &["one two", "  three"]);
        check("", 5, 0, &[""]);
        check("日本語テキスト", 6, 0, &["日本語", "テキス", "ト"]);
        check("ab  cd", 3, 0, &["ab", "cd"]);
    }

    // C137, case 2: no row is wider than the terminal, at any width.
    #[test]
    fn no_row_is_wider_than_asked() {
        let text = "日本 👨‍👩‍👧 family\tand a_very_long_identifier_without_blanks e\u{301}";
        for columns in 2..60 {
            for row in Row::of(text, Style::default()).wrap(columns, 2) {
                assert!(row.width() <= columns, "{columns}: {}", row.text());
            }
            for row in Row::of(text, Style::default()).wrap_hard(columns) {
                assert!(row.width() <= columns);
            }
        }
        assert!(!Row::of(text, Style::default()).wrap(1, 0).is_empty());
    }
}
