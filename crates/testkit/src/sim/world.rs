//! The scheduler: what happens next, and when all is over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crew_base::id::{EntryId, Ids, RunId, SessionId};
use crew_base::model::ModelEvent;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_engine::api::Command;
use crew_engine::{Effect, Engine, EngineConfig, Event};

use super::Summary;
use super::checks::{Checks, Grammar};
use super::compaction;
use super::disk::Disk;
use super::reference::Reference;
use super::script::Script;
use super::tasks::Kids;

const STEPS_MAX: u64 = 20_000;
const COMMANDS: u64 = 40;

/// Where events come from; each gives them in its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Run(RunId),
    Other(u64),
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) rng: Ids,
    pub(super) now: Time,
    pub(super) script: Script,
    pub(super) checks: Checks,
    pub(super) grammar: Grammar,
    pub(super) reference: Reference,
    pub(super) flights: BTreeMap<Origin, VecDeque<Event>>,
    pub(super) hung: BTreeMap<RunId, SessionId>,
    /// Sessions of which an append failed that was not yet taken note of.
    pub(super) broken: BTreeMap<SessionId, EntryId>,
    pub(super) owners: Vec<SessionId>,
    /// Owners that were left and can be opened again.
    pub(super) left: Vec<SessionId>,
    pub(super) disk: Disk,
    /// The owner that was last told to be at rest.
    pub(super) rested: Option<SessionId>,
    /// Forks that are being opened, and what they come from.
    pub(super) adoptions: BTreeMap<SessionId, SessionId>,
    pub(super) open: BTreeSet<SessionId>,
    pub(super) kids: Kids,
    commands_left: u64,
    pub(super) commands: u64,
    others: u64,
    pub(super) calm: bool,
    pub(super) quitting: bool,
    pub(super) exited: bool,
    trace: Option<Vec<String>>,
    pub(super) summary: Summary,
}

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> World {
        let config = EngineConfig { settings: compaction::settings(), home: None, depth: 0 };
        let mut rng = Ids::new(seed ^ 0xC0FF_EE00_D15E_A5E5);
        let kids = Kids::new(&mut rng);
        World {
            engine: Engine::new(seed, config),
            rng,
            kids,
            now: Time(1_796_046_183_000),
            script: Script::default(),
            checks: Checks::default(),
            grammar: Grammar::default(),
            reference: Reference::default(),
            flights: BTreeMap::new(),
            hung: BTreeMap::new(),
            broken: BTreeMap::new(),
            owners: Vec::new(),
            left: Vec::new(),
            disk: Disk::default(),
            rested: None,
            adoptions: BTreeMap::new(),
            open: BTreeSet::new(),
            commands_left: COMMANDS,
            commands: 0,
            others: 0,
            calm: false,
            quitting: false,
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
        let sudden = self.rng.below(4) == 0;
        let left = if sudden { self.rng.below(COMMANDS) } else { 0 };
        while self.commands_left > left {
            self.turn()?;
        }
        if sudden {
            self.summary.quits += 1;
        } else {
            self.rest()?;
        }
        self.end()
    }

    /// Faults stop; everything comes to rest, and every owner gets its own.
    fn rest(&mut self) -> Result<(), String> {
        self.calm = true;
        self.settle()?;
        while let Some(left) = self.left.pop() {
            self.reopen(left)?;
            self.settle()?;
        }
        for owner in self.owners.clone() {
            self.rested = None;
            self.command(Command::Attach(owner.clone()))?;
            self.settle()?;
            if self.rested.as_ref() != Some(&owner) {
                return Err(format!("{owner} was never told to be at rest"));
            }
        }
        for id in self.engine.session_ids() {
            if self.engine.agent(id).is_some_and(|agent| !agent.is_idle()) {
                return Err(format!("{id} still runs at rest"));
            }
        }
        if !self.engine.tasks().is_quiet() {
            return Err(format!("calls of task at rest: {:?}", self.engine.tasks()));
        }
        self.kids.at_rest()?;
        for subagent in self.engine.crew().all() {
            if !subagent.status.awaits_owner() {
                return Err(format!("{} is {:?} at rest", subagent.id, subagent.status));
            }
        }
        self.contexts_are_stored()?;
        self.reference.complete(self.now)
    }

    /// Quits, maybe in the middle; every session is closed, every command
    /// answered, and nothing happens afterwards.
    fn end(&mut self) -> Result<(), String> {
        self.quitting = true;
        self.command(Command::Quit)?;
        while !self.exited {
            if self.summary.steps > STEPS_MAX {
                return Err("does not come to an end".to_owned());
            }
            let waits = self.flights.is_empty() || self.rng.below(20) == 0;
            match self.engine.deadline().filter(|_| waits) {
                Some(deadline) => {
                    self.now = self.now.max(deadline);
                    self.take(Event::Tick)?;
                }
                None if self.deliver_one()? => {}
                None => return Err("no exit after quit".to_owned()),
            }
        }
        if let Some(left) = self.open.first() {
            return Err(format!("session {left} was never closed"));
        }
        while self.deliver_one()? {}
        self.checks.all_answered()
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
            self.kids_end();
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
        let event = self.flights.get_mut(&origin).and_then(VecDeque::pop_front);
        if self.flights.get(&origin).is_none_or(VecDeque::is_empty) {
            self.flights.remove(&origin);
        }
        let Some(event) = event else { return Ok(false) };
        if !self.calm && !self.exited && self.may_repeat(&event) && self.rng.below(40) == 0 {
            // A repeated ending, some time later.
            self.summary.faults += 1;
            let origin = self.other();
            self.push(origin, event.clone());
        }
        self.take(event)?;
        Ok(true)
    }

    /// Whether the shell could tell it twice: the middle of a stream it cannot,
    /// nor the opening of an owner, which may be tried again.
    fn may_repeat(&self, event: &Event) -> bool {
        match event {
            Event::Model { events, .. } => {
                let last = events.last();
                matches!(last, Some(ModelEvent::Finished { .. } | ModelEvent::Failed(_)))
            }
            Event::SessionOpened { session, .. } => !self.owners.contains(session),
            _ => true,
        }
    }

    pub(super) fn take(&mut self, event: Event) -> Result<(), String> {
        self.summary.steps += 1;
        self.grammar.step();
        let now = self.now.0;
        self.note(|| format!("{now} > {event:?}"));
        if let Event::AppendFailed { session, entry, .. } = &event
            && self.broken.get(session) == Some(entry)
        {
            self.broken.remove(session);
        }
        if let Event::BranchRead { session, result: Ok(branch), .. } = &event {
            self.checks.may_move(session, branch.leaf.clone());
        }
        self.opening_ends(&event);
        self.kids_hear(&event);
        let shown = self.engine.attached().cloned();
        let effects = self.engine.step(self.now, event);
        if self.engine.attached() != shown.as_ref() {
            let agent = self.engine.attached().and_then(|id| self.engine.agent(id));
            self.grammar.attached(agent.is_some_and(|agent| agent.is_idle()));
        }
        for effect in effects {
            self.note(|| format!("    < {}", brief(&effect)));
            self.perform(effect)?;
        }
        self.invariants()
    }

    /// A fork that opens adopts; what could not be opened is not open.
    fn opening_ends(&mut self, event: &Event) {
        let Event::SessionOpened { session, result } = event else { return };
        if self.quitting || !self.owners.contains(session) {
            return;
        }
        let adopted = self.adoptions.remove(session);
        if result.is_err() && self.engine.agent(session).is_some() {
            self.open.remove(session);
            self.owners.retain(|owner| owner != session);
            self.left.extend(self.disk.load(session).map(|_| session.clone()));
        } else if let Some(previous) = adopted {
            self.reference.adopted(&previous, session);
        }
    }

    fn invariants(&self) -> Result<(), String> {
        for id in self.engine.session_ids() {
            let Some(agent) = self.engine.agent(id) else { continue };
            if !agent.record().is_consistent() {
                return Err(format!("{id}: an entry stands twice in the context"));
            }
        }
        for subagent in self.engine.crew().all() {
            if self.engine.agent(&subagent.session).is_none() {
                return Err(format!("{} has no session", subagent.id));
            }
            if self.kids.contains(&subagent.session) {
                return Err(format!("{} is a child of task (MEET-3)", subagent.id));
            }
        }
        Ok(())
    }

    pub(super) fn push(&mut self, origin: Origin, event: Event) {
        self.flights.entry(origin).or_default().push_back(event);
    }

    pub(super) fn other(&mut self) -> Origin {
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
