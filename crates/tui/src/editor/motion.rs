//! Where the cursor goes (`host.md` 8.6).

use unicode_segmentation::UnicodeSegmentation;

use super::Editor;

impl Editor {
    /// Place of the grapheme before a place.
    pub(super) fn before(&self, at: usize) -> usize {
        self.buffer[..at].graphemes(true).next_back().map_or(at, |grapheme| at - grapheme.len())
    }

    /// Place behind the grapheme at a place.
    pub(super) fn behind(&self, at: usize) -> usize {
        self.buffer[at..].graphemes(true).next().map_or(at, |grapheme| at + grapheme.len())
    }

    pub(super) fn line_start_at(&self, at: usize) -> usize {
        self.buffer[..at].rfind('\n').map_or(0, |feed| feed + 1)
    }

    pub(super) fn line_end_at(&self, at: usize) -> usize {
        self.buffer[at..].find('\n').map_or(self.buffer.len(), |feed| at + feed)
    }

    /// One grapheme to the left.
    pub fn left(&mut self) {
        self.moved(self.before(self.cursor));
    }

    /// One grapheme to the right.
    pub fn right(&mut self) {
        self.moved(self.behind(self.cursor));
    }

    /// To the start of the line.
    pub fn line_start(&mut self) {
        self.moved(self.line_start_at(self.cursor));
    }

    /// To the end of the line.
    pub fn line_end(&mut self) {
        self.moved(self.line_end_at(self.cursor));
    }

    /// To the very end.
    pub fn end(&mut self) {
        self.moved(self.buffer.len());
    }

    /// To the start of the word.
    pub fn word_left(&mut self) {
        self.moved(self.word_left_of(self.cursor));
    }

    /// To the end of the word.
    pub fn word_right(&mut self) {
        self.moved(self.word_right_of(self.cursor));
    }

    pub(super) fn word_left_of(&self, at: usize) -> usize {
        let mut in_word = false;
        for (place, c) in self.buffer[..at].char_indices().rev() {
            let is_word = is_word(c);
            if in_word && !is_word {
                return place + c.len_utf8();
            }
            in_word |= is_word;
        }
        0
    }

    pub(super) fn word_right_of(&self, at: usize) -> usize {
        let mut in_word = false;
        for (place, c) in self.buffer[at..].char_indices() {
            let is_word = is_word(c);
            if in_word && !is_word {
                return at + place;
            }
            in_word |= is_word;
        }
        self.buffer.len()
    }

    pub(super) fn blank_word_left(&self) -> usize {
        let mut in_word = false;
        for (place, c) in self.buffer[..self.cursor].char_indices().rev() {
            if in_word && c.is_whitespace() {
                return place + c.len_utf8();
            }
            in_word |= !c.is_whitespace();
        }
        0
    }

    /// To the next such character, or the one before (Ctrl+], Ctrl+Alt+]).
    pub fn jump_to(&mut self, wanted: char, backwards: bool) {
        let found = if backwards {
            self.buffer[..self.cursor].rfind(wanted)
        } else {
            let from = self.behind(self.cursor);
            self.buffer[from..].find(wanted).map(|at| from + at)
        };
        if let Some(at) = found {
            self.moved(at);
            self.settle_cursor();
        }
    }

    /// One visual line up at a width; `false` on the first one.
    pub fn up(&mut self, columns: usize) -> bool {
        self.vertical(columns, -1)
    }

    /// One visual line down at a width; `false` on the last one.
    pub fn down(&mut self, columns: usize) -> bool {
        self.vertical(columns, 1)
    }

    fn vertical(&mut self, columns: usize, by: isize) -> bool {
        let layout = self.layout(columns);
        let (row, column) = layout.cursor;
        let Some(target) = row.checked_add_signed(by).filter(|row| *row < layout.rows()) else {
            return false;
        };
        let goal = self.goal.unwrap_or(column);
        let place = layout.place(target, goal);
        self.moved(place);
        self.goal = Some(goal);
        true
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || super::paste::is_marker(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` is the cursor.
    fn check(before: &str, motion: fn(&mut Editor), after: &str) {
        let mut editor = Editor::default();
        editor.set(&before.replace('|', ""));
        editor.cursor = before.find('|').unwrap();
        motion(&mut editor);
        let mut shown = editor.buffer.clone();
        shown.insert(editor.cursor, '|');
        assert_eq!(shown, after, "from {before}");
    }

    #[test]
    fn motions_go_by_graphemes_words_and_lines() {
        check("ab|c", Editor::left, "a|bc");
        check("e\u{301}|x", Editor::left, "|e\u{301}x");
        check("|👨‍👩‍👧x", Editor::right, "👨‍👩‍👧|x");
        check("one two|", Editor::word_left, "one |two");
        check("one, |two", Editor::word_left, "|one, two");
        check("|one, two", Editor::word_right, "one|, two");
        check("a\nb|c\nd", Editor::line_start, "a\n|bc\nd");
        check("a\n|bc\nd", Editor::line_end, "a\nbc|\nd");
        check("|a.b.c", |e| e.jump_to('.', false), "a|.b.c");
        check("a|.b.c", |e| e.jump_to('.', false), "a.b|.c");
        check("a.b|.c", |e| e.jump_to('.', true), "a|.b.c");
    }

    #[test]
    fn kills_are_gathered_and_yanked() {
        check(
            "one two| x",
            |e| {
                e.kill_blank_word();
                e.kill_blank_word();
                e.yank()
            },
            "one two| x",
        );
        check("a| b\nc", Editor::kill_to_end, "a|\nc");
        check("a|\nc", Editor::kill_to_end, "a|c");
        check("ab c|d", Editor::kill_to_start, "|d");
        check("x |word y", Editor::kill_word_right, "x | y");
        check("foo(bar)| x", Editor::kill_word_left, "foo(| x");
        check(
            "a b|",
            |e| {
                e.kill_blank_word();
                e.left();
                e.kill_blank_word();
                e.yank();
                e.yank_older()
            },
            "b| ",
        );
    }

    #[test]
    fn up_and_down_keep_their_column() {
        check(
            "abcd\nx\nab|cd",
            |e| {
                e.up(20);
                e.up(20);
            },
            "ab|cd\nx\nabcd",
        );
        // Visual lines of a wrapped text.
        check(
            "one two thr|ee",
            |e| {
                e.up(8);
            },
            "one| two three",
        );
        check(
            "|a",
            |e| {
                assert!(!e.up(8));
                assert!(!e.down(8));
            },
            "|a",
        );
    }

    #[test]
    fn undo_takes_words_back() {
        let mut editor = Editor::default();
        "one two".chars().for_each(|c| editor.insert(c));
        editor.undo();
        assert_eq!(editor.text(), "one");
        editor.undo();
        assert_eq!(editor.text(), "");
        editor.undo();
        assert!(editor.is_empty());
    }
}
