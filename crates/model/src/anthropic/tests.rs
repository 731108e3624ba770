//! Requests of `anthropic-messages` and the JSON they become.

use std::sync::Arc;

use crew_base::json::Raw;
use crew_base::model::{Api, CacheRetention, ModelSpec, ThinkingLevel, ToolChoice};
use serde_json::{Value, json};

use super::*;
use crate::prepare::tests::request as bare_request;
use crate::wire::{EncodeOptions, Encoded, encode};

const SYSTEM: &str = concat!(
    r#"{"role":"system","sections":{"preamble":"You."},"toolsAdded":["#,
    r#"{"name":"a","description":"A","parameters":{"type":"object","properties":{"n":{"const":1.0}},"required":["n"],"additionalProperties":false,"$defs":{},"title":"x"}},"#,
    r#"{"name":"b","description":"B","parameters":{}}]}"#
);
const USER: &str = r#"{"role":"user","content":"hi"}"#;

fn request(messages: Vec<&str>) -> ModelRequest {
    bare_request(Api::AnthropicMessages, messages)
}

fn model(request: &mut ModelRequest) -> &mut ModelSpec {
    Arc::make_mut(&mut request.model)
}

fn sent(request: &ModelRequest) -> (Encoded, Value) {
    sent_with(request, &EncodeOptions::default())
}

fn sent_with(request: &ModelRequest, options: &EncodeOptions) -> (Encoded, Value) {
    let encoded = encode(request, options).unwrap();
    let body = serde_json::from_str(&encoded.body).unwrap();
    (encoded, body)
}

fn header<'a>(encoded: &'a Encoded, name: &str) -> Option<&'a str> {
    let found = encoded.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| &**value)
}

#[test]
fn a_plain_request_has_the_fields_of_the_api_in_a_fixed_order() {
    // host.md 9.2.1, 9.2.6, 0.1.
    let mut request = request(vec![SYSTEM, USER]);
    model(&mut request).reasoning = false;
    let (encoded, _) = sent(&request);
    assert_eq!(encoded.url, "http://127.0.0.1:9/v1/messages");
    assert_eq!(header(&encoded, "anthropic-version"), Some("2023-06-01"));
    assert_eq!(header(&encoded, "accept"), Some("application/json"));
    assert_eq!(header(&encoded, "anthropic-beta"), None);
    assert_eq!(
        encoded.body,
        concat!(
            r#"{"model":"m1","max_tokens":16384,"stream":true,"system":[{"type":"text","text":"You."}],"#,
            r#""tools":[{"name":"a","description":"A","input_schema":{"type":"object","properties":{"n":{"const":1.0}},"#,
            r#""required":["n"],"additionalProperties":false,"$defs":{}},"eager_input_streaming":true},"#,
            r#"{"name":"b","description":"B","input_schema":{"type":"object","properties":{},"required":[]},"eager_input_streaming":true}],"#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
        )
    );
}

#[test]
fn marks_stand_on_prompt_last_tool_and_last_user_block_only() {
    // host.md 3.10.2.
    let check = |cache, compat: Option<&str>, mark: Value, on_tools: bool| {
        let mut request = request(vec![SYSTEM, USER, USER]);
        request.cache = cache;
        model(&mut request).compat = compat.and_then(Raw::parse);
        let (encoded, body) = sent(&request);
        assert_eq!(body["system"][0]["cache_control"], mark);
        assert_eq!(body["tools"][0]["cache_control"], Value::Null);
        let tool = &body["tools"][1]["cache_control"];
        assert_eq!(*tool, if on_tools { mark.clone() } else { Value::Null });
        assert_eq!(body["messages"][0]["content"][0]["cache_control"], Value::Null);
        assert_eq!(body["messages"][1]["content"][0]["cache_control"], mark);
        assert!(encoded.body.matches("cache_control").count() <= 4);
    };
    let short = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    check(CacheRetention::None, None, Value::Null, false);
    check(CacheRetention::Short, None, short.clone(), true);
    check(CacheRetention::Long, None, long, true);
    let no_long = r#"{"supportsLongCacheRetention":false,"supportsCacheControlOnTools":false}"#;
    check(CacheRetention::Long, Some(no_long), short, false);
}

#[test]
fn levels_become_efforts_or_budgets_that_fit() {
    // host.md 3.9, 3.9.4, 9.2.7.
    let check = |level, change: &dyn Fn(&mut ModelSpec), thinking: Value, effort: Value| {
        let mut request = request(vec![USER]);
        request.thinking = level;
        change(model(&mut request));
        let (encoded, body) = sent(&request);
        assert_eq!(body["thinking"], thinking, "{level:?}");
        assert_eq!(body["output_config"]["effort"], effort, "{level:?}");
        let budget = body["thinking"]["budget_tokens"].as_u64();
        let beta = budget.map(|_| "interleaved-thinking-2025-05-14");
        assert_eq!(header(&encoded, "anthropic-beta"), beta);
        let limit = body["max_tokens"].as_u64().unwrap();
        assert!(budget.is_none_or(|budget| budget >= 1024 && budget + 1024 <= limit));
    };
    use ThinkingLevel as L;
    let enabled =
        |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"});
    let adaptive = || json!({"type": "adaptive", "display": "summarized"});
    let disabled = || json!({"type": "disabled"});
    let same = |_: &mut ModelSpec| {};
    check(L::Off, &same, disabled(), Value::Null);
    check(L::Minimal, &same, enabled(1024), Value::Null);
    check(L::Low, &same, enabled(2048), Value::Null);
    check(L::Medium, &same, enabled(8192), Value::Null);
    check(L::High, &same, enabled(16_384 - 1024), Value::Null);
    check(L::Max, &|m| m.max_tokens = 64_000, enabled(16_384), Value::Null);
    check(L::High, &|m| m.max_tokens = 2047, disabled(), Value::Null);
    check(L::High, &|m| m.reasoning = false, Value::Null, Value::Null);
    let unmapped = |m: &mut ModelSpec| {
        m.thinking_levels.insert("off".into(), None);
    };
    check(L::Off, &unmapped, Value::Null, Value::Null);
    let force = |m: &mut ModelSpec| m.compat = Raw::parse(r#"{"forceAdaptiveThinking":true}"#);
    check(L::Off, &force, disabled(), Value::Null);
    check(L::Minimal, &force, adaptive(), json!("low"));
    check(L::Medium, &force, adaptive(), json!("medium"));
    check(L::Xhigh, &force, adaptive(), json!("high"));
    let mapped = |m: &mut ModelSpec| {
        force(m);
        m.thinking_levels.insert("max".into(), Some("max".into()));
    };
    check(L::Max, &mapped, adaptive(), json!("max"));
}

#[test]
fn own_budgets_replace_the_defaults() {
    // host.md 3.9.4.
    let mut request = request(vec![USER]);
    request.thinking = ThinkingLevel::Low;
    let mut options = EncodeOptions::default();
    options.thinking_budgets.insert("low".into(), 3000);
    let (_, body) = sent_with(&request, &options);
    assert_eq!(body["thinking"]["budget_tokens"], 3000);
    options.thinking_budgets.insert("low".into(), 10);
    let (_, body) = sent_with(&request, &options);
    assert_eq!(body["thinking"]["budget_tokens"], 1024);
}

#[test]
fn a_tool_is_forced_only_where_the_api_takes_it() {
    // task.md EXEC-8, OBS-9; task.md 12 row 30.
    let check = |tool: &str, level, compat: Option<&str>, expected: Value| {
        let mut request = request(vec![SYSTEM, USER]);
        request.tool_choice = ToolChoice::Named(tool.into());
        request.thinking = level;
        model(&mut request).compat = compat.and_then(Raw::parse);
        assert_eq!(sent(&request).1["tool_choice"], expected);
    };
    let forced = json!({"type": "tool", "name": "b"});
    check("b", ThinkingLevel::Off, None, forced);
    check("b", ThinkingLevel::Low, None, Value::Null);
    check("zz", ThinkingLevel::Off, None, Value::Null);
    let never = Some(r#"{"supportsForcedToolChoice":false}"#);
    check("b", ThinkingLevel::Off, never, Value::Null);
}

#[test]
fn sampling_parameters_come_last_and_temperature_only_where_it_may() {
    // host.md 9.2.1, 1.5.
    let check = |level, compat: Option<&str>, temperature: Value| {
        let mut request = request(vec![USER]);
        request.thinking = level;
        let model = model(&mut request);
        model.compat = compat.and_then(Raw::parse);
        model.sampling_params = Raw::parse(r#"{"temperature":0.20,"top_k":5,"max_tokens":7}"#);
        let (encoded, body) = sent(&request);
        assert_eq!(body["temperature"], temperature);
        assert_eq!((&body["top_k"], &body["max_tokens"]), (&json!(5), &json!(7)));
        assert_eq!(encoded.body.contains("0.20"), temperature != Value::Null);
    };
    check(ThinkingLevel::Off, None, json!(0.2));
    check(ThinkingLevel::Low, None, Value::Null);
    let never = Some(r#"{"supportsTemperature":false}"#);
    check(ThinkingLevel::Off, never, Value::Null);
}

#[test]
fn tools_without_eager_streaming_ask_for_the_older_beta() {
    // host.md 9.2.7.
    let mut request = request(vec![SYSTEM, USER]);
    model(&mut request).compat = Raw::parse(r#"{"supportsEagerToolInputStreaming":false}"#);
    request.thinking = ThinkingLevel::Low;
    let (encoded, body) = sent(&request);
    assert_eq!(
        header(&encoded, "anthropic-beta"),
        Some("interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14")
    );
    assert_eq!(body["tools"][0].get("eager_input_streaming"), None);
}

fn answer(content: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{content}],"api":"anthropic-messages","provider":"fake","model":"m1","stopReason":"toolUse"}}"#
    )
}

fn messages(request: &ModelRequest) -> Value {
    sent(request).1["messages"].clone()
}

#[test]
fn an_answer_is_replayed_block_by_block_in_its_order() {
    // host.md 9.2.3; dependencies.md 1.
    let content = concat!(
        r#"{"type":"thinking","thinking":"why","thinkingSignature":"S+/="},"#,
        r#"{"type":"thinking","thinking":"","thinkingSignature":"DATA","redacted":true},"#,
        r#"{"type":"thinking","thinking":"unsigned"},{"type":"thinking","thinking":"","redacted":true},"#,
        r#"{"type":"text","text":" \n"},{"type":"text","text":"t"},"#,
        r#"{"type":"toolCall","id":"c1","name":"n","arguments":{"z":1.0,"a":{}}},"#,
        r#"{"type":"thinking","thinking":"more","thinkingSignature":"S2"},"#,
        r#"{"type":"toolCall","id":"c2","name":"n","arguments":{},"argumentsError":"bad"}"#
    );
    let answer = answer(content);
    let mut request = request(vec![USER, &answer]);
    let got = messages(&request);
    assert_eq!(
        got[1],
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "why", "signature": "S+/="},
            {"type": "redacted_thinking", "data": "DATA"},
            {"type": "text", "text": "unsigned"},
            {"type": "text", "text": "t"},
            {"type": "tool_use", "id": "c1", "name": "n", "input": {"z": 1.0, "a": {}}},
            {"type": "thinking", "thinking": "more", "signature": "S2"},
            {"type": "tool_use", "id": "c2", "name": "n", "input": {}},
        ]})
    );
    assert!(sent(&request).0.body.contains(r#""input":{"z":1.0,"a":{}}"#));
    let results = got[2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result["is_error"] == true));
    model(&mut request).compat = Raw::parse(r#"{"allowEmptySignature":true}"#);
    assert_eq!(
        messages(&request)[1]["content"][2],
        json!({"type": "thinking", "thinking": "unsigned", "signature": ""})
    );
}

#[test]
fn blank_messages_are_never_sent() {
    // host.md 9.2.2, 9.2.3.
    let blank = answer(r#"{"type":"text","text":""},{"type":"thinking","thinking":" "}"#);
    let empty = r#"{"role":"user","content":" "}"#;
    let got = messages(&request(vec![USER, &blank, empty, USER]));
    assert_eq!(got.as_array().unwrap().len(), 2);
}

const IMAGE: &str = r#"{"type":"image","data":"QUE=","mimeType":"image/png"}"#;

#[test]
fn user_images_are_sent_in_base64() {
    // host.md 9.2.2.
    let user = format!(r#"{{"role":"user","content":[{{"type":"text","text":"see"}},{IMAGE}]}}"#);
    let got = messages(&request(vec![&user]));
    assert_eq!(
        got[0]["content"],
        json!([
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUE="}},
        ])
    );
}

#[test]
fn results_form_one_user_message_with_images_of_errors_behind() {
    // host.md 9.2.4, 11.70, 11.108.
    let result = |id: &str, content: &str, is_error: bool| {
        format!(
            r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"n","content":[{content}],"isError":{is_error}}}"#
        )
    };
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let calls = ["c1", "c2", "c3", "c4"]
        .map(|id| format!(r#"{{"type":"toolCall","id":"{id}","name":"n","arguments":{{}}}}"#));
    let answer = answer(&calls.join(","));
    let results = [
        result("c1", &format!("{},{}", text("one"), text("two")), false),
        result("c2", &format!("{},{IMAGE}", text("broken")), true),
        result("c3", IMAGE, false),
        result("c4", &text("\\r\\n"), true),
    ];
    let mut all = vec![USER, &*answer];
    all.extend(results.iter().map(String::as_str));
    let mut request = request(all);
    request.cache = CacheRetention::Short;
    let got = messages(&request);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUE="}});
    let mut marked = image.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(
        got[2],
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "one\ntwo", "is_error": false},
            {"type": "tool_result", "tool_use_id": "c2",
             "content": "broken\n(its images follow behind the results)", "is_error": true},
            {"type": "tool_result", "tool_use_id": "c3",
             "content": [{"type": "text", "text": "(see the image)"}, image], "is_error": false},
            {"type": "tool_result", "tool_use_id": "c4", "content": "(no output)", "is_error": true},
            {"type": "text", "text": "Images of the failed call c2:"},
            marked,
        ]})
    );
    assert_eq!(got.as_array().unwrap().len(), 3);
}

#[test]
fn foreign_ids_hold_only_what_the_api_takes() {
    // host.md 9.2.5, 11.105.
    let check = |id: &str, expected: &str| {
        let got = rewrite_id(&request(vec![]), &CallId::from(id), false);
        assert_eq!(got.as_str(), expected);
        let same = rewrite_id(&request(vec![]), &CallId::from(id), true);
        assert_eq!(same.as_str(), id);
    };
    check("call+a/b|fc_1", "call_a_b_fc_1");
    check("", "call");
    check(&"é".repeat(80), &"_".repeat(64));
}

#[test]
fn an_unsupported_api_is_named_before_anything_is_sent() {
    // host.md 1.5.13.
    let mut request = request(vec![USER]);
    let model = model(&mut request);
    (model.api, model.api_word) = (Api::Unsupported, "odd-api".into());
    let error = encode(&request, &EncodeOptions::default()).unwrap_err();
    assert_eq!(error.message, "unsupported API `odd-api` of model fake/m1");
}
