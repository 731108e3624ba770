//! Chunks of Chat Completions and of the many servers that imitate it become
//! model events (`host.md` 9.3.9 to 9.3.12).
//!
//! A message of this protocol has one text and one reasoning text, so an
//! answer has at most one block of each, however the pieces alternate (C104).

use crew_base::message::{StopReason, Usage};
use crew_base::model::{ModelErrorKind, ModelEvent, ModelRequest};
use serde_json::Value;

use super::calls::Calls;
use super::compat::Compat;
use super::details::Details;
use crate::assembly::{Assembly, Kind};
use crate::frame::{self, Frame, counter, text};
use crate::wire::{Decoder, truncated};

/// Members that carry reasoning text, in order of preference (9.3.9).
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Decodes one answer.
pub(crate) struct CompletionsDecoder {
    answer: Assembly,
    text: Option<usize>,
    thinking: Option<usize>,
    /// The member from which the reasoning came.
    field: Option<&'static str>,
    details: Details,
    calls: Calls,
    finish_reason: Option<String>,
    finish_reason_is_sure: bool,
    bills_in_usd: bool,
}

impl CompletionsDecoder {
    pub(crate) fn new(request: &ModelRequest) -> CompletionsDecoder {
        let compat = Compat::of(&request.model);
        CompletionsDecoder {
            answer: Assembly::new(request),
            text: None,
            thinking: None,
            field: None,
            details: Details::default(),
            calls: Calls::default(),
            finish_reason: None,
            finish_reason_is_sure: compat.finish_reason,
            bills_in_usd: compat.is_openrouter,
        }
    }

    fn chunk(&mut self, data: &str, chunk: &Value, out: &mut Vec<ModelEvent>) {
        let (id, model) = (text(chunk, "id"), text(chunk, "model"));
        self.answer.identify(Some(id), Some(model), out);
        let choice = chunk.pointer("/choices/0").unwrap_or(&Value::Null);
        let usage = [chunk.get("usage"), choice.get("usage")];
        if let Some(usage) = usage.into_iter().flatten().find(|usage| usage.is_object()) {
            self.answer.count(self.usage(usage), out);
        }
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        if let Some(delta) = delta.or_else(|| choice.get("message")) {
            self.delta(data, delta, out);
        }
        let reason = text(choice, "finish_reason");
        if !reason.is_empty() {
            self.finish_reason = Some(reason.to_owned());
        }
        if let Some(error) = frame::failure(chunk).or_else(|| frame::failure(choice)) {
            self.answer.fail(error, out);
        }
    }

    fn delta(&mut self, data: &str, delta: &Value, out: &mut Vec<ModelEvent>) {
        let mut fields = REASONING_FIELDS.into_iter();
        let field = fields.find(|name| !text(delta, name).is_empty());
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        if let Some(field) = field {
            self.field.get_or_insert(field);
            self.think(text(delta, field), out);
        }
        for detail in details.into_iter().flatten() {
            if let Some(said) = self.details.add(detail) {
                // Relays repeat the text of details in a field of its own.
                self.think(if field.is_none() { said } else { "" }, out);
            }
        }
        match delta.get("content") {
            Some(Value::String(content)) => self.say(content, out),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.part(part, out)),
            Some(_) | None => {}
        }
        self.say(text(delta, "refusal"), out);
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for (position, call) in calls.into_iter().flatten().enumerate() {
            self.calls.piece(data, position, call, &mut self.answer, out);
        }
    }

    /// One part of a content list, as Mistral sends them.
    fn part(&mut self, part: &Value, out: &mut Vec<ModelEvent>) {
        if text(part, "type") != "thinking" {
            return self.say(text(part, "text"), out);
        }
        match part.get("thinking") {
            Some(Value::String(thought)) => self.think(thought, out),
            Some(Value::Array(parts)) => {
                let mut thoughts = parts.iter().map(|part| text(part, "text"));
                thoughts.by_ref().for_each(|thought| self.think(thought, out));
            }
            Some(_) | None => {}
        }
    }

    fn say(&mut self, piece: &str, out: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            let answer = &mut self.answer;
            let index = *self.text.get_or_insert_with(|| answer.open(Kind::Text, out));
            answer.append(index, piece, out);
        }
    }

    /// Adds reasoning; a block is opened also for details without text, since
    /// their signature needs a place.
    fn think(&mut self, piece: &str, out: &mut Vec<ModelEvent>) {
        let answer = &mut self.answer;
        let index = *self.thinking.get_or_insert_with(|| answer.open(Kind::Thinking, out));
        answer.append(index, piece, out);
    }

    /// Each token is counted once: the prompt contains what caches served or
    /// stored, the output contains the reasoning (9.3.11).
    fn usage(&self, usage: &Value) -> Usage {
        let cached = counter(usage, "/prompt_tokens_details/cached_tokens")
            .or_else(|| counter(usage, "/prompt_cache_hit_tokens"))
            .or_else(|| counter(usage, "/cached_tokens"));
        let prompt = counter(usage, "/prompt_tokens").unwrap_or(0);
        let cache_read = cached.unwrap_or(0);
        let written = counter(usage, "/prompt_tokens_details/cache_write_tokens");
        let cache_write = written.unwrap_or(0);
        let mut counted = Usage {
            input: prompt.saturating_sub(cache_read.saturating_add(cache_write)),
            output: counter(usage, "/completion_tokens").unwrap_or(0),
            cache_read,
            cache_write,
            reasoning: counter(usage, "/completion_tokens_details/reasoning_tokens"),
            ..Usage::default()
        };
        counted.total_tokens = counted.sum();
        let billed = usage.get("cost").and_then(Value::as_f64);
        if let Some(billed) = billed.filter(|_| self.bills_in_usd) {
            counted.cost.total = billed;
            counted.cost.total_from_provider = Some(true);
        }
        counted
    }

    /// The stream is over, by its marker or by the end of the body.
    fn conclude(&mut self, out: &mut Vec<ModelEvent>) {
        self.sign();
        let calls = self.answer.has_calls();
        let reason = self.finish_reason.take();
        let stop = match reason.as_deref() {
            // Some servers say `stop` although they ask for tools.
            Some("stop" | "end") | None if calls => StopReason::ToolUse,
            Some("stop" | "end") | None => StopReason::Stop,
            Some("length") => StopReason::Length,
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            Some(other) => {
                let (kind, message) = explain(other);
                let error = frame::bad_ending(kind, other, message);
                return self.answer.fail(error, out);
            }
        };
        if reason.is_none() && self.finish_reason_is_sure {
            return self.answer.fail(truncated("a finish reason"), out);
        }
        self.answer.finish(stop, reason.as_deref(), out);
    }

    fn sign(&mut self) {
        let signature = self.details.json().or(self.field.map(str::to_owned));
        if let (Some(index), Some(signature)) = (self.thinking, signature) {
            self.answer.sign(index, signature);
        }
    }
}

impl Decoder for CompletionsDecoder {
    fn event(&mut self, event: &str, data: &str, out: &mut Vec<ModelEvent>) {
        match frame::read(data) {
            Frame::Done => self.conclude(out),
            Frame::Idle => {}
            // Some relays name the event and send the error bare.
            Frame::Object(error) if event == "error" && error.get("error").is_none() => {
                self.answer.fail(frame::failure_of(&error), out);
            }
            Frame::Object(chunk) => self.chunk(data, &chunk, out),
            Frame::Broken(error) => self.answer.fail(error, out),
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if !self.is_done() {
            self.conclude(out);
        }
    }

    fn is_done(&self) -> bool {
        self.answer.is_done()
    }
}

/// Kind and words for a finish reason that is no good ending (9.3.10).
fn explain(reason: &str) -> (ModelErrorKind, String) {
    match reason {
        "content_filter" => (
            ModelErrorKind::ContentFilter,
            "A content filter stopped the answer (finish reason content_filter).".to_owned(),
        ),
        "network_error" => (
            ModelErrorKind::Connection,
            "The provider lost its connection (finish reason network_error).".to_owned(),
        ),
        "error" => (
            ModelErrorKind::Server,
            "The provider returned an error (finish reason error).".to_owned(),
        ),
        other => (
            ModelErrorKind::Provider,
            format!("The answer ended for a reason this program does not know: {other}"),
        ),
    }
}
