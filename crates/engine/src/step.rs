//! One event is taken, everything that follows from it is routed, and the
//! effects come out.

use std::collections::{BTreeMap, BTreeSet};

use crew_agent::{Agent, Input, Loaded, Prompt, Settings};
use crew_base::entry::EntryBody;
use crew_base::id::{EntryId, Ids, RunId, SessionId};
use crew_base::limits::SHUTDOWN_GRACE_MS;
use crew_base::message::{CustomMessage, ToolCall};
use crew_base::session::DeliveryId;
use crew_base::time::Time;
use crew_base::tool::{ToolDefinition, ToolOutcome};
use crew_crew::{Crew, Ending, Owner};
use crew_cycle::report;

use crate::api::{Command, CommandId, Refusal, SubagentView, Update};
use crate::effect::{Effect, OpenPlan, Source};
use crate::event::{Event, Opened};
use crate::pacing::Pacing;

/// What the host's settings say to the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// For every session; mention expansion is added for owners.
    pub settings: Settings,
    /// The home directory, shown as `~` in activity.
    pub home: Option<String>,
}

/// All sessions and the crew.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) ids: Ids,
    pub(crate) now: Time,
    /// Boxed: a session is large, and inserting moves its neighbours.
    pub(crate) sessions: BTreeMap<SessionId, Box<Session>>,
    pub(crate) crew: Crew,
    pub(crate) pacing: Pacing,
    pub(crate) attached: Option<SessionId>,
    pub(crate) timers: BTreeSet<(Time, SessionId)>,
    pub(crate) discoveries: BTreeMap<RunId, Discovering>,
    /// A discovery of this very step, which later calls may share (CAT-8).
    pub(crate) joinable: Option<RunId>,
    /// Owners that are being left, and who asked for it.
    pub(crate) leaving: BTreeMap<SessionId, CommandId>,
    /// Files of owners that were left, for adoption by a fork (OWN-4).
    pub(crate) left_files: BTreeMap<SessionId, String>,
    /// Entries of owners that were left which may turn out not to be written,
    /// with the results they record (`crew.md` SAFE-4).
    pub(crate) tails: BTreeMap<SessionId, Vec<(EntryId, Option<DeliveryId>)>>,
    pub(crate) quitting: Option<Time>,
    pub(crate) exited: bool,
    pub(crate) was_at_rest: bool,
    pub(crate) out: Vec<Effect>,
}

/// A session and what the engine knows beside its agent.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) agent: Agent,
    pub(crate) role: Role,
    pub(crate) state: State,
    pub(crate) file: Option<String>,
    pub(crate) timer: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Owner,
    Child,
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Being prepared; for an owner, the command that asked for it.
    Opening {
        command: Option<CommandId>,
        adopts: Option<SessionId>,
    },
    Open,
    /// Disposed of once its agent is idle.
    Closing {
        ending: Option<Ending>,
    },
}

/// Calls that wait for one discovery.
#[derive(Clone, Debug)]
pub(crate) struct Discovering {
    pub(crate) session: SessionId,
    pub(crate) calls: Vec<(RunId, ToolCall)>,
}

impl Engine {
    /// An engine without sessions; equal seeds and events give equal effects.
    pub fn new(seed: u64, config: EngineConfig) -> Engine {
        Engine {
            config,
            ids: Ids::new(seed),
            now: Time(0),
            sessions: BTreeMap::new(),
            crew: Crew::default(),
            pacing: Pacing::default(),
            attached: None,
            timers: BTreeSet::new(),
            discoveries: BTreeMap::new(),
            joinable: None,
            leaving: BTreeMap::new(),
            left_files: BTreeMap::new(),
            tails: BTreeMap::new(),
            quitting: None,
            exited: false,
            was_at_rest: false,
            out: Vec::new(),
        }
    }

    /// Bounds the requests under way at each provider
    /// (`crew.maxConcurrentRequests`, `product.md` P-13).
    pub fn bound_requests(&mut self, bound: Option<usize>) {
        self.pacing.set_bound(bound);
    }

    /// An id for a session to be opened.
    pub fn fresh_session_id(&mut self, now: Time) -> SessionId {
        self.ids.session(now)
    }

    /// Takes one event; total, never fails.
    #[must_use]
    pub fn step(&mut self, now: Time, event: Event) -> Vec<Effect> {
        self.now = now.max(self.now);
        self.joinable = None;
        match event {
            Event::Command(id, command) => self.command(id, command),
            Event::SessionOpened { session, result } => self.session_opened(&session, result),
            Event::Model { session, run, events } => {
                self.pace(run, &events);
                self.feed(&session, Input::Model { run, events });
            }
            Event::ToolProgress { session, run, progress } => {
                self.feed(&session, Input::ToolProgress { run, progress });
            }
            Event::ToolEnded { session, run, outcome } => {
                self.feed(&session, Input::ToolEnded { run, outcome });
            }
            Event::Discovered { run, discovery } => self.discovered(run, &discovery),
            Event::AppendFailed { session, entry, error } => {
                self.append_failed(&session, entry, error);
            }
            Event::Tick => self.tick(),
        }
        self.route_crew();
        let released = self.pacing.release(self.now);
        self.out.extend(released.into_iter().map(Effect::from));
        self.rest();
        std::mem::take(&mut self.out)
    }

    /// When to send [`Event::Tick`]; a moment in the past means at once, on
    /// the next turn of the scheduler (`crew.md` DEL-8).
    pub fn deadline(&self) -> Option<Time> {
        if self.crew.flush_is_pending() {
            return Some(self.now);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.pacing.deadline(), self.quitting].into_iter().flatten().min()
    }

    /// The session that faces show.
    pub fn attached(&self) -> Option<&SessionId> {
        self.attached.as_ref()
    }

    /// Open subagents of an owner in creation order.
    pub fn subagents(&self, owner: &SessionId) -> Vec<SubagentView> {
        let view = |subagent: &crew_crew::Subagent| SubagentView {
            subagent: subagent.id.to_string(),
            definition: subagent.definition.name.clone(),
            brief: subagent.brief.clone(),
            status: subagent.status,
            model: subagent.model.clone(),
            worked_ms: subagent.worked_ms(self.now),
            tool_calls: subagent.activity.total(),
        };
        self.crew.open_of(owner).map(view).collect()
    }

    /// The crew, for invariants under test.
    pub fn crew(&self) -> &Crew {
        &self.crew
    }

    /// A session's agent, for invariants under test.
    pub fn agent(&self, session: &SessionId) -> Option<&Agent> {
        self.sessions.get(session).map(|session| &session.agent)
    }

    /// Sessions that exist, opening and closing ones included.
    pub fn session_ids(&self) -> impl Iterator<Item = &SessionId> {
        self.sessions.keys()
    }

    fn command(&mut self, id: CommandId, command: Command) {
        if self.quitting.is_some() || self.exited {
            self.answer(id, Err(Refusal::Ending));
            return;
        }
        let result = match command {
            Command::Open { session, source, adopts } => {
                self.open(id, session, source, adopts);
                return;
            }
            Command::Attach(session) => self.attach(&session),
            Command::Detach(session) => self.detach(&session),
            Command::Prompt(session, message) => {
                self.prompt(id, &session, message);
                return;
            }
            Command::PromptOrSteer(session, message) => {
                self.prompt_or(id, &session, message, Input::Steer);
                return;
            }
            Command::PromptOrFollowUp(session, message) => {
                self.prompt_or(id, &session, message, Input::FollowUp);
                return;
            }
            Command::Steer(session, message) => self.queue(&session, Input::Steer(message)),
            Command::FollowUp(session, message) => self.queue(&session, Input::FollowUp(message)),
            Command::Abort(session) => self.queue(&session, Input::Abort),
            Command::Compact(session, instructions) => {
                self.queue(&session, Input::Compact { instructions })
            }
            Command::Control(session, control) => self.control(&session, control),
            Command::Inject(session, message) => {
                self.queue(&session, Input::InjectAfterRun(message))
            }
            Command::Leave(session) => {
                self.leave(id, &session);
                return;
            }
            Command::AbortCrew(session, origin) => self.open_owner(&session).map(|()| {
                self.crew.abort_all(self.now, &session, origin);
            }),
            Command::AbortSubagent(session, subagent) => self.abort_subagent(&session, &subagent),
            Command::Respond(session, subagent, message) => {
                self.respond(&session, &subagent, &message)
            }
            Command::Done(session, subagent) => self.done(&session, &subagent),
            Command::CloseAwaiting(session) => {
                self.open_owner(&session).map(|()| self.crew.close_awaiting(&session))
            }
            Command::Quit => {
                self.quit();
                Ok(())
            }
        };
        self.answer(id, result);
    }

    pub(crate) fn answer(&mut self, command: CommandId, result: Result<(), Refusal>) {
        self.out.push(Effect::Update(Update::Answered { command, result }));
    }

    fn open(
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
        let opening = Session { agent, role: Role::Owner, state, file: None, timer: None };
        self.sessions.insert(session.clone(), Box::new(opening));
        self.out.push(Effect::OpenSession(OpenPlan::Owner { session, source }));
    }

    fn session_opened(&mut self, id: &SessionId, result: Result<Box<Opened>, String>) {
        let Some(session) = self.sessions.get(id) else { return };
        let State::Opening { command, adopts } = session.state.clone() else { return };
        match (session.role, result) {
            (Role::Child, Err(error)) => {
                self.crew.open_failed(self.now, id, &error);
            }
            (Role::Owner, Err(error)) => {
                self.sessions.remove(id);
                if let Some(command) = command {
                    self.answer(command, Err(Refusal::OpenFailed(error)));
                }
            }
            (Role::Child, Ok(opened)) => {
                let model = opened.model.as_ref().map(|model| model.reference());
                self.install(id, *opened);
                self.crew.opened(id, model.as_deref().unwrap_or_default());
            }
            (Role::Owner, Ok(opened)) => {
                self.install(id, *opened);
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

    fn install(&mut self, id: &SessionId, opened: Opened) {
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
        if session.role == Role::Child
            && let Some(subagent) = self.crew.of_session(id)
        {
            session.agent.become_child(subagent.definition.compaction);
        }
        session.agent.want_prompt(prompt_of(session.role, opened.prompt));
        session.file = opened.file;
        session.state = State::Open;
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
        }
    }

    fn open_owner(&self, id: &SessionId) -> Result<(), Refusal> {
        match self.sessions.get(id) {
            Some(session) if session.role == Role::Owner && session.is_open() => Ok(()),
            Some(_) | None => Err(Refusal::UnknownSession),
        }
    }

    fn attach(&mut self, id: &SessionId) -> Result<(), Refusal> {
        self.open_owner(id)?;
        if let Some(other) = self.attached.clone().filter(|other| other != id) {
            self.detach(&other)?;
        }
        self.attached = Some(id.clone());
        self.was_at_rest = false;
        self.crew.attach(id);
        Ok(())
    }

    pub(crate) fn detach(&mut self, id: &SessionId) -> Result<(), Refusal> {
        if self.attached.as_ref() != Some(id) {
            return Err(Refusal::NotAttached);
        }
        self.attached = None;
        if let Some(session) = self.sessions.get_mut(id) {
            drop(session.agent.take_results(None));
        }
        self.crew.detach(id);
        self.feed(id, Input::Abort);
        Ok(())
    }

    pub(crate) fn may_prompt(&self, session: &SessionId) -> Result<(), Refusal> {
        let agent = self.attached_agent(session)?;
        if !agent.is_idle() {
            return Err(Refusal::Busy);
        }
        if agent.model().is_none() {
            return Err(Refusal::NoModel);
        }
        Ok(())
    }

    pub(crate) fn queue(&mut self, session: &SessionId, input: Input) -> Result<(), Refusal> {
        self.attached_agent(session)?;
        self.feed(session, input);
        Ok(())
    }

    pub(crate) fn attached_agent(&self, id: &SessionId) -> Result<&Agent, Refusal> {
        let session = self.sessions.get(id).ok_or(Refusal::UnknownSession)?;
        if self.attached.as_ref() == Some(id) {
            Ok(&session.agent)
        } else {
            Err(Refusal::NotAttached)
        }
    }

    fn tick(&mut self) {
        while let Some((at, id)) = self.timers.first().cloned()
            && at <= self.now
        {
            self.timers.pop_first();
            if let Some(session) = self.sessions.get_mut(&id) {
                session.timer = None;
            }
            self.feed(&id, Input::Tick);
        }
        if self.crew.flush_is_pending() {
            self.crew.flush(self.now);
        }
        if self.quitting.is_some_and(|until| until <= self.now) {
            let left: Vec<_> = self.sessions.keys().cloned().collect();
            left.iter().for_each(|id| self.finish_closing(id));
        }
    }

    /// Takes back an entry; a run that wrote it tells so itself, an idle owner
    /// is told of here.
    fn append_failed(&mut self, id: &SessionId, entry: EntryId, error: String) {
        if let Some(tail) = self.tails.get(id)
            && let Some(first) = tail.iter().position(|(known, _)| *known == entry)
        {
            let refused: Vec<_> = tail[first..].iter().filter_map(|(_, result)| *result).collect();
            self.tails.remove(id);
            self.crew.refused(id, &refused);
            return;
        }
        let is_told = |session: &Session| {
            session.agent.is_idle()
                && session.agent.record().unwritten().any(|(known, _)| *known == entry)
        };
        let tell = self.attached.as_ref() == Some(id)
            && self.sessions.get(id).is_some_and(|session| is_told(session));
        self.feed(id, Input::AppendFailed { entry, error: error.clone() });
        if tell {
            self.out.push(Effect::Update(Update::RunFailed { session: id.clone(), error }));
        }
    }

    fn quit(&mut self) {
        self.quitting = Some(self.now + SHUTDOWN_GRACE_MS);
        self.attached = None;
        self.crew.quit(self.now);
        self.route_crew();
        let owners: Vec<_> = self.sessions.keys().cloned().collect();
        for id in owners {
            self.close(&id, None);
        }
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

    fn dispose(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        if let Some(at) = session.timer {
            self.timers.remove(&(at, id.clone()));
        }
        if let State::Opening { command: Some(command), .. } = session.state {
            self.answer(command, Err(Refusal::Ending));
        }
        self.discoveries.retain(|_, waiting| waiting.session != *id);
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
    fn rest(&mut self) {
        if self.quitting.is_some() && self.sessions.is_empty() && !self.exited {
            self.exited = true;
            self.quitting = None;
            self.out.push(Effect::Exit);
            return;
        }
        let Some(id) = self.attached.clone() else { return };
        let idle = self.sessions.get(&id).is_some_and(|session| {
            session.is_open() && session.agent.is_idle() && !session.agent.has_results()
        });
        let at_rest = idle && !self.crew.flush_is_pending() && self.crew.is_quiet(&id);
        if at_rest && !self.was_at_rest {
            self.out.push(Effect::Update(Update::AtRest(id)));
        }
        self.was_at_rest = at_rest;
    }
}

impl Session {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(crate) fn newest_snapshot(&self) -> Option<String> {
        let newest: Option<&CustomMessage> =
            self.agent.record().newest_custom(crew_crew::status_context::SNAPSHOT);
        newest.map(|message| message.content.text())
    }

    /// A session that will be prepared for a child.
    pub(crate) fn child(id: &SessionId, settings: Settings) -> Session {
        let agent = Agent::new(id.clone(), Loaded::default(), settings);
        let state = State::Opening { command: None, adopts: None };
        Session { agent, role: Role::Child, state, file: None, timer: None }
    }
}

/// The tools that a role may have, whatever the shell prepared (`crew.md`
/// TOOL-1, ISO-2, ISO-3).
fn prompt_of(role: Role, mut prompt: Prompt) -> Prompt {
    let is_report = |tool: &ToolDefinition| tool.name == report::REPORT_TOOL;
    match role {
        Role::Owner => prompt.tools.retain(|tool| !is_report(tool)),
        Role::Child => {
            prompt.tools.retain(|tool| !crew_crew::tools::is_owner_tool(&tool.name));
            if !prompt.tools.iter().any(is_report) {
                prompt.tools.push(report::definition());
            }
        }
    }
    prompt
}

/// The error outcome of a call that ended before it ran.
pub(crate) fn aborted_outcome() -> ToolOutcome {
    ToolOutcome::error("the operation was aborted")
}
