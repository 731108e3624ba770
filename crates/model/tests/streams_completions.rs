//! Streams of `openai-completions`: golden ones of our own, and the cases of
//! the conformance kit where it is at hand.

mod common;

use std::sync::Arc;
use std::time::Instant;

use crew_base::json::Raw;
use crew_base::message::{Block, StopReason};
use crew_base::model::{Api, ModelErrorKind, ModelRequest};

fn request() -> ModelRequest {
    common::request(Api::OpenaiCompletions, "m1")
}

#[test]
fn golden_streams_give_the_same_events_at_every_cut() {
    // host.md 9.3.9 to 9.3.12; C097, C098, C100, C101, C104.
    common::check_golden("completions", &request());
}

#[test]
fn the_cases_of_the_kit_fit_their_expectations() {
    common::check_kit("openai-chat-", Api::OpenaiCompletions);
}

#[test]
fn without_finish_reasons_the_end_is_inferred_only_where_configured() {
    // host.md 9.3.10.
    let text = "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"local\"}}]}\n\n";
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"k\",\
                \"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]}}]}\n\n";
    let mut lenient = request();
    let model = Arc::make_mut(&mut lenient.model);
    model.compat = Raw::parse(r#"{"supportsFinishReason":false}"#);
    let check = |body: &str, expected: StopReason| {
        let strict = common::gather(&common::play_all(&request(), body.as_bytes()));
        let error = strict.error.expect("a missing finish reason is an error");
        assert_eq!(error.kind, ModelErrorKind::Truncated);
        assert!(error.message.contains("ended without"), "{error}");
        let inferred = common::gather(&common::play_all(&lenient, body.as_bytes()));
        assert_eq!((inferred.stop_reason, inferred.error), (Some(expected), None));
    };
    check(text, StopReason::Stop);
    check(&format!("{text}data: [DONE]\n\n"), StopReason::Stop);
    check(&format!("{text}{call}"), StopReason::ToolUse);
}

#[test]
fn only_openrouter_bills_through_usage() {
    // host.md 9.3.11.
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\
                \"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"cost\":0.25}}\n\n";
    let plain = common::gather(&common::play_all(&request(), body.as_bytes()));
    assert_eq!(plain.usage.cost.total_from_provider, None);
    let mut routed = request();
    Arc::make_mut(&mut routed.model).provider = "openrouter".into();
    let billed = common::gather(&common::play_all(&routed, body.as_bytes())).usage;
    assert_eq!(billed.cost.total_from_provider, Some(true));
    assert!((billed.cost.total - 0.25).abs() < 1e-12);
    assert_eq!((billed.input, billed.output, billed.total_tokens), (7, 2, 9));
}

#[test]
fn a_call_id_used_earlier_in_the_session_is_replaced() {
    let earlier = r#"{"role":"assistant","stopReason":"toolUse","content":[
        {"type":"toolCall","id":"call_0","name":"ls","arguments":{}}]}"#;
    let mut again = request();
    let message = crew_base::json::from_text(earlier).expect("a message");
    again.messages.push(Arc::new(message));
    let body = "data: {\"id\":\"r\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\
                \"id\":\"call_0\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]},\
                \"finish_reason\":\"tool_calls\"}]}\n\n";
    let id = |request: &ModelRequest| {
        let answer = common::gather(&common::play_all(request, body.as_bytes()));
        let [Block::ToolCall(call)] = &answer.blocks[..] else { panic!("{answer:?}") };
        call.id.to_string()
    };
    assert_eq!(id(&request()), "call_0");
    let fresh = id(&again);
    assert!(fresh.starts_with("call_") && fresh != "call_0", "{fresh}");
}

#[test]
fn a_long_answer_is_decoded_in_linear_time() {
    const DELTAS: usize = 100_000;
    let delta = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":\
                 [{\"index\":0,\"delta\":{\"content\":\"some words \"}}]}\n\n";
    let mut body = delta.repeat(DELTAS);
    body.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    let begun = Instant::now();
    let answer = common::gather(&common::play(&request(), body.as_bytes(), 1460));
    let taken = begun.elapsed();
    let text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
    assert_eq!(text.len(), DELTAS * "some words ".len());
    // Quadratic work would copy 50 GB; the bound leaves room for slow machines.
    assert!(taken.as_secs() < 15, "{taken:?}");
}
