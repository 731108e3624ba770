//! The context at another place in the session tree (`host.md` 2.8.2, 2.8.3).

use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, Ids};
use crew_base::message::{BranchSummaryMessage, Message, SharedMessage};
use crew_base::time::Time;

use super::{Record, Unconfirmed};

impl Record {
    /// Stands at another leaf with the context that was read there. Entries
    /// that may still turn out not to be written take the move back with them.
    pub(crate) fn go_to(&mut self, leaf: Option<EntryId>, context: Vec<(EntryId, SharedMessage)>) {
        let items = std::mem::take(&mut self.items);
        let marks = std::mem::take(&mut self.marks);
        let parent = std::mem::replace(&mut self.leaf, leaf);
        self.unconfirmed.push(Unconfirmed {
            entry: None,
            with_former: false,
            parent,
            marks,
            items_before: 0,
            dropped: None,
            replaced: Some(items),
            delivery: None,
        });
        for (entry, message) in context {
            self.push(entry, message);
        }
        self.replay();
        self.mark_loaded();
    }

    /// Appends the summary of the branch that was left by the move just made;
    /// when it cannot be written, the move did not take place.
    pub(crate) fn append_branch_summary(
        &mut self,
        now: Time,
        ids: &mut Ids,
        body: EntryBody,
    ) -> Entry {
        let entry = self.link(now, ids, body, None);
        if let Some(last) = self.unconfirmed.last_mut() {
            last.with_former = true;
        }
        if let EntryBody::BranchSummary { from_id, summary, .. } = &entry.body {
            let (summary, from_id) = (summary.clone(), from_id.clone());
            let message = BranchSummaryMessage { summary, from_id, timestamp: now };
            self.push(entry.id.clone(), Arc::new(Message::BranchSummary(message)));
        }
        entry
    }
}
