//! A session, a scripted model, and the log that it wrote.
//!
//! After every step the context of the agent is compared with what a plain
//! projection of the written entries gives (`host.md` 2.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_agent::{
    Agent, CompactionReason, CompactionResult, CompactionSettings, Effect, Input, Loaded, Prompt,
    Settings, Update,
};
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{CallId, EntryId, Ids, RunId, SessionId};
use crew_base::json::Raw;
use crew_base::message::{
    Block, CompactionSummaryMessage, Content, CustomMessage, Message, StopReason, ToolCall, Usage,
};
use crew_base::model::{
    Api, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelSpec, Rates, ThinkingLevel,
};
use crew_base::session::{DeliveryId, ResultMessage, RunEnd};
use crew_base::time::Time;
use crew_base::tool::{ToolDefinition, ToolOutcome};

/// Tokens of the model's window in these tests.
pub(crate) const WINDOW: u64 = 1000;

pub(crate) struct World {
    pub(crate) agent: Agent,
    pub(crate) ids: Ids,
    pub(crate) now: Time,
    pub(crate) log: Vec<Entry>,
    pub(crate) updates: Vec<Update>,
    pub(crate) requests: Vec<(RunId, ModelRequest)>,
    pub(crate) tools: Vec<(RunId, ToolCall)>,
    pub(crate) cancelled: Vec<RunId>,
    pub(crate) settled: Vec<RunEnd>,
    pub(crate) entered: Vec<DeliveryId>,
    /// What the crew records at every boundary.
    pub(crate) status: Option<CustomMessage>,
    loaded: Vec<(EntryId, Message)>,
    calls: u64,
}

pub(crate) fn settings(keep_recent_tokens: u64) -> Settings {
    let compaction = CompactionSettings { enabled: true, reserve_tokens: 200, keep_recent_tokens };
    Settings { compaction, ..Settings::default() }
}

pub(crate) fn model(id: &str, context_window: u64) -> Arc<ModelSpec> {
    Arc::new(ModelSpec {
        provider: "p".into(),
        id: id.into(),
        name: id.into(),
        api: Api::Demo,
        api_word: "crew-demo".into(),
        base_url: String::new(),
        reasoning: false,
        thinking_levels: BTreeMap::new(),
        images: false,
        rates: Rates::default(),
        context_window,
        max_tokens: 100,
        sampling_params: None,
        headers: Vec::new(),
        auth_header: false,
        compat: None,
    })
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: String::new(),
        parameters: Raw::empty_object(),
        constrained_sampling: None,
    }
}

pub(crate) fn custom(kind: &str, text: &str) -> CustomMessage {
    CustomMessage {
        custom_type: kind.into(),
        content: Content::Text(text.into()),
        display: true,
        details: None,
        timestamp: Time(0),
    }
}

pub(crate) fn result(number: u64) -> ResultMessage {
    let message = custom("crew-result", &format!("result {number}"));
    ResultMessage { delivery: DeliveryId(number), message }
}

impl World {
    pub(crate) fn new(settings: Settings) -> World {
        World::over(Vec::new(), settings)
    }

    /// A session over a context found on disk.
    pub(crate) fn over(loaded: Vec<(EntryId, Message)>, settings: Settings) -> World {
        let shared = loaded.iter().map(|(entry, m)| (entry.clone(), Arc::new(m.clone())));
        let leaf = loaded.last().map(|(entry, _)| entry.clone());
        let found = Loaded { context: shared.collect(), leaf, ..Loaded::default() };
        let mut agent = Agent::new(SessionId::new("s"), found, settings);
        agent.use_model(model("m", WINDOW), ThinkingLevel::Off);
        agent.want_prompt(Prompt {
            sections: vec![("preamble".into(), "be good".into())],
            tools: vec![tool("read"), tool("bash")],
        });
        World {
            agent,
            ids: Ids::new(7),
            now: Time(1_796_046_183_000),
            log: Vec::new(),
            updates: Vec::new(),
            requests: Vec::new(),
            tools: Vec::new(),
            cancelled: Vec::new(),
            settled: Vec::new(),
            entered: Vec::new(),
            status: None,
            loaded,
            calls: 0,
        }
    }

    pub(crate) fn feed(&mut self, input: Input) {
        self.now = self.now + 1;
        let mut effects = self.agent.step(self.now, &mut self.ids, input);
        while matches!(effects.last(), Some(Effect::Boundary)) {
            effects.pop();
            let proceed = Input::Proceed(self.status.clone().into_iter().collect());
            effects.extend(self.agent.step(self.now, &mut self.ids, proceed));
        }
        self.take(effects);
        self.check_context();
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Append(entry) => self.log.push(entry),
                Effect::StartModel { run, request } => {
                    assert_paired(&request);
                    self.requests.push((run, request));
                }
                Effect::RunTool { run, call } => self.tools.push((run, call)),
                Effect::Cancel { run } => self.cancelled.push(run),
                Effect::Entered(delivery) => self.entered.push(delivery),
                Effect::Update(update) => self.updates.push(update),
                Effect::Settled(end) => self.settled.push(end),
                Effect::ReadBranch { .. } | Effect::MoveEnded(_) => panic!("nothing moves here"),
                Effect::Boundary | Effect::Refused(_) => {}
            }
        }
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        let message = Message::user_text(text, self.now);
        self.feed(Input::Prompt(vec![message]));
    }

    pub(crate) fn steer(&mut self, text: &str) {
        let message = Message::user_text(text, self.now);
        self.feed(Input::Steer(message));
    }

    /// Prompts and answers with text, usage as given.
    pub(crate) fn exchange(&mut self, prompt: &str, answer: &str, tokens: u64) {
        self.prompt(prompt);
        self.answer(answer, tokens);
    }

    pub(crate) fn run(&self) -> RunId {
        self.requests.last().expect("a request was made").0
    }

    pub(crate) fn events(&mut self, events: Vec<ModelEvent>) {
        let run = self.run();
        self.feed(Input::Model { run, events });
    }

    pub(crate) fn finish(&mut self, blocks: Vec<Block>, usage: Usage, stop_reason: StopReason) {
        let mut events = vec![ModelEvent::Started];
        for (index, block) in blocks.into_iter().enumerate() {
            events.push(ModelEvent::BlockStart { index, block: block.clone() });
            events.push(ModelEvent::BlockEnd { index, block });
        }
        events.push(ModelEvent::Usage(usage));
        events.push(ModelEvent::Finished { stop_reason, raw_stop_reason: None });
        self.events(events);
    }

    pub(crate) fn answer(&mut self, text: &str, tokens: u64) {
        let usage = Usage { total_tokens: tokens, ..Usage::default() };
        self.finish(vec![Block::text(text)], usage, StopReason::Stop);
    }

    pub(crate) fn call(&mut self, names: &[&str], tokens: u64, stop_reason: StopReason) {
        let calls = names.iter().map(|name| {
            self.calls += 1;
            Block::ToolCall(ToolCall {
                id: CallId::new(format!("c{}", self.calls)),
                name: (*name).to_owned(),
                arguments: Raw::parse(r#"{"path":"a.rs"}"#).expect("it is JSON"),
                thought_signature: None,
                namespace: None,
                arguments_error: None,
            })
        });
        let blocks = calls.collect();
        let usage = Usage { total_tokens: tokens, output: 5, ..Usage::default() };
        self.finish(blocks, usage, stop_reason);
    }

    /// Ends every tool that runs.
    pub(crate) fn tools_end(&mut self, text: &str) {
        for (run, _) in std::mem::take(&mut self.tools) {
            self.feed(Input::ToolEnded { run, outcome: ToolOutcome::text(text) });
        }
    }

    pub(crate) fn fail(&mut self, kind: ModelErrorKind, text: &str) {
        self.events(vec![ModelEvent::Failed(ModelError::new(kind, text))]);
    }

    pub(crate) fn overflow(&mut self) {
        self.fail(ModelErrorKind::Provider, "400: prompt is too long: 2000 tokens > 1000 maximum");
    }

    pub(crate) fn compact(&mut self) {
        self.feed(Input::Compact { instructions: None });
    }

    /// Lets the deadline pass.
    pub(crate) fn wait(&mut self) {
        self.now = self.agent.deadline().expect("something waits");
        self.feed(Input::Tick);
    }

    /// The text of the request under way.
    pub(crate) fn asked(&self) -> String {
        let messages = &self.requests.last().expect("a request was made").1.messages;
        messages.iter().map(|message| text_of(message)).collect::<Vec<_>>().join("\n")
    }

    /// Texts of the context, the prompt left out.
    pub(crate) fn context(&self) -> Vec<String> {
        let messages = self.agent.record().messages();
        let shown = messages.filter(|message| !matches!(message.as_ref(), Message::System(_)));
        shown.map(|message| text_of(message)).collect()
    }

    pub(crate) fn compactions(&self) -> Vec<&Entry> {
        let is_one = |entry: &&Entry| matches!(entry.body, EntryBody::Compaction { .. });
        self.log.iter().filter(is_one).collect()
    }

    /// Reason, aborted, will retry and error of every end.
    pub(crate) fn ends(&self) -> Vec<(CompactionReason, bool, bool, Option<&str>)> {
        let end = |update| {
            let &Update::CompactionEnd { reason, aborted, will_retry, ref error, .. } = update
            else {
                return None;
            };
            Some((reason, aborted, will_retry, error.as_deref()))
        };
        self.updates.iter().filter_map(end).collect()
    }

    pub(crate) fn last_result(&self) -> CompactionResult {
        let result = |update: &Update| {
            let Update::CompactionEnd { result, .. } = update else { return None };
            result.clone()
        };
        self.updates.iter().rev().find_map(result).expect("a compaction succeeded")
    }

    /// Words for the updates that shape a run.
    pub(crate) fn shape(&self) -> Vec<&'static str> {
        let word = |update: &Update| match update {
            Update::AgentStart => Some("agent_start"),
            Update::TurnStart => Some("turn_start"),
            Update::TurnEnd { .. } => Some("turn_end"),
            Update::AgentEnd { .. } => Some("agent_end"),
            Update::AgentSettled { aborted: true } => Some("aborted"),
            Update::AgentSettled { .. } => Some("settled"),
            Update::CompactionStart { .. } => Some("compaction_start"),
            Update::CompactionEnd { .. } => Some("compaction_end"),
            Update::SummaryRetryScheduled { .. } => Some("summary_wait"),
            Update::SummaryRetryStart { .. } => Some("summary_again"),
            Update::SummaryRetryFinished => Some("summary_finished"),
            Update::BranchSummaryStart | Update::MoveEnd(_) => None,
            Update::RetryStart { .. } => Some("retry"),
            Update::RetryEnd { .. } => Some("retry_end"),
            Update::MessageStart(_)
            | Update::MessageUpdate { .. }
            | Update::MessageEnd(_)
            | Update::ToolStart { .. }
            | Update::ToolProgress { .. }
            | Update::ToolEnd { .. }
            | Update::QueueUpdate { .. }
            | Update::ThinkingLevelChanged(_)
            | Update::SessionInfoChanged(_)
            | Update::EntryAppended(_) => None,
        };
        self.updates.iter().filter_map(word).collect()
    }

    fn check_context(&self) {
        let projected = project(&self.loaded, &self.log).into_iter().map(|m| untimed(&m));
        let held = self.agent.record().messages().map(|message| untimed(message));
        let (held, projected): (Vec<_>, Vec<_>) = (held.collect(), projected.collect());
        assert_eq!(held, projected, "the context differs from the projection of the log");
    }
}

/// Without the time of a summary, which is that of its entry as text.
fn untimed(message: &Message) -> Message {
    if let Message::CompactionSummary(summary) = message {
        let timestamp = Time(0);
        return Message::CompactionSummary(CompactionSummaryMessage {
            timestamp,
            ..summary.clone()
        });
    }
    message.clone()
}

/// The context that the entries give (`host.md` 2.6.2 to 2.6.4).
fn project(loaded: &[(EntryId, Message)], log: &[Entry]) -> Vec<Message> {
    let found = loaded.iter().map(|(entry, message)| (entry.clone(), Some(message.clone())));
    let written = log.iter().map(|entry| (entry.id.clone(), message_of(&entry.body)));
    let path: Vec<(EntryId, Option<Message>)> = found.chain(written).collect();
    let is_compaction = |entry: &&Entry| matches!(entry.body, EntryBody::Compaction { .. });
    let compaction = log.iter().rfind(is_compaction);
    let place = |wanted: &EntryId| path.iter().position(|(entry, _)| entry == wanted);
    let (mut head, mut from, mut behind) = (Vec::new(), 0, 0);
    if let Some(entry) = compaction
        && let EntryBody::Compaction {
            summary,
            first_kept_entry_id,
            tokens_before,
            system_message,
            ..
        } = &entry.body
    {
        behind = place(&entry.id).expect("a written entry is on the path");
        from = place(first_kept_entry_id).expect("the kept entry is on the path");
        head.extend(system_message.clone());
        head.push(Message::CompactionSummary(CompactionSummaryMessage {
            summary: summary.clone(),
            tokens_before: *tokens_before,
            timestamp: Time(0),
        }));
    }
    let dropped: Vec<&EntryId> = log.iter().filter_map(|entry| edited(&entry.body)).collect();
    let is_kept = |(at, (entry, message)): &(usize, &(EntryId, Option<Message>))| {
        let is_prompt = matches!(message, Some(Message::System(_)));
        *at >= from && !(is_prompt && *at < behind) && !dropped.contains(&entry)
    };
    let kept = path.iter().enumerate().filter(is_kept);
    head.extend(kept.filter_map(|(_, (_, message))| message.clone()));
    head
}

fn message_of(body: &EntryBody) -> Option<Message> {
    if let EntryBody::Message { message } = body {
        return Some(message.clone());
    }
    let EntryBody::CustomMessage { custom_type, content, display, details } = body else {
        return None;
    };
    Some(Message::Custom(CustomMessage {
        custom_type: custom_type.clone(),
        content: content.clone(),
        display: *display,
        details: details.clone(),
        timestamp: Time(0),
    }))
}

fn edited(body: &EntryBody) -> Option<&EntryId> {
    let EntryBody::ContextEdit { target_id, .. } = body else { return None };
    Some(target_id)
}

pub(crate) fn text_of(message: &Message) -> String {
    match message {
        Message::System(system) => system.content.text(),
        Message::User(user) => user.content.text(),
        Message::Custom(custom) => custom.content.text(),
        Message::Assistant(answer) => {
            let calls = answer.tool_calls().map(|call| format!("[{}]", call.id));
            answer.text() + &calls.collect::<String>()
        }
        Message::ToolResult(result) => {
            format!("({})", result.content.iter().filter_map(Block::as_text).collect::<String>())
        }
        Message::BashExecution(run) => run.command.clone(),
        Message::BranchSummary(branch) => branch.summary.clone(),
        Message::CompactionSummary(summary) => summary.summary.clone(),
    }
}

/// Every call has its results directly behind it, and no result stands alone.
fn assert_paired(request: &ModelRequest) {
    let mut open: Vec<String> = Vec::new();
    for message in &request.messages {
        match message.as_ref() {
            Message::ToolResult(result) => {
                let id = result.tool_call_id.to_string();
                let at = open.iter().position(|call| *call == id);
                open.remove(at.unwrap_or_else(|| panic!("a result for no open call: {id}")));
            }
            Message::System(_)
            | Message::User(_)
            | Message::Assistant(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                if let Some(answer) = message.as_assistant()
                    && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                {
                    open = answer.tool_calls().map(|call| call.id.to_string()).collect();
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}
