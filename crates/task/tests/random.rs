//! Any order of events comes to rest, and every call is answered once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_base::id::{Ids, RunId, SessionId};
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall};
use crew_base::session::RunEnd;
use crew_base::time::Time;
use crew_task::isolation::{Integration, Prepared};
use crew_task::settings::Merge;
use crew_task::{Caller, Effect, Lease, OpenedTask, Setup, Tasks};
use serde_json::{Value, json};

/// Work that is under way outside; each entry ends once.
#[derive(Clone, Debug)]
enum Work {
    Lease(RunId),
    Isolate(SessionId),
    Open(SessionId),
    Turn(SessionId),
    Job(SessionId, String),
    Close(SessionId),
    Write(SessionId, String),
    Describe(SessionId),
    Word(SessionId),
    Integrate(SessionId),
}

/// A running turn of a child.
#[derive(Default)]
struct Turn {
    is_stopped: bool,
    /// Not recorded yet; the prompt can still be dropped.
    prompt: Vec<Message>,
}

struct Chaos {
    tasks: Tasks,
    ids: Ids,
    rng: Ids,
    now: Time,
    setup: Arc<Setup>,
    work: Vec<Work>,
    /// Calls that wait for their one answer, and who made them.
    open_calls: BTreeMap<RunId, SessionId>,
    /// Children whose turn runs.
    turns: BTreeMap<SessionId, Turn>,
    closed: Vec<SessionId>,
    runs: u64,
    calm: bool,
}

impl Chaos {
    fn new(seed: u64) -> Chaos {
        let mut rng = Ids::new(seed);
        let mut setup = Setup::default();
        setup.settings.isolation.enabled = true;
        setup.settings.isolation.merge = [Merge::Patch, Merge::Branch][rng.below(2) as usize];
        setup.settings.isolation.generated_messages = rng.below(2) == 0;
        setup.settings.max_concurrency = rng.below(4) as i64;
        setup.settings.soft_request_budget = [0, 4, 200][rng.below(3) as usize];
        setup.settings.max_runtime_ms = [0, 40_000][rng.below(2) as usize];
        let mut boss = crew_task::agents::general();
        boss.spawns = Some(crew_task::settings::Spawns::All);
        setup.agents.push(boss);
        Chaos {
            tasks: Tasks::default(),
            ids: Ids::new(seed ^ 0x5555),
            rng,
            now: Time(0),
            setup: Arc::new(setup),
            work: Vec::new(),
            open_calls: BTreeMap::new(),
            turns: BTreeMap::new(),
            closed: Vec::new(),
            runs: 0,
            calm: false,
        }
    }

    fn chance(&mut self, percent: u64) -> bool {
        !self.calm && self.rng.below(100) < percent
    }

    fn run_id(&mut self) -> RunId {
        self.runs += 1;
        RunId(self.runs)
    }

    fn call(&mut self, caller: Caller) {
        let count = self.rng.below(4);
        let isolated = self.chance(20);
        let items: Vec<_> = (0..count)
            .map(|n| json!({"name": format!("k{n}"), "task": "x", "isolated": isolated}))
            .collect();
        let arguments = if self.chance(10) {
            json!({"tasks": 5})
        } else {
            json!({"context": "c", "tasks": items})
        };
        let run = self.run_id();
        self.open_calls.insert(run, caller.session.clone());
        let call = call("task", &arguments);
        self.tasks.call(self.now, caller, run, &call, Arc::clone(&self.setup));
        self.perform();
    }

    fn perform(&mut self) {
        loop {
            let effects = self.tasks.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.one(effect);
            }
        }
    }

    fn one(&mut self, effect: Effect) {
        match effect {
            Effect::Lease { run, .. } => self.work.push(Work::Lease(run)),
            Effect::Isolate(plan) => self.work.push(Work::Isolate(plan.child)),
            Effect::Open(open) => self.work.push(Work::Open(open.session)),
            Effect::Prompt { session, messages, .. } => {
                assert!(!self.closed.contains(&session), "a closed child is not prompted");
                let turn = Turn { is_stopped: false, prompt: messages };
                assert!(self.turns.insert(session.clone(), turn).is_none(), "it was idle");
                self.work.push(Work::Turn(session));
            }
            Effect::Stop { session } => {
                if let Some(turn) = self.turns.get_mut(&session) {
                    turn.is_stopped = true;
                }
            }
            Effect::StartJob { session, job, .. } => self.work.push(Work::Job(session, job)),
            Effect::Close { session } => self.close(session),
            Effect::WriteArtifact { session, write } => {
                self.work.push(Work::Write(session, write.path()));
            }
            Effect::Describe { session, .. } => self.work.push(Work::Describe(session)),
            Effect::Word { session, .. } => self.work.push(Work::Word(session)),
            Effect::StopWording { session } => {
                let own = |work: &Work| matches!(work, Work::Word(asking) if *asking == session);
                let at = self.work.iter().position(own).expect("the model was asked");
                self.work.remove(at);
            }
            Effect::Integrate { session, .. } => {
                assert!(self.closed.contains(&session), "ISO-6");
                self.work.push(Work::Integrate(session));
            }
            Effect::ToolEnded { run, .. } => {
                self.open_calls.remove(&run);
            }
            Effect::Ask { .. }
            | Effect::Progress { .. }
            | Effect::Discard { .. }
            | Effect::EndLease { .. }
            | Effect::Update(_) => {}
        }
    }

    /// Closing ends the turn, the commands and the calls of a child.
    fn close(&mut self, session: SessionId) {
        self.turns.remove(&session);
        self.work.retain(|work| {
            !matches!(work, Work::Turn(own) | Work::Job(own, _) | Work::Open(own) if *own == session)
        });
        let own: Vec<_> = self
            .open_calls
            .iter()
            .filter(|(_, caller)| **caller == session)
            .map(|(run, _)| *run)
            .collect();
        for run in own {
            self.tasks.cancel(self.now, run);
        }
        self.work.push(Work::Close(session));
    }

    fn step(&mut self) {
        self.now = self.now + self.rng.below(400);
        if self.tasks.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.tasks.tick(self.now, &mut self.ids);
            self.perform();
        }
        if self.chance(12) {
            let session = SessionId::new("top");
            self.call(Caller {
                session,
                file: None,
                depth: 0,
                spawns: None,
                id: None,
                model: None,
            });
            return;
        }
        if self.chance(4) {
            let all: Vec<_> = self.open_calls.keys().copied().collect();
            if !all.is_empty() {
                let run = all[self.rng.below(all.len() as u64) as usize];
                self.tasks.cancel(self.now, run);
                self.perform();
            }
            return;
        }
        if self.work.is_empty() {
            self.now = self.tasks.deadline().unwrap_or(self.now).max(self.now);
            return;
        }
        let at = self.rng.below(self.work.len() as u64) as usize;
        let work = self.work.swap_remove(at);
        self.end(work);
        self.perform();
    }

    fn end(&mut self, work: Work) {
        let fails = self.chance(8);
        let (now, tasks, ids) = (self.now, &mut self.tasks, &mut self.ids);
        let outcome = |text: &str| if fails { Err(text.to_owned()) } else { Ok(()) };
        match work {
            Work::Lease(run) => {
                let lease = Lease { folder: "/f".into(), is_temporary: true, taken: Vec::new() };
                tasks.leased(now, ids, run, outcome("no folder").map(|()| lease));
            }
            Work::Isolate(session) => {
                let copy = Prepared { cwd: "/c".into(), handle: 1 };
                tasks.isolated(now, ids, &session, outcome("no git").map(|()| copy));
            }
            Work::Open(session) if fails => tasks.open_failed(now, ids, &session, "no key"),
            Work::Open(session) => tasks.opened(now, &session, OpenedTask::default()),
            Work::Turn(session) => self.turn(session),
            Work::Job(session, job) => tasks.job_ended(now, &session, &job, Some(0), "out"),
            Work::Close(session) => {
                self.closed.push(session.clone());
                tasks.closed(now, ids, &session);
            }
            Work::Write(session, path) => {
                tasks.written(now, ids, &session, outcome("disk full").map(|()| path));
            }
            Work::Describe(session) => {
                let diff = outcome("no git").map(|()| Some("+x".to_owned()));
                tasks.described(now, &session, diff);
            }
            Work::Word(session) => tasks.worded(&session, (!fails).then_some("Do x"), None),
            Work::Integrate(session) => {
                let done = Integration::default();
                tasks.integrated(now, ids, &session, outcome("git failed").map(|()| done));
            }
        }
    }

    /// One answer of a child, with what follows from it.
    fn turn(&mut self, session: SessionId) {
        let drops = self.chance(8);
        let Some(turn) = self.turns.get_mut(&session) else { return };
        let prompt = std::mem::take(&mut turn.prompt);
        if turn.is_stopped {
            self.turns.remove(&session);
            self.tasks.child_settled(self.now, &session, &RunEnd::Aborted);
            return;
        }
        if drops && !prompt.is_empty() {
            self.turns.remove(&session);
            self.tasks.child_dropped(self.now, &session, true);
            return;
        }
        for message in prompt {
            self.tasks.child_message(self.now, &session, &message);
        }
        let kind = if self.calm { 0 } else { self.rng.below(8) };
        let (tool, arguments) = match kind {
            0 | 1 => ("yield", json!({"data": {"x": 1}})),
            2 => ("yield", json!({"data": 1, "type": ["part"]})),
            3 => ("bash", json!({"command": "c", "background": true})),
            4 => ("wait", json!({})),
            5 => ("task", json!({})),
            6 => ("yield", json!({})),
            _ => ("", Value::Null),
        };
        let stop = if self.chance(5) { "error" } else { "stop" };
        self.message(&session, &answer(tool, stop));
        if tool.is_empty() || stop == "error" {
            self.turns.remove(&session);
            self.tasks.child_settled(self.now, &session, &RunEnd::Ended);
            return;
        }
        if tool == "task" {
            if let Some(caller) = self.tasks.caller(&session, None) {
                self.call(caller);
            }
        } else {
            let run = self.run_id();
            self.open_calls.insert(run, session.clone());
            assert!(self.tasks.child_called(self.now, &session, run, &call(tool, &arguments)));
            self.perform();
        }
        if self.turns.contains_key(&session) {
            self.boundary(session);
        }
    }

    fn boundary(&mut self, session: SessionId) {
        let result =
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": []});
        self.message(&session, &result);
        let boundary = self.tasks.boundary(self.now, &session).unwrap_or_default();
        for message in boundary.messages {
            self.tasks.child_message(self.now, &session, &Message::Custom(message));
        }
        self.perform();
        if boundary.stops {
            self.turns.insert(session.clone(), Turn { is_stopped: true, prompt: Vec::new() });
        }
        if self.turns.contains_key(&session) {
            self.work.push(Work::Turn(session));
        }
    }

    fn message(&mut self, session: &SessionId, message: &Value) {
        let message = from_text::<Message>(&message.to_string()).expect("a message");
        self.tasks.child_message(self.now, session, &message);
        self.perform();
    }
}

fn call(name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: "c".into(),
        name: name.into(),
        arguments: Raw::of(arguments),
        thought_signature: None,
        namespace: None,
        arguments_error: None,
    }
}

fn answer(tool: &str, stop: &str) -> Value {
    let mut blocks = vec![json!({"type": "text", "text": "words"})];
    if !tool.is_empty() {
        blocks.push(json!({"type": "toolCall", "id": "c", "name": tool, "arguments": {}}));
    }
    json!({"role": "assistant", "content": blocks, "stopReason": stop})
}

fn play(seed: u64) -> (u64, String) {
    let mut chaos = Chaos::new(seed);
    for _ in 0..300 {
        chaos.step();
    }
    chaos.calm = true;
    if chaos.rng.below(3) == 0 {
        chaos.tasks.quit(chaos.now);
        chaos.perform();
    }
    let mut steps = 0;
    while !(chaos.tasks.is_quiet() && chaos.work.is_empty()) {
        steps += 1;
        assert!(steps < 50_000, "seed {seed}: no rest: {:?} {:?}", chaos.work, chaos.tasks);
        chaos.step();
    }
    assert!(chaos.open_calls.is_empty(), "seed {seed}: unanswered {:?}", chaos.open_calls);
    (chaos.runs, format!("{:?}", chaos.closed))
}

// SESS-9, TASK-SPAWN-15, BARRIER-9.
#[test]
fn every_call_is_answered_and_everything_comes_to_rest() {
    let calls: u64 = (0..250).map(|seed| play(seed).0).sum();
    assert!(calls > 3_000, "the seeds do something: {calls}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(play(42), play(42));
}
