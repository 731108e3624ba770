//! Models that answer as a test says, and what they were asked.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use crew_base::json::Raw;
use crew_base::message::{Block, Message, StopReason, ToolCall};
use crew_base::model::{ModelEvent, ModelRequest};
use crew_model::{Model, ModelSink};
use serde_json::{Value, json};

use crate::world::OWNER;

pub(crate) type Answer = Pin<Box<dyn Future<Output = ()> + Send>>;
type Script = Box<dyn Fn(Asked, ModelSink) -> Answer + Send + Sync>;

/// One request.
pub(crate) struct Asked {
    pub(crate) request: ModelRequest,
    /// How many requests the session made before.
    pub(crate) nth: usize,
    pub(crate) is_owner: bool,
}

/// A model that remembers what it was asked.
pub(crate) struct Fake {
    script: Script,
    asked: Mutex<Vec<ModelRequest>>,
}

impl Fake {
    pub(crate) fn new(
        script: impl Fn(Asked, ModelSink) -> Answer + Send + Sync + 'static,
    ) -> Arc<Fake> {
        Arc::new(Fake { script: Box::new(script), asked: Mutex::default() })
    }

    /// Answers at once with whole replies.
    pub(crate) fn replies(
        reply: impl Fn(&Asked) -> Vec<ModelEvent> + Send + Sync + 'static,
    ) -> Arc<Fake> {
        Fake::new(move |asked, mut sink| {
            let events = reply(&asked);
            Box::pin(async move { sink(events) })
        })
    }

    pub(crate) fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Requests of children.
    pub(crate) fn asked_by_children(&self) -> Vec<ModelRequest> {
        let all = self.asked();
        all.into_iter().filter(|request| request.session.as_str() != OWNER).collect()
    }
}

impl Model for Fake {
    fn stream(&self, request: ModelRequest, sink: ModelSink) -> Answer {
        let nth = {
            let mut asked = self.asked.lock().unwrap();
            let nth = asked.iter().filter(|one| one.session == request.session).count();
            asked.push(request.clone());
            nth
        };
        let is_owner = request.session.as_str() == OWNER;
        (self.script)(Asked { request, nth, is_owner }, sink)
    }
}

/// A whole reply of one text.
pub(crate) fn text(text: &str) -> Vec<ModelEvent> {
    let mut events = begun();
    events.push(ModelEvent::BlockDelta { index: 0, delta: text.to_owned() });
    events.push(ModelEvent::BlockEnd { index: 0, block: Block::text(text) });
    events.push(finished(StopReason::Stop));
    events
}

/// The start of a reply of one text.
pub(crate) fn begun() -> Vec<ModelEvent> {
    vec![ModelEvent::Started, ModelEvent::BlockStart { index: 0, block: Block::text("") }]
}

/// A whole reply of calls.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::Started];
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let block = Block::ToolCall(ToolCall {
            id: format!("call-{index}").as_str().into(),
            name: (*name).to_owned(),
            arguments: Raw::of(arguments),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        });
        events.push(ModelEvent::BlockStart { index, block: block.clone() });
        events.push(ModelEvent::BlockEnd { index, block });
    }
    events.push(finished(StopReason::ToolUse));
    events
}

pub(crate) fn finished(stop_reason: StopReason) -> ModelEvent {
    ModelEvent::Finished { stop_reason, raw_stop_reason: None }
}

/// Arguments of `crew_spawn`.
pub(crate) fn spawn(definition: &str) -> (&'static str, Value) {
    let task = json!({"goal": "a goal", "context": [], "instructions": ["do it"]});
    ("crew_spawn", json!({"subagent": definition, "brief": "a brief", "task": task}))
}

/// A report.
pub(crate) fn report(text: &str) -> (&'static str, Value) {
    ("crew_report", json!({"outcome": "completed", "report": text}))
}

/// Names of the tools a request offers.
pub(crate) fn tools_of(request: &ModelRequest) -> Vec<String> {
    let mut names = Vec::new();
    for message in &request.messages {
        if let Message::System(system) = &**message {
            names.retain(|name| !system.tools_removed.iter().any(|gone| gone.name == *name));
            names.extend(system.tools_added.iter().map(|tool| tool.name.clone()));
        }
    }
    names
}

/// The sections of the first system message, joined.
pub(crate) fn prompt_of(request: &ModelRequest) -> String {
    let mut texts = Vec::new();
    for message in &request.messages {
        if let Message::System(system) = &**message {
            texts.extend(system.sections.0.iter().filter_map(|(_, text)| text.clone()));
        }
    }
    texts.join("\n")
}

/// The last message of a request as JSON text.
pub(crate) fn last_of(request: &ModelRequest) -> String {
    let last = request.messages.last();
    last.map(|message| serde_json::to_string(&**message).unwrap()).unwrap_or_default()
}
