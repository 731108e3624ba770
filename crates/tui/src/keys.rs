//! Keys as the face understands them, and the decoder of what terminals send.
//!
//! Must never let an answer or a report of the terminal become a key
//! (`terminal.md` TERM-34). Read `keys::decode` for the bytes, `keys::action` for
//! what keys can do, `keys::bindings` for which key does it.

pub(crate) mod action;
mod bindings;
mod decode;
mod name;
mod sequence;

pub use bindings::Bindings;
pub use decode::Decoder;

/// One key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Which key.
    pub code: Code,
    /// With Ctrl.
    pub ctrl: bool,
    /// With Alt.
    pub alt: bool,
    /// With Shift, where the terminal tells it apart.
    pub shift: bool,
}

/// Keys without their modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A character; with Ctrl always in lower case.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tab; with `shift` the way back.
    Tab,
    /// Delete to the left.
    Backspace,
    /// Delete to the right.
    Delete,
    /// Insert.
    Insert,
    /// Cursor keys.
    Left,
    /// To the right.
    Right,
    /// Up.
    Up,
    /// Down.
    Down,
    /// To the start.
    Home,
    /// To the end.
    End,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// A function key.
    F(u8),
}

/// What the decoder makes of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// A text was pasted, line breaks as sent.
    Paste(String),
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// The terminal reports keys in the enhanced way (TERM-17).
    Enhanced,
}

impl Key {
    /// A key without modifiers.
    pub const fn plain(code: Code) -> Key {
        Key { code, ctrl: false, alt: false, shift: false }
    }

    /// A character without modifiers.
    pub const fn char(c: char) -> Key {
        Key::plain(Code::Char(c))
    }

    /// A letter with Ctrl.
    pub const fn ctrl(c: char) -> Key {
        Key { code: Code::Char(c), ctrl: true, alt: false, shift: false }
    }

    /// The same key with Alt.
    pub const fn with_alt(mut self) -> Key {
        self.alt = true;
        self
    }

    /// The same key with Shift.
    pub const fn with_shift(mut self) -> Key {
        self.shift = true;
        self
    }

    /// The character it types, if it does nothing else.
    pub fn typed(self) -> Option<char> {
        if let Code::Char(c) = self.code
            && !self.ctrl
            && !self.alt
        {
            return Some(c);
        }
        None
    }
}
