//! The end of sessions, and of everything.
//!
//! Owns the order in which things end. Must never drop a session whose agent
//! still runs, unless the grace is over. Read `step` for what leads here.

use crew_agent::Input;
use crew_base::entry::EntryBody;
use crew_base::id::SessionId;
use crew_base::limits::SHUTDOWN_GRACE_MS;
use crew_base::time::Time;
use crew_crew::Ending;

use crate::api::{Refusal, Update};
use crate::effect::Effect;
use crate::step::{Engine, Role, State};

impl Engine {
    /// Ends everything: children before those who wait for them.
    pub(crate) fn quit(&mut self) {
        self.quitting = Some(self.now + SHUTDOWN_GRACE_MS);
        self.attached = None;
        // First, so that its children end by the host and not by their callers
        // (`task.md` MEET-5). What they answer is carried out once the callers
        // are stopped, for which nothing may start any more.
        self.tasks.quit(self.now);
        self.crew.quit(self.now);
        self.route_crew();
        for id in self.ids_of(|role| role != Role::Task) {
            self.close(&id, None);
        }
    }

    /// The grace is over: what is left is not waited for.
    pub(crate) fn give_up(&mut self) {
        for id in self.ids_of(|_| true) {
            self.close(&id, None);
            self.finish_closing(&id);
        }
    }

    fn ids_of(&self, wanted: impl Fn(Role) -> bool) -> Vec<SessionId> {
        let of_role = self.sessions.iter().filter(|(_, session)| wanted(session.role));
        of_role.map(|(id, _)| id.clone()).collect()
    }

    /// Disposes of a session: at once when idle or opening, else once what it
    /// runs has ended.
    pub(crate) fn close(&mut self, id: &SessionId, ending: Option<Ending>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.state {
            State::Opening { .. } => self.dispose(id),
            State::Closing { .. } => {}
            State::Open => {
                session.state = State::Closing { ending };
                if session.agent.is_idle() {
                    self.finish_closing(id);
                } else {
                    self.feed(id, Input::Abort);
                }
            }
        }
    }

    pub(crate) fn finish_closing(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let State::Closing { ending } = &mut session.state else { return };
        if let Some(ending) = ending.take() {
            let data = Some(crew_base::json::Raw::of(&ending.json()));
            let body = EntryBody::Custom { custom_type: "crew.ending".to_owned(), data };
            self.feed(id, Input::Note { body, delivery: None });
        }
        self.dispose(id);
    }

    pub(crate) fn dispose(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        if let Some(at) = session.timer {
            self.timers.remove(&(at, id.clone()));
        }
        if let State::Opening { command: Some(command), .. } = session.state {
            self.answer(command, Err(Refusal::Ending));
        }
        self.discoveries.retain(|_, waiting| waiting.session != *id);
        self.forget_calls(id);
        if session.role == Role::Owner {
            let unwritten = session.agent.record().unwritten();
            let tail = unwritten.map(|(entry, result)| (entry.clone(), result)).collect();
            self.tails.insert(id.clone(), tail);
        }
        self.out.push(Effect::CloseSession { session: id.clone() });
        if let Some(command) = self.leaving.remove(id) {
            self.answer(command, Ok(()));
        }
    }

    /// Tells once when the attached owner came to rest, and when all is over.
    pub(crate) fn rest(&mut self) {
        let is_over = |until: Time| self.tasks.is_quiet() || until <= self.now;
        if self.quitting.is_some_and(is_over) && self.sessions.is_empty() && !self.exited {
            self.exited = true;
            self.quitting = None;
            self.out.push(Effect::Exit);
            return;
        }
        let Some(id) = self.attached.clone() else { return };
        let idle = self.sessions.get(&id).is_some_and(|session| {
            session.is_open() && session.agent.is_idle() && !session.agent.has_results()
        });
        let at_rest = idle
            && !self.crew.flush_is_pending()
            && self.crew.is_quiet(&id)
            && self.tasks.is_quiet_for(&id);
        if at_rest && !self.was_at_rest {
            self.out.push(Effect::Update(Update::AtRest(id)));
        }
        self.was_at_rest = at_rest;
    }
}
