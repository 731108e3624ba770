//! Requests of `openai-responses`: small conversations and the JSON they
//! become.

use std::sync::Arc;

use crew_base::id::{CallId, SessionId};
use crew_base::json::Raw;
use crew_base::model::{Api, CacheRetention, ModelRequest, ModelSpec, ThinkingLevel, ToolChoice};
use serde_json::{Value, json};

use super::rewrite_id;
use crate::prepare::tests::request;
use crate::wire::{EncodeOptions, Encoded, encode};

const USER: &str = r#"{"role":"user","content":"hi"}"#;
const TOOLS: &str = r#"{"role":"system","content":"Be brief.","toolsAdded":[
    {"name":"ls","description":"Lists.","parameters":{"type":"object","b":1.0,"a":2}}]}"#;

fn asking(messages: Vec<&str>) -> ModelRequest {
    request(Api::OpenaiResponses, messages)
}

fn with(mut request: ModelRequest, change: impl FnOnce(&mut ModelSpec)) -> ModelRequest {
    change(Arc::make_mut(&mut request.model));
    request
}

fn compat(request: ModelRequest, text: &str) -> ModelRequest {
    let raw = Raw::parse(text).expect("compat is JSON");
    with(request, |model| model.compat = Some(raw))
}

fn encoded(request: &ModelRequest) -> Encoded {
    encode(request, &EncodeOptions::default()).expect("the request can be written")
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_str(&encoded(request).body).expect("a body is JSON")
}

fn answer_of(provider: &str, model: &str, blocks: &[Value]) -> String {
    json!({"role": "assistant", "provider": provider, "api": "openai-responses", "model": model,
        "stopReason": "stop", "content": blocks})
    .to_string()
}

fn answer(blocks: &[Value]) -> String {
    answer_of("fake", "m1", blocks)
}

fn result(id: &str, content: Value) -> String {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": content})
        .to_string()
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {"n": 1.0}})
}

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "t", "thinkingSignature": signature})
}

#[test]
fn a_plain_request_has_only_what_it_needs() {
    // host.md 9.4.1, 9.4.2, 9.4.6.
    let sent = encoded(&asking(vec![TOOLS, USER]));
    assert_eq!(sent.url, "http://127.0.0.1:9/responses");
    let expected = json!({
        "model": "m1",
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        ],
        "stream": true,
        "store": false,
        "max_output_tokens": 16_384,
        "tools": [{"type": "function", "name": "ls", "description": "Lists.",
            "parameters": {"type": "object", "b": 1.0, "a": 2}}],
        "reasoning": {"effort": "none"},
    });
    assert_eq!(serde_json::from_str::<Value>(&sent.body).expect("JSON"), expected);
}

#[test]
fn switches_and_limits_change_the_body() {
    // host.md 1.5, 9.4.1, 9.4.6.
    let switches = r#"{"supportsDeveloperRole":false,"supportsMaxOutputTokens":false,
        "supportsStrictMode":true}"#;
    let sent = body(&compat(asking(vec![TOOLS, USER]), switches));
    assert_eq!(sent["input"][0]["role"], "system");
    assert_eq!(sent.get("max_output_tokens"), None);
    assert_eq!(sent["tools"][0]["strict"], false);
    let small = with(asking(vec![USER]), |model| model.max_tokens = 3);
    assert_eq!(body(&small)["max_output_tokens"], 16);
    let plain = with(asking(vec![TOOLS, USER]), |model| model.reasoning = false);
    let sent = body(&plain);
    assert_eq!(sent["input"][0]["role"], "system");
    assert_eq!(sent.get("reasoning"), None);
    let sampling = Raw::parse(r#"{"temperature":0.5,"store":true}"#);
    let sent = body(&with(asking(vec![USER]), |model| model.sampling_params = sampling));
    assert_eq!((&sent["temperature"], &sent["store"]), (&json!(0.5), &json!(true)));
}

#[test]
fn answers_are_replayed_item_by_item() {
    // host.md 9.4.3, 9.4.4; dependencies.md 1.
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "RU5D"});
    let said = answer(&[
        thinking(&reasoning.to_string()),
        json!({"type": "text", "text": "one", "textSignature":
            json!({"v": 1, "id": "msg_a", "phase": "commentary"}).to_string()}),
        json!({"type": "text", "text": "two", "textSignature": "msg_b"}),
        json!({"type": "text", "text": "three", "textSignature": "m".repeat(65)}),
        json!({"type": "text", "text": "four"}),
        json!({"type": "text", "text": " "}),
        thinking(&reasoning.to_string()),
        call("call_1|fc_1"),
        call("call_2|odd"),
    ]);
    let one = result("call_1|fc_1", json!([{"type": "text", "text": "out"}]));
    let two = result("call_2|odd", json!([]));
    let sent = body(&asking(vec![USER, &said, &one, &two]));
    let message = |id: &str, text: &str| {
        json!({"type": "message", "role": "assistant", "status": "completed", "id": id,
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
    };
    let mut first = message("msg_a", "one");
    first["phase"] = json!("commentary");
    let long = sent["input"][4]["id"].as_str().expect("an id").to_owned();
    assert!(long.starts_with("msg_") && long.len() < 65);
    let expected = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        reasoning,
        first,
        message("msg_b", "two"),
        message(&long, "three"),
        message("msg_1_4", "four"),
        reasoning,
        {"type": "function_call", "call_id": "call_1", "name": "ls",
            "arguments": r#"{"n":1.0}"#, "id": "fc_1"},
        {"type": "function_call", "call_id": "call_2", "name": "ls",
            "arguments": r#"{"n":1.0}"#},
        {"type": "function_call_output", "call_id": "call_1", "output": "out"},
        {"type": "function_call_output", "call_id": "call_2", "output": "(no output)"},
    ]);
    assert_eq!(sent["input"], expected);
}

#[test]
fn reasoning_without_what_it_led_to_is_left_out() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []}).to_string();
    let check = |blocks: &[Value], expected: &[&str]| {
        let said = answer(blocks);
        let sent = body(&asking(vec![USER, &said, USER]));
        let items = sent["input"].as_array().expect("a list");
        let kinds = items.iter().filter_map(|item| item["type"].as_str());
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    };
    let text = json!({"type": "text", "text": "x"});
    check(&[thinking(&reasoning)], &[]);
    check(&[text.clone(), thinking(&reasoning)], &["message"]);
    check(&[thinking(&reasoning), text.clone()], &["reasoning", "message"]);
    check(&[thinking("no item"), text.clone()], &["message"]);
    check(&[thinking("{\"type\":\"other\"}"), text], &["message"]);
}

#[test]
fn images_stand_in_lists() {
    // host.md 9.4.2, 9.4.5.
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let user = json!({"role": "user", "content": [{"type": "text", "text": "see"}, image]});
    let user = user.to_string();
    let said = answer(&[call("c1|fc_1"), call("c2|fc_2")]);
    let one = result("c1|fc_1", json!([{"type": "text", "text": "it"}, image]));
    let two = result("c2|fc_2", json!([image]));
    let sent = body(&asking(vec![&user, &said, &one, &two]));
    let part = json!({"type": "input_image", "detail": "auto",
        "image_url": "data:image/png;base64,aGk="});
    let see = json!([{"type": "input_text", "text": "see"}, part]);
    assert_eq!(sent["input"][0]["content"], see);
    assert_eq!(sent["input"][3]["output"], json!([{"type": "input_text", "text": "it"}, part]));
    assert_eq!(sent["input"][4]["output"], json!([part]));
}

#[test]
fn item_ids_of_calls_follow_the_source_of_the_answer() {
    // host.md 9.4.4.
    let check = |provider: &str, model: &str, id: &str, call_id: &str, item: Option<&str>| {
        let said = answer_of(provider, model, &[call(id)]);
        let output = result(id, json!([{"type": "text", "text": "x"}]));
        let sent = body(&asking(vec![USER, &said, &output]));
        assert_eq!(sent["input"][1]["call_id"], call_id);
        assert_eq!(sent["input"][2]["call_id"], call_id);
        assert_eq!(sent["input"][1].get("id").and_then(Value::as_str), item);
    };
    check("fake", "m1", "call_1|fc_1", "call_1", Some("fc_1"));
    check("fake", "m0", "call_1|fc_1", "call_1", None);
    check("else", "m1", "toolu+1_", "toolu_1", None);
    let digest = format!("fc_{}", crate::assembly::short_digest("item"));
    check("else", "m1", "call_1|item", "call_1", Some(&digest));
    let cut = rewrite_id(&asking(vec![]), &CallId::new("a".repeat(80)), false);
    assert_eq!(cut.as_str().len(), 64);
    let empty = rewrite_id(&asking(vec![]), &CallId::from("|x"), false);
    assert!(empty.as_str().starts_with("call|fc_"));
}

#[test]
fn thinking_asks_for_encrypted_reasoning() {
    // host.md 3.9.
    let check = |level, map: &[(&str, Option<&str>)], expected: (Value, Value)| {
        let mut request = with(asking(vec![USER]), |model| {
            let map = map.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned)));
            model.thinking_levels = map.collect();
        });
        request.thinking = level;
        let sent = body(&request);
        assert_eq!((sent["reasoning"].clone(), sent["include"].clone()), expected);
    };
    use ThinkingLevel as L;
    let include = json!(["reasoning.encrypted_content"]);
    let high = json!({"effort": "high", "summary": "auto"});
    check(L::High, &[], (high, include.clone()));
    let mapped = json!({"effort": "ultra", "summary": "auto"});
    check(L::Max, &[("max", Some("ultra"))], (mapped, include));
    check(L::Off, &[], (json!({"effort": "none"}), Value::Null));
    let minimal = json!({"effort": "minimal"});
    check(L::Off, &[("off", Some("minimal"))], (minimal, Value::Null));
    check(L::Off, &[("off", None)], (Value::Null, Value::Null));
}

#[test]
fn the_session_names_the_prompt_cache() {
    // host.md 3.10.3.
    use CacheRetention as C;
    let check = |switches: &str, cache: C, expected: Value, headers: &[&str]| {
        let mut request = compat(asking(vec![USER]), switches);
        request.session = SessionId::new("é".repeat(70));
        request.cache = cache;
        let sent = encoded(&request);
        let body: Value = serde_json::from_str(&sent.body).expect("a body is JSON");
        let mut got = json!({});
        for name in ["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"] {
            if let Some(value) = body.get(name) {
                got[name] = value.clone();
            }
        }
        assert_eq!(got, expected, "{switches} {cache:?}");
        let session = sent.headers.iter().filter(|(_, value)| value.starts_with('é'));
        let names: Vec<&str> = session.map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, headers, "{switches} {cache:?}");
    };
    let key = "é".repeat(64);
    let both: &[&str] = &["session-id", "x-client-request-id"];
    check("{}", C::None, json!({}), &[]);
    check("{}", C::Short, json!({"prompt_cache_key": key}), both);
    let long = json!({"prompt_cache_key": key, "prompt_cache_retention": "24h"});
    check("{}", C::Long, long, both);
    let short_only = r#"{"supportsLongCacheRetention":false}"#;
    check(short_only, C::Long, json!({"prompt_cache_key": key}), both);
    check(r#"{"promptCacheKeyMode":"disabled"}"#, C::Short, json!({}), both);
    let explicit = r#"{"supportsExplicitPromptCacheMode":true}"#;
    let ttl = json!({"prompt_cache_key": key, "prompt_cache_options": {"ttl": "30m"}});
    check(explicit, C::Long, ttl, both);
    check(explicit, C::None, json!({"prompt_cache_options": {"mode": "explicit"}}), &[]);
    let less = r#"{"sessionAffinityFormat":"openai-nosession"}"#;
    check(less, C::Short, json!({"prompt_cache_key": key}), &["x-client-request-id"]);
}

#[test]
fn a_forced_tool_is_named() {
    // task.md OBS-9; task.md 12 row 30.
    let mut request = asking(vec![TOOLS, USER]);
    request.tool_choice = ToolChoice::Named("ls".into());
    let choice = json!({"type": "function", "name": "ls"});
    assert_eq!(body(&request)["tool_choice"], choice);
    let never = compat(request, r#"{"supportsForcedToolChoice":false}"#);
    assert_eq!(body(&never).get("tool_choice"), None);
}
