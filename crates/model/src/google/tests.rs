//! Requests of `google-generative-ai`: small conversations and the JSON they
//! become.

use std::sync::Arc;

use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::model::{Api, ModelRequest, ModelSpec, ThinkingLevel, ToolChoice};
use serde_json::{Value, json};

use super::rewrite_id;
use crate::prepare::tests::request;
use crate::wire::{EncodeOptions, Encoded, encode};

const USER: &str = r#"{"role":"user","content":"hi"}"#;
const TOOLS: &str = r#"{"role":"system","content":"Be brief.","toolsAdded":[
    {"name":"ls","description":"Lists.","parameters":
        {"type":"object","properties":{"kind":{"const":"all"}},"required":["kind"]}}]}"#;

fn with(mut request: ModelRequest, change: impl FnOnce(&mut ModelSpec)) -> ModelRequest {
    change(Arc::make_mut(&mut request.model));
    request
}

/// A request to a model of this id.
fn asking(id: &str, messages: Vec<&str>) -> ModelRequest {
    let request = request(Api::GoogleGenerativeAi, messages);
    with(request, |model| model.id = id.into())
}

fn encoded(request: &ModelRequest) -> Encoded {
    encode(request, &EncodeOptions::default()).expect("the request can be written")
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_str(&encoded(request).body).expect("a body is JSON")
}

fn answer_of(provider: &str, model: &str, blocks: &[Value]) -> String {
    json!({"role": "assistant", "provider": provider, "api": "google-generative-ai",
        "model": model, "stopReason": "stop", "content": blocks})
    .to_string()
}

fn result(id: &str, content: Value, is_error: bool) -> String {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": content,
        "isError": is_error})
    .to_string()
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {"n": 1.0}})
}

#[test]
fn a_plain_request_has_only_what_it_needs() {
    // host.md 9.5.1.
    let sent = encoded(&asking("gemini-2.5-flash", vec![TOOLS, USER]));
    let url = "http://127.0.0.1:9/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
    assert_eq!(sent.url, url);
    let expected = json!({
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "ls", "description": "Lists.",
            "parametersJsonSchema": {"type": "object",
                "properties": {"kind": {"enum": ["all"]}}, "required": ["kind"]}}]}],
        "generationConfig": {"maxOutputTokens": 16_384, "thinkingConfig": {"thinkingBudget": 0}},
    });
    assert_eq!(serde_json::from_str::<Value>(&sent.body).expect("JSON"), expected);
}

#[test]
fn sampling_parameters_go_where_the_api_wants_them() {
    let text = r#"{"temperature":0.5,"safetySettings":[1],"generationConfig":{"topK":3}}"#;
    let sampling = Raw::parse(text);
    let request = asking("m", vec![USER]);
    let sent = body(&with(request, |model| model.sampling_params = sampling));
    assert_eq!(sent["safetySettings"], json!([1]));
    assert_eq!(sent["generationConfig"]["temperature"], 0.5);
    assert_eq!(sent["generationConfig"]["topK"], 3);
}

#[test]
fn parts_and_signatures_go_back_as_they_came() {
    // host.md 9.5.2, 9.5.3; 11.113.
    let blocks = [
        json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "QUJD"}),
        json!({"type": "thinking", "thinking": "", "thinkingSignature": "RA=="}),
        json!({"type": "thinking", "thinking": "odd", "thinkingSignature": "not base64"}),
        json!({"type": "text", "text": "", "textSignature": "RQ=="}),
        json!({"type": "text", "text": " "}),
        json!({"type": "text", "text": "so", "textSignature": "ABC"}),
        json!({"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"n": 1.0},
            "thoughtSignature": "Rg=="}),
    ];
    let output = result("c1", json!([{"type": "text", "text": "x"}]), false);
    let parts = |id: &str, blocks: &[Value]| {
        let said = answer_of("fake", "gemini-3-pro", blocks);
        let sent = body(&asking(id, vec![USER, &said, &output]));
        sent["contents"][1]["parts"].clone()
    };
    let same = json!([
        {"thought": true, "text": "hm", "thoughtSignature": "QUJD"},
        {"thought": true, "text": "", "thoughtSignature": "RA=="},
        {"thought": true, "text": "odd"},
        {"text": "", "thoughtSignature": "RQ=="},
        {"text": "so"},
        {"functionCall": {"name": "ls", "args": {"n": 1.0}, "id": "c1"},
            "thoughtSignature": "Rg=="},
    ]);
    assert_eq!(parts("gemini-3-pro", &blocks), same);
    let other = json!([{"text": "so"}, {"functionCall": {"name": "ls", "args": {"n": 1.0}}}]);
    assert_eq!(parts("gemini-2.5-pro", &blocks), other);
}

#[test]
fn results_stand_in_one_turn_with_images_where_the_model_takes_them() {
    // host.md 9.5.4.
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
    let said = answer_of("fake", "x", &[call("a|1"), call("b"), call("c")]);
    let one = result("a|1", json!([image]), false);
    let two = result("b", json!([{"type": "text", "text": "no"}]), true);
    let three = result("c", json!([]), false);
    let sent = |id: &str| body(&asking(id, vec![USER, &said, &one, &two, &three]));
    let third = sent("gemini-3-flash");
    let nested = json!([
        {"functionResponse": {"name": "ls", "response": {"output": "(the output is an image)"},
            "id": "a_1", "parts": [inline]}},
        {"functionResponse": {"name": "ls", "response": {"error": "no"}, "id": "b"}},
        {"functionResponse": {"name": "ls", "response": {"output": "(no output)"}, "id": "c"}},
    ]);
    assert_eq!(third["contents"][1]["parts"][0]["functionCall"]["id"], "a_1");
    assert_eq!(third["contents"][2], json!({"role": "user", "parts": nested}));
    assert_eq!(third["contents"].as_array().map(Vec::len), Some(3));
    let second = sent("gemini-2.5-pro");
    let plain = json!({"functionResponse": {"name": "ls",
        "response": {"output": "(the output is an image)"}}});
    assert_eq!(second["contents"][2]["parts"][0], plain);
    let images = json!({"role": "user", "parts":
        [{"text": "Images of the tool results above:"}, inline]});
    assert_eq!(second["contents"][3], images);
}

#[test]
fn user_parts_are_never_blank() {
    // host.md 9.5.2.
    let blank = r#"{"role":"user","content":[{"type":"text","text":" "}]}"#;
    let seen = r#"{"role":"user","content":[{"type":"text","text":""},
        {"type":"image","data":"aGk=","mimeType":"image/png"}]}"#;
    let sent = body(&asking("m", vec![blank, seen]));
    let parts = json!([{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]);
    assert_eq!(sent["contents"], json!([{"role": "user", "parts": parts}]));
}

#[test]
fn thinking_is_a_level_or_a_budget() {
    // host.md 3.9.
    use ThinkingLevel as L;
    let check = |id: &str, level: L, map: &[(&str, Option<&str>)], expected: Value| {
        let mut request = with(asking(id, vec![USER]), |model| {
            let map = map.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned)));
            model.thinking_levels = map.collect();
        });
        request.thinking = level;
        let got = &body(&request)["generationConfig"]["thinkingConfig"];
        assert_eq!(got, &expected, "{id} {level:?}");
    };
    let level = |word: &str| json!({"includeThoughts": true, "thinkingLevel": word});
    let budget = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
    let off = json!({"thinkingBudget": 0});
    check("gemini-3-pro", L::Minimal, &[], level("MINIMAL"));
    check("gemini-3-pro", L::High, &[], level("HIGH"));
    check("gemini-3-pro", L::Low, &[("low", Some("TINY"))], level("TINY"));
    check("gemini-3-pro", L::Max, &[("max", Some("HIGH"))], level("HIGH"));
    check("gemini-3-flash", L::Off, &[], off.clone());
    let lowest: &[_] = &[("off", None), ("minimal", None)];
    check("gemini-3-pro", L::Off, lowest, json!({"thinkingLevel": "LOW"}));
    check("gemini-flash-latest", L::Medium, &[], level("MEDIUM"));
    check("gemma-4-27b", L::Medium, &[], level("MEDIUM"));
    check("gemini-2.5-pro", L::Minimal, &[], budget(128));
    check("gemini-2.5-pro", L::High, &[], budget(32_768));
    check("gemini-2.5-flash-lite", L::Minimal, &[], budget(512));
    check("gemini-2.5-flash", L::High, &[], budget(24_576));
    check("gemini-2.0-flash", L::Low, &[], budget(-1));
    check("gemini-2.5-flash", L::Off, &[], off);
}

#[test]
fn custom_budgets_win_and_models_without_thinking_get_none() {
    // host.md 3.9.4.
    let mut request = asking("gemini-2.5-pro", vec![USER]);
    request.thinking = ThinkingLevel::Xhigh;
    let mut options = EncodeOptions::default();
    options.thinking_budgets.insert("high".into(), 999);
    let sent = encode(&request, &options).expect("the request can be written");
    assert!(sent.body.contains(r#""thinkingBudget":999"#), "{}", sent.body);
    let plain = with(request, |model| model.reasoning = false);
    assert!(!encoded(&plain).body.contains("thinkingConfig"));
}

#[test]
fn a_forced_tool_is_the_only_one_allowed() {
    // task.md OBS-9.
    let mut request = asking("m", vec![TOOLS, USER]);
    request.tool_choice = ToolChoice::Named("ls".into());
    let config = json!({"functionCallingConfig":
        {"mode": "ANY", "allowedFunctionNames": ["ls"]}});
    assert_eq!(body(&request)["toolConfig"], config);
    request.tool_choice = ToolChoice::Named("gone".into());
    assert_eq!(body(&request).get("toolConfig"), None);
}

#[test]
fn foreign_ids_are_cleaned_and_cut() {
    // host.md 9.5.3.
    let check = |id: &str, same: bool, expected: &str| {
        let got = rewrite_id(&asking("m", vec![]), &CallId::from(id), same);
        assert_eq!(got.as_str(), expected);
    };
    check("call+1|fc", false, "call_1_fc");
    check("call+1|fc", true, "call+1|fc");
    check(&"x".repeat(80), false, &"x".repeat(64));
}
