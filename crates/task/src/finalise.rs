//! The decision matrix of a finished child (`task.md` 8): one pure function
//! over what the driver reports and what the child handed in and said.
//!
//! Owns exit, texts and schema metadata of the result. Must never touch a file
//! (FINAL-20); read `artifact` for what is written and `truncate` for what is
//! kept. The rows are named M1 to M16 as in FINAL-8.3.

mod assemble;

use serde_json::{Value, json};

use crew_base::json::from_text;
use crew_base::limits::EXCERPT_CHARS_MAX;
use crew_base::text::{excerpt, is_blank};
use crew_cycle::schema::{Issue, Judged, OutputSchema, SchemaMode, SchemaSource, missing_fields};
use crew_cycle::yielded::{Item, Status};
use crew_cycle::{AbortKind, Outcome};

use assemble::{Assembled, assemble};

/// How the run went, in the terms of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driven {
    /// 0 or 1.
    pub exit: i32,
    /// Reason or nothing.
    pub stderr: String,
    /// The driver ended it as aborted.
    pub aborted: bool,
    /// The signal of who waits for it fired.
    pub signalled: bool,
    /// The runtime limit fired.
    pub timed_out: bool,
    /// Reminders really sent (OP-8).
    pub reminders: u32,
}

/// What the child left.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    /// Accepted calls in order.
    pub items: &'a [Item],
    /// All text of completed answers (FINAL-1).
    pub raw_text: &'a str,
    /// Its last text, one that was cut off included (OBS-11).
    pub last_words: Option<&'a str>,
    /// Completed answers.
    pub requests: u32,
    /// Input, output and cache writes.
    pub tokens: u64,
}

/// Verdict about the schema (`task.md` 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The data satisfy it.
    Valid,
    /// They do not.
    Invalid,
    /// Nothing was judged.
    Unavailable,
}

impl Verdict {
    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Invalid => "invalid",
            Verdict::Unavailable => "unavailable",
        }
    }
}

/// Structured output metadata (`task.md` 1.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Structured {
    /// Who gave the schema; never `None` in a record.
    pub source: SchemaSource,
    /// How strictly it is meant.
    pub mode: SchemaMode,
    /// The verdict.
    pub verdict: Verdict,
    /// Its presence matters (ART-4).
    pub data: Option<Value>,
    /// Why there is no verdict.
    pub error: Option<String>,
}

impl Structured {
    /// As records carry it.
    pub fn json(&self) -> Value {
        let mut value = json!({
            "source": self.source.word(), "mode": self.mode.word(), "status": self.verdict.word(),
        });
        if let Some(data) = &self.data {
            value["data"] = data.clone();
        }
        if let Some(error) = &self.error {
            value["error"] = json!(error);
        }
        value
    }
}

/// The result before truncation and files.
#[derive(Clone, Debug, PartialEq)]
pub struct Final {
    /// 0 or 1.
    pub exit: i32,
    /// Reason or warning.
    pub stderr: String,
    /// The whole text.
    pub output: String,
    /// FINAL-15.
    pub aborted: bool,
    /// Present when aborted.
    pub abort_reason: Option<String>,
    /// Absent when nobody gave a schema.
    pub structured: Option<Structured>,
}

/// A-CALLER (`task.md` 1.7).
pub const CANCELLED_BY_CALLER: &str = "cancelled by the caller";
/// A-SHUTDOWN.
pub const SHUT_DOWN: &str = "background work was shut down";
/// A-EARLY.
pub const CANCELLED_EARLY: &str = "cancelled before the child started";
/// E-STALE.
pub const STALE: &str =
    "stale yield: background results arrived after the last yield and no newer yield covers them";
/// W-NULL.
pub const NO_DATA: &str = "child warning: the yield carried no data";
/// W-OVERRIDE.
pub const OVERRIDDEN: &str = "child warning: accepted although the output schema is not \
                              satisfied; correction attempts were used up";

/// W-MISSING with the reminders really sent (OP-8).
pub fn missing_warning(reminders: u32) -> String {
    format!("child warning: ended without an accepted yield ({reminders} reminders sent)")
}

impl Driven {
    /// What an outcome of the driver means here (15.1, EXEC-17 to EXEC-26).
    pub fn of(outcome: &Outcome) -> Driven {
        let failed =
            |stderr: &str| Driven { exit: 1, stderr: stderr.to_owned(), ..Driven::default() };
        match outcome {
            Outcome::Accepted => Driven::default(),
            Outcome::Stale => failed(STALE),
            Outcome::Missing { reminders } => Driven { reminders: *reminders, ..Driven::default() },
            Outcome::ModelError { error, provider, model } => {
                failed(&attributed(error, provider, model))
            }
            Outcome::Failed(text) => failed(text),
            Outcome::Aborted { kind, reason } => Driven {
                aborted: true,
                signalled: matches!(kind, AbortKind::Caller | AbortKind::Shutdown),
                timed_out: *kind == AbortKind::Timeout,
                ..failed(reason)
            },
        }
    }
}

/// The error text of a model with who was asked, unless it says so (EXEC-25).
fn attributed(error: &str, provider: &str, model: &str) -> String {
    if provider.is_empty() || error.contains(&format!("[{provider}/")) {
        error.to_owned()
    } else {
        format!("[{provider}/{model}] {error}")
    }
}

/// What the rows of the matrix give.
struct Row {
    exit: i32,
    stderr: String,
    output: String,
    gave_up: bool,
    structured: Option<Structured>,
}

/// Shapes the result (FINAL-4 to FINAL-18).
pub fn finalise(driven: &Driven, left: &Left<'_>, schema: &OutputSchema) -> Final {
    let row = matrix(driven, left, schema);
    let has_yield = !left.items.is_empty();
    let aborted =
        driven.timed_out || driven.aborted || row.gave_up || (!has_yield && driven.signalled);
    let abort_reason = aborted.then(|| {
        if driven.timed_out || driven.aborted || !row.gave_up {
            driven.stderr.clone()
        } else {
            row.stderr.clone()
        }
    });
    // FINAL-16.
    let exit = if row.exit == 0 && driven.timed_out { 1 } else { row.exit };
    let mut output = row.output;
    let was_cut = driven.aborted || driven.timed_out || driven.signalled;
    if was_cut && is_blank(&output) {
        output = salvage(left).unwrap_or(output);
    }
    let structured = match schema.source {
        SchemaSource::None => None,
        SchemaSource::Caller | SchemaSource::Agent | SchemaSource::Session => {
            Some(row.structured.unwrap_or_else(|| {
                let reason = abort_reason.as_deref().unwrap_or(&row.stderr);
                unjudged(schema, exit != 0 || aborted, reason, &output)
            }))
        }
    };
    Final { exit, stderr: row.stderr, output, aborted, abort_reason, structured }
}

/// S-CANCEL (FINAL-18).
fn salvage(left: &Left<'_>) -> Option<String> {
    let words = left.last_words.filter(|text| !is_blank(text))?;
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let (requests, tokens) = (left.requests, left.tokens);
    let line = excerpt(&line, EXCERPT_CHARS_MAX);
    Some(format!("[cancelled: {requests} requests, {tokens} tokens; last text: \"{line}\"]"))
}

/// FINAL-14.
fn unjudged(schema: &OutputSchema, failed: bool, reason: &str, output: &str) -> Structured {
    let bare = structured(schema, Verdict::Unavailable);
    if failed {
        return Structured { error: Some(reason.to_owned()), ..bare };
    }
    let data = from_text::<Value>(output).unwrap_or_else(|_| json!(output));
    Structured { data: Some(data), ..bare }
}

fn structured(schema: &OutputSchema, verdict: Verdict) -> Structured {
    Structured { source: schema.source, mode: schema.mode, verdict, data: None, error: None }
}

fn matrix(driven: &Driven, left: &Left<'_>, schema: &OutputSchema) -> Row {
    if let Some(last) = left.items.last() {
        if last.status == Status::Aborted {
            return give_up(last, schema);
        }
        return yielded(driven, left, schema);
    }
    if driven.exit != 0 {
        // M16.
        return Row {
            exit: driven.exit,
            stderr: driven.stderr.clone(),
            output: left.raw_text.to_owned(),
            gave_up: false,
            structured: None,
        };
    }
    without_yield(driven, left, schema)
}

/// M1, OP-6.
fn give_up(item: &Item, schema: &OutputSchema) -> Row {
    let reason = item.reason().to_owned();
    let error = Some(reason.clone());
    Row {
        exit: 0,
        output: pretty(&json!({"aborted": true, "error": reason})),
        stderr: reason,
        gave_up: true,
        structured: Some(Structured { error, ..structured(schema, Verdict::Unavailable) }),
    }
}

/// M2 to M10.
fn yielded(driven: &Driven, left: &Left<'_>, schema: &OutputSchema) -> Row {
    let assembled = assemble(left.items, schema);
    let (judged, text, is_overridden) = match assembled {
        Assembled::Missing => return missing_data(driven, left, schema),
        Assembled::Data { data, is_overridden } => {
            let judged = schema.judge(&data);
            let text = pretty(&judged.data);
            (judged, text, is_overridden)
        }
        Assembled::Report(text) => (schema.judge_verbatim(&text), text, false),
    };
    let Judged { data, issues } = judged;
    let with = |verdict| Structured { data: Some(data.clone()), ..structured(schema, verdict) };
    let is_strict = schema.mode == SchemaMode::Strict;
    if let Some(error) = schema.unusable() {
        let error = error.to_owned();
        let structured = Structured { error: Some(error.clone()), ..with(Verdict::Unavailable) };
        let warning = format!("invalid output schema: {error}");
        if is_strict {
            return violation(format!("schema_violation: {warning}"), &[], &data, structured);
        }
        return delivered(driven, warning, text, structured);
    }
    if !schema.is_usable() {
        return delivered(driven, String::new(), text, with(Verdict::Unavailable));
    }
    if is_overridden {
        let structured = with(Verdict::Invalid);
        if !is_strict {
            return delivered(driven, OVERRIDDEN.to_owned(), text, structured);
        }
        let message = if issues.is_empty() {
            format!("schema_violation: {OVERRIDDEN}")
        } else {
            violation_text(&issues)
        };
        return violation(message, &missing_fields(&issues), &data, structured);
    }
    if issues.is_empty() {
        return delivered(driven, String::new(), text, with(Verdict::Valid));
    }
    let (message, missing) = (violation_text(&issues), missing_fields(&issues));
    violation(message, &missing, &data, with(Verdict::Invalid))
}

/// M4, M5, M7, M9: the data go out; a prior failure stays (FINAL-3, FINAL-17).
fn delivered(driven: &Driven, warning: String, output: String, structured: Structured) -> Row {
    let has_failed = driven.exit != 0 && !is_blank(&driven.stderr);
    let (exit, stderr) =
        if has_failed { (driven.exit, driven.stderr.clone()) } else { (0, warning) };
    Row { exit, stderr, output, gave_up: false, structured: Some(structured) }
}

/// M3, M6, M8, M10 with the object of FINAL-12.
fn violation(message: String, missing: &[String], data: &Value, structured: Structured) -> Row {
    let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    let object = json!({
        "error": "schema_violation",
        "message": message,
        "missingRequired": missing,
        "data": excerpt(&text, EXCERPT_CHARS_MAX),
    });
    Row {
        exit: 1,
        stderr: message,
        output: pretty(&object),
        gave_up: false,
        structured: Some(structured),
    }
}

/// E-SCHEMA (`task.md` 1.7).
fn violation_text(issues: &[Issue]) -> String {
    let missing = missing_fields(issues);
    if !missing.is_empty() {
        return format!("schema_violation: missing required: {}", missing.join(", "));
    }
    let first = issues.first().map(|issue| (issue.dotted(), issue.message.as_str()));
    match first {
        Some((path, message)) if !path.is_empty() => {
            format!("schema_violation: {path}: {message}")
        }
        Some((_, message)) => format!("schema_violation: {message}"),
        None => "schema_violation".to_owned(),
    }
}

/// M2 and M3.
fn missing_data(driven: &Driven, left: &Left<'_>, schema: &OutputSchema) -> Row {
    let metadata = structured(schema, Verdict::Invalid);
    if schema.mode == SchemaMode::Strict && schema.source != SchemaSource::None {
        let required = schema.required();
        let message = if required.is_empty() {
            NO_DATA.to_owned()
        } else {
            format!("schema_violation: missing required: {}", required.join(", "))
        };
        return violation(message, &required, &json!(""), metadata);
    }
    Row {
        exit: driven.exit,
        stderr: driven.stderr.clone(),
        output: warned(NO_DATA, left.raw_text),
        gave_up: false,
        structured: Some(metadata),
    }
}

/// M11 to M15.
fn without_yield(driven: &Driven, left: &Left<'_>, schema: &OutputSchema) -> Row {
    let was_aborted = driven.aborted || driven.signalled || driven.timed_out;
    if !was_aborted && let Some(row) = fallback(left.raw_text, schema) {
        return row;
    }
    let warning = missing_warning(driven.reminders);
    let is_prose = schema.admits_prose() && !is_blank(left.raw_text);
    let row = |exit, stderr, output| Row { exit, stderr, output, gave_up: false, structured: None };
    if is_prose && !was_aborted {
        // M12.
        return row(0, String::new(), left.raw_text.to_owned());
    }
    let output = warned(&warning, left.raw_text);
    if is_prose {
        // M15.
        return row(driven.exit, driven.stderr.clone(), output);
    }
    // M13, M14.
    row(1, warning, output)
}

/// M11, FINAL-13: the whole raw text is JSON that satisfies the schema.
fn fallback(raw_text: &str, schema: &OutputSchema) -> Option<Row> {
    if schema.unusable().is_some() {
        return None;
    }
    let mut data = from_text::<Value>(raw_text.trim()).ok()?;
    if let Some(inner) = data.get("data") {
        data = inner.clone();
    }
    if let Some(inner) = data.as_str().and_then(|text| from_text::<Value>(text).ok()) {
        data = inner;
    }
    if data.is_null() {
        return None;
    }
    let judged = schema.judge(&data);
    if !judged.issues.is_empty() {
        return None;
    }
    let verdict = if schema.is_usable() { Verdict::Valid } else { Verdict::Unavailable };
    let output = pretty(&judged.data);
    let metadata = Structured { data: Some(judged.data), ..structured(schema, verdict) };
    Some(Row { exit: 0, stderr: String::new(), output, gave_up: false, structured: Some(metadata) })
}

/// A warning, a blank line and the text, or the warning alone.
fn warned(warning: &str, text: &str) -> String {
    if is_blank(text) { warning.to_owned() } else { format!("{warning}\n\n{text}") }
}

/// JSON with two spaces.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests;
