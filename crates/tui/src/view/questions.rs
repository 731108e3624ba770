//! Questions that answer a key or a start; each waits without limit and shows
//! its default (TERM-36).

#![expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]

use crew_base::id::SubagentId;
use crew_base::time::Time;
use crew_engine::api::Command;

use super::{Sent, View};
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
        let chosen = match key.code {
            Code::Up => at.saturating_sub(1),
            Code::Down => (at + 1).min(last),
            Code::Char('p') if key.ctrl => at.saturating_sub(1),
            Code::Char('n') if key.ctrl => (at + 1).min(last),
            Code::Char(c @ '1'..='9') if !key.ctrl && !key.alt => {
                (c as usize - '1' as usize).min(last)
            }
            Code::Esc | Code::Enter => {
                self.question = None;
                self.ask(Request::Chosen(if key.code == Code::Enter { at } else { 0 }));
                return;
            }
            _ => return,
        };
        self.rekind(Kind::Choose { choice, at: chosen });
    }

    /// Any key but the two stays, and is taken as what it is (case 16).
    fn quit_key(&mut self, key: Key) -> Option<Option<Command>> {
        self.question = None;
        if key == Key::ctrl('c') || key == Key::ctrl('d') {
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
        match key.code {
            Code::Up => self.rekind(moved(at.saturating_sub(1))),
            Code::Down => self.rekind(moved((at + 1).min(last))),
            Code::Char('p') if key.ctrl => self.rekind(moved(at.saturating_sub(1))),
            Code::Char('n') if key.ctrl => self.rekind(moved((at + 1).min(last))),
            Code::Enter | Code::Char('x') if !armed => {
                self.rekind(Kind::Stop { ids: ids.to_vec(), at, armed: true });
            }
            Code::Enter | Code::Char('x') => {
                self.question = None;
                return ids.get(at).and_then(|id| self.stop_subagent(id));
            }
            Code::Char(c) if c.is_ascii_digit() && !armed => {
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
        let chosen = match key.code {
            Code::Up => at.saturating_sub(1),
            Code::Down => (at + 1).min(last),
            Code::Char('p') if key.ctrl => at.saturating_sub(1),
            Code::Char('n') if key.ctrl => (at + 1).min(last),
            Code::Char(c @ '1'..='5') if !key.ctrl && !key.alt => c as usize - '1' as usize,
            Code::Char('v') if !key.ctrl && !key.alt => {
                self.ask(Request::ShowTrust);
                return;
            }
            Code::Esc => {
                self.question = None;
                let choice = TrustChoice::NotNow;
                if at_start {
                    self.ask(Request::Trusted(choice));
                }
                return;
            }
            Code::Enter => {
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
    format!("Quit and {what}? Ctrl+C again quits, any other key stays")
}
