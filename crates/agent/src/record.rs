//! The context of a session and the entries that lead to it (`host.md` 2.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, Ids, TakenEntryIds};
use crew_base::message::{CustomMessage, Message, SharedMessage};
use crew_base::session::DeliveryId;
use crew_base::time::Time;

use crate::input::Loaded;
use crate::prompt::Prompt;

/// Rewrites a message for the wire only, if it must be (`crew.md` MEN-4).
pub(crate) type Outgoing = fn(&Message) -> Option<Message>;

/// The projected context, its leaf, and what may still have to be undone.
#[derive(Clone, Debug)]
pub struct Record {
    items: Vec<Item>,
    leaf: Option<EntryId>,
    taken: TakenEntryIds,
    replayed: Prompt,
    outgoing: Outgoing,
    unconfirmed: Vec<Unconfirmed>,
}

#[derive(Clone, Debug)]
struct Item {
    entry: EntryId,
    message: SharedMessage,
    wire: SharedMessage,
}

/// An appended entry that the shell may still fail to write.
#[derive(Clone, Debug)]
struct Unconfirmed {
    entry: EntryId,
    parent: Option<EntryId>,
    items_before: usize,
    dropped: Option<(usize, Item)>,
    delivery: Option<DeliveryId>,
}

impl Record {
    pub(crate) fn new(loaded: Loaded, outgoing: Outgoing) -> Record {
        let mut record = Record {
            items: Vec::with_capacity(loaded.context.len()),
            leaf: loaded.leaf,
            taken: loaded.taken,
            replayed: Prompt::default(),
            outgoing,
            unconfirmed: Vec::new(),
        };
        for (entry, message) in loaded.context {
            record.push(entry, message);
        }
        record.replay();
        record
    }

    /// Messages of the context, oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &SharedMessage> {
        self.items.iter().map(|item| &item.message)
    }

    /// The entry that the next one follows.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    /// Prompt and tools that the context adds up to.
    pub fn prompt(&self) -> &Prompt {
        &self.replayed
    }

    /// The newest custom message of a type in the context (`crew.md` CTX-7).
    pub fn newest_custom(&self, custom_type: &str) -> Option<&CustomMessage> {
        self.messages().rev().find_map(|message| match message.as_ref() {
            Message::Custom(custom) if custom.custom_type == custom_type => Some(custom),
            _ => None,
        })
    }

    pub(crate) fn wire(&self) -> Vec<SharedMessage> {
        self.items.iter().map(|item| Arc::clone(&item.wire)).collect()
    }

    /// Adds a message; a custom one becomes an entry of its own kind.
    pub(crate) fn append_message(
        &mut self,
        now: Time,
        ids: &mut Ids,
        message: Message,
        delivery: Option<DeliveryId>,
    ) -> (Entry, SharedMessage) {
        let shared = Arc::new(message);
        let body = match shared.as_ref() {
            Message::Custom(custom) => EntryBody::CustomMessage {
                custom_type: custom.custom_type.clone(),
                content: custom.content.clone(),
                display: custom.display,
                details: custom.details.clone(),
            },
            other => EntryBody::Message { message: other.clone() },
        };
        let entry = self.link(now, ids, body, delivery);
        self.push(entry.id.clone(), Arc::clone(&shared));
        if let Message::System(system) = shared.as_ref() {
            self.replayed.apply(system);
        }
        (entry, shared)
    }

    /// Adds an entry that is no message.
    pub(crate) fn append(
        &mut self,
        now: Time,
        ids: &mut Ids,
        body: EntryBody,
        delivery: Option<DeliveryId>,
    ) -> Entry {
        let dropped = match &body {
            EntryBody::ContextEdit { target_id, replacement: None } => {
                let at = self.items.iter().rposition(|item| item.entry == *target_id);
                at.map(|at| (at, self.items[at].clone()))
            }
            _ => None,
        };
        let entry = self.link(now, ids, body, delivery);
        if let Some((at, item)) = dropped {
            self.items.remove(at);
            if let Some(last) = self.unconfirmed.last_mut() {
                last.dropped = Some((at, item));
            }
        }
        entry
    }

    /// Entry of the newest message, if the context has any.
    pub(crate) fn newest_entry(&self) -> Option<EntryId> {
        self.items.last().map(|item| item.entry.clone())
    }

    /// Whether an entry was appended and is not known to be written.
    pub fn may_be_unwritten(&self, entry: &EntryId) -> bool {
        self.unconfirmed.iter().any(|appended| appended.entry == *entry)
    }

    /// How many appended entries are not known to be written.
    pub(crate) fn unconfirmed(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Work that was started after the first `count` of them has begun, so
    /// they are written (`style.md` 3).
    pub(crate) fn confirm(&mut self, count: usize) {
        self.unconfirmed.drain(..count.min(self.unconfirmed.len()));
    }

    /// Takes back an entry that was not written and all behind it
    /// (`host.md` 2.2.4); names the results among them.
    pub(crate) fn undo(&mut self, entry: &EntryId) -> Option<Vec<DeliveryId>> {
        let first = self.unconfirmed.iter().position(|appended| appended.entry == *entry)?;
        let mut refused = Vec::new();
        for appended in self.unconfirmed.drain(first..).rev() {
            self.items.truncate(appended.items_before);
            if let Some((at, item)) = appended.dropped {
                self.items.insert(at.min(self.items.len()), item);
            }
            self.leaf = appended.parent;
            refused.extend(appended.delivery);
        }
        refused.reverse();
        self.replay();
        Some(refused)
    }

    fn link(
        &mut self,
        now: Time,
        ids: &mut Ids,
        body: EntryBody,
        delivery: Option<DeliveryId>,
    ) -> Entry {
        let id = ids.entry(&mut self.taken);
        let parent_id = self.leaf.replace(id.clone());
        self.unconfirmed.push(Unconfirmed {
            entry: id.clone(),
            parent: parent_id.clone(),
            items_before: self.items.len(),
            dropped: None,
            delivery,
        });
        Entry { id, parent_id, timestamp: now.iso(), body }
    }

    fn push(&mut self, entry: EntryId, message: SharedMessage) {
        let wire = (self.outgoing)(&message).map_or_else(|| Arc::clone(&message), Arc::new);
        self.items.push(Item { entry, message, wire });
    }

    fn replay(&mut self) {
        let mut prompt = Prompt::default();
        for item in &self.items {
            if let Message::System(system) = item.message.as_ref() {
                prompt.apply(system);
            }
        }
        self.replayed = prompt;
    }

    /// Chain check for tests: every entry id of the context is unique.
    pub fn is_consistent(&self) -> bool {
        let mut seen = BTreeMap::new();
        self.items.iter().all(|item| seen.insert(&item.entry, ()).is_none())
    }
}
