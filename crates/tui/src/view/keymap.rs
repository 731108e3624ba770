//! What each key means in the editor (section 4 of `terminal.md`).

use crate::keys::{Code, Key};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Type(char),
    Enter,
    Later,
    Newline,
    Esc,
    CtrlC,
    CtrlD,
    ExitNow,
    Suspend,
    Redraw,
    Older,
    Newer,
    Up,
    Down,
    SearchHistory,
    Model(bool),
    ModelPicker,
    Thinking,
    Thoughts,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Backspace,
    Delete,
    KillEnd,
    KillStart,
    KillBlankWord,
    KillWordLeft,
    KillWordRight,
    Yank,
    YankOlder,
    Undo,
    Jump(bool),
    Leader,
    Transcript,
    TakeBack,
    EditOutside,
    PasteOutside,
    Widget,
    Keys,
    Tab,
    Nothing,
}

/// The meaning of a key. Never bound alone: Ctrl+S, Ctrl+Q, Alt+digit,
/// function keys, Ctrl+Shift (TERM-16).
pub(super) fn deed(key: Key) -> Deed {
    match (key.code, key.ctrl, key.alt) {
        (Code::Char(c), false, false) => Deed::Type(c),
        (Code::Char('e'), true, false) if key.shift => Deed::Widget,
        (Code::Char(c), true, false) => ctrl(c),
        (Code::Char(']'), true, true) => Deed::Jump(true),
        (Code::Char(c), false, true) => alt(c),
        (Code::Enter, false, true) => Deed::Later,
        (Code::Enter, _, _) if key.shift => Deed::Newline,
        (Code::Enter, _, _) => Deed::Enter,
        (Code::Esc, _, _) => Deed::Esc,
        (Code::Tab, _, _) if key.shift => Deed::Thinking,
        (Code::Tab, _, _) => Deed::Tab,
        (Code::Backspace, _, true) => Deed::KillWordLeft,
        (Code::Backspace, _, _) => Deed::Backspace,
        (Code::Delete, _, _) => Deed::Delete,
        (Code::Up, _, true) => Deed::TakeBack,
        (Code::Up, _, _) => Deed::Up,
        (Code::Down, _, _) => Deed::Down,
        (Code::Left, false, false) => Deed::Left,
        (Code::Right, false, false) => Deed::Right,
        (Code::Left, _, _) => Deed::WordLeft,
        (Code::Right, _, _) => Deed::WordRight,
        (Code::Home, _, _) => Deed::LineStart,
        (Code::End, _, _) => Deed::LineEnd,
        (Code::F(1), _, _) => Deed::Keys,
        (Code::Char(_) | Code::F(_) | Code::Insert | Code::PageUp | Code::PageDown, _, _) => {
            Deed::Nothing
        }
    }
}

fn ctrl(c: char) -> Deed {
    match c {
        'a' => Deed::LineStart,
        'b' => Deed::Left,
        'c' => Deed::CtrlC,
        'd' => Deed::CtrlD,
        'e' => Deed::LineEnd,
        'f' => Deed::Right,
        'g' => Deed::EditOutside,
        'j' => Deed::Newline,
        'k' => Deed::KillEnd,
        'l' => Deed::Redraw,
        'n' => Deed::Newer,
        'o' => Deed::Transcript,
        'p' => Deed::Older,
        'r' => Deed::SearchHistory,
        't' => Deed::Thoughts,
        'u' => Deed::KillStart,
        'v' => Deed::PasteOutside,
        'w' => Deed::KillBlankWord,
        'x' => Deed::Leader,
        'y' => Deed::Yank,
        'z' => Deed::Suspend,
        '\\' => Deed::ExitNow,
        ']' => Deed::Jump(false),
        '_' | '-' => Deed::Undo,
        'i' => Deed::Tab,
        'm' => Deed::Enter,
        'h' => Deed::Backspace,
        '[' => Deed::Esc,
        _ => Deed::Nothing,
    }
}

fn alt(c: char) -> Deed {
    match c {
        'b' => Deed::WordLeft,
        'f' => Deed::WordRight,
        'd' => Deed::KillWordRight,
        'y' => Deed::YankOlder,
        'm' => Deed::ModelPicker,
        'p' => Deed::Model(false),
        'P' => Deed::Model(true),
        _ => Deed::Nothing,
    }
}
