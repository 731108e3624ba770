//! The engine played by hand: what models say and tools give is a line of the
//! test, the rest of the shell is obedient.

mod tasks;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crew_agent::Settings;
use crew_base::definition::Discovery;
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::message::{Block, Message, SharedMessage, ToolCall};
use crew_base::model::{ModelErrorKind, ModelEvent, ModelRequest, ThinkingLevel};
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_engine::api::task::{OpenTask, Setup};
use crew_engine::api::{AbortOrigin, Command, CommandId, Control, Refusal, Update};
use crew_engine::{Effect, Engine, EngineConfig, Event, OpenPlan, Opened, Source, TaskWork};
use serde_json::{Value, json};

use crate::fixtures;
use crate::trace;

/// An engine with the owner `A` open and attached.
pub struct Play {
    /// The machine.
    pub engine: Engine,
    /// The clock.
    pub now: Time,
    /// What discovery finds.
    pub discovery: Discovery,
    /// Whether sessions open and definitions are found at once; else with
    /// [`Play::opens`] and [`Play::discovers`].
    pub is_obedient: bool,
    /// Whether cancelled tools go on for ever.
    pub hangs: bool,
    coming: VecDeque<Event>,
    openings: Vec<(SessionId, Opened)>,
    discoveries: Vec<RunId>,
    /// Readings of branches that wait: session, run, leaf, chosen entry.
    pub readings: Vec<(SessionId, RunId, Option<EntryId>, EntryId)>,
    /// What is read for calls of `task`.
    pub setup: Setup,
    /// Work for the `task` tool that waits for its end; an obedient shell does
    /// at once what can be done.
    pub works: Vec<TaskWork>,
    /// All work for the `task` tool so far.
    pub worked: Vec<TaskWork>,
    /// Plans of `task` children in order.
    pub task_plans: Vec<OpenTask>,
    /// Lifecycle of `task` children: phase and id.
    pub task_updates: Vec<String>,
    /// Calls that ran outside, in order.
    pub ran: Vec<(SessionId, ToolCall)>,
    streams: BTreeMap<SessionId, RunId>,
    requests: BTreeMap<SessionId, Vec<ModelRequest>>,
    tools: BTreeMap<SessionId, Vec<RunId>>,
    written: BTreeMap<SessionId, Vec<Entry>>,
    /// Sessions in the order they were closed.
    pub closed: Vec<SessionId>,
    /// The engine gave `Exit`.
    pub exited: bool,
    log: Vec<String>,
    calls: u64,
    commands: u64,
    answers: BTreeMap<CommandId, Result<(), Refusal>>,
}

/// A subagent and its session.
#[derive(Clone, Debug)]
pub struct Child {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: SessionId,
}

/// The first owner.
pub fn a() -> SessionId {
    SessionId::from("A")
}

/// The arguments of a spawn.
pub fn spawn_arguments(brief: &str) -> Value {
    let task = json!({"goal": format!("goal of {brief}"), "context": [], "instructions": ["i"]});
    json!({"subagent": "scout", "brief": brief, "task": task})
}

/// The arguments of a good report.
pub fn report(text: &str) -> Value {
    json!({"outcome": "completed", "report": text})
}

/// Stops every subagent of an owner, as the person.
pub fn abort_crew(owner: &str) -> Command {
    Command::AbortCrew(SessionId::from(owner), AbortOrigin::Person)
}

/// Types into the running run of an owner.
pub fn steer(owner: &str, text: &str) -> Command {
    Command::Steer(SessionId::from(owner), Message::user_text(text, Time(0)))
}

/// A tick of the clock.
pub fn tick() -> Event {
    Event::Tick
}

/// What [`Play::command`] gives for a command that has no answer yet.
pub fn no_answer() -> Refusal {
    Refusal::Busy
}

impl Default for Play {
    fn default() -> Play {
        let mut play = Play::empty();
        assert_eq!(play.open("A", None), Ok(()));
        play
    }
}

impl Play {
    /// An engine without sessions.
    pub fn empty() -> Play {
        let config = EngineConfig { settings: Settings::default(), home: None, depth: 0 };
        Play {
            engine: Engine::new(7, config),
            now: Time(1_796_046_183_000),
            discovery: fixtures::discovery(&["scout"]),
            is_obedient: true,
            hangs: false,
            coming: VecDeque::new(),
            openings: Vec::new(),
            discoveries: Vec::new(),
            readings: Vec::new(),
            setup: Setup::default(),
            works: Vec::new(),
            worked: Vec::new(),
            task_plans: Vec::new(),
            task_updates: Vec::new(),
            ran: Vec::new(),
            streams: BTreeMap::new(),
            requests: BTreeMap::new(),
            tools: BTreeMap::new(),
            written: BTreeMap::new(),
            closed: Vec::new(),
            exited: false,
            log: Vec::new(),
            calls: 0,
            commands: 0,
            answers: BTreeMap::new(),
        }
    }

    /// Takes one event and performs what follows, and what follows from that.
    pub fn event(&mut self, event: Event) {
        self.coming.push_back(event);
        while let Some(event) = self.coming.pop_front() {
            let effects = self.engine.step(self.now, event);
            for effect in effects {
                self.perform(effect);
            }
        }
        if self.is_obedient {
            while self.discovers() || self.opens(None) {}
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::OpenSession(plan) => {
                let (session, tools) = match plan {
                    OpenPlan::Owner { session, .. } => (session, fixtures::owner_tools()),
                    OpenPlan::Child(open) => (open.session, fixtures::child_tools()),
                    OpenPlan::Task(open) => {
                        let (session, tools) = (open.session.clone(), fixtures::task_tools(&open));
                        self.task_plans.push(*open);
                        (session, tools)
                    }
                };
                let opened = fixtures::opened(&format!("/{session}.jsonl"), tools);
                self.openings.push((session, opened));
            }
            Effect::Append { session, entry } => {
                self.log.push(format!("{session} {}", trace::body(&entry)));
                self.written.entry(session).or_default().push(entry);
            }
            Effect::StartModel { session, run, request } => {
                self.log.push(format!("{session} asks"));
                self.streams.insert(session.clone(), run);
                self.requests.entry(session).or_default().push(request);
            }
            Effect::RunTool { session, run, call } => {
                self.tools.entry(session.clone()).or_default().push(run);
                self.ran.push((session, call));
            }
            Effect::Discover { run, .. } => self.discoveries.push(run),
            Effect::ReadBranch { session, run, from, to } => {
                self.log.push(format!("{session} reads a branch"));
                self.readings.push((session, run, from, to));
            }
            Effect::Cancel { session, run } => {
                self.log.push(format!("{session} cancels"));
                let tools = self.tools.entry(session.clone()).or_default();
                if let Some(at) = tools.iter().position(|known| *known == run && !self.hangs) {
                    tools.remove(at);
                    let outcome = ToolOutcome::error("the operation was aborted");
                    self.coming.push_back(Event::ToolEnded { session, run, outcome });
                }
            }
            Effect::Task(work) => self.take_work(work),
            Effect::CloseSession { session } => {
                if self.is_obedient {
                    self.coming.push_back(Event::SessionClosed { session: session.clone() });
                }
                self.closed.push(session);
            }
            Effect::Update(Update::Task(update)) => {
                self.task_updates.push(format!("{} {}", update.phase.word(), update.id));
            }
            Effect::Update(Update::Answered { command, result }) => {
                self.answers.insert(command, result);
            }
            Effect::Update(Update::AtRest(session)) => self.log.push(format!("{session} at rest")),
            Effect::Update(Update::RunFailed { session, error }) => {
                self.log.push(format!("{session} failed: {error}"));
            }
            Effect::Update(_) => {}
            Effect::Exit => self.exited = true,
        }
    }

    /// Gives a command and tells its answer.
    pub fn command(&mut self, command: Command) -> Result<(), Refusal> {
        let id = self.give(command);
        self.answer(id).unwrap_or(Err(no_answer()))
    }

    /// Gives a command.
    pub fn give(&mut self, command: Command) -> CommandId {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.event(Event::Command(id, command));
        id
    }

    /// The answer of a command, if it was answered.
    pub fn answer(&self, id: CommandId) -> Option<Result<(), Refusal>> {
        self.answers.get(&id).cloned()
    }

    /// Attaches an open owner.
    pub fn attach(&mut self, owner: &str) -> Result<(), Refusal> {
        self.command(Command::Attach(SessionId::from(owner)))
    }

    /// Detaches the attached owner.
    pub fn detach(&mut self, owner: &str) -> Result<(), Refusal> {
        self.command(Command::Detach(SessionId::from(owner)))
    }

    /// Aborts the run of the attached owner.
    pub fn abort(&mut self, owner: &str) -> Result<(), Refusal> {
        self.command(Command::Abort(SessionId::from(owner)))
    }

    /// Gives the attached owner another model.
    pub fn choose_model(&mut self, owner: &str, id: &str) -> Result<(), Refusal> {
        let control = Control::Model(fixtures::model(id), ThinkingLevel::Off);
        self.command(Command::Control(SessionId::from(owner), control))
    }

    /// Opens an owner, maybe as a fork, and attaches it.
    pub fn open(&mut self, name: &str, adopts: Option<&str>) -> Result<(), Refusal> {
        let session = SessionId::from(name);
        let source = Source::New { name: None };
        self.command(Command::Open { session, source, adopts: adopts.map(SessionId::from) })
    }

    /// Ends the oldest opening: well, or with an error. Tells whether one was.
    pub fn opens(&mut self, error: Option<&str>) -> bool {
        if self.openings.is_empty() {
            return false;
        }
        let (session, opened) = self.openings.remove(0);
        let result = error.map_or(Ok(Box::new(opened)), |error| Err(error.to_owned()));
        self.event(Event::SessionOpened { session, result });
        true
    }

    /// The oldest opening, to change what it will give.
    pub fn opening(&mut self) -> &mut (SessionId, Opened) {
        self.openings.first_mut().expect("a session is being opened")
    }

    /// Ends the oldest discovery. Tells whether one was.
    pub fn discovers(&mut self) -> bool {
        if self.discoveries.is_empty() {
            return false;
        }
        let run = self.discoveries.remove(0);
        self.event(Event::Discovered { run, discovery: Arc::new(self.discovery.clone()) });
        true
    }

    /// Starts a run of an owner.
    pub fn prompt(&mut self, owner: &str, text: &str) -> Result<(), Refusal> {
        let message = Message::user_text(text, self.now);
        self.command(Command::Prompt(SessionId::from(owner), message))
    }

    /// The model of a session says something.
    pub fn stream(&mut self, session: &SessionId, events: Vec<ModelEvent>) {
        let run = *self.streams.get(session).expect("the session asked its model");
        self.event(Event::Model { session: session.clone(), run, events });
    }

    /// The model of a session answers with a text.
    pub fn say(&mut self, session: &SessionId, text: &str) {
        self.stream(session, fixtures::answer(vec![Block::text(text)]));
    }

    /// The model of a session calls tools.
    pub fn call(&mut self, session: &SessionId, calls: &[(&str, Value)]) {
        let mut blocks = Vec::new();
        for (name, arguments) in calls {
            self.calls += 1;
            let id = format!("call-{}", self.calls);
            blocks.push(Block::ToolCall(fixtures::call(&id, name, arguments)));
        }
        self.stream(session, fixtures::answer(blocks));
    }

    /// The request of a session fails.
    pub fn fail(&mut self, session: &SessionId, kind: ModelErrorKind, status: Option<u16>) {
        self.stream(session, vec![fixtures::failed(kind, status)]);
    }

    /// The oldest running tool of a session ends.
    pub fn tool_ends(&mut self, session: &SessionId, outcome: ToolOutcome) {
        let run = self.tools.entry(session.clone()).or_default().remove(0);
        self.event(Event::ToolEnded { session: session.clone(), run, outcome });
    }

    /// Moves the clock to the deadline and sends the tick.
    pub fn tick(&mut self) {
        let deadline = self.engine.deadline().expect("something is waited for");
        self.now = self.now.max(deadline);
        self.event(Event::Tick);
    }

    /// Lets time pass until nothing waits for it.
    pub fn wait(&mut self) {
        while self.engine.deadline().is_some() {
            self.tick();
        }
    }

    /// An idle owner spawns these and comes to rest again; their models are
    /// asked.
    pub fn spawn(&mut self, owner: &str, briefs: &[&str]) -> Vec<Child> {
        let session = SessionId::from(owner);
        let before = self.engine.subagents(&session).len();
        assert_eq!(self.prompt(owner, "go"), Ok(()));
        let calls: Vec<_> = briefs.iter().map(|b| ("crew_spawn", spawn_arguments(b))).collect();
        self.call(&session, &calls);
        self.say(&session, "they work");
        self.children(owner).split_off(before)
    }

    /// Open subagents of an owner.
    pub fn children(&self, owner: &str) -> Vec<Child> {
        let owner = SessionId::from(owner);
        let open = self.engine.crew().open_of(&owner);
        open.map(|one| Child { id: one.id.to_string(), session: one.session.clone() }).collect()
    }

    /// A child hands in its report.
    pub fn report(&mut self, child: &Child, text: &str) {
        self.call(&child.session, &[("crew_report", report(text))]);
    }

    /// Status words of an owner's open subagents.
    pub fn statuses(&self, owner: &str) -> Vec<&'static str> {
        let views = self.engine.subagents(&SessionId::from(owner));
        views.iter().map(|view| view.status.word()).collect()
    }

    /// What was written to a session, one line each.
    pub fn written(&self, session: &SessionId) -> Vec<String> {
        self.written.get(session).into_iter().flatten().map(trace::body).collect()
    }

    /// Contents of the custom messages of a type in a session.
    pub fn customs(&self, owner: &str, wanted: &str) -> Vec<String> {
        let entries = self.written.get(&SessionId::from(owner)).into_iter().flatten();
        let content = |entry: &Entry| match &entry.body {
            EntryBody::CustomMessage { custom_type, content, .. } if custom_type == wanted => {
                Some(content.text())
            }
            EntryBody::Custom { custom_type, data } if custom_type == wanted => {
                Some(data.as_ref().map_or(String::new(), |data| data.text().to_owned()))
            }
            _ => None,
        };
        entries.filter_map(content).collect()
    }

    /// Text of the newest result of a tool in a session.
    pub fn tool_result(&self, session: &SessionId) -> String {
        let entries = self.written.get(session).into_iter().flatten();
        let text = |entry: &Entry| match &entry.body {
            EntryBody::Message { message: Message::ToolResult(result) } => {
                Some(result.content.iter().filter_map(Block::as_text).collect())
            }
            _ => None,
        };
        entries.filter_map(text).next_back().unwrap_or_default()
    }

    /// The newest entry of a custom type in a session.
    pub fn last_entry(&self, session: &SessionId, wanted: &str) -> EntryId {
        let is_wanted = |entry: &&Entry| {
            matches!(&entry.body, EntryBody::CustomMessage { custom_type, .. }
                | EntryBody::Custom { custom_type, .. } if custom_type == wanted)
        };
        let found = self.entries(session).iter().rev().find(is_wanted);
        found.expect("such an entry was written").id.clone()
    }

    /// An entry turns out not to be written.
    pub fn append_fails(&mut self, session: &SessionId, entry: EntryId) {
        let error = "disk full".to_owned();
        self.event(Event::AppendFailed { session: session.clone(), entry, error });
    }

    /// The written entries of a session.
    pub fn entries(&self, session: &SessionId) -> &[Entry] {
        self.written.get(session).map_or(&[], Vec::as_slice)
    }

    /// Requests that a session made.
    pub fn requests(&self, session: &SessionId) -> &[ModelRequest] {
        self.requests.get(session).map_or(&[], Vec::as_slice)
    }

    /// Messages of the newest request of a session, without the system ones.
    pub fn asked(&self, session: &SessionId) -> Vec<String> {
        let request = self.requests(session).last().expect("the session asked its model");
        let is_told = |message: &&SharedMessage| !matches!(message.as_ref(), Message::System(_));
        request.messages.iter().filter(is_told).map(|one| trace::message_line(one)).collect()
    }

    /// The lines since the last look.
    pub fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}
