//! JSON Type Definition as JSON Schema (`task.md` TASK-SPAWN-11).
//!
//! Owns the recognition: a schema counts as a type definition when it uses a
//! word that JSON Schema does not know in that place. Must never guess: a
//! schema that both would accept is JSON Schema.

use serde_json::{Map, Value, json};

use crew_base::limits::SCHEMA_DEPTH_MAX;

/// The converted schema of a type definition, nothing for JSON Schema. The
/// error says what is wrong with a type definition.
pub(super) fn read(schema: &Value) -> Result<Option<Value>, String> {
    if !is_marked(schema, 0) {
        return Ok(None);
    }
    let mut converted = convert(schema, 0)?;
    let shared = schema.get("definitions").and_then(Value::as_object);
    if let (Some(fields), Some(shared)) = (converted.as_object_mut(), shared) {
        let mut definitions = Map::new();
        for (name, definition) in shared {
            definitions.insert(name.clone(), convert(definition, 1)?);
        }
        fields.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Ok(Some(converted))
}

const NUMBERS: [(&str, i64, i64); 6] = [
    ("int8", -128, 127),
    ("uint8", 0, 255),
    ("int16", -32_768, 32_767),
    ("uint16", 0, 65_535),
    ("int32", -2_147_483_648, 2_147_483_647),
    ("uint32", 0, 4_294_967_295),
];

/// Whether a word occurs that only a type definition has, in a place where
/// schemas stand.
fn is_marked(schema: &Value, depth: usize) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    if depth > SCHEMA_DEPTH_MAX || fields.contains_key("$schema") {
        return false;
    }
    let own_type = fields.get("type").and_then(Value::as_str).is_some_and(|word| {
        NUMBERS.iter().any(|(name, _, _)| *name == word)
            || ["float32", "float64", "timestamp"].contains(&word)
    });
    let own_form = ["elements", "optionalProperties", "values"]
        .iter()
        .any(|word| fields.get(*word).is_some_and(Value::is_object))
        || fields.get("discriminator").is_some_and(Value::is_string)
        || fields.get("ref").is_some_and(Value::is_string);
    let inner = ["properties", "optionalProperties", "mapping", "definitions"]
        .iter()
        .filter_map(|word| fields.get(*word)?.as_object())
        .flat_map(Map::values);
    let single = ["elements", "values", "items"].iter().filter_map(|word| fields.get(*word));
    own_type || own_form || inner.chain(single).any(|part| is_marked(part, depth + 1))
}

fn convert(schema: &Value, depth: usize) -> Result<Value, String> {
    let Some(fields) = schema.as_object().filter(|_| depth <= SCHEMA_DEPTH_MAX) else {
        return Err("a type definition consists of objects of limited depth".to_owned());
    };
    let known = [
        "definitions",
        "nullable",
        "metadata",
        "ref",
        "type",
        "enum",
        "elements",
        "properties",
        "optionalProperties",
        "additionalProperties",
        "values",
        "discriminator",
        "mapping",
    ];
    if let Some(unknown) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is no word of a type definition"));
    }
    let form = form(fields, depth)?;
    let nullable = fields.get("nullable").and_then(Value::as_bool) == Some(true);
    Ok(if nullable { json!({"anyOf": [form, {"type": "null"}]}) } else { form })
}

fn form(fields: &Map<String, Value>, depth: usize) -> Result<Value, String> {
    if let Some(name) = fields.get("ref").and_then(Value::as_str) {
        return Ok(
            json!({"$ref": format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"))}),
        );
    }
    if let Some(word) = fields.get("type").and_then(Value::as_str) {
        return of_type(word);
    }
    if let Some(words) = fields.get("enum") {
        return Ok(json!({ "enum": words }));
    }
    if let Some(element) = fields.get("elements") {
        return Ok(json!({"type": "array", "items": convert(element, depth + 1)?}));
    }
    if let Some(values) = fields.get("values") {
        return Ok(json!({"type": "object", "additionalProperties": convert(values, depth + 1)?}));
    }
    if let Some(tag) = fields.get("discriminator").and_then(Value::as_str) {
        return tagged(tag, fields, depth);
    }
    if fields.contains_key("properties") || fields.contains_key("optionalProperties") {
        return Ok(Value::Object(object(fields, depth)?));
    }
    Ok(json!({}))
}

fn of_type(word: &str) -> Result<Value, String> {
    if let Some((_, least, most)) = NUMBERS.iter().find(|(name, _, _)| *name == word) {
        return Ok(json!({"type": "integer", "minimum": least, "maximum": most}));
    }
    match word {
        "boolean" | "string" => Ok(json!({ "type": word })),
        "float32" | "float64" => Ok(json!({"type": "number"})),
        "timestamp" => Ok(json!({"type": "string", "format": "date-time"})),
        other => Err(format!("`{other}` is no type of a type definition")),
    }
}

fn object(fields: &Map<String, Value>, depth: usize) -> Result<Map<String, Value>, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (word, is_required) in [("properties", true), ("optionalProperties", false)] {
        let Some(declared) = fields.get(word) else { continue };
        let Some(declared) = declared.as_object() else {
            return Err(format!("`{word}` must be an object"));
        };
        for (name, definition) in declared {
            properties.insert(name.clone(), convert(definition, depth + 1)?);
            if is_required {
                required.push(json!(name));
            }
        }
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("required".to_owned(), Value::Array(required));
    let is_open = fields.get("additionalProperties").and_then(Value::as_bool) == Some(true);
    object.insert("additionalProperties".to_owned(), Value::Bool(is_open));
    Ok(object)
}

fn tagged(tag: &str, fields: &Map<String, Value>, depth: usize) -> Result<Value, String> {
    let Some(mapping) = fields.get("mapping").and_then(Value::as_object) else {
        return Err("`discriminator` needs a `mapping`".to_owned());
    };
    let mut variants = Vec::new();
    for (name, definition) in mapping {
        let Some(inner) = definition.as_object() else {
            return Err("a `mapping` consists of objects".to_owned());
        };
        let mut variant = object(inner, depth + 1)?;
        if let Some(properties) = variant.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(tag.to_owned(), json!({ "const": name }));
        }
        if let Some(required) = variant.get_mut("required").and_then(Value::as_array_mut) {
            required.push(json!(tag));
        }
        variants.push(Value::Object(variant));
    }
    Ok(json!({ "anyOf": variants }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(definition: Value, good: &[Value], bad: &[Value]) {
        let schema = read(&definition).unwrap().expect("it is a type definition");
        let validator = jsonschema::validator_for(&schema).unwrap();
        for value in good {
            assert!(validator.is_valid(value), "{value} against {schema}");
        }
        for value in bad {
            assert!(!validator.is_valid(value), "{value} against {schema}");
        }
    }

    // TASK-SPAWN-11.
    #[test]
    fn type_definitions_become_schemas() {
        check(
            json!({"properties": {"count": {"type": "int32"}}}),
            &[json!({"count": 3})],
            &[json!({"count": "many"}), json!({}), json!({"count": 3, "more": 1})],
        );
        check(json!({"elements": {"type": "string"}}), &[json!(["a"])], &[json!([1]), json!("a")]);
        check(
            json!({"optionalProperties": {"a": {"type": "uint8", "nullable": true}}, "additionalProperties": true}),
            &[json!({}), json!({"a": null}), json!({"a": 255, "b": 1})],
            &[json!({"a": 256})],
        );
        check(
            json!({"discriminator": "kind", "mapping": {"x": {"properties": {"v": {"type": "boolean"}}}}}),
            &[json!({"kind": "x", "v": true})],
            &[json!({"kind": "y", "v": true}), json!({"v": true})],
        );
        check(
            json!({"definitions": {"t": {"type": "float64"}}, "values": {"ref": "t"}}),
            &[json!({"a": 1.5})],
            &[json!({"a": "x"})],
        );
    }

    #[test]
    fn what_both_accept_is_json_schema() {
        let check = |schema: Value| assert_eq!(read(&schema), Ok(None), "{schema}");
        check(json!({"properties": {"a": {"type": "string"}}}));
        check(json!({"type": "object", "properties": {"values": {"type": "array"}}}));
        check(json!({"enum": ["a"]}));
        check(json!({}));
    }

    #[test]
    fn a_broken_type_definition_says_why() {
        let error = read(&json!({"elements": {"type": "int32", "minimum": 3}})).unwrap_err();
        assert!(error.contains("`minimum`"), "{error}");
    }
}
