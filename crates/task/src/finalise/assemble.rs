//! From accepted calls to one value (FINAL-4 to FINAL-7).

use serde_json::{Map, Value};

use crew_base::text::is_blank;
use crew_cycle::schema::{Declared, OutputSchema};
use crew_cycle::yielded::{Item, Status};

/// What the calls add up to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Assembled {
    /// Data, and whether an override was used for them.
    Data { data: Value, is_overridden: bool },
    /// The text of a report, verbatim.
    Report(String),
    /// Nothing, null or empty.
    Missing,
}

pub(super) fn assemble(items: &[Item], schema: &OutputSchema) -> Assembled {
    let good = || items.iter().filter(|item| item.status == Status::Success);
    let terminal = good().rfind(|item| item.labels().is_none() && item.data.is_some());
    if let Some(item) = terminal {
        return match item.data.clone().filter(|data| !is_missing(data)) {
            Some(data) => Assembled::Data { data, is_overridden: item.is_overridden },
            None => Assembled::Missing,
        };
    }
    let sections: Vec<_> = good().filter(|item| item.labels().is_some()).collect();
    if !sections.is_empty() {
        return from_sections(&sections, schema);
    }
    let report = good().filter_map(|item| item.report.clone()).next_back();
    report.filter(|text| !is_blank(text)).map_or(Assembled::Missing, Assembled::Report)
}

fn from_sections(sections: &[&Item], schema: &OutputSchema) -> Assembled {
    let mut object = Map::new();
    let mut repeated: Vec<String> = Vec::new();
    for item in sections {
        let Some(data) = item.data.as_ref().filter(|data| !is_missing(data)) else {
            return Assembled::Missing;
        };
        for label in item.labels().unwrap_or_default() {
            add(&mut object, &mut repeated, label, data.clone(), schema.declared(label));
        }
    }
    let is_overridden = sections.iter().any(|item| item.is_overridden);
    Assembled::Data { data: Value::Object(object), is_overridden }
}

/// Puts a value under its label as the schema declares it (FINAL-5);
/// `repeated` names the labels that already turned into a list.
fn add(
    object: &mut Map<String, Value>,
    repeated: &mut Vec<String>,
    label: &str,
    data: Value,
    declared: Declared,
) {
    let is_repeated = repeated.iter().any(|known| known == label);
    match (declared, object.get_mut(label)) {
        (Declared::List, Some(Value::Array(list))) => list.push(data),
        (Declared::List, _) => drop(object.insert(label.to_owned(), Value::Array(vec![data]))),
        (Declared::Nowhere | Declared::Mixed, Some(Value::Array(list))) if is_repeated => {
            list.push(data);
        }
        (Declared::Nowhere | Declared::Mixed, Some(first)) => {
            *first = Value::Array(vec![first.take(), data]);
            repeated.push(label.to_owned());
        }
        (Declared::Single, _) | (Declared::Nowhere | Declared::Mixed, None) => {
            object.insert(label.to_owned(), data);
        }
    }
}

fn is_missing(data: &Value) -> bool {
    data.is_null() || data.as_str().is_some_and(is_blank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_cycle::schema::{SchemaMode, SchemaSource};
    use serde_json::json;

    fn item(kind: Value, data: Value) -> Item {
        Item {
            data: Some(data).filter(|data| *data != json!("-")),
            status: Status::Success,
            error: None,
            kind: Some(kind).filter(|kind| !kind.is_null()),
            report: None,
            is_overridden: false,
        }
    }

    fn check(items: &[(Value, Value)], expected: Option<Value>) {
        let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "string"},
            "list": {"type": "array"}}});
        let schema = OutputSchema::new(SchemaSource::Caller, SchemaMode::Permissive, &schema);
        let items: Vec<_> = items.iter().map(|(k, d)| item(k.clone(), d.clone())).collect();
        let expected = match expected {
            Some(data) => Assembled::Data { data, is_overridden: false },
            None => Assembled::Missing,
        };
        assert_eq!(assemble(&items, &schema), expected, "{items:?}");
    }

    // FINAL-4, FINAL-5; task.md 12 rows 54, 55.
    #[test]
    fn sections_form_an_object_as_the_schema_declares() {
        let end = (json!("end"), json!("-"));
        check(&[(json!(["list"]), json!("x")), end.clone()], Some(json!({"list": ["x"]})));
        check(
            &[(json!(["a"]), json!(1)), (json!(["a"]), json!(2)), end.clone()],
            Some(json!({"a": 2})),
        );
        let notes =
            [(json!(["n"]), json!("1")), (json!(["n"]), json!("2")), (json!(["n"]), json!("3"))];
        check(&notes, Some(json!({"n": ["1", "2", "3"]})));
        check(
            &[(json!(["n"]), json!([1])), (json!(["n"]), json!([2]))],
            Some(json!({"n": [[1], [2]]})),
        );
        check(&[(json!(["b", "extra"]), json!("t"))], Some(json!({"b": "t", "extra": "t"})));
        check(
            &[(json!(["list"]), json!("x")), (json!("final"), json!({"a": 7}))],
            Some(json!({"a": 7})),
        );
    }

    // FINAL-6.
    #[test]
    fn one_empty_section_makes_the_whole_missing() {
        check(&[(json!(["b"]), json!("")), (json!(["a"]), json!(1))], None);
        check(&[(json!(["b"]), json!(null))], None);
        check(&[(json!(null), json!(" "))], None);
        check(&[(json!("end"), json!("-"))], None);
    }

    // FINAL-6, FINAL-7.
    #[test]
    fn a_report_stands_alone_and_an_override_marks_what_used_it() {
        let schema = OutputSchema::none();
        let report = Item { report: Some("text".into()), ..item(json!("end"), json!("-")) };
        assert_eq!(
            assemble(std::slice::from_ref(&report), &schema),
            Assembled::Report("text".into())
        );
        let marked = Item { is_overridden: true, ..item(json!(["n"]), json!(1)) };
        let Assembled::Data { is_overridden, .. } = assemble(&[marked.clone(), report], &schema)
        else {
            panic!("sections come before a report")
        };
        assert!(is_overridden);
        let last = item(json!(null), json!(2));
        let clean = Assembled::Data { data: json!(2), is_overridden: false };
        assert_eq!(assemble(&[marked, last], &schema), clean);
    }
}
