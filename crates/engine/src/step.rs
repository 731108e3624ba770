//! One event is taken, everything that follows from it is routed, and the
//! effects come out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crew_agent::{Agent, Input, Settings};
use crew_base::id::{EntryId, Ids, RunId, SessionId};
use crew_base::message::{CustomMessage, ToolCall};
use crew_base::session::DeliveryId;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_crew::{Crew, Ending};
use crew_task::Tasks;
use crew_task::approval::Approval;

use crate::api::{Command, CommandId, Refusal, Update};
use crate::effect::Effect;
use crate::event::Event;
use crate::pacing::Pacing;
use crate::wording::Wording;

/// What the host's settings say to the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// For every session; mention expansion is added for owners.
    pub settings: Settings,
    /// The home directory, shown as `~` in activity.
    pub home: Option<String>,
    /// How deep an owner of this process stands: 0, or more where a command of
    /// another session started the process (C064).
    pub depth: u32,
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
    pub(crate) tasks: Tasks,
    pub(crate) pacing: Pacing,
    /// Requests for commit messages, by stream.
    pub(crate) wordings: BTreeMap<RunId, Wording>,
    pub(crate) attached: Option<SessionId>,
    pub(crate) timers: BTreeSet<(Time, SessionId)>,
    pub(crate) discoveries: BTreeMap<RunId, Discovering>,
    /// A discovery of this very step, which later calls may share (CAT-8).
    pub(crate) joinable: Option<RunId>,
    /// Calls of `task` that wait for a setup, and the setup of this very step.
    pub(crate) setups: BTreeMap<RunId, Discovering>,
    /// Calls of crew tools that wait for the person (`task.md` OBS-3).
    pub(crate) asked: BTreeMap<RunId, (SessionId, ToolCall)>,
    pub(crate) joinable_setup: Option<RunId>,
    /// Calls of `task` children that `task` answers at the end of this step.
    pub(crate) child_calls: VecDeque<(SessionId, RunId, ToolCall)>,
    /// Owners that are being left, and who asked for it.
    pub(crate) leaving: BTreeMap<SessionId, CommandId>,
    /// Moves in the tree that are under way, and who asked for them.
    pub(crate) moves: BTreeMap<SessionId, CommandId>,
    /// Files of owners that were left, for adoption by a fork (OWN-4).
    pub(crate) left_files: BTreeMap<SessionId, String>,
    /// Entries of owners that were left which may turn out not to be written,
    /// with the results they record (`crew.md` SAFE-4).
    pub(crate) tails: BTreeMap<SessionId, Vec<(EntryId, Option<DeliveryId>)>>,
    /// Words of the person that subagents have not taken yet.
    pub(crate) steers: crate::steer::Steers,
    pub(crate) untold: crate::steer::Untold,
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
    /// What it may do unasked; the shell asks about its own tools.
    pub(crate) approval: Approval,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Owner,
    /// Of the crew.
    Child,
    /// Of a call of `task`.
    Task,
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
            tasks: Tasks::default(),
            pacing: Pacing::default(),
            wordings: BTreeMap::new(),
            attached: None,
            timers: BTreeSet::new(),
            discoveries: BTreeMap::new(),
            joinable: None,
            setups: BTreeMap::new(),
            asked: BTreeMap::new(),
            joinable_setup: None,
            child_calls: VecDeque::new(),
            leaving: BTreeMap::new(),
            moves: BTreeMap::new(),
            left_files: BTreeMap::new(),
            tails: BTreeMap::new(),
            steers: BTreeMap::new(),
            untold: BTreeMap::new(),
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
        self.joinable_setup = None;
        if self.exited && !matches!(event, Event::Command(..)) {
            return Vec::new();
        }
        match event {
            Event::Command(id, command) => self.command(id, command),
            Event::SessionOpened { session, result } => self.session_opened(&session, result),
            Event::Model { session, run, events } => {
                self.pace(run, &events);
                if !self.wording_events(run, &events) {
                    self.feed(&session, Input::Model { run, events });
                }
            }
            Event::ToolProgress { session, run, progress } => {
                self.feed(&session, Input::ToolProgress { run, progress });
            }
            Event::ToolEnded { session, run, outcome } => {
                self.feed(&session, Input::ToolEnded { run, outcome });
            }
            Event::BranchRead { session, run, result } => {
                self.feed(&session, Input::BranchRead { run, result });
            }
            Event::Discovered { run, discovery } => self.discovered(run, &discovery),
            Event::AppendFailed { session, entry, error } => {
                self.append_failed(&session, entry, error);
            }
            Event::SessionClosed { session } => {
                self.tasks.closed(self.now, &mut self.ids, &session);
            }
            Event::TaskSetup { run, setup } => self.task_setup(run, &setup),
            Event::TaskAnswered { run, is_allowed } => self.answered_by_person(run, is_allowed),
            Event::TaskLeased { run, lease } => {
                self.tasks.leased(self.now, &mut self.ids, run, lease);
            }
            Event::TaskIsolated { session, result } => {
                self.tasks.isolated(self.now, &mut self.ids, &session, result);
            }
            Event::JobEnded { session, job, exit_code, output } => {
                self.tasks.job_ended(self.now, &session, &job, exit_code, &output);
            }
            Event::ArtifactWritten { session, path } => {
                self.tasks.written(self.now, &mut self.ids, &session, path);
            }
            Event::TaskDescribed { session, diff } => {
                self.tasks.described(self.now, &session, diff);
            }
            Event::TaskIntegrated { session, result } => {
                self.tasks.integrated(self.now, &mut self.ids, &session, result);
            }
            Event::Tick => self.tick(),
        }
        self.route_children();
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
        let all = [timer, self.pacing.deadline(), self.tasks.deadline(), self.quitting];
        all.into_iter().flatten().min()
    }

    /// The session that faces show.
    pub fn attached(&self) -> Option<&SessionId> {
        self.attached.as_ref()
    }

    /// The crew, for invariants under test.
    pub fn crew(&self) -> &Crew {
        &self.crew
    }

    /// Calls of `task` and their children, for invariants under test.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
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
            Command::Navigate { session, to, summary, label } => {
                self.navigate(id, &session, Input::Navigate { to, summary, label });
                return;
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
            Command::SteerSubagent(session, subagent, text) => {
                self.steer_subagent(id, &session, &subagent, text);
                return;
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

    fn open_owner(&self, id: &SessionId) -> Result<(), Refusal> {
        match self.sessions.get(id) {
            Some(session) if session.role == Role::Owner && session.is_open() => Ok(()),
            Some(_) | None => Err(Refusal::UnknownSession),
        }
    }

    pub(crate) fn attach(&mut self, id: &SessionId) -> Result<(), Refusal> {
        self.open_owner(id)?;
        if let Some(other) = self.attached.clone().filter(|other| other != id) {
            self.detach(&other)?;
        }
        self.attached = Some(id.clone());
        self.was_at_rest = false;
        self.tell_steers(id);
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
        self.tasks.tick(self.now, &mut self.ids);
        if self.quitting.is_some_and(|until| until <= self.now) {
            self.give_up();
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
        if self.is_lost_notice(id, &entry) {
            self.feed(id, Input::AppendLost { entry, error });
            return;
        }
        self.feed(id, Input::AppendFailed { entry, error: error.clone() });
        if tell {
            self.out.push(Effect::Update(Update::RunFailed { session: id.clone(), error }));
        }
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
}

/// The error outcome of a call that ended before it ran.
pub(crate) fn aborted_outcome() -> ToolOutcome {
    ToolOutcome::error("the operation was aborted")
}
