//! The tool as parents see it (DISP-1, `task.md` 1.1).

use serde_json::{Map, Value, json};

use crew_base::json::Raw;
use crew_base::tool::ToolDefinition;

use crate::dispatch::Standing;
use crate::settings::Settings;

/// Name of the tool.
pub const TASK_TOOL: &str = "task";

/// Whether a session has the tool at all (DISP-1).
pub fn is_offered(standing: &Standing, settings: &Settings) -> bool {
    standing.spawns.is_on() && settings.depth_allows(standing.depth)
}

/// The tool in the shape that the settings ask for; `agents` are those that
/// may be spawned, with what they are for.
pub fn definition(settings: &Settings, agents: &[(String, String)]) -> ToolDefinition {
    let item = item(settings);
    let parameters = if settings.batch {
        json!({
            "type": "object",
            "properties": {
                "context": text("What all tasks of this call share: the goal behind them, facts \
                                 they cannot find out. Each child reads it once."),
                "tasks": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": settings.max_batch_items,
                    "items": item,
                    "description": "One entry for each child; they run at the same time.",
                },
            },
            "required": ["context", "tasks"],
        })
    } else {
        item
    };
    let mut description =
        "Hands self-contained assignments to child agents, waits until all have ended, and returns \
         one bounded result for each. A child sees its assignment and the shared context, nothing \
         of this conversation. Use it for work that can be stated completely and whose result you \
         need before you go on. Long results are previewed; read the whole with the `read` tool \
         under the address in `full-output`."
            .to_owned();
    if !agents.is_empty() {
        let lines: Vec<_> = agents.iter().map(|(name, text)| format!("- {name}: {text}")).collect();
        description.push_str(&format!("\n\nAgents:\n{}", lines.join("\n")));
    }
    ToolDefinition {
        name: TASK_TOOL.to_owned(),
        description,
        parameters: Raw::of(&parameters),
        constrained_sampling: None,
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn item(settings: &Settings) -> Value {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    add("name", text("Short address of the child: letters, digits, `_` and `-`."));
    add("agent", text("Which agent does it; left out, the default one."));
    add("task", text("The whole assignment: what to do, where, and what to hand in."));
    add("solutionSpace", text("How open the way to the result is; a hint, nothing more."));
    if settings.enable_effort {
        let words = "How much the child is to think.";
        add("effort", json!({"type": "string", "enum": ["lo", "med", "hi"], "description": words}));
    }
    add(
        "outputSchema",
        json!({
            "anyOf": [{"type": "object"}, {"type": "boolean"}, {"type": "string"}, {"type": "null"}],
            "description": "JSON Schema or JSON Type Definition of the result, as an object or as \
                            JSON text; `null` asks for no form whatever the agent says.",
        }),
    );
    add(
        "schemaMode",
        json!({
            "type": "string",
            "enum": ["permissive", "strict"],
            "description": "`strict` fails a result that does not satisfy the schema; `permissive` \
                            delivers what could not be corrected, with a warning.",
        }),
    );
    if settings.isolation.enabled {
        let words = "Work in a copy of the repository; the changes are brought back afterwards.";
        add("isolated", json!({"type": "boolean", "description": words}));
    }
    json!({"type": "object", "properties": fields, "required": ["task"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Isolation, Spawns};

    fn names(schema: &Value) -> Vec<&str> {
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    // DISP-1, ISO-1, 1.1.
    #[test]
    fn the_schema_follows_the_settings() {
        let plain = definition(&Settings::default(), &[]).parameters.value();
        assert_eq!(names(&plain), ["context", "tasks"]);
        let fields = ["name", "agent", "task", "solutionSpace", "outputSchema", "schemaMode"];
        assert_eq!(names(&plain["properties"]["tasks"]["items"]), fields);
        let isolation = Isolation { enabled: true, ..Isolation::default() };
        let all = Settings { batch: false, enable_effort: true, isolation, ..Settings::default() };
        let flat = definition(&all, &[("scout".into(), "looks".into())]);
        let schema = flat.parameters.value();
        assert!(names(&schema).contains(&"isolated") && names(&schema).contains(&"effort"));
        assert!(flat.description.contains("- scout: looks"));
    }

    // DISP-1; task.md 12 row 15.
    #[test]
    fn it_is_offered_where_delegation_is_possible() {
        let check = |spawns: Spawns, depth: u32, expected: bool| {
            assert_eq!(is_offered(&Standing { depth, spawns }, &Settings::default()), expected);
        };
        check(Spawns::All, 0, true);
        check(Spawns::All, 2, false);
        check(Spawns::Off, 0, false);
    }
}
