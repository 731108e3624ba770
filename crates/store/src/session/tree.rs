//! The branches of a session as a tree (`host.md` 2.8.1), laid out flat so that
//! a chain of a hundred thousand entries needs no recursion.

use std::fmt::Write;

use super::index::{Index, Label};
use super::snapshot::Snapshot;
use crate::error::Result;

/// All entries with their children; nodes stand in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// One node for each entry of the index, at the same place.
    pub nodes: Vec<Node>,
    /// Entries without a parent in the file, in file order.
    pub roots: Vec<usize>,
}

/// One entry's place in the tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Places of the children, by time.
    pub children: Vec<usize>,
    /// The label in force.
    pub label: Option<Label>,
}

impl Tree {
    /// Builds the tree of an index.
    pub fn of(index: &Index) -> Tree {
        let entries = index.entries();
        let mut tree = Tree { nodes: vec![Node::default(); entries.len()], roots: Vec::new() };
        for (at, entry) in entries.iter().enumerate() {
            let parent = entry.parent_id.as_ref().filter(|parent| **parent != entry.id);
            match parent.and_then(|parent| index.position(parent)) {
                Some(parent) => tree.nodes[parent].children.push(at),
                None => tree.roots.push(at),
            }
            tree.nodes[at].label = index.labels().get(&entry.id).cloned();
        }
        for node in &mut tree.nodes {
            node.children.sort_by_key(|child| entries[*child].time);
        }
        tree
    }
}

/// Writes the tree as the JSON list of `get_tree` (`host.md` 7.3), with each
/// entry as it stands in the file.
pub fn tree_json(log: &Snapshot) -> Result<String> {
    enum Step {
        Begin(usize),
        Next,
        End(usize),
    }
    let tree = Tree::of(log.index());
    let mut lines = log.lines()?;
    let mut json = String::from("[");
    let list = |steps: &mut Vec<Step>, places: &[usize]| {
        for (left, place) in places.iter().enumerate().rev() {
            steps.push(Step::Begin(*place));
            if left > 0 {
                steps.push(Step::Next);
            }
        }
    };
    let mut steps = Vec::new();
    list(&mut steps, &tree.roots);
    while let Some(step) = steps.pop() {
        match step {
            Step::Next => json.push(','),
            Step::Begin(place) => {
                let entry = &log.index().entries()[place];
                let line = lines.text(entry).map_err(log.read_error())?;
                json.push_str(r#"{"entry":"#);
                json.push_str(&line);
                json.push_str(r#","children":["#);
                steps.push(Step::End(place));
                list(&mut steps, &tree.nodes[place].children);
            }
            Step::End(place) => {
                json.push(']');
                if let Some(label) = &tree.nodes[place].label {
                    let text = serde_json::Value::from(label.text.as_str());
                    let time = serde_json::Value::from(label.timestamp.as_str());
                    let _ = write!(json, r#","label":{text},"labelTimestamp":{time}"#);
                }
                json.push('}');
            }
        }
    }
    json.push(']');
    Ok(json)
}
