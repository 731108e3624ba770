use super::*;
use crate::contract::Contract;
use crate::schema::{OutputSchema, SchemaSource};
use crew_base::json::from_text;
use crew_base::message::Message;
use serde_json::json;

fn ab() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]})
}

fn child(schema: Value, mode: SchemaMode) -> Yields {
    Yields::new(OutputSchema::new(SchemaSource::Caller, mode, &schema))
}

/// `r`efused, `p`art or `t`erminal for each call, with the number of attempts
/// left where one is told.
fn verdicts(child: &mut Yields, calls: &[Value]) -> String {
    let told = |text: &str| -> String {
        let left = text.split(" further attempts").next().filter(|head| head.len() < text.len());
        left.map(|head| head.chars().last().into_iter().collect()).unwrap_or_default()
    };
    calls
        .iter()
        .map(|call| match child.call(&Raw::of(call), false) {
            Verdict::Refused(text) => format!("r{}", told(&text)),
            Verdict::Part(_) => "p".to_owned(),
            Verdict::Terminal(_) => "t".to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn check(schema: Value, calls: &[Value], expected: &str) -> Yields {
    let mut child = child(schema, SchemaMode::Permissive);
    assert_eq!(verdicts(&mut child, calls), expected, "{calls:?}");
    child
}

fn say(child: &mut Yields, text: &str, tools: &[&str]) {
    let mut blocks = vec![json!({"type": "text", "text": text})];
    for (n, tool) in tools.iter().enumerate() {
        blocks.push(
            json!({"type": "toolCall", "id": format!("c{n}"), "name": tool, "arguments": {}}),
        );
    }
    let answer = json!({"role": "assistant", "content": blocks, "stopReason": "stop"});
    child.message(&from_text::<Message>(&answer.to_string()).unwrap());
}

// YIELD-1, YIELD-4, YIELD-5.
#[test]
fn kinds_follow_from_type_data_and_error() {
    check(Value::Null, &[json!({"data": {"x": 1}})], "t");
    check(Value::Null, &[json!({"data": {"x": 1}, "type": "final"})], "t");
    check(Value::Null, &[json!({"data": 1, "type": ["part"]}), json!({"type": "end"})], "p t");
    let child = check(Value::Null, &[json!({"error": "why", "type": ["x"]})], "t");
    assert_eq!((child.items()[0].status, child.items()[0].reason()), (Status::Aborted, "why"));
    check(Value::Null, &[json!({"data": 1, "error": "why"})], "r");
    check(Value::Null, &[json!({"data": 1, "error": "", "type": null})], "t");
    check(Value::Null, &[json!({"data": 1, "error": null})], "t");
    check(Value::Null, &[json!({"data": 1, "type": []})], "r");
    check(Value::Null, &[json!({"data": 1, "type": [" "]})], "r");
    check(Value::Null, &[json!({"data": 1, "type": 5})], "r");
    check(Value::Null, &[json!({"data": 1, "error": 5})], "r");
    check(Value::Null, &[json!({"result": 1})], "r");
    check(Value::Null, &[json!([1])], "r");
}

// YIELD-7, OBS-14; task.md 12 row 50.
#[test]
fn the_fourth_empty_call_in_a_row_gives_up() {
    let empty = json!({});
    let child = check(
        Value::Null,
        &[empty.clone(), empty.clone(), empty.clone(), empty.clone()],
        "r2 r1 r0 t",
    );
    assert_eq!(child.items()[0].reason(), "the child gave up without a reason");
    let wrong = json!({"data": 1, "error": "e"});
    check(Value::Null, &[empty.clone(), empty.clone(), wrong, empty.clone()], "r2 r1 r r2");
    let part = json!({"data": 1, "type": ["x"]});
    check(Value::Null, &[empty.clone(), part, empty], "r2 p r2");
}

// YIELD-8; task.md 12 row 51.
#[test]
fn prose_never_satisfies_a_schema() {
    let mut child = child(ab(), SchemaMode::Permissive);
    say(&mut child, "prose", &[]);
    let call = json!({"type": "result"});
    assert_eq!(verdicts(&mut child, &vec![call; 6]), "r r r r r r");
}

// YIELD-6, FINAL-2; task.md 12 rows 52, 53.
#[test]
fn a_call_without_data_takes_the_last_report() {
    let call = [json!({"type": "result"})];
    let check = |turns: &[(&str, &[&str])], expected: Option<&str>| {
        let mut child = child(Value::Null, SchemaMode::Permissive);
        for (text, tools) in turns {
            say(&mut child, text, tools);
        }
        let verdict = verdicts(&mut child, &call);
        assert_eq!(verdict, if expected.is_some() { "t" } else { "r2" }, "{turns:?}");
        let report = child.items().first().and_then(|item| item.report.as_deref());
        assert_eq!(report, expected);
    };
    check(&[("report", &[]), (" ", &["yield"])], Some("report"));
    check(&[("here", &["yield"])], Some("here"));
    check(&[("report", &[]), ("", &["read"]), ("", &["yield"])], None);
    check(&[("report", &["read"])], None);
    check(&[], None);
}

// YIELD-12; task.md 12 rows 46, 48.
#[test]
fn three_corrections_then_the_data_are_taken() {
    let bad = json!({"data": {"b": "x"}});
    let child = check(ab(), &vec![bad.clone(); 4], "r2 r1 r0 t");
    assert!(child.items()[0].is_overridden);
    let section = json!({"data": "s", "type": ["list"]});
    let good = json!({"data": {"a": 1}});
    let child = check(
        ab(),
        &[bad.clone(), bad.clone(), section, bad.clone(), bad, good],
        "r2 r1 p r2 r1 t",
    );
    assert!(child.items().iter().all(|item| !item.is_overridden));
}

// OP-25.
#[test]
fn strict_mode_says_that_the_data_will_not_do() {
    let mut child = child(ab(), SchemaMode::Strict);
    let bad = Raw::of(&json!({"data": {}}));
    (0..3).for_each(|_| drop(child.call(&bad, false)));
    let Verdict::Terminal(text) = child.call(&bad, false) else { panic!("the fourth is taken") };
    assert!(text.contains("does not satisfy"), "{text}");
}

// YIELD-9, YIELD-10; task.md 12 row 56.
#[test]
fn a_closed_schema_names_its_labels() {
    let mut closed = ab();
    closed["additionalProperties"] = json!(false);
    let mut child = child(closed, SchemaMode::Permissive);
    let Verdict::Refused(text) = child.call(&Raw::of(&json!({"data": 1, "type": ["foo"]})), false)
    else {
        panic!("an unknown label is refused")
    };
    assert!(text.contains("`foo`") && text.contains("a, b, list"), "{text}");
    let calls = [json!({"data": "no number", "type": ["a"]}), json!({"data": 4, "type": ["a"]})];
    assert_eq!(verdicts(&mut child, &calls), "r2 p");
    check(ab(), &[json!({"data": {"any": 1}, "type": ["undeclared"]})], "p");
}

// YIELD-11; task.md 12 row 49.
#[test]
fn a_text_of_json_is_recorded_as_its_value() {
    let child = check(ab(), &[json!({"data": "{\"a\": 5}"})], "t");
    assert_eq!(child.items()[0].data, Some(json!({"a": 5})));
}

// EXEC-9; task.md 12 row 31.
#[test]
fn the_latch_makes_a_section_terminal() {
    let mut child = child(Value::Null, SchemaMode::Permissive);
    let call = Raw::of(&json!({"data": "x", "type": ["part"]}));
    assert!(matches!(child.call(&call, true), Verdict::Terminal(_)));
    assert!(child.is_accepted());
}

// YIELD-7: closing sections needs no text.
#[test]
fn sections_are_closed_without_data() {
    let calls = [json!({"data": "one", "type": ["list"]}), json!({"type": "end"})];
    check(ab(), &calls, "p t");
    check(Value::Null, &calls, "p t");
}

// FINAL-1, OBS-11.
#[test]
fn only_completed_answers_make_the_raw_text() {
    let mut child = child(Value::Null, SchemaMode::Permissive);
    say(&mut child, "One. ", &["read"]);
    say(&mut child, "Two.", &[]);
    for stop in ["error", "aborted"] {
        let cut = json!({"role": "assistant", "content": [{"type": "text", "text": "cut"}], "stopReason": stop});
        child.message(&from_text::<Message>(&cut.to_string()).unwrap());
    }
    assert_eq!((child.raw_text(), child.last_words()), ("One. Two.", Some("cut")));
}

#[test]
fn what_is_recorded_keeps_its_fields() {
    let calls =
        [json!({"data": "one", "type": ["list"]}), json!({"data": {"a": 7}, "type": "final"})];
    let child = check(ab(), &calls, "p t");
    let items: Vec<_> = child.items().iter().map(Item::json).collect();
    assert_eq!(
        items,
        [
            json!({"data": "one", "status": "success", "type": ["list"]}),
            json!({"data": {"a": 7}, "status": "success", "type": "final"}),
        ]
    );
}
