//! The colours of code (`terminal.md` TERM-53, issue text "code with
//! highlighting").
//!
//! Owns what is asked for a line of code, and the [`Highlighter`] that answers.
//! The highlighter takes milliseconds and is therefore never called by the
//! face: whoever runs the face keeps it on a thread of its own. Must never
//! change a text: a line has the same cells with and without colours. Read
//! `highlight::grammar` for the work, `transcript::pending` for who asks.

mod grammar;

use crate::theme::Role;

pub use grammar::Highlighter;

/// A line of code whose colours are wanted. Lines of one fence are asked for
/// in order, from 0, without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Names the fence; never used twice.
    pub fence: u64,
    /// What stands behind the opening sign, as the model wrote it.
    pub language: String,
    /// Number of the line in its fence.
    pub line: usize,
    /// The line as its cells show it, without a line feed.
    pub text: String,
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coloured {
    /// The fence of the question.
    pub fence: u64,
    /// The line of the question.
    pub line: usize,
    /// Bytes of the text that was asked about.
    pub bytes: usize,
    /// The colours, or nothing when the fence stays plain from this line on.
    pub spans: Option<Vec<Span>>,
}

/// A part of a line. Parts follow each other; what is behind the last one is
/// plain code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Byte behind its last one, counted from the start of the line.
    pub end: usize,
    /// What it is.
    pub role: Role,
}
