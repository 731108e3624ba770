//! Which rows of the tree are seen, and the lines that lead to them (sketch
//! S-10).
//!
//! A row that is not seen gives its children to the nearest one above it that
//! is. Rows between two forks stand below each other; only a fork indents.

use std::collections::{BTreeSet, HashMap};

use crew_base::id::EntryId;

use crate::request::{RowKind, TreeFilter, TreeRow};

/// Branches inside each other that are drawn.
const DEPTH_MAX: usize = 12;

/// A row that is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its place among all rows.
    pub at: usize,
    /// Lines that lead to it.
    pub lead: String,
    /// Whether the present conversation goes through it.
    pub is_active: bool,
    /// Whether the session stands here, or at a row below that is not seen.
    pub is_here: bool,
    /// Rows that are folded away below it.
    pub folded: usize,
    /// Place among the rows seen of the one it hangs below.
    pub parent: Option<usize>,
    /// Whether others hang below it.
    pub has_children: bool,
}

/// Whether a filter shows a row (`host.md` 8.19).
pub fn passes(filter: TreeFilter, row: &TreeRow) -> bool {
    let is_kept = match row.kind {
        RowKind::Setting | RowKind::Calls => false,
        RowKind::User
        | RowKind::Answer
        | RowKind::Result
        | RowKind::Shell
        | RowKind::Card(_)
        | RowKind::Notice
        | RowKind::Summary
        | RowKind::Unknown => true,
    };
    match filter {
        TreeFilter::All => true,
        TreeFilter::Default => is_kept,
        TreeFilter::NoTools => is_kept && row.kind != RowKind::Result,
        TreeFilter::UserOnly => row.kind == RowKind::User,
        TreeFilter::Labelled => row.label.is_some(),
    }
}

/// Entries on the way to where the session stands.
pub fn active(rows: &[TreeRow]) -> BTreeSet<usize> {
    let places = places(rows);
    let mut way = BTreeSet::new();
    let mut at = rows.iter().position(|row| row.is_leaf);
    while let Some(place) = at {
        if !way.insert(place) {
            break;
        }
        at = rows[place].parent.as_ref().and_then(|parent| places.get(parent)).copied();
    }
    way
}

fn places(rows: &[TreeRow]) -> HashMap<&EntryId, usize> {
    rows.iter().enumerate().map(|(at, row)| (&row.entry, at)).collect()
}

/// What is seen with a filter and these rows folded.
pub fn shape(rows: &[TreeRow], filter: TreeFilter, folded: &BTreeSet<EntryId>) -> Vec<Seen> {
    let places = places(rows);
    let active = active(rows);
    // The nearest row above each that passes the filter.
    let mut above: Vec<Option<usize>> = vec![None; rows.len()];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    let mut roots = Vec::new();
    let mut here = None;
    for (at, row) in rows.iter().enumerate() {
        let parent = row.parent.as_ref().and_then(|parent| places.get(parent)).copied();
        above[at] = parent.and_then(|parent| {
            if passes(filter, &rows[parent]) { Some(parent) } else { above[parent] }
        });
        let is_seen = passes(filter, row);
        if is_seen {
            match above[at] {
                Some(parent) => children[parent].push(at),
                None => roots.push(at),
            }
        }
        if row.is_leaf {
            here = if is_seen { Some(at) } else { above[at] };
        }
    }
    let mut walk = Walk { rows, children: &children, folded, seen: Vec::new() };
    walk.all(roots);
    let mut seen = walk.seen;
    for row in &mut seen {
        row.is_active = active.contains(&row.at);
        row.is_here = here == Some(row.at);
    }
    seen
}

struct Walk<'a> {
    rows: &'a [TreeRow],
    children: &'a [Vec<usize>],
    folded: &'a BTreeSet<EntryId>,
    seen: Vec<Seen>,
}

/// The rows from one fork to the next.
struct Segment {
    head: usize,
    /// Lines of the head, and of what stands below it.
    lead: String,
    below: String,
    depth: usize,
    parent: Option<usize>,
}

impl Walk<'_> {
    fn all(&mut self, roots: Vec<usize>) {
        let mut stack = Vec::new();
        fork(&mut stack, &roots, "", 0, None);
        while let Some(segment) = stack.pop() {
            self.segment(segment, &mut stack);
        }
    }

    fn segment(&mut self, segment: Segment, stack: &mut Vec<Segment>) {
        let Segment { head, lead, below, depth, mut parent } = segment;
        let first = self.seen.len();
        let mut at = head;
        loop {
            let row = &self.rows[at];
            let is_folded = self.folded.contains(&row.entry) && !self.children[at].is_empty();
            self.seen.push(Seen {
                at,
                lead: if at == head { lead.clone() } else { String::new() },
                is_active: false,
                is_here: false,
                folded: if is_folded { self.count(at) } else { 0 },
                parent,
                has_children: !self.children[at].is_empty(),
            });
            parent = Some(self.seen.len() - 1);
            let next = if is_folded { &[][..] } else { &self.children[at][..] };
            if let [only] = next {
                at = *only;
                continue;
            }
            let line = if next.is_empty() { "  " } else { "│ " };
            let own = format!("{below}{line}");
            self.seen[first + 1..].iter_mut().for_each(|row| row.lead.clone_from(&own));
            fork(stack, next, &below, depth, parent);
            return;
        }
    }

    /// Rows below one.
    fn count(&self, at: usize) -> usize {
        let mut stack = self.children[at].clone();
        let mut count = 0;
        while let Some(at) = stack.pop() {
            count += 1;
            stack.extend(&self.children[at]);
        }
        count
    }
}

fn fork(
    stack: &mut Vec<Segment>,
    heads: &[usize],
    lead: &str,
    depth: usize,
    parent: Option<usize>,
) {
    let is_drawn = heads.len() > 1 && depth < DEPTH_MAX;
    for (number, head) in heads.iter().enumerate().rev() {
        let (own, below) = match (is_drawn, number + 1 == heads.len()) {
            (false, _) => ("", ""),
            (true, true) => ("└─", "  "),
            (true, false) => ("├─", "│ "),
        };
        stack.push(Segment {
            head: *head,
            lead: format!("{lead}{own}"),
            below: format!("{lead}{below}"),
            depth: depth + 1,
            parent,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `id parent kind` each; the last word marks the leaf and a label.
    fn rows(lines: &[(&str, &str, RowKind)], leaf: &str) -> Vec<TreeRow> {
        let row = |(id, parent, kind): &(&str, &str, RowKind)| TreeRow {
            entry: (*id).into(),
            parent: (!parent.is_empty()).then(|| (*parent).into()),
            kind: *kind,
            text: (*id).to_owned(),
            label: id.starts_with('l').then(|| "label".to_owned()),
            labelled: None,
            is_leaf: *id == leaf,
        };
        lines.iter().map(row).collect()
    }

    fn sketch() -> Vec<TreeRow> {
        use RowKind::{Answer, Calls, Result, Setting, User};
        rows(
            &[
                ("m", "", Setting),
                ("a", "m", User),
                ("b", "a", Calls),
                ("c", "b", Result),
                ("d", "c", Answer),
                ("e", "d", User),
                ("f", "e", Answer),
                ("le", "d", User),
                ("g", "le", Setting),
            ],
            "g",
        )
    }

    fn drawn(rows: &[TreeRow], filter: TreeFilter, folded: &[&str]) -> Vec<String> {
        let folded = folded.iter().map(|id| EntryId::from(*id)).collect();
        let line = |seen: &Seen| {
            let active = if seen.is_active { "*" } else { "" };
            let here = if seen.is_here { "<" } else { "" };
            let more = if seen.folded > 0 { format!("+{}", seen.folded) } else { String::new() };
            format!("{}{}{active}{here}{more}", seen.lead, rows[seen.at].text)
        };
        shape(rows, filter, &folded).iter().map(line).collect()
    }

    // Sketch S-10; host.md 8.19.
    #[test]
    fn only_a_fork_indents_and_hidden_rows_give_their_children_up() {
        let check = |filter, folded: &[&str], expected: &[&str]| {
            assert_eq!(drawn(&sketch(), filter, folded), expected, "{filter:?}");
        };
        let default = ["a*", "│ c*", "│ d*", "├─e", "│   f", "└─le*<"];
        check(TreeFilter::Default, &[], &default);
        check(TreeFilter::NoTools, &[], &["a*", "│ d*", "├─e", "│   f", "└─le*<"]);
        check(TreeFilter::UserOnly, &[], &["a*", "├─e", "└─le*<"]);
        check(TreeFilter::Labelled, &[], &["le*<"]);
        let all = ["m*", "│ a*", "│ b*", "│ c*", "│ d*", "├─e", "│   f", "└─le*", "    g*<"];
        check(TreeFilter::All, &[], &all);
        check(TreeFilter::Default, &["d"], &["a*", "  c*", "  d*+3"]);
        check(TreeFilter::Default, &["e", "f"], &["a*", "│ c*", "│ d*", "├─e+1", "└─le*<"]);
    }

    #[test]
    fn rows_know_what_they_hang_below() {
        let rows = sketch();
        let seen = shape(&rows, TreeFilter::Default, &BTreeSet::new());
        let parents: Vec<Option<usize>> = seen.iter().map(|row| row.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(1), Some(2), Some(3), Some(2)]);
        let children: Vec<bool> = seen.iter().map(|row| row.has_children).collect();
        assert_eq!(children, [true, true, true, true, false, false]);
    }

    #[test]
    fn several_beginnings_stand_side_by_side() {
        use RowKind::User;
        let rows = rows(&[("a", "", User), ("b", "a", User), ("c", "", User)], "c");
        assert_eq!(drawn(&rows, TreeFilter::Default, &[]), ["├─a", "│   b", "└─c*<"]);
    }
}
