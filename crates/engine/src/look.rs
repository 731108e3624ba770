//! What faces may look up about subagents.
//!
//! Owns the making of views from what crew, agents and pacing know. Must never
//! change anything. Read `api` for the views, `control` for usage and queues.

use crew_agent::Waiting;
use crew_base::id::SessionId;
use crew_base::limits::EXCERPT_CHARS_MAX;
use crew_base::text::excerpt;
use crew_crew::{Status, Subagent};

use crate::api::{SubagentView, Wait};
use crate::step::{Engine, Role, Session};

impl Engine {
    /// Open subagents of an owner in creation order.
    pub fn subagents(&self, owner: &SessionId) -> Vec<SubagentView> {
        self.crew.open_of(owner).map(|subagent| self.subagent(subagent)).collect()
    }

    /// What an open session waits for, if it is not at work.
    pub fn wait_of(&self, id: &SessionId) -> Option<Wait> {
        let session = self.sessions.get(id).filter(|session| session.is_open())?;
        self.wait(Some(session))
    }

    /// Results that wait for the owner's next request (`terminal.md` TERM-61).
    pub fn results_waiting(&self, owner: &SessionId) -> usize {
        self.crew.results_waiting(owner)
    }

    /// How deep a session stands: an owner where its process does, its children
    /// one below, those of a `task` child below that.
    pub fn depth(&self, id: &SessionId) -> u32 {
        match self.sessions.get(id).map(|session| session.role) {
            Some(Role::Owner) | None => self.config.depth,
            Some(Role::Child) => self.config.depth + 1,
            Some(Role::Task) => self.tasks.caller(id, None).map_or(0, |caller| caller.depth),
        }
    }

    fn subagent(&self, subagent: &Subagent) -> SubagentView {
        let session = self.sessions.get(&subagent.session);
        let open = session.filter(|session| session.is_open());
        let is_running = subagent.status == Status::Running;
        SubagentView {
            subagent: subagent.id.to_string(),
            definition: subagent.definition.name.clone(),
            brief: subagent.brief.clone(),
            status: subagent.status,
            model: subagent.model.clone(),
            session: subagent.session.clone(),
            thinking: open.map(|session| session.agent.thinking()),
            worked_ms: subagent.worked_ms(self.now),
            tool_calls: subagent.activity.total(),
            failures: subagent.activity.failures(),
            rows: subagent.activity.rows().cloned().collect(),
            usage: subagent.usage.clone(),
            settled: subagent.settled.clone(),
            last_text: subagent.last_text().map(|text| excerpt(text, EXCERPT_CHARS_MAX)),
            waits: if is_running { self.wait(open.map(|session| &**session)) } else { None },
        }
    }

    fn wait(&self, open: Option<&Session>) -> Option<Wait> {
        let Some(session) = open else { return Some(Wait::Opening) };
        Some(match session.agent.waiting()? {
            Waiting::Compaction => Wait::Compaction,
            Waiting::Retry(at) => Wait::Retry(at),
            Waiting::Answer(run) => match self.pacing.held_until(run) {
                None => Wait::Model,
                Some(until) if until > self.now => Wait::CoolDown(until),
                Some(_) => Wait::Turn,
            },
        })
    }
}
