//! One event of the protocols that send bare JSON objects: reading it, the
//! errors inside it, and values whose text must be kept.
//!
//! Shared by the decoders of `completions`, `responses` and `google`. Pure.

use std::collections::BTreeMap;

use crew_base::json::Raw;
use crew_base::model::{ModelError, ModelErrorKind};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::arguments::repair;
use crate::wire::{cut_message, error_member, parse_json};

/// The data of one event.
pub(crate) enum Frame {
    /// The marker `[DONE]`.
    Done,
    /// A keep-alive or anything else that is no object (C101).
    Idle,
    /// A chunk.
    Object(Value),
    /// The stream is damaged.
    Broken(ModelError),
}

/// Reads the data of an event (`host.md` 9.3.9: what is no object is ignored).
pub(crate) fn read(data: &str) -> Frame {
    let data = data.trim();
    if data == "[DONE]" {
        return Frame::Done;
    }
    match parse_json(data) {
        Some(value) if value.is_object() => Frame::Object(value),
        None if data.starts_with('{') => {
            let message = "The stream was interrupted by an event that is no JSON.";
            Frame::Broken(ModelError::new(ModelErrorKind::InvalidStream, message))
        }
        Some(_) | None => Frame::Idle,
    }
}

/// The failure told by an `error` member, with its numeric code before and the
/// text of the provider behind a relay after the message (`host.md` 9.3.12).
pub(crate) fn failure(value: &Value) -> Option<ModelError> {
    let mut error = error_member(value)?;
    let code = value.pointer("/error/code").and_then(Value::as_u64);
    if let Some(code) = code.filter(|code| !error.message.contains(&code.to_string())) {
        error.message = format!("{code}: {}", error.message);
    }
    let raw = value.pointer("/error/metadata/raw");
    let raw = raw.map(|raw| raw.as_str().map_or_else(|| raw.to_string(), str::to_owned));
    if let Some(raw) = raw.filter(|raw| raw != "null" && !error.message.contains(raw.trim())) {
        error.message = cut_message(&format!("{}\n{}", error.message, raw.trim()));
    }
    Some(error)
}

/// The kind and words of a failure that a protocol tells outside of an `error`
/// member, as an object with `code` and `message`.
pub(crate) fn failure_of(error: &Value) -> ModelError {
    let wrapped = serde_json::json!({ "error": error });
    failure(&wrapped).unwrap_or_else(|| {
        let message = "The provider returned an error without saying which.";
        ModelError::new(ModelErrorKind::Provider, message)
    })
}

/// An error for an ending that is not a good one, with the provider's word.
pub(crate) fn bad_ending(kind: ModelErrorKind, word: &str, message: String) -> ModelError {
    ModelError {
        raw_stop_reason: Some(word.to_owned()),
        ..ModelError::new(kind, cut_message(&message))
    }
}

/// The text of a member, empty if it is missing or no text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// A counter at a JSON pointer; `None` if it is missing, null or no number.
pub(crate) fn counter(value: &Value, pointer: &str) -> Option<u64> {
    let value = value.pointer(pointer)?;
    value.as_u64().or_else(|| value.as_f64().map(|n| n as u64))
}

/// The value at a path of member names and positions, in its own text
/// (`host.md` 0.6), compacted.
pub(crate) fn raw_at(data: &str, path: &[&str]) -> Option<Raw> {
    let data = data.trim();
    find(data, path).or_else(|| find(&repair(data), path))
}

fn find(data: &str, path: &[&str]) -> Option<Raw> {
    let mut at: &RawValue = serde_json::from_str(data).ok()?;
    for step in path {
        at = if at.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(at.get()).ok()?;
            *items.get(step.parse::<usize>().ok()?)?
        } else {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(at.get()).ok()?;
            *members.get(*step)?
        };
    }
    Raw::parse(at.get()).map(|raw| raw.compact())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_broken_objects_break_a_stream() {
        // C101.
        let check = |data: &str, expected: &str| {
            let got = match read(data) {
                Frame::Done => "done",
                Frame::Idle => "idle",
                Frame::Object(_) => "object",
                Frame::Broken(_) => "broken",
            };
            assert_eq!(got, expected, "{data:?}");
        };
        check(" [DONE] ", "done");
        check("", "idle");
        check(": keep-alive", "idle");
        check("null", "idle");
        check("[]", "idle");
        check("  {\"a\":1}", "object");
        check("{\"a\":\"\u{1}\"}", "object");
        check("{\"a\":", "broken");
    }

    #[test]
    fn what_a_relay_quotes_is_appended_once() {
        // host.md 9.3.12.
        let check = |error: Value, kind, message: &str| {
            let got = failure(&json!({ "error": error })).unwrap();
            assert_eq!((got.kind, got.message.as_str()), (kind, message));
        };
        use ModelErrorKind as K;
        check(
            json!({"code": 502, "message": "lost", "metadata": {"raw": "upstream said no"}}),
            K::Server,
            "502: lost\nupstream said no",
        );
        check(
            json!({"code": 429, "message": "429 slow down", "metadata": {"raw": "slow down"}}),
            K::RateLimit,
            "429 slow down",
        );
        check(json!({"message": "m", "metadata": {"raw": {"a": 1}}}), K::Provider, "m\n{\"a\":1}");
        assert_eq!(failure(&json!({"error": null})), None);
    }

    #[test]
    fn values_are_found_in_their_own_text() {
        let data = "{\"a\": [1, {\"b\" : {\"n\": 1e5,\n \"k\": \"x y\"}}]}";
        let got = raw_at(data, &["a", "1", "b"]).unwrap();
        assert_eq!(got.text(), r#"{"n":1e5,"k":"x y"}"#);
        assert_eq!(raw_at(data, &["a", "2"]), None);
        assert_eq!(raw_at(data, &["a", "x"]), None);
        assert_eq!(raw_at(data, &["z"]), None);
    }
}
