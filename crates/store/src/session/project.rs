//! Rebuilds the model context from the entries of one branch (`host.md` 2.6).
//!
//! Reads only lines that are needed: what a compaction replaced stays on disk.
//! For display use the raw lines instead (2.6.7).

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody, Replacement, read_line};
use crew_base::id::EntryId;
use crew_base::json;
use crew_base::message::{
    AssistantMessage, BashExecutionMessage, BranchSummaryMessage, CompactionSummaryMessage,
    CustomMessage, Message, SharedMessage, SystemMessage, ToolResultMessage, UserMessage,
};
use crew_base::time::Time;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::index::{Indexed, Kind, Role};
use super::read::Lines;

/// The context of one branch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection {
    /// The messages in order, each with the entry it comes from.
    pub messages: Vec<(EntryId, SharedMessage)>,
    /// The last level entry of the branch; `None` when it has none, which
    /// means `off` (`host.md` 2.6.5, 2.4.2).
    pub thinking_level: Option<String>,
    /// Provider and model id in force (`host.md` 2.6.5).
    pub model: Option<(String, String)>,
    /// The compaction whose summary opens the context.
    pub compaction: Option<EntryId>,
}

/// Projects the entries at `path`, places in file order from root to leaf.
pub(crate) fn project(
    entries: &[Indexed],
    path: &[usize],
    lines: &mut Lines<'_>,
) -> io::Result<Projection> {
    let (compaction, selected) = select(entries, path, lines)?;
    let mut projection = Projection {
        messages: Vec::with_capacity(selected.len()),
        thinking_level: thinking_level(entries, path, lines)?,
        model: model(entries, path, lines)?,
        compaction: None,
    };
    if let Some(entry) = compaction {
        projection.compaction = Some(entry.id.clone());
        push_compaction(entry, &mut projection.messages);
    }
    let edits = edits(entries, &selected, lines)?;
    for place in selected {
        let entry = &entries[place];
        let edit = edits.get(&entry.id);
        if matches!(edit, Some(None)) {
            continue;
        }
        if let Some(mut message) = message(entry, lines)? {
            if let Some(Some(replacement)) = edit {
                replace_content(&mut message, replacement);
            }
            projection.messages.push((entry.id.clone(), Arc::new(message)));
        }
    }
    Ok(projection)
}

/// Finds the compaction that counts and the entries beside it
/// (`host.md` 2.6.2, 2.6.3).
fn select(
    entries: &[Indexed],
    path: &[usize],
    lines: &mut Lines<'_>,
) -> io::Result<(Option<Entry>, Vec<usize>)> {
    let is_compaction = |place: &usize| entries[*place].kind == Kind::Compaction;
    for (at, place) in path.iter().enumerate().rev().filter(|(_, p)| is_compaction(p)) {
        let Some(entry) = entry(&entries[*place], lines)? else {
            continue;
        };
        let EntryBody::Compaction { first_kept_entry_id, .. } = &entry.body else {
            continue;
        };
        let is_first = |place: &usize| entries[*place].id == *first_kept_entry_id;
        let from = path[..at].iter().position(is_first).unwrap_or(at);
        let is_kept = |place: &&usize| entries[**place].kind != Kind::Message(Role::System);
        let kept = path[from..at].iter().filter(is_kept);
        let selected = kept.chain(&path[at + 1..]).copied().collect();
        return Ok((Some(entry), selected));
    }
    Ok((None, path.to_vec()))
}

fn push_compaction(entry: Entry, messages: &mut Vec<(EntryId, SharedMessage)>) {
    let timestamp = super::scan::time_of(&entry.timestamp);
    if let EntryBody::Compaction { summary, tokens_before, system_message, .. } = entry.body {
        if let Some(system) = system_message {
            messages.push((entry.id.clone(), Arc::new(system)));
        }
        let summary = Message::CompactionSummary(CompactionSummaryMessage {
            summary,
            tokens_before,
            timestamp,
        });
        messages.push((entry.id, Arc::new(summary)));
    }
}

/// The edits in force: of several for one target the last.
pub(super) fn edits(
    entries: &[Indexed],
    selected: &[usize],
    lines: &mut Lines<'_>,
) -> io::Result<HashMap<EntryId, Option<Replacement>>> {
    let mut edits = HashMap::new();
    for place in selected {
        if entries[*place].kind != Kind::ContextEdit {
            continue;
        }
        if let Some(entry) = entry(&entries[*place], lines)?
            && let EntryBody::ContextEdit { target_id, replacement } = entry.body
        {
            edits.insert(target_id, replacement);
        }
    }
    Ok(edits)
}

/// The message an entry gives, if any (`host.md` 2.6.4).
pub(super) fn message(indexed: &Indexed, lines: &mut Lines<'_>) -> io::Result<Option<Message>> {
    match indexed.kind {
        Kind::Message(role) => Ok(read_message(role, &lines.text(indexed)?)),
        Kind::CustomMessage | Kind::BranchSummary => {
            Ok(entry(indexed, lines)?.and_then(|entry| other_message(entry.body, indexed.time)))
        }
        Kind::ModelChange
        | Kind::ThinkingLevelChange
        | Kind::Compaction
        | Kind::ContextEdit
        | Kind::Custom
        | Kind::Label
        | Kind::SessionInfo
        | Kind::Usage
        | Kind::Unknown => Ok(None),
    }
}

fn other_message(body: EntryBody, timestamp: Time) -> Option<Message> {
    if let EntryBody::CustomMessage { custom_type, content, display, details } = body {
        return Some(Message::Custom(CustomMessage {
            custom_type,
            content,
            display,
            details,
            timestamp,
        }));
    }
    if let EntryBody::BranchSummary { from_id, summary, .. } = body
        && !summary.is_empty()
    {
        return Some(Message::BranchSummary(BranchSummaryMessage { summary, from_id, timestamp }));
    }
    None
}

/// Reads the message of a line whose role is known, in one pass over its text.
pub(crate) fn read_message(role: Role, line: &str) -> Option<Message> {
    #[derive(Deserialize)]
    struct Fields<T> {
        message: T,
    }
    fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
        let fields: Fields<T> = json::from_text(line).ok()?;
        Some(fields.message)
    }
    match role {
        Role::System => read::<SystemMessage>(line).map(Message::System),
        Role::User => read::<UserMessage>(line).map(Message::User),
        Role::Assistant => read::<AssistantMessage>(line).map(Message::Assistant),
        Role::ToolResult => read::<ToolResultMessage>(line).map(Message::ToolResult),
        Role::BashExecution => read::<BashExecutionMessage>(line).map(Message::BashExecution),
        Role::Custom => read::<CustomMessage>(line).map(Message::Custom),
        Role::Other => None,
    }
}

pub(super) fn replace_content(message: &mut Message, replacement: &Replacement) {
    let content = &replacement.content;
    match message {
        Message::User(m) => m.content = content.clone(),
        Message::Custom(m) => m.content = content.clone(),
        Message::Assistant(m) => m.content = content.blocks(),
        Message::ToolResult(m) => m.content = content.blocks(),
        // No edit may target these (host.md 2.4.6).
        Message::System(_)
        | Message::BashExecution(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_) => {}
    }
}

fn thinking_level(
    entries: &[Indexed],
    path: &[usize],
    lines: &mut Lines<'_>,
) -> io::Result<Option<String>> {
    for place in path.iter().rev() {
        if entries[*place].kind == Kind::ThinkingLevelChange
            && let Some(entry) = entry(&entries[*place], lines)?
            && let EntryBody::ThinkingLevelChange { thinking_level } = entry.body
        {
            return Ok(Some(thinking_level));
        }
    }
    Ok(None)
}

fn model(
    entries: &[Indexed],
    path: &[usize],
    lines: &mut Lines<'_>,
) -> io::Result<Option<(String, String)>> {
    #[derive(Deserialize)]
    struct Answer {
        message: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        provider: String,
        model: String,
    }
    for place in path.iter().rev() {
        let indexed = &entries[*place];
        if indexed.kind == Kind::ModelChange
            && let Some(entry) = entry(indexed, lines)?
            && let EntryBody::ModelChange { provider, model_id } = entry.body
        {
            return Ok(Some((provider, model_id)));
        }
        if indexed.kind == Kind::Message(Role::Assistant)
            && let Ok(answer) = json::from_text::<Answer>(&lines.text(indexed)?)
        {
            return Ok(Some((answer.message.provider, answer.message.model)));
        }
    }
    Ok(None)
}

pub(super) fn entry(indexed: &Indexed, lines: &mut Lines<'_>) -> io::Result<Option<Entry>> {
    Ok(read_line(&lines.text(indexed)?).ok())
}
