//! The tree of the session: where it has been, and the way to another place
//! (sketch S-10; `host.md` 8.19, 2.8.2, 2.8.3).
//!
//! Rows come from [`rows`], what is seen of them from `shape`. A row is chosen
//! by its entry, so nothing that is read anew moves the selection (TERM-35).

#![expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]

mod rows;
pub mod shape;

pub use rows::rows;

use std::collections::BTreeSet;

use crew_base::id::EntryId;
use crew_engine::api::{BranchWish, Command, Control};

use super::list::fuzzy;
use super::{Full, View};
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use crate::request::{Request, RowKind, TreeFilter, TreeRow};
use crate::view::Sent;
use shape::{Seen, active, passes, shape};

/// The tree as a view.
#[derive(Debug, Default)]
pub struct Tree {
    rows: Vec<TreeRow>,
    seen: Vec<Seen>,
    selected: Option<EntryId>,
    folded: BTreeSet<EntryId>,
    /// Which rows are shown.
    pub filter: TreeFilter,
    /// What is searched.
    pub query: String,
    /// Whether the rows are still being read.
    pub waits: bool,
    /// Whether labels show when they were given.
    pub times: bool,
    /// What is typed or asked in the row above the hints.
    pub asking: Option<Asking>,
    /// First row on the screen.
    pub top: usize,
}

/// What is typed or asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// A label for the selected row.
    Label(String),
    /// Whether the branch that is left is summarised.
    Summary,
    /// What that summary is to attend to.
    Instructions(String),
}

impl Tree {
    fn new(filter: TreeFilter) -> Tree {
        Tree { filter, waits: true, ..Tree::default() }
    }

    /// Takes the rows; at first the place of the session is selected.
    pub fn set(&mut self, rows: Vec<TreeRow>) {
        self.waits = false;
        self.rows = rows;
        self.refresh();
    }

    /// The rows that are seen, in order.
    pub fn seen(&self) -> impl Iterator<Item = (&Seen, &TreeRow)> {
        self.seen.iter().map(|seen| (seen, &self.rows[seen.at]))
    }

    /// Place of the selected row among those seen.
    pub fn at(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.seen().position(|(_, row)| row.entry == *selected)
    }

    fn row(&self) -> Option<&TreeRow> {
        self.at().map(|at| &self.rows[self.seen[at].at])
    }

    fn refresh(&mut self) {
        self.seen = if self.query.is_empty() {
            shape(&self.rows, self.filter, &self.folded)
        } else {
            self.matching()
        };
        if self.at().is_none() {
            let here = self.seen.iter().position(|row| row.is_here);
            self.select(here.unwrap_or(self.seen.len().saturating_sub(1)));
        }
    }

    /// Best fit first, without lines.
    fn matching(&self) -> Vec<Seen> {
        let active = active(&self.rows);
        let texts: Vec<(usize, String)> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| passes(self.filter, row))
            .map(|(at, row)| (at, format!("{} {}", row.text, row.label.as_deref().unwrap_or(""))))
            .collect();
        let found = fuzzy(&texts, &self.query, |(_, text)| text);
        let seen = |(at, _): &(usize, String)| Seen {
            at: *at,
            lead: String::new(),
            is_active: active.contains(at),
            is_here: self.rows[*at].is_leaf,
            folded: 0,
            parent: None,
            has_children: false,
        };
        found.into_iter().map(seen).collect()
    }

    fn select(&mut self, at: usize) {
        self.selected = self.seen.get(at).map(|seen| self.rows[seen.at].entry.clone());
    }

    fn step(&mut self, by: isize) {
        let last = self.seen.len().saturating_sub(1);
        let at = self.at().unwrap_or(0).saturating_add_signed(by).min(last);
        self.select(at);
    }

    /// The best match is chosen, never an old row (`host.md` 11.119).
    fn search(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.query);
        self.refresh();
        if !self.query.is_empty() {
            self.select(0);
        }
        self.top = 0;
    }

    /// Folds the selected row, or goes to the one it hangs below.
    fn fold(&mut self) {
        let Some(seen) = self.at().map(|at| self.seen[at].clone()) else { return };
        if seen.has_children && seen.folded == 0 {
            self.folded.insert(self.rows[seen.at].entry.clone());
            self.refresh();
        } else if let Some(parent) = seen.parent {
            self.select(parent);
        }
    }

    /// Unfolds the selected row, or goes to the first below it.
    fn unfold(&mut self) {
        let Some(at) = self.at() else { return };
        let entry = &self.rows[self.seen[at].at].entry;
        if self.folded.remove(entry) {
            self.refresh();
        } else if self.seen[at].has_children {
            self.select(at + 1);
        }
    }

    /// Goes so many filters on; behind the last one comes the first.
    fn other_filter(&mut self, by: usize) {
        let all = TreeFilter::ALL;
        let at = all.iter().position(|filter| *filter == self.filter).unwrap_or(0);
        self.use_filter(all[(at + by) % all.len()]);
    }

    fn use_filter(&mut self, filter: TreeFilter) {
        self.filter = filter;
        let hidden = self.row().is_none_or(|row| !passes(self.filter, row));
        if hidden {
            self.select_above();
        }
        self.refresh();
    }

    /// The selection of a row that is not seen any more goes to the nearest one
    /// above it.
    fn select_above(&mut self) {
        let Some(selected) = &self.selected else { return };
        let mut at = self.rows.iter().position(|row| row.entry == *selected);
        while let Some(place) = at {
            let row = &self.rows[place];
            if passes(self.filter, row) {
                self.selected = Some(row.entry.clone());
                return;
            }
            at = match &row.parent {
                Some(parent) => self.rows[..place].iter().rposition(|row| row.entry == *parent),
                None => None,
            };
        }
        self.selected = None;
    }

    /// Whether going to the selected row leaves something that was said.
    fn leaves(&self) -> bool {
        let Some(at) = self.at().map(|at| self.seen[at].at) else { return false };
        let mut kept = BTreeSet::new();
        let mut next = Some(at);
        while let Some(place) = next {
            if !kept.insert(place) {
                break;
            }
            next = match &self.rows[place].parent {
                Some(parent) => self.rows[..place].iter().rposition(|row| row.entry == *parent),
                None => None,
            };
        }
        active(&self.rows).difference(&kept).any(|place| match self.rows[*place].kind {
            RowKind::User
            | RowKind::Answer
            | RowKind::Calls
            | RowKind::Shell
            | RowKind::Card(_)
            | RowKind::Notice
            | RowKind::Summary => true,
            RowKind::Result | RowKind::Setting | RowKind::Unknown => false,
        })
    }

    /// Keeps the selected row on a screen of so many rows.
    fn scroll(&mut self, height: usize) {
        let at = self.at().unwrap_or(0);
        if at < self.top {
            self.top = at;
        } else if height > 0 && at >= self.top + height {
            self.top = at + 1 - height;
        }
        self.top = self.top.min(self.seen.len().saturating_sub(1));
    }
}

/// What a key leads to: whether the view stays, and a command.
type After = (bool, Option<Command>);

impl View {
    /// Opens the tree and asks for its rows.
    pub(in crate::view) fn open_tree(&mut self) {
        self.ask(Request::Tree);
        self.show(Full::Tree(Tree::new(self.setup.tree_filter)));
    }

    /// Takes a key of the tree.
    pub(in crate::view) fn tree_key(&mut self, tree: &mut Tree, key: Key) -> After {
        let after = match tree.asking.take() {
            None => self.tree_plain_key(tree, key),
            Some(asking) => self.tree_asking_key(tree, asking, key),
        };
        tree.scroll(self.picker_height());
        after
    }

    fn tree_plain_key(&mut self, tree: &mut Tree, key: Key) -> After {
        let page = isize::try_from(self.picker_height()).unwrap_or(1);
        match self.setup.keys.find(Context::Tree, key) {
            Some(Action::SelectUp) => tree.step(-1),
            Some(Action::SelectDown) => tree.step(1),
            Some(Action::SelectPageUp) => tree.step(-page),
            Some(Action::SelectPageDown) => tree.step(page),
            Some(Action::SelectFirst) => tree.step(isize::MIN),
            Some(Action::SelectLast) => tree.step(isize::MAX),
            Some(Action::Fold) => tree.fold(),
            Some(Action::Unfold) => tree.unfold(),
            Some(Action::FilterNext) => tree.other_filter(1),
            Some(Action::FilterPrevious) => tree.other_filter(TreeFilter::ALL.len() - 1),
            Some(Action::FilterDefault) => tree.use_filter(TreeFilter::Default),
            Some(Action::FilterNoTools) => tree.use_filter(TreeFilter::NoTools),
            Some(Action::FilterUser) => tree.use_filter(TreeFilter::UserOnly),
            Some(Action::FilterLabelled) => tree.use_filter(TreeFilter::Labelled),
            Some(Action::FilterAll) => tree.use_filter(TreeFilter::All),
            Some(Action::LabelTimes) => tree.times = !tree.times,
            Some(Action::Cancel) => return (false, None),
            Some(Action::Confirm) => return self.go(tree),
            Some(Action::Label) => {
                let label = tree.row().map(|row| row.label.clone().unwrap_or_default());
                tree.asking = label.map(Asking::Label);
            }
            _ if key.code == Code::Backspace => tree.search(|query| {
                query.pop();
            }),
            _ => {
                if let Some(c) = key.typed() {
                    tree.search(|query| query.push(c));
                }
            }
        }
        (true, None)
    }

    fn tree_asking_key(&mut self, tree: &mut Tree, asking: Asking, key: Key) -> After {
        match asking {
            Asking::Label(text) => match edited(text, key) {
                Edited::Left => (true, None),
                Edited::Still(text) => {
                    tree.asking = Some(Asking::Label(text));
                    (true, None)
                }
                Edited::Entered(text) => (true, self.label(tree, &text)),
            },
            Asking::Instructions(text) => match edited(text, key) {
                Edited::Left => {
                    tree.asking = Some(Asking::Summary);
                    (true, None)
                }
                Edited::Still(text) => {
                    tree.asking = Some(Asking::Instructions(text));
                    (true, None)
                }
                Edited::Entered(text) => {
                    let text = text.trim().to_owned();
                    let instructions = (!text.is_empty()).then_some(text);
                    (false, self.navigate(tree, Some(BranchWish { instructions })))
                }
            },
            Asking::Summary => match key.code {
                Code::Enter | Code::Char('n') => (false, self.navigate(tree, None)),
                Code::Char('s' | 'y') => (false, self.navigate(tree, Some(BranchWish::default()))),
                Code::Char('i') => {
                    tree.asking = Some(Asking::Instructions(String::new()));
                    (true, None)
                }
                Code::Esc => (true, None),
                _ => {
                    tree.asking = Some(Asking::Summary);
                    (true, None)
                }
            },
        }
    }

    /// Enter: asks about a summary where there is something to summarise.
    fn go(&mut self, tree: &mut Tree) -> After {
        if tree.row().is_none() {
            return (true, None);
        }
        if !self.setup.skip_summary && tree.leaves() {
            tree.asking = Some(Asking::Summary);
            return (true, None);
        }
        (false, self.navigate(tree, None))
    }

    fn navigate(&mut self, tree: &Tree, summary: Option<BranchWish>) -> Option<Command> {
        let (to, session) = (tree.row()?.entry.clone(), self.session.clone()?);
        let command = Command::Navigate { session, to, summary, label: None };
        self.command(command, Sent::Other("tree".to_owned()))
    }

    /// Labels the selected row; the rows are read anew behind it.
    fn label(&mut self, tree: &Tree, text: &str) -> Option<Command> {
        let (entry, session) = (tree.row()?.entry.clone(), self.session.clone()?);
        self.ask(Request::Tree);
        let control = Control::Label(entry, text.trim().to_owned());
        self.command(Command::Control(session, control), Sent::Other("label".to_owned()))
    }
}

/// What a key made of a text that is typed.
enum Edited {
    Still(String),
    Entered(String),
    Left,
}

fn edited(mut text: String, key: Key) -> Edited {
    match (key.code, key.ctrl) {
        (Code::Enter, _) => return Edited::Entered(text),
        (Code::Esc, _) | (Code::Char('c'), true) => return Edited::Left,
        (Code::Backspace, _) => {
            text.pop();
        }
        (Code::Char('u'), true) => text.clear(),
        _ => text.extend(key.typed()),
    }
    Edited::Still(text)
}
