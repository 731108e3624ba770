//! A list with a search: the selected row is kept by id (TERM-35).

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// One row to choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Names it.
    pub id: String,
    /// Text on the left.
    pub left: String,
    /// Text on the right.
    pub right: String,
    /// The same for a narrow screen.
    pub short: String,
    /// What a fuzzy search looks into.
    pub fuzzy: String,
    /// What must hold the searched text as it is.
    pub exact: String,
    /// The item it hangs below.
    pub parent: Option<String>,
    /// Whether it can be chosen.
    pub is_usable: bool,
    /// Whether it is the one in use.
    pub is_current: bool,
}

/// Items, a search and a selection.
#[derive(Clone, Debug, Default)]
pub struct List {
    items: Vec<Item>,
    /// What is searched.
    pub query: String,
    selected: Option<String>,
    /// Open parents.
    unfolded: Vec<String>,
    shown: Vec<usize>,
    /// First row on the screen.
    pub top: usize,
}

impl List {
    /// Takes new items; query, selection and folds stay.
    pub fn set(&mut self, items: Vec<Item>) {
        self.items = items;
        self.refresh();
    }

    /// All items.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The rows that are shown, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Item> {
        self.shown.iter().map(|at| &self.items[*at])
    }

    /// Number of rows that are shown.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// Whether no row is shown.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Place of the selected row among those shown.
    pub fn at(&self) -> Option<usize> {
        let id = self.selected.as_ref()?;
        self.shown.iter().position(|at| self.items[*at].id == *id)
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&Item> {
        let id = self.selected.as_ref()?;
        self.shown.iter().map(|at| &self.items[*at]).find(|item| item.id == *id)
    }

    /// Whether the children of an item are shown.
    pub fn is_unfolded(&self, id: &str) -> bool {
        self.unfolded.iter().any(|open| open == id) || !self.query.is_empty()
    }

    /// Whether an item has children.
    pub fn has_children(&self, id: &str) -> bool {
        self.items.iter().any(|item| item.parent.as_deref() == Some(id))
    }

    /// Selects a row by id.
    pub fn select(&mut self, id: &str) {
        self.selected = Some(id.to_owned());
        if self.at().is_none() {
            self.select_first();
        }
    }

    /// Moves the selection by rows.
    pub fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        let at = self.at().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = self.shown.get(at).map(|at| self.items[*at].id.clone());
    }

    /// Shows or hides the children of the selected row.
    pub fn fold(&mut self, open: bool) {
        let Some(item) = self.selected() else { return };
        let id = match (&item.parent, open) {
            (Some(parent), false) => parent.clone(),
            (_, _) => item.id.clone(),
        };
        self.unfolded.retain(|known| *known != id);
        if open {
            self.unfolded.push(id);
        } else {
            self.selected = Some(id);
        }
        self.refresh();
    }

    /// Types into the search.
    pub fn search(&mut self, c: char) {
        self.query.push(c);
        self.refresh();
        self.select_first();
    }

    /// Deletes from the search.
    pub fn unsearch(&mut self) {
        self.query.pop();
        self.refresh();
        self.select_first();
    }

    /// Keeps the selected row on a screen of so many rows.
    pub fn scroll(&mut self, height: usize) {
        let at = self.at().unwrap_or(0);
        if at < self.top {
            self.top = at;
        } else if height > 0 && at >= self.top + height {
            self.top = at + 1 - height;
        }
        self.top = self.top.min(self.shown.len().saturating_sub(1));
    }

    fn select_first(&mut self) {
        self.selected = self.shown.first().map(|at| self.items[*at].id.clone());
        self.top = 0;
    }

    fn refresh(&mut self) {
        self.shown = if self.query.is_empty() { self.unsearched() } else { self.matching() };
        if self.at().is_none() {
            self.select_first();
        }
    }

    fn unsearched(&self) -> Vec<usize> {
        let is_shown = |item: &Item| match &item.parent {
            Some(parent) => self.unfolded.contains(parent),
            None => true,
        };
        (0..self.items.len()).filter(|at| is_shown(&self.items[*at])).collect()
    }

    /// Best fit first; a child that fits brings its parent (TERM-47).
    fn matching(&self) -> Vec<usize> {
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::parse(&self.query, CaseMatching::Smart, Normalization::Smart);
        let query = self.query.to_lowercase();
        let mut buffer = Vec::new();
        let mut score = |item: &Item| {
            let text = Utf32Str::new(&item.fuzzy, &mut buffer);
            let fuzzy = pattern.score(text, &mut matcher);
            let exact = item.exact.to_lowercase().contains(&query).then_some(0);
            fuzzy.or(exact)
        };
        let mut groups: Vec<(u32, Vec<usize>)> = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            let Some(score) = score(item) else { continue };
            let parent = item.parent.as_ref();
            let parent = parent.and_then(|id| self.items.iter().position(|known| known.id == *id));
            let head = parent.unwrap_or(at);
            match groups.iter_mut().find(|(_, group)| group.first() == Some(&head)) {
                Some((best, group)) => {
                    *best = (*best).max(score);
                    if at != head {
                        group.push(at);
                    }
                }
                None if at == head => groups.push((score, vec![head])),
                None => groups.push((score, vec![head, at])),
            }
        }
        groups.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        groups.into_iter().flat_map(|(_, group)| group).collect()
    }
}

/// Names that fit a fuzzy query, best first.
pub fn fuzzy<'a, T>(items: &'a [T], query: &str, text: impl Fn(&T) -> &str) -> Vec<&'a T> {
    if query.is_empty() {
        return items.iter().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, &T)> = items
        .iter()
        .filter_map(|item| {
            let score = pattern.score(Utf32Str::new(text(item), &mut buffer), &mut matcher)?;
            Some((score, item))
        })
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, parent: Option<&str>) -> Item {
        Item {
            id: id.to_owned(),
            left: id.to_owned(),
            fuzzy: id.to_owned(),
            parent: parent.map(str::to_owned),
            is_usable: true,
            ..Item::default()
        }
    }

    fn shown(list: &List) -> Vec<&str> {
        list.rows().map(|item| item.id.as_str()).collect()
    }

    // TERM-35: the selection follows its row, not its place.
    #[test]
    fn new_items_do_not_move_the_selection() {
        let mut list = List::default();
        list.set(vec![item("b", None), item("c", None)]);
        list.step(1);
        list.set(vec![item("a", None), item("b", None), item("c", None)]);
        assert_eq!((list.selected().map(|item| item.id.as_str()), list.at()), (Some("c"), Some(2)));
    }

    // TERM-47: a search unfolds what it finds.
    #[test]
    fn children_are_folded_until_found() {
        let mut list = List::default();
        list.set(vec![item("fix", None), item("scout-1", Some("fix")), item("notes", None)]);
        assert_eq!(shown(&list), ["fix", "notes"]);
        list.fold(true);
        assert_eq!(shown(&list), ["fix", "scout-1", "notes"]);
        list.fold(false);
        assert_eq!(shown(&list), ["fix", "notes"]);
        "sct".chars().for_each(|c| list.search(c));
        assert_eq!(shown(&list), ["fix", "scout-1"]);
        (0..3).for_each(|_| list.unsearch());
        assert_eq!(shown(&list), ["fix", "notes"]);
    }

    #[test]
    fn the_selected_row_is_always_on_the_screen() {
        let mut list = List::default();
        list.set((0..20).map(|n| item(&n.to_string(), None)).collect());
        for step in [19, -10, 3, -12] {
            list.step(step);
            list.scroll(5);
            let at = list.at().unwrap();
            assert!(at >= list.top && at < list.top + 5);
        }
    }
}
