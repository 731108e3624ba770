//! What must hold for any bytes a provider sends: the same result at every cut
//! of the bytes, the contract of `crew_base::model`, no panic.
//!
//! Used by the fuzz targets and, with the corpus, by a test of `crew-model`.
//! Knows no format. Must never do IO.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::json::Raw;
use crew_base::message::Block;
use crew_base::model::{
    Api, CacheRetention, ModelEvent, ModelRequest, ModelSpec, Rates, ThinkingLevel, ToolChoice,
};
use crew_model::arguments;
use crew_model::sse::SseDecoder;
use crew_model::wire::ResponseReader;

/// Server-sent events are the same at every cut (`host.md` 9.2.8).
pub(crate) fn sse(bytes: &[u8]) {
    let read = |step: usize| {
        let mut events = Vec::new();
        let mut on_event = |name: &str, data: &str| events.push((name.to_owned(), data.to_owned()));
        let mut decoder = SseDecoder::default();
        let fits = bytes.chunks(step).all(|piece| decoder.feed(piece, &mut on_event).is_ok());
        assert!(fits, "so few bytes are never too many");
        decoder.end(&mut on_event);
        events
    };
    let whole = read(bytes.len().max(1));
    for step in [1, 2, 7] {
        assert_eq!(read(step), whole, "in pieces of {step}");
    }
}

/// A whole response body of one wire format (`host.md` 9.2 to 9.5).
pub(crate) fn response(api: Api, bytes: &[u8]) {
    let request = request(api);
    let read = |step: usize| {
        let mut reader = ResponseReader::new(&request);
        let mut events = Vec::new();
        for piece in bytes.chunks(step) {
            reader.feed(piece, &mut events);
        }
        reader.end(&mut events);
        assert!(reader.is_done(), "the stream has an end");
        events
    };
    let whole = read(bytes.len().max(1));
    // The end of an item may correct what was streamed of it (`host.md` 9.4).
    keeps_contract(&whole, api != Api::OpenaiResponses);
    for step in [1, 7] {
        assert_eq!(read(step), whole, "in pieces of {step}");
    }
}

/// The arguments of a tool call become an object, or an error that shows them
/// (`host.md` 3.3.6); what was mended needs no further mending.
pub(crate) fn arguments(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let got = arguments::parse(&text);
    let value = got.value.text();
    assert!(value.starts_with('{') && !value.contains('\n'), "one object on one line: {value}");
    match got.error {
        Some(error) => assert!(value == "{}" && error.ends_with(&*text), "{error}"),
        None => {
            let again = arguments::parse(value);
            assert_eq!((again.value.text(), again.error), (value, None));
        }
    }
    if let Some(raw) = Raw::parse(&text) {
        assert!(arguments::of_raw(&raw).value.text().starts_with('{'));
    }
}

/// Blocks start in order and end at most once, texts are the sum of their
/// deltas where `adds_up`, there is one ending and nothing behind it.
fn keeps_contract(events: &[ModelEvent], adds_up: bool) {
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
                if let (Block::Text(text), true) = (block, adds_up) {
                    assert_eq!(text.text, texts[*index], "deltas add up");
                }
                let stored = serde_json::to_string(block).expect("a block is JSON");
                assert!(!stored.contains('\n'), "a session file stays one entry a line");
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

fn request(api: Api) -> ModelRequest {
    let model = ModelSpec {
        provider: "fuzz".into(),
        id: "m1".into(),
        name: "m1".into(),
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
