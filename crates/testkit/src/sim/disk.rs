//! The session files of the simulated shell.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_agent::Loaded;
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, SessionId, TakenEntryIds};
use crew_base::message::{CompactionSummaryMessage, CustomMessage, Message, SharedMessage};
use crew_base::time::Time;

/// What was written of each owner that has a file.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: BTreeMap<SessionId, Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    context: Vec<(EntryId, SharedMessage)>,
    leaf: Option<EntryId>,
    taken: TakenEntryIds,
    /// Where each entry stands in the file.
    places: BTreeMap<EntryId, usize>,
}

impl Stored {
    /// Drops what stands before an entry, and every prompt and summary
    /// (`host.md` 2.6.2, 2.6.3).
    fn keep_from(&mut self, first: &EntryId) {
        let from = self.places.get(first).copied().unwrap_or(usize::MAX);
        self.context.retain(|(id, message)| {
            let is_head =
                matches!(message.as_ref(), Message::System(_) | Message::CompactionSummary(_));
            !is_head && self.places.get(id).is_some_and(|place| *place >= from)
        });
    }
}

impl Disk {
    pub(super) fn create(&mut self, session: &SessionId) {
        self.files.entry(session.clone()).or_default();
    }

    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.files.contains_key(session)
    }

    /// Takes one written entry, if its session has a file.
    pub(super) fn write(&mut self, now: Time, session: &SessionId, entry: &Entry) {
        let Some(stored) = self.files.get_mut(session) else { return };
        stored.taken.take(&entry.id);
        stored.leaf = Some(entry.id.clone());
        stored.places.insert(entry.id.clone(), stored.places.len());
        let message = match &entry.body {
            EntryBody::Message { message } => message.clone(),
            EntryBody::CustomMessage { custom_type, content, display, details } => {
                Message::Custom(CustomMessage {
                    custom_type: custom_type.clone(),
                    content: content.clone(),
                    display: *display,
                    details: details.clone(),
                    timestamp: now,
                })
            }
            EntryBody::Compaction {
                summary,
                first_kept_entry_id,
                tokens_before,
                system_message,
                ..
            } => {
                stored.keep_from(first_kept_entry_id);
                let summary = Message::CompactionSummary(CompactionSummaryMessage {
                    summary: summary.clone(),
                    tokens_before: *tokens_before,
                    timestamp: now,
                });
                let head = system_message.iter().cloned().chain([summary]);
                let head: Vec<_> = head.map(|m| (entry.id.clone(), Arc::new(m))).collect();
                stored.context.splice(..0, head);
                return;
            }
            EntryBody::ContextEdit { target_id, replacement: None } => {
                stored.context.retain(|(id, _)| id != target_id);
                return;
            }
            _ => return,
        };
        stored.context.push((entry.id.clone(), Arc::new(message)));
    }

    /// What a session finds when it is opened again.
    pub(super) fn load(&self, session: &SessionId) -> Option<Loaded> {
        let stored = self.files.get(session).filter(|stored| stored.leaf.is_some())?;
        Some(Loaded {
            context: stored.context.clone(),
            leaf: stored.leaf.clone(),
            taken: stored.taken.clone(),
            has_level_entry: true,
        })
    }
}
