//! Streams of `openai-responses`: golden ones of our own, and the cases of the
//! conformance kit where it is at hand.

mod common;

use std::time::Instant;

use crew_base::message::Block;
use crew_base::model::{Api, ModelErrorKind, ModelRequest};

fn request() -> ModelRequest {
    common::request(Api::OpenaiResponses, "m1")
}

#[test]
fn golden_streams_give_the_same_events_at_every_cut() {
    // host.md 9.4.7 to 9.4.10.
    common::check_golden("responses", &request());
}

#[test]
fn the_cases_of_the_kit_fit_their_expectations() {
    common::check_kit("openai-responses-", Api::OpenaiResponses);
}

#[test]
fn deltas_that_name_none_of_two_calls_are_an_error_not_a_guess() {
    // host.md 11, row 112.
    let added = |id: &str| {
        format!(
            "data: {{\"type\":\"response.output_item.added\",\"item\":{{\"type\":\
             \"function_call\",\"id\":\"{id}\",\"call_id\":\"c{id}\",\"name\":\"ls\"}}}}\n\n"
        )
    };
    let delta = "data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{}\"}\n\n";
    let body = format!("{}{}{delta}", added("fc_1"), added("fc_2"));
    let answer = common::gather(&common::play_all(&request(), body.as_bytes()));
    let error = answer.error.expect("the stream fails");
    assert_eq!(error.kind, ModelErrorKind::InvalidStream);
}

#[test]
fn a_long_answer_is_decoded_in_linear_time() {
    const DELTAS: usize = 100_000;
    let delta = "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\
                 \"output_index\":0,\"delta\":\"some words \"}\n\n";
    let mut body = delta.repeat(DELTAS);
    body.push_str("data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n");
    let begun = Instant::now();
    let answer = common::gather(&common::play(&request(), body.as_bytes(), 1460));
    let taken = begun.elapsed();
    let text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
    assert_eq!(text.len(), DELTAS * "some words ".len());
    // Quadratic work would copy 50 GB; the bound leaves room for slow machines.
    assert!(taken.as_secs() < 15, "{taken:?}");
}
