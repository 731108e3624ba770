//! Replaces the older part of a context by a summary (`host.md` 3.8).
//!
//! Owns what is to be summarised and how it is asked for: `cut` finds the
//! place, `estimate` the sizes, `serialise` the text, `summary` the request and
//! the result. Must never change a record or decide when to compact: that is
//! `step::compacting`.

pub(crate) mod cut;
pub(crate) mod estimate;
pub(crate) mod serialise;
pub(crate) mod summary;

use std::collections::BTreeMap;

use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_base::message::{Message, StopReason, Usage};

use cut::Piece;
use summary::{Files, Part};

/// The `compaction` settings (`host.md` 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether it happens by itself, at the threshold and after an overflow.
    pub enabled: bool,
    /// Tokens of the window that must stay free.
    pub reserve_tokens: u64,
    /// Tokens of recent messages that are kept as they are.
    pub keep_recent_tokens: u64,
}

impl Default for CompactionSettings {
    fn default() -> CompactionSettings {
        CompactionSettings { enabled: true, reserve_tokens: 16_384, keep_recent_tokens: 20_000 }
    }
}

/// Sizes that are no numbers, and those that differ for a model (`host.md`
/// 1.3.8): the ordinary ones are in [`CompactionSettings`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionOverrides {
    /// By `provider/model-id`: its sizes, or why they cannot be used.
    pub models: BTreeMap<String, Result<CompactionSizes, String>>,
    /// Why the ordinary ones cannot be used.
    pub error: Option<String>,
}

/// Sizes in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSizes {
    /// As [`CompactionSettings::reserve_tokens`].
    pub reserve_tokens: u64,
    /// As [`CompactionSettings::keep_recent_tokens`].
    pub keep_recent_tokens: u64,
}

/// Why a context is compacted (`host.md` 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionReason {
    /// The person asked.
    Manual,
    /// The context grew past the threshold.
    Threshold,
    /// It did not fit.
    Overflow,
}

impl CompactionReason {
    /// The word in events.
    pub fn word(self) -> &'static str {
        match self {
            CompactionReason::Manual => "manual",
            CompactionReason::Threshold => "threshold",
            CompactionReason::Overflow => "overflow",
        }
    }
}

/// What a compaction gave (`host.md` 3.8.15).
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionResult {
    /// The stored summary.
    pub summary: String,
    /// The first entry that is kept; the compaction's own id keeps nothing.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// Estimated tokens of the context after.
    pub estimated_tokens_after: u64,
    /// What the summary cost.
    pub usage: Option<Usage>,
    /// Files that were read and modified.
    pub details: Option<Raw>,
}

/// Why there is nothing to do; `Display` gives the fixed texts of `host.md`
/// 7.3.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// The last entry is a compaction.
    AlreadyCompacted,
    /// No message stands before the part that is kept.
    TooSmall,
}

impl Nothing {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Nothing::AlreadyCompacted => "Already compacted",
            Nothing::TooSmall => "Nothing to compact (session too small)",
        }
    }
}

/// One projected message after the previous compaction, as a record holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// Its entry.
    pub(crate) entry: &'a EntryId,
    /// The first of the entries without context directly before it.
    pub(crate) lead: Option<&'a EntryId>,
    /// The message and its size.
    pub(crate) piece: Piece<'a>,
}

/// From where on the context stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    /// The entry of the first message that stays.
    pub(crate) message: EntryId,
    /// What the compaction entry names: entries without context before that
    /// message stay too (`host.md` 3.8.6).
    pub(crate) first: EntryId,
}

/// A compaction that can be made.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Nothing is kept without it.
    pub(crate) keep: Option<Keep>,
    /// What is summarised, one request each, in order.
    pub(crate) parts: Vec<Part>,
    /// The previous summary without its lists of files.
    pub(crate) previous: Option<String>,
    /// Files of all that is summarised so far.
    pub(crate) files: Files,
}

/// Plans a compaction of the messages after the previous one (3.8.6 to 3.8.9).
/// With `recovers`, messages behind the candidates are to be omitted: then a
/// cut that would keep nothing but one large message moves behind it (3.8.7).
pub(crate) fn plan(
    candidates: &[Candidate<'_>],
    previous: Option<&str>,
    keep_tokens: u64,
    recovers: bool,
) -> Result<Plan, Nothing> {
    let pieces: Vec<Piece<'_>> = candidates.iter().map(|candidate| candidate.piece).collect();
    let mut at = cut::cut(&pieces, keep_tokens);
    if recovers
        && pieces.get(at).is_some_and(|last| last.tokens >= keep_tokens)
        && at + 1 == pieces.len()
    {
        at += 1;
    }
    let split = cut::turn_start(&pieces, at);
    let history = text(&pieces[..split.unwrap_or(at)]).map(Part::History);
    let turn = split.and_then(|start| text(&pieces[start..at])).map(Part::TurnStart);
    let parts: Vec<Part> = history.into_iter().chain(turn).collect();
    if parts.is_empty() {
        return Err(Nothing::TooSmall);
    }
    let mut files = Files::default();
    let previous = previous.map(|summary| files.take_from(summary).to_owned());
    pieces[..at].iter().for_each(|piece| files.add(piece.message));
    let keep = candidates.get(at).map(|kept| Keep {
        message: kept.entry.clone(),
        first: kept.lead.unwrap_or(kept.entry).clone(),
    });
    Ok(Plan { keep, parts, previous, files })
}

fn text(pieces: &[Piece<'_>]) -> Option<String> {
    let messages = pieces.iter().map(|piece| piece.message);
    let text = serialise::conversation(messages);
    (!text.is_empty()).then_some(text)
}

/// Whether a message carries a usage that tells the size of the context
/// (`host.md` 3.8.3).
pub(crate) fn is_measure(message: &Message) -> bool {
    message.as_assistant().is_some_and(|answer| {
        !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
            && estimate::counted(&answer.usage) > 0
    })
}

#[cfg(test)]
pub(crate) mod tests;
