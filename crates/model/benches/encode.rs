//! Speed of writing a request, by the length of its conversation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::json::from_text;
use crew_base::message::SharedMessage;
use crew_base::model::{
    Api, CacheRetention, ModelRequest, ModelSpec, Rates, ThinkingLevel, ToolChoice,
};
use crew_model::wire::{EncodeOptions, encode};
use divan::Bencher;
use divan::counter::BytesCount;

/// Tools that are offered, each with a schema of some size.
const TOOLS: usize = 8;
/// One line of a tool's output, 64 bytes.
const LINE: &str = r"pub fn name_of_something(argument: &Type) -> Result<Value, E> {\n";

fn main() {
    divan::main();
}

fn model(api: Api) -> ModelSpec {
    ModelSpec {
        provider: "bench".into(),
        id: "m1".into(),
        name: "m1".into(),
        api,
        api_word: api.word().into(),
        base_url: "http://127.0.0.1:9".into(),
        reasoning: false,
        thinking_levels: BTreeMap::new(),
        images: false,
        rates: Rates::default(),
        context_window: 1_000_000_000,
        max_tokens: 8192,
        sampling_params: None,
        headers: Vec::new(),
        auth_header: false,
        compat: None,
    }
}

fn message(text: &str) -> SharedMessage {
    Arc::new(from_text(text).expect("the messages here are valid"))
}

fn system() -> SharedMessage {
    let mut tools = String::new();
    for number in 0..TOOLS {
        let comma = if number > 0 { "," } else { "" };
        let properties = r#""path":{"type":"string","description":"Some file of the project."}"#;
        write!(
            tools,
            r#"{comma}{{"name":"tool{number}","description":"{}","parameters":{{"type":"object","required":["path"],"properties":{{{properties}}}}}}}"#,
            "What it does. ".repeat(20),
        )
        .expect("a string takes everything");
    }
    message(&format!(
        r#"{{"role":"system","content":"","sections":{{"preamble":"{}"}},"toolsAdded":[{tools}]}}"#,
        "What to do. ".repeat(300),
    ))
}

/// A prompt, then turns of one call and its result of some lines.
fn request(api: Api, turns: usize, lines: usize) -> ModelRequest {
    let mut messages = vec![system(), message(r#"{"role":"user","content":"go"}"#)];
    let output = LINE.repeat(lines);
    for turn in 0..turns {
        messages.push(message(&format!(
            r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"toolu_{turn}","name":"tool0","arguments":{{"path":"notes.txt"}}}}],"api":"{}","provider":"bench","model":"m1","stopReason":"toolUse"}}"#,
            api.word(),
        )));
        messages.push(message(&format!(
            r#"{{"role":"toolResult","toolCallId":"toolu_{turn}","toolName":"tool0","content":[{{"type":"text","text":"{output}"}}],"isError":false}}"#,
        )));
    }
    ModelRequest {
        model: Arc::new(model(api)),
        session: SessionId::from("s-1"),
        messages,
        thinking: ThinkingLevel::Off,
        cache: CacheRetention::Short,
        tool_choice: ToolChoice::Auto,
    }
}

fn bench(bencher: Bencher, api: Api, turns: usize, lines: usize) {
    let request = request(api, turns, lines);
    let options = EncodeOptions::default();
    let write = || encode(&request, &options).expect("the model has a format").body;
    bencher.counter(BytesCount::from(write().len())).bench_local(write);
}

/// What a child or a short session sends.
#[divan::bench(args = [0, 5, 200])]
fn anthropic_short_results(bencher: Bencher, turns: usize) {
    bench(bencher, Api::AnthropicMessages, turns, 1);
}

/// A long session that is resumed.
#[divan::bench(args = [2_000], sample_count = 10)]
fn anthropic_long_results(bencher: Bencher, turns: usize) {
    bench(bencher, Api::AnthropicMessages, turns, 80);
}

#[divan::bench(args = [5, 200])]
fn completions(bencher: Bencher, turns: usize) {
    bench(bencher, Api::OpenaiCompletions, turns, 1);
}

#[divan::bench(args = [5, 200])]
fn responses(bencher: Bencher, turns: usize) {
    bench(bencher, Api::OpenaiResponses, turns, 1);
}
