//! Tests of the shared preparation, and the small requests other tests use.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::json::from_text;
use crew_base::model::{Api, CacheRetention, ModelSpec, Rates, ThinkingLevel, ToolChoice};

use super::*;

/// A model `fake/m1` with thinking and images.
pub(crate) fn spec(api: Api) -> ModelSpec {
    ModelSpec {
        provider: "fake".into(),
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
    }
}

/// A request to `fake/m1` of messages in the form of session files.
pub(crate) fn request(api: Api, messages: Vec<&str>) -> ModelRequest {
    let read = |text: &str| Arc::new(from_text(text).unwrap());
    ModelRequest {
        model: Arc::new(spec(api)),
        session: SessionId::from("s-1"),
        messages: messages.into_iter().map(read).collect(),
        thinking: ThinkingLevel::Off,
        cache: CacheRetention::None,
        tool_choice: ToolChoice::Auto,
    }
}

fn prepared(messages: Vec<&str>) -> Prepared<'static> {
    prepared_by(Box::leak(Box::new(request(Api::AnthropicMessages, messages))))
}

fn prepared_by(request: &ModelRequest) -> Prepared<'_> {
    prepare(request, &EncodeOptions::default(), &mut |id, same| {
        if same { id.clone() } else { CallId::new(id.as_str().replace('|', "_")) }
    })
}

/// Turns in short: `u:text`, `a:text+call(id)`, `r:id=text` with `!` on errors.
fn short(turns: &[Turn]) -> Vec<String> {
    let text = |block: &Cow<'_, Block>| match &**block {
        Block::Text(text) => text.text.clone(),
        Block::Image(image) => format!("<{}>", image.data),
        Block::Thinking(thinking) => format!("({})", thinking.thinking),
        Block::ToolCall(call) => format!("call({})", call.id),
        Block::Other(_) => "other".into(),
    };
    let join = |blocks: &[Cow<'_, Block>]| blocks.iter().map(text).collect::<Vec<_>>().join("+");
    let mut lines = Vec::new();
    for turn in turns {
        match turn {
            Turn::User(blocks) => lines.push(format!("u:{}", join(blocks))),
            Turn::Assistant(answer) => lines.push(format!("a:{}", join(&answer.blocks))),
            Turn::ToolResults(results) => {
                let line = results.iter().map(|result| {
                    let mark = if result.is_error { "!" } else { "" };
                    format!("{}={}{mark}", result.call, join(&result.blocks))
                });
                lines.push(format!("r:{}", line.collect::<Vec<_>>().join(",")));
            }
        }
    }
    lines
}

fn check(messages: Vec<&str>, expected: &[&str]) {
    assert_eq!(short(&prepared(messages).turns), expected);
}

const USER: &str = r#"{"role":"user","content":"hi"}"#;

/// An answer of the requested model; `content` is the inside of its list.
fn answer(content: &str, stop: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{content}],"api":"anthropic-messages","provider":"fake","model":"m1","stopReason":"{stop}"}}"#
    )
}

fn foreign(content: &str) -> String {
    answer(content, "toolUse").replace(r#""model":"m1""#, r#""model":"m9""#)
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"toolCall","id":"{id}","name":"read","arguments":{{"p":1.0}}}}"#)
}

fn result(id: &str, text: &str) -> String {
    format!(
        r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#
    )
}

#[test]
fn system_messages_are_folded_into_one_prompt_and_tool_set() {
    // host.md 2.7.2, 9.1.1.
    let first = concat!(
        r#"{"role":"system","content":"free","sections":{"preamble":"You.","rules":"Be kind.","cwd":"<cwd>/a</cwd>","x":"gone"},"#,
        r#""toolsAdded":[{"name":"a","description":"1","parameters":{}},{"name":"b","description":"2","parameters":{}}]}"#
    );
    let second = concat!(
        r#"{"role":"system","sections":{"cwd":"<cwd>/b</cwd>","x":null},"toolsRemoved":[{"name":"a"}],"#,
        r#""toolsAdded":[{"name":"a","description":"3","parameters":{"d":"\ud83d"}}]}"#
    );
    let got = prepared(vec![first, USER, second]);
    assert_eq!(got.prompt, "free\n\nYou.\n\n<rules>\nBe kind.\n</rules>\n\n<cwd>/b</cwd>");
    let tools: Vec<_> = got.tools.iter().map(|t| (&*t.name, &*t.description)).collect();
    assert_eq!(tools, [("b", "2"), ("a", "3")]);
    // C136.
    assert_eq!(got.tools[1].parameters.text(), r#"{"d":"\ufffd"}"#);
    assert_eq!(short(&got.turns), ["u:hi"]);
}

#[test]
fn failed_and_aborted_answers_are_left_out_with_their_results() {
    // host.md 9.1.5.
    check(
        vec![
            USER,
            &answer(&call("c1"), "error"),
            &result("c1", "x"),
            &answer(r#"{"type":"text","text":"cut"}"#, "aborted"),
            USER,
        ],
        &["u:hi", "u:hi"],
    );
}

#[test]
fn every_call_gets_exactly_one_result_in_the_order_of_calls() {
    // host.md 9.1.7, 11.107.
    let calls = format!("{},{},{}", call("c1"), call("c2"), call("c3"));
    check(
        vec![
            USER,
            &answer(&calls, "toolUse"),
            &result("c2", "two"),
            USER,
            r#"{"role":"custom","customType":"crew-user","content":"note","display":true}"#,
            &result("c1", "one"),
            &result("c1", "again"),
            &result("zz", "stray"),
        ],
        &[
            "u:hi",
            "a:call(c1)+call(c2)+call(c3)",
            "r:c1=one,c2=two,c3=No result: this call was never finished.!",
            "u:hi",
            "u:note",
        ],
    );
    check(
        vec![&answer(&call("c1"), "toolUse"), &answer(r#"{"type":"text","text":"on"}"#, "stop")],
        &["a:call(c1)", "r:c1=No result: this call was never finished.!", "a:on"],
    );
}

#[test]
fn ids_of_other_models_are_rewritten_with_their_results() {
    // host.md 9.1.4, 11.105.
    check(
        vec![&foreign(&call("call|fc_1")), &result("call|fc_1", "x")],
        &["a:call(call_fc_1)", "r:call_fc_1=x"],
    );
}

#[test]
fn repeated_ids_are_made_unique_and_still_paired() {
    let one = answer(&call("c"), "toolUse");
    let pipe = answer(&call("k|fc_1"), "toolUse");
    check(
        vec![
            &one,
            &result("c", "1"),
            &one,
            &result("c", "2"),
            &pipe,
            &result("k|fc_1", "3"),
            &pipe,
            &result("k|fc_1", "4"),
        ],
        &[
            "a:call(c)",
            "r:c=1",
            "a:call(c_2)",
            "r:c_2=2",
            "a:call(k|fc_1)",
            "r:k|fc_1=3",
            "a:call(k_2|fc_1)",
            "r:k_2|fc_1=4",
        ],
    );
}

#[test]
fn thinking_and_signatures_stay_with_their_model() {
    // host.md 9.1.3, 11.106.
    let blocks = concat!(
        r#"{"type":"thinking","thinking":"why","thinkingSignature":"s"},"#,
        r#"{"type":"thinking","thinking":" "},"#,
        r#"{"type":"thinking","thinking":"","thinkingSignature":"d","redacted":true},"#,
        r#"{"type":"text","text":"t","textSignature":"ts"},{"type":"novel"},"#,
        r#"{"type":"toolCall","id":"c","name":"n","arguments":{"a":"\ud83d"},"thoughtSignature":"g"}"#
    );
    let same = prepared(vec![&answer(blocks, "toolUse")]);
    assert_eq!(short(&same.turns)[0], "a:(why)+()+t+call(c)");
    let other = prepared(vec![&foreign(blocks)]);
    let Turn::Assistant(other) = &other.turns[0] else { panic!() };
    assert!(!other.same_model && other.source_model == "m9");
    let text = serde_json::to_string(&other.blocks).unwrap();
    assert_eq!(
        text,
        r#"[{"type":"text","text":"t"},{"type":"toolCall","id":"c","name":"n","arguments":{"a":"\ufffd"}}]"#
    );
}

#[test]
fn messages_of_the_host_become_user_text() {
    // host.md 2.6.6.
    let run = r#"{"role":"bashExecution","command":"make","output":"bad\n","exitCode":2,"truncated":true,"fullOutputPath":"/tmp/o"}"#;
    let silent = r#"{"role":"bashExecution","command":"true","output":"","cancelled":true}"#;
    let hidden = r#"{"role":"bashExecution","command":"ls","output":"","excludeFromContext":true}"#;
    let summary = r#"{"role":"compactionSummary","summary":"SUM","tokensBefore":1}"#;
    let branch = r#"{"role":"branchSummary","summary":"BR","fromId":"x"}"#;
    let got = short(&prepared(vec![run, silent, hidden, summary, branch]).turns);
    assert_eq!(got.len(), 4);
    for part in ["$ make", "bad", "exit code 2", "/tmp/o"] {
        assert!(got[0].contains(part), "{}", got[0]);
    }
    assert!(got[1].contains("printed nothing") && got[1].contains("stopped it"));
    assert!(got[2].contains("<conversation_summary>\nSUM\n</conversation_summary>"));
    assert!(got[3].contains("<branch_summary>\nBR\n</branch_summary>"));
}

#[test]
fn a_run_of_images_becomes_one_placeholder_where_images_cannot_be_read() {
    // host.md 9.1.6.
    let image = r#"{"type":"image","data":"AA","mimeType":"image/png"}"#;
    let user =
        format!(r#"{{"role":"user","content":[{{"type":"text","text":"see"}},{image},{image}]}}"#);
    let shown = result("c1", "x").replace(r#""x"}"#, &format!(r#""x"}},{image}"#));
    let calls = answer(&call("c1"), "toolUse");
    let mut request = request(Api::AnthropicMessages, vec![&user, &calls, &shown]);
    assert_eq!(
        short(&prepared_by(&request).turns),
        ["u:see+<AA>+<AA>", "a:call(c1)", "r:c1=x+<AA>"]
    );
    Arc::make_mut(&mut request.model).images = false;
    let got = short(&prepared_by(&request).turns);
    assert_eq!(got[0].matches("cannot be shown").count(), 1);
    assert!(got[0].contains("attached") && got[2].contains("tool returned"));
    Arc::make_mut(&mut request.model).images = true;
    let options = EncodeOptions { block_images: true, ..EncodeOptions::default() };
    let blocked = prepare(&request, &options, &mut |id, _| id.clone());
    assert_eq!(short(&blocked.turns), got);
}

#[test]
fn the_output_limit_leaves_room_for_the_input() {
    // host.md 3.10.8.
    let check = |window, limit, messages: Vec<&str>, expected| {
        let mut request = request(Api::AnthropicMessages, messages);
        let model = Arc::make_mut(&mut request.model);
        (model.context_window, model.max_tokens) = (window, limit);
        let prepared = prepared_by(&request);
        assert_eq!(max_tokens(&request, &prepared), expected);
    };
    let used = |tokens: u64, time: u64| {
        answer("", "stop").replace(
            r#","stopReason"#,
            &format!(r#","usage":{{"input":{tokens}}},"timestamp":{time},"stopReason"#),
        )
    };
    let seven = r#"{"role":"user","content":"1234567"}"#;
    check(200_000, 16_384, vec![seven], 16_384);
    check(200_000, 200_000, vec![seven], 200_000 - 2 - 4096);
    check(200_000, 200_000, vec![&used(100_000, 1)], 85_000);
    check(200_000, 200_000, vec![&used(100_000, 1), seven], 200_000 - 100_002 - 15_000);
    check(200_000, 200_000, vec![&used(170_000, 1)], 200_000 - 170_000 - 4096);
    check(200_000, 200_000, vec![&used(500_000, 1)], 1);
    let compaction =
        r#"{"role":"compactionSummary","summary":"1234567","tokensBefore":1,"timestamp":9}"#;
    let stale = used(190_000, 5);
    let mut request = request(Api::AnthropicMessages, vec![compaction, &stale, seven]);
    Arc::make_mut(&mut request.model).max_tokens = 200_000;
    let prepared = prepared_by(&request);
    assert!(max_tokens(&request, &prepared) > 190_000);
}
