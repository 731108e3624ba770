//! Keys and pastes on the main screen.

#![expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]

use crew_base::time::Time;
use crew_engine::api::Command;

use super::full::Full;
use super::full::picker::Kind;
use super::keymap::Deed;
use super::{Receiver, View};
use crate::editor::Editor;
use crate::keys::action::Action;
use crate::keys::{Code, Input, Key};
use crate::request::{DoubleEscape, Request};
use crate::theme::MUTED;

/// Two presses of a key within this time are one gesture.
const DOUBLE_MS: u64 = 500;

/// Takes an input of the terminal; a command it leads to is returned and is to
/// be sent at once, then [`super::sent`] told.
pub fn key(view: &mut View, now: Time, input: Input) -> Option<Command> {
    view.now = now.max(view.now);
    let command = match input {
        Input::Key(key) => view.key(key),
        Input::Paste(text) => {
            view.pasted(&text);
            None
        }
        Input::Focus(focused) => {
            view.focused = Some(focused);
            return None;
        }
        Input::Enhanced => {
            view.enhanced = true;
            return None;
        }
    };
    view.last_key = view.now;
    view.settle_level();
    command
}

impl View {
    /// Takes what was typed before the first frame: into the editor, never
    /// sent (TERM-18, case 21).
    pub fn type_ahead(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            match input {
                Input::Key(key) => match (key.typed(), key.code) {
                    (Some(c), _) => self.editor.insert(c),
                    (None, Code::Enter) => self.editor.newline(),
                    (None, Code::Char('j')) if key.ctrl => self.editor.newline(),
                    (None, Code::Backspace) => self.editor.backspace(),
                    (None, _) => {}
                },
                Input::Paste(text) => self.editor.paste(&text),
                Input::Focus(focused) => self.focused = Some(focused),
                Input::Enhanced => self.enhanced = true,
            }
        }
    }

    fn pasted(&mut self, text: &str) {
        if self.full.is_some() || self.question.is_some() {
            return;
        }
        self.editor.paste(text);
        self.close_menu();
    }

    fn key(&mut self, key: Key) -> Option<Command> {
        // These two work everywhere (case 39).
        let everywhere = match self.deed(key) {
            Deed::ExitNow => Some(Request::ExitNow),
            Deed::Do(Action::Suspend) => Some(Request::Suspend),
            Deed::Do(_) | Deed::Type(_) | Deed::Leader | Deed::Nothing => None,
        };
        if let Some(request) = everywhere {
            self.ask(request);
            return None;
        }
        if self.full.is_none()
            && self.question.is_some()
            && let Some(command) = self.question_key(key)
        {
            return command;
        }
        if self.full.is_some() {
            return self.full_key(key);
        }
        if self.leader.take().is_some() {
            return self.leader_key(key);
        }
        if let Some(backwards) = self.jump.take() {
            if let Some(c) = key.typed() {
                self.editor.jump_to(c, backwards);
            }
            return None;
        }
        if self.history_search.is_some() && self.search_key(key) {
            return None;
        }
        if self.menu.is_some()
            && let Some(command) = self.menu_key(key)
        {
            return command;
        }
        let deed = self.deed(key);
        let keeps_clear = self.last_ctrl_c.take();
        let keeps_esc = self.last_esc.take();
        match deed {
            Deed::Do(Action::Clear) => self.clear(keeps_clear),
            Deed::Do(Action::Interrupt) => self.escape(keeps_esc),
            Deed::Do(action) => self.main_key(action),
            Deed::Leader => {
                self.leader = Some(self.now);
                None
            }
            Deed::Type(c) => {
                self.edited(|editor, _| editor.insert(c), true);
                None
            }
            Deed::ExitNow | Deed::Nothing => None,
        }
    }

    fn main_key(&mut self, action: Action) -> Option<Command> {
        match action {
            Action::Submit => {
                if self.editor.take_backslash() {
                    self.editor.newline();
                    return None;
                }
                return self.submit(false);
            }
            Action::Later => return self.submit(true),
            Action::Exit => return self.want_quit(),
            Action::Thinking => return self.next_thinking(),
            Action::Thoughts => {
                self.setup.thinking = !self.setup.thinking;
                let text =
                    if self.setup.thinking { "thoughts are shown" } else { "thoughts are folded" };
                self.live.print(text, MUTED);
            }
            Action::Redraw => self.ask(Request::Redraw),
            Action::NextModel => self.ask(Request::CycleModel { backwards: false }),
            Action::PreviousModel => self.ask(Request::CycleModel { backwards: true }),
            Action::ModelPicker => self.open_picker(Kind::Models { all: false }),
            Action::JumpForward => self.jump = Some(false),
            Action::JumpBackward => self.jump = Some(true),
            Action::Transcript => self.open_transcript(),
            Action::TakeBack => self.take_back(),
            Action::EditOutside => self.edit_outside(),
            Action::Paste => self.ask(Request::PasteOutside),
            Action::Widget => self.widget_long = !self.widget_long,
            Action::Help => self.show(Full::Keys { top: 0 }),
            Action::HistorySearch => self.history_search = Some(String::new()),
            Action::Tab => self.complete_path(),
            Action::Copy => self.copy_reply(),
            Action::NewSession => self.ask(Request::New),
            Action::Tree => self.open_tree(),
            Action::Fork => self.open_picker(Kind::Forks),
            Action::Resume => self.open_picker(Kind::Sessions { all: false, named: false }),
            Action::Board => self.open_board(),
            Action::Answer => self.answer_oldest(),
            Action::Stop => self.ask_stop(),
            Action::Left if self.editor.is_empty() => {
                // A Left of a held key is only a cursor key (case 19).
                if self.now.since(self.last_key) >= DOUBLE_MS {
                    self.open_board();
                }
            }
            action => self.edit(action),
        }
        None
    }

    fn edit(&mut self, action: Action) {
        let page = (self.size.rows / 3).max(1);
        let change: fn(&mut Editor, usize) = match action {
            Action::Newline => |editor, _| editor.newline(),
            Action::Delete => |editor, _| editor.delete(),
            Action::Backspace => |editor, _| editor.backspace(),
            Action::Left => |editor, _| editor.left(),
            Action::Right => |editor, _| editor.right(),
            Action::WordLeft => |editor, _| editor.word_left(),
            Action::WordRight => |editor, _| editor.word_right(),
            Action::LineStart => |editor, _| editor.line_start(),
            Action::LineEnd => |editor, _| editor.line_end(),
            Action::KillEnd => |editor, _| editor.kill_to_end(),
            Action::KillStart => |editor, _| editor.kill_to_start(),
            Action::KillBlankWord => |editor, _| editor.kill_blank_word(),
            Action::KillWordLeft => |editor, _| editor.kill_word_left(),
            Action::KillWordRight => |editor, _| editor.kill_word_right(),
            Action::Yank => |editor, _| editor.yank(),
            Action::YankOlder => |editor, _| editor.yank_older(),
            Action::Undo => |editor, _| editor.undo(),
            Action::HistoryOlder => |editor, _| {
                editor.older();
            },
            Action::HistoryNewer => |editor, _| {
                editor.newer();
            },
            Action::Up => |editor, columns| {
                let is_history =
                    editor.is_at_history_edge() && editor.layout(columns).cursor.0 == 0;
                if is_history {
                    editor.older();
                } else {
                    editor.up(columns);
                }
            },
            Action::Down => |editor, columns| {
                if !editor.down(columns) {
                    editor.newer();
                }
            },
            Action::PageUp | Action::PageDown => {
                let is_up = action == Action::PageUp;
                let scroll = move |editor: &mut Editor, columns| {
                    for _ in 0..page {
                        if is_up {
                            editor.up(columns);
                        } else {
                            editor.down(columns);
                        }
                    }
                };
                return self.edited(scroll, false);
            }
            _ => return,
        };
        self.edited(change, false);
    }

    /// Changes the draft; the menu follows what was typed.
    fn edited(&mut self, change: impl FnOnce(&mut Editor, usize), is_typed: bool) {
        let before = self.editor.buffer().len();
        change(&mut self.editor, self.size.columns);
        let is_motion = before == self.editor.buffer().len() && !is_typed;
        if is_motion || self.receiver != Receiver::Owner {
            self.close_menu();
        } else {
            self.complete();
        }
    }

    /// Keys while a menu is open; `None` means that the key is not the menu's.
    fn menu_key(&mut self, key: Key) -> Option<Option<Command>> {
        let rows = self.setup.menu_rows;
        let deed = self.deed(key);
        let listed = self.listed(key);
        let menu = self.menu.as_mut()?;
        match (listed, deed) {
            // Clearing the draft is more than closing what hangs on it.
            (_, Deed::Do(Action::Clear)) => return None,
            (_, Deed::Do(Action::Tab)) => {
                self.accept();
            }
            (Some(Action::SelectUp), _) => menu.step(-1, rows),
            (Some(Action::SelectDown), _) => menu.step(1, rows),
            (Some(Action::Cancel), _) | (None, Deed::Do(Action::Interrupt)) => self.close_menu(),
            (Some(Action::Confirm), _) if menu.is_quiet && !menu.is_chosen => {
                self.close_menu();
                return None;
            }
            (Some(Action::Confirm), _) => {
                // A command that was chosen whole is run.
                if self.accept() && !self.editor.buffer().ends_with(' ') {
                    return Some(self.submit(false));
                }
            }
            _ => return None,
        }
        Some(None)
    }

    /// Keys while the history is searched; `false` means that the search is
    /// over and the key means what it always does.
    fn search_key(&mut self, key: Key) -> bool {
        let Some(mut text) = self.history_search.take() else { return false };
        let deed = self.deed(key);
        match key.code {
            Code::Char(c) if !key.ctrl && !key.alt => text.push(c),
            Code::Backspace => {
                text.pop();
            }
            _ if deed == Deed::Do(Action::HistorySearch) => {
                let current = self.editor.text();
                let found = {
                    let mut hits = self.editor.history.matching(&text);
                    hits.by_ref().find(|hit| *hit == current);
                    hits.next().map(str::to_owned)
                };
                if let Some(found) = found {
                    self.editor.set(&found);
                }
                self.history_search = Some(text);
                return true;
            }
            Code::Esc | Code::Enter => return true,
            Code::Char('c' | 'g') if key.ctrl => {
                self.editor.undo();
                return true;
            }
            _ => return false,
        }
        let found = self.editor.history.matching(&text).next().map(str::to_owned);
        if let Some(found) = found.filter(|_| !text.is_empty()) {
            self.editor.set(&found);
        }
        self.history_search = Some(text);
        true
    }

    /// Clears the editor; on an empty one the second press quits.
    fn clear(&mut self, last: Option<Time>) -> Option<Command> {
        if !self.editor.is_empty() {
            let text = self.editor.take();
            self.editor.history.add(&text);
            self.close_menu();
            return None;
        }
        if last.is_some_and(|last| self.now.since(last) <= DOUBLE_MS) {
            return self.want_quit();
        }
        self.last_ctrl_c = Some(self.now);
        None
    }

    /// The nearest thing that Esc ends.
    fn escape(&mut self, last: Option<Time>) -> Option<Command> {
        if self.receiver != Receiver::Owner {
            self.receive_as_owner();
            return None;
        }
        if self.is_busy() {
            return self.stop_owner();
        }
        if self.shell.is_some() {
            self.ask(Request::StopShell);
            return None;
        }
        if self.editor.buffer().starts_with('!') {
            self.editor.set("");
            return None;
        }
        if !self.editor.is_empty() {
            return None;
        }
        if last.is_some_and(|last| self.now.since(last) <= DOUBLE_MS) {
            match self.setup.double_escape {
                DoubleEscape::Tree => self.open_tree(),
                DoubleEscape::Fork => self.open_picker(Kind::Forks),
                DoubleEscape::Nothing => {}
            }
            return None;
        }
        self.last_esc = Some(self.now);
        None
    }

    /// Stops the owner only; queued texts come back into the editor (case 14).
    fn stop_owner(&mut self) -> Option<Command> {
        let session = self.session.clone()?;
        let waits = [&self.queue.steering, &self.queue.follow_up].iter().any(|all| !all.is_empty());
        // A move that is cancelled leaves the owner idle: it gets them at once.
        if waits || self.run.leaving.is_none() && !self.early.is_empty() {
            self.take_back();
        }
        self.command(Command::Abort(session), super::Sent::Other("stop".to_owned()))
    }

    fn edit_outside(&mut self) {
        let text = self.editor.text();
        self.ask(Request::EditOutside(text));
    }

    /// The second key behind Ctrl+X (TERM-15).
    fn leader_key(&mut self, key: Key) -> Option<Command> {
        match (key.code, key.ctrl) {
            (Code::Enter, _) => return self.submit(true),
            (Code::Char('a'), false) => self.answer_oldest(),
            (Code::Char('b'), false) => self.open_board(),
            (Code::Char('d'), false) => self.widget_long = !self.widget_long,
            (Code::Char('e'), _) => self.edit_outside(),
            (Code::Char('m'), false) => self.open_picker(Kind::Models { all: false }),
            (Code::Char('o'), false) => self.answer_approval(true),
            (Code::Char('p'), false) => self.ask(Request::CycleModel { backwards: false }),
            (Code::Char('P'), false) => self.ask(Request::CycleModel { backwards: true }),
            (Code::Char('r'), false) => self.answer_approval(false),
            (Code::Char('t'), false) => self.open_tree(),
            (Code::Char('u'), false) => self.take_back(),
            (Code::Char('v'), false) => self.ask(Request::PasteOutside),
            (Code::Char('x'), false) => self.ask_stop(),
            (Code::Char('y'), false) | (Code::Char('x'), true) => self.copy_reply(),
            (Code::Char('?'), false) => self.show(Full::Keys { top: 0 }),
            (Code::Char(c @ '1'..='9'), false) => self.copy_code(c as usize - '0' as usize),
            // Esc, Ctrl+C or an unknown key: nothing else happens (case 20).
            _ => {}
        }
        None
    }

    fn answer_oldest(&mut self) {
        match self.crew.oldest_waiting().map(|one| one.id.clone()) {
            Some(id) => self.receive_as(Receiver::Answer(id)),
            None => self.live.print("no subagent needs input", MUTED),
        }
    }
}
