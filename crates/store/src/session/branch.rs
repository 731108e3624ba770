//! What a move in the session tree needs to read (`host.md` 2.8.2, 2.8.3): the
//! place that is gone to, and what lies between it and the place that is left.
//!
//! Only reads. What is summarised of it is decided by the agent.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use crew_base::entry::EntryBody;
use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_base::message::{CompactionSummaryMessage, Message, SharedMessage};

use super::index::{Index, Indexed, Kind, Role};
use super::project::{self, Projection};
use super::read::Lines;
use super::snapshot::Snapshot;
use crate::error::{Error, Result};

/// Both ends of a move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Branch {
    /// Where the session will stand; `None` is the place before everything.
    pub leaf: Option<EntryId>,
    /// Text for the editor, of a message that is to be written anew.
    pub draft: Option<String>,
    /// The context there.
    pub context: Projection,
    /// What is left, from the deepest common ancestor on, oldest first.
    pub left: Vec<Left>,
}

/// One message of a branch that is left, edits of the context applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// The message; of a compaction its summary.
    pub message: SharedMessage,
    /// For a summary: the `details` of its entry, unless a hook made it.
    pub details: Option<Raw>,
}

/// Reads what a move from a leaf to an entry needs; an unknown entry is an
/// error.
pub fn branch(source: &Snapshot, from: Option<&EntryId>, to: &EntryId) -> Result<Branch> {
    let index = source.index();
    let unknown = || Error::UnknownEntry { id: to.as_str().to_owned() };
    let target = &index.entries()[index.position(to).ok_or_else(unknown)?];
    let mut lines = source.lines()?;
    let (leaf, draft) = place(index, target, &mut lines).map_err(source.read_error())?;
    let places = left_places(index, from, to);
    let left = left(index.entries(), &places, &mut lines).map_err(source.read_error())?;
    Ok(Branch { context: source.project(leaf.as_ref())?, leaf, draft, left })
}

/// Messages that a person may write anew are stood before, all others on.
fn place(
    index: &Index,
    target: &Indexed,
    lines: &mut Lines<'_>,
) -> io::Result<(Option<EntryId>, Option<String>)> {
    if !matches!(target.kind, Kind::Message(Role::User) | Kind::CustomMessage) {
        return Ok((Some(target.id.clone()), None));
    }
    let parent = target.parent_id.clone().filter(|parent| *parent != target.id);
    let parent = parent.filter(|parent| index.position(parent).is_some());
    let text = match project::message(target, lines)? {
        Some(Message::User(message)) => message.content.text(),
        Some(Message::Custom(message)) => message.content.text(),
        Some(
            Message::System(_)
            | Message::Assistant(_)
            | Message::ToolResult(_)
            | Message::BashExecution(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_),
        )
        | None => String::new(),
    };
    Ok((parent, Some(text)))
}

/// Places on the way to the leaf that are not on the way to the target.
fn left_places(index: &Index, from: Option<&EntryId>, to: &EntryId) -> Vec<usize> {
    let Some(from) = from.filter(|from| index.position(from).is_some()) else { return Vec::new() };
    let kept: BTreeSet<usize> = index.path(to).into_iter().collect();
    let path = index.path(from);
    let first = path.iter().rposition(|place| kept.contains(place)).map_or(0, |at| at + 1);
    path[first..].to_vec()
}

fn left(entries: &[Indexed], places: &[usize], lines: &mut Lines<'_>) -> io::Result<Vec<Left>> {
    let edits = project::edits(entries, places, lines)?;
    let mut left = Vec::new();
    for indexed in places.iter().map(|place| &entries[*place]) {
        if matches!(indexed.kind, Kind::Compaction | Kind::BranchSummary) {
            left.extend(summary(indexed, lines)?);
            continue;
        }
        let edit = edits.get(&indexed.id);
        if matches!(edit, Some(None)) {
            continue;
        }
        let Some(mut message) = project::message(indexed, lines)? else { continue };
        if let Some(Some(replacement)) = edit {
            project::replace_content(&mut message, replacement);
        }
        left.push(Left { message: Arc::new(message), details: None });
    }
    Ok(left)
}

fn summary(indexed: &Indexed, lines: &mut Lines<'_>) -> io::Result<Option<Left>> {
    let Some(entry) = project::entry(indexed, lines)? else { return Ok(None) };
    if let EntryBody::Compaction { summary, tokens_before, details, from_hook, .. } = entry.body {
        let timestamp = indexed.time;
        let message = CompactionSummaryMessage { summary, tokens_before, timestamp };
        let message = Arc::new(Message::CompactionSummary(message));
        let details = details.filter(|_| from_hook != Some(true));
        return Ok(Some(Left { message, details }));
    }
    let details = if let EntryBody::BranchSummary { details, from_hook, .. } = entry.body {
        details.filter(|_| from_hook != Some(true))
    } else {
        None
    };
    let message = project::message(indexed, lines)?;
    Ok(message.map(|message| Left { message: Arc::new(message), details }))
}
