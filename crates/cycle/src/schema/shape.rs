//! The top level of a JSON Schema: labels, closedness, what is shown.

use serde_json::{Map, Value, json};

use crew_base::limits::{SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX};

/// How a schema declares a label (FINAL-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// It does not.
    Nowhere,
    /// As a list everywhere.
    List,
    /// As something else everywhere.
    Single,
    /// Differently in different branches.
    Mixed,
}

const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// All declarations of a label at the top level and in its branches.
fn declarations<'a>(schema: &'a Value, label: &str, found: &mut Vec<&'a Value>) {
    found.extend(schema.get("properties").and_then(|properties| properties.get(label)));
    for branch in branches(schema) {
        declarations(branch, label, found);
    }
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    BRANCHES.iter().filter_map(|word| schema.get(word)?.as_array()).flatten()
}

pub(super) fn declared(schema: &Value, label: &str) -> Declared {
    let mut found = Vec::new();
    declarations(schema, label, &mut found);
    let lists = found.iter().filter(|declaration| is_list(declaration)).count();
    match lists {
        0 if found.is_empty() => Declared::Nowhere,
        0 => Declared::Single,
        all if all == found.len() => Declared::List,
        _ => Declared::Mixed,
    }
}

fn is_list(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == "array",
        Some(Value::Array(words)) => {
            words.iter().any(|word| word == "array")
                && words.iter().all(|word| word == "array" || word == "null")
        }
        Some(_) => false,
        None => schema.get("items").is_some() || schema.get("prefixItems").is_some(),
    }
}

/// The schema of one section; references of the whole stay reachable.
pub(super) fn section(schema: &Value, label: &str) -> Option<Value> {
    let mut found = Vec::new();
    declarations(schema, label, &mut found);
    let mut wanted: Vec<Value> = found.into_iter().map(element).collect();
    let single = wanted.pop()?;
    let mut section = if wanted.is_empty() {
        single
    } else {
        wanted.push(single);
        json!({ "anyOf": wanted })
    };
    if let Some(fields) = section.as_object_mut() {
        for word in ["$defs", "definitions"] {
            if let Some(shared) = schema.get(word)
                && !fields.contains_key(word)
            {
                fields.insert(word.to_owned(), shared.clone());
            }
        }
    }
    Some(section)
}

fn element(declaration: &Value) -> Value {
    if is_list(declaration) {
        declaration.get("items").cloned().unwrap_or(Value::Bool(true))
    } else {
        declaration.clone()
    }
}

/// Whether the top level admits no further properties: by itself, through a
/// conjunction, or through a union whose variants are all closed (YIELD-9).
pub(super) fn is_closed(schema: &Value) -> bool {
    let says = |word: &str| schema.get(word) == Some(&Value::Bool(false));
    if says("additionalProperties") || says("unevaluatedProperties") {
        return true;
    }
    let list = |word: &str| schema.get(word).and_then(Value::as_array);
    list("allOf").is_some_and(|parts| parts.iter().any(is_closed))
        || ["anyOf", "oneOf"].iter().any(|word| {
            list(word).is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_closed))
        })
}

/// Every label that is declared, in order, without repeats.
pub(super) fn labels(schema: &Value) -> Vec<String> {
    let mut labels = Vec::new();
    collect_labels(schema, &mut labels);
    labels
}

fn collect_labels(schema: &Value, labels: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for label in properties.keys() {
            if !labels.contains(label) {
                labels.push(label.clone());
            }
        }
    }
    branches(schema).for_each(|branch| collect_labels(branch, labels));
}

/// What the top level requires, conjunctions included.
pub(super) fn required(schema: &Value) -> Vec<String> {
    let own = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = own.filter_map(|name| name.as_str().map(str::to_owned)).collect();
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        for name in required(part) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Removes nulls of optional properties whose schema does not admit null
/// (FINAL-10), at every depth that plain properties and items reach.
pub(super) fn without_needless_nulls(schema: &Value, data: &Value) -> Value {
    match data {
        Value::Object(fields) => {
            let needed = required(schema);
            let mut kept = Map::new();
            for (name, value) in fields {
                let mut found = Vec::new();
                declarations(schema, name, &mut found);
                let refuses_null = !found.is_empty() && found.iter().all(|part| !admits_null(part));
                if value.is_null() && refuses_null && !needed.contains(name) {
                    continue;
                }
                let cleaned = match found.as_slice() {
                    [only] => without_needless_nulls(only, value),
                    _ => value.clone(),
                };
                kept.insert(name.clone(), cleaned);
            }
            Value::Object(kept)
        }
        Value::Array(items) => {
            let item = schema.get("items").cloned().unwrap_or(Value::Bool(true));
            Value::Array(items.iter().map(|value| without_needless_nulls(&item, value)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => data.clone(),
    }
}

fn admits_null(schema: &Value) -> bool {
    jsonschema::validator_for(schema).map_or(true, |validator| validator.is_valid(&Value::Null))
}

/// The schema with its local references unfolded; nothing when one points
/// elsewhere, into itself, or the result would be too large.
pub(super) fn dereference(schema: &Value) -> Option<Value> {
    let mut nodes = 0;
    let mut unfolded = unfold(schema, schema, 0, &mut nodes)?;
    if let Some(fields) = unfolded.as_object_mut() {
        fields.remove("$defs");
        fields.remove("definitions");
    }
    Some(unfolded)
}

fn unfold(root: &Value, part: &Value, depth: usize, nodes: &mut usize) -> Option<Value> {
    *nodes += 1;
    if depth > SCHEMA_DEPTH_MAX || *nodes > SCHEMA_NODES_MAX {
        return None;
    }
    match part {
        Value::Object(fields) => {
            if ["$dynamicRef", "$recursiveRef", "$id"].iter().any(|word| fields.contains_key(*word))
            {
                return None;
            }
            let mut unfolded = Map::new();
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let target = root.pointer(reference.strip_prefix('#')?)?;
                let target = unfold(root, target, depth + 1, nodes)?;
                if fields.len() == 1 {
                    return Some(target);
                }
                unfolded.insert("allOf".to_owned(), json!([target]));
                if fields.contains_key("allOf") {
                    return None;
                }
            }
            for (name, value) in fields.iter().filter(|(name, _)| *name != "$ref") {
                let is_shared = depth == 0 && (name == "$defs" || name == "definitions");
                let value =
                    if is_shared { value.clone() } else { unfold(root, value, depth + 1, nodes)? };
                unfolded.insert(name.clone(), value);
            }
            Some(Value::Object(unfolded))
        }
        Value::Array(items) => {
            let unfolded: Option<Vec<_>> =
                items.iter().map(|item| unfold(root, item, depth + 1, nodes)).collect();
            unfolded.map(Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(part.clone()),
    }
}

/// The schema, and beside it for objects each property alone and the element
/// of each list, so that sections can be sent (YIELD-2). Nothing when it still
/// holds a reference that would point into the wrong document.
pub(super) fn advertised(schema: &Value) -> Option<Value> {
    if has_reference(schema) {
        return None;
    }
    let mut whole = schema.clone();
    if let Some(fields) = whole.as_object_mut() {
        fields.remove("$schema");
    }
    let labels = labels(schema);
    if labels.is_empty() {
        return Some(whole);
    }
    let mut shapes = vec![whole];
    for label in &labels {
        let mut found = Vec::new();
        declarations(schema, label, &mut found);
        for declaration in found {
            let mut offered = vec![declaration.clone()];
            if is_list(declaration) {
                offered.push(element(declaration));
            }
            for shape in offered {
                if !shapes.contains(&shape) {
                    shapes.push(shape);
                }
            }
        }
    }
    Some(json!({ "anyOf": shapes }))
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.contains_key("$ref") && fields["$ref"].is_string()
                || fields.values().any(has_reference)
        }
        Value::Array(items) => items.iter().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Any object.
pub(super) fn open_object() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

#[cfg(test)]
mod tests {
    use super::*;

    // YIELD-9.
    #[test]
    fn a_top_level_is_closed_by_itself_or_by_its_branches() {
        let closed = json!({"additionalProperties": false, "properties": {"a": {}}});
        let open = json!({"properties": {"b": {}}});
        let check = |schema: Value, expected: bool| assert_eq!(is_closed(&schema), expected);
        check(closed.clone(), true);
        check(open.clone(), false);
        check(json!({"allOf": [open, closed]}), true);
        check(json!({"anyOf": [closed, closed]}), true);
        check(json!({"oneOf": [closed, open]}), false);
        check(json!({"anyOf": []}), false);
    }

    // FINAL-5.
    #[test]
    fn a_label_is_a_list_only_where_all_branches_agree() {
        let check = |schema: Value, expected: Declared| {
            assert_eq!(declared(&schema, "x"), expected, "{schema}");
        };
        let list = json!({"properties": {"x": {"type": "array"}}});
        let text = json!({"properties": {"x": {"type": "string"}}});
        check(list.clone(), Declared::List);
        check(text.clone(), Declared::Single);
        check(json!({"oneOf": [list, text]}), Declared::Mixed);
        check(json!({"properties": {"x": {"type": ["array", "null"]}}}), Declared::List);
        check(json!({"properties": {"x": {"type": ["array", "string"]}}}), Declared::Single);
        check(json!({}), Declared::Nowhere);
    }

    #[test]
    fn local_references_unfold_and_recursive_ones_do_not() {
        let schema =
            json!({"properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "string"}}});
        assert_eq!(dereference(&schema), Some(json!({"properties": {"x": {"type": "string"}}})));
        let recursive = json!({"properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}});
        assert_eq!(dereference(&recursive), None);
        assert_eq!(advertised(&recursive), None);
        assert!(section(&recursive, "x").unwrap().get("$defs").is_some());
    }

    // YIELD-2.
    #[test]
    fn sections_are_admitted_beside_the_whole() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "string"}}}});
        let shown = advertised(&schema).unwrap();
        let validator = jsonschema::validator_for(&shown).unwrap();
        for good in [json!({"a": 1}), json!(1), json!(["x"]), json!("x")] {
            assert!(validator.is_valid(&good), "{good}");
        }
        assert!(!validator.is_valid(&json!(true)));
    }
}
