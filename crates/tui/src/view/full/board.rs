//! The crew board (TERM-40, TERM-44): all subagents of the owner.
//!
//! Keys act on ids, never on rows; `x` and `X` arm for two seconds and name
//! what they stop.

#![expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]

use crew_base::time::Time;
use crew_engine::api::{AbortOrigin, Command, Status};

use super::reader::{Reader, Source};
use super::{Full, View};
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use crate::request::Request;
use crate::view::crew::Subagent;
use crate::view::{Receiver, Sent};

/// How long a stop stays armed.
const ARMED_MS: u64 = 2_000;

/// What the board shows.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The selected subagent, by id.
    pub selected: Option<String>,
    /// First row on the screen.
    pub top: usize,
    /// What is armed: one subagent, or all for `None`, until then.
    pub armed: Option<(Option<String>, Time)>,
    /// Which ones are shown.
    pub filter: Filter,
    /// What is searched, while it is typed too.
    pub find: Option<String>,
    typing: bool,
    /// One line about the last deed.
    pub told: Option<String>,
}

/// Which subagents are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All.
    #[default]
    All,
    /// Open ones.
    Open,
    /// Those that need input.
    Waiting,
}

impl Filter {
    /// The word in the head.
    pub fn word(self) -> &'static str {
        match self {
            Filter::All => "all",
            Filter::Open => "open",
            Filter::Waiting => "needs you",
        }
    }

    fn next(self) -> Filter {
        match self {
            Filter::All => Filter::Open,
            Filter::Open => Filter::Waiting,
            Filter::Waiting => Filter::All,
        }
    }
}

impl Board {
    /// When an armed stop is forgotten.
    pub fn deadline(&self) -> Option<Time> {
        self.armed.as_ref().map(|(_, until)| *until)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        if self.armed.as_ref().is_some_and(|(_, until)| now >= *until) {
            self.armed = None;
        }
    }

    /// Whether the search is being typed.
    pub fn is_typing(&self) -> bool {
        self.typing
    }

    /// The rows in order: those that need input, other open ones in creation
    /// order, then ended ones, newest first.
    pub fn rows<'a>(&self, view: &'a View) -> Vec<&'a Subagent> {
        let crew = &view.crew;
        let waiting = crew.open.iter().filter(|one| one.status == Status::NeedsInput);
        let others = crew.open.iter().filter(|one| one.status != Status::NeedsInput);
        let ended = crew.ended.iter().rev();
        let find = self.find.as_deref().unwrap_or_default().to_lowercase();
        let fits = |one: &&Subagent| {
            let of_filter = match self.filter {
                Filter::All => true,
                Filter::Open => one.ended.is_none(),
                Filter::Waiting => one.status == Status::NeedsInput && one.ended.is_none(),
            };
            let text = format!("{} {}", one.id, one.brief).to_lowercase();
            let is_selected = self.selected.as_deref() == Some(one.id.as_str());
            text.contains(&find) && (of_filter || is_selected)
        };
        waiting.chain(others).chain(ended).filter(fits).collect()
    }

    /// The selected subagent, else the first one.
    pub fn current<'a>(&self, view: &'a View) -> Option<&'a Subagent> {
        let rows = self.rows(view);
        let selected = self.selected.as_deref();
        rows.iter().find(|one| Some(one.id.as_str()) == selected).or(rows.first()).copied()
    }

    fn step(&mut self, view: &View, by: isize) {
        let rows = self.rows(view);
        let selected = self.selected.as_deref();
        let at = rows.iter().position(|one| Some(one.id.as_str()) == selected).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.selected = rows.get(at).map(|one| one.id.clone());
        self.armed = None;
        let height = view.size.rows.saturating_sub(7).max(1);
        if at < self.top {
            self.top = at;
        } else if at >= self.top + height {
            self.top = at + 1 - height;
        }
    }
}

impl View {
    /// Opens the board on the subagent that needs input, else on the first.
    pub(in crate::view) fn open_board(&mut self) {
        self.show(Full::Board(Board::default()));
        self.ask(Request::Facts);
    }

    /// Takes a key of the board; tells whether it stays open.
    pub(in crate::view) fn board_key(
        &mut self,
        board: &mut Board,
        key: Key,
    ) -> (bool, Option<Command>) {
        if board.typing {
            match key.code {
                Code::Enter => board.typing = false,
                Code::Esc => (board.typing, board.find) = (false, None),
                Code::Backspace => {
                    board.find.get_or_insert_default().pop();
                }
                _ => {
                    if let Some(c) = key.typed() {
                        board.find.get_or_insert_default().push(c);
                    }
                }
            }
            return (true, None);
        }
        if board.selected.is_none() {
            board.selected = board.current(self).map(|one| one.id.clone());
        }
        let page = isize::try_from(self.size.rows.saturating_sub(8).max(1)).unwrap_or(1);
        match self.setup.keys.find(Context::Board, key) {
            Some(Action::SelectUp) => board.step(self, -1),
            Some(Action::SelectDown) => board.step(self, 1),
            Some(Action::SelectPageUp) => board.step(self, -page),
            Some(Action::SelectPageDown) => board.step(self, page),
            Some(Action::SelectFirst) => board.step(self, isize::MIN),
            Some(Action::SelectLast) => board.step(self, isize::MAX),
            Some(Action::Cancel | Action::BoardLeave) => return (false, None),
            Some(action) => return self.board_deed(board, action),
            // Any key disarms a stop.
            None => board.armed = None,
        }
        (true, None)
    }

    fn board_deed(&mut self, board: &mut Board, action: Action) -> (bool, Option<Command>) {
        let current = board.current(self).cloned();
        let armed = board.armed.take();
        match (action, current) {
            (Action::BoardFilter, _) => board.filter = board.filter.next(),
            (Action::BoardFind, _) => {
                board.typing = true;
                board.find = Some(String::new());
            }
            (Action::BoardKeys, _) => self.show(Full::Keys { top: 0 }),
            (Action::BoardStopAll, _) => return (true, self.stop_all(board, armed.as_ref())),
            (Action::Confirm, Some(one)) => {
                self.read_subagent(&one, Some(Full::Board(std::mem::take(board))));
            }
            (Action::BoardAnswer, Some(one)) => {
                if one.awaits() {
                    self.receive_as(Receiver::Answer(one.id));
                    return (false, None);
                }
                board.told = Some(format!("{} cannot be answered now", one.id));
            }
            (Action::BoardSteer, Some(one)) => {
                if one.ended.is_none() {
                    self.receive_as(Receiver::Steer(one.id));
                    return (false, None);
                }
                board.told = Some(format!("{} has ended", one.id));
            }
            (Action::BoardStop, Some(one)) if one.ended.is_none() => {
                let is_armed = matches!(&armed, Some((Some(id), _)) if *id == one.id);
                if is_armed {
                    board.told = Some(format!("stopping {}", one.id));
                    return (true, self.stop_subagent(&one.id));
                }
                board.armed = Some((Some(one.id.clone()), self.now + ARMED_MS));
            }
            (Action::BoardClose, Some(one)) => {
                if one.awaits() {
                    board.told = Some(format!("closing {}", one.id));
                    return (true, self.close_subagent(&one.id));
                }
                board.told = Some(format!("{} does not await its owner", one.id));
            }
            (Action::BoardCopy, Some(one)) => match one.text.clone() {
                Some(text) => {
                    let what = format!("the last words of {}", one.id);
                    self.ask(Request::Copy { what, text });
                    board.told = Some("copied".to_owned());
                }
                None => board.told = Some("there is no report yet".to_owned()),
            },
            _ => {}
        }
        (true, None)
    }

    /// A second X on an armed board stops all (TERM-44).
    fn stop_all(
        &mut self,
        board: &mut Board,
        armed: Option<&(Option<String>, Time)>,
    ) -> Option<Command> {
        if self.crew.open.is_empty() {
            board.told = Some("no subagent is open".to_owned());
            return None;
        }
        if !matches!(armed, Some((None, _))) {
            board.armed = Some((None, self.now + ARMED_MS));
            return None;
        }
        let session = self.session.clone()?;
        board.told = Some("stopping all".to_owned());
        let command = Command::AbortCrew(session, AbortOrigin::Person);
        self.command(command, Sent::Other("stop all".to_owned()))
    }

    /// Opens the transcript of a subagent.
    pub(in crate::view) fn read_subagent(&mut self, one: &Subagent, back: Option<Full>) {
        let reader = Reader::new(Source::Subagent(one.id.clone()), self.now);
        self.ask(Request::Read { id: one.id.clone(), session: one.session.clone(), path: None });
        self.show(Full::Reader(Box::new(reader), back.map(Box::new)));
    }
}
