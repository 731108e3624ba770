//! The tree of a session as rows (`host.md` 2.8.1, 8.19).

use crew_base::entry::{EntryBody, read_line};
use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_base::message::{Block, Message};
use crew_tui::request::TreeRow;
use serde_json::Value;

/// Characters of one row's text.
const TEXT_MAX: usize = 200;
/// Branches inside each other that are drawn.
const DEPTH_MAX: usize = 12;

/// A node that is still to be drawn.
struct Waiting<'a> {
    node: &'a Value,
    /// Lines in front of it.
    lead: String,
    depth: usize,
    /// Whether it has brothers.
    forks: bool,
    is_last: bool,
}

/// Rows of the messages; what is no message is passed over.
pub(super) fn rows(tree: &Raw, leaf: Option<&EntryId>) -> Vec<TreeRow> {
    let value = tree.value();
    let active = active(&value, leaf);
    let mut rows = Vec::new();
    let mut stack = Vec::new();
    push(&mut stack, value.as_array(), "", 0);
    while let Some(next) = stack.pop() {
        let (lead, below) = leads(&next);
        if let Some(row) = row(&next, &lead, &active, leaf) {
            rows.push(row);
        }
        push(&mut stack, next.node["children"].as_array(), &below, next.depth);
    }
    rows
}

fn push<'a>(stack: &mut Vec<Waiting<'a>>, nodes: Option<&'a Vec<Value>>, lead: &str, depth: usize) {
    let nodes = nodes.map(Vec::as_slice).unwrap_or_default();
    let forks = nodes.len() > 1;
    for (at, node) in nodes.iter().enumerate().rev() {
        let depth = if forks { depth + 1 } else { depth };
        let is_last = at + 1 == nodes.len();
        stack.push(Waiting { node, lead: lead.to_owned(), depth, forks, is_last });
    }
}

/// What stands before a node, and before its children.
fn leads(node: &Waiting<'_>) -> (String, String) {
    if !node.forks || node.depth > DEPTH_MAX {
        return (node.lead.clone(), node.lead.clone());
    }
    let (own, below) = if node.is_last { ("└─", "  ") } else { ("├─", "│ ") };
    (format!("{}{own}", node.lead), format!("{}{below}", node.lead))
}

/// Ids on the way to the leaf.
fn active(tree: &Value, leaf: Option<&EntryId>) -> Vec<String> {
    let mut parents = std::collections::HashMap::new();
    let mut stack: Vec<&Value> =
        tree.as_array().map(Vec::as_slice).unwrap_or_default().iter().collect();
    while let Some(node) = stack.pop() {
        let text = |name: &str| node["entry"][name].as_str().map(str::to_owned);
        if let Some(id) = text("id") {
            parents.insert(id, text("parentId"));
        }
        stack.extend(node["children"].as_array().map(Vec::as_slice).unwrap_or_default());
    }
    let mut way = Vec::new();
    let mut at = leaf.map(|leaf| leaf.to_string());
    while let Some(id) = at {
        if way.contains(&id) {
            break;
        }
        at = parents.get(&id).cloned().flatten();
        way.push(id);
    }
    way
}

fn row(
    next: &Waiting<'_>,
    lead: &str,
    active: &[String],
    leaf: Option<&EntryId>,
) -> Option<TreeRow> {
    let entry = read_line(&next.node["entry"].to_string()).ok()?;
    let (who, text, is_user) = said(&entry.body)?;
    let label = next.node.get("label").and_then(Value::as_str).map(str::to_owned);
    let text = crew_base::text::excerpt(&crew_base::text::sanitise_inline(&text), TEXT_MAX);
    let id = entry.id.to_string();
    Some(TreeRow {
        lead: lead.to_owned(),
        text: format!("{who}: {text}"),
        label,
        is_active: active.contains(&id),
        is_leaf: leaf == Some(&entry.id),
        is_user,
        entry: entry.id,
    })
}

/// Who and what, for entries that the default filter shows.
fn said(body: &EntryBody) -> Option<(&'static str, String, bool)> {
    match body {
        EntryBody::Message { message } => match message {
            Message::User(user) => Some(("● you", user.content.text(), true)),
            Message::Assistant(answer) => {
                let text = answer.text();
                let tools =
                    answer.content.iter().filter(|b| matches!(b, Block::ToolCall(_))).count();
                match (text.trim().is_empty(), tools) {
                    (false, _) => Some(("owner", text, false)),
                    (true, _) => None,
                }
            }
            Message::BashExecution(shell) => Some(("!", shell.command.clone(), false)),
            Message::System(_)
            | Message::ToolResult(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => None,
        },
        EntryBody::CustomMessage { custom_type, display: true, details, .. } => {
            let value = details.as_ref().map(|details| details.value()).unwrap_or_default();
            let subagent = value["subagentId"].as_str().unwrap_or(custom_type).to_owned();
            Some(("subagent", subagent, false))
        }
        EntryBody::Compaction { summary, .. } => Some(("compacted", summary.clone(), false)),
        EntryBody::BranchSummary { summary, .. } => Some(("left branch", summary.clone(), false)),
        EntryBody::Unknown(raw) => {
            let value = raw.value();
            Some(("entry", value["type"].as_str().unwrap_or("unknown").to_owned(), false))
        }
        EntryBody::ModelChange { .. }
        | EntryBody::ThinkingLevelChange { .. }
        | EntryBody::ContextEdit { .. }
        | EntryBody::Custom { .. }
        | EntryBody::CustomMessage { .. }
        | EntryBody::Label { .. }
        | EntryBody::SessionInfo { .. }
        | EntryBody::Usage { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_drawn_with_their_lines() {
        let user = |id: &str, parent: &str, text: &str, children: &str| {
            format!(
                r#"{{"entry":{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"{text}"}}}},"children":[{children}]}}"#
            )
        };
        let inner =
            format!("{},{}", user("b", "\"a\"", "plan B", ""), user("c", "\"a\"", "plan C", ""));
        let tree = Raw::parse(&format!("[{}]", user("a", "null", "start", &inner))).unwrap();
        let rows = rows(&tree, Some(&EntryId::from("c")));
        let shown: Vec<_> = rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect();
        assert_eq!(shown, ["● you: start", "├─● you: plan B", "└─● you: plan C"]);
        let active: Vec<_> = rows.iter().map(|row| row.is_active).collect();
        assert_eq!((active, rows[2].is_leaf), (vec![true, false, true], true));
    }
}
