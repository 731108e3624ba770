//! One session played by hand: inputs in, a trace of lines out.

use crew_agent::{Agent, Branch, Effect, Input, Loaded, Prompt, Settings};
use crew_base::entry::Entry;
use crew_base::id::{EntryId, Ids, RunId, SessionId};
use crew_base::message::{Block, CustomMessage, Message, SharedMessage};
use crew_base::model::{ModelErrorKind, ModelEvent, ThinkingLevel, ToolChoice};
use crew_base::session::{DeliveryId, ResultMessage};
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use serde_json::json;

use crate::fixtures;
use crate::trace;

/// A session with the tools `bash` and `read`, and a clock that stands still
/// until it is told to move.
pub struct SessionPlay {
    /// The machine.
    pub agent: Agent,
    /// The clock.
    pub now: Time,
    ids: Ids,
    log: Vec<String>,
    stream: Option<RunId>,
    tools: Vec<(String, RunId)>,
    entries: Vec<EntryId>,
    written: Vec<Entry>,
    reading: Option<RunId>,
    asked: Vec<Vec<SharedMessage>>,
    status: Vec<CustomMessage>,
    forced: Vec<Option<String>>,
    stops: bool,
}

impl SessionPlay {
    /// A new session with these settings.
    pub fn new(settings: Settings) -> SessionPlay {
        let mut agent = Agent::new(SessionId::from("s"), Loaded::default(), settings);
        agent.use_model(fixtures::model("m"), ThinkingLevel::Off);
        let tools = vec![fixtures::tool("bash"), fixtures::tool("read")];
        agent.want_prompt(Prompt { sections: vec![("preamble".into(), "p".into())], tools });
        SessionPlay {
            agent,
            now: Time(1_000_000),
            ids: Ids::new(1),
            log: Vec::new(),
            stream: None,
            tools: Vec::new(),
            entries: Vec::new(),
            written: Vec::new(),
            reading: None,
            asked: Vec::new(),
            status: Vec::new(),
            forced: Vec::new(),
            stops: false,
        }
    }

    /// Takes one input and answers boundaries.
    pub fn input(&mut self, input: Input) {
        let mut effects = self.agent.step(self.now, &mut self.ids, input);
        loop {
            let at_boundary = matches!(effects.last(), Some(Effect::Boundary));
            for effect in effects {
                self.see(effect);
            }
            if !at_boundary {
                return;
            }
            if std::mem::take(&mut self.stops) {
                let stopped = self.agent.step(self.now, &mut self.ids, Input::Abort);
                assert!(stopped.is_empty(), "a boundary is stopped without effects of its own");
            }
            let status = std::mem::take(&mut self.status);
            effects = self.agent.step(self.now, &mut self.ids, Input::Proceed(status));
        }
    }

    fn see(&mut self, effect: Effect) {
        self.log.extend(trace::line(&effect));
        match effect {
            Effect::Append(entry) => {
                self.entries.push(entry.id.clone());
                self.written.push(entry);
            }
            Effect::ReadBranch { run, .. } => self.reading = Some(run),
            Effect::StartModel { run, request } => {
                self.stream = Some(run);
                self.asked.push(request.messages);
                self.forced.push(match request.tool_choice {
                    ToolChoice::Auto => None,
                    ToolChoice::Named(name) => Some(name),
                });
            }
            Effect::RunTool { run, call } => self.tools.push((call.id.to_string(), run)),
            _ => {}
        }
    }

    /// Starts a run.
    pub fn prompt(&mut self, text: &str) {
        self.input(Input::Prompt(vec![Message::user_text(text, self.now)]));
    }

    /// Types while a run goes on.
    pub fn steer(&mut self, text: &str) {
        self.input(Input::Steer(Message::user_text(text, self.now)));
    }

    /// Types for the end of the run.
    pub fn follow_up(&mut self, text: &str) {
        self.input(Input::FollowUp(Message::user_text(text, self.now)));
    }

    /// Results of the crew, by number.
    pub fn results(&mut self, numbers: &[u64]) {
        let result = |number: &u64| ResultMessage {
            delivery: DeliveryId(*number),
            message: custom("crew-result", &format!("result {number}")),
        };
        self.input(Input::Results(numbers.iter().map(result).collect()));
    }

    /// What the next boundary records.
    pub fn status(&mut self, text: &str) {
        self.status.push(custom("crew-status", text));
    }

    /// The next boundary is answered with a stop.
    pub fn stop_at_boundary(&mut self) {
        self.stops = true;
    }

    /// The tool that each request so far had to call.
    pub fn forced(&self) -> &[Option<String>] {
        &self.forced
    }

    /// The branches of the move under way were read, or could not be.
    pub fn branch(&mut self, result: Result<Branch, String>) {
        let run = self.reading.expect("a branch is read");
        self.input(Input::BranchRead { run, result: result.map(Box::new) });
    }

    /// All entries so far, in the order they were written.
    pub fn written(&self) -> &[Entry] {
        &self.written
    }

    /// The running stream says something.
    pub fn stream(&mut self, events: Vec<ModelEvent>) {
        let run = self.stream.expect("a request was made");
        self.input(Input::Model { run, events });
    }

    /// The model answers with a text.
    pub fn say(&mut self, text: &str) {
        self.stream(fixtures::answer(vec![Block::text(text)]));
    }

    /// The model calls tools: id and name of each.
    pub fn call(&mut self, calls: &[(&str, &str)]) {
        let block =
            |(id, name): &(&str, &str)| Block::ToolCall(fixtures::call(id, name, &json!({"x": 1})));
        self.stream(fixtures::answer(calls.iter().map(block).collect()));
    }

    /// The request fails.
    pub fn fail(&mut self, kind: ModelErrorKind, status: Option<u16>) {
        self.stream(vec![fixtures::failed(kind, status)]);
    }

    /// A tool ends.
    pub fn tool(&mut self, call: &str, outcome: ToolOutcome) {
        let run = self.tool_run(call);
        self.input(Input::ToolEnded { run, outcome });
    }

    /// The run of a call that was started.
    pub fn tool_run(&self, call: &str) -> RunId {
        let found = self.tools.iter().rev().find(|(id, _)| id == call);
        found.expect("the tool was started").1
    }

    /// Moves the clock to the deadline and sends the tick.
    pub fn wait(&mut self) {
        self.now = self.agent.deadline().expect("something is waited for");
        self.input(Input::Tick);
    }

    /// The entry that was written `back` entries before the last one fails.
    pub fn write_fails(&mut self, back: usize) {
        let entry = self.entries[self.entries.len() - 1 - back].clone();
        self.input(Input::AppendFailed { entry, error: "disk full".to_owned() });
    }

    /// The lines since the last look.
    pub fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Messages of the newest request, each as a line, without the system ones.
    pub fn asked(&self) -> Vec<String> {
        let messages = self.asked.last().expect("a request was made").iter();
        let told = messages.filter(|message| !matches!(message.as_ref(), Message::System(_)));
        told.map(|message| trace::message_line(message)).collect()
    }

    /// Requests made so far.
    pub fn requests(&self) -> usize {
        self.asked.len()
    }
}

/// A hidden custom message.
pub fn custom(custom_type: &str, text: &str) -> CustomMessage {
    CustomMessage {
        custom_type: custom_type.to_owned(),
        content: crew_base::message::Content::Text(text.to_owned()),
        display: true,
        details: None,
        timestamp: Time(0),
    }
}
