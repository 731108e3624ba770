//! Requests of `openai-completions`: small conversations and the JSON they
//! become.

use std::sync::Arc;

use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::model::{Api, CacheRetention, ModelRequest, ModelSpec, ThinkingLevel, ToolChoice};
use serde_json::{Value, json};

use super::rewrite_id;
use crate::prepare::tests::request;
use crate::wire::{EncodeOptions, Encoded, encode};

const USER: &str = r#"{"role":"user","content":"hi"}"#;
const TOOLS: &str = r#"{"role":"system","content":"Be brief.","toolsAdded":[
    {"name":"ls","description":"Lists.","parameters":{"type":"object","b":1.0,"a":2}},
    {"name":"cat","description":"Shows.","parameters":{"type":"object"}}]}"#;

fn asking(messages: Vec<&str>) -> ModelRequest {
    request(Api::OpenaiCompletions, messages)
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

/// An answer of the asked model, with blocks in the form of session files.
fn answer(blocks: &str) -> String {
    format!(
        r#"{{"role":"assistant","provider":"fake","api":"openai-completions","model":"m1",
            "stopReason":"stop","content":[{blocks}]}}"#
    )
}

fn result(id: &str, content: &str) -> String {
    format!(r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"ls","content":[{content}]}}"#)
}

fn check_messages(request: &ModelRequest, expected: Value) {
    assert_eq!(body(request)["messages"], expected);
}

#[test]
fn a_plain_request_has_only_what_it_needs() {
    // host.md 9.3.1, 9.3.2, 9.3.8, 3.10.4.
    let request = asking(vec![TOOLS, USER]);
    let sent = encoded(&request);
    assert_eq!(sent.url, "http://127.0.0.1:9/chat/completions");
    let accept = ("accept".to_owned(), "text/event-stream".to_owned());
    assert_eq!(sent.headers, [accept]);
    let expected = json!({
        "model": "m1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "store": false,
        "max_completion_tokens": 16_384,
        "tools": [
            {"type": "function", "function": {"name": "ls", "description": "Lists.",
                "parameters": {"type": "object", "b": 1.0, "a": 2}}},
            {"type": "function", "function": {"name": "cat", "description": "Shows.",
                "parameters": {"type": "object"}}},
        ],
    });
    assert_eq!(serde_json::from_str::<Value>(&sent.body).expect("JSON"), expected);
    assert!(sent.body.contains(r#""parameters":{"type":"object","b":1.0,"a":2}"#));
}

#[test]
fn switches_change_the_body() {
    // host.md 1.5, 9.3.1, 9.3.2, 9.3.8.
    let switches = r#"{"supportsStore":false,"supportsUsageInStreaming":false,
        "maxTokensField":"max_tokens","supportsDeveloperRole":true,"supportsStrictMode":true,
        "zaiToolStream":true,"vllmPriority":3,"openRouterRouting":{"only":["x"]},
        "vercelGatewayRouting":{"order":["y"]}}"#;
    let sent = body(&compat(asking(vec![TOOLS, USER]), switches));
    let absent = ["store", "stream_options", "max_completion_tokens"];
    assert!(absent.iter().all(|name| sent.get(name).is_none()), "{sent}");
    assert_eq!(sent["max_tokens"], 16_384);
    assert_eq!(sent["messages"][0]["role"], "developer");
    assert_eq!(sent["tools"][0]["function"]["strict"], false);
    assert_eq!((&sent["tool_stream"], &sent["priority"]), (&json!(true), &json!(3)));
    assert_eq!(sent["provider"], json!({"only": ["x"]}));
    assert_eq!(sent["providerOptions"], json!({"gateway": {"order": ["y"]}}));
}

#[test]
fn sampling_parameters_are_merged_last() {
    let sampling = Raw::parse(r#"{"temperature":0.20,"store":true,"top_k":40}"#);
    let request = with(asking(vec![USER]), |model| model.sampling_params = sampling);
    let sent = encoded(&request).body;
    assert!(sent.ends_with(r#""temperature":0.20,"top_k":40}"#), "{sent}");
    assert!(sent.contains(r#""store":true"#));
}

#[test]
fn user_content_is_text_or_parts_and_never_empty() {
    // host.md 9.3.3.
    let check = |content: &str, expected: Value| {
        let message = format!(r#"{{"role":"user","content":{content}}}"#);
        let request = asking(vec![USER, &message]);
        let sent = body(&request);
        assert_eq!(sent["messages"].get(1).unwrap_or(&Value::Null), &expected);
    };
    check(r#""plain""#, json!({"role": "user", "content": "plain"}));
    check(r#""  ""#, Value::Null);
    check("[]", Value::Null);
    check(
        r#"[{"type":"text","text":""},{"type":"text","text":"one"}]"#,
        json!({"role": "user", "content": "one"}),
    );
    check(
        r#"[{"type":"text","text":"see"},{"type":"image","data":"aGk=","mimeType":"image/png"}]"#,
        json!({"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ]}),
    );
}

#[test]
fn answers_have_one_text_and_calls_with_textual_arguments() {
    // host.md 9.3.4; C098: arguments are a string on the wire; C136.
    let call = r#"{"type":"toolCall","id":"k1","name":"ls","arguments":{"n":1.0,"s":"\ud83d"}}"#;
    let said = answer(&format!(
        r#"{{"type":"text","text":"a"}},{{"type":"text","text":" "}},{{"type":"text","text":"b"}},{call}"#
    ));
    let bare = answer(&call.replace("k1", "k2"));
    let (one, two) = (result("k1", ""), result("k2", r#"{"type":"text","text":"out"}"#));
    let empty = answer(r#"{"type":"text","text":" "}"#);
    let messages = vec![USER, &said, &one, &bare, &two, &empty];
    let function = json!({"name": "ls", "arguments": r#"{"n":1.0,"s":"\ufffd"}"#});
    let asks = |id: &str| json!([{"id": id, "type": "function", "function": function}]);
    let expected = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ab", "tool_calls": asks("k1")},
        {"role": "tool", "content": "(no output)", "tool_call_id": "k1"},
        {"role": "assistant", "content": null, "tool_calls": asks("k2")},
        {"role": "tool", "content": "out", "tool_call_id": "k2"},
    ]);
    check_messages(&asking(messages.clone()), expected);
    for switch in ["requiresNonNullAssistantContent", "requiresAssistantAfterToolResult"] {
        let request = compat(asking(messages.clone()), &format!(r#"{{"{switch}":true}}"#));
        assert_eq!(body(&request)["messages"][3]["content"], "", "{switch}");
    }
    let named = compat(asking(messages), r#"{"requiresToolResultName":true}"#);
    assert_eq!(body(&named)["messages"][2]["name"], "ls");
}

#[test]
fn reasoning_goes_back_where_it_came_from() {
    // host.md 9.3.5; C103, C104.
    let check = |switches: &str, thoughts: &str, expected: Value| {
        let said = answer(&format!(r#"{thoughts},{{"type":"text","text":"so"}}"#));
        let request = compat(asking(vec![USER, &said]), switches);
        assert_eq!(body(&request)["messages"][1], expected, "{thoughts}");
    };
    let thought = |text: &str, signature: &str| {
        let block = json!({"type": "thinking", "thinking": text, "thinkingSignature": signature});
        block.to_string()
    };
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let mut expected = json!({"role": "assistant", "content": "so"});
        expected[field] = json!("one\ntwo");
        let both = format!("{},{}", thought("one", field), thought("two", field));
        check("{}", &both, expected);
    }
    let details = r#"[{"type":"reasoning.text","text":"t","n":1.0}]"#;
    check(
        "{}",
        &thought("t", details),
        json!({"role": "assistant", "content": "so",
            "reasoning_details": [{"type": "reasoning.text", "text": "t", "n": 1.0}]}),
    );
    check(
        "{}",
        r#"{"type":"thinking","thinking":"unsigned"}"#,
        json!({"role": "assistant", "content": "so"}),
    );
    check(
        r#"{"requiresThinkingAsText":true}"#,
        &thought("t", "reasoning"),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "t"}, {"type": "text", "text": "so"}]}),
    );
    let required = r#"{"requiresReasoningContentOnAssistantMessages":true}"#;
    check(
        required,
        &thought("t", "reasoning_content"),
        json!({"role": "assistant", "content": "so", "reasoning_content": "t"}),
    );
    check(
        required,
        &thought("", "reasoning_content"),
        json!({"role": "assistant", "content": "so", "reasoning_content": ""}),
    );
}

#[test]
fn images_of_results_follow_in_one_user_message() {
    // host.md 9.3.6.
    let image = r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#;
    let said = answer(
        r#"{"type":"toolCall","id":"a","name":"ls","arguments":{}},
           {"type":"toolCall","id":"b","name":"ls","arguments":{}}"#,
    );
    let (one, two) = (result("a", image), result("b", r#"{"type":"text","text":"x"}"#));
    let later = r#"{"role":"user","content":"next"}"#;
    let messages = vec![USER, &said, &one, &two, later];
    let sent = body(&asking(messages.clone()));
    let images = json!({"role": "user", "content": [
        {"type": "text", "text": "Images of the tool results above:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]});
    let see = json!({"role": "tool", "tool_call_id": "a",
        "content": "(the output is the image that follows)"});
    assert_eq!(sent["messages"][2], see);
    assert_eq!(sent["messages"][4], images);
    assert_eq!(sent["messages"][5]["content"], "next");
    let switch = r#"{"requiresAssistantAfterToolResult":true}"#;
    let sent = body(&compat(asking(messages), switch));
    assert_eq!(sent["messages"][4]["role"], "assistant");
    assert_eq!(sent["messages"][5], images);
    let plain = result("b", r#"{"type":"text","text":"x"}"#);
    let messages = vec![USER, &said, &plain, later];
    let sent = body(&compat(asking(messages), switch));
    let messages = sent["messages"].as_array().expect("a list");
    let roles = messages.iter().filter_map(|message| message["role"].as_str());
    let roles: Vec<&str> = roles.collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user"]);
}

#[test]
fn a_history_of_tools_keeps_the_tools_member_where_it_is_required() {
    // host.md 9.3.1.
    let said = answer(r#"{"type":"toolCall","id":"a","name":"ls","arguments":{}}"#);
    let done = result("a", r#"{"type":"text","text":"x"}"#);
    let switch = r#"{"requiresToolsWithToolHistory":true}"#;
    let check = |request: ModelRequest, expected: Option<Value>| {
        assert_eq!(body(&request).get("tools").cloned(), expected);
    };
    check(asking(vec![USER, &said, &done]), None);
    check(compat(asking(vec![USER, &said, &done]), switch), Some(json!([])));
    check(compat(asking(vec![USER]), switch), None);
}

#[test]
fn a_forced_tool_is_named_if_it_is_offered_and_can_be_forced() {
    // task.md OBS-9; task.md 12 row 30.
    let forced = |name: &str, switches: &str| {
        let mut request = compat(asking(vec![TOOLS, USER]), switches);
        request.tool_choice = ToolChoice::Named(name.into());
        body(&request).get("tool_choice").cloned()
    };
    let choice = json!({"type": "function", "function": {"name": "cat"}});
    assert_eq!(forced("cat", "{}"), Some(choice));
    assert_eq!(forced("gone", "{}"), None);
    assert_eq!(forced("cat", r#"{"supportsForcedToolChoice":false}"#), None);
}

#[test]
fn thinking_is_asked_for_in_the_words_of_the_service() {
    // host.md 3.9.
    use ThinkingLevel as L;
    const MEMBERS: [&str; 6] = [
        "reasoning_effort",
        "reasoning",
        "thinking",
        "enable_thinking",
        "chat_template_kwargs",
        "chat_template_args",
    ];
    let check = |format: &str, level: L, map: &[(&str, Option<&str>)], expected: Value| {
        let switches = format!(r#"{{"thinkingFormat":"{format}"}}"#);
        let mut request = with(compat(asking(vec![USER]), &switches), |model| {
            let map = map.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned)));
            model.thinking_levels = map.collect();
        });
        request.thinking = level;
        let sent = body(&request);
        let mut got = json!({});
        for name in MEMBERS {
            if let Some(value) = sent.get(name) {
                got[name] = value.clone();
            }
        }
        assert_eq!(got, expected, "{format} {level:?} {map:?}");
    };
    let refused: &[_] = &[("off", None)];
    check("openai", L::High, &[], json!({"reasoning_effort": "high"}));
    check("openai", L::Low, &[("low", Some("tiny"))], json!({"reasoning_effort": "tiny"}));
    check("openai", L::Off, &[], json!({}));
    check("openai", L::Off, &[("off", Some("none"))], json!({"reasoning_effort": "none"}));
    check("openrouter", L::Medium, &[], json!({"reasoning": {"effort": "medium"}}));
    check("openrouter", L::Off, &[], json!({"reasoning": {"effort": "none"}}));
    check("openrouter", L::Off, refused, json!({}));
    let deep = json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"});
    check("deepseek", L::High, &[], deep);
    check("deepseek", L::Off, &[], json!({"thinking": {"type": "disabled"}}));
    check("deepseek", L::Off, refused, json!({}));
    let zai = json!({"thinking": {"type": "enabled", "clear_thinking": false},
        "reasoning_effort": "low"});
    check("zai", L::Low, &[], zai);
    check("zai", L::Off, &[], json!({"thinking": {"type": "disabled"}}));
    check("qwen", L::Low, &[], json!({"enable_thinking": true}));
    check("qwen", L::Off, &[], json!({"enable_thinking": false}));
    let template = |on: bool| json!({"chat_template_kwargs": {"enable_thinking": on, "preserve_thinking": true}});
    check("qwen-chat-template", L::Low, &[], template(true));
    check("qwen-chat-template", L::Off, &[], template(false));
    check("baseten", L::Off, &[], json!({"chat_template_args": {"enable_thinking": false}}));
    let together = json!({"reasoning": {"enabled": true}, "reasoning_effort": "low"});
    check("together", L::Low, &[], together);
    check("together", L::Off, &[], json!({"reasoning": {"enabled": false}}));
    check("string-thinking", L::Low, &[], json!({"thinking": "low"}));
    check("string-thinking", L::Off, &[], json!({"thinking": "none"}));
    check("ant-ling", L::High, &[], json!({}));
    check("ant-ling", L::High, &[("high", Some("h"))], json!({"reasoning": {"effort": "h"}}));
    check("chat-template", L::High, &[], json!({}));
}

#[test]
fn models_that_cannot_think_are_not_told_to() {
    for format in ["openai", "openrouter", "deepseek", "qwen", "zai"] {
        let switches = format!(r#"{{"thinkingFormat":"{format}"}}"#);
        let request = compat(asking(vec![USER]), &switches);
        let sent = encoded(&with(request, |model| model.reasoning = false)).body;
        assert!(!sent.contains("think") && !sent.contains("reasoning"), "{sent}");
    }
}

#[test]
fn template_values_and_budgets_follow_the_level() {
    // host.md 1.5, 3.9.4.
    let switches = r#"{"thinkingFormat":"chat-template","thinkingTokenBudgetField":"budget",
        "chatTemplateKwargs":{"on":{"$var":"thinking.enabled"},"n":{"$var":"thinking.budget"},
        "e":{"$var":"thinking.effort","omitWhenOff":true},"x":1.0}}"#;
    let sent = |level, custom: &[(&str, u64)]| {
        let mut request = compat(asking(vec![USER]), switches);
        request.thinking = level;
        let custom = custom.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let options = EncodeOptions { thinking_budgets: custom, ..EncodeOptions::default() };
        let sent = encode(&request, &options).expect("the request can be written");
        let sent: Value = serde_json::from_str(&sent.body).expect("a body is JSON");
        (sent["chat_template_kwargs"].clone(), sent["budget"].clone())
    };
    let on = json!({"on": true, "n": 2048, "e": "low", "x": 1.0});
    assert_eq!(sent(ThinkingLevel::Low, &[]), (on, json!(2048)));
    let custom = json!({"on": true, "n": 7, "e": "max", "x": 1.0});
    assert_eq!(sent(ThinkingLevel::Max, &[("high", 7)]), (custom, json!(7)));
    let off = json!({"on": false, "n": 0, "x": 1.0});
    assert_eq!(sent(ThinkingLevel::Off, &[]), (off, Value::Null));
}

#[test]
fn the_prompt_cache_is_named_where_that_is_understood() {
    // host.md 3.10.4.
    use CacheRetention as C;
    let check = |provider: &str, switches: &str, cache: C, expected: (Value, Value)| {
        let request = compat(asking(vec![USER]), switches);
        let mut request = with(request, |model| model.provider = provider.into());
        request.cache = cache;
        let sent = body(&request);
        let got = (sent["prompt_cache_key"].clone(), sent["prompt_cache_retention"].clone());
        assert_eq!(got, expected, "{provider} {switches} {cache:?}");
    };
    let (none, key, day) = (Value::Null, json!("s-1"), json!("24h"));
    check("openai", "{}", C::None, (none.clone(), none.clone()));
    check("openai", "{}", C::Short, (key.clone(), none.clone()));
    check("openai", "{}", C::Long, (key.clone(), day.clone()));
    check("fake", "{}", C::Short, (none.clone(), none.clone()));
    check("fake", "{}", C::Long, (key.clone(), day.clone()));
    check("together", "{}", C::Long, (none.clone(), none.clone()));
    let enabled = r#"{"promptCacheKeyMode":"enabled"}"#;
    check("fake", enabled, C::Short, (key, none.clone()));
    let disabled = r#"{"promptCacheKeyMode":"disabled"}"#;
    check("openai", disabled, C::Long, (none, day));
}

#[test]
fn cache_markers_stand_on_instructions_last_tool_and_last_text() {
    // host.md 3.10.4.
    let said = answer(r#"{"type":"toolCall","id":"a","name":"ls","arguments":{}}"#);
    let image = result("a", r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#);
    let switches = r#"{"cacheControlFormat":"anthropic"}"#;
    let sent = |cache| {
        let mut request = compat(asking(vec![TOOLS, USER, &said, &image]), switches);
        request.cache = cache;
        body(&request)
    };
    let marker = json!({"type": "ephemeral"});
    let short = sent(CacheRetention::Short);
    let text = json!([{"type": "text", "text": "Be brief.", "cache_control": marker}]);
    assert_eq!(short["messages"][0]["content"], text);
    assert_eq!(short["tools"][0].get("cache_control"), None);
    assert_eq!(short["tools"][1]["cache_control"], marker);
    let last = &short["messages"][4]["content"];
    assert_eq!(last[0]["cache_control"], marker, "{last}");
    assert_eq!(short.to_string().matches("cache_control").count(), 3);
    let long = sent(CacheRetention::Long);
    assert_eq!(long["tools"][1]["cache_control"]["ttl"], "1h");
    assert_eq!(long.get("prompt_cache_retention"), None);
    assert!(!sent(CacheRetention::None).to_string().contains("cache_control"));
}

#[test]
fn session_headers_are_sent_with_caching_only() {
    // host.md 9.3.13.
    let check = |switches: &str, cache: CacheRetention, expected: &[&str]| {
        let mut request = compat(asking(vec![USER]), switches);
        request.cache = cache;
        let headers = encoded(&request).headers;
        let session = headers.iter().filter(|(_, value)| value == "s-1");
        let names: Vec<&str> = session.map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{switches}");
    };
    use CacheRetention::{None, Short};
    check("{}", Short, &[]);
    let on = r#"{"sendSessionAffinityHeaders":true}"#;
    check(on, None, &[]);
    check(on, Short, &["session_id", "x-client-request-id", "x-session-affinity"]);
    let router = r#"{"sendSessionAffinityHeaders":true,"sessionAffinityFormat":"openrouter"}"#;
    check(router, Short, &["x-session-id"]);
    let less = r#"{"sendSessionAffinityHeaders":true,"sessionAffinityFormat":"openai-nosession"}"#;
    check(less, Short, &["x-client-request-id", "x-session-affinity"]);
}

#[test]
fn foreign_ids_are_joined_cleaned_and_cut() {
    // host.md 9.3.7, 11.105.
    let check = |provider: &str, id: &str, same: bool, expected: &str| {
        let request = with(asking(vec![]), |model| model.provider = provider.into());
        let got = rewrite_id(&request, &CallId::from(id), same);
        assert_eq!(got.as_str(), expected);
    };
    check("fake", "call+1|fc/2", false, "call_1_fc_2");
    check("fake", "call|fc", true, "call|fc");
    check("fake", "toolu_x+y", false, "toolu_x+y");
    let long = "x".repeat(50);
    check("fake", &long, false, &long);
    check("openai", &long, false, &long[..40]);
    let request = asking(vec![]);
    let one = rewrite_id(&request, &CallId::new(format!("{long}|a")), false);
    let two = rewrite_id(&request, &CallId::new(format!("{long}|b")), false);
    assert_eq!((one.as_str().len(), two.as_str().len()), (40, 40));
    assert_ne!(one, two);
    assert!(one.as_str().starts_with(&"x".repeat(31)));
}
