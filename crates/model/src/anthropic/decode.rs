//! The stream of `anthropic-messages` (`host.md` 9.2.8 to 9.2.11).
//!
//! Blocks are matched by the provider's `index`; ours counts only the blocks
//! we keep. Unknown events, blocks and deltas are ignored.

mod block;

use std::collections::{BTreeMap, BTreeSet};

use crew_base::id::CallId;
use crew_base::message::{Message, StopReason, Usage};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use serde_json::Value;

use super::acceptable;
use crate::wire::{Decoder, cut_message, error_member, parse_json, truncated};
use block::{Open, initial_input};

/// Decodes one response.
pub(crate) struct AnthropicDecoder {
    requested_model: String,
    response_id: String,
    /// Call ids of the conversation; a strict provider refuses repeated ones.
    taken: BTreeSet<CallId>,
    started: bool,
    done: bool,
    /// By the provider's index; in the order of our own.
    open: BTreeMap<u64, Slot>,
    blocks: usize,
    usage: Usage,
    stop: Option<Stop>,
}

/// What became of a block of the provider.
enum Slot {
    /// One of ours, still open.
    Open(Open),
    /// Of a kind we do not keep.
    Ignored,
}

struct Stop {
    reason: String,
    explanation: Option<String>,
}

impl AnthropicDecoder {
    pub(crate) fn new(request: &ModelRequest) -> AnthropicDecoder {
        let answers = request.messages.iter().map(AsRef::as_ref);
        let answers = answers.filter_map(Message::as_assistant);
        let ids = answers.flat_map(|answer| answer.tool_calls().map(|call| call.id.clone()));
        AnthropicDecoder {
            requested_model: request.model.id.clone(),
            response_id: String::new(),
            taken: ids.collect(),
            started: false,
            done: false,
            open: BTreeMap::new(),
            blocks: 0,
            usage: Usage::default(),
            stop: None,
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Vec<ModelEvent>) {
        self.done = true;
        out.push(ModelEvent::Failed(error));
    }

    fn message_start(&mut self, value: &Value, out: &mut Vec<ModelEvent>) {
        self.started = true;
        let message = &value["message"];
        let text = |name: &str| message[name].as_str().filter(|text| !text.is_empty());
        let model = text("model").filter(|model| *model != self.requested_model);
        let (id, model) = (text("id").map(str::to_owned), model.map(str::to_owned));
        if let Some(id) = &id {
            self.response_id.clone_from(id);
        }
        if id.is_some() || model.is_some() {
            out.push(ModelEvent::Identity { response_id: id, response_model: model });
        }
        self.take_usage(&message["usage"], out);
    }

    /// Takes every usage field that is present and no null (9.2.9).
    fn take_usage(&mut self, value: &Value, out: &mut Vec<ModelEvent>) {
        let Some(fields) = value.as_object() else {
            return;
        };
        let count = |value: Option<&Value>| value.and_then(whole);
        let usage = &mut self.usage;
        let take = |name: &str, to: &mut u64| {
            if let Some(tokens) = count(fields.get(name)) {
                *to = tokens;
            }
        };
        take("input_tokens", &mut usage.input);
        take("output_tokens", &mut usage.output);
        take("cache_read_input_tokens", &mut usage.cache_read);
        take("cache_creation_input_tokens", &mut usage.cache_write);
        let hour = value.pointer("/cache_creation/ephemeral_1h_input_tokens");
        if let Some(tokens) = count(hour).filter(|tokens| *tokens > 0) {
            usage.cache_write_1h = Some(tokens);
        }
        let thinking = value.pointer("/output_tokens_details/thinking_tokens");
        if let Some(tokens) = count(thinking) {
            usage.reasoning = Some(tokens);
        }
        usage.total_tokens = usage.sum();
        out.push(ModelEvent::Usage(usage.clone()));
    }

    fn block_start(&mut self, data: &str, value: &Value, out: &mut Vec<ModelEvent>) {
        let index = position(value);
        self.close(index, out);
        let block = &value["content_block"];
        let opened = if block["type"] == "tool_use" {
            let id = self.call_id(block["id"].as_str().unwrap_or_default());
            Some(Open::call(self.blocks, id, block, initial_input(data)))
        } else {
            Open::of(self.blocks, block)
        };
        let Some(mut opened) = opened else {
            self.open.insert(index, Slot::Ignored);
            return;
        };
        self.blocks += 1;
        opened.announce(block, out);
        self.open.insert(index, Slot::Open(opened));
    }

    /// The provider's id of a call, or one of our own in place of a missing or
    /// repeated one.
    fn call_id(&mut self, given: &str) -> CallId {
        let mut id = CallId::from(given);
        let mut number = self.blocks;
        while id.as_str().is_empty() || !self.taken.insert(id.clone()) {
            id = CallId::new(acceptable(&format!("call_{number}_{}", self.response_id)));
            number += 1;
        }
        id
    }

    fn block_delta(&mut self, value: &Value, out: &mut Vec<ModelEvent>) {
        let index = position(value);
        let delta = &value["delta"];
        if !self.open.contains_key(&index) {
            // Some servers leave the start of a block out.
            let Some(mut opened) = Open::by_delta(self.blocks, delta) else {
                return;
            };
            self.blocks += 1;
            opened.announce(&Value::Null, out);
            self.open.insert(index, Slot::Open(opened));
        }
        if let Some(Slot::Open(open)) = self.open.get_mut(&index) {
            open.delta(delta, out);
        }
    }

    fn close(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        if let Some(Slot::Open(open)) = self.open.remove(&index) {
            out.push(open.end());
        }
    }

    fn message_delta(&mut self, value: &Value, out: &mut Vec<ModelEvent>) {
        let delta = &value["delta"];
        if let Some(reason) = delta["stop_reason"].as_str() {
            let said = delta.pointer("/stop_details/explanation");
            let said = said.or_else(|| delta.get("explanation"));
            self.stop = Some(Stop {
                reason: reason.to_owned(),
                explanation: said.and_then(Value::as_str).map(str::to_owned),
            });
        }
        self.take_usage(&value["usage"], out);
    }

    /// The protocol's own end: closes what is open and tells how it ended.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        let mut left: Vec<Open> =
            std::mem::take(&mut self.open).into_values().filter_map(Slot::into_open).collect();
        left.sort_by_key(|open| open.index);
        out.extend(left.into_iter().map(Open::end));
        let Some(stop) = self.stop.take() else {
            return self.fail(truncated("a stop reason"), out);
        };
        match stop.outcome() {
            Ok(stop_reason) => {
                self.done = true;
                out.push(ModelEvent::Finished { stop_reason, raw_stop_reason: Some(stop.reason) });
            }
            Err(error) => self.fail(error, out),
        }
    }
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, event: &str, data: &str, out: &mut Vec<ModelEvent>) {
        let Some(value) = parse_json(data) else {
            if is_known(event) || data.trim_start().starts_with('{') {
                let message =
                    format!("the stream was interrupted by invalid JSON: {}", cut_message(data));
                self.fail(ModelError::new(ModelErrorKind::InvalidStream, message), out);
            }
            return;
        };
        let kind = value["type"].as_str().unwrap_or(event);
        if let Some(error) = error_member(&value) {
            return self.fail(error, out);
        }
        match kind {
            "message_start" => self.message_start(&value, out),
            "content_block_start" => self.block_start(data, &value, out),
            "content_block_delta" => self.block_delta(&value, out),
            "content_block_stop" => self.close(position(&value), out),
            "message_delta" => self.message_delta(&value, out),
            "message_stop" => self.finish(out),
            "error" => {
                let message = format!("the provider reports an error: {}", cut_message(data));
                self.fail(ModelError::new(ModelErrorKind::Provider, message), out);
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if self.done {
            return;
        }
        if !self.started && self.stop.is_some() {
            // Only a stream that began by the book must end by it (9.2.8).
            return self.finish(out);
        }
        self.fail(truncated("its final event `message_stop`"), out);
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Slot {
    fn into_open(self) -> Option<Open> {
        match self {
            Slot::Open(open) => Some(open),
            Slot::Ignored => None,
        }
    }
}

impl Stop {
    /// The stop reason, or the failure it stands for (`host.md` 9.2.11).
    fn outcome(&self) -> Result<StopReason, ModelError> {
        let (kind, message) = match self.reason.as_str() {
            "end_turn" | "pause_turn" | "stop_sequence" => return Ok(StopReason::Stop),
            "max_tokens" => return Ok(StopReason::Length),
            "tool_use" => return Ok(StopReason::ToolUse),
            "refusal" => {
                let why = self.explanation.as_deref();
                let why = why.unwrap_or("the provider gave no explanation");
                let message = format!("The model refused to answer: {why}");
                (ModelErrorKind::Refusal, message)
            }
            "sensitive" => {
                let message = "The provider's filter stopped the answer (sensitive).";
                (ModelErrorKind::ContentFilter, message.to_owned())
            }
            other => {
                let message = format!("The answer stopped for an unknown reason: {other}");
                (ModelErrorKind::Provider, message)
            }
        };
        Err(ModelError {
            raw_stop_reason: Some(self.reason.clone()),
            ..ModelError::new(kind, message)
        })
    }
}

fn is_known(event: &str) -> bool {
    event.starts_with("message_") || event.starts_with("content_block_") || event == "error"
}

fn position(value: &Value) -> u64 {
    value["index"].as_u64().unwrap_or(0)
}

/// A count of tokens, however the number is written.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64);
    value.as_u64().or_else(float)
}
