//! What the person does by hand: prompting as the moment allows, answering,
//! closing and stopping subagents (`terminal.md` TERM-41 to TERM-44).
//!
//! Counts as done by the owner, which must be the attached one (`crew.md`
//! OWN-2). Read `crew::lifecycle` for what becomes of the subagent.

use crew_agent::Input;
use crew_base::id::{SessionId, SubagentId};
use crew_base::message::{Content, CustomMessage, Message};
use crew_crew::AbortOrigin;
use serde_json::{Value, json};

use crate::api::{CommandId, Refusal};
use crate::step::Engine;

/// Type of the message that tells an owner what the person did.
const USER_MESSAGE: &str = "crew-user";

impl Engine {
    /// Starts a run if the session is idle.
    pub(crate) fn prompt(&mut self, id: CommandId, session: &SessionId, message: Message) {
        let allowed = self.may_prompt(session);
        let starts = allowed.is_ok();
        // The answer precedes the run's first event (`host.md` 7.3.3).
        self.answer(id, allowed);
        if starts {
            // What the record refused earlier gets another try (OP-29).
            self.crew.attach(session);
            self.feed(session, Input::Prompt(vec![message]));
        }
    }

    /// Starts a run if the session is idle, else queues the message: decided
    /// in one step, so that it neither starts twice nor is left waiting. A
    /// compaction refuses it (`host.md` 3.1.11).
    pub(crate) fn prompt_or(
        &mut self,
        id: CommandId,
        session: &SessionId,
        message: Message,
        queued: fn(Message) -> Input,
    ) {
        let is_compacting = self
            .attached_agent(session)
            .is_ok_and(|agent| agent.is_compacting() || agent.is_moving());
        if self.may_prompt(session) == Err(Refusal::Busy) && !is_compacting {
            let result = self.queue(session, queued(message));
            self.answer(id, result);
        } else {
            self.prompt(id, session, message);
        }
    }

    pub(crate) fn abort_subagent(
        &mut self,
        owner: &SessionId,
        id: &SubagentId,
    ) -> Result<(), Refusal> {
        self.attached_agent(owner)?;
        self.crew.abort_one(self.now, owner, id, AbortOrigin::Person).map_err(Refusal::Subagent)
    }

    pub(crate) fn respond(
        &mut self,
        owner: &SessionId,
        id: &SubagentId,
        message: &str,
    ) -> Result<(), Refusal> {
        self.attached_agent(owner)?;
        self.crew.respond(self.now, owner, id, message).map_err(Refusal::Subagent)?;
        self.tell_owner(owner, json!({"subagent_id": id.as_str(), "user_answered": message}));
        Ok(())
    }

    pub(crate) fn done(&mut self, owner: &SessionId, id: &SubagentId) -> Result<(), Refusal> {
        self.attached_agent(owner)?;
        self.crew.done(owner, id).map_err(Refusal::Subagent)?;
        self.tell_owner(owner, json!({"subagent_id": id.as_str(), "user_closed": ""}));
        Ok(())
    }

    /// Starts nothing and stands before the result that follows from it.
    pub(crate) fn tell_owner(&mut self, owner: &SessionId, content: Value) {
        let message = CustomMessage {
            custom_type: USER_MESSAGE.to_owned(),
            content: Content::Text(content.to_string()),
            display: true,
            details: None,
            timestamp: self.now,
        };
        self.feed(owner, Input::Inject(message));
    }
}
