//! History of submitted inputs (`host.md` 8.8).

use super::Editor;

/// Inputs that are kept (`host.md` 8.8).
const INPUTS_MAX: usize = 100;

/// What was submitted, oldest first, and where the person looks.
#[derive(Clone, Debug, Default)]
pub struct History {
    inputs: Vec<String>,
    at: Option<usize>,
    draft: String,
}

impl History {
    /// Adds an input unless it equals the last one.
    pub fn add(&mut self, input: &str) {
        self.leave();
        if crew_base::text::is_blank(input) || self.inputs.last().is_some_and(|last| last == input)
        {
            return;
        }
        self.inputs.push(input.to_owned());
        if self.inputs.len() > INPUTS_MAX {
            self.inputs.remove(0);
        }
    }

    /// Forgets the place; the next Up begins at the newest input.
    pub fn leave(&mut self) {
        self.at = None;
        self.draft.clear();
    }

    /// Inputs that hold a text, newest first; all for an empty one.
    pub fn matching<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let text = text.to_lowercase();
        let hits = move |input: &&String| input.to_lowercase().contains(&text);
        self.inputs.iter().rev().filter(hits).map(String::as_str)
    }
}

impl Editor {
    /// Whether Up means history here: empty, browsing, or at column 0 of the
    /// first line (`host.md` 8.8).
    pub fn is_at_history_edge(&self) -> bool {
        self.is_empty() || self.history.at.is_some() || self.cursor() == 0
    }

    /// Shows the input before the shown one; `false` at the oldest.
    pub fn older(&mut self) -> bool {
        let next = match self.history.at {
            None => self.history.inputs.len().checked_sub(1),
            Some(at) => at.checked_sub(1),
        };
        let Some(next) = next else { return false };
        if self.history.at.is_none() {
            self.history.draft = self.text();
        }
        let input = self.history.inputs[next].clone();
        self.set(&input);
        self.history.at = Some(next);
        true
    }

    /// Shows the input behind the shown one, at last the draft; `false` when
    /// the draft is shown already.
    pub fn newer(&mut self) -> bool {
        let Some(at) = self.history.at else { return false };
        match self.history.inputs.get(at + 1).cloned() {
            Some(input) => {
                self.set(&input);
                self.history.at = Some(at + 1);
            }
            None => {
                let draft = std::mem::take(&mut self.history.draft);
                self.set(&draft);
                self.history.at = None;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_comes_back_at_the_end_of_history() {
        let mut editor = Editor::default();
        for input in ["one", "two", "two", " "] {
            editor.history.add(input);
        }
        editor.insert_text("dra");
        assert!(editor.older());
        assert_eq!(editor.text(), "two");
        assert!(editor.older());
        assert!(!editor.older());
        assert_eq!(editor.text(), "one");
        assert!(editor.newer() && editor.newer());
        assert_eq!(editor.text(), "dra");
        assert!(!editor.newer());
    }

    #[test]
    fn a_search_gives_the_newest_first() {
        let mut history = History::default();
        for input in ["cargo test", "ls", "cargo build"] {
            history.add(input);
        }
        let found: Vec<_> = history.matching("CARGO").collect();
        assert_eq!(found, ["cargo build", "cargo test"]);
    }

    #[test]
    fn a_hundred_inputs_are_kept() {
        let mut history = History::default();
        (0..150).for_each(|n| history.add(&n.to_string()));
        assert_eq!(history.inputs.len(), INPUTS_MAX);
    }
}
