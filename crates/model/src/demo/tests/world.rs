//! A small world around the script: sessions, children, tools.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crew_base::json::Raw;
use crew_base::message::{
    AssistantMessage, Block, Content, CustomMessage, Message, SharedMessage, SystemMessage,
    ToolCall, ToolResultMessage,
};
use crew_base::model::{CacheRetention, ModelEvent, ModelRequest, ThinkingLevel, ToolChoice};
use crew_base::time::Time;
use crew_base::tool::ToolDefinition;
use serde_json::{Value, json};

use crate::Model;
use crate::catalog::{Catalog, DEMO_MODEL, DEMO_PROVIDER};
use crate::demo::Demo;
use crate::demo::errand::Errand;

pub(super) const OWNER_TOOLS: [&str; 5] =
    ["read", "bash", "crew_spawn", "crew_respond", "crew_done"];
pub(super) const CHILD_TOOLS: [&str; 3] = ["read", "bash", "crew_report"];

/// One session: its messages and what was answered last.
pub(super) struct Talk {
    pub(super) demo: Demo,
    pub(super) messages: Vec<SharedMessage>,
}

impl Talk {
    pub(super) fn new(demo: Demo, tools: &[&str]) -> Talk {
        let tool = |name: &&str| ToolDefinition {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: Raw::empty_object(),
            constrained_sampling: None,
        };
        let patch = SystemMessage {
            tools_added: tools.iter().map(tool).collect(),
            ..SystemMessage::default()
        };
        Talk { demo, messages: vec![Arc::new(Message::System(patch))] }
    }

    pub(super) fn owner() -> Talk {
        let mut talk = Talk::new(Demo::new(0), &OWNER_TOOLS);
        talk.user("What is in here?");
        talk
    }

    pub(super) fn child(errand: Errand) -> Talk {
        let mut talk = Talk::new(Demo::new(0), &CHILD_TOOLS);
        talk.user(&prompt(&errand.task()));
        talk
    }

    pub(super) fn user(&mut self, text: &str) {
        self.messages.push(Arc::new(Message::user_text(text, Time(1))));
    }

    pub(super) fn crew(&mut self, custom_type: &str, content: &Value) {
        self.messages.push(Arc::new(Message::Custom(CustomMessage {
            custom_type: custom_type.to_owned(),
            content: Content::Text(content.to_string()),
            display: true,
            details: None,
            timestamp: Time(1),
        })));
    }

    pub(super) fn result(&mut self, call: &ToolCall, answer: &Answer) {
        let cut = json!({"truncation": {"truncated": true}});
        self.messages.push(Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Block::text(answer.text.as_str())],
            details: answer.is_cut.then(|| Raw::of(&cut)),
            is_error: answer.is_error,
            usage: None,
            duration_ms: None,
            timestamp: Time(1),
        })));
    }

    pub(super) async fn ask(&mut self) -> AssistantMessage {
        let events = stream(&self.demo, &self.messages).await;
        let answer = gather(&events);
        let has_content = !answer.text().trim().is_empty() || answer.tool_calls().count() > 0;
        assert!(has_content, "an answer says or does something");
        self.messages.push(Arc::new(Message::Assistant(answer.clone())));
        answer
    }
}

pub(super) fn request(messages: &[SharedMessage]) -> ModelRequest {
    let (catalog, _) = Catalog::build(None);
    ModelRequest {
        model: catalog.get(DEMO_PROVIDER, DEMO_MODEL).unwrap(),
        session: "s".into(),
        messages: messages.to_vec(),
        thinking: ThinkingLevel::Off,
        cache: CacheRetention::None,
        tool_choice: ToolChoice::Auto,
    }
}

pub(super) async fn stream(model: &dyn Model, messages: &[SharedMessage]) -> Vec<ModelEvent> {
    let request = request(messages);
    let events = Arc::new(Mutex::new(Vec::new()));
    let taken = events.clone();
    model.stream(request, Box::new(move |more| taken.lock().unwrap().extend(more))).await;
    std::mem::take(&mut *events.lock().unwrap())
}

/// The message that a stream makes; checks the order of its events.
pub(super) fn gather(events: &[ModelEvent]) -> AssistantMessage {
    assert_eq!(events.first(), Some(&ModelEvent::Started));
    let Some(ModelEvent::Finished { stop_reason, .. }) = events.last() else {
        panic!("a stream ends well: {events:?}");
    };
    let mut content = Vec::new();
    let mut streamed = BTreeMap::<usize, String>::new();
    let mut usage = None;
    for event in events {
        match event {
            ModelEvent::BlockDelta { index, delta } => {
                streamed.entry(*index).or_default().push_str(delta);
            }
            ModelEvent::BlockEnd { index, block } => {
                assert_eq!(*index, content.len());
                let whole = if let Block::ToolCall(call) = block {
                    call.arguments.text()
                } else {
                    block.as_text().expect("a script says text and calls only")
                };
                assert_eq!(streamed[index], whole);
                content.push(block.clone());
            }
            ModelEvent::Usage(counted) => usage = Some(counted.clone()),
            ModelEvent::Started
            | ModelEvent::BlockStart { .. }
            | ModelEvent::Identity { .. }
            | ModelEvent::Finished { .. }
            | ModelEvent::Failed(_) => {}
        }
    }
    let usage = usage.expect("usage is told");
    assert_eq!((usage.total_tokens, usage.cost.total), (usage.sum(), 0.0));
    assert!(usage.output > 0);
    let text = json!({"role": "assistant", "content": [], "stopReason": "stop"}).to_string();
    let Ok(Message::Assistant(empty)) = serde_json::from_str(&text) else { unreachable!() };
    AssistantMessage { content, stop_reason: *stop_reason, usage, ..empty }
}

/// The child prompt of `crew.md` TASK-7.
pub(super) fn prompt(task: &Value) -> String {
    let list =
        |name: &str| task[name].as_array().unwrap().iter().map(|item| item.as_str().unwrap());
    let context: Vec<_> = list("context").map(|item| format!("- {item}")).collect();
    let steps: Vec<_> =
        list("instructions").enumerate().map(|(at, item)| format!("{}. {item}", at + 1)).collect();
    format!(
        "## Goal\n\n{}\n\n## Context\n\n{}\n\n## Instructions\n\n{}",
        task["goal"].as_str().unwrap(),
        context.join("\n"),
        steps.join("\n"),
    )
}

/// What a tool gives back.
#[derive(Clone, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) is_error: bool,
    pub(super) is_cut: bool,
}

pub(super) fn good(text: impl Into<String>) -> Answer {
    Answer { text: text.into(), ..Answer::default() }
}

pub(super) fn bad(text: impl Into<String>) -> Answer {
    Answer { is_error: true, ..good(text) }
}

/// Owner, children and their tools.
pub(super) struct World<F> {
    tool: F,
    pub(super) demo: Demo,
    pub(super) owner: Talk,
    pub(super) children: BTreeMap<String, Talk>,
    /// Prompted and not reported.
    at_work: VecDeque<String>,
    /// Each call of the owner: name and arguments.
    pub(super) done: Vec<(String, Value)>,
    /// All results that wait are delivered at once.
    pub(super) together: bool,
}

impl<F: Fn(&ToolCall) -> Answer> World<F> {
    pub(super) fn new(demo: Demo, tool: F) -> World<F> {
        let mut owner = Talk::new(demo, &OWNER_TOOLS);
        owner.user("What is in here?");
        World {
            tool,
            demo,
            owner,
            children: BTreeMap::new(),
            at_work: VecDeque::new(),
            done: Vec::new(),
            together: false,
        }
    }

    /// Plays until nothing is in flight; gives the last text.
    pub(super) async fn play(&mut self) -> String {
        loop {
            let last = self.owner_run().await;
            let count = if self.together { self.at_work.len() } else { 1 };
            let ready: Vec<_> = self.at_work.drain(..count.min(self.at_work.len())).collect();
            if ready.is_empty() {
                return last;
            }
            for id in ready {
                let result = self.child_cycle(&id).await;
                self.owner.crew(
                    "crew-result",
                    &json!({"subagent_id": id, "brief": "b", "result": result}),
                );
            }
        }
    }

    async fn owner_run(&mut self) -> String {
        for _ in 0..8 {
            let answer = self.owner.ask().await;
            let calls: Vec<_> = answer.tool_calls().cloned().collect();
            if calls.is_empty() {
                return answer.text();
            }
            for call in calls {
                let arguments = call.arguments.value();
                self.done.push((call.name.clone(), arguments.clone()));
                let outcome = self.owner_tool(&call, &arguments);
                self.owner.result(&call, &outcome);
            }
            let open: Vec<_> = self.children.keys().collect();
            let open: Vec<_> =
                open.iter().map(|id| json!({"subagent_id": id, "status": "running"})).collect();
            self.owner.crew("crew-status", &json!({"crew_status": open}));
        }
        panic!("an owner run comes to an end");
    }

    fn owner_tool(&mut self, call: &ToolCall, arguments: &Value) -> Answer {
        let id = arguments["subagent_id"].as_str().unwrap_or_default();
        match call.name.as_str() {
            "crew_spawn" => {
                let name = arguments["subagent"].as_str().unwrap();
                let id = format!("{name}-{:08x}", self.children.len());
                let mut child = Talk::new(self.demo, &CHILD_TOOLS);
                child.user(&prompt(&arguments["task"]));
                self.children.insert(id.clone(), child);
                self.at_work.push_back(id.clone());
                good(json!({"subagent_id": id}).to_string())
            }
            "crew_respond" => {
                let child = self.children.get_mut(id).expect("only open ones are answered");
                child.user(arguments["message"].as_str().unwrap());
                self.at_work.push_back(id.to_owned());
                good(json!({"subagent_id": id}).to_string())
            }
            "crew_done" => {
                self.children.remove(id).expect("only open ones are closed");
                good(json!({"subagent_id": id}).to_string())
            }
            _ => (self.tool)(call),
        }
    }

    /// Runs a child to its report, which must be alone in its answer (RES-8).
    async fn child_cycle(&mut self, id: &str) -> Value {
        let child = self.children.get_mut(id).unwrap();
        for _ in 0..6 {
            let answer = child.ask().await;
            let calls: Vec<_> = answer.tool_calls().cloned().collect();
            assert!(!calls.is_empty(), "{id} reports before it stops");
            if calls[0].name == "crew_report" {
                assert_eq!(calls.len(), 1);
                child.result(&calls[0], &good("{}"));
                let result = calls[0].arguments.value();
                assert!(!result["report"].as_str().unwrap().trim().is_empty());
                assert_eq!(result["outcome"] == "needs_input", result.get("needs").is_some());
                return result;
            }
            for call in calls {
                let outcome = (self.tool)(&call);
                child.result(&call, &outcome);
            }
        }
        panic!("{id} comes to a report");
    }

    pub(super) fn count(&self, tool: &str) -> usize {
        self.done.iter().filter(|(name, _)| name == tool).count()
    }
}

/// Runs the calls in a folder.
pub(super) fn real(folder: &Path) -> impl Fn(&ToolCall) -> Answer {
    move |call| {
        let arguments = call.arguments.value();
        if call.name == "read" {
            let path = folder.join(arguments["path"].as_str().unwrap());
            return std::fs::read_to_string(path).map_or_else(|e| bad(e.to_string()), good);
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", arguments["command"].as_str().unwrap()]).current_dir(folder);
        shell.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        good(if text.is_empty() { "(no output)".to_owned() } else { text })
    }
}

pub(super) fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(
        folder.path().join("src/main.rs"),
        concat!("fn main() {}\n// TO", "DO: do more\n"),
    )
    .unwrap();
    std::fs::write(folder.path().join("src/util.rs"), "//\n").unwrap();
    std::fs::write(folder.path().join("README.md"), "# It\n".repeat(300)).unwrap();
    folder
}

/// Plays the opening and the owner's own look; gives the ids.
pub(super) async fn spawn_all(talk: &mut Talk) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = talk.ask().await;
        let calls: Vec<_> = answer.tool_calls().cloned().collect();
        for call in calls {
            let id = format!("x-{}", ids.len());
            if call.name == "crew_spawn" {
                talk.result(&call, &good(json!({"subagent_id": id}).to_string()));
                ids.push(id);
            } else {
                talk.result(&call, &good("a/\nb"));
            }
        }
    }
    assert_eq!(ids.len(), 3);
    ids
}
