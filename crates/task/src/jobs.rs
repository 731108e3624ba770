//! Background commands of a child as its tools see them (OBS-8).

use serde_json::{Value, json};

use crew_base::json::Raw;
use crew_base::message::ToolCall;
use crew_base::tool::ToolDefinition;
use crew_cycle::barrier::WAIT_TOOL;

/// The tool that can start one.
pub const BASH_TOOL: &str = "bash";

/// The command of a `bash` call that asks for the background.
pub fn background(call: &ToolCall) -> Option<String> {
    if call.name != BASH_TOOL {
        return None;
    }
    let arguments = call.arguments.value();
    let wants = arguments.get("background").and_then(Value::as_bool) == Some(true);
    arguments.get("command").and_then(Value::as_str).filter(|_| wants).map(str::to_owned)
}

/// The same call without the argument that only `task` children have, for the
/// ordinary `bash` tool; calls of other tools stay as they are.
pub fn foreground(call: &ToolCall) -> ToolCall {
    if call.name != BASH_TOOL {
        return call.clone();
    }
    let mut arguments = call.arguments.value();
    if let Some(fields) = arguments.as_object_mut() {
        fields.remove("background");
    }
    ToolCall { arguments: Raw::of(&arguments), ..call.clone() }
}

/// `bash` with its one more argument.
pub fn bash_definition(bash: &ToolDefinition) -> ToolDefinition {
    let mut parameters = bash.parameters.value();
    if let Some(properties) = parameters.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(
            "background".to_owned(),
            json!({
                "type": "boolean",
                "description": "Run it in the background: the call returns at once with a job id, \
                                the result reaches you as a message later.",
            }),
        );
    }
    ToolDefinition { parameters: Raw::of(&parameters), ..bash.clone() }
}

/// The tool that waits for jobs.
pub fn wait_definition() -> ToolDefinition {
    let parameters = json!({
        "type": "object",
        "properties": {"job_ids": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Which jobs; left out, all that run.",
        }},
        "additionalProperties": false,
    });
    ToolDefinition {
        name: WAIT_TOOL.to_owned(),
        description: "Waits until background jobs have ended and returns their results as a list. \
                      What is returned here does not come as a message again."
            .to_owned(),
        parameters: Raw::of(&parameters),
        constrained_sampling: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: Raw::of(&arguments),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        }
    }

    // OBS-8.
    #[test]
    fn only_a_true_flag_of_bash_asks_for_the_background() {
        let check = |name: &str, arguments: Value, expected: Option<&str>| {
            assert_eq!(background(&call(name, arguments)).as_deref(), expected);
        };
        check("bash", json!({"command": "make", "background": true}), Some("make"));
        check("bash", json!({"command": "make", "background": false}), None);
        check("bash", json!({"command": "make", "background": "true"}), None);
        check("bash", json!({"background": true}), None);
        check("read", json!({"command": "make", "background": true}), None);
        let plain = foreground(&call("bash", json!({"command": "make", "background": false})));
        assert_eq!(plain.arguments.text(), r#"{"command":"make"}"#);
    }

    #[test]
    fn the_background_argument_joins_the_others() {
        let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let bash = ToolDefinition { parameters: Raw::of(&parameters), ..wait_definition() };
        let schema = bash_definition(&bash).parameters.value();
        assert_eq!(schema["properties"]["background"]["type"], "boolean");
        assert_eq!(schema["properties"]["command"]["type"], "string");
    }
}
