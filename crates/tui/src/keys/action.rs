//! The actions that keys can be bound to: their ids, where they count, and the
//! keys they have before `keybindings.json` is read (`host.md` 8.7).
//!
//! Ids are those of Pi where Pi has the action; what only we have begins with
//! `crew.`. Where section 4 of `terminal.md` gives a key another meaning than
//! Pi, that section wins. Read `keys::bindings` for what a file makes of it.

/// What a key does, wherever it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    JumpForward,
    JumpBackward,
    PageUp,
    PageDown,
    Backspace,
    Delete,
    KillWordLeft,
    KillBlankWord,
    KillWordRight,
    KillStart,
    KillEnd,
    Yank,
    YankOlder,
    Undo,
    Newline,
    Submit,
    Tab,
    SelectUp,
    SelectDown,
    SelectPageUp,
    SelectPageDown,
    SelectFirst,
    SelectLast,
    Confirm,
    Cancel,
    Interrupt,
    Clear,
    Exit,
    Suspend,
    Thinking,
    Thoughts,
    NextModel,
    PreviousModel,
    ModelPicker,
    Transcript,
    EditOutside,
    Copy,
    Later,
    TakeBack,
    Paste,
    NewSession,
    Tree,
    Fork,
    Resume,
    NamedOnly,
    Rename,
    DeleteSession,
    DeleteSessionUnsearched,
    SaveModel,
    Fold,
    Unfold,
    Label,
    LabelTimes,
    FilterDefault,
    FilterNoTools,
    FilterUser,
    FilterLabelled,
    FilterAll,
    FilterNext,
    FilterPrevious,
    Redraw,
    HistoryOlder,
    HistoryNewer,
    HistorySearch,
    Board,
    Answer,
    Stop,
    Widget,
    Help,
    BoardAnswer,
    BoardSteer,
    BoardStop,
    BoardClose,
    BoardStopAll,
    BoardFilter,
    BoardFind,
    BoardCopy,
    BoardKeys,
    BoardLeave,
    ReadOn,
    ReadFirst,
    ReadLast,
    ReadFind,
    ReadNextHit,
    ReadHitBefore,
    ReadExpand,
    ReadOtherBefore,
    ReadOtherNext,
    ReadSteer,
    ReadAnswer,
    ReadStop,
    ReadCopy,
    ReadLeave,
}

/// Where keys are looked up; within one of them a key means one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Context {
    /// The main screen.
    Editor,
    /// The main screen with nothing typed; wins over the editor.
    Empty,
    /// Questions, menus, the list of keys.
    List,
    /// The crew board.
    Board,
    /// Transcripts.
    Reader,
    /// Lists of models, sessions and messages.
    Picker,
    /// The tree.
    Tree,
}

/// One line of the table.
pub(crate) struct Known {
    pub(crate) action: Action,
    /// The id in the file.
    pub(crate) id: &'static str,
    /// The id of old files of Pi, which had no parts; empty without one.
    pub(crate) old: &'static str,
    pub(crate) contexts: &'static [Context],
    /// Keys as the file writes them, with blanks between.
    pub(crate) keys: &'static str,
}

const EDITOR: &[Context] = &[Context::Editor];
const EMPTY: &[Context] = &[Context::Empty];
const LISTS: &[Context] =
    &[Context::List, Context::Board, Context::Reader, Context::Picker, Context::Tree];
const BOARD: &[Context] = &[Context::Board];
const READER: &[Context] = &[Context::Reader];
const PICKER: &[Context] = &[Context::Picker];
const FOLDS: &[Context] = &[Context::Picker, Context::Tree];
const TREE: &[Context] = &[Context::Tree];
const TABS: &[Context] = &[Context::Editor, Context::Picker];

const fn known(
    action: Action,
    id: &'static str,
    old: &'static str,
    contexts: &'static [Context],
    keys: &'static str,
) -> Known {
    Known { action, id, old, contexts, keys }
}

/// All actions.
#[rustfmt::skip]
pub(crate) const ACTIONS: &[Known] = &[
    known(Action::Up, "tui.editor.cursorUp", "cursorUp", EDITOR, "up"),
    known(Action::Down, "tui.editor.cursorDown", "cursorDown", EDITOR, "down"),
    known(Action::Left, "tui.editor.cursorLeft", "cursorLeft", EDITOR, "left ctrl+b"),
    known(Action::Right, "tui.editor.cursorRight", "cursorRight", EDITOR, "right ctrl+f"),
    known(Action::WordLeft, "tui.editor.cursorWordLeft", "cursorWordLeft", EDITOR, "alt+left ctrl+left alt+b"),
    known(Action::WordRight, "tui.editor.cursorWordRight", "cursorWordRight", EDITOR, "alt+right ctrl+right alt+f"),
    known(Action::LineStart, "tui.editor.cursorLineStart", "cursorLineStart", EDITOR, "home ctrl+a"),
    known(Action::LineEnd, "tui.editor.cursorLineEnd", "cursorLineEnd", EDITOR, "end ctrl+e"),
    known(Action::JumpForward, "tui.editor.jumpForward", "jumpForward", EDITOR, "ctrl+]"),
    known(Action::JumpBackward, "tui.editor.jumpBackward", "jumpBackward", EDITOR, "ctrl+alt+]"),
    known(Action::PageUp, "tui.editor.pageUp", "pageUp", EDITOR, "pageUp"),
    known(Action::PageDown, "tui.editor.pageDown", "pageDown", EDITOR, "pageDown"),
    known(Action::Backspace, "tui.editor.deleteCharBackward", "deleteCharBackward", EDITOR, "backspace"),
    known(Action::Delete, "tui.editor.deleteCharForward", "deleteCharForward", EDITOR, "delete ctrl+d"),
    known(Action::KillBlankWord, "tui.editor.deleteWordBackward", "deleteWordBackward", EDITOR, "ctrl+w"),
    known(Action::KillWordLeft, "crew.editor.deleteShortWordBackward", "", EDITOR, "alt+backspace"),
    known(Action::KillWordRight, "tui.editor.deleteWordForward", "deleteWordForward", EDITOR, "alt+d alt+delete"),
    known(Action::KillStart, "tui.editor.deleteToLineStart", "deleteToLineStart", EDITOR, "ctrl+u"),
    known(Action::KillEnd, "tui.editor.deleteToLineEnd", "deleteToLineEnd", EDITOR, "ctrl+k"),
    known(Action::Yank, "tui.editor.yank", "yank", EDITOR, "ctrl+y"),
    known(Action::YankOlder, "tui.editor.yankPop", "yankPop", EDITOR, "alt+y"),
    known(Action::Undo, "tui.editor.undo", "undo", EDITOR, "ctrl+-"),
    known(Action::Newline, "tui.input.newLine", "newLine", EDITOR, "shift+enter ctrl+j"),
    known(Action::Submit, "tui.input.submit", "submit", EDITOR, "enter"),
    known(Action::Tab, "tui.input.tab", "tab", TABS, "tab"),
    known(Action::SelectUp, "tui.select.up", "selectUp", LISTS, "up ctrl+p"),
    known(Action::SelectDown, "tui.select.down", "selectDown", LISTS, "down ctrl+n"),
    known(Action::SelectPageUp, "tui.select.pageUp", "selectPageUp", LISTS, "pageUp"),
    known(Action::SelectPageDown, "tui.select.pageDown", "selectPageDown", LISTS, "pageDown"),
    known(Action::SelectFirst, "crew.select.first", "", LISTS, "home"),
    known(Action::SelectLast, "crew.select.last", "", LISTS, "end"),
    known(Action::Confirm, "tui.select.confirm", "selectConfirm", LISTS, "enter"),
    known(Action::Cancel, "tui.select.cancel", "selectCancel", LISTS, "escape ctrl+c"),
    known(Action::Interrupt, "app.interrupt", "interrupt", EDITOR, "escape"),
    known(Action::Clear, "app.clear", "clear", EDITOR, "ctrl+c"),
    known(Action::Exit, "app.exit", "exit", EMPTY, "ctrl+d"),
    known(Action::Suspend, "app.suspend", "suspend", EDITOR, "ctrl+z"),
    known(Action::Thinking, "app.thinking.cycle", "cycleThinkingLevel", EDITOR, "shift+tab"),
    known(Action::Thoughts, "app.thinking.toggle", "toggleThinking", EDITOR, "ctrl+t"),
    known(Action::NextModel, "app.model.cycleForward", "cycleModelForward", EDITOR, "alt+p"),
    known(Action::PreviousModel, "app.model.cycleBackward", "cycleModelBackward", EDITOR, "alt+shift+p"),
    known(Action::ModelPicker, "app.model.select", "selectModel", EDITOR, "alt+m"),
    known(Action::Transcript, "app.tools.expand", "expandTools", EDITOR, "ctrl+o"),
    known(Action::EditOutside, "app.editor.external", "externalEditor", EDITOR, "ctrl+g"),
    known(Action::Copy, "app.message.copy", "", EDITOR, ""),
    known(Action::Later, "app.message.followUp", "followUp", EDITOR, "alt+enter"),
    known(Action::TakeBack, "app.message.dequeue", "dequeue", EDITOR, "alt+up"),
    known(Action::Paste, "app.clipboard.pasteImage", "pasteImage", EDITOR, "ctrl+v"),
    known(Action::NewSession, "app.session.new", "newSession", EDITOR, ""),
    known(Action::Tree, "app.session.tree", "tree", EDITOR, ""),
    known(Action::Fork, "app.session.fork", "fork", EDITOR, ""),
    known(Action::Resume, "app.session.resume", "resume", EDITOR, ""),
    known(Action::NamedOnly, "app.session.toggleNamedFilter", "toggleSessionNamedFilter", PICKER, ""),
    known(Action::Rename, "app.session.rename", "renameSession", PICKER, "ctrl+r"),
    known(Action::DeleteSession, "app.session.delete", "deleteSession", PICKER, "ctrl+d"),
    known(Action::DeleteSessionUnsearched, "app.session.deleteNoninvasive", "deleteSessionNoninvasive", PICKER, "ctrl+backspace"),
    known(Action::SaveModel, "app.models.save", "", PICKER, "ctrl+s"),
    known(Action::Fold, "app.tree.foldOrUp", "", FOLDS, "left ctrl+left alt+left"),
    known(Action::Unfold, "app.tree.unfoldOrDown", "", FOLDS, "right ctrl+right alt+right"),
    known(Action::Label, "app.tree.editLabel", "", TREE, "shift+l"),
    known(Action::LabelTimes, "app.tree.toggleLabelTimestamp", "", TREE, "ctrl+t"),
    known(Action::FilterDefault, "app.tree.filter.default", "", TREE, "ctrl+d"),
    known(Action::FilterNoTools, "app.tree.filter.noTools", "", TREE, ""),
    known(Action::FilterUser, "app.tree.filter.userOnly", "", TREE, "ctrl+u"),
    known(Action::FilterLabelled, "app.tree.filter.labeledOnly", "", TREE, "ctrl+l"),
    known(Action::FilterAll, "app.tree.filter.all", "", TREE, "ctrl+a"),
    known(Action::FilterNext, "app.tree.filter.cycleForward", "", TREE, "ctrl+o"),
    known(Action::FilterPrevious, "app.tree.filter.cycleBackward", "", TREE, "ctrl+shift+o"),
    known(Action::Redraw, "crew.redraw", "", EDITOR, "ctrl+l"),
    known(Action::HistoryOlder, "crew.history.older", "", EDITOR, "ctrl+p"),
    known(Action::HistoryNewer, "crew.history.newer", "", EDITOR, "ctrl+n"),
    known(Action::HistorySearch, "crew.history.search", "", EDITOR, "ctrl+r"),
    known(Action::Board, "crew.board", "", EDITOR, ""),
    known(Action::Answer, "crew.answer", "", EDITOR, ""),
    known(Action::Stop, "crew.stop", "", EDITOR, ""),
    known(Action::Widget, "crew.widget", "", EDITOR, "ctrl+shift+e"),
    known(Action::Help, "crew.keys", "", EDITOR, "f1"),
    known(Action::BoardAnswer, "crew.board.answer", "", BOARD, "a"),
    known(Action::BoardSteer, "crew.board.steer", "", BOARD, "s"),
    known(Action::BoardStop, "crew.board.stop", "", BOARD, "x"),
    known(Action::BoardClose, "crew.board.close", "", BOARD, "c"),
    known(Action::BoardStopAll, "crew.board.stopAll", "", BOARD, "shift+x"),
    known(Action::BoardFilter, "crew.board.filter", "", BOARD, "f"),
    known(Action::BoardFind, "crew.board.find", "", BOARD, "/"),
    known(Action::BoardCopy, "crew.board.copy", "", BOARD, "y"),
    known(Action::BoardKeys, "crew.board.keys", "", BOARD, "? f1"),
    known(Action::BoardLeave, "crew.board.leave", "", BOARD, "left"),
    known(Action::ReadOn, "crew.transcript.pageDown", "", READER, "space"),
    known(Action::ReadFirst, "crew.transcript.first", "", READER, "g"),
    known(Action::ReadLast, "crew.transcript.last", "", READER, "shift+g"),
    known(Action::ReadFind, "crew.transcript.find", "", READER, "/"),
    known(Action::ReadNextHit, "crew.transcript.findNext", "", READER, "n"),
    known(Action::ReadHitBefore, "crew.transcript.findPrevious", "", READER, "shift+n"),
    known(Action::ReadExpand, "crew.transcript.expand", "", READER, "e"),
    known(Action::ReadOtherBefore, "crew.transcript.previous", "", READER, "left"),
    known(Action::ReadOtherNext, "crew.transcript.next", "", READER, "right"),
    known(Action::ReadSteer, "crew.transcript.steer", "", READER, "i"),
    known(Action::ReadAnswer, "crew.transcript.answer", "", READER, "a"),
    known(Action::ReadStop, "crew.transcript.stop", "", READER, "x"),
    known(Action::ReadCopy, "crew.transcript.copy", "", READER, "y"),
    known(Action::ReadLeave, "crew.transcript.leave", "", READER, "q"),
];

/// Keys with `crew.keys: "pi"` (TERM-19), for the actions it touches.
pub(crate) const OF_PI: [(Action, &str); 5] = [
    (Action::ModelPicker, "ctrl+l alt+m"),
    (Action::NextModel, "ctrl+p alt+p"),
    (Action::PreviousModel, "ctrl+shift+p alt+shift+p"),
    (Action::Redraw, ""),
    (Action::HistoryOlder, ""),
];
