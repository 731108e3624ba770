//! Where the context is cut (`host.md` 3.8.6 to 3.8.8).

use crew_base::message::Message;

/// One projected message after the previous compaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The message.
    pub(crate) message: &'a Message,
    /// Its estimated size.
    pub(crate) tokens: u64,
}

/// Index of the first piece that stays (3.8.6).
///
/// Walks back until `keep_tokens` are gathered, then takes the first valid
/// place from there on, else the last valid one before, else the first piece.
/// A budget that is never reached gives the first valid place: nothing is to be
/// summarised.
pub(crate) fn cut(pieces: &[Piece<'_>], keep_tokens: u64) -> usize {
    let mut gathered = 0u64;
    let point = pieces.iter().rposition(|piece| {
        gathered = gathered.saturating_add(piece.tokens);
        gathered >= keep_tokens
    });
    let valid = |piece: &Piece<'_>| may_start(piece.message);
    let Some(point) = point else {
        return pieces.iter().position(valid).unwrap_or(0);
    };
    let later = pieces[point..].iter().position(valid).map(|at| point + at);
    later.or_else(|| pieces[..point].iter().rposition(valid)).unwrap_or(0)
}

/// Where the turn that the cut splits began, if it splits one (3.8.8).
pub(crate) fn turn_start(pieces: &[Piece<'_>], cut: usize) -> Option<usize> {
    if pieces.get(cut).is_none_or(|piece| is_user_like(piece.message)) {
        return None;
    }
    pieces[..cut].iter().rposition(|piece| is_user_like(piece.message))
}

/// Whether the kept part may begin with it. A result never stands without its
/// call.
fn may_start(message: &Message) -> bool {
    match message {
        Message::Assistant(_) => true,
        Message::System(_) | Message::ToolResult(_) => false,
        Message::User(_)
        | Message::BashExecution(_)
        | Message::Custom(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_) => true,
    }
}

fn is_user_like(message: &Message) -> bool {
    match message {
        Message::User(_)
        | Message::BashExecution(_)
        | Message::Custom(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_) => true,
        Message::Assistant(_) | Message::System(_) | Message::ToolResult(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{answer, custom, result, system, user};

    /// One letter for each piece, ten tokens each: `s`ystem, `u`ser,
    /// `a`ssistant, tool `r`esult, `c`ustom.
    fn pieces(letters: &str) -> Vec<Message> {
        let text = "x".repeat(40);
        let message = |letter| match letter {
            's' => system(&text),
            'u' => user(&text),
            'a' => Message::Assistant(answer(&text, 0)),
            'r' => result("c", &text),
            'c' => custom("crew-result", &text),
            other => panic!("no piece is called {other}"),
        };
        letters.chars().map(message).collect()
    }

    fn view(messages: &[Message]) -> Vec<Piece<'_>> {
        messages.iter().map(|message| Piece { message, tokens: 10 }).collect()
    }

    #[test]
    fn the_cut_is_the_first_valid_place_from_the_point_on() {
        let check = |letters: &str, keep: u64, expected: usize| {
            let messages = pieces(letters);
            assert_eq!(cut(&view(&messages), keep), expected, "{letters} {keep}");
        };
        check("suauaua", 20, 5);
        check("suauaua", 11, 5);
        check("suauaua", 10, 6);
        check("suauaua", 0, 6);
        check("suarra", 30, 5);
        // host.md 11.56: trailing results alone exceed what is kept.
        check("suarr", 10, 2);
        check("suarrr", 30, 2);
        check("sucua", 30, 2);
        // Never reached: the first valid one.
        check("suaua", 1000, 1);
        check("suaua", 50, 1);
        // No valid one at all.
        check("srr", 10, 0);
        check("", 10, 0);
    }

    #[test]
    fn a_cut_inside_a_turn_names_where_the_turn_began() {
        let check = |letters: &str, at: usize, expected: Option<usize>| {
            let messages = pieces(letters);
            assert_eq!(turn_start(&view(&messages), at), expected, "{letters} {at}");
        };
        check("suaua", 3, None);
        check("suaua", 4, Some(3));
        check("suarar", 4, Some(1));
        check("scarar", 4, Some(1));
        // The turn began before the previous compaction.
        check("arara", 2, None);
        check("suaua", 5, None);
    }
}
