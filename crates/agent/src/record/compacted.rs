//! The context before and after a compaction (`host.md` 2.6.2, 3.8).

use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, Ids};
use crew_base::message::{
    CompactionSummaryMessage, Content, Message, SharedMessage, SystemMessage, Usage,
};
use crew_base::time::Time;

use super::{Dropped, Item, Record};
use crate::compaction::cut::Piece;
use crate::compaction::{Candidate, CompactionResult, Nothing, Plan, estimate, is_measure, plan};
use crate::prompt::Prompt;

impl Item {
    fn tokens(&self) -> u64 {
        *self.tokens.get_or_init(|| estimate::tokens(&self.message))
    }
}

impl Record {
    /// Plans a compaction that keeps this many recent tokens. `omitted` are
    /// entries of a failed attempt, which will be dropped with it.
    pub(crate) fn plan(&self, keep_tokens: u64, omitted: &[EntryId]) -> Result<Plan, Nothing> {
        let summary = self.summary_at();
        let compaction = summary.map(|at| &self.items[at].entry);
        if compaction.is_some() && compaction == self.leaf.as_ref() {
            return Err(Nothing::AlreadyCompacted);
        }
        let previous = summary.and_then(|at| {
            let Message::CompactionSummary(message) = self.items[at].message.as_ref() else {
                return None;
            };
            Some(message.summary.as_str())
        });
        let later = &self.items[summary.map_or(0, |at| at + 1)..];
        let candidates: Vec<Candidate<'_>> = later
            .iter()
            .filter(|item| !omitted.contains(&item.entry))
            .map(|item| Candidate {
                entry: &item.entry,
                lead: item.lead.as_ref(),
                piece: Piece { message: &item.message, tokens: item.tokens() },
            })
            .collect();
        plan(&candidates, previous, keep_tokens, !omitted.is_empty())
    }

    /// Appends the compaction and rebuilds the context: prompt and tools in
    /// force, the summary, what is kept (`host.md` 3.8.14, 2.6.2 to 2.6.4).
    pub(crate) fn compact(
        &mut self,
        now: Time,
        ids: &mut Ids,
        plan: &Plan,
        summary: String,
        usage: Option<Usage>,
    ) -> (Entry, CompactionResult) {
        let tokens_before = self.context_tokens();
        let details = Some(plan.files.details());
        let system = self.whole_prompt(now);
        let body = EntryBody::Compaction {
            summary: summary.clone(),
            // Replaced below when nothing is kept.
            first_kept_entry_id: EntryId::new(""),
            tokens_before,
            details: details.clone(),
            usage: usage.clone(),
            from_hook: Some(false),
            system_message: system.clone(),
        };
        let mut entry = self.link(now, ids, body, None);
        let first_kept = plan.keep.as_ref().map_or(&entry.id, |keep| &keep.first).clone();
        if let EntryBody::Compaction { first_kept_entry_id, .. } = &mut entry.body {
            first_kept_entry_id.clone_from(&first_kept);
        }
        let message =
            CompactionSummaryMessage { summary: summary.clone(), tokens_before, timestamp: now };
        self.rebuild(&entry.id, system, Message::CompactionSummary(message), plan);
        let result = CompactionResult {
            summary,
            first_kept_entry_id: first_kept,
            tokens_before,
            estimated_tokens_after: self.items.iter().map(Item::tokens).sum(),
            usage,
            details,
        };
        (entry, result)
    }

    fn rebuild(&mut self, id: &EntryId, system: Option<Message>, summary: Message, plan: &Plan) {
        let before = std::mem::take(&mut self.items);
        let from = plan
            .keep
            .as_ref()
            .and_then(|keep| before.iter().position(|item| item.entry == keep.message));
        self.marks.lead = None;
        for message in system.into_iter().chain([summary]) {
            self.push(id.clone(), Arc::new(message));
        }
        let kept = before[from.unwrap_or(before.len())..].iter();
        let is_prompt = |item: &&Item| matches!(item.message.as_ref(), Message::System(_));
        self.items.extend(kept.filter(|item| !is_prompt(item)).cloned());
        self.marks.fresh_from = self.items.len();
        self.marks.measured_from = self.items.len();
        if let Some(last) = self.unconfirmed.last_mut() {
            last.replaced = Some(before);
        }
        self.replay();
    }

    /// Tokens of the context: what the provider counted last, and an estimate
    /// of what came after; without a count that still holds, an estimate of
    /// everything (`host.md` 3.8.3).
    pub fn context_tokens(&self) -> u64 {
        let Some(at) = self.measure_at() else {
            return self.items.iter().map(Item::tokens).sum();
        };
        let counted = self.items[at].message.as_assistant().map(|answer| &answer.usage);
        let counted = counted.map_or(0, estimate::counted);
        let later = self.items[at + 1..].iter().map(Item::tokens);
        counted.saturating_add(later.sum::<u64>())
    }

    /// Whether a provider counted the context as it stands, later messages
    /// aside (`host.md` 7.3.2 `contextUsage`).
    pub fn is_measured(&self) -> bool {
        self.measure_at().is_some()
    }

    /// Whether the newest answer is newer than the latest compaction; an older
    /// one starts no other (`host.md` 3.8.3, 11.52).
    pub(crate) fn has_fresh_answer(&self) -> bool {
        let newest = self.items.iter().rposition(|item| item.message.as_assistant().is_some());
        newest.is_some_and(|at| at >= self.marks.fresh_from)
    }

    /// The newest answer of the context.
    pub(crate) fn newest_answer(&self) -> Option<&SharedMessage> {
        self.messages().rev().find(|message| message.as_assistant().is_some())
    }

    /// Entries of the newest `count` messages, oldest first.
    pub(crate) fn newest_entries(&self, count: usize) -> Vec<EntryId> {
        let from = self.items.len().saturating_sub(count);
        self.items[from..].iter().map(|item| item.entry.clone()).collect()
    }

    /// Takes an item out of the context for the entry appended last.
    pub(super) fn drop_item(&mut self, at: usize) {
        let item = self.items.remove(at);
        let gone = item.lead.clone().unwrap_or_else(|| item.entry.clone());
        let mut next_lead = None;
        match self.items.get_mut(at) {
            Some(next) => next_lead = next.lead.replace(gone),
            None => self.marks.lead = Some(gone),
        }
        if at < self.marks.fresh_from {
            self.marks.fresh_from -= 1;
        }
        if at < self.marks.measured_from {
            self.marks.measured_from -= 1;
        }
        // A later answer was made with the message in its prompt.
        if self.items[at..].iter().any(|item| is_measure(&item.message)) {
            self.marks.measured_from = self.items.len();
        }
        if let Some(last) = self.unconfirmed.last_mut() {
            last.dropped = Some(Dropped { at, item, next_lead });
        }
    }

    /// Tells the kept messages of a loaded context from those behind the
    /// compaction, by their time.
    pub(super) fn mark_loaded(&mut self) {
        let Some(summary) = self.summary_at() else { return };
        let moment = self.items[summary].message.timestamp();
        let later = self.items[summary + 1..].iter();
        let kept = later.take_while(|item| item.message.timestamp() <= moment).count();
        self.marks.fresh_from = summary + 1 + kept;
        self.marks.measured_from = self.marks.fresh_from;
    }

    fn measure_at(&self) -> Option<usize> {
        let at = self.items.iter().rposition(|item| is_measure(&item.message))?;
        (at >= self.marks.measured_from).then_some(at)
    }

    /// Where the summary of the latest compaction stands, if there is one.
    fn summary_at(&self) -> Option<usize> {
        let is_summary =
            |item: &Item| matches!(item.message.as_ref(), Message::CompactionSummary(_));
        self.items.iter().take(2).position(is_summary)
    }

    /// Prompt and tools in force as one message, if there are any.
    fn whole_prompt(&self, now: Time) -> Option<Message> {
        let contents = self.messages().filter_map(|message| {
            let Message::System(system) = message.as_ref() else { return None };
            Some(system.content.text())
        });
        let contents: Vec<String> = contents.filter(|text| !text.is_empty()).collect();
        let patch = Prompt::default().patch_to(self.prompt(), now);
        if patch.is_none() && contents.is_empty() {
            return None;
        }
        let patch = patch.unwrap_or_else(|| SystemMessage { timestamp: now, ..Default::default() });
        Some(Message::System(SystemMessage {
            content: Content::Text(contents.join("\n\n")),
            ..patch
        }))
    }
}
