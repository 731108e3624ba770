//! What goes to the host: commands of the face, with their text expanded, and
//! the question for figures.

use std::sync::Arc;

use crew_base::message::{Block, Content, Message, UserMessage};
use crew_engine::api::Command;
use crew_tui::view;
use tokio::time::Instant;

use super::face::{Asking, Done, Face, Ready, Waiting};
use crate::input::Expansion;

impl Face {
    /// Sends a command of the face; text is expanded first (`host.md` 3.4.4).
    pub(super) fn send(&mut self, command: Command) {
        let Some(ready) = &self.ready else { return };
        let command = match self.expanded(ready, command) {
            Ok(command) => command,
            Err(text) => {
                view::not_sent(&mut self.view);
                self.failed(&text);
                return;
            }
        };
        let id = ready.handle.send(command);
        view::sent(&mut self.view, id);
    }

    fn expanded(&self, ready: &Ready, command: Command) -> Result<Command, String> {
        let expansion =
            Expansion { options: &ready.options, config: &ready.config, cwd: &self.cwd };
        let expand = |message: Message| -> Result<Message, String> {
            let Message::User(user) = &message else { return Ok(message) };
            let text = user.content.text();
            if !text.starts_with('/') {
                return Ok(message);
            }
            let text = expansion.expand(text).map_err(|error| error.words().text)?;
            let content = Content::Blocks(vec![Block::text(text)]);
            Ok(Message::User(UserMessage { content, timestamp: user.timestamp }))
        };
        if let Command::PromptOrSteer(session, message) = command {
            return Ok(Command::PromptOrSteer(session, expand(message)?));
        }
        if let Command::PromptOrFollowUp(session, message) = command {
            return Ok(Command::PromptOrFollowUp(session, expand(message)?));
        }
        Ok(command)
    }

    /// Sends a command of the program itself.
    pub(super) fn send_own(&mut self, command: Command, waiting: Waiting) {
        if let Some(ready) = &self.ready {
            let id = ready.handle.send(command);
            self.waiting.insert(id, waiting);
        }
    }

    /// Asks for the figures of now, beside the loop.
    pub(super) fn ask_facts(&mut self) {
        let (Some(ready), Some(session)) = (&self.ready, self.view.session()) else { return };
        if self.asking != Asking::Not {
            // What is under way may have looked before the change.
            self.asking = Asking::Again;
            return;
        }
        self.asking = Asking::Once;
        self.facts_wanted = false;
        self.facts_asked = Some(Instant::now());
        let done = self.done.clone();
        let gather = super::facts::gather(
            ready.handle.clone(),
            session.clone(),
            self.totals.clone(),
            Arc::clone(&ready.config),
        );
        tokio::spawn(async move {
            let (facts, totals) = gather.await;
            let _ = done.send(Done::Facts(Box::new(facts), Box::new(totals)));
        });
    }
}
