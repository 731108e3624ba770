//! What a key means on the main screen (section 4 of `terminal.md`).
//!
//! Which key does what says `keys::bindings`; here stand the two keys that no
//! file can change, and what is typed.

use super::View;
use crate::keys::Key;
use crate::keys::action::{Action, Context};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A character is typed.
    Type(char),
    /// The next key is a second one (TERM-15).
    Leader,
    /// The program ends at once (case 39).
    ExitNow,
    /// What the key is bound to.
    Do(Action),
    Nothing,
}

impl View {
    /// The meaning of a key in the editor.
    pub(super) fn deed(&self, key: Key) -> Deed {
        let plain = Key { shift: false, ..key };
        if plain == Key::ctrl('x') {
            return Deed::Leader;
        }
        if plain == Key::ctrl('\\') {
            return Deed::ExitNow;
        }
        let keys = &self.setup.keys;
        let of_empty = || keys.find(Context::Empty, key).filter(|_| self.editor.is_empty());
        match (of_empty().or_else(|| keys.find(Context::Editor, key)), key.typed()) {
            (Some(action), _) => Deed::Do(action),
            (None, Some(c)) => Deed::Type(c),
            (None, None) => Deed::Nothing,
        }
    }

    /// The meaning of a key in questions, menus and views.
    pub(super) fn listed(&self, key: Key) -> Option<Action> {
        self.setup.keys.find(Context::List, key)
    }
}
