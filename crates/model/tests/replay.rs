//! From one answer to the next request: what a provider signed or hid comes
//! back unchanged to the same model, and goes to no other one.

mod common;

use std::sync::Arc;

use crew_base::json::from_text;
use crew_base::model::{Api, ModelRequest};
use crew_model::wire::{EncodeOptions, encode};

/// The body of the request that follows an answer of `from` to this stream,
/// with results for its calls.
fn next_body(from: &ModelRequest, to: &ModelRequest, stream: &str) -> String {
    let answer = common::gather(&common::play_all(from, stream.as_bytes()));
    assert_eq!(answer.error, None);
    let calls: Vec<_> = answer.blocks.iter().filter_map(call_id).collect();
    let blocks = serde_json::to_string(&answer.blocks).expect("blocks are JSON");
    let (api, model) = (from.model.api.word(), &from.model.id);
    let mut texts = vec![r#"{"role":"user","content":"go"}"#.to_owned()];
    texts.push(format!(
        r#"{{"role":"assistant","provider":"fake","api":"{api}","model":"{model}",
            "stopReason":"stop","content":{blocks}}}"#
    ));
    for id in calls {
        let content = r#"[{"type":"text","text":"result"}]"#;
        texts.push(format!(
            r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"ls","content":{content}}}"#
        ));
    }
    texts.push(r#"{"role":"user","content":"next"}"#.to_owned());
    let mut request = to.clone();
    let read = |text: &String| Arc::new(from_text(text).expect("a message"));
    request.messages = texts.iter().map(read).collect();
    encode(&request, &EncodeOptions::default()).expect("the request can be written").body
}

fn call_id(block: &crew_base::message::Block) -> Option<String> {
    if let crew_base::message::Block::ToolCall(call) = block {
        Some(call.id.to_string())
    } else {
        None
    }
}

fn golden(path: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read_to_string(folder.join(path)).expect("a golden stream can be read")
}

/// Every part is in the request to the same model, in this order; none of them
/// is in a request to another model of the same API or to another API.
fn check(api: Api, model: &str, stream: &str, parts: &[&str]) {
    let stream = golden(stream);
    let same = common::request(api, model);
    let body = next_body(&same, &same, &stream);
    let mut rest = body.as_str();
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part} in order in {body}"));
        rest = &rest[at + part.len()..];
    }
    let apis = [
        Api::AnthropicMessages,
        Api::OpenaiCompletions,
        Api::OpenaiResponses,
        Api::GoogleGenerativeAi,
    ];
    for other in apis {
        let foreign = next_body(&same, &common::request(other, "m2"), &stream);
        for part in parts {
            assert!(!foreign.contains(part), "{part} at {other:?} in {foreign}");
        }
        assert!(foreign.contains("result"), "{foreign}");
    }
}

#[test]
fn reasoning_text_and_details_go_back_to_the_same_service() {
    // host.md 9.3.5, 9.1.3; C103.
    let stream = "completions/reasoning-text-call-usage.sse";
    check(Api::OpenaiCompletions, "m1", stream, &[r#""reasoning_content":"Look first.""#]);
    let stream = "completions/encrypted-reasoning-only.sse";
    let details = r#""reasoning_details":[{"type":"reasoning.encrypted","data":"AAAA"}]"#;
    check(Api::OpenaiCompletions, "m1", stream, &[details]);
}

#[test]
fn reasoning_items_go_back_with_their_ids_before_what_they_led_to() {
    // host.md 9.4.3, 9.4.4, 9.4.8; dependencies.md 1.
    let parts = [r#""encrypted_content":"RU5D""#, r#""id":"msg_1""#, r#""id":"fc_1""#];
    check(Api::OpenaiResponses, "m1", "responses/reasoning-text-and-call.sse", &parts);
    let stream = golden("responses/encrypted-reasoning-only-at-the-end.sse");
    let request = common::request(Api::OpenaiResponses, "m1");
    let body = next_body(&request, &request, &stream);
    assert!(body.contains(r#""encrypted_content":"TEFURQ==""#), "{body}");
}

#[test]
fn signatures_stay_on_their_part() {
    // host.md 9.5.2; 11.113.
    let parts = [
        r#""thought":true,"text":"Hm, yes","thoughtSignature":"QUFBQQ==""#,
        r#""args":{"path":"a"},"id":""#,
        r#""thoughtSignature":"QkJCQg=="},{"functionCall":{"name":"read","args":{"path":"b"}"#,
    ];
    let stream = "google/thoughts-text-and-calls.sse";
    check(Api::GoogleGenerativeAi, "gemini-3-flash", stream, &parts);
}

#[test]
fn arguments_reach_the_next_request_in_their_own_text() {
    // host.md 0.1, 0.6; C098.
    let request = common::request(Api::GoogleGenerativeAi, "gemini-3-flash");
    let body = next_body(&request, &request, &golden("google/arguments-keep-their-text.sse"));
    let kept = r#""args":{"f":1.0,"e":1e5,"big":12345678901234567890123,"t":"a  b"}"#;
    assert!(body.contains(kept), "{body}");
    let request = common::request(Api::OpenaiCompletions, "m1");
    let body = next_body(&request, &request, &golden("completions/arguments-as-object.sse"));
    let kept = r#""arguments":"{\"n\":1.0,\"big\":12345678901234567890123,\"e\":1e5}""#;
    assert!(body.contains(kept), "{body}");
}
