//! Tool schemas in the form the API takes (`host.md` 9.5.1).

use serde_json::{Map, Value, json};

/// Turns every string or number `const` into an `enum` of one value. Data
/// (defaults, examples, enums) is not searched.
pub(super) fn without_const(schema: Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(object(members)),
        Value::Array(items) => items.into_iter().map(without_const).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema,
    }
}

fn object(members: Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in members {
        match name.as_str() {
            "const" if value.is_string() || value.is_number() => {
                kept.insert("enum".to_owned(), json!([value]));
            }
            // A constant is the narrower choice.
            "enum" if kept.contains_key("enum") => {}
            "const" | "enum" | "default" | "example" | "examples" => {
                kept.insert(name, value);
            }
            // Names of these members are the schema author's own.
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                kept.insert(name, named(value));
            }
            _ => {
                kept.insert(name, without_const(value));
            }
        }
    }
    kept
}

fn named(schemas: Value) -> Value {
    let Value::Object(members) = schemas else {
        return schemas;
    };
    let members = members.into_iter();
    let members = members.map(|(name, schema)| (name, without_const(schema)));
    Value::Object(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_enums_outside_of_data() {
        let check = |schema: Value, expected: Value| assert_eq!(without_const(schema), expected);
        check(json!({"const": "a"}), json!({"enum": ["a"]}));
        check(json!({"const": 1.5, "enum": [1.5, 2]}), json!({"enum": [1.5]}));
        check(json!({"enum": [1, 2], "const": 1}), json!({"enum": [1]}));
        check(json!({"const": null}), json!({"const": null}));
        check(json!({"const": true}), json!({"const": true}));
        check(
            json!({"anyOf": [{"const": "a"}, {"items": {"const": 2}}]}),
            json!({"anyOf": [{"enum": ["a"]}, {"items": {"enum": [2]}}]}),
        );
        check(
            json!({"properties": {"const": {"const": "x"}, "default": {"const": "y"}}}),
            json!({"properties": {"const": {"enum": ["x"]}, "default": {"enum": ["y"]}}}),
        );
        for data in [
            json!({"default": {"const": "a"}}),
            json!({"examples": [{"const": "a"}]}),
            json!({"enum": [{"const": "a"}]}),
        ] {
            check(data.clone(), data);
        }
    }
}
