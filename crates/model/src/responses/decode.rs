//! Events of the Responses API become model events (`host.md` 9.4.7 to
//! 9.4.10).
//!
//! Items are told apart by `output_index`, else by their id. Reasoning whose
//! encrypted part is missing stays open until the end, since it may arrive
//! with the whole response (9.4.8).

mod item;

use crew_base::message::{StopReason, Usage};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use serde_json::Value;

use self::item::{Item, Names, call_name, kind_of, reasoning_text, text_signature, written_text};
use crate::assembly::{Assembly, Kind};
use crate::frame::{self, Frame, counter, raw_at, text};
use crate::wire::{Decoder, Fields, truncated};

/// Decodes one answer.
pub(crate) struct ResponsesDecoder {
    answer: Assembly,
    items: Vec<Item>,
}

impl ResponsesDecoder {
    pub(crate) fn new(request: &ModelRequest) -> ResponsesDecoder {
        ResponsesDecoder { answer: Assembly::new(request), items: Vec::new() }
    }

    fn object(&mut self, event: &str, data: &str, value: &Value, out: &mut Vec<ModelEvent>) {
        if let Some(error) = frame::failure(value) {
            return self.answer.fail(error, out);
        }
        let named = text(value, "type");
        match if named.is_empty() { event } else { named } {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.identify(value, out);
            }
            "response.output_item.added" => {
                self.item(value, &value["item"], out);
            }
            "response.output_item.done" => {
                self.item_done(data, &["item"], value, &value["item"], out);
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.delta(Kind::Text, value, text(value, "delta"), out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(Kind::Thinking, value, text(value, "delta"), out);
            }
            "response.reasoning_summary_part.done" => {
                self.delta(Kind::Thinking, value, "\n\n", out);
            }
            "response.function_call_arguments.delta" => {
                self.delta(Kind::Call, value, text(value, "delta"), out);
            }
            "response.function_call_arguments.done" => self.arguments_done(value, out),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => self.conclude(data, value, out),
            "error" => self.answer.fail(frame::failure_of(&cause(value)), out),
            _ => {}
        }
    }

    fn identify(&mut self, value: &Value, out: &mut Vec<ModelEvent>) {
        let response = &value["response"];
        let (id, model) = (text(response, "id"), text(response, "model"));
        self.answer.identify(Some(id), Some(model), out);
    }

    /// The position in our list of the item an event is about, which begins
    /// with it if it is new. `None` for kinds we do not know, or on failure.
    fn item(&mut self, event: &Value, item: &Value, out: &mut Vec<ModelEvent>) -> Option<usize> {
        let kind = kind_of(item)?;
        let names = Names::of(event, item);
        if let Some(known) = names.find(&self.items) {
            return Some(known);
        }
        let block = match kind {
            Kind::Text | Kind::Thinking => self.answer.open(kind, out),
            Kind::Call => {
                let name = text(item, "name");
                self.answer.open_call(&call_name(item), name, out)
            }
        };
        self.items.push(Item::new(names, kind, block));
        Some(self.items.len() - 1)
    }

    fn delta(&mut self, kind: Kind, event: &Value, delta: &str, out: &mut Vec<ModelEvent>) {
        if let Some(at) = self.owner(kind, event, out) {
            self.answer.append(self.items[at].block, delta, out);
        }
    }

    fn arguments_done(&mut self, event: &Value, out: &mut Vec<ModelEvent>) {
        if let Some(at) = self.owner(Kind::Call, event, out)
            && !text(event, "arguments").is_empty()
        {
            let block = self.items[at].block;
            self.answer.settle(block, text(event, "arguments"), out);
        }
    }

    /// The item a delta belongs to. Text and reasoning may come without an item
    /// before them; an event that names no item belongs to the only open one,
    /// and with several open ones it would be a guess (`host.md` 11, row 112).
    fn owner(&mut self, kind: Kind, event: &Value, out: &mut Vec<ModelEvent>) -> Option<usize> {
        let names = Names::of(event, &Value::Null);
        let known = if names.is_empty() {
            let open = |at: &usize| self.items[*at].kind == kind && !self.items[*at].is_done;
            let mut open = (0..self.items.len()).filter(open);
            let first = open.next();
            if open.next().is_some() {
                let message = "The stream was interrupted by an event that names none of \
                               several open output items.";
                let error = ModelError::new(ModelErrorKind::InvalidStream, message);
                self.answer.fail(error, out);
                return None;
            }
            first
        } else {
            names.find(&self.items)
        };
        match known {
            Some(at) => (self.items[at].kind == kind).then_some(at),
            // Arguments alone do not tell what is called; the whole item will.
            None if kind == Kind::Call => None,
            None => {
                let block = self.answer.open(kind, out);
                self.items.push(Item::new(names, kind, block));
                Some(self.items.len() - 1)
            }
        }
    }

    /// Takes an item as it is at its end; it stands at `path` of the event.
    fn item_done(
        &mut self,
        data: &str,
        path: &[&str],
        event: &Value,
        item: &Value,
        out: &mut Vec<ModelEvent>,
    ) {
        let Some(at) = self.item(event, item, out) else {
            return;
        };
        let (kind, block) = (self.items[at].kind, self.items[at].block);
        if self.items[at].is_done || Some(kind) != kind_of(item) {
            return;
        }
        self.items[at].is_done = true;
        let below = |name| [path, &[name]].concat();
        match kind {
            Kind::Text => {
                self.settle(block, &written_text(item), out);
                if let Some(signature) = text_signature(item) {
                    self.answer.sign(block, signature);
                }
            }
            Kind::Thinking => {
                let streamed = self.answer.text(block).trim_end_matches('\n').to_owned();
                let said = reasoning_text(item).unwrap_or(streamed);
                self.answer.settle(block, &said, out);
                if let Some(raw) = raw_at(data, path) {
                    self.answer.sign(block, raw.text());
                }
                if text(item, "encrypted_content").is_empty() {
                    self.items[at].lacks_encrypted = true;
                    return;
                }
            }
            Kind::Call => {
                let name = text(item, "name");
                self.answer.name_call(block, &call_name(item), name);
                match item.get("arguments") {
                    Some(Value::String(arguments)) => self.settle(block, arguments, out),
                    Some(Value::Object(_)) => {
                        let raw = raw_at(data, &below("arguments"));
                        self.settle(block, raw.as_ref().map_or("", |raw| raw.text()), out);
                    }
                    Some(_) | None => {}
                }
            }
        }
        self.answer.close(block, out);
    }

    /// Replaces what was streamed, unless the item repeats nothing of it.
    fn settle(&mut self, block: usize, whole: &str, out: &mut Vec<ModelEvent>) {
        if !whole.is_empty() {
            self.answer.settle(block, whole, out);
        }
    }

    /// The response as a whole: its end, its usage, and what was still missing.
    fn conclude(&mut self, data: &str, value: &Value, out: &mut Vec<ModelEvent>) {
        let response = &value["response"];
        self.identify(value, out);
        if response["usage"].is_object() {
            self.answer.count(usage(&response["usage"]), out);
        }
        let said = text(response, "status");
        let by_event = text(value, "type").strip_prefix("response.").unwrap_or("completed");
        let status = match said {
            "completed" | "incomplete" | "failed" | "cancelled" => said,
            _ => by_event,
        };
        if let Some(error) = failed(status, response) {
            return self.answer.fail(error, out);
        }
        self.complete_items(data, response, out);
        let reason = text(&response["incomplete_details"], "reason");
        if status == "incomplete" {
            return match reason {
                "max_output_tokens" => self.answer.finish(StopReason::Length, Some(reason), out),
                _ => self.answer.fail(cut_off(reason), out),
            };
        }
        let mut calls = self.items.iter().filter(|item| item.kind == Kind::Call);
        if calls.any(|call| !call.is_done) {
            return self.answer.fail(truncated("the end of a tool call"), out);
        }
        let stop = if self.answer.has_calls() { StopReason::ToolUse } else { StopReason::Stop };
        self.answer.finish(stop, Some(status), out);
    }

    /// Uses the items of the whole response: for those that were not finished,
    /// and for encrypted reasoning. What was streamed is not taken again.
    fn complete_items(&mut self, data: &str, response: &Value, out: &mut Vec<ModelEvent>) {
        let nothing_streamed = self.items.is_empty();
        let output = response["output"].as_array();
        for (position, item) in output.into_iter().flatten().enumerate() {
            let known = Names::of(&Value::Null, item).find(&self.items);
            match known {
                Some(at) if self.items[at].lacks_encrypted => self.add_encrypted(at, item),
                Some(at) if self.items[at].is_done => {}
                None if !nothing_streamed => {}
                Some(_) | None => {
                    let position = position.to_string();
                    let path = ["response", "output", &position];
                    self.item_done(data, &path, &Value::Null, item, out);
                }
            }
        }
    }

    fn add_encrypted(&mut self, at: usize, item: &Value) {
        let encrypted = text(item, "encrypted_content");
        let block = self.items[at].block;
        if let Some(signature) = self.answer.signature(block)
            && !encrypted.is_empty()
        {
            let mut stored: Fields = serde_json::from_str(signature).unwrap_or_default();
            stored.set("encrypted_content", encrypted);
            self.answer.sign(block, stored.text());
            self.items[at].lacks_encrypted = false;
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &str, data: &str, out: &mut Vec<ModelEvent>) {
        match frame::read(data) {
            Frame::Done | Frame::Idle => {}
            Frame::Object(value) => self.object(event, data, &value, out),
            Frame::Broken(error) => self.answer.fail(error, out),
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if !self.is_done() {
            self.answer.fail(truncated("a terminal response event"), out);
        }
    }

    fn is_done(&self) -> bool {
        self.answer.is_done()
    }
}

/// Code and message of an `error` event.
fn cause(value: &Value) -> Value {
    serde_json::json!({ "code": value["code"], "message": value["message"] })
}

/// The error of a response that failed; `None` for one that did not.
fn failed(status: &str, response: &Value) -> Option<ModelError> {
    if status == "cancelled" {
        let message = "The provider cancelled the response.".to_owned();
        return Some(frame::bad_ending(ModelErrorKind::Provider, status, message));
    }
    if status != "failed" {
        return None;
    }
    let error = &response["error"];
    let reason = &response["incomplete_details"]["reason"];
    let mut told = if error.is_null() && reason.is_string() {
        frame::failure_of(reason)
    } else {
        frame::failure_of(error)
    };
    told.raw_stop_reason = Some(status.to_owned());
    Some(told)
}

/// The error of an incomplete response whose reason is not its length.
fn cut_off(reason: &str) -> ModelError {
    if reason == "content_filter" {
        let message = "A content filter stopped the answer (content_filter).".to_owned();
        return frame::bad_ending(ModelErrorKind::ContentFilter, reason, message);
    }
    let word = if reason.is_empty() { "no reason given" } else { reason };
    let message = format!("The provider left the answer incomplete: {word}");
    frame::bad_ending(ModelErrorKind::Provider, reason, message)
}

/// Each token counted once: the input contains what caches served or stored
/// (9.4.10).
fn usage(usage: &Value) -> Usage {
    let count = |pointer| counter(usage, pointer).unwrap_or(0);
    let cache_read = count("/input_tokens_details/cached_tokens");
    let cache_write = count("/input_tokens_details/cache_write_tokens");
    let cached = cache_read.saturating_add(cache_write);
    let mut counted = Usage {
        input: count("/input_tokens").saturating_sub(cached),
        output: count("/output_tokens"),
        cache_read,
        cache_write,
        reasoning: counter(usage, "/output_tokens_details/reasoning_tokens"),
        ..Usage::default()
    };
    let total = counter(usage, "/total_tokens").filter(|total| *total > 0);
    counted.total_tokens = total.unwrap_or_else(|| counted.sum());
    counted
}
