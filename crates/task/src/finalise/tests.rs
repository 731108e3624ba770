use super::*;
use serde_json::json;

/// A table row: what goes in, what comes out.
struct Case {
    driven: Driven,
    items: Vec<Item>,
    raw: &'static str,
    schema: OutputSchema,
}

fn ok() -> Driven {
    Driven { reminders: 3, ..Driven::default() }
}

fn failed(stderr: &str) -> Driven {
    Driven { exit: 1, stderr: stderr.into(), ..Driven::default() }
}

fn none() -> OutputSchema {
    OutputSchema::none()
}

fn schema(mode: SchemaMode) -> OutputSchema {
    let value = json!({"type": "object", "properties": {"a": {"type": "integer"},
        "b": {"type": "string"}}, "required": ["a"]});
    OutputSchema::new(SchemaSource::Caller, mode, &value)
}

fn broken(mode: SchemaMode) -> OutputSchema {
    OutputSchema::new(SchemaSource::Agent, mode, &json!({"type": 5}))
}

fn data(data: Value) -> Item {
    Item {
        data: Some(data),
        status: Status::Success,
        error: None,
        kind: None,
        report: None,
        is_overridden: false,
    }
}

fn overridden(value: Value) -> Item {
    Item { is_overridden: true, ..data(value) }
}

fn report(text: &str) -> Item {
    Item { data: None, report: Some(text.into()), kind: Some(json!("report")), ..data(json!(0)) }
}

fn gave_up(error: Option<&str>) -> Item {
    Item { data: None, status: Status::Aborted, error: error.map(str::to_owned), ..data(json!(0)) }
}

fn run(case: &Case) -> Final {
    let left = Left {
        items: &case.items,
        raw_text: case.raw,
        last_words: Some(case.raw).filter(|raw| !raw.is_empty()),
        requests: 2,
        tokens: 30,
    };
    finalise(&case.driven, &left, &case.schema)
}

/// `verdict` or `verdict+data`, with the error if there is one.
fn metadata(structured: Option<&Structured>) -> String {
    let Some(structured) = structured else { return "-".to_owned() };
    let data = structured.data.as_ref().map(|data| format!("+{data}")).unwrap_or_default();
    let error = structured.error.as_ref().map(|_| "!").unwrap_or_default();
    format!("{}{data}{error}", structured.verdict.word())
}

fn check(
    row: &str,
    driven: Driven,
    items: Vec<Item>,
    raw: &'static str,
    schema: OutputSchema,
    expected: (i32, &str, &str, &str),
) -> Final {
    let result = run(&Case { driven, items, raw, schema });
    let output: String = result.output.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = (
        result.exit,
        result.stderr.as_str(),
        output.as_str(),
        metadata(result.structured.as_ref()),
    );
    assert_eq!(found, (expected.0, expected.1, expected.2, expected.3.to_owned()), "{row}");
    result
}

const PERMISSIVE: SchemaMode = SchemaMode::Permissive;
const STRICT: SchemaMode = SchemaMode::Strict;
const MISSING_3: &str = "child warning: ended without an accepted yield (3 reminders sent)";

// M1, A-YIELD, OP-6, OP-15; task.md 12 row 50.
#[test]
fn m1_giving_up_is_aborted_with_exit_zero() {
    let expected = (0, "why", r#"{ "aborted": true, "error": "why" }"#, "unavailable!");
    for mode in [PERMISSIVE, STRICT] {
        let items = vec![data(json!({"a": 1})), gave_up(Some("why"))];
        let result = check("M1", ok(), items, "prose", schema(mode), expected);
        assert_eq!((result.aborted, result.abort_reason.as_deref()), (true, Some("why")));
    }
    let result = run(&Case { driven: ok(), items: vec![gave_up(None)], raw: "", schema: none() });
    assert_eq!(result.stderr, "the child gave up without a reason");
    assert_eq!(result.structured, None);
}

// M2; task.md 12 row 93.
#[test]
fn m2_missing_data_is_a_warning_before_the_raw_text() {
    let text = format!("{NO_DATA} RAW");
    check("M2", ok(), vec![data(json!(""))], "RAW", schema(PERMISSIVE), (0, "", &text, "invalid"));
    check("M2", ok(), vec![data(json!(""))], "RAW", none(), (0, "", &text, "-"));
    let kept = (1, "boom", text.as_str(), "invalid");
    check("M2", failed("boom"), vec![data(json!(null))], "RAW", schema(PERMISSIVE), kept);
    // Strict without a schema from anybody is like permissive.
    let mut strict = none();
    strict.mode = STRICT;
    check("M2", ok(), vec![report(" ")], "RAW", strict, (0, "", &text, "-"));
}

// M3; task.md 12 row 92.
#[test]
fn m3_missing_data_violates_in_strict_mode() {
    let output = r#"{ "error": "schema_violation", "message": "schema_violation: missing required: a", "missingRequired": [ "a" ], "data": "" }"#;
    let expected = (1, "schema_violation: missing required: a", output, "invalid");
    check("M3", ok(), vec![data(json!(""))], "RAW", schema(STRICT), expected);
    let open = OutputSchema::new(SchemaSource::Caller, STRICT, &json!({"properties": {"b": {}}}));
    let result = run(&Case { driven: ok(), items: vec![data(json!(""))], raw: "", schema: open });
    assert_eq!((result.exit, result.stderr.as_str()), (1, NO_DATA));
    assert!(result.output.contains("schema_violation"));
}

// M4, FINAL-17; task.md 12 rows 20, 62.
#[test]
fn m4_without_a_schema_the_data_go_out() {
    let items = || vec![data(json!({"x": [1]}))];
    let output = r#"{ "x": [ 1 ] }"#;
    check("M4", ok(), items(), "RAW", none(), (0, "", output, "-"));
    let null = || OutputSchema::new(SchemaSource::Caller, STRICT, &Value::Null);
    check("M4", ok(), items(), "RAW", null(), (0, "", output, r#"unavailable+{"x":[1]}"#));
    check("M4", failed("boom"), items(), "RAW", none(), (1, "boom", output, "-"));
    check("M4", failed("  "), items(), "RAW", none(), (0, "", output, "-"));
    check("M4", ok(), vec![report("# R\n")], "RAW", none(), (0, "", "# R", "-"));
    let result = run(&Case { driven: ok(), items: vec![report("# R\n")], raw: "", schema: none() });
    assert_eq!(result.output, "# R\n", "verbatim");
}

// M5; task.md 12 rows 61, 63.
#[test]
fn m5_valid_data_are_valid() {
    let good = || vec![data(json!({"a": 1}))];
    let output = r#"{ "a": 1 }"#;
    for mode in [PERMISSIVE, STRICT] {
        let expected = (0, "", output, r#"valid+{"a":1}"#);
        check("M5", ok(), good(), "RAW", schema(mode), expected);
        let kept = (1, "boom", output, r#"valid+{"a":1}"#);
        check("M5", failed("boom"), good(), "RAW", schema(mode), kept);
    }
    // FINAL-10, FINAL-11.
    let nulls = vec![data(json!({"a": 1, "b": null}))];
    check("M5", ok(), nulls, "", schema(STRICT), (0, "", output, r#"valid+{"a":1}"#));
    let text = vec![data(json!(r#"{"a":1}"#))];
    check("M5", ok(), text, "", schema(PERMISSIVE), (0, "", output, r#"valid+{"a":1}"#));
}

// M6, FINAL-8, FINAL-12.
#[test]
fn m6_a_plain_violation_fails_in_both_modes() {
    let message = "schema_violation: missing required: a";
    let output = format!(
        r#"{{ "error": "schema_violation", "message": "{message}", "missingRequired": [ "a" ], "data": "{{\"b\":\"x\"}}" }}"#
    );
    for mode in [PERMISSIVE, STRICT] {
        let expected = (1, message, output.as_str(), r#"invalid+{"b":"x"}"#);
        check("M6", ok(), vec![data(json!({"b": "x"}))], "RAW", schema(mode), expected);
    }
    let wrong = Case {
        driven: ok(),
        items: vec![data(json!({"a": "x".repeat(600)}))],
        raw: "",
        schema: schema(PERMISSIVE),
    };
    let result = run(&wrong);
    assert!(result.stderr.starts_with("schema_violation: a: "), "{}", result.stderr);
    let object: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!(object["data"].as_str().unwrap().chars().count(), 501);
    assert_eq!(object["missingRequired"], json!([]));
}

// M7, M8, FINAL-9; task.md 12 rows 46, 47.
#[test]
fn m7_and_m8_an_override_is_delivered_or_fails() {
    let bad = || vec![overridden(json!({"b": "x"}))];
    let output = r#"{ "b": "x" }"#;
    let expected = (0, OVERRIDDEN, output, r#"invalid+{"b":"x"}"#);
    check("M7", ok(), bad(), "RAW", schema(PERMISSIVE), expected);
    let kept = (1, "boom", output, r#"invalid+{"b":"x"}"#);
    check("M7", failed("boom"), bad(), "RAW", schema(PERMISSIVE), kept);
    let result = run(&Case { driven: ok(), items: bad(), raw: "", schema: schema(STRICT) });
    assert_eq!((result.exit, result.stderr.as_str()), (1, "schema_violation: missing required: a"));
    assert_eq!(metadata(result.structured.as_ref()), r#"invalid+{"b":"x"}"#);
    // It passes now, and still was an override.
    let passes = || vec![overridden(json!({"a": 1}))];
    let expected = (0, OVERRIDDEN, r#"{ "a": 1 }"#, r#"invalid+{"a":1}"#);
    check("M7", ok(), passes(), "", schema(PERMISSIVE), expected);
    let result = run(&Case { driven: ok(), items: passes(), raw: "", schema: schema(STRICT) });
    assert_eq!(result.exit, 1);
    assert!(result.stderr.starts_with("schema_violation: "), "{}", result.stderr);
}

// M9, M10; task.md 12 row 18.
#[test]
fn m9_and_m10_an_unusable_schema_degrades_or_fails() {
    let items = || vec![data(json!({"a": 1}))];
    let result = run(&Case { driven: ok(), items: items(), raw: "", schema: broken(PERMISSIVE) });
    assert_eq!((result.exit, result.output.as_str()), (0, "{\n  \"a\": 1\n}"));
    assert!(result.stderr.starts_with("invalid output schema: "), "{}", result.stderr);
    assert_eq!(metadata(result.structured.as_ref()), r#"unavailable+{"a":1}!"#);
    let kept =
        run(&Case { driven: failed("boom"), items: items(), raw: "", schema: broken(PERMISSIVE) });
    assert_eq!((kept.exit, kept.stderr.as_str()), (1, "boom"));
    let result = run(&Case { driven: ok(), items: items(), raw: "", schema: broken(STRICT) });
    assert_eq!(result.exit, 1);
    assert!(
        result.stderr.starts_with("schema_violation: ")
            && result.output.contains("schema_violation")
    );
    assert_eq!(metadata(result.structured.as_ref()), r#"unavailable+{"a":1}!"#);
}

// M11, FINAL-13; task.md 12 row 57.
#[test]
fn m11_raw_text_that_is_json_counts() {
    let output = r#"{ "a": 1 }"#;
    let valid = (0, "", output, r#"valid+{"a":1}"#);
    check("M11", ok(), vec![], r#" {"data":{"a":1}} "#, schema(PERMISSIVE), valid);
    check("M11", ok(), vec![], r#"{"a":1}"#, schema(STRICT), valid);
    check("M11", ok(), vec![], r#"{"data":"{\"a\":1}"}"#, schema(PERMISSIVE), valid);
    check("M11", ok(), vec![], r#"{"a":1}"#, none(), (0, "", output, "-"));
    let null = OutputSchema::new(SchemaSource::Caller, PERMISSIVE, &Value::Null);
    check("M11", ok(), vec![], r#"{"a":1}"#, null, (0, "", output, r#"unavailable+{"a":1}"#));
}

// M12, FINAL-14; task.md 12 row 59.
#[test]
fn m12_prose_is_enough_without_a_schema() {
    let result = check("M12", ok(), vec![], "One.\nTwo. ", none(), (0, "", "One. Two.", "-"));
    assert_eq!(result.output, "One.\nTwo. ");
    let null = OutputSchema::new(SchemaSource::Caller, PERMISSIVE, &Value::Null);
    check("M12", ok(), vec![], "words", null, (0, "", "words", r#"unavailable+"words""#));
    let text = OutputSchema::new(SchemaSource::Agent, PERMISSIVE, &json!("{broken"));
    check("M12", ok(), vec![], "words", text, (0, "", "words", r#"unavailable+"words""#));
}

// M13, FINAL-13, FINAL-14, OP-24; task.md 12 row 58.
#[test]
fn m13_prose_does_not_satisfy_a_schema() {
    let raw = r#"Here: {"a": 1}"#;
    let output = format!("{MISSING_3} {raw}");
    let expected = (1, MISSING_3, output.as_str(), "unavailable!");
    let result = check("M13", ok(), vec![], raw, schema(PERMISSIVE), expected);
    assert_eq!(result.structured.unwrap().error.as_deref(), Some(MISSING_3));
    check("M13", ok(), vec![], raw, broken(PERMISSIVE), expected);
    // An unusable schema gives no fallback.
    let json_text = r#"{"a":1}"#;
    let output = format!("{MISSING_3} {json_text}");
    let expected = (1, MISSING_3, output.as_str(), "unavailable!");
    check("M13", ok(), vec![], json_text, broken(PERMISSIVE), expected);
}

// M14; task.md 12 row 60.
#[test]
fn m14_nothing_at_all_is_a_failure() {
    check("M14", ok(), vec![], " \n", none(), (1, MISSING_3, MISSING_3, "-"));
    check("M14", ok(), vec![], "", schema(STRICT), (1, MISSING_3, MISSING_3, "unavailable!"));
}

// M15, FINAL-15, FINAL-16.
#[test]
fn m15_an_abort_flag_without_failure_keeps_the_prose() {
    let signalled = Driven { signalled: true, reminders: 3, ..Driven::default() };
    let output = format!("{MISSING_3} words");
    let result = check("M15", signalled.clone(), vec![], "words", none(), (0, "", &output, "-"));
    assert!(result.aborted);
    // Any abort gives no fallback.
    let output = format!("{MISSING_3} [1]");
    check("M15", signalled, vec![], "[1]", none(), (0, "", &output, "-"));
    let timed_out = Driven { timed_out: true, stderr: "limit".into(), ..ok() };
    let result = run(&Case { driven: timed_out, items: vec![], raw: "words", schema: none() });
    assert_eq!(
        (result.exit, result.aborted, result.abort_reason.as_deref()),
        (1, true, Some("limit"))
    );
}

// M16, FINAL-18, S-CANCEL; task.md 12 rows 33, 38, 91.
#[test]
fn m16_a_failed_run_keeps_what_it_said() {
    check("M16", failed("boom"), vec![], "words", none(), (1, "boom", "words", "-"));
    check(
        "M16",
        failed("boom"),
        vec![],
        r#"{"a":1}"#,
        schema(PERMISSIVE),
        (1, "boom", r#"{"a":1}"#, "unavailable!"),
    );
    let aborted = Driven { aborted: true, signalled: true, ..failed(CANCELLED_BY_CALLER) };
    let left = Left {
        items: &[],
        raw_text: "",
        last_words: Some("partial   words\n of the child"),
        requests: 0,
        tokens: 30,
    };
    let result = finalise(&aborted, &left, &none());
    assert_eq!(
        result.output,
        r#"[cancelled: 0 requests, 30 tokens; last text: "partial words of the child"]"#
    );
    assert_eq!((result.exit, result.abort_reason.as_deref()), (1, Some(CANCELLED_BY_CALLER)));
    let silent = finalise(&aborted, &Left { last_words: None, ..left }, &none());
    assert_eq!(silent.output, "");
    // A failed run that was not cut says nothing.
    assert_eq!(finalise(&failed("boom"), &left, &none()).output, "");
}

// EXEC-22; task.md 12 row 36.
#[test]
fn the_runtime_limit_keeps_the_data_of_a_yield() {
    let reason = "runtime limit reached (task.maxRuntimeMs=700)".to_owned();
    let driven = Driven::of(&Outcome::Aborted { kind: AbortKind::Timeout, reason: reason.clone() });
    let case = Case { driven, items: vec![data(json!({"kept": 1}))], raw: "", schema: none() };
    let result = run(&case);
    assert_eq!((result.exit, result.aborted, result.abort_reason), (1, true, Some(reason)));
    assert_eq!(result.output, "{\n  \"kept\": 1\n}");
}

// BARRIER-8, EXEC-25; task.md 12 rows 42, 61, 87.
#[test]
fn outcomes_of_the_driver_become_exit_and_reason() {
    let check = |outcome: Outcome, exit: i32, stderr: &str, aborted: bool| {
        let driven = Driven::of(&outcome);
        assert_eq!((driven.exit, driven.stderr.as_str(), driven.aborted), (exit, stderr, aborted));
    };
    let error = |text: &str| Outcome::ModelError {
        error: text.into(),
        provider: "fake".into(),
        model: "m1".into(),
    };
    check(Outcome::Accepted, 0, "", false);
    check(Outcome::Stale, 1, STALE, false);
    check(Outcome::Missing { reminders: 2 }, 0, "", false);
    check(error("broken"), 1, "[fake/m1] broken", false);
    check(error("[fake/m1] broken"), 1, "[fake/m1] broken", false);
    check(Outcome::Failed("x".into()), 1, "x", false);
    check(Outcome::Aborted { kind: AbortKind::Budget, reason: "b".into() }, 1, "b", true);
    assert_eq!(Driven::of(&Outcome::Missing { reminders: 2 }).reminders, 2);
}

// FINAL-21: narration does not reach the parent beside a yield.
#[test]
fn narration_is_displaced_by_data() {
    let case = Case { driven: ok(), items: vec![data(json!(1))], raw: "NARRATION", schema: none() };
    assert_eq!(run(&case).output, "1");
}
