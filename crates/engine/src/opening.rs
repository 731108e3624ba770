//! Sessions from the wish to open one until it can run.
//!
//! Owns what each role is given: settings, prompt, first entries. Must never
//! prepare anything itself; the shell does that between the two halves. Read
//! `closing` for the other end, `tasks` for children of `task`.

use crew_agent::{Agent, Input, Loaded, Prompt, Settings};
use crew_base::entry::EntryBody;
use crew_base::id::SessionId;
use crew_base::tool::ToolDefinition;
use crew_crew::Owner;
use crew_cycle::report;
use crew_task::approval::Approval;

use crate::api::{CommandId, Refusal};
use crate::effect::{Effect, OpenPlan, Source};
use crate::event::Opened;
use crate::step::{Engine, Role, Session, State};

impl Engine {
    pub(crate) fn open(
        &mut self,
        id: CommandId,
        session: SessionId,
        source: Source,
        adopts: Option<SessionId>,
    ) {
        match self.sessions.get(&session) {
            Some(known) if matches!(known.state, State::Opening { .. }) => {
                self.answer(id, Err(Refusal::Busy));
                return;
            }
            Some(_) => {
                let attached = self.attach(&session);
                self.answer(id, attached);
                return;
            }
            None => {}
        }
        let state = State::Opening { command: Some(id), adopts };
        let mut settings = self.config.settings.clone();
        settings.outgoing = crew_crew::mention::outgoing;
        let agent = Agent::new(session.clone(), Loaded::default(), settings);
        let opening = Session {
            agent,
            role: Role::Owner,
            state,
            file: None,
            timer: None,
            approval: Approval::default(),
        };
        self.sessions.insert(session.clone(), Box::new(opening));
        self.out.push(Effect::OpenSession(OpenPlan::Owner { session, source }));
    }

    pub(crate) fn session_opened(&mut self, id: &SessionId, result: Result<Box<Opened>, String>) {
        let Some(session) = self.sessions.get(id) else { return };
        let State::Opening { command, adopts } = session.state.clone() else { return };
        match (session.role, result) {
            (Role::Child, Err(error)) => {
                self.crew.open_failed(self.now, id, &error);
            }
            (Role::Task, Err(error)) => {
                self.tasks.open_failed(self.now, &mut self.ids, id, &error);
                self.dispose(id);
            }
            (Role::Owner, Err(error)) => {
                self.sessions.remove(id);
                if let Some(command) = command {
                    self.answer(command, Err(Refusal::OpenFailed(error)));
                }
            }
            (Role::Child, Ok(opened)) => {
                let model = opened.model.as_ref().map(|model| model.reference());
                self.install(id, *opened, None);
                self.crew.opened(id, model.as_deref().unwrap_or_default());
            }
            (Role::Task, Ok(opened)) => self.task_opened(id, *opened),
            (Role::Owner, Ok(opened)) => {
                self.install(id, *opened, None);
                // First, so that what the old session was handed and has not
                // recorded is adopted too (`product.md` P-14c).
                if let Some(shown) = self.attached.clone() {
                    self.detach(&shown).ok();
                }
                if let Some(previous) = adopts {
                    self.adopt(&previous, id);
                }
                let attached = self.attach(id);
                if let Some(command) = command {
                    self.answer(command, attached);
                }
            }
        }
    }

    /// Makes a prepared session one that can run; `first` stands before all
    /// other entries of its file.
    pub(crate) fn install(&mut self, id: &SessionId, opened: Opened, first: Option<EntryBody>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let mut settings = self.config.settings.clone();
        if session.role == Role::Owner {
            settings.outgoing = crew_crew::mention::outgoing;
        }
        let has_level = opened.loaded.has_level_entry;
        session.agent = Agent::new(id.clone(), opened.loaded, settings);
        if let Some(model) = opened.model {
            session.agent.use_model(model, opened.thinking);
        }
        session.agent.fall_back_on(opened.fallbacks);
        session.approval = opened.approval;
        match session.role {
            Role::Owner => {}
            Role::Child => {
                if let Some(subagent) = self.crew.of_session(id) {
                    session.agent.become_child(subagent.definition.compaction);
                }
            }
            Role::Task => session.agent.become_child(self.tasks.compacts(id)),
        }
        session.agent.want_prompt(prompt_of(session.role, opened.prompt));
        session.file = opened.file;
        session.state = State::Open;
        if let Some(body) = first {
            self.feed(id, Input::Note { body, delivery: None });
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let effects = session.agent.open(self.now, &mut self.ids, opened.is_new, has_level);
        self.route_agent(id, effects);
        if let Some(name) = opened.name.filter(|_| opened.is_new) {
            let body = EntryBody::SessionInfo { name: Some(name) };
            self.feed(id, Input::Note { body, delivery: None });
        }
    }

    /// The caller of owner tools.
    pub(crate) fn owner(&self, id: &SessionId) -> Option<Owner> {
        let session = self.sessions.get(id)?;
        Some(Owner {
            session: id.clone(),
            file: session.file.clone(),
            model: session.agent.model().cloned(),
        })
    }

    fn adopt(&mut self, previous: &SessionId, id: &SessionId) {
        let open = self.sessions.get(previous).and_then(|session| session.file.clone());
        let file = open.or_else(|| self.left_files.get(previous).cloned());
        if let (Some(file), Some(owner)) = (file, self.owner(id)) {
            self.crew.adopt(previous, &file, &owner);
            self.adopt_steers(previous, id);
        }
    }
}

impl Session {
    /// A session that will be prepared for a child.
    pub(crate) fn child(id: &SessionId, role: Role, settings: Settings) -> Session {
        let agent = Agent::new(id.clone(), Loaded::default(), settings);
        let state = State::Opening { command: None, adopts: None };
        Session { agent, role, state, file: None, timer: None, approval: Approval::default() }
    }
}

/// The tools that a role may have, whatever the shell prepared (`crew.md`
/// TOOL-1, ISO-2, ISO-3; `task.md` MEET-1).
pub(crate) fn prompt_of(role: Role, mut prompt: Prompt) -> Prompt {
    let is_report = |tool: &ToolDefinition| tool.name == report::REPORT_TOOL;
    match role {
        Role::Owner => prompt.tools.retain(|tool| !is_report(tool)),
        Role::Child => {
            prompt.tools.retain(|tool| !crew_crew::tools::is_owner_tool(&tool.name));
            if !prompt.tools.iter().any(is_report) {
                prompt.tools.push(report::definition());
            }
        }
        Role::Task => prompt
            .tools
            .retain(|tool| !is_report(tool) && !crew_crew::tools::is_owner_tool(&tool.name)),
    }
    prompt
}
