//! Chunks of `streamGenerateContent` become model events (`host.md` 9.5.5 to
//! 9.5.7).

use crew_base::message::{StopReason, Usage};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use serde_json::Value;

use crate::assembly::{Assembly, Kind};
use crate::frame::{self, Frame, counter, raw_at, text};
use crate::wire::{Decoder, truncated};

/// Decodes one answer.
pub(crate) struct GoogleDecoder {
    answer: Assembly,
    finish_reason: Option<String>,
}

impl GoogleDecoder {
    pub(crate) fn new(request: &ModelRequest) -> GoogleDecoder {
        GoogleDecoder { answer: Assembly::new(request), finish_reason: None }
    }

    fn chunk(&mut self, data: &str, chunk: &Value, out: &mut Vec<ModelEvent>) {
        let (id, model) = (text(chunk, "responseId"), text(chunk, "modelVersion"));
        self.answer.identify(Some(id), Some(model), out);
        let candidate = chunk.pointer("/candidates/0").unwrap_or(&Value::Null);
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for (position, part) in parts.into_iter().flatten().enumerate() {
            self.part(data, position, part, out);
        }
        if chunk["usageMetadata"].is_object() {
            self.answer.count(usage(&chunk["usageMetadata"]), out);
        }
        if let Some(error) = frame::failure(chunk).or_else(|| blocked(chunk)) {
            return self.answer.fail(error, out);
        }
        let reason = text(candidate, "finishReason");
        if reason.is_empty() {
            return;
        }
        match bad_ending(reason, text(candidate, "finishMessage")) {
            Some(error) => self.answer.fail(error, out),
            None => self.finish_reason = Some(reason.to_owned()),
        }
    }

    fn part(&mut self, data: &str, position: usize, part: &Value, out: &mut Vec<ModelEvent>) {
        let signature = text(part, "thoughtSignature");
        if part["functionCall"].is_object() {
            return self.call(data, position, part, out);
        }
        let Some(piece) = part.get("text").and_then(Value::as_str) else {
            return;
        };
        if piece.is_empty() && signature.is_empty() {
            return;
        }
        let kind = if part["thought"] == true { Kind::Thinking } else { Kind::Text };
        let index = match self.answer.last_open(kind) {
            Some(index) => index,
            None => {
                self.answer.close_all(out);
                self.answer.open(kind, out)
            }
        };
        self.answer.append(index, piece, out);
        if !signature.is_empty() {
            self.answer.sign(index, signature);
        }
    }

    /// A call arrives whole; one without arguments has none.
    fn call(&mut self, data: &str, position: usize, part: &Value, out: &mut Vec<ModelEvent>) {
        let call = &part["functionCall"];
        self.answer.close_all(out);
        let index = self.answer.open_whole_call(text(call, "id"), text(call, "name"), out);
        let position = position.to_string();
        let path = ["candidates", "0", "content", "parts", &position, "functionCall", "args"];
        let arguments = if call["args"].is_null() { None } else { raw_at(data, &path) };
        let arguments = arguments.as_ref().map_or("{}", |raw| raw.text());
        self.answer.append(index, arguments, out);
        let signature = text(part, "thoughtSignature");
        if !signature.is_empty() {
            self.answer.sign(index, signature);
        }
        self.answer.close(index, out);
    }
}

impl Decoder for GoogleDecoder {
    fn event(&mut self, _event: &str, data: &str, out: &mut Vec<ModelEvent>) {
        match frame::read(data) {
            Frame::Done | Frame::Idle => {}
            Frame::Object(chunk) => self.chunk(data, &chunk, out),
            Frame::Broken(error) => self.answer.fail(error, out),
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if self.is_done() {
            return;
        }
        let Some(reason) = self.finish_reason.take() else {
            return self.answer.fail(truncated("a finish reason"), out);
        };
        let stop = match reason.as_str() {
            "STOP" if self.answer.has_calls() => StopReason::ToolUse,
            "STOP" => StopReason::Stop,
            _ => StopReason::Length,
        };
        self.answer.finish(stop, Some(&reason), out);
    }

    fn is_done(&self) -> bool {
        self.answer.is_done()
    }
}

/// The error of a prompt that was refused: there is no candidate then.
fn blocked(chunk: &Value) -> Option<ModelError> {
    let reason = chunk.pointer("/promptFeedback/blockReason")?.as_str()?;
    let more = chunk.pointer("/promptFeedback/blockReasonMessage");
    let more = more.and_then(Value::as_str).unwrap_or("");
    let message = format!("The provider blocked the prompt: {reason} {more}");
    let message = message.trim_end().to_owned();
    Some(frame::bad_ending(ModelErrorKind::ContentFilter, reason, message))
}

/// The error behind a finish reason; `None` for a good one (9.5.6, C095).
fn bad_ending(reason: &str, more: &str) -> Option<ModelError> {
    let (kind, words) = match reason {
        "STOP" | "MAX_TOKENS" | "CONTINUATION" => return None,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => (
            ModelErrorKind::MalformedCall,
            "The provider returned an error: the model made a malformed call",
        ),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => (ModelErrorKind::ContentFilter, "A content filter stopped the answer"),
        _ => (ModelErrorKind::Provider, "The answer ended for a reason this program does not know"),
    };
    let message = format!("{words} ({reason}). {more}");
    Some(frame::bad_ending(kind, reason, message.trim_end().to_owned()))
}

/// Each token counted once: the prompt contains what the cache served, thoughts
/// are counted beside the candidates (9.5.7). Counters are cumulative.
fn usage(usage: &Value) -> Usage {
    let count = |pointer| counter(usage, pointer).unwrap_or(0);
    let cache_read = count("/cachedContentTokenCount");
    let thoughts = counter(usage, "/thoughtsTokenCount");
    let mut counted = Usage {
        input: count("/promptTokenCount").saturating_sub(cache_read),
        output: count("/candidatesTokenCount").saturating_add(thoughts.unwrap_or(0)),
        cache_read,
        reasoning: thoughts,
        ..Usage::default()
    };
    let total = counter(usage, "/totalTokenCount").filter(|total| *total > 0);
    counted.total_tokens = total.unwrap_or_else(|| counted.sum());
    counted
}
