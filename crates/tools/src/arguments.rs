//! Checks of tool arguments: coercion on a copy, and the text of a refusal
//! (`host.md` 3.3.5). Pure.

use crew_base::json::Raw;
use crew_base::text::cut_units;
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Number, Value};

/// UTF-16 units of the received arguments that a refusal echoes.
const ECHO_UNITS_MAX: usize = 8000;
/// Paths that one refusal lists.
const PROBLEMS_MAX: usize = 20;

/// Mends harmless slips: numeric texts become numbers, `"true"` and `"false"`
/// booleans, a scalar for an array an array of one, `null` for an optional
/// property is dropped.
pub(crate) fn coerce(schema: &Value, value: Value) -> Value {
    let wants = schema["type"].as_str().unwrap_or_default();
    match (wants, value) {
        ("object", Value::Object(map)) => coerce_object(schema, map),
        ("array", Value::Array(items)) => coerce_items(schema, items),
        ("array", Value::Null) => Value::Null,
        ("array", scalar) => coerce_items(schema, vec![scalar]),
        ("number" | "integer", Value::String(text)) => {
            number(&text).map_or(Value::String(text), Value::Number)
        }
        ("boolean", Value::String(text)) => match text.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        (_, value) => value,
    }
}

fn coerce_object(schema: &Value, map: Map<String, Value>) -> Value {
    let required = schema["required"].as_array();
    let is_required = |key: &str| {
        required.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(key)))
    };
    let mended = map.into_iter().filter_map(|(key, value)| {
        let known = &schema["properties"][&key];
        if value.is_null() && known.is_object() && !is_required(&key) {
            return None;
        }
        let value = coerce(known, value);
        Some((key, value))
    });
    Value::Object(mended.collect())
}

fn coerce_items(schema: &Value, items: Vec<Value>) -> Value {
    let of_items = &schema["items"];
    Value::Array(items.into_iter().map(|item| coerce(of_items, item)).collect())
}

fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let value: f64 = text.parse().ok()?;
    // The parser also takes words such as `inf`, which JSON has not.
    Number::from_f64(value).filter(|_| text.bytes().any(|b| b.is_ascii_digit()))
}

/// One line per failing path, in dotted form.
pub(crate) fn problems(validator: &Validator, arguments: &Value) -> Vec<String> {
    let mut lines: Vec<String> = validator
        .iter_errors(arguments)
        .take(PROBLEMS_MAX)
        .map(|error| {
            let mut path = dotted(error.instance_path().as_str());
            let reason = if let ValidationErrorKind::Required { property } = error.kind() {
                let name = property.as_str().unwrap_or_default();
                path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                "is missing".to_owned()
            } else if let ValidationErrorKind::Type { .. } = error.kind() {
                let expected = error.to_string();
                let kind = expected.rsplit(" of ").next().unwrap_or_default();
                format!("is not of {kind}")
            } else {
                error.to_string()
            };
            let path = if path.is_empty() { "(arguments)" } else { &path };
            format!("{path}: {reason}")
        })
        .collect();
    lines.dedup();
    lines
}

fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
}

/// The error text of refused arguments, which are echoed as received.
pub(crate) fn refusal(tool: &str, problems: &[String], received: &Raw) -> String {
    let list: String = problems.iter().map(|line| format!("- {line}\n")).collect();
    let echo = cut_units(received.text(), ECHO_UNITS_MAX);
    let cut = if echo.len() < received.text().len() { "… [cut]" } else { "" };
    format!("The arguments of {tool} are not valid:\n{list}\nReceived arguments:\n{echo}{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "required": ["must"], "properties": {
            "must": {"type": "string"},
            "n": {"type": "number"},
            "b": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
        }})
    }

    #[test]
    fn harmless_slips_are_mended_and_others_left() {
        // host.md 3.3.5
        let check = |input: Value, expected: Value| {
            assert_eq!(coerce(&schema(), input.clone()), expected, "{input}");
        };
        check(json!({"n": "42"}), json!({"n": 42}));
        check(json!({"n": " 1.5 "}), json!({"n": 1.5}));
        check(json!({"n": "inf"}), json!({"n": "inf"}));
        check(json!({"n": "four"}), json!({"n": "four"}));
        check(json!({"n": null, "must": null}), json!({"must": null}));
        check(json!({"other": null}), json!({"other": null}));
        check(json!({"b": "true"}), json!({"b": true}));
        check(json!({"list": {"n": "1"}}), json!({"list": [{"n": 1}]}));
        check(json!({"must": 5}), json!({"must": 5}));
        check(json!("text"), json!("text"));
    }

    #[test]
    fn failing_paths_are_dotted() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let lines = problems(&validator, &json!({"list": [{"n": "x"}], "must": []}));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines.iter().any(|line| line == "list.0.n: is not of type \"number\""),
            "{lines:?}"
        );
        assert!(lines.iter().any(|line| line.starts_with("must: ")));
        assert_eq!(problems(&validator, &json!({})), ["must: is missing"]);
        assert!(problems(&validator, &json!(1))[0].starts_with("(arguments): "));
    }

    #[test]
    fn a_huge_echo_is_cut() {
        let received = Raw::of(&json!("x".repeat(100_000)));
        assert!(refusal("write", &[], &received).len() < 10_000);
    }
}
