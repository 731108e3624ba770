//! The entries of a session as rows of a tree (`host.md` 2.8.1, 8.19).
//!
//! Pure: no filter is applied here, so that choosing another one reads nothing.
//! Built without recursion, because a session may be one chain of a hundred
//! thousand entries.

use std::collections::{BTreeMap, HashMap};

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::EntryId;
use crew_base::message::{AssistantMessage, Content, Message};
use crew_base::text::{excerpt, is_blank, sanitise_inline};

use crate::request::{RowKind, TreeRow};
use crate::transcript::card::Card;

/// Characters of one row's text.
const TEXT_MAX: usize = 200;
/// Characters that are looked at for it.
const SOURCE_MAX: usize = 2_000;

/// All entries, each before its children, brothers by time.
pub fn rows(entries: &[Entry], leaf: Option<&EntryId>) -> Vec<TreeRow> {
    let places: HashMap<&EntryId, usize> =
        entries.iter().enumerate().map(|(at, entry)| (&entry.id, at)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    let mut parents: Vec<Option<usize>> = vec![None; entries.len()];
    let mut roots = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let parent = entry.parent_id.as_ref().filter(|parent| **parent != entry.id);
        match parent.and_then(|parent| places.get(parent)).copied() {
            Some(parent) => {
                children[parent].push(at);
                parents[at] = Some(parent);
            }
            None => roots.push(at),
        }
    }
    let by_time = |list: &mut Vec<usize>| list.sort_by_key(|at| &entries[*at].timestamp);
    children.iter_mut().for_each(by_time);
    by_time(&mut roots);
    let labels = labels(entries);
    let mut rows = Vec::with_capacity(entries.len());
    let mut stack: Vec<usize> = roots.into_iter().rev().collect();
    while let Some(at) = stack.pop() {
        let entry = &entries[at];
        let (kind, text) = said(&entry.body);
        let label = labels.get(&entry.id);
        rows.push(TreeRow {
            entry: entry.id.clone(),
            parent: parents[at].map(|parent| entries[parent].id.clone()),
            kind,
            text: shortened(&text),
            label: label.map(|(label, _)| sanitise_inline(label)),
            labelled: label.map(|(_, time)| moment(time)),
            is_leaf: leaf == Some(&entry.id),
        });
        stack.extend(children[at].iter().rev());
    }
    rows
}

/// The labels in force and when they were given (`host.md` 2.4.5).
fn labels(entries: &[Entry]) -> BTreeMap<&EntryId, (&str, &str)> {
    let mut labels = BTreeMap::new();
    for entry in entries {
        if let EntryBody::Label { target_id, label } = &entry.body {
            match label.as_deref().filter(|label| !label.is_empty()) {
                Some(label) => labels.insert(target_id, (label, entry.timestamp.as_str())),
                None => labels.remove(target_id),
            };
        }
    }
    labels
}

fn shortened(text: &str) -> String {
    let start = text.char_indices().nth(SOURCE_MAX).map_or(text, |(end, _)| &text[..end]);
    excerpt(&sanitise_inline(start), TEXT_MAX)
}

/// `2026-11-30 13:43` of an ISO time.
fn moment(time: &str) -> String {
    let minutes: String = time.chars().take(16).collect();
    sanitise_inline(&minutes.replacen('T', " ", 1))
}

fn said(body: &EntryBody) -> (RowKind, String) {
    match body {
        EntryBody::Message { message } => said_in(message),
        EntryBody::CustomMessage { custom_type, content, display, details } => {
            let card = details.as_ref().and_then(Card::read);
            match card {
                Some(card) => carded(&card),
                None if *display => (RowKind::Notice, format!("{custom_type}: {}", content.text())),
                None => (RowKind::Setting, format!("{custom_type}: {}", content.text())),
            }
        }
        EntryBody::Custom { custom_type, data } => {
            let card = data.as_ref().and_then(Card::read);
            let text = card.map(|card| format!(" {}", carded(&card).1)).unwrap_or_default();
            (RowKind::Setting, format!("{custom_type}{text}"))
        }
        EntryBody::Compaction { summary, .. } => {
            (RowKind::Summary, format!("compacted: {summary}"))
        }
        EntryBody::BranchSummary { summary, .. } => {
            (RowKind::Summary, format!("branch that was left: {summary}"))
        }
        EntryBody::ModelChange { provider, model_id } => {
            (RowKind::Setting, format!("model: {provider}/{model_id}"))
        }
        EntryBody::ThinkingLevelChange { thinking_level } => {
            (RowKind::Setting, format!("thinking: {thinking_level}"))
        }
        EntryBody::ContextEdit { replacement, .. } => {
            let what = if replacement.is_some() { "replaced" } else { "taken out" };
            (RowKind::Setting, format!("context: a message {what}"))
        }
        EntryBody::Label { label, .. } => {
            let label = label.clone().filter(|label| !label.is_empty());
            let text = label.map_or("label removed".to_owned(), |label| format!("label: {label}"));
            (RowKind::Setting, text)
        }
        EntryBody::SessionInfo { name } => {
            (RowKind::Setting, format!("name: {}", name.as_deref().unwrap_or("none")))
        }
        EntryBody::Usage { .. } => (RowKind::Setting, "usage".to_owned()),
        EntryBody::Unknown(raw) => {
            let value = raw.value();
            let kind = value.get("type").and_then(|kind| kind.as_str());
            (RowKind::Unknown, kind.unwrap_or("unknown").to_owned())
        }
    }
}

fn said_in(message: &Message) -> (RowKind, String) {
    match message {
        Message::User(user) => (RowKind::User, text_of(&user.content)),
        Message::Assistant(answer) => answered(answer),
        Message::ToolResult(result) => {
            let texts: Vec<&str> = result.content.iter().filter_map(|b| b.as_text()).collect();
            let how = if result.is_error { " failed" } else { "" };
            (RowKind::Result, format!("{}{how}: {}", result.tool_name, texts.join(" ")))
        }
        Message::BashExecution(shell) => (RowKind::Shell, format!("! {}", shell.command)),
        Message::Custom(custom) if custom.display => {
            (RowKind::Notice, format!("{}: {}", custom.custom_type, custom.content.text()))
        }
        Message::Custom(custom) => (RowKind::Setting, custom.custom_type.clone()),
        Message::System(_) => (RowKind::Setting, "prompt and tools".to_owned()),
        Message::BranchSummary(summary) => (RowKind::Summary, summary.summary.clone()),
        Message::CompactionSummary(summary) => (RowKind::Summary, summary.summary.clone()),
    }
}

fn text_of(content: &Content) -> String {
    let text = content.text();
    if is_blank(&text) { "(images)".to_owned() } else { text }
}

fn answered(answer: &AssistantMessage) -> (RowKind, String) {
    let text = answer.text();
    if !is_blank(&text) {
        return (RowKind::Answer, text);
    }
    let tools: Vec<&str> = answer.tool_calls().map(|call| call.name.as_str()).collect();
    match (&answer.error_message, tools.is_empty()) {
        (Some(error), true) => (RowKind::Answer, format!("({error})")),
        (None, true) => (RowKind::Calls, "(nothing)".to_owned()),
        (_, false) => (RowKind::Calls, format!("calls {}", tools.join(", "))),
    }
}

fn carded(card: &Card) -> (RowKind, String) {
    let text = card.needs.as_deref().unwrap_or(&card.text);
    (RowKind::Card(card.status), format!("{}: {text}", card.subagent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::entry::read_line;
    use crew_engine::api::Status;

    fn read(lines: &[&str]) -> Vec<Entry> {
        lines.iter().map(|line| read_line(line).unwrap()).collect()
    }

    fn entry(kind: &str, id: &str, parent: &str, time: &str, rest: &str) -> String {
        let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
        format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"{time}",{rest}}}"#
        )
    }

    fn texts(lines: &[String]) -> Vec<(RowKind, String)> {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        rows(&read(&lines), None).into_iter().map(|row| (row.kind, row.text)).collect()
    }

    #[test]
    fn parents_stand_before_their_children_and_brothers_by_time() {
        // host.md 2.8.1
        let user = r#""message":{"role":"user","content":"x"}"#;
        let lines = [
            entry("message", "a", "", "1", user),
            entry("message", "late", "a", "9", user),
            entry("message", "early", "a", "3", user),
            entry("message", "below", "late", "9", user),
            entry("message", "orphan", "gone", "0", user),
            entry("message", "own", "own", "5", user),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let rows = rows(&read(&lines), Some(&"below".into()));
        let ids: Vec<&str> = rows.iter().map(|row| row.entry.as_str()).collect();
        assert_eq!(ids, ["orphan", "a", "early", "late", "below", "own"]);
        let parents: Vec<Option<&str>> =
            rows.iter().map(|row| row.parent.as_ref().map(|id| id.as_str())).collect();
        assert_eq!(parents, [None, None, Some("a"), Some("a"), Some("late"), None]);
        assert_eq!(rows.iter().position(|row| row.is_leaf), Some(4));
    }

    #[test]
    fn the_last_label_in_file_order_counts_and_an_empty_one_removes() {
        // host.md 2.4.5
        let time = "2026-11-30T13:43:03.766Z";
        let lines = [
            entry("message", "a", "", "1", r#""message":{"role":"user","content":"x"}"#),
            entry("message", "b", "a", "1", r#""message":{"role":"user","content":"y"}"#),
            entry("label", "l1", "b", "1", r#""targetId":"a","label":"old""#),
            entry("label", "l2", "l1", time, r#""targetId":"a","label":"new""#),
            entry("label", "l3", "l2", "1", r#""targetId":"b","label":"gone""#),
            entry("label", "l4", "l3", "1", r#""targetId":"b","label":"""#),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let rows = rows(&read(&lines), None);
        assert_eq!(rows[0].label.as_deref(), Some("new"));
        assert_eq!(rows[0].labelled.as_deref(), Some("2026-11-30 13:43"));
        assert_eq!((rows[1].label.as_deref(), rows[1].labelled.as_deref()), (None, None));
    }

    #[test]
    fn every_kind_of_entry_is_said_in_one_clean_line() {
        let assistant = |content: &str| {
            format!(r#""message":{{"role":"assistant","content":[{content}],"stopReason":"stop"}}"#)
        };
        let result = r#""customType":"crew-result","content":"{}","display":true,"details":{"subagentId":"scout-1","brief":"B","status":"completed","result":{"report":"found\nit"}}"#;
        let got = texts(&[
            entry(
                "message",
                "a",
                "",
                "1",
                r#""message":{"role":"user","content":"one\ntwo\u001b[2J"}"#,
            ),
            entry("message", "b", "a", "1", &assistant(r#"{"type":"text","text":"hi"}"#)),
            entry(
                "message",
                "c",
                "b",
                "1",
                &assistant(r#"{"type":"toolCall","id":"t","name":"read","arguments":{}}"#),
            ),
            entry(
                "message",
                "d",
                "c",
                "1",
                r#""message":{"role":"toolResult","toolCallId":"t","toolName":"read","content":[{"type":"text","text":"no"}],"isError":true}"#,
            ),
            entry("custom_message", "e", "d", "1", result),
            entry(
                "custom_message",
                "f",
                "e",
                "1",
                r#""customType":"crew-status","content":"{}","display":false"#,
            ),
            entry("branch_summary", "g", "f", "1", r#""fromId":"x","summary":"S""#),
            entry("holodeck", "h", "g", "1", r#""x":1"#),
        ]);
        let expected = [
            (RowKind::User, "one two"),
            (RowKind::Answer, "hi"),
            (RowKind::Calls, "calls read"),
            (RowKind::Result, "read failed: no"),
            (RowKind::Card(Status::Completed), "scout-1: found it"),
            (RowKind::Setting, "crew-status: {}"),
            (RowKind::Summary, "branch that was left: S"),
            (RowKind::Unknown, "holodeck"),
        ];
        let got: Vec<(RowKind, &str)> =
            got.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_entries_needs_no_recursion() {
        // host.md 11.8
        let user = r#""message":{"role":"user","content":"x"}"#;
        let mut entries = Vec::new();
        for at in 0..100_000_u32 {
            let parent = at.checked_sub(1).map(|before| before.to_string()).unwrap_or_default();
            let line = entry("message", &at.to_string(), &parent, "1", user);
            entries.push(read_line(&line).unwrap());
        }
        assert_eq!(rows(&entries, None).len(), 100_000);
    }
}
