//! Changes the person makes to a session, and leaving one.

use crew_agent::{Control, Input, MoveEnd};
use crew_base::id::SessionId;
use crew_base::message::Usage;

use crate::api::{CommandId, Refusal};
use crate::effect::Effect;
use crate::step::{Engine, Role};

impl Engine {
    /// What the host's settings say now; open sessions keep what they were
    /// opened with (`host.md` 8.23).
    pub fn reconfigure(&mut self, settings: crew_agent::Settings) {
        self.config.settings = settings;
    }

    pub(crate) fn control(&mut self, id: &SessionId, control: Control) -> Result<(), Refusal> {
        self.attached_agent(id)?;
        let Some(session) = self.sessions.get_mut(id) else { return Err(Refusal::UnknownSession) };
        let effects = session.agent.control(self.now, &mut self.ids, control);
        self.after_agent(id, effects);
        Ok(())
    }

    /// Goes to another place in the tree; refused while anything runs
    /// (`host.md` 2.8.2).
    pub(crate) fn navigate(&mut self, command: CommandId, id: &SessionId, input: Input) {
        let allowed = match self.attached_agent(id) {
            Ok(agent) if agent.is_idle() => Ok(()),
            Ok(_) => Err(Refusal::Busy),
            Err(refusal) => Err(refusal),
        };
        if allowed.is_err() {
            self.answer(command, allowed);
            return;
        }
        self.moves.insert(id.clone(), command);
        self.feed(id, input);
    }

    /// Answers whoever asked for a move.
    pub(crate) fn move_ended(&mut self, id: &SessionId, end: MoveEnd) {
        let Some(command) = self.moves.remove(id) else { return };
        let result = match end {
            MoveEnd::Moved(_) => Ok(()),
            MoveEnd::Cancelled => Err(Refusal::MoveCancelled),
            MoveEnd::Failed(error) => Err(Refusal::MoveFailed(error)),
        };
        self.answer(command, result);
    }

    /// Leaves an owner; its crew goes on (`crew.md` RUN-4).
    pub(crate) fn leave(&mut self, command: CommandId, id: &SessionId) {
        let file = match self.sessions.get(id) {
            Some(session) if session.role == Role::Owner && session.is_open() => {
                session.file.clone()
            }
            Some(_) | None => {
                self.answer(command, Err(Refusal::UnknownSession));
                return;
            }
        };
        self.left_files.extend(file.map(|file| (id.clone(), file)));
        if self.attached.as_ref() == Some(id) {
            let attached = self.detach(id);
            debug_assert!(attached.is_ok(), "the attached owner can be detached");
        }
        self.leaving.insert(id.clone(), command);
        self.close(id, None);
    }

    /// Usage of an owner's open subagents, by id.
    pub fn crew_usage(&self, owner: &SessionId) -> Vec<(String, Usage)> {
        let open = self.crew.open_of(owner);
        open.map(|subagent| (subagent.id.to_string(), subagent.usage.clone())).collect()
    }

    /// Removes the typed messages that wait: texts of steering and follow-up,
    /// and what follows from it (`host.md` 7.3 `clear_queue`).
    pub fn clear_queue(&mut self, id: &SessionId) -> (Vec<String>, Vec<String>, Vec<Effect>) {
        let Some(session) = self.sessions.get_mut(id) else { return Default::default() };
        let (steering, follow_up) = session.agent.clear_queue();
        if !steering.is_empty() || !follow_up.is_empty() {
            let update =
                crew_agent::Update::QueueUpdate { steering: Vec::new(), follow_up: Vec::new() };
            self.after_agent(id, vec![crew_agent::Effect::Update(update)]);
        }
        (steering, follow_up, std::mem::take(&mut self.out))
    }
}
