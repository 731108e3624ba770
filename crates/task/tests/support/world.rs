//! A world around [`Tasks`] that a test plays by hand: no engine, no clock.

use std::sync::Arc;

use crew_base::id::{Ids, RunId, SessionId};
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall};
use crew_base::session::RunEnd;
use crew_base::time::Time;
use crew_task::isolation::{Capture, Integration, Prepared};
use crew_task::{Caller, Effect, Lease, OpenTask, OpenedTask, Setup, Tasks};
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) tasks: Tasks,
    pub(crate) ids: Ids,
    pub(crate) now: Time,
    pub(crate) setup: Setup,
    /// Saved file of the parent session; `None` gives temporary folders.
    pub(crate) file: Option<String>,
    /// Ids of files found in the folder.
    pub(crate) found: Vec<String>,
    /// All effects so far, in short.
    pub(crate) log: Vec<String>,
    pub(crate) opens: Vec<OpenTask>,
    pub(crate) writes: Vec<crew_task::artifact::Write>,
    pub(crate) captures: Vec<(SessionId, Capture)>,
    pub(crate) copies: Vec<SessionId>,
    pub(crate) answers: Vec<(RunId, Answer)>,
    pub(crate) snapshots: Vec<Value>,
    /// Leave these to the test.
    pub(crate) holds: Holds,
}

#[derive(Default)]
pub(crate) struct Holds {
    pub(crate) lease: bool,
    pub(crate) close: bool,
    pub(crate) write: bool,
    pub(crate) write_fails: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) details: Value,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            tasks: Tasks::default(),
            ids: Ids::new(7),
            now: Time(1_000_000),
            setup: Setup::default(),
            file: Some("/s/X.jsonl".into()),
            found: Vec::new(),
            log: Vec::new(),
            opens: Vec::new(),
            writes: Vec::new(),
            captures: Vec::new(),
            copies: Vec::new(),
            answers: Vec::new(),
            snapshots: Vec::new(),
            holds: Holds::default(),
        }
    }

    pub(crate) fn parent(&self) -> Caller {
        Caller {
            session: SessionId::new("parent"),
            file: self.file.clone(),
            depth: 0,
            spawns: None,
            id: None,
            model: None,
        }
    }

    pub(crate) fn call(&mut self, run: u64, arguments: Value) {
        self.call_from(self.parent(), run, arguments);
    }

    pub(crate) fn call_from(&mut self, caller: Caller, run: u64, arguments: Value) {
        let setup = Arc::new(self.setup.clone());
        let call = tool_call("task", &format!("call-{run}"), &arguments);
        self.tasks.call(self.now, caller, RunId(run), &call, setup);
        self.take();
    }

    /// A batch of tasks by name.
    pub(crate) fn batch(&mut self, run: u64, names: &[&str]) {
        let tasks: Vec<_> = names.iter().map(|name| json!({"name": name, "task": name})).collect();
        self.call(run, json!({"context": "C", "tasks": tasks}));
    }

    /// Carries out what came out, as far as the test does not hold it.
    pub(crate) fn take(&mut self) {
        loop {
            let effects = self.tasks.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Ask { view, .. } => self.log.push(format!("ask {view}")),
            Effect::Lease { run, folder, .. } => {
                self.log.push("lease".into());
                if !self.holds.lease {
                    self.lease(run, folder);
                }
            }
            Effect::Isolate(plan) => {
                self.log.push(format!("isolate {}", plan.id));
                self.copies.push(plan.child);
            }
            Effect::Open(open) => {
                self.log.push(format!("open {}", open.id));
                self.opens.push(*open);
            }
            Effect::Prompt { messages, forced_tool, .. } => {
                let custom = if let Message::Custom(custom) = &messages[0] {
                    Some(custom.custom_type.clone())
                } else {
                    None
                };
                let kind = custom.unwrap_or_else(|| "user".into());
                let forced = if forced_tool.is_some() { "!" } else { "" };
                self.log.push(format!("prompt {kind}{forced}"));
            }
            Effect::Stop { .. } => self.log.push("stop".into()),
            Effect::Close { session } => {
                self.log.push("close".into());
                if !self.holds.close {
                    self.tasks.closed(self.now, &mut self.ids, &session);
                }
            }
            Effect::StartJob { job, command, .. } => self.log.push(format!("job {job} {command}")),
            Effect::ToolEnded { run, outcome, .. } => {
                self.log.push(format!("ended {}", run.0));
                let details = outcome.details.as_ref().map_or(Value::Null, Raw::value);
                let (text, is_error) = (outcome.joined_text(), outcome.is_error);
                self.answers.push((run, Answer { text, is_error, details }));
            }
            Effect::Progress { progress, .. } => {
                self.snapshots.push(progress.details.as_ref().map_or(Value::Null, Raw::value));
            }
            Effect::WriteArtifact { session, write } => {
                self.log.push(format!("write {}", write.text_name));
                if !self.holds.write {
                    self.write(&session, &write);
                }
                self.writes.push(write);
            }
            Effect::Describe { handle, .. } => self.log.push(format!("describe {handle}")),
            Effect::Word { messages, .. } => {
                let Message::User(user) = &*messages[1] else { panic!("a question") };
                self.log.push(format!("word {}", user.content.text()));
            }
            Effect::StopWording { .. } => self.log.push("stop wording".into()),
            Effect::Integrate { session, capture } => {
                self.log.push("integrate".into());
                self.captures.push((session, capture));
            }
            Effect::Discard { .. } => self.log.push("discard".into()),
            Effect::EndLease { folder } => self.log.push(format!("end lease {folder}")),
            Effect::Update(update) => {
                self.log.push(format!("{} {}", update.phase.word(), update.id));
            }
        }
    }

    pub(crate) fn lease(&mut self, run: RunId, folder: Option<String>) {
        let is_temporary = folder.is_none();
        let folder = folder.unwrap_or_else(|| "/tmp/t".into());
        let lease = Lease { folder, is_temporary, taken: self.found.clone() };
        self.tasks.leased(self.now, &mut self.ids, run, Ok(lease));
        self.take();
    }

    pub(crate) fn write(&mut self, session: &SessionId, write: &crew_task::artifact::Write) {
        let result =
            if self.holds.write_fails { Err("disk full".into()) } else { Ok(write.path()) };
        self.tasks.written(self.now, &mut self.ids, session, result);
    }

    pub(crate) fn session(&self, id: &str) -> SessionId {
        let open = self.opens.iter().rev().find(|open| open.id == id);
        open.map(|open| open.session.clone()).expect("the child was opened")
    }

    /// The session of a child is made.
    pub(crate) fn opened(&mut self, id: &str) {
        let session = self.session(id);
        self.tasks.opened(self.now, &session, OpenedTask::default());
        self.take();
    }

    pub(crate) fn message(&mut self, id: &str, message: Value) {
        let session = self.session(id);
        let message = from_text::<Message>(&message.to_string()).expect("a message");
        self.tasks.child_message(self.now, &session, &message);
        self.take();
    }

    pub(crate) fn settle(&mut self, id: &str, end: RunEnd) {
        let session = self.session(id);
        self.tasks.child_settled(self.now, &session, &end);
        self.take();
    }

    /// A turn of text alone.
    pub(crate) fn say(&mut self, id: &str, text: &str) {
        self.message(id, answer(text, &[], "stop"));
        self.settle(id, RunEnd::Ended);
    }

    /// The child hands in, and its turn is stopped.
    pub(crate) fn yields(&mut self, id: &str, arguments: Value) {
        self.yields_with(id, "", arguments);
    }

    pub(crate) fn yields_with(&mut self, id: &str, text: &str, arguments: Value) {
        let session = self.session(id);
        self.message(id, answer(text, &["yield"], "toolUse"));
        let call = tool_call("yield", "yield", &arguments);
        let run = self.ids.run();
        assert!(self.tasks.child_called(self.now, &session, RunId(1_000 + run.0), &call));
        self.take();
        self.settle(id, RunEnd::Aborted);
    }

    /// Opens a child and has it hand in.
    pub(crate) fn completes(&mut self, id: &str, data: Value) {
        self.opened(id);
        self.yields(id, json!({ "data": data }));
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now + ms;
        self.tasks.tick(self.now, &mut self.ids);
        self.take();
    }

    pub(crate) fn cancel(&mut self, run: u64) -> bool {
        let known = self.tasks.cancel(self.now, RunId(run));
        self.take();
        known
    }

    pub(crate) fn copied(&mut self, result: Result<Prepared, String>) {
        let session = self.copies.last().expect("a copy was asked for").clone();
        self.tasks.isolated(self.now, &mut self.ids, &session, result);
        self.take();
    }

    pub(crate) fn integrated(&mut self, result: Result<Integration, String>) {
        let (session, _) = self.captures.last().expect("a capture was asked for").clone();
        self.tasks.integrated(self.now, &mut self.ids, &session, result);
        self.take();
    }

    pub(crate) fn answer(&self, run: u64) -> &Answer {
        let mut found = self.answers.iter().filter(|(known, _)| known.0 == run);
        let answer = found.next().map(|(_, answer)| answer).expect("the call was answered");
        assert!(found.next().is_none(), "a call is answered once");
        answer
    }

    pub(crate) fn record(&self, run: u64, index: usize) -> Value {
        self.answer(run).details["results"][index].clone()
    }

    pub(crate) fn has(&self, entry: &str) -> bool {
        self.log.iter().any(|known| known == entry)
    }
}

pub(crate) fn prepared() -> Result<Prepared, String> {
    Ok(Prepared { cwd: "/copy/kid".into(), handle: 3 })
}

pub(crate) fn tool_call(name: &str, id: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: Raw::of(arguments),
        thought_signature: None,
        namespace: None,
        arguments_error: None,
    }
}

pub(crate) fn answer(text: &str, tools: &[&str], stop: &str) -> Value {
    let mut blocks = vec![json!({"type": "text", "text": text})];
    let call = |tool: &&str| json!({"type": "toolCall", "id": tool, "name": tool, "arguments": {}});
    blocks.extend(tools.iter().map(call));
    json!({"role": "assistant", "content": blocks, "stopReason": stop, "provider": "fake",
        "model": "m1", "errorMessage": "broken", "usage": {"input": 10, "output": 2, "cacheRead": 5}})
}
