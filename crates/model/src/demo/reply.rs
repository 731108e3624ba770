//! One answer of the script, and the pace at which it is streamed.

use serde_json::Value;

/// Text first, then calls; never both empty.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Wanted>,
}

/// A tool call the script wants.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Reply {
    /// An answer that ends the run.
    pub(super) fn text(text: impl Into<String>) -> Reply {
        Reply { text: text.into(), calls: Vec::new() }
    }

    /// Adds a paragraph.
    pub(super) fn say(&mut self, paragraph: impl AsRef<str>) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(paragraph.as_ref());
    }

    /// Adds a call.
    pub(super) fn call(&mut self, name: &str, arguments: Value) {
        self.calls.push(Wanted { name: name.to_owned(), arguments });
    }

    /// Size of everything in it.
    pub(super) fn chars(&self) -> usize {
        let call = |call: &Wanted| call.name.len() + call.arguments.to_string().len();
        self.text.len() + self.calls.iter().map(call).sum::<usize>()
    }
}

/// How long a speaker thinks before an answer and between its pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) first_ms: u64,
    pub(super) piece_ms: u64,
}

impl Pace {
    pub(super) const OWNER: Pace = Pace { first_ms: 90, piece_ms: 20 };
}

/// Words of a piece, unless the text would take too many of them.
const PIECE_WORDS: usize = 3;
/// Pieces of a text that people read along with.
pub(super) const TEXT_PIECES_MAX: usize = 20;
/// Pieces of the arguments of a call.
pub(super) const CALL_PIECES_MAX: usize = 4;

/// The text in at most `pieces_max` groups of words, nothing lost.
pub(super) fn pieces(text: &str, pieces_max: usize) -> impl Iterator<Item = &str> {
    let words = text.split_inclusive(char::is_whitespace).count();
    let words_each = PIECE_WORDS.max(words.div_ceil(pieces_max));
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.split_inclusive(char::is_whitespace).take(words_each).map(str::len).sum();
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lose_nothing_and_stay_few() {
        let check = |text: &str, expected: usize| {
            let parts: Vec<_> = pieces(text, TEXT_PIECES_MAX).collect();
            assert_eq!(parts.concat(), text);
            assert_eq!(parts.len(), expected, "{text:.40}");
        };
        check("", 0);
        check("one", 1);
        check("a b c d", 2);
        check("  two\n\nlines \u{3000}ü ", 3);
        check(&"word ".repeat(500), 20);
    }
}
