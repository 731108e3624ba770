//! Words of the person to a subagent that runs (`terminal.md` TERM-42,
//! TERM-46).
//!
//! Owns those that wait to be taken. Must answer each command once: when the
//! child records the words, or when its cycle is over without them. Read
//! `person` for what is done to subagents that wait.

use std::collections::BTreeMap;

use crew_agent::Input;
use crew_base::id::{SessionId, SubagentId};
use crew_base::message::Message;
use crew_crew::{Refusal as CrewRefusal, Status, Update as CrewUpdate, UpdateKind};
use serde_json::{Value, json};

use crate::api::{CommandId, Refusal};
use crate::step::Engine;

/// Words that wait, by the session they are for, in order.
pub(crate) type Steers = BTreeMap<SessionId, Vec<Steer>>;

/// What owners that are away are to hear.
pub(crate) type Untold = BTreeMap<SessionId, Vec<Value>>;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Steer {
    command: CommandId,
    text: String,
}

impl Engine {
    pub(crate) fn steer_subagent(
        &mut self,
        command: CommandId,
        owner: &SessionId,
        id: &SubagentId,
        text: String,
    ) {
        match self.steered_session(owner, id) {
            Err(refusal) => self.answer(command, Err(refusal)),
            Ok(None) => {
                let result = self.respond(owner, id, &text);
                self.answer(command, result);
            }
            Ok(Some(session)) => {
                let message = Message::user_text(text.clone(), self.now);
                let waiting = self.steers.entry(session.clone()).or_default();
                waiting.push(Steer { command, text });
                self.feed(&session, Input::Steer(message));
            }
        }
    }

    /// The session that takes the words; none for a subagent that waits.
    fn steered_session(
        &self,
        owner: &SessionId,
        id: &SubagentId,
    ) -> Result<Option<SessionId>, Refusal> {
        self.attached_agent(owner)?;
        let known = self.crew.all().find(|known| known.id == *id);
        let Some(known) = known else {
            return Err(Refusal::Subagent(CrewRefusal::UnknownSubagent(id.clone())));
        };
        if known.owner != *owner {
            return Err(Refusal::Subagent(CrewRefusal::ForeignSubagent(id.clone())));
        }
        if known.status != Status::Running {
            return Ok(None);
        }
        let is_open = self.sessions.get(&known.session).is_some_and(|session| session.is_open());
        if is_open { Ok(Some(known.session.clone())) } else { Err(Refusal::Busy) }
    }

    /// A child recorded a message: maybe words that waited. The owner hears of
    /// them before the result that they lead to.
    pub(crate) fn steer_recorded(&mut self, session: &SessionId, message: &Message) {
        let Message::User(user) = message else { return };
        let Some(waiting) = self.steers.get_mut(session) else { return };
        let text = user.content.text();
        let Some(at) = waiting.iter().position(|steer| steer.text == text) else { return };
        let steer = waiting.remove(at);
        let Some(subagent) = self.crew.of_session(session) else { return };
        let (owner, id) = (subagent.owner.clone(), subagent.id.clone());
        let told = json!({"subagent_id": id.as_str(), "user_steered": steer.text});
        if self.attached.as_ref() == Some(&owner) {
            self.tell_owner(&owner, told);
        } else {
            // Nothing is written to a session that is away (`crew.md` SAFE-1).
            self.untold.entry(owner).or_default().push(told);
        }
        self.answer(steer.command, Ok(()));
    }

    /// An owner is back: it hears what its subagents were told meanwhile.
    pub(crate) fn tell_steers(&mut self, owner: &SessionId) {
        for told in self.untold.remove(owner).unwrap_or_default() {
            self.tell_owner(owner, told);
        }
    }

    /// Subagents have another owner, and so has what it is to hear of them.
    pub(crate) fn adopt_steers(&mut self, previous: &SessionId, owner: &SessionId) {
        if let Some(told) = self.untold.remove(previous) {
            self.untold.entry(owner.clone()).or_default().extend(told);
        }
    }

    /// A cycle is over: what waits was not taken and must not enter the next.
    pub(crate) fn steers_end(&mut self, update: &CrewUpdate) {
        match update.kind {
            UpdateKind::Settled { .. } | UpdateKind::Closed => {}
            UpdateKind::Spawned
            | UpdateKind::Responded
            | UpdateKind::Activity { .. }
            | UpdateKind::Delivered => return,
        }
        let Some(waiting) = self.steers.remove(&update.session) else { return };
        if let Some(session) = self.sessions.get_mut(&update.session) {
            drop(session.agent.clear_queue());
        }
        for steer in waiting {
            let refusal = CrewRefusal::WrongPhase(update.subagent.clone(), update.status);
            self.answer(steer.command, Err(Refusal::Subagent(refusal)));
        }
    }
}
