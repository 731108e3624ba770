//! Small values that many tests need: a model, tools, definitions, answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_agent::{Loaded, Prompt};
use crew_base::definition::{DEFAULT_CHILD_TOOLS, Definition, Discovery, Source};
use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::message::{Block, StopReason, ToolCall, Usage};
use crew_base::model::{
    Api, ModelError, ModelErrorKind, ModelEvent, ModelSpec, Rates, ThinkingLevel,
};
use crew_base::tool::ToolDefinition;
use crew_engine::api::task::{Approval, OpenTask, bash_definition, wait_definition};
use crew_engine::{Opened, api};

/// A tool without arguments.
pub fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters: Raw::empty_object(),
        constrained_sampling: None,
    }
}

/// `bash`, `task` and the six owner tools.
pub fn owner_tools() -> Vec<ToolDefinition> {
    let mut tools = vec![tool("bash"), tool("task")];
    tools.extend(api::owner_tools());
    tools
}

/// `bash`, `read`, `task` and the report tool.
pub fn child_tools() -> Vec<ToolDefinition> {
    vec![tool("bash"), tool("read"), tool("task"), api::report_tool()]
}

/// The tools of a child of `task`, as its plan names them.
pub fn task_tools(open: &OpenTask) -> Vec<ToolDefinition> {
    let named = |name: &String| match name.as_str() {
        "bash" => bash_definition(&tool(name)),
        "wait" => wait_definition(),
        "yield" => open.yield_tool.clone(),
        _ => tool(name),
    };
    open.tools.iter().map(named).collect()
}

/// A session that was prepared with these tools: new, in a file, with a model.
pub fn opened(file: &str, tools: Vec<ToolDefinition>) -> Opened {
    Opened {
        file: Some(file.to_owned()),
        model: Some(model("m")),
        is_fallback: false,
        fallbacks: Vec::new(),
        thinking: ThinkingLevel::Off,
        prompt: Prompt { sections: vec![("preamble".into(), "p".into())], tools },
        loaded: Loaded::default(),
        is_new: true,
        name: None,
        approval: Approval::default(),
    }
}

/// A definition with the default tools and the owner's model.
pub fn definition(name: &str) -> Definition {
    Definition {
        name: name.into(),
        description: "d".into(),
        source: Source::Bundled,
        path: name.into(),
        model: None,
        thinking: None,
        tools: DEFAULT_CHILD_TOOLS.map(str::to_owned).to_vec(),
        skills: None,
        compaction: true,
        prompt: String::new(),
    }
}

/// A discovery that found these definitions.
pub fn discovery(names: &[&str]) -> Discovery {
    let definitions = names.iter().map(|name| Arc::new(definition(name))).collect();
    Discovery { definitions, ..Discovery::default() }
}

/// A model of the provider `sim` that costs nothing and cannot reason.
pub fn model(id: &str) -> Arc<ModelSpec> {
    Arc::new(ModelSpec {
        provider: "sim".into(),
        id: id.into(),
        name: id.into(),
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

/// A tool call of a model.
pub fn call(id: &str, name: &str, arguments: &serde_json::Value) -> ToolCall {
    ToolCall {
        id: CallId::from(id),
        name: name.to_owned(),
        arguments: Raw::of(arguments),
        thought_signature: None,
        namespace: None,
        arguments_error: None,
    }
}

/// The start and the end of a block.
pub fn block(index: usize, block: Block) -> [ModelEvent; 2] {
    let start = ModelEvent::BlockStart { index, block: block.clone() };
    [start, ModelEvent::BlockEnd { index, block }]
}

/// Eleven tokens.
pub fn usage() -> ModelEvent {
    ModelEvent::Usage(Usage { input: 10, output: 1, total_tokens: 11, ..Usage::default() })
}

/// The end of a good answer.
pub fn finished(stop_reason: StopReason) -> ModelEvent {
    ModelEvent::Finished { stop_reason, raw_stop_reason: None }
}

/// A whole good answer of these blocks.
pub fn answer(blocks: Vec<Block>) -> Vec<ModelEvent> {
    let calls = blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
    let stop = if calls { StopReason::ToolUse } else { StopReason::Stop };
    let mut events = vec![ModelEvent::Started];
    events.extend(blocks.into_iter().enumerate().flat_map(|(at, part)| block(at, part)));
    events.extend([usage(), finished(stop)]);
    events
}

/// The end of a failed answer.
pub fn failed(kind: ModelErrorKind, status: Option<u16>) -> ModelEvent {
    ModelEvent::Failed(ModelError { status, ..ModelError::new(kind, "scripted failure") })
}
