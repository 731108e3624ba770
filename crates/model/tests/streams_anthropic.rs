//! Streams of `anthropic-messages`: golden ones of our own, and the cases of
//! the conformance kit where it is at hand.

mod common;

use crew_base::model::{Api, ModelEvent};

#[test]
fn golden_streams_give_the_same_events_at_every_cut() {
    // host.md 9.2.8 to 9.2.11; C092, C100.
    common::check_golden("anthropic", &common::request(Api::AnthropicMessages, "m1"));
}

#[test]
fn the_cases_of_the_kit_fit_their_expectations() {
    common::check_kit("anthropic-", Api::AnthropicMessages);
}

#[test]
fn a_long_answer_is_decoded_in_linear_time() {
    const DELTAS: usize = 20_000;
    let mut body = String::from(
        "data: {\"type\":\"message_start\",\"message\":{}}\n\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"n\"}}\n\n\
         data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\\\"\"}}\n\n",
    );
    let delta = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"0123456789\"}}\n\n";
    body.push_str(&delta.repeat(DELTAS));
    body.push_str(
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"}\"}}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n\
         data: {\"type\":\"message_stop\"}\n\n",
    );
    let request = common::request(Api::AnthropicMessages, "m1");
    let begun = std::time::Instant::now();
    let events = common::play(&request, body.as_bytes(), 1460);
    let taken = begun.elapsed();
    let deltas =
        events.iter().filter(|event| matches!(event, ModelEvent::BlockDelta { .. })).count();
    assert_eq!(deltas, DELTAS + 2);
    let answer = common::gather(&events);
    let text = serde_json::to_string(&answer.blocks[0]).expect("a block is JSON");
    assert!(text.len() > DELTAS * 10, "all arguments arrived");
    // Quadratic work would take minutes; the bound leaves room for slow machines.
    assert!(taken.as_secs() < 10, "{taken:?}");
}
