//! What the child sees of the contract: tool, rule and reminders.

use serde_json::json;

use crew_base::json::Raw;
use crew_base::tool::ToolDefinition;

use crate::ladder::Reminder;
use crate::schema::{OutputSchema, SchemaSource};

/// Name of the tool that ends a `task` child.
pub const YIELD_TOOL: &str = "yield";

/// The tool for a child whose data have this schema (YIELD-1, YIELD-2).
pub fn definition(schema: &OutputSchema) -> ToolDefinition {
    let mut data = schema.advertised();
    if let Some(fields) = data.as_object_mut()
        && !fields.contains_key("description")
    {
        fields.insert("description".to_owned(), json!("The result, or one section of it."));
    }
    let parameters = json!({
        "type": "object",
        "properties": {
            "type": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                ],
                "description": "Leave it out, or give a text, to end the assignment. A list of \
                                labels records `data` as a section under each and lets you go on.",
            },
            "data": data,
            "error": {
                "type": "string",
                "description": "Only to give up: the concrete obstacle that stops you. Never \
                                beside `data`.",
            },
        },
        "additionalProperties": false,
    });
    ToolDefinition {
        name: YIELD_TOOL.to_owned(),
        description: "Hands in your result and ends the assignment, or records a section of it. \
                      Nothing but what is handed in here reaches the one who asked."
            .to_owned(),
        parameters: Raw::of(&parameters),
        constrained_sampling: None,
    }
}

/// How to end, for the system prompt (SESS-7 item 6).
pub fn guideline(schema: &OutputSchema) -> String {
    let mut parts = vec![
        "End the assignment with the `yield` tool; plain text reaches nobody by itself. Give the \
         result as `data`. To hand it in piece by piece, call `yield` with a list of section \
         labels in `type` and the piece in `data`, and close with a call whose `type` is a text. \
         If your last answer is itself the report, call `yield` with a text in `type` and no \
         `data`."
            .to_owned(),
        "Give up only when something concrete stops you that you cannot get around: call `yield` \
         with `error` and name it."
            .to_owned(),
    ];
    if let Some(shape) = schema.schema() {
        let text = serde_json::to_string_pretty(shape).unwrap_or_default();
        parts.push(format!("`data` must satisfy this JSON Schema:\n\n```json\n{text}\n```"));
    }
    if schema.source == SchemaSource::Caller {
        parts.push(
            "The form of the result is set by the one who gave this assignment; where your role \
             names other labels for its output, this form prevails."
                .to_owned(),
        );
    }
    parts.join("\n\n")
}

/// The words of a reminder (EXEC-6, EXEC-16).
pub(super) fn reminder(reminder: Reminder) -> String {
    let Reminder { number, number_max, wraps_up } = reminder;
    if wraps_up {
        return format!(
            "Reminder {number} of {number_max}. The request budget of this assignment is used up. \
             Call `yield` now with the best result you have in `data`; if there is none, give \
             `error` with the concrete obstacle."
        );
    }
    format!(
        "Reminder {number} of {number_max}: you stopped without a final `yield`. This reminder is \
         no reason to stop. Choose what fits: go on working; record a section with `yield` and a \
         list in `type`; finish with `yield` and the result in `data`; or, only if a concrete \
         obstacle stops you, give up with `yield` and `error`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SchemaMode;
    use serde_json::Value;

    // YIELD-1, YIELD-2.
    #[test]
    fn the_tool_is_a_plain_closed_object() {
        let definition = definition(&OutputSchema::none());
        let schema = definition.parameters.value();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        for word in ["required", "anyOf", "oneOf", "allOf", "not", "$ref"] {
            assert!(schema.get(word).is_none(), "{word}");
        }
        let names: Vec<_> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["type", "data", "error"]);
        assert_eq!(schema["properties"]["data"]["type"], "object");
        assert!(schema["properties"]["data"].get("properties").is_none());
    }

    #[test]
    fn the_schema_is_shown_in_tool_and_guideline() {
        let value = json!({"type": "object", "properties": {"finding": {"type": "string"}}});
        let schema = OutputSchema::new(SchemaSource::Caller, SchemaMode::Permissive, &value);
        assert!(definition(&schema).parameters.text().contains("finding"));
        let rule = guideline(&schema);
        assert!(rule.contains("finding") && rule.contains("prevails"), "{rule}");
        let rule = guideline(&OutputSchema::none());
        assert!(!rule.contains("JSON Schema") && !rule.contains("prevails"), "{rule}");
    }

    // EXEC-6: number, maximum, and that it is no reason to stop.
    #[test]
    fn a_reminder_names_its_number_and_the_ways_on() {
        let text = reminder(Reminder { number: 2, number_max: 3, wraps_up: false });
        for word in ["2", "3", "`yield`", "section", "`data`", "`error`", "no reason to stop"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let numbers: Vec<Value> = vec![json!(3)];
        let wrap_up = reminder(Reminder { number: 3, number_max: 3, wraps_up: true });
        assert!(numbers.iter().all(|n| wrap_up.contains(&n.to_string())));
    }
}
