//! Questions that answer a key or a start; each waits without limit and shows
//! its default (TERM-36).

use crew_base::id::SubagentId;
use crew_base::time::Time;
use crew_engine::api::Command;

use super::{Sent, View};
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use crate::request::{Choice, Request, TrustChoice, TrustFiles};

/// What was typed so long after a question appeared is no answer (TERM-18).
const DISCARD_MS: u64 = 300;

/// An open question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) asked: Time,
    pub(crate) kind: Kind,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Whether to quit with open work.
    Quit,
    /// Which subagent to stop: ids, the chosen one, whether it is confirmed.
    Stop { ids: Vec<String>, at: usize, armed: bool },
    /// What to do with the files of a project (sketch S-11).
    Trust { files: TrustFiles, at: usize, at_start: bool },
    /// One of several answers, the first of which changes nothing.
    Choose { choice: Choice, at: usize },
}

impl View {
    pub(super) fn ask_person(&mut self, kind: Kind) {
        self.question = Some(Question { asked: self.now, kind });
        self.menu = None;
    }

    /// Asks about the project before anything of it is used (TERM-60).
    pub fn ask_trust(&mut self, files: TrustFiles, at_start: bool) {
        self.ask_person(Kind::Trust { files, at: 0, at_start });
    }

    /// Takes a key while a question is open. `None` means that the key is not
    /// the question's.
    pub(super) fn question_key(&mut self, key: Key) -> Option<Option<Command>> {
        let question = self.question.clone()?;
        match question.kind {
            Kind::Quit => self.quit_key(key),
            Kind::Stop { ids, at, armed } => Some(self.stop_key(key, &ids, at, armed)),
            Kind::Trust { files, at, at_start } => {
                // What was typed before it could be read is no answer.
                if self.now.since(question.asked) >= DISCARD_MS {
                    self.trust_key(key, files, at, at_start);
                }
                Some(None)
            }
            Kind::Choose { choice, at } => {
                if self.now.since(question.asked) >= DISCARD_MS {
                    self.choose_key(key, choice, at);
                }
                Some(None)
            }
        }
    }

    fn choose_key(&mut self, key: Key, choice: Choice, at: usize) {
        let last = choice.answers.len().saturating_sub(1);
        let chosen = match (self.listed(key), key.typed()) {
            (Some(Action::SelectUp), _) => at.saturating_sub(1),
            (Some(Action::SelectDown), _) => (at + 1).min(last),
            (Some(Action::Cancel), _) => {
                self.question = None;
                return self.ask(Request::Chosen(0));
            }
            (Some(Action::Confirm), _) => {
                self.question = None;
                return self.ask(Request::Chosen(at));
            }
            (_, Some(c @ '1'..='9')) => (c as usize - '1' as usize).min(last),
            _ => return,
        };
        self.rekind(Kind::Choose { choice, at: chosen });
    }

    /// Any key but the two stays, and is taken as what it is (case 16).
    fn quit_key(&mut self, key: Key) -> Option<Option<Command>> {
        self.question = None;
        let keys = &self.setup.keys;
        let clears = keys.find(Context::Editor, key) == Some(Action::Clear);
        if clears || keys.find(Context::Empty, key) == Some(Action::Exit) {
            return Some(self.quit());
        }
        if key.code == Code::Esc {
            return Some(None);
        }
        None
    }

    fn stop_key(&mut self, key: Key, ids: &[String], at: usize, armed: bool) -> Option<Command> {
        let moved = |at: usize| Kind::Stop { ids: ids.to_vec(), at, armed: false };
        let last = ids.len().saturating_sub(1);
        match (self.listed(key), key.code) {
            (Some(Action::SelectUp), _) => self.rekind(moved(at.saturating_sub(1))),
            (Some(Action::SelectDown), _) => self.rekind(moved((at + 1).min(last))),
            (Some(Action::Confirm), _) | (None, Code::Char('x')) if !armed => {
                self.rekind(Kind::Stop { ids: ids.to_vec(), at, armed: true });
            }
            (Some(Action::Confirm), _) | (None, Code::Char('x')) => {
                self.question = None;
                return ids.get(at).and_then(|id| self.stop_subagent(id));
            }
            (None, Code::Char(c)) if c.is_ascii_digit() && !armed => {
                let chosen = c.to_digit(10).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                if (1..=ids.len()).contains(&chosen) {
                    self.rekind(moved(chosen - 1));
                }
            }
            _ => self.question = None,
        }
        None
    }

    fn rekind(&mut self, kind: Kind) {
        if let Some(question) = &mut self.question {
            question.kind = kind;
        }
    }

    fn trust_key(&mut self, key: Key, files: TrustFiles, at: usize, at_start: bool) {
        let last = TrustChoice::ALL.len() - 1;
        let chosen = match (self.listed(key), key.typed()) {
            (Some(Action::SelectUp), _) => at.saturating_sub(1),
            (Some(Action::SelectDown), _) => (at + 1).min(last),
            (None, Some(c @ '1'..='5')) => c as usize - '1' as usize,
            (None, Some('v')) => {
                self.ask(Request::ShowTrust);
                return;
            }
            (Some(Action::Cancel), _) => {
                self.question = None;
                let choice = TrustChoice::NotNow;
                if at_start {
                    self.ask(Request::Trusted(choice));
                }
                return;
            }
            (Some(Action::Confirm), _) => {
                self.question = None;
                self.ask(Request::Trusted(TrustChoice::ALL[at]));
                return;
            }
            _ => return,
        };
        self.rekind(Kind::Trust { files, at: chosen, at_start });
    }

    /// Quits, or asks first when work is open (TERM-5).
    pub(super) fn want_quit(&mut self) -> Option<Command> {
        if self.crew.open_work() > 0 || self.is_busy() {
            self.ask_person(Kind::Quit);
            return None;
        }
        self.quit()
    }

    pub(super) fn quit(&mut self) -> Option<Command> {
        self.quitting = true;
        self.ask(Request::Quit);
        None
    }

    /// Asks which subagent is to be stopped.
    pub(super) fn ask_stop(&mut self) {
        let ids: Vec<_> = self.crew.open.iter().map(|subagent| subagent.id.clone()).collect();
        if ids.is_empty() {
            self.live.print("no subagent is open", crate::theme::MUTED);
            return;
        }
        self.ask_person(Kind::Stop { ids, at: 0, armed: false });
    }

    /// Stops one subagent, by id (TERM-44).
    pub(crate) fn stop_subagent(&mut self, id: &str) -> Option<Command> {
        let session = self.session.clone()?;
        let command = Command::AbortSubagent(session, SubagentId::new(id));
        self.command(command, Sent::Other(format!("stop {id}")))
    }

    /// Closes one subagent that awaits its owner.
    pub(super) fn close_subagent(&mut self, id: &str) -> Option<Command> {
        let session = self.session.clone()?;
        let command = Command::Done(session, SubagentId::new(id));
        self.command(command, Sent::Other(format!("close {id}")))
    }
}

/// The quit question.
pub(crate) fn quit_text(view: &View) -> String {
    let work = view.crew.open_work();
    let what = match (view.is_busy(), work) {
        (_, 0) => "stop the owner's run".to_owned(),
        (false, 1) => "stop 1 subagent".to_owned(),
        (false, work) => format!("stop {work} subagents"),
        (true, 1) => "stop the owner's run and 1 subagent".to_owned(),
        (true, work) => format!("stop the owner's run and {work} subagents"),
    };
    let keys = &view.setup.keys;
    let key = keys.key(Action::Clear).or_else(|| keys.key(Action::Exit));
    let how =
        key.map_or_else(String::new, |key| format!(" {key} again quits, any other key stays"));
    format!("Quit and {what}?{how}")
}
