//! The fake shell and the scheduler.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crew_agent::{Loaded, Prompt, Settings};
use crew_base::definition::{
    DEFAULT_CHILD_TOOLS, Definition, Discovery, Source as DefinitionSource,
};
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{Ids, RunId, SessionId};
use crew_base::json::Raw;
use crew_base::message::{Content, Message};
use crew_base::model::{Api, ModelErrorKind, ModelSpec, Rates, ThinkingLevel};
use crew_base::time::Time;
use crew_base::tool::{ToolDefinition, ToolOutcome, ToolProgress};
use crew_engine::api::{self, AbortOrigin, Command, CommandId, CrewUpdate, Update, UpdateKind};
use crew_engine::{Effect, Engine, EngineConfig, Event, OpenPlan, Opened, Source};

use super::Summary;
use super::checks::Checks;
use super::reference::Reference;
use super::script::{Script, failed};

const STEPS_MAX: u64 = 20_000;
const COMMANDS: u64 = 40;
const OWNERS_MAX: usize = 3;

/// Where events come from; each gives them in its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Run(RunId),
    Other(u64),
}

pub(super) struct World {
    engine: Engine,
    rng: Ids,
    now: Time,
    script: Script,
    checks: Checks,
    reference: Reference,
    flights: BTreeMap<Origin, VecDeque<Event>>,
    hung: BTreeMap<RunId, SessionId>,
    /// Sessions whose last append failed and was not yet taken note of.
    broken: BTreeSet<SessionId>,
    owners: Vec<SessionId>,
    /// Forks that are being opened, and what they come from.
    adoptions: BTreeMap<SessionId, SessionId>,
    open: BTreeSet<SessionId>,
    commands_left: u64,
    commands: u64,
    others: u64,
    calm: bool,
    exited: bool,
    trace: Option<Vec<String>>,
    summary: Summary,
}

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> World {
        let config = EngineConfig { settings: Settings::default(), home: None };
        World {
            engine: Engine::new(seed, config),
            rng: Ids::new(seed ^ 0xC0FF_EE00_D15E_A5E5),
            now: Time(1_796_046_183_000),
            script: Script::new(),
            checks: Checks::default(),
            reference: Reference::default(),
            flights: BTreeMap::new(),
            hung: BTreeMap::new(),
            broken: BTreeSet::new(),
            owners: Vec::new(),
            adoptions: BTreeMap::new(),
            open: BTreeSet::new(),
            commands_left: COMMANDS,
            commands: 0,
            others: 0,
            calm: false,
            exited: false,
            trace: traced.then(Vec::new),
            summary: Summary::default(),
        }
    }

    pub(super) fn run(mut self) -> (Vec<String>, Result<Summary, String>) {
        let result = self.play();
        self.summary.settled = self.reference.settled();
        self.summary.delivered = self.reference.delivered();
        let summary = self.summary.clone();
        (self.trace.unwrap_or_default(), result.map(|()| summary))
    }

    fn play(&mut self) -> Result<(), String> {
        self.open_owner(None)?;
        while self.commands_left > 0 {
            self.turn()?;
        }
        self.calm = true;
        self.settle()?;
        for owner in self.owners.clone() {
            self.command(Command::Attach(owner))?;
            self.settle()?;
        }
        self.at_rest()?;
        self.reference.complete(self.now)?;
        self.command(Command::Quit)?;
        self.settle()?;
        if !self.exited {
            return Err("no exit after quit".to_owned());
        }
        match self.open.first() {
            None => Ok(()),
            Some(left) => Err(format!("session {left} was never closed")),
        }
    }

    /// Runs without new faults until nothing is in flight.
    fn settle(&mut self) -> Result<(), String> {
        loop {
            if self.summary.steps > STEPS_MAX {
                return Err("does not come to rest".to_owned());
            }
            for (run, session) in std::mem::take(&mut self.hung) {
                let outcome = ToolOutcome::text("late");
                self.push(Origin::Run(run), Event::ToolEnded { session, run, outcome });
            }
            if self.deliver_one()? {
                continue;
            }
            match self.engine.deadline() {
                None => return Ok(()),
                Some(deadline) => {
                    self.now = self.now.max(deadline);
                    self.take(Event::Tick)?;
                }
            }
        }
    }

    /// One scheduler turn: an event in flight, a deadline, or a command.
    fn turn(&mut self) -> Result<(), String> {
        if self.summary.steps > STEPS_MAX {
            return Err("does not make progress".to_owned());
        }
        self.now = self.now + self.rng.below(50);
        if self.rng.below(12) == 0 {
            self.commands_left -= 1;
            return self.random_command();
        }
        if let Some(deadline) = self.engine.deadline()
            && (deadline <= self.now || self.rng.below(6) == 0)
        {
            self.now = self.now.max(deadline);
            return self.take(Event::Tick);
        }
        if self.deliver_one()? {
            return Ok(());
        }
        self.commands_left -= 1;
        self.random_command()
    }

    fn deliver_one(&mut self) -> Result<bool, String> {
        if self.flights.is_empty() {
            return Ok(false);
        }
        let at = self.rng.below(self.flights.len() as u64) as usize;
        let Some(origin) = self.flights.keys().nth(at).copied() else { return Ok(false) };
        let queue = self.flights.get_mut(&origin).and_then(VecDeque::pop_front);
        if self.flights.get(&origin).is_none_or(VecDeque::is_empty) {
            self.flights.remove(&origin);
        }
        let Some(event) = queue else { return Ok(false) };
        if !self.calm && self.rng.below(60) == 0 {
            // A repeated ending, some time later.
            self.summary.faults += 1;
            let origin = self.other();
            self.push(origin, event.clone());
        }
        self.take(event)?;
        Ok(true)
    }

    fn random_command(&mut self) -> Result<(), String> {
        let pick = self.rng.below(self.owners.len() as u64) as usize;
        let owner = self.owners[pick].clone();
        let shown = self.engine.attached().cloned().unwrap_or_else(|| owner.clone());
        let message = |now| Message::user_text("say", now);
        let command = match self.rng.below(14) {
            0..=3 => Command::Prompt(shown, message(self.now)),
            4 => Command::Steer(shown, message(self.now)),
            5 => Command::FollowUp(shown, message(self.now)),
            6 => Command::Abort(shown),
            7 | 8 => Command::Attach(owner),
            9 => Command::Detach(shown),
            10 if self.owners.len() < OWNERS_MAX => return self.open_owner(None),
            11 if self.owners.len() < OWNERS_MAX => return self.open_owner(Some(shown)),
            12 if self.rng.below(4) == 0 => Command::AbortCrew(shown, AbortOrigin::Person),
            _ => {
                if self.rng.below(40) == 0 {
                    self.now = self.now + 86_400_001;
                }
                Command::Prompt(shown, message(self.now))
            }
        };
        self.command(command)
    }

    fn command(&mut self, command: Command) -> Result<(), String> {
        self.commands += 1;
        self.take(Event::Command(CommandId(self.commands), command))
    }

    fn open_owner(&mut self, forked: Option<SessionId>) -> Result<(), String> {
        let session = self.engine.fresh_session_id(self.now);
        if let Some(previous) = &forked {
            // A host leaves the old session before it opens the fork.
            self.command(Command::Detach(previous.clone()))?;
        }
        self.owners.push(session.clone());
        self.adoptions.extend(forked.clone().map(|previous| (session.clone(), previous)));
        let source = Source::New { name: None };
        self.command(Command::Open { session: session.clone(), source, adopts: forked.clone() })?;
        // Openings of owners are not raced here: a face waits for them.
        while !self.flights.is_empty() && self.engine.attached() != Some(&session) {
            self.deliver_one()?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<(), String> {
        self.summary.steps += 1;
        let now = self.now.0;
        self.note(|| format!("{now} > {event:?}"));
        if let Event::AppendFailed { session, .. } = &event {
            self.broken.remove(session);
        }
        let adopting = match &event {
            Event::SessionOpened { session, result: Ok(_) } => Some(session.clone()),
            _ => None,
        };
        let adopted =
            adopting.and_then(|owner| self.adoptions.remove(&owner).map(|old| (old, owner)));
        if let Some((previous, owner)) = adopted {
            self.reference.adopted(&previous, &owner);
        }
        let effects = self.engine.step(self.now, event);
        for effect in effects {
            self.note(|| format!("    < {}", brief(&effect)));
            self.perform(effect)?;
        }
        self.invariants()
    }

    fn perform(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::OpenSession(plan) => self.open_session(plan),
            Effect::Append { session, entry } => self.append(session, entry)?,
            Effect::StartModel { session, run, request } => {
                if self.owners.contains(&session) && self.engine.attached() != Some(&session) {
                    return Err(format!("a run started in the detached owner {session}"));
                }
                if !self.broken.contains(&session) {
                    self.checks.request(&session, &request)?;
                }
                self.stream(&session, run);
            }
            Effect::RunTool { session, run, .. } => self.tool(session, run),
            Effect::Discover { run, .. } => {
                let origin = self.other();
                self.push(origin, Event::Discovered { run, discovery: Arc::new(discovery()) });
            }
            Effect::Cancel { session, run } => self.cancel(session, run),
            Effect::CloseSession { session } => {
                self.open.remove(&session);
                self.hung.retain(|_, owner| *owner != session);
            }
            Effect::Update(update) => self.update(&update)?,
            Effect::Exit => self.exited = true,
        }
        Ok(())
    }

    fn open_session(&mut self, plan: OpenPlan) {
        let (session, tools, fails) = match plan {
            OpenPlan::Owner { session, .. } => (session, owner_tools(), false),
            OpenPlan::Child(open) => {
                let fails = !self.calm && self.rng.below(15) == 0;
                (open.session, vec![tool("bash"), api::report_tool()], fails)
            }
        };
        self.open.insert(session.clone());
        let result = if fails {
            self.summary.faults += 1;
            Err("scripted: no credential".to_owned())
        } else {
            Ok(Box::new(Opened {
                file: Some(format!("/sessions/{session}.jsonl")),
                model: Some(model()),
                thinking: ThinkingLevel::Off,
                prompt: Prompt { sections: vec![("preamble".into(), "p".into())], tools },
                loaded: Loaded::default(),
                is_new: true,
                name: None,
            }))
        };
        let origin = self.other();
        self.push(origin, Event::SessionOpened { session, result });
    }

    /// Writes an entry, or fails and breaks what follows in that session.
    fn append(&mut self, session: SessionId, entry: Entry) -> Result<(), String> {
        if self.broken.contains(&session) {
            return Ok(());
        }
        if !self.calm && self.rng.below(400) == 0 {
            self.summary.faults += 1;
            self.checks.torn(&session);
            self.reference.append_failed(&session);
            self.broken.insert(session.clone());
            let error = "scripted: disk full".to_owned();
            let origin = self.other();
            self.push(origin, Event::AppendFailed { session, entry: entry.id, error });
            return Ok(());
        }
        match &entry.body {
            EntryBody::CustomMessage { custom_type, content: Content::Text(text), .. }
                if custom_type == "crew-result" =>
            {
                let subagent = field(text, "subagent_id");
                self.reference.recorded(self.now, &session, &subagent, false)?;
            }
            EntryBody::Custom { custom_type, data: Some(data) } if custom_type == "crew-abort" => {
                let subagent = field(data.text(), "subagentId");
                self.reference.recorded(self.now, &session, &subagent, true)?;
            }
            EntryBody::ContextEdit { .. } => self.checks.edited(&session),
            _ => {}
        }
        Ok(())
    }

    fn stream(&mut self, session: &SessionId, run: RunId) {
        if self.broken.contains(session) {
            let events = vec![failed(ModelErrorKind::Connection, None)];
            self.push(Origin::Run(run), Event::Model { session: session.clone(), run, events });
            return;
        }
        let reply = if self.owners.contains(session) {
            self.script.owner(&mut self.rng, &self.engine, session, self.calm)
        } else {
            self.script.child(&mut self.rng, self.calm)
        };
        for events in reply {
            self.push(Origin::Run(run), Event::Model { session: session.clone(), run, events });
        }
    }

    fn tool(&mut self, session: SessionId, run: RunId) {
        if !self.calm && self.rng.below(12) == 0 {
            self.summary.faults += 1;
            self.hung.insert(run, session);
            return;
        }
        if self.rng.below(4) == 0 {
            let progress = ToolProgress { content: Vec::new(), details: None };
            self.push(
                Origin::Run(run),
                Event::ToolProgress { session: session.clone(), run, progress },
            );
        }
        let outcome = if self.rng.below(6) == 0 {
            ToolOutcome::error("scripted failure")
        } else {
            ToolOutcome::text("ok")
        };
        self.push(Origin::Run(run), Event::ToolEnded { session, run, outcome });
    }

    /// A stream goes silent, or says something late; a tool ends as aborted.
    fn cancel(&mut self, session: SessionId, run: RunId) {
        let is_tool = self.hung.remove(&run).is_some()
            || self.flights.get(&Origin::Run(run)).is_some_and(|queue| {
                queue.iter().any(|event| matches!(event, Event::ToolEnded { .. }))
            });
        if is_tool {
            self.flights.remove(&Origin::Run(run));
            let outcome = ToolOutcome::error("the operation was aborted");
            self.push(Origin::Run(run), Event::ToolEnded { session, run, outcome });
        } else if self.rng.below(2) == 0 {
            self.flights.remove(&Origin::Run(run));
        }
    }

    fn update(&mut self, update: &Update) -> Result<(), String> {
        let Update::Crew(crew) = update else { return Ok(()) };
        self.crew_update(crew)
    }

    fn crew_update(&mut self, update: &CrewUpdate) -> Result<(), String> {
        self.checks.crew(update)?;
        self.reference.crew(self.now, update);
        if update.kind == UpdateKind::Spawned {
            self.summary.spawned += 1;
        }
        Ok(())
    }

    fn invariants(&self) -> Result<(), String> {
        for id in self.engine.session_ids() {
            let Some(agent) = self.engine.agent(id) else { continue };
            if !agent.record().is_consistent() {
                return Err(format!("{id}: an entry stands twice in the context"));
            }
        }
        Ok(())
    }

    /// Nothing is in flight once all is quiet.
    fn at_rest(&self) -> Result<(), String> {
        for id in self.engine.session_ids() {
            if self.engine.agent(id).is_some_and(|agent| !agent.is_idle()) {
                return Err(format!("{id} still runs at rest"));
            }
        }
        for subagent in self.engine.crew().all() {
            if !subagent.status.awaits_owner() {
                return Err(format!("{} is {:?} at rest", subagent.id, subagent.status));
            }
        }
        Ok(())
    }

    fn push(&mut self, origin: Origin, event: Event) {
        self.flights.entry(origin).or_default().push_back(event);
    }

    fn other(&mut self) -> Origin {
        self.others += 1;
        Origin::Other(self.others)
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if self.trace.is_some() {
            let line = line();
            if let Some(trace) = &mut self.trace {
                trace.push(line);
            }
        }
    }
}

fn brief(effect: &Effect) -> String {
    match effect {
        Effect::StartModel { session, run, request } => {
            format!("StartModel {session} {run:?} with {} messages", request.messages.len())
        }
        other => {
            let mut text = format!("{other:?}");
            text.truncate(text.char_indices().nth(300).map_or(text.len(), |(at, _)| at));
            text
        }
    }
}

fn field(json: &str, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    value[name].as_str().unwrap_or_default().to_owned()
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters: Raw::empty_object(),
        constrained_sampling: None,
    }
}

fn owner_tools() -> Vec<ToolDefinition> {
    let mut tools = vec![tool("bash")];
    tools.extend(api::owner_tools());
    tools
}

fn discovery() -> Discovery {
    let definition = Definition {
        name: "scout".into(),
        description: "d".into(),
        source: DefinitionSource::Bundled,
        path: "scout".into(),
        model: None,
        thinking: None,
        tools: DEFAULT_CHILD_TOOLS.map(str::to_owned).to_vec(),
        skills: None,
        compaction: true,
        prompt: String::new(),
    };
    Discovery { definitions: vec![Arc::new(definition)], ..Discovery::default() }
}

fn model() -> Arc<ModelSpec> {
    Arc::new(ModelSpec {
        provider: "sim".into(),
        id: "m".into(),
        name: "m".into(),
        api: Api::Demo,
        api_word: "crew-demo".into(),
        base_url: String::new(),
        reasoning: false,
        thinking_levels: BTreeMap::new(),
        images: false,
        rates: Rates::default(),
        context_window: 100_000,
        max_tokens: 1000,
        sampling_params: None,
        headers: Vec::new(),
        auth_header: false,
        compat: None,
    })
}
