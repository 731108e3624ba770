//! Enter: who gets the text (TERM-4).

use crew_base::id::SubagentId;
use crew_base::message::Message;
use crew_engine::api::Command;

use super::{Receiver, Sent, Shell, View};
use crate::keys::action::Action;
use crate::request::Request;
use crate::theme::WARNING;
use crate::transcript::item::Item;

impl View {
    /// Sends what is typed; `later` queues it as a follow-up.
    pub(super) fn submit(&mut self, later: bool) -> Option<Command> {
        match self.receiver.clone() {
            Receiver::Owner => {}
            Receiver::Answer(subagent) => return self.submit_answer(&subagent),
            Receiver::Steer(subagent) => return self.submit_steer(&subagent),
        }
        let text = self.editor.text();
        if crew_base::text::is_blank(&text) {
            return None;
        }
        if let Some(command) = self.slash(text.trim()) {
            return command;
        }
        if let Some(shell) = text.trim_start().strip_prefix('!') {
            self.submit_shell(shell);
            return None;
        }
        self.submit_text(later)
    }

    /// Sends what is typed to the owner.
    fn submit_text(&mut self, later: bool) -> Option<Command> {
        let Some(session) = self.session.clone() else {
            // Sent as soon as the session is there.
            let text = self.take_draft();
            self.early.push((text, later));
            return None;
        };
        if self.facts_known && self.facts.model.is_none() {
            self.tell_no_model();
            return None;
        }
        if self.run.leaving.is_some() || self.run.compacting.is_some() {
            // Sent when the summary is there (`host.md` 3.1.11, 8.12).
            let text = self.take_draft();
            self.early.push((text, later));
            return None;
        }
        let text = self.take_draft();
        let message = Message::user_text(text.trim_end().to_owned(), self.now);
        let command = if later {
            Command::PromptOrFollowUp(session, message)
        } else {
            Command::PromptOrSteer(session, message)
        };
        self.command(command, Sent::Text(text))
    }

    /// Sends what was entered while the session was being opened; without a
    /// model the text comes back.
    pub(super) fn submit_early(&mut self) {
        let early = std::mem::take(&mut self.early);
        let Some(session) = self.session.clone() else { return };
        for (text, later) in early {
            if self.facts.model.is_none() {
                self.give_back(&text);
                continue;
            }
            let message = Message::user_text(text.trim_end().to_owned(), self.now);
            let command = if later {
                Command::PromptOrFollowUp(session.clone(), message)
            } else {
                Command::PromptOrSteer(session.clone(), message)
            };
            self.ask(Request::Send(Box::new(command)));
        }
    }

    /// Takes back what waits: here, and in the engine.
    pub(super) fn take_back(&mut self) {
        if self.session.is_some() && !self.early.is_empty() {
            let texts = self.early.drain(..).map(|(text, _)| text);
            let texts = texts.collect::<Vec<_>>().join("\n");
            self.give_back(&texts);
        }
        self.ask(Request::TakeBack);
    }

    /// The draft, which goes into the history.
    pub(super) fn take_draft(&mut self) -> String {
        let text = self.editor.take();
        self.editor.history.add(&text);
        self.menu = None;
        text
    }

    fn submit_shell(&mut self, command: &str) {
        let (command, exclude) = match command.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (command, false),
        };
        let command = command.trim().to_owned();
        if command.is_empty() {
            return;
        }
        if self.session.is_none() {
            self.live.print("the session is being opened; press Enter again", WARNING);
            return;
        }
        if self.shell.is_some() {
            let stop = self.setup.keys.hint(Action::Interrupt, "stops it");
            let stop = stop.map_or_else(String::new, |stop| format!("; {stop}"));
            self.live.print(&format!("a command is running already{stop}"), WARNING);
            return;
        }
        self.take_draft();
        self.shell =
            Some(Shell { command: command.clone(), since: self.now, output: String::new() });
        self.ask(Request::Shell { command, exclude });
    }

    /// Answers a subagent with exactly the text (TERM-41).
    fn submit_answer(&mut self, subagent: &str) -> Option<Command> {
        let text = self.editor.text();
        if crew_base::text::is_blank(&text) {
            return None;
        }
        let session = self.session.clone()?;
        let awaits = self.crew.get(subagent).is_some_and(super::crew::Subagent::awaits);
        if !awaits {
            self.tell_unreachable(subagent);
            return None;
        }
        let text = self.take_draft();
        let command =
            Command::Respond(session, SubagentId::new(subagent), text.trim_end().to_owned());
        self.command(command, Sent::Answer { subagent: subagent.to_owned(), text })
    }

    /// Says something to a subagent that runs; to one that waits it is an
    /// answer (TERM-46).
    fn submit_steer(&mut self, subagent: &str) -> Option<Command> {
        let text = self.editor.text();
        if crew_base::text::is_blank(&text) {
            return None;
        }
        if !self.crew.open.iter().any(|one| one.id == subagent) {
            self.tell_unreachable(subagent);
            return None;
        }
        let text = self.take_draft();
        self.steer(subagent, &text)
    }

    /// Words for a subagent are on their way.
    pub(super) fn steer(&mut self, subagent: &str, text: &str) -> Option<Command> {
        let session = self.session.clone()?;
        let text = text.trim_end().to_owned();
        let command = Command::SteerSubagent(session, SubagentId::new(subagent), text.clone());
        self.command(command, Sent::Steer { subagent: subagent.to_owned(), text })
    }

    fn tell_unreachable(&mut self, subagent: &str) {
        let cause = match self.crew.get(subagent) {
            Some(gone) if gone.ended.is_some() => {
                let word = gone.status.word();
                let why = gone.text.clone().unwrap_or_default();
                format!("{subagent} is gone ({word}): {why}")
            }
            Some(_) => format!("{subagent} runs and cannot be answered now"),
            None => format!("{subagent} is not known"),
        };
        let back = self.setup.keys.hint(Action::Interrupt, "goes back to the owner");
        let back = back.map_or_else(String::new, |back| format!(" · {back}"));
        let next = Some(format!("nothing was sent{back}"));
        self.live.add(Item::Failure { what: cause, next });
    }

    /// Makes a subagent the receiver; the owner's draft is put aside.
    pub(super) fn receive_as(&mut self, receiver: Receiver) {
        if self.receiver == receiver {
            return;
        }
        let mut fresh = crate::editor::Editor::default();
        std::mem::swap(&mut fresh.history, &mut self.editor.history);
        let mut draft = std::mem::replace(&mut self.editor, fresh);
        if self.aside.is_none() {
            draft.history.leave();
            self.aside = Some(draft);
        }
        self.receiver = receiver;
        self.menu = None;
    }

    /// Gives the text to the owner again; what was typed for the subagent is
    /// kept in the history.
    pub(super) fn receive_as_owner(&mut self) {
        let typed = self.editor.text();
        let mut history = std::mem::take(&mut self.editor.history);
        history.add(&typed);
        self.editor = self.aside.take().unwrap_or_default();
        self.editor.history = history;
        self.receiver = Receiver::Owner;
        self.menu = None;
    }

    /// The three ways on without a model (TERM-52, P-4).
    pub(super) fn tell_no_model(&mut self) {
        for line in super::help::no_model(&self.found.looked_for, &self.setup, self.size.columns) {
            self.live.print_line(line);
        }
    }
}
