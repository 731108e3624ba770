//! The editor: a text of several lines, its cursor, undo, kills and history.
//!
//! Owns the draft. Must never change by anything but the person's own key
//! (`terminal.md` TERM-1). A large paste is one character of a private range in
//! the text, so every motion treats it as a whole (`host.md` 8.9); [`Editor::text`]
//! gives the text with pastes in place. Read `editor::motion`, `editor::layout`.

mod edit;
mod history;
mod layout;
mod motion;
mod paste;

pub use history::History;
pub use layout::Layout;

use crew_base::limits::UNDO_STEPS_MAX;

/// The draft and everything that belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    buffer: String,
    /// Byte place, always between two graphemes.
    cursor: usize,
    /// Column that Up and Down aim at.
    goal: Option<usize>,
    undo: Vec<Snapshot>,
    kills: Vec<String>,
    last: Action,
    pastes: Vec<paste::Paste>,
    pastes_made: usize,
    /// History of submitted inputs (`host.md` 8.8).
    pub history: History,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    buffer: String,
    cursor: usize,
}

/// What the last key did; some keys continue it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Action {
    #[default]
    Other,
    Type,
    Kill,
    /// Yanked: bytes inserted, and which kill.
    Yank(usize, usize),
}

impl Editor {
    /// The text with pastes in place.
    pub fn text(&self) -> String {
        self.expand(&self.buffer)
    }

    /// The text as it is shown, markers in place of pastes.
    pub fn shown(&self) -> String {
        let mut shown = String::with_capacity(self.buffer.len());
        for c in self.buffer.chars() {
            match self.paste_of(c) {
                Some(paste) => shown.push_str(&paste.label),
                None => shown.push(c),
            }
        }
        shown
    }

    /// The raw buffer, in which a paste is one character.
    pub fn buffer(&self) -> &str {
        &self.buffer
    }

    /// Byte place of the cursor in the raw buffer.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Replaces the draft; undo brings the old one back.
    pub fn set(&mut self, text: &str) {
        self.remember(Action::Other);
        self.buffer = paste::plain(text);
        self.cursor = self.buffer.len();
    }

    /// Takes the draft out, as on submit, and forgets its undo steps.
    pub fn take(&mut self) -> String {
        let text = self.text();
        let history = std::mem::take(&mut self.history);
        let kills = std::mem::take(&mut self.kills);
        let pastes_made = self.pastes_made;
        *self = Editor { history, kills, pastes_made, ..Editor::default() };
        self.history.leave();
        text
    }

    /// Takes the draft back one step.
    pub fn undo(&mut self) {
        if let Some(before) = self.undo.pop() {
            self.buffer = before.buffer;
            self.cursor = before.cursor;
        }
        self.last = Action::Other;
        self.goal = None;
    }

    /// Keeps the state before a change; a run of typed letters is one step.
    fn remember(&mut self, action: Action) {
        let continues = action == Action::Type && self.last == Action::Type;
        if !continues {
            let step = Snapshot { buffer: self.buffer.clone(), cursor: self.cursor };
            if self.undo.last() != Some(&step) {
                self.undo.push(step);
            }
            if self.undo.len() > UNDO_STEPS_MAX {
                self.undo.remove(0);
            }
        }
        self.last = action;
        self.goal = None;
    }

    /// A key that moves ends runs of typing, killing and yanking.
    fn moved(&mut self, to: usize) {
        self.cursor = to;
        self.last = Action::Other;
        self.goal = None;
    }

    /// Replaces a range of the buffer, as a completion does; the cursor goes
    /// behind it.
    pub fn replace(&mut self, from: usize, to: usize, text: &str) {
        self.remember(Action::Other);
        self.buffer.replace_range(from..to, text);
        self.cursor = from + text.len();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    /// The plain model: a string and a place counted in graphemes.
    #[derive(Default)]
    struct Model {
        text: String,
        at: usize,
    }

    impl Model {
        fn byte(&self) -> usize {
            self.text.graphemes(true).take(self.at).map(str::len).sum()
        }

        fn settle(&mut self, byte: usize) {
            let mut seen = 0;
            self.at = 0;
            for grapheme in self.text.graphemes(true) {
                if seen >= byte {
                    break;
                }
                seen += grapheme.len();
                self.at += 1;
            }
        }

        fn delete(&mut self, at: usize) {
            let from = self.text.graphemes(true).take(at).map(str::len).sum::<usize>();
            if let Some(grapheme) = self.text[from..].graphemes(true).next() {
                let to = from + grapheme.len();
                self.text.replace_range(from..to, "");
                self.settle(from);
            }
        }

        fn apply(&mut self, step: &Step) {
            match step {
                Step::Type(c) => {
                    let byte = self.byte();
                    self.text.insert(byte, *c);
                    self.settle(byte + c.len_utf8());
                }
                Step::Left => self.at = self.at.saturating_sub(1),
                Step::Right => {
                    self.at = (self.at + 1).min(self.text.graphemes(true).count());
                }
                Step::Backspace if self.at > 0 => self.delete(self.at - 1),
                Step::Backspace => {}
                Step::Delete => self.delete(self.at),
                Step::Home => {
                    let byte = self.byte();
                    let start = self.text[..byte].rfind('\n').map_or(0, |feed| feed + 1);
                    self.settle(start);
                }
                Step::KillEnd => {
                    let byte = self.byte();
                    let rest = &self.text[byte..];
                    let end = rest.find('\n').unwrap_or(rest.len());
                    let end = if end == 0 { rest.len().min(1) } else { end };
                    self.text.replace_range(byte..byte + end, "");
                    self.settle(byte);
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Type(char),
        Left,
        Right,
        Backspace,
        Delete,
        Home,
        KillEnd,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let letters = "[a-c \u{301}日👧\u{200d}\n]";
        let typed = proptest::string::string_regex(letters).expect("a valid pattern");
        let typed = typed.prop_filter_map("one letter", |text| text.chars().next());
        let step = prop_oneof![
            6 => typed.prop_map(Step::Type),
            2 => Just(Step::Left),
            2 => Just(Step::Right),
            1 => Just(Step::Backspace),
            1 => Just(Step::Delete),
            1 => Just(Step::Home),
            1 => Just(Step::KillEnd),
        ];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn the_editor_agrees_with_a_plain_string(steps in steps()) {
            let mut editor = Editor::default();
            let mut model = Model::default();
            for step in &steps {
                match step {
                    Step::Type('\n') => editor.newline(),
                    Step::Type(c) => editor.insert(*c),
                    Step::Left => editor.left(),
                    Step::Right => editor.right(),
                    Step::Backspace => editor.backspace(),
                    Step::Delete => editor.delete(),
                    Step::Home => editor.line_start(),
                    Step::KillEnd => editor.kill_to_end(),
                }
                model.apply(step);
                prop_assert_eq!(&editor.text(), &model.text);
                prop_assert_eq!(editor.cursor(), model.byte(), "after {:?}", step);
            }
            // Undo leads back to the beginning.
            for _ in 0..steps.len() + 1 {
                editor.undo();
            }
            prop_assert_eq!(editor.text(), "");
        }
    }
}
