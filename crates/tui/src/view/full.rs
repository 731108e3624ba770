//! Full-screen views (TERM-14): board, transcript, pickers, tree, keys.
//!
//! A view never closes by itself, and a key that closed one does nothing else.
//! Read `full::board`, `full::reader`, `full::picker`, `full::tree`.

pub mod board;
pub mod list;
pub mod picker;
pub mod reader;
pub mod tree;

use crew_base::time::Time;
use crew_engine::api::Command;

use super::View;
use crate::keys::Key;
use crate::keys::action::Action;
use board::Board;
use picker::Picker;
use reader::Reader;
use tree::Tree;

/// A view that takes the whole screen.
#[derive(Debug)]
pub enum Full {
    /// All subagents of the owner.
    Board(Board),
    /// A transcript; behind it the view it was opened from.
    Reader(Box<Reader>, Option<Box<Full>>),
    /// A list to choose from.
    Picker(Picker),
    /// The tree of the session.
    Tree(Tree),
    /// The keys that work.
    Keys {
        /// First row that is shown.
        top: usize,
    },
}

impl Full {
    /// When time changes something.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Full::Board(board) => board.deadline(),
            Full::Reader(reader, _) => reader.deadline(),
            Full::Picker(picker) => picker.deadline(),
            Full::Tree(_) | Full::Keys { .. } => None,
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        match self {
            Full::Board(board) => board.tick(now),
            Full::Reader(reader, _) => reader.tick(now),
            Full::Picker(picker) => picker.tick(now),
            Full::Tree(_) | Full::Keys { .. } => {}
        }
    }
}

impl View {
    pub(super) fn show(&mut self, full: Full) {
        self.full = Some(Box::new(full));
        self.menu = None;
        self.leader = None;
    }

    /// Takes a key while a full view is open.
    pub(super) fn full_key(&mut self, key: Key) -> Option<Command> {
        let mut full = self.full.take()?;
        let (next, command) = match full.as_mut() {
            Full::Board(board) => {
                let mut board = std::mem::take(board);
                let (stays, command) = self.board_key(&mut board, key);
                (stays.then_some(Full::Board(board)), command)
            }
            Full::Reader(reader, _) => match self.reader_key(reader, key) {
                reader::After::Stay => (Some(*full), None),
                reader::After::Close => {
                    let Full::Reader(_, back) = *full else { return None };
                    (back.map(|back| *back), None)
                }
                reader::After::Leave => (None, None),
            },
            Full::Picker(picker) => {
                if self.picker_key(picker, key) {
                    (Some(*full), None)
                } else {
                    (None, None)
                }
            }
            Full::Tree(tree) => {
                let (stays, command) = self.tree_key(tree, key);
                (stays.then_some(*full), command)
            }
            Full::Keys { top } => {
                let page = self.size.rows.saturating_sub(3).max(1);
                match self.listed(key) {
                    Some(Action::SelectUp) => *top = top.saturating_sub(1),
                    Some(Action::SelectDown) => *top += 1,
                    Some(Action::SelectPageUp) => *top = top.saturating_sub(page),
                    Some(Action::SelectPageDown) => *top += page,
                    _ => return None,
                }
                let last = super::help::keys(self).len().saturating_sub(page);
                *top = (*top).min(last);
                (Some(*full), None)
            }
        };
        // A key may have opened another view.
        if self.full.is_none() {
            self.full = next.map(Box::new);
        }
        command
    }

    /// The rows of the list of keys.
    pub(crate) fn key_help(&self) -> Vec<(String, &'static str)> {
        super::help::keys(self)
    }
}
