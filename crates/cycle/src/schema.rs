//! The output schema of a `task` child and the one check of data against it
//! (`task.md` TASK-SPAWN-10, TASK-SPAWN-11, YIELD-9 to YIELD-14, FINAL-10,
//! FINAL-11).
//!
//! Owns what "satisfies the schema" means; the `yield` tool and the finaliser
//! both ask here. Must never fetch a reference. Read `schema::shape` for labels
//! and `schema::typedef` for JSON Type Definition.

mod shape;
mod typedef;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crew_base::json::from_text;
use crew_base::limits::{OUTPUT_SCHEMA_BYTES_MAX, SCHEMA_ISSUES_MAX};
use crew_base::text::excerpt;

pub use shape::Declared;

/// Who gave the schema (TASK-SPAWN-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaSource {
    /// The call.
    Caller,
    /// The agent definition.
    Agent,
    /// The settings of the session.
    Session,
    /// Nobody.
    None,
}

impl SchemaSource {
    /// The word in results.
    pub fn word(self) -> &'static str {
        match self {
            SchemaSource::Caller => "caller",
            SchemaSource::Agent => "agent",
            SchemaSource::Session => "session",
            SchemaSource::None => "none",
        }
    }
}

/// How a schema that is not met is taken (FINAL-8, FINAL-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// What the child could not correct is delivered with a warning.
    #[default]
    Permissive,
    /// It fails.
    Strict,
}

impl SchemaMode {
    /// The word in arguments, settings and results.
    pub fn word(self) -> &'static str {
        match self {
            SchemaMode::Permissive => "permissive",
            SchemaMode::Strict => "strict",
        }
    }

    /// The mode of a word; exact.
    pub fn parse(word: &str) -> Option<SchemaMode> {
        [SchemaMode::Permissive, SchemaMode::Strict].into_iter().find(|mode| mode.word() == word)
    }
}

/// A schema with its source and mode, compiled once.
#[derive(Clone)]
pub struct OutputSchema {
    /// Who gave it.
    pub source: SchemaSource,
    /// How strictly it is meant.
    pub mode: SchemaMode,
    state: State,
}

#[derive(Clone)]
enum State {
    /// Everything is allowed: none, `null` or `true`.
    Open,
    Usable(Arc<Compiled>),
    Unusable {
        error: String,
        is_unparsable: bool,
    },
}

struct Compiled {
    /// JSON Schema; references unfolded where that is possible.
    schema: Value,
    validator: Validator,
}

/// One thing that is wrong with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Slash path of the value, `/` for the whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// The field that is missing there, if that is what is wrong.
    pub missing: Option<String>,
}

/// Data after the check.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// As they are delivered.
    pub data: Value,
    /// Empty when they satisfy the schema.
    pub issues: Vec<Issue>,
}

impl OutputSchema {
    /// No schema from anybody.
    pub fn none() -> OutputSchema {
        let mode = SchemaMode::Permissive;
        OutputSchema { source: SchemaSource::None, mode, state: State::Open }
    }

    /// Reads JSON Schema or JSON Type Definition, as an object, a boolean or
    /// JSON text. Never fails: [`OutputSchema::unusable`] tells what is wrong.
    pub fn new(source: SchemaSource, mode: SchemaMode, value: &Value) -> OutputSchema {
        OutputSchema { source, mode, state: State::read(value) }
    }

    /// Why it cannot be used, if so (TASK-SPAWN-11).
    pub fn unusable(&self) -> Option<&str> {
        match &self.state {
            State::Unusable { error, .. } => Some(error),
            State::Open | State::Usable(_) => None,
        }
    }

    /// Whether data are checked at all.
    pub fn is_usable(&self) -> bool {
        self.schema().is_some()
    }

    /// Whether prose can be a result (M12): nothing is asked for, or what is
    /// asked for cannot even be read.
    pub fn admits_prose(&self) -> bool {
        match &self.state {
            State::Open => true,
            State::Usable(_) => false,
            State::Unusable { is_unparsable, .. } => *is_unparsable,
        }
    }

    /// The JSON Schema in force.
    pub fn schema(&self) -> Option<&Value> {
        match &self.state {
            State::Usable(compiled) => Some(&compiled.schema),
            State::Open | State::Unusable { .. } => None,
        }
    }

    /// Checks terminal data. In strict mode nulls of optional fields go first
    /// (FINAL-10); text that fails is decoded once (YIELD-11, FINAL-11).
    pub fn judge(&self, data: &Value) -> Judged {
        match &self.state {
            State::Usable(compiled) => {
                judge(&compiled.validator, &compiled.schema, self.mode, data)
            }
            State::Open | State::Unusable { .. } => {
                let data = decoded(data).filter(is_composite).unwrap_or_else(|| data.clone());
                Judged { data, issues: Vec::new() }
            }
        }
    }

    /// Checks the text of a report as it is, never decoded (FINAL-11).
    pub fn judge_verbatim(&self, text: &str) -> Judged {
        let data = Value::String(text.to_owned());
        let issues = match &self.state {
            State::Usable(compiled) => issues(&compiled.validator, &data),
            State::Open | State::Unusable { .. } => Vec::new(),
        };
        Judged { data, issues }
    }

    /// Checks data of a section against its label; labels that the schema
    /// does not declare are not checked (YIELD-10).
    pub fn judge_section(&self, label: &str, data: &Value) -> Judged {
        let unchecked = || Judged { data: data.clone(), issues: Vec::new() };
        let Some(schema) = self.schema().and_then(|schema| shape::section(schema, label)) else {
            return unchecked();
        };
        match jsonschema::validator_for(&schema) {
            Ok(validator) => judge(&validator, &schema, self.mode, data),
            Err(_) => unchecked(),
        }
    }

    /// The only labels there may be, when the top level is closed (YIELD-9).
    pub fn closed_labels(&self) -> Option<Vec<String>> {
        let schema = self.schema()?;
        shape::is_closed(schema).then(|| shape::labels(schema))
    }

    /// How the schema declares a label (FINAL-5).
    pub fn declared(&self, label: &str) -> Declared {
        self.schema().map_or(Declared::Nowhere, |schema| shape::declared(schema, label))
    }

    /// Fields that the top level requires, in its order.
    pub fn required(&self) -> Vec<String> {
        self.schema().map(shape::required).unwrap_or_default()
    }

    /// The schema of `data` as the `yield` tool shows it (YIELD-2).
    pub fn advertised(&self) -> Value {
        self.schema().and_then(shape::advertised).unwrap_or_else(shape::open_object)
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Open => Cow::Borrowed("open"),
            State::Usable(compiled) => Cow::Owned(compiled.schema.to_string()),
            State::Unusable { error, .. } => Cow::Owned(format!("unusable: {error}")),
        };
        write!(f, "OutputSchema({}, {}, {state})", self.source.word(), self.mode.word())
    }
}

impl State {
    fn read(value: &Value) -> State {
        let unusable = |error: String, is_unparsable| State::Unusable { error, is_unparsable };
        if let Some(text) = value.as_str() {
            if text.len() > OUTPUT_SCHEMA_BYTES_MAX {
                return unusable("the schema is too large".to_owned(), true);
            }
            return match from_text::<Value>(text) {
                Ok(Value::String(_)) => unusable("the text holds no schema".to_owned(), true),
                Ok(value) => State::read(&value),
                Err(error) => unusable(format!("not JSON: {error}"), true),
            };
        }
        if value.is_null() || value.as_bool() == Some(true) {
            return State::Open;
        }
        if value.as_bool() == Some(false) {
            return unusable("`false` allows no data at all".to_owned(), false);
        }
        if !value.is_object() {
            return unusable("a schema is an object, a boolean or JSON text".to_owned(), false);
        }
        if value.to_string().len() > OUTPUT_SCHEMA_BYTES_MAX {
            return unusable("the schema is too large".to_owned(), false);
        }
        let schema = match typedef::read(value) {
            Ok(converted) => converted.unwrap_or_else(|| value.clone()),
            Err(error) => return unusable(error, false),
        };
        match jsonschema::validator_for(&schema) {
            Ok(validator) => {
                let schema = shape::dereference(&schema).unwrap_or(schema);
                State::Usable(Arc::new(Compiled { schema, validator }))
            }
            Err(error) => unusable(error.to_string(), false),
        }
    }
}

fn judge(validator: &Validator, schema: &Value, mode: SchemaMode, data: &Value) -> Judged {
    let prepare = |data: &Value| match mode {
        SchemaMode::Permissive => data.clone(),
        SchemaMode::Strict => shape::without_needless_nulls(schema, data),
    };
    let plain = prepare(data);
    if validator.is_valid(&plain) {
        return Judged { data: plain, issues: Vec::new() };
    }
    let text = decoded(data);
    if let Some(value) = text.as_ref().filter(|value| !value.is_null()) {
        let value = prepare(value);
        if validator.is_valid(&value) {
            return Judged { data: value, issues: Vec::new() };
        }
    }
    let data = text.filter(is_composite).map_or(plain, |value| prepare(&value));
    let issues = issues(validator, &data);
    Judged { data, issues }
}

fn issues(validator: &Validator, data: &Value) -> Vec<Issue> {
    const MESSAGE_CHARS_MAX: usize = 300;
    let found = validator.iter_errors(data).take(SCHEMA_ISSUES_MAX).map(|error| {
        let path = error.instance_path().as_str();
        let missing = if let ValidationErrorKind::Required { property } = error.kind() {
            property.as_str().map(str::to_owned)
        } else {
            None
        };
        Issue {
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
            message: excerpt(&error.to_string(), MESSAGE_CHARS_MAX),
            missing,
        }
    });
    found.collect()
}

/// The value a text holds as JSON, if the data are such a text.
fn decoded(data: &Value) -> Option<Value> {
    from_text::<Value>(data.as_str()?).ok()
}

fn is_composite(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

impl Issue {
    /// The path with dots, empty for the whole; of a missing field with its name.
    pub fn dotted(&self) -> String {
        let inner = self.path.trim_matches('/');
        let parts: Vec<_> = inner
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .chain(self.missing.clone())
            .collect();
        parts.join(".")
    }
}

/// Fields that are missing, dotted, without repeats (`task.md` 1.7 E-SCHEMA).
pub fn missing_fields(issues: &[Issue]) -> Vec<String> {
    let mut fields = Vec::new();
    for issue in issues.iter().filter(|issue| issue.missing.is_some()) {
        let field = issue.dotted();
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(mode: SchemaMode, value: Value) -> OutputSchema {
        OutputSchema::new(SchemaSource::Caller, mode, &value)
    }

    fn ab() -> Value {
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]})
    }

    // TASK-SPAWN-11; task.md 12 rows 17, 18.
    #[test]
    fn a_schema_is_usable_open_or_unusable() {
        let check = |value: Value, usable: bool, unusable: bool, prose: bool| {
            let schema = schema(SchemaMode::Permissive, value.clone());
            let found = (schema.is_usable(), schema.unusable().is_some(), schema.admits_prose());
            assert_eq!(found, (usable, unusable, prose), "{value}");
        };
        check(ab(), true, false, false);
        check(json!(ab().to_string()), true, false, false);
        check(Value::Null, false, false, true);
        check(json!(true), false, false, true);
        check(json!("true"), false, false, true);
        check(json!(false), false, true, false);
        check(json!("{broken"), false, true, true);
        check(json!({"type": 5}), false, true, false);
        check(json!([1]), false, true, false);
        check(json!({"$ref": "http://example.invalid/x"}), false, true, false);
        check(json!({"properties": {"count": {"type": "int32"}}}), true, false, false);
    }

    // YIELD-12: all issues with slash paths; E-SCHEMA.
    #[test]
    fn every_issue_has_its_path() {
        let judged =
            schema(SchemaMode::Permissive, ab()).judge(&json!({"a": "x", "list": ["ok", 5]}));
        let paths: Vec<_> = judged.issues.iter().map(|issue| issue.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/list/1"]);
        assert_eq!(judged.issues[1].dotted(), "list.1");
        let judged = schema(SchemaMode::Permissive, ab()).judge(&json!({"b": "x"}));
        assert_eq!(missing_fields(&judged.issues), ["a"]);
        let nested = json!({"properties": {"x": {"type": "object", "required": ["y", "z"]}}});
        let judged = schema(SchemaMode::Permissive, nested).judge(&json!({"x": {}}));
        assert_eq!(missing_fields(&judged.issues), ["x.y", "x.z"]);
    }

    // YIELD-11, FINAL-11; task.md 12 row 49.
    #[test]
    fn text_of_json_is_decoded_once_and_never_the_reverse() {
        let check = |value: Value, data: Value, expected: Value, good: bool| {
            let judged = schema(SchemaMode::Permissive, value).judge(&data);
            assert_eq!((judged.data, judged.issues.is_empty()), (expected, good));
        };
        check(ab(), json!(r#"{"a": 5}"#), json!({"a": 5}), true);
        check(ab(), json!(r#"{"b": 5}"#), json!({"b": 5}), false);
        check(ab(), json!("prose"), json!("prose"), false);
        check(json!({"type": "string"}), json!(r#"{"a": 5}"#), json!(r#"{"a": 5}"#), true);
        check(json!({"type": "string"}), json!({"x": 1}), json!({"x": 1}), false);
        check(Value::Null, json!(r#"[1]"#), json!([1]), true);
        check(Value::Null, json!("7"), json!("7"), true);
    }

    // FINAL-10; task.md 12 row 63.
    #[test]
    fn strict_mode_drops_nulls_that_say_nothing() {
        let data = json!({"a": 1, "b": null});
        let strict = schema(SchemaMode::Strict, ab()).judge(&data);
        assert_eq!((strict.data, strict.issues), (json!({"a": 1}), vec![]));
        let permissive = schema(SchemaMode::Permissive, ab()).judge(&data);
        assert_eq!((permissive.data, permissive.issues.len()), (data, 1));
        let nullable = json!({"properties": {"b": {"type": ["string", "null"]}}});
        let kept = schema(SchemaMode::Strict, nullable).judge(&json!({"b": null}));
        assert_eq!(kept.data, json!({"b": null}));
        let required = json!({"properties": {"b": {"type": "string"}}, "required": ["b"]});
        assert_eq!(schema(SchemaMode::Strict, required).judge(&json!({"b": null})).issues.len(), 1);
    }

    // YIELD-10.
    #[test]
    fn a_section_is_checked_against_its_property() {
        let schema = schema(SchemaMode::Permissive, ab());
        let check = |label: &str, data: Value, good: bool| {
            let judged = schema.judge_section(label, &data);
            assert_eq!(judged.issues.is_empty(), good, "{label} {data}");
        };
        check("list", json!("one"), true);
        check("list", json!(1), false);
        check("a", json!(4), true);
        check("a", json!("4"), true);
        check("a", json!("x"), false);
        check("other", json!([{}]), true);
    }
}
