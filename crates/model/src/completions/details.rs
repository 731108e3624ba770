//! Reasoning details: the opaque list that relays want back as it was
//! (`host.md` 9.3.9, 9.3.5).

use serde_json::Value;

use crate::frame::text;

/// The details of one answer, pieces of one text joined.
#[derive(Default)]
pub(super) struct Details(Vec<Value>);

impl Details {
    /// Takes one entry of `reasoning_details` and gives its readable text,
    /// maybe empty; `None` for what is no detail.
    pub(super) fn add<'a>(&mut self, detail: &'a Value) -> Option<&'a str> {
        if !detail.is_object() {
            return None;
        }
        let Some(name) = text_member(detail) else {
            self.0.push(detail.clone());
            return Some("");
        };
        match self.0.last_mut() {
            Some(last) if continues(last, detail) => join(last, detail, name),
            Some(_) | None => self.0.push(detail.clone()),
        }
        Some(text(detail, name))
    }

    /// The list as JSON text; `None` when there was none.
    pub(super) fn json(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| Value::Array(self.0.clone()).to_string())
    }
}

/// The member that holds the readable text of a detail.
fn text_member(detail: &Value) -> Option<&'static str> {
    match text(detail, "type") {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        _ => None,
    }
}

/// Whether a detail is the next piece of the one before it.
fn continues(last: &Value, detail: &Value) -> bool {
    let agree = |name: &str| match (last.get(name), detail.get(name)) {
        (Some(one), Some(other)) => one.is_null() || other.is_null() || one == other,
        (None, _) | (_, None) => true,
    };
    text(last, "type") == text(detail, "type") && ["index", "id", "format"].into_iter().all(agree)
}

/// Appends the text and fills in what the earlier pieces lacked.
fn join(last: &mut Value, detail: &Value, name: &str) {
    let (Some(last), Some(detail)) = (last.as_object_mut(), detail.as_object()) else {
        return;
    };
    for (key, value) in detail {
        match last.get_mut(key) {
            Some(Value::String(text)) if key == name => {
                text.push_str(value.as_str().unwrap_or(""));
            }
            Some(known) if known.is_null() => *known = value.clone(),
            Some(_) => {}
            None => {
                last.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn adjacent_pieces_are_joined_and_others_kept_in_order() {
        let mut details = Details::default();
        let pieces = [
            json!({"type": "reasoning.text", "text": "a", "index": 0, "signature": null}),
            json!({"type": "reasoning.text", "text": "b", "index": 0}),
            json!({"type": "reasoning.text", "signature": "S", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "E1"}),
            json!({"type": "reasoning.encrypted", "data": "E2"}),
            json!({"type": "reasoning.summary", "summary": "x", "index": 1}),
            json!({"type": "reasoning.summary", "summary": "y", "index": 2}),
            json!("no detail"),
        ];
        let said: Vec<&str> = pieces.iter().filter_map(|piece| details.add(piece)).collect();
        assert_eq!(said, ["a", "b", "", "", "", "x", "y"]);
        let expected = json!([
            {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "S"},
            {"type": "reasoning.encrypted", "data": "E1"},
            {"type": "reasoning.encrypted", "data": "E2"},
            {"type": "reasoning.summary", "summary": "x", "index": 1},
            {"type": "reasoning.summary", "summary": "y", "index": 2},
        ]);
        assert_eq!(details.json(), Some(expected.to_string()));
        assert_eq!(Details::default().json(), None);
    }
}
