//! What was said and done, as items that can be drawn at any width.
//!
//! Owns the forms of messages, tools, cards and notices. Must never let a text
//! that is not the owner's start at column 0 (`terminal.md` TERM-59). Read
//! `transcript::item` for the kinds, `transcript::live` for what is not final,
//! `transcript::entries` for a session read from its file.

pub mod card;
pub mod document;
pub mod entries;
pub mod item;
pub mod live;
mod pending;
pub mod tool;

use crate::keys::Key;
use crate::theme::Theme;

/// How items are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours and icons.
    pub theme: Theme,
    /// Columns there are.
    pub columns: usize,
    /// Everything, as in the transcript view; else the collapsed form.
    pub expanded: bool,
    /// Whether thoughts are shown in full.
    pub thinking: bool,
    /// The key that opens the transcript view, where a hint names it.
    pub reader: Option<Key>,
}

impl Look {
    /// How to read what is left out: a key, or a command without one.
    pub(crate) fn way_to_read(&self) -> String {
        self.reader.map_or_else(|| "/transcript".to_owned(), |key| key.to_string())
    }
}

/// Columns in front of what stands below its head.
pub(crate) const INDENT: usize = 2;
