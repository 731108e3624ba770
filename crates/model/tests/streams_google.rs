//! Streams of `google-generative-ai`: golden ones of our own, and the cases of
//! the conformance kit where it is at hand.

mod common;

use std::time::Instant;

use crew_base::message::Block;
use crew_base::model::{Api, ModelErrorKind, ModelRequest};

fn request() -> ModelRequest {
    common::request(Api::GoogleGenerativeAi, "gemini-3-flash")
}

#[test]
fn golden_streams_give_the_same_events_at_every_cut() {
    // host.md 9.5.5 to 9.5.7; C095.
    common::check_golden("google", &request());
}

#[test]
fn the_cases_of_the_kit_fit_their_expectations() {
    common::check_kit("gemini-", Api::GoogleGenerativeAi);
}

#[test]
fn every_ending_has_its_kind() {
    // host.md 9.5.6.
    let check = |reason: &str, expected: Option<ModelErrorKind>| {
        let body = format!("data: {{\"candidates\":[{{\"finishReason\":\"{reason}\"}}]}}\n\n");
        let answer = common::gather(&common::play_all(&request(), body.as_bytes()));
        let kind = answer.error.as_ref().map(|error| error.kind);
        assert_eq!(kind, expected, "{reason}");
        if let Some(error) = answer.error {
            assert!(error.message.contains(reason), "{error}");
            assert_eq!(error.raw_stop_reason.as_deref(), Some(reason));
        }
    };
    use ModelErrorKind as K;
    check("STOP", None);
    check("MAX_TOKENS", None);
    check("CONTINUATION", None);
    check("SAFETY", Some(K::ContentFilter));
    check("RECITATION", Some(K::ContentFilter));
    check("MALFORMED_FUNCTION_CALL", Some(K::MalformedCall));
    check("UNEXPECTED_TOOL_CALL", Some(K::MalformedCall));
    check("OTHER", Some(K::Provider));
    check("FINISH_REASON_UNSPECIFIED", Some(K::Provider));
}

#[test]
fn a_long_answer_is_decoded_in_linear_time() {
    const DELTAS: usize = 100_000;
    let delta = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"some words \"}],\
                 \"role\":\"model\"}}]}\n\n";
    let mut body = delta.repeat(DELTAS);
    body.push_str("data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n");
    let begun = Instant::now();
    let answer = common::gather(&common::play(&request(), body.as_bytes(), 1460));
    let taken = begun.elapsed();
    let text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
    assert_eq!(text.len(), DELTAS * "some words ".len());
    // Quadratic work would copy 50 GB; the bound leaves room for slow machines.
    assert!(taken.as_secs() < 15, "{taken:?}");
}
