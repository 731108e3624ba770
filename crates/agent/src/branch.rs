//! What is said of a branch that is left for another place in the tree
//! (`host.md` 2.8.3, 3.8.12, 3.8.13).
//!
//! Owns which messages are summarised and which files they touched. Must never
//! change a record: the transitions are in `step::moving`.

use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_base::message::{Message, SharedMessage};
use crew_base::model::ThinkingLevel;

use crate::compaction::summary::{Files, Part};
use crate::compaction::{estimate, serialise};

/// Tokens of the window of a model that does not say.
const WINDOW_UNKNOWN: u64 = 128_000;

/// A summary of the branch that is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchWish {
    /// What it is to attend to.
    pub instructions: Option<String>,
}

/// What the shell read for a move in the tree.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Where the session will stand; `None` is the place before everything.
    pub leaf: Option<EntryId>,
    /// Text for the editor, of a message that is to be written anew.
    pub draft: Option<String>,
    /// The projected context there (`host.md` 2.6).
    pub context: Vec<(EntryId, SharedMessage)>,
    /// The thinking level that the branch implies (`host.md` 2.6.5).
    pub thinking: ThinkingLevel,
    /// What is left, from the common ancestor on, oldest first; edits of the
    /// context are applied.
    pub left: Vec<Left>,
}

/// One message of a branch that is left.
#[derive(Clone, Debug)]
pub struct Left {
    /// The message.
    pub message: SharedMessage,
    /// For a summary: the `details` of its entry, unless a hook made it.
    pub details: Option<Raw>,
}

impl Left {
    fn is_summary(&self) -> bool {
        matches!(self.message.as_ref(), Message::BranchSummary(_) | Message::CompactionSummary(_))
    }
}

/// Tokens that a branch may take in its summary request.
pub(crate) fn budget(context_window: u64, reserve_tokens: u64) -> u64 {
    let window = if context_window == 0 { WINDOW_UNKNOWN } else { context_window };
    window.saturating_sub(reserve_tokens)
}

/// Not even the newest message of the branch fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// What is summarised, with the files of all that is left; `None` when nothing
/// was said.
pub(crate) fn plan(left: &[Left], budget: u64) -> Result<Option<(Part, Files)>, TooLarge> {
    let mut files = Files::default();
    for piece in left {
        match (&piece.details, piece.is_summary()) {
            (Some(details), true) => files.add_details(details),
            (None, true) => {}
            (_, false) => files.add(&piece.message),
        }
    }
    let from = first_that_fits(left, budget);
    let messages = left[from..].iter().map(|piece| piece.message.as_ref());
    let text = serialise::conversation(messages.filter(|message| counts(message)));
    if text.is_empty() && left[..from].iter().any(|piece| counts(&piece.message)) {
        return Err(TooLarge);
    }
    Ok((!text.is_empty()).then_some((Part::Branch(text), files)))
}

/// Newest first until the budget is full; a summary that does not fit is still
/// taken below nine tenths.
fn first_that_fits(left: &[Left], budget: u64) -> usize {
    let mut taken = 0u64;
    for (at, piece) in left.iter().enumerate().rev() {
        if !counts(&piece.message) {
            continue;
        }
        let tokens = estimate::tokens(&piece.message);
        if taken.saturating_add(tokens) > budget {
            let has_room = taken < budget / 10 * 9;
            return if piece.is_summary() && has_room { at } else { at + 1 };
        }
        taken += tokens;
    }
    0
}

fn counts(message: &Message) -> bool {
    match message {
        Message::ToolResult(_) | Message::System(_) => false,
        Message::User(_)
        | Message::Assistant(_)
        | Message::BashExecution(_)
        | Message::Custom(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{answer, call, result, user};
    use crew_base::message::{BranchSummaryMessage, CompactionSummaryMessage};
    use crew_base::time::Time;
    use std::sync::Arc;

    fn said(message: Message) -> Left {
        Left { message: Arc::new(message), details: None }
    }

    fn summary(text: &str, details: Option<&str>) -> Left {
        let message = Message::BranchSummary(BranchSummaryMessage {
            summary: text.into(),
            from_id: "x".into(),
            timestamp: Time(0),
        });
        Left { message: Arc::new(message), details: details.and_then(Raw::parse) }
    }

    fn text(left: &[Left], budget: u64) -> Option<String> {
        plan(left, budget).expect("it fits").map(|(part, _)| match part {
            Part::Branch(text) | Part::History(text) | Part::TurnStart(text) => text,
        })
    }

    // host.md 3.8.12. A text of 40 units is ten tokens.
    #[test]
    fn the_newest_are_taken_until_the_budget_is_full() {
        let old = |c: char| said(user(&c.to_string().repeat(40)));
        let left = [old('a'), said(result("c", &"r".repeat(4_000))), old('b'), old('c')];
        let check = |budget: u64, letters: &str| {
            let got = text(&left, budget).unwrap_or_default();
            let has = |c: &char| got.contains(&c.to_string().repeat(40));
            assert_eq!("abc".chars().filter(has).collect::<String>(), letters, "{budget}");
            assert!(!got.contains("rrr"), "tool results are skipped");
        };
        check(1_000, "abc");
        check(30, "abc");
        check(29, "bc");
        check(20, "bc");
        check(10, "c");
        assert_eq!(plan(&left, 9).err(), Some(TooLarge));
        assert_eq!(text(&[], 0), None);
        assert_eq!(text(&[said(result("c", "only a result"))], 1_000), None);
    }

    #[test]
    fn a_summary_that_does_not_fit_is_taken_below_nine_tenths() {
        let check = |after: usize, expected: bool| {
            let left = [summary(&"s".repeat(400), None), said(user(&"u".repeat(after)))];
            let got = text(&left, 100).unwrap();
            assert_eq!(got.contains("sss"), expected, "{after}");
        };
        // 100 tokens of summary, budget 100.
        check(4, true);
        check(89 * 4, true);
        check(90 * 4, false);
    }

    // host.md 3.8.13: also of what did not fit.
    #[test]
    fn files_come_from_calls_and_from_the_details_of_summaries() {
        let mut calling = answer("", 0);
        calling.content =
            vec![call("c1", "read", r#"{"path":"a"}"#), call("c2", "edit", r#"{"path":"b"}"#)];
        let hooked = summary("x\n\n<read-files>\nhook\n</read-files>", None);
        let compacted = Left {
            message: Arc::new(Message::CompactionSummary(CompactionSummaryMessage {
                summary: "y".into(),
                tokens_before: 1,
                timestamp: Time(0),
            })),
            details: Raw::parse(r#"{"readFiles":["b","d"],"modifiedFiles":["e"]}"#),
        };
        let nested = summary("z", Some(r#"{"readFiles":["f\ng"],"modifiedFiles":["a"]}"#));
        let left = [hooked, compacted, nested, said(Message::Assistant(calling)), said(user("u"))];
        for budget in [100_000, 1] {
            let (_, files) = plan(&left, budget).unwrap().unwrap();
            let expected = r#"{"readFiles":["d"],"modifiedFiles":["a","b","e"]}"#;
            assert_eq!(files.details().text(), expected);
        }
    }

    #[test]
    fn a_model_that_does_not_say_has_a_usual_window() {
        assert_eq!(budget(0, 16_384), 111_616);
        assert_eq!(budget(10_000, 16_384), 0);
        assert_eq!(budget(200_000, 16_384), 183_616);
    }
}
