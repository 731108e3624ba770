//! Changes of the text: typing, deleting, killing and yanking (`host.md` 8.6).

use unicode_segmentation::UnicodeSegmentation;

use super::{Action, Editor, paste};

/// Texts the kill ring holds.
const KILLS_MAX: usize = 30;

impl Editor {
    /// Types one character.
    pub fn insert(&mut self, c: char) {
        if c != '\n' && (c.is_control() || paste::is_marker(c)) {
            return;
        }
        // A blank begins a new undo step, so that undo goes back by words.
        let action = if c.is_whitespace() { Action::Other } else { Action::Type };
        self.remember(action);
        if action == Action::Other {
            self.last = Action::Type;
        }
        self.buffer.insert(self.cursor, c);
        self.cursor += c.len_utf8();
        self.settle_cursor();
    }

    /// Starts a new line. A backslash before the cursor goes (`host.md` 8.5).
    pub fn newline(&mut self) {
        self.remember(Action::Other);
        self.buffer.insert(self.cursor, '\n');
        self.cursor += 1;
    }

    /// Whether the character before the cursor is a backslash that asks for a
    /// new line; removes it.
    pub fn take_backslash(&mut self) -> bool {
        let has = self.buffer[..self.cursor].ends_with('\\');
        if has {
            self.remember(Action::Other);
            self.cursor -= 1;
            self.buffer.remove(self.cursor);
        }
        has
    }

    /// Inserts text without making it a marker.
    pub fn insert_text(&mut self, text: &str) {
        let text = paste::plain(text);
        if text.is_empty() {
            return;
        }
        self.remember(Action::Other);
        self.buffer.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.settle_cursor();
    }

    /// Deletes the grapheme before the cursor.
    pub fn backspace(&mut self) {
        let from = self.before(self.cursor);
        self.delete_range(from, self.cursor);
    }

    /// Deletes the grapheme behind the cursor.
    pub fn delete(&mut self) {
        let to = self.behind(self.cursor);
        self.delete_range(self.cursor, to);
    }

    fn delete_range(&mut self, from: usize, to: usize) {
        if from < to {
            self.remember(Action::Other);
            self.buffer.replace_range(from..to, "");
            self.cursor = from;
            self.settle_cursor();
        }
    }

    /// Kills to the end of the line; at its end the line feed (Ctrl+K).
    pub fn kill_to_end(&mut self) {
        let end = self.line_end_at(self.cursor);
        let to = if end == self.cursor { self.behind(end) } else { end };
        self.kill(self.cursor, to, false);
    }

    /// Kills to the start of the line; at its start the line feed (Ctrl+U).
    pub fn kill_to_start(&mut self) {
        let start = self.line_start_at(self.cursor);
        let from = if start == self.cursor { self.before(start) } else { start };
        self.kill(from, self.cursor, true);
    }

    /// Kills back to the last blank (Ctrl+W).
    pub fn kill_blank_word(&mut self) {
        let from = self.blank_word_left();
        self.kill(from, self.cursor, true);
    }

    /// Kills the word before the cursor (Alt+Backspace).
    pub fn kill_word_left(&mut self) {
        let from = self.word_left_of(self.cursor);
        self.kill(from, self.cursor, true);
    }

    /// Kills the word behind the cursor (Alt+D).
    pub fn kill_word_right(&mut self) {
        let to = self.word_right_of(self.cursor);
        self.kill(self.cursor, to, false);
    }

    fn kill(&mut self, from: usize, to: usize, backwards: bool) {
        if from >= to {
            return;
        }
        let continues = self.last == Action::Kill;
        self.remember(Action::Kill);
        let killed = self.buffer[from..to].to_owned();
        self.buffer.replace_range(from..to, "");
        self.cursor = from;
        self.settle_cursor();
        match self.kills.last_mut() {
            Some(last) if continues && backwards => last.insert_str(0, &killed),
            Some(last) if continues => last.push_str(&killed),
            _ => self.kills.push(killed),
        }
        if self.kills.len() > KILLS_MAX {
            self.kills.remove(0);
        }
    }

    /// Inserts the newest kill (Ctrl+Y).
    pub fn yank(&mut self) {
        if let Some(newest) = self.kills.len().checked_sub(1) {
            self.remember(Action::Other);
            self.yank_kill(newest);
        }
    }

    /// Replaces the yanked text by the kill before it (Alt+Y).
    pub fn yank_older(&mut self) {
        let Action::Yank(length, which) = self.last else { return };
        let from = self.cursor - length;
        self.buffer.replace_range(from..self.cursor, "");
        self.cursor = from;
        let older = which.checked_sub(1).unwrap_or(self.kills.len() - 1);
        self.yank_kill(older);
    }

    fn yank_kill(&mut self, which: usize) {
        let text = self.kills[which].clone();
        self.buffer.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.last = Action::Yank(text.len(), which);
    }

    /// Keeps the cursor between graphemes: what was typed or joined may have
    /// become part of the one behind it.
    pub(super) fn settle_cursor(&mut self) {
        let mut at = 0;
        for grapheme in self.buffer.graphemes(true) {
            if at >= self.cursor {
                break;
            }
            at += grapheme.len();
        }
        self.cursor = at;
    }
}
