//! The arguments of a call as the model sent them (DISP-5 to DISP-9).
//!
//! Owns shapes and the order of the checks. Must never coerce a value
//! (`product.md` P-9b). Read `dispatch` for what is judged after that.

use serde_json::{Map, Value};

use crew_base::json::Raw;
use crew_base::text::is_blank;
use crew_cycle::schema::SchemaMode;

use crate::effort::Effort;
use crate::repair;
use crate::settings::Settings;

/// A call whose shape is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The batch form was used.
    pub is_batch: bool,
    /// Shared context, trimmed; only while batch is on (TASK-SPAWN-2).
    pub context: Option<String>,
    /// At least one.
    pub items: Vec<Item>,
}

/// One spawn of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Address of the child, as given and trimmed.
    pub name: Option<String>,
    /// Agent, trimmed; `None` is the default of the policy.
    pub agent: Option<String>,
    /// The assignment, trimmed, never blank.
    pub task: String,
    /// Only feeds automatic effort (OP-3).
    pub solution_space: Option<String>,
    /// Only while effort is on.
    pub effort: Option<Effort>,
    /// Present even when it is `null` (TASK-SPAWN-10).
    pub output_schema: Option<Value>,
    /// How the schema is meant.
    pub schema_mode: Option<SchemaMode>,
    /// Only if the key was sent.
    pub isolated: Option<bool>,
}

impl Item {
    /// How a line about this item begins: its name, or its number from 1.
    pub fn label(&self, index: usize) -> String {
        match &self.name {
            Some(name) => format!("`{name}`"),
            None => format!("task {}", index + 1),
        }
    }
}

/// Reads a call; the error says how to fix it. Checks run in the order of
/// DISP-7.
pub fn read(arguments: &Raw, settings: &Settings) -> Result<Request, String> {
    let Value::Object(mut fields) = arguments.value() else {
        return Err("the arguments must be an object".to_owned());
    };
    if has_schema_key(&fields) {
        return Err(
            "there is no `schema`: give the schema as `outputSchema` of the task".to_owned()
        );
    }
    drop_nulls(&mut fields);
    if settings.batch { batch_on(&fields, settings) } else { batch_off(&fields, settings) }
}

fn has_schema_key(fields: &Map<String, Value>) -> bool {
    let items = fields.get("tasks").and_then(Value::as_array).into_iter().flatten();
    fields.contains_key("schema") || items.clone().any(|item| item.get("schema").is_some())
}

/// `null` means absent, except for the schema (DISP-5).
fn drop_nulls(fields: &mut Map<String, Value>) {
    fields.retain(|key, value| key == "outputSchema" || !value.is_null());
}

fn batch_off(fields: &Map<String, Value>, settings: &Settings) -> Result<Request, String> {
    let batch_keys: Vec<_> =
        ["tasks", "context"].into_iter().filter(|key| fields.contains_key(*key)).collect();
    if !batch_keys.is_empty() {
        let keys: Vec<_> = batch_keys.iter().map(|key| format!("`{key}`")).collect();
        return Err(format!(
            "batches are switched off: leave out {} and give one task with its fields at the top \
             level, everything it needs to know in `task`",
            keys.join(" and ")
        ));
    }
    let item = flat_item(fields, settings)?;
    Ok(Request { is_batch: false, context: None, items: vec![item] })
}

fn batch_on(fields: &Map<String, Value>, settings: &Settings) -> Result<Request, String> {
    let context = prose(fields.get("context"));
    let Some(tasks) = fields.get("tasks") else {
        let item = flat_item(fields, settings)?;
        return Ok(Request { is_batch: false, context, items: vec![item] });
    };
    let tasks = tasks.as_array().filter(|tasks| !tasks.is_empty());
    let Some(tasks) = tasks else {
        return Err("`tasks` must be a list of at least one task".to_owned());
    };
    if tasks.len() > settings.max_batch_items {
        return Err(format!(
            "`tasks` holds {} tasks; at most {} may be given at once (task.maxBatchItems)",
            tasks.len(),
            settings.max_batch_items
        ));
    }
    if prose(fields.get("task")).is_some() {
        return Err("give either `tasks` or one `task` at the top level, not both".to_owned());
    }
    let mut items = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let mut fields = task.as_object().cloned().unwrap_or_default();
        drop_nulls(&mut fields);
        items.push(item(&fields, &format!("task {}", index + 1), settings)?);
    }
    check_names(&items)?;
    if context.is_none() {
        return Err(
            "`context` is missing or blank: say there what all tasks of the batch share".to_owned()
        );
    }
    Ok(Request { is_batch: true, context, items })
}

/// Two names equal after trimming and case folding (DISP-7).
fn check_names(items: &[Item]) -> Result<(), String> {
    let mut seen: Vec<String> = Vec::new();
    for name in items.iter().filter_map(|item| item.name.as_deref()) {
        let folded = name.to_lowercase();
        if seen.contains(&folded) {
            return Err(format!("two tasks have the name `{name}`: names must differ"));
        }
        seen.push(folded);
    }
    Ok(())
}

fn flat_item(fields: &Map<String, Value>, settings: &Settings) -> Result<Item, String> {
    if prose(fields.get("task")).is_none() {
        let more = if settings.batch { ", or a batch as `context` and `tasks`" } else { "" };
        return Err(format!("`task` is missing or blank: give the assignment there{more}"));
    }
    item(fields, "", settings)
}

/// Reads one item; `place` names it in errors, empty for the flat form.
fn item(fields: &Map<String, Value>, place: &str, settings: &Settings) -> Result<Item, String> {
    let at = |text: String| if place.is_empty() { text } else { format!("{place}: {text}") };
    let Some(task) = prose(fields.get("task")) else {
        return Err(at("`task` is missing or blank: give the assignment there".to_owned()));
    };
    let text = |key: &str| match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|t| !t.is_empty())),
        Some(_) => Err(at(format!("`{key}` must be a text"))),
    };
    let effort = match fields.get("effort").filter(|_| settings.enable_effort) {
        None => None,
        Some(value) => {
            let effort = value.as_str().and_then(Effort::parse);
            Some(effort.ok_or_else(|| at("`effort` must be `lo`, `med` or `hi`".to_owned()))?)
        }
    };
    let schema_mode = match fields.get("schemaMode") {
        None => None,
        Some(value) => Some(
            value
                .as_str()
                .and_then(SchemaMode::parse)
                .ok_or_else(|| at("`schemaMode` must be `permissive` or `strict`".to_owned()))?,
        ),
    };
    let isolated = match fields.get("isolated") {
        None => None,
        Some(value) => {
            let flag = value.as_bool();
            Some(flag.ok_or_else(|| at("`isolated` must be true or false".to_owned()))?)
        }
    };
    let output_schema = fields.get("outputSchema").cloned();
    let fits = |value: &Value| {
        value.is_object() || value.is_boolean() || value.is_string() || value.is_null()
    };
    if output_schema.as_ref().is_some_and(|value| !fits(value)) {
        return Err(at(
            "`outputSchema` must be a schema: an object, a boolean, JSON text or null".to_owned()
        ));
    }
    Ok(Item {
        name: text("name")?,
        agent: text("agent")?,
        task,
        solution_space: text("solutionSpace")?,
        effort,
        output_schema,
        schema_mode,
        isolated,
    })
}

/// A text that is not blank, repaired and trimmed; anything else is blank
/// (DISP-5, DISP-9).
fn prose(value: Option<&Value>) -> Option<String> {
    let text = repair::prose(value?.as_str()?);
    Some(text.trim().to_owned()).filter(|text| !is_blank(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(batch: bool) -> Settings {
        Settings { batch, enable_effort: true, ..Settings::default() }
    }

    fn refused(batch: bool, arguments: Value, words: &[&str]) {
        let error = read(&Raw::of(&arguments), &settings(batch)).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{arguments}: {error} lacks {word}");
        }
    }

    // DISP-7 in its order; task.md 12 rows 2 to 7.
    #[test]
    fn the_first_wrong_thing_is_the_answer() {
        let ok = json!({"name": "w", "task": "do w"});
        refused(true, json!({"schema": {}, "tasks": [], "context": "c"}), &["outputSchema"]);
        refused(
            true,
            json!({"tasks": [{"task": "x", "schema": {}}], "context": "c"}),
            &["outputSchema"],
        );
        refused(false, json!({"schema": {}, "tasks": []}), &["outputSchema"]);
        refused(false, json!({"tasks": [ok], "context": "c"}), &["`tasks`", "`context`"]);
        refused(false, json!({"task": "x", "context": "c"}), &["`context`"]);
        refused(true, json!({"tasks": [], "context": "c"}), &["`tasks`"]);
        refused(true, json!({"tasks": "do it", "context": "c"}), &["`tasks`"]);
        refused(true, json!({"tasks": vec![&ok; 17], "context": "c"}), &["17", "16"]);
        refused(true, json!({"tasks": [ok], "task": "more", "context": "c"}), &["not both"]);
        let twins = |first: Value| json!({"tasks": [first, {"name": " ann ", "task": "y"}], "context": " "});
        refused(true, twins(json!({"name": "Ann", "task": " \n"})), &["task 1", "`task`"]);
        refused(true, twins(json!({"name": "Ann", "task": "x"})), &["`ann`"]);
        refused(true, json!({"tasks": [ok, {"name": "n"}], "context": "c"}), &["task 2"]);
        refused(true, json!({"tasks": [ok, "text"], "context": "c"}), &["task 2"]);
        refused(
            true,
            json!({"tasks": [{"task": "x", "effort": "huge"}], "context": "c"}),
            &["`effort`"],
        );
        refused(true, json!({"tasks": [ok], "context": " \n"}), &["`context`"]);
        refused(true, json!({"tasks": [ok]}), &["`context`"]);
        refused(true, json!({"task": "  "}), &["`task`", "`tasks`"]);
        refused(true, json!({"task": 5}), &["`task`"]);
        refused(true, json!({"task": "x", "effort": "max"}), &["`effort`"]);
        refused(true, json!({}), &["`task`"]);
        refused(true, json!([]), &["object"]);
    }

    // DISP-5.
    #[test]
    fn values_of_a_wrong_type_are_named_and_nothing_is_converted() {
        for (key, value) in [
            ("name", json!(5)),
            ("agent", json!([])),
            ("solutionSpace", json!({})),
            ("schemaMode", json!("loose")),
            ("isolated", json!("true")),
            ("outputSchema", json!(5)),
        ] {
            refused(true, json!({"task": "x", key: value}), &[key]);
        }
    }

    // DISP-5, DISP-8; task.md 12 row 8.
    #[test]
    fn unknown_keys_and_nulls_are_dropped() {
        let call = json!({"task": " x ", "surprise": {"y": 1}, "agent": null, "context": " C ",
            "outputSchema": null, "effort": null, "tasks": null});
        let request = read(&Raw::of(&call), &settings(true)).unwrap();
        assert_eq!(request.context.as_deref(), Some("C"));
        let [item] = request.items.as_slice() else { panic!() };
        assert_eq!((item.task.as_str(), &item.agent, item.effort), ("x", &None, None));
        assert_eq!(item.output_schema, Some(Value::Null));
    }

    #[test]
    fn effort_is_an_unknown_key_while_it_is_off() {
        let call = Raw::of(&json!({"task": "x", "effort": "huge"}));
        let request = read(&call, &Settings::default()).unwrap();
        assert_eq!(request.items[0].effort, None);
    }

    // DISP-9.
    #[test]
    fn prose_is_repaired_and_names_are_not() {
        let call = json!({"context": r"first\nsecond \u0022c\u0022",
            "tasks": [{"name": r"a\nb\nc", "task": r#"one\n\"two\""#}]});
        let request = read(&Raw::of(&call), &settings(true)).unwrap();
        assert_eq!(request.context.as_deref(), Some("first\nsecond \"c\""));
        assert_eq!(request.items[0].task, "one\n\"two\"");
        assert_eq!(request.items[0].name.as_deref(), Some(r"a\nb\nc"));
    }
}
