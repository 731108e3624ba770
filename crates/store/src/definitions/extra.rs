//! The keys of a definition file that only the `task` tool reads (`task.md`
//! OBS-2): `spawns`, `output`, and a `model` that is a list.
//!
//! Pure. The crew ignores them all, and a `model` list is of the wrong type to
//! it (`crew.md` CAT-15), which `fields` says.

use std::sync::Arc;

use crew_base::definition::Definition;
use crew_base::json::from_text;
use crew_task::agents::Agent;
use crew_task::settings::Spawns;
use serde_json::Value as Json;

use crate::frontmatter::{Document, Value};

/// What the keys say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extra {
    spawns: Option<Spawns>,
    output: Option<Json>,
    /// Of a `model` that is a list.
    models: Vec<String>,
}

impl Extra {
    pub(super) fn read(document: &Document) -> Extra {
        Extra {
            spawns: document.get("spawns").map(|value| Spawns::read(&value.to_json())),
            output: document.get("output").map(output),
            models: document.get("model").map(list).unwrap_or_default(),
        }
    }

    /// The agent of a definition after overrides; a model that it has now comes
    /// before the list of the file.
    pub(super) fn agent(self, definition: &Arc<Definition>) -> Agent {
        let plain = Agent::plain(Arc::clone(definition));
        let models = if plain.models.is_empty() { self.models } else { plain.models };
        Agent { spawns: self.spawns, output: self.output, models, ..plain }
    }
}

/// How deep a schema in YAML may be nested; as deep as JSON text may.
const DEPTH_MAX: usize = 100;

/// A map stands for itself, a text for the JSON in it; malformed text stays
/// text, which is an unusable schema (`task.md` TASK-SPAWN-11).
fn output(value: &Value) -> Json {
    if depth(value) > DEPTH_MAX {
        return Json::String("a schema that is nested too deeply".to_owned());
    }
    let json = value.to_json();
    let parsed = json.as_str().and_then(|text| from_text(text).ok());
    parsed.unwrap_or(json)
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Scalar(_) => return 0,
        Value::List(items) => items.iter().map(depth).max(),
        Value::Map(entries) => entries.iter().map(|(_, value)| depth(value)).max(),
    };
    1 + inner.unwrap_or(0)
}

fn list(value: &Value) -> Vec<String> {
    match value {
        Value::List(_) => value.as_entries().unwrap_or_default(),
        Value::Scalar(_) | Value::Map(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter;
    use serde_json::json;

    fn extra(lines: &str) -> Extra {
        Extra::read(&frontmatter::read(&format!("---\n{lines}\n---\n")).unwrap())
    }

    // OBS-2, TASK-SPAWN-6.
    #[test]
    fn spawns_takes_every_form() {
        let only = |names: &[&str]| Spawns::Only(names.iter().map(|n| (*n).to_owned()).collect());
        let check = |line: &str, expected: Option<Spawns>| {
            assert_eq!(extra(line).spawns, expected, "{line}");
        };
        check("other: 1", None);
        check("spawns:", Some(Spawns::Off));
        check("spawns: false", Some(Spawns::Off));
        check("spawns: true", Some(Spawns::All));
        check("spawns: '*'", Some(Spawns::All));
        check("spawns: scout, worker", Some(only(&["scout", "worker"])));
        check("spawns: [scout, worker]", Some(only(&["scout", "worker"])));
    }

    // OBS-2, TASK-SPAWN-11; task.md 12 row 18.
    #[test]
    fn a_schema_is_json_text_or_a_map() {
        let check = |line: &str, expected: Option<Json>| {
            assert_eq!(extra(line).output, expected, "{line}");
        };
        let schema = json!({"type": "object", "properties": {"n": {"minimum": 3}}});
        check("name: a", None);
        check(&format!("output: '{schema}'"), Some(schema.clone()));
        check("output:\n  type: object\n  properties:\n    n: {minimum: 3}", Some(schema));
        check("output: 'true'", Some(json!(true)));
        check("output: false", Some(json!(false)));
        check("output: '{broken'", Some(json!("{broken")));
    }

    // TASK-SPAWN-11: unusable instead of a stack that overflows.
    #[test]
    fn a_schema_of_absurd_depth_is_no_schema() {
        let nested = |depth: usize| {
            let lines = format!("output: {}{}", "{a: ".repeat(depth), "}".repeat(depth));
            frontmatter::read(&format!("---\n{lines}\n---\n")).map(|read| Extra::read(&read).output)
        };
        assert!(nested(DEPTH_MAX).unwrap().unwrap().is_object());
        assert!(nested(DEPTH_MAX + 1).unwrap().unwrap().is_string());
        assert!(nested(50_000).is_err());
    }
}
