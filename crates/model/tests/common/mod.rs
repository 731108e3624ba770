//! What the stream tests of all wire formats share: requests, feeding a stream
//! at every cut, and the cases of the conformance kit where it is at hand.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::message::{Block, StopReason, Usage};
use crew_base::model::{
    Api, CacheRetention, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelSpec, Rates,
    ThinkingLevel, ToolChoice,
};
use crew_model::wire::ResponseReader;
use serde_json::Value;

/// A request to a thinking model of an API; its messages are empty.
pub(crate) fn request(api: Api, model_id: &str) -> ModelRequest {
    let model = ModelSpec {
        provider: "fake".into(),
        id: model_id.into(),
        name: model_id.into(),
        api,
        api_word: api.word().into(),
        base_url: "http://127.0.0.1:9".into(),
        reasoning: true,
        thinking_levels: BTreeMap::new(),
        images: true,
        rates: Rates::default(),
        context_window: 200_000,
        max_tokens: 16_384,
        sampling_params: None,
        headers: Vec::new(),
        auth_header: false,
        compat: None,
    };
    ModelRequest {
        model: Arc::new(model),
        session: SessionId::from("s-1"),
        messages: Vec::new(),
        thinking: ThinkingLevel::Off,
        cache: CacheRetention::None,
        tool_choice: ToolChoice::Auto,
    }
}

/// Feeds a body in pieces of `step` bytes, then ends it.
pub(crate) fn play(request: &ModelRequest, body: &[u8], step: usize) -> Vec<ModelEvent> {
    let mut reader = ResponseReader::new(request);
    let mut events = Vec::new();
    for piece in body.chunks(step) {
        reader.feed(piece, &mut events);
    }
    reader.end(&mut events);
    assert!(reader.is_done(), "the stream has an end");
    events
}

/// The events of a body, which must be the same at every cut and keep the
/// contract of `crew_base::model`.
pub(crate) fn play_all(request: &ModelRequest, body: &[u8]) -> Vec<ModelEvent> {
    let whole = play(request, body, body.len().max(1));
    for step in [1, 7] {
        assert_eq!(play(request, body, step), whole, "in pieces of {step}");
    }
    check_contract(&whole);
    whole
}

/// Blocks start in order, end once, and all end before `Finished`; deltas add
/// up to the block; exactly one ending, at the end.
fn check_contract(events: &[ModelEvent]) {
    let mut texts: Vec<String> = Vec::new();
    let mut open: Vec<bool> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let last = at + 1 == events.len();
        match event {
            ModelEvent::BlockStart { index, .. } => {
                assert_eq!(*index, open.len(), "blocks are numbered in order");
                open.push(true);
                texts.push(String::new());
            }
            ModelEvent::BlockDelta { index, delta } => {
                assert!(open[*index] && !delta.is_empty());
                texts[*index].push_str(delta);
            }
            ModelEvent::BlockEnd { index, block } => {
                assert!(std::mem::take(&mut open[*index]), "a block ends once");
                if let Block::Text(text) = block {
                    assert_eq!(text.text, texts[*index], "deltas add up");
                }
            }
            ModelEvent::Finished { .. } => {
                assert!(last && open.iter().all(|open| !open), "all blocks ended");
            }
            ModelEvent::Failed(_) => assert!(last, "a failure is the end"),
            ModelEvent::Started | ModelEvent::Usage(_) | ModelEvent::Identity { .. } => {}
        }
    }
    let ended = matches!(events.last(), Some(ModelEvent::Finished { .. } | ModelEvent::Failed(_)));
    assert!(ended, "the last event is an ending");
}

/// One line for each event, for golden files.
pub(crate) fn transcript(events: &[ModelEvent]) -> String {
    let json = |block: &Block| serde_json::to_string(block).expect("a block is JSON");
    let lines = events.iter().map(|event| match event {
        ModelEvent::Started => "started".to_owned(),
        ModelEvent::BlockStart { index, block } => format!("start {index} {}", json(block)),
        ModelEvent::BlockDelta { index, delta } => format!("delta {index} {delta:?}"),
        ModelEvent::BlockEnd { index, block } => format!("end {index} {}", json(block)),
        ModelEvent::Usage(usage) => {
            let usage = serde_json::to_string(usage).expect("usage is JSON");
            format!("usage {usage}")
        }
        ModelEvent::Identity { response_id, response_model } => {
            format!("identity {response_id:?} {response_model:?}")
        }
        ModelEvent::Finished { stop_reason, raw_stop_reason } => {
            format!("finished {stop_reason:?} {raw_stop_reason:?}")
        }
        ModelEvent::Failed(error) => {
            format!("failed {:?} {:?} {:?}", error.kind, error.raw_stop_reason, error.message)
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// Plays every `.sse` file of `tests/golden/<folder>` and compares with the
/// `.events` file beside it. With `GOLDEN_BLESS` set, writes that file.
pub(crate) fn check_golden(folder: &str, request: &ModelRequest) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let streams = files(&folder, "", "sse");
    assert!(!streams.is_empty());
    for stream in streams {
        let body = fs::read(&stream).expect("a golden stream can be read");
        let got = transcript(&play_all(request, &body));
        let expected = stream.with_extension("events");
        if std::env::var_os("GOLDEN_BLESS").is_some() {
            fs::write(&expected, &got).expect("a golden file can be written");
        }
        let known = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(got, known, "{}", stream.display());
    }
}

fn files(folder: &Path, prefix: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut wanted: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(prefix))
        })
        .collect();
    wanted.sort();
    wanted
}

/// What is left of a response when all its events are gathered.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Ended blocks, and open text and thinking as far as it came.
    pub blocks: Vec<Block>,
    /// The last usage.
    pub usage: Usage,
    /// How it ended.
    pub stop_reason: Option<StopReason>,
    /// Why it failed.
    pub error: Option<ModelError>,
}

/// Gathers events as a session would.
pub(crate) fn gather(events: &[ModelEvent]) -> Answer {
    let mut answer = Answer::default();
    for event in events {
        match event {
            ModelEvent::Started | ModelEvent::Identity { .. } => {}
            ModelEvent::BlockStart { block, .. } => answer.blocks.push(block.clone()),
            ModelEvent::BlockDelta { index, delta } => match &mut answer.blocks[*index] {
                Block::Text(text) => text.text.push_str(delta),
                Block::Thinking(thinking) => thinking.thinking.push_str(delta),
                Block::ToolCall(_) | Block::Image(_) | Block::Other(_) => {}
            },
            ModelEvent::BlockEnd { index, block } => answer.blocks[*index] = block.clone(),
            ModelEvent::Usage(usage) => answer.usage = usage.clone(),
            ModelEvent::Finished { stop_reason, .. } => answer.stop_reason = Some(*stop_reason),
            ModelEvent::Failed(error) => answer.error = Some(error.clone()),
        }
    }
    answer
}

/// Runs the kit's stream cases whose names start with `prefix` and gives their
/// number; none where the kit is not at hand.
pub(crate) fn check_kit(prefix: &str, api: Api) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/streams");
    if !folder.is_dir() {
        return 0;
    }
    let cases = files(&folder, prefix, "sse");
    for stream in &cases {
        let body = fs::read(stream).expect("a case can be read");
        let expected = fs::read_to_string(stream.with_extension("expect.json"))
            .expect("a case has an expectation");
        let case: Value = serde_json::from_str(&expected).expect("an expectation is JSON");
        let mut readings = vec![case["expect"].clone()];
        let others = case["accept_also"].as_array().into_iter().flatten();
        readings.extend(others.map(|other| overlaid(&case["expect"], other)));
        if case["name"] == "openai-chat-done-without-finish-reason" {
            // The host contract is stricter than the case (host.md 9.3.10).
            let strict = serde_json::json!({
                "stop_reason": "error", "error": {"kind": "truncated", "retryable": true},
            });
            readings.push(overlaid(&case["expect"], &strict));
        }
        let answer = gather(&play_all(&request(api, "m1"), &body));
        let misfits: Vec<_> = readings.iter().map(|wanted| misfit(wanted, &answer)).collect();
        assert!(
            misfits.iter().any(Option::is_none),
            "{}: {misfits:?}\n{answer:#?}",
            stream.display()
        );
    }
    cases.len()
}

fn overlaid(base: &Value, other: &Value) -> Value {
    let mut whole = base.clone();
    for (name, value) in other.as_object().into_iter().flatten() {
        whole[name] = value.clone();
    }
    whole
}

/// What of an answer does not fit an expectation.
fn misfit(wanted: &Value, answer: &Answer) -> Option<String> {
    let text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
    let said = wanted["text"].as_str().unwrap_or_default();
    if text.trim_matches('\n') != said.trim_matches('\n') {
        return Some(format!("text {text:?}"));
    }
    let stop = match (answer.stop_reason, &answer.error) {
        (Some(StopReason::Stop), None) => "stop",
        (Some(StopReason::Length), None) => "length",
        (Some(StopReason::ToolUse), None) => "toolUse",
        _ => "error",
    };
    if wanted["stop_reason"] != stop {
        return Some(format!("stop reason {stop}"));
    }
    if let Some(error) = &answer.error {
        let part = wanted["error"]["message_contains"].as_str().unwrap_or_default();
        let contained = error.message.to_lowercase().contains(&part.to_lowercase());
        if error.message.is_empty() || !contained {
            return Some(format!("message {:?}", error.message));
        }
        let retryable = is_transient(error);
        if wanted["error"]["retryable"].as_bool().is_some_and(|wish| wish != retryable) {
            return Some(format!("kind {:?}", error.kind));
        }
    }
    misfit_of_calls(wanted, answer, stop).or_else(|| misfit_of_usage(wanted, &answer.usage))
}

fn misfit_of_calls(wanted: &Value, answer: &Answer, stop: &str) -> Option<String> {
    if stop == "error" || stop == "length" {
        return None;
    }
    let calls: Vec<Value> = answer
        .blocks
        .iter()
        .filter_map(|block| {
            let Block::ToolCall(call) = block else {
                return None;
            };
            call.arguments_error.is_none().then(|| {
                serde_json::json!({
                    "id": call.id.as_str(),
                    "name": call.name,
                    "arguments": call.arguments.value(),
                })
            })
        })
        .collect();
    let empty = Vec::new();
    let known = wanted["tool_calls"].as_array().unwrap_or(&empty);
    let same = |(wanted, got): (&Value, &Value)| {
        let id = got["id"].as_str().unwrap_or_default();
        let call_part = id.split('|').next();
        let id_fits = wanted["id"] == "<generated>" || wanted["id"].as_str() == call_part;
        id_fits
            && !id.is_empty()
            && wanted["name"] == got["name"]
            && wanted["arguments"] == got["arguments"]
    };
    let fit = known.len() == calls.len() && known.iter().zip(&calls).all(same);
    (!fit).then(|| format!("calls {calls:?}"))
}

fn misfit_of_usage(wanted: &Value, usage: &Usage) -> Option<String> {
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cacheRead", usage.cache_read),
        ("cacheWrite", usage.cache_write),
    ];
    let off = counts.into_iter().find(|(name, count)| {
        let wish = wanted["usage"][*name].as_u64();
        wish.is_some_and(|wish| wish != *count)
    });
    off.map(|(name, count)| format!("usage {name} {count}"))
}

/// Whether a failure inside a stream is retried: by its kind (`product.md`
/// P-9d), a damaged stream by its words (`host.md` 3.6, list R).
pub(crate) fn is_transient(error: &ModelError) -> bool {
    use ModelErrorKind as K;
    match error.kind {
        K::Overloaded
        | K::RateLimit
        | K::Server
        | K::Truncated
        | K::Idle
        | K::Connection
        | K::MalformedCall
        | K::Empty => true,
        K::InvalidStream => error.message.contains("stream was interrupted"),
        K::Refusal | K::ContentFilter | K::Credential | K::Configuration | K::Provider => false,
    }
}
