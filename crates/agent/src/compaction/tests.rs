//! Small messages for the tables of this crate, and plans made of them.

use std::collections::BTreeMap;

use super::*;
use crew_base::id::CallId;
use crew_base::message::{
    AssistantMessage, Block, Content, CustomMessage, SystemMessage, ToolCall, ToolResultMessage,
};
use crew_base::model::{Api, ModelSpec, Rates};
use crew_base::time::Time;

pub(crate) fn system(text: &str) -> Message {
    let content = Content::Text(text.to_owned());
    Message::System(SystemMessage { content, ..SystemMessage::default() })
}

pub(crate) fn user(text: &str) -> Message {
    Message::user_text(text, Time(0))
}

pub(crate) fn custom(kind: &str, text: &str) -> Message {
    Message::Custom(CustomMessage {
        custom_type: kind.to_owned(),
        content: Content::Text(text.to_owned()),
        display: true,
        details: None,
        timestamp: Time(0),
    })
}

/// An answer of the model of [`model`].
pub(crate) fn answer(text: &str, total_tokens: u64) -> AssistantMessage {
    AssistantMessage {
        content: vec![Block::text(text)],
        api: "crew-demo".into(),
        provider: "p".into(),
        model: "m".into(),
        usage: Usage { total_tokens, ..Usage::default() },
        stop_reason: StopReason::Stop,
        timestamp: Time(0),
        response_id: None,
        response_model: None,
        raw_stop_reason: None,
        error_message: None,
        duration_ms: None,
        thinking_level: None,
        provider_thinking_level: None,
        diagnostics: None,
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: CallId::new(id),
        name: name.to_owned(),
        arguments: Raw::parse(arguments).expect("the test gives JSON"),
        thought_signature: None,
        namespace: None,
        arguments_error: None,
    })
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: CallId::new(id),
        tool_name: "tool".into(),
        content: vec![Block::text(text)],
        details: None,
        is_error: false,
        usage: None,
        duration_ms: None,
        timestamp: Time(0),
    })
}

/// A model with answers of at most 100 tokens.
pub(crate) fn model(context_window: u64) -> ModelSpec {
    ModelSpec {
        provider: "p".into(),
        id: "m".into(),
        name: "m".into(),
        api: Api::Demo,
        api_word: "crew-demo".into(),
        base_url: String::new(),
        reasoning: false,
        thinking_levels: BTreeMap::new(),
        images: false,
        rates: Rates::default(),
        context_window,
        max_tokens: 100,
        sampling_params: None,
        headers: Vec::new(),
        auth_header: false,
        compat: None,
    }
}

/// Plans over messages of ten tokens each; entries are `e0`, `e1`, ….
fn planned(messages: &[Message], keep: u64, recovers: bool) -> Result<Plan, Nothing> {
    let entries: Vec<EntryId> =
        (0..messages.len()).map(|at| EntryId::new(format!("e{at}"))).collect();
    let candidates: Vec<Candidate<'_>> = messages
        .iter()
        .zip(&entries)
        .map(|(message, entry)| Candidate {
            entry,
            lead: None,
            piece: Piece { message, tokens: 10 },
        })
        .collect();
    plan(&candidates, None, keep, recovers)
}

fn kept(plan: &Plan) -> Option<&str> {
    plan.keep.as_ref().map(|keep| keep.first.as_str())
}

#[test]
fn whole_turns_give_one_part_and_a_split_turn_two() {
    let messages = [user("one"), Message::Assistant(answer("ONE", 0)), user("two"), user("three")];
    let plan = planned(&messages, 20, false).unwrap();
    assert_eq!(kept(&plan), Some("e2"));
    assert_eq!(plan.parts, [Part::History("User: one\n\nAssistant: ONE".into())]);

    let mut calling = answer("", 0);
    calling.content = vec![call("c", "read", r#"{"path":"a"}"#)];
    let messages = [
        user("one"),
        Message::Assistant(answer("ONE", 0)),
        user("two"),
        Message::Assistant(calling),
        result("c", "R"),
        Message::Assistant(answer("TWO", 0)),
    ];
    // host.md 3.8.8.
    let plan = planned(&messages, 10, false).unwrap();
    assert_eq!(kept(&plan), Some("e5"));
    assert_eq!(plan.parts.len(), 2);
    let Part::TurnStart(turn) = &plan.parts[1] else { panic!("{:?}", plan.parts) };
    assert!(turn.starts_with("User: two") && turn.contains("read(path=\"a\")"), "{turn}");
    assert_eq!(plan.files.details().text(), r#"{"readFiles":["a"],"modifiedFiles":[]}"#);
}

#[test]
fn nothing_but_the_prompt_before_the_cut_is_nothing_to_compact() {
    let check = |messages: &[Message], keep: u64| {
        assert_eq!(planned(messages, keep, false).map(|_| ()), Err(Nothing::TooSmall));
    };
    check(&[], 10);
    check(&[system("s")], 10);
    check(&[system("s"), user("one")], 10);
    check(&[system("s"), user("one"), Message::Assistant(answer("ONE", 0))], 1000);
}

#[test]
fn a_recovery_summarises_the_oversized_input_itself() {
    // host.md 3.8.7: only the omitted attempt would follow the cut.
    let messages = [user("one"), Message::Assistant(answer("ONE", 0)), user("far too long")];
    let plan = planned(&messages, 10, true).unwrap();
    assert_eq!(kept(&plan), None);
    assert!(matches!(&plan.parts[..], [Part::History(text)] if text.contains("far too long")));
    let plan = planned(&messages, 20, true).unwrap();
    assert_eq!(kept(&plan), Some("e1"));
    let plan = planned(&messages, 10, false).unwrap();
    assert_eq!(kept(&plan), Some("e2"));
}
