//! The context of a session and the entries that lead to it (`host.md` 2.6).

mod compacted;
mod moved;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

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
    marks: Marks,
}

#[derive(Clone, Debug)]
struct Item {
    entry: EntryId,
    message: SharedMessage,
    wire: SharedMessage,
    /// First of the entries without context directly before it, if any.
    lead: Option<EntryId>,
    tokens: OnceLock<u64>,
}

/// What the order of entries says about the items.
#[derive(Clone, Debug, Default)]
struct Marks {
    /// Items from here on are newer than the latest compaction.
    fresh_from: usize,
    /// Usages from here on tell the size of the context as it stands
    /// (`host.md` 3.8.3).
    measured_from: usize,
    /// First of the entries without context behind the last item, if any.
    lead: Option<EntryId>,
}

/// An appended entry that the shell may still fail to write.
#[derive(Clone, Debug)]
struct Unconfirmed {
    /// `None` is a move in the tree, which writes nothing by itself.
    entry: Option<EntryId>,
    /// Fails together with what stands before it.
    with_former: bool,
    parent: Option<EntryId>,
    marks: Marks,
    items_before: usize,
    dropped: Option<Dropped>,
    /// The items that a compaction replaced.
    replaced: Option<Vec<Item>>,
    delivery: Option<DeliveryId>,
}

/// An item that an edit took out.
#[derive(Clone, Debug)]
struct Dropped {
    at: usize,
    item: Item,
    /// The lead of the item that followed it.
    next_lead: Option<EntryId>,
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
            marks: Marks::default(),
        };
        for (entry, message) in loaded.context {
            record.push(entry, message);
        }
        record.replay();
        record.mark_loaded();
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
        self.messages().rev().find_map(|message| {
            let Message::Custom(custom) = message.as_ref() else { return None };
            (custom.custom_type == custom_type).then_some(custom)
        })
    }

    /// The message of the leaf, if that has one.
    pub fn newest(&self) -> Option<(&EntryId, &Message)> {
        let item = self.items.last().filter(|item| Some(&item.entry) == self.leaf.as_ref())?;
        Some((&item.entry, &item.message))
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
        let body = if let Message::Custom(custom) = shared.as_ref() {
            EntryBody::CustomMessage {
                custom_type: custom.custom_type.clone(),
                content: custom.content.clone(),
                display: custom.display,
                details: custom.details.clone(),
            }
        } else {
            EntryBody::Message { message: shared.as_ref().clone() }
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
        let dropped = if let EntryBody::ContextEdit { target_id, replacement: None } = &body {
            self.items.iter().rposition(|item| item.entry == *target_id)
        } else {
            None
        };
        let entry = self.link(now, ids, body, delivery);
        match dropped {
            Some(at) => self.drop_item(at),
            None => drop(self.marks.lead.get_or_insert_with(|| entry.id.clone())),
        }
        entry
    }

    /// Entry of the newest message, if the context has any.
    pub(crate) fn newest_entry(&self) -> Option<EntryId> {
        self.items.last().map(|item| item.entry.clone())
    }

    /// Entries that are not known to be written, oldest first, each with the
    /// delivery it records.
    pub fn unwritten(&self) -> impl Iterator<Item = (&EntryId, Option<DeliveryId>)> {
        let appended = self.unconfirmed.iter();
        appended.filter_map(|appended| Some((appended.entry.as_ref()?, appended.delivery)))
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
        let is_it = |appended: &Unconfirmed| appended.entry.as_ref() == Some(entry);
        let mut first = self.unconfirmed.iter().position(is_it)?;
        if self.unconfirmed[first].with_former {
            first = first.saturating_sub(1);
        }
        let mut refused = Vec::new();
        for appended in self.unconfirmed.drain(first..).rev() {
            self.items.truncate(appended.items_before);
            if let Some(dropped) = appended.dropped {
                let at = dropped.at.min(self.items.len());
                self.items.insert(at, dropped.item);
                if let Some(next) = self.items.get_mut(at + 1) {
                    next.lead = dropped.next_lead;
                }
            }
            if let Some(items) = appended.replaced {
                self.items = items;
            }
            self.marks = appended.marks;
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
            entry: Some(id.clone()),
            with_former: false,
            parent: parent_id.clone(),
            marks: self.marks.clone(),
            items_before: self.items.len(),
            dropped: None,
            replaced: None,
            delivery,
        });
        Entry { id, parent_id, timestamp: now.iso(), body }
    }

    fn push(&mut self, entry: EntryId, message: SharedMessage) {
        let wire = (self.outgoing)(&message).map_or_else(|| Arc::clone(&message), Arc::new);
        let lead = self.marks.lead.take();
        self.items.push(Item { entry, message, wire, lead, tokens: OnceLock::new() });
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

    /// Chain check for tests: every entry of the context stands once in it,
    /// but for a compaction, which gives the prompt and the summary.
    pub fn is_consistent(&self) -> bool {
        let mut seen = BTreeSet::new();
        let is_second =
            |item: &Item| matches!(item.message.as_ref(), Message::CompactionSummary(_));
        self.items.iter().all(|item| seen.insert(&item.entry) || is_second(item))
    }
}
