//! Calls of `task`: one line for each child while it works, its outcome when it
//! has ended; from details only (`task.md` OBS-5, OBS-6).
//!
//! Drawing never fails, whatever the details are; what cannot be read is drawn
//! as the text of any other tool.

use crew_base::time::Time;
use crew_engine::api::Status;
use crew_engine::api::task::{TASK_TOOL, address};
use serde_json::Value;

use super::{End, OUTPUT_INDENT, Tool, cut, output};
use crate::cells::Row;
use crate::format;
use crate::markdown::Line;
use crate::theme::{MUTED, TEXT};
use crate::transcript::Look;

/// Children that are drawn while they work; the rest is counted.
const LIVE_ROWS_MAX: usize = 8;
/// Rows of a child's output that are shown collapsed.
const OUTPUT_ROWS_MAX: usize = 2;
/// What the output of one that gave up begins with.
const GIVEN_UP: &str = "{\n  \"aborted\": true";

/// What a call is about: the agents, or the only assignment.
pub(super) fn target(arguments: &Value) -> String {
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let one = |item: &Value| {
        let who = text(item, "name").or_else(|| text(item, "agent"));
        let task = text(item, "task").unwrap_or_else(|| "...".to_owned());
        let task = task.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        let task = task.unwrap_or_default();
        who.map_or_else(|| task.clone(), |who| format!("{who} · {task}"))
    };
    match arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice) {
        Some([item]) => one(item),
        Some(items) => format!("{} children", items.len()),
        None => one(arguments),
    }
}

/// The rows below a call that runs; `None` for any other tool.
pub(super) fn live(tool: &Tool, look: &Look, now: Time) -> Option<Vec<Row>> {
    if tool.name != TASK_TOOL {
        return None;
    }
    let details = tool.details.as_ref()?.value();
    let items = details.get("progress")?.as_array()?;
    let ms = now.since(tool.started);
    let mut rows: Vec<Row> =
        items.iter().take(LIVE_ROWS_MAX).map(|item| working(item, look, ms)).collect();
    if items.len() > LIVE_ROWS_MAX {
        let mut row = Row::new();
        row.space(OUTPUT_INDENT);
        row.push(&format!("… and {} more", items.len() - LIVE_ROWS_MAX), MUTED);
        rows.push(row);
    }
    Some(rows.into_iter().map(|row| row.cut(look.columns)).collect())
}

fn working(item: &Value, look: &Look, ms: u64) -> Row {
    let status = match text(item, "status") {
        "running" => Some(Status::Running),
        "completed" => Some(Status::Completed),
        "failed" => Some(Status::Error),
        "aborted" => Some(Status::Aborted),
        _ => None,
    };
    let mut row = head(status, item, look, ms);
    match status {
        None => row.push(" · waits for its turn", MUTED),
        Some(_) => row.push(&figures(item), MUTED),
    };
    let current = text(item, "currentTool");
    if !current.is_empty() {
        row.push(&format!(" · {}", super::target::name(current)), TEXT);
    }
    row
}

/// The lines below a call that has ended; `None` for any other tool, and for
/// one that was refused.
pub(super) fn lines(tool: &Tool, end: &End, look: &Look) -> Option<Vec<Line>> {
    if tool.name != TASK_TOOL {
        return None;
    }
    let details = end.details.as_ref()?.value();
    let records = details.get("results")?.as_array()?;
    if records.is_empty() {
        return None;
    }
    Some(records.iter().flat_map(|record| ended(record, look)).collect())
}

fn ended(record: &Value, look: &Look) -> Vec<Line> {
    let (status, word) = outcome(record);
    let mut row = head(Some(status), record, look, 0);
    row.push(&format!(" · {word}"), look.theme.status_style(status));
    if let Some(ms) = record.get("durationMs").and_then(Value::as_u64) {
        row.push(&format!(" · {}", format::time(ms)), MUTED);
    }
    row.push(&figures(record), MUTED);
    let mut lines = vec![Line::prose(row.cut(look.columns))];
    let body = cut(output(&body(record, status), MUTED), OUTPUT_ROWS_MAX, false, look);
    lines.extend(body.into_iter().map(|line| line.indented(2)));
    for kept in kept(record, look.expanded) {
        let mut row = Row::new();
        row.space(OUTPUT_INDENT + 2);
        row.push(&format!("→ {kept}"), MUTED);
        lines.push(Line::prose(row.cut(look.columns)));
    }
    lines
}

/// Why it ended, if it did not end well, then what it handed in.
fn body(record: &Value, status: Status) -> String {
    let why = match status {
        Status::Aborted => text(record, "abortReason"),
        Status::Error => {
            let error = text(record, "error");
            if error.is_empty() { text(record, "stderr") } else { error }
        }
        Status::Completed | Status::Running | Status::NeedsInput => "",
    };
    let handed_in = text(record, "output").trim_matches('\n');
    if why.is_empty() || handed_in.starts_with(why) {
        handed_in.to_owned()
    } else if handed_in.starts_with(GIVEN_UP) {
        // One that gave up handed in its reason and nothing else.
        why.to_owned()
    } else {
        format!("{why}\n{handed_in}")
    }
}

/// Where there is more: the address of the text, or expanded its file, and what
/// is kept of changes that were not brought back.
fn kept(record: &Value, expanded: bool) -> Vec<String> {
    let mut kept = Vec::new();
    let path = text(record, "outputPath");
    if !path.is_empty() {
        let address = format!("{}{}", address::SCHEME, text(record, "id"));
        kept.push(if expanded { path.to_owned() } else { address });
    }
    if changes_applied(record) != Some(true) {
        let named = [("patch", "patchPath"), ("branch", "branchName")];
        let named = named.map(|(word, name)| (word, text(record, name)));
        let named = named.into_iter().filter(|(_, value)| !value.is_empty());
        kept.extend(named.map(|(word, value)| format!("{word} {value}")));
    }
    kept
}

/// The status as the envelope words it (DELIV-2, OP-7, OP-15).
fn outcome(record: &Value) -> (Status, String) {
    let exit = record.get("exitCode").and_then(Value::as_i64).unwrap_or(1);
    if record.get("aborted").and_then(Value::as_bool) == Some(true) {
        (Status::Aborted, "cancelled".to_owned())
    } else if exit != 0 {
        (Status::Error, format!("failed (exit {exit})"))
    } else if !text(record, "error").is_empty() || changes_applied(record) == Some(false) {
        (Status::Error, "merge failed".to_owned())
    } else {
        (Status::Completed, "completed".to_owned())
    }
}

fn changes_applied(record: &Value) -> Option<bool> {
    record.get("changesApplied").and_then(Value::as_bool)
}

/// Icon, id and agent of a child.
fn head(status: Option<Status>, item: &Value, look: &Look, ms: u64) -> Row {
    let mut row = Row::new();
    row.space(OUTPUT_INDENT);
    match status {
        Some(status) => row.push(look.theme.icon(status, ms), look.theme.status_style(status)),
        None => row.push("-", MUTED),
    };
    row.push(" ", TEXT);
    let (id, agent) = (text(item, "id"), text(item, "agent"));
    row.push(if id.is_empty() { agent } else { id }, TEXT.bold());
    if !id.is_empty() && !agent.is_empty() {
        row.push(&format!(" · {agent}"), MUTED);
    }
    row
}

/// Requests and tokens, where there are any.
fn figures(item: &Value) -> String {
    let number = |name: &str| item.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (requests, tokens) = (number("requests"), number("tokens"));
    let mut text = String::new();
    if requests > 0 {
        let requests = usize::try_from(requests).unwrap_or(usize::MAX);
        text.push_str(&format!(" · {}", format::count(requests, "request")));
    }
    if tokens > 0 {
        text.push_str(&format!(" · {} tokens", format::tokens(tokens)));
    }
    text
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Icons, Theme};
    use crew_base::json::Raw;
    use crew_base::message::Block;
    use serde_json::json;

    fn look(columns: usize, expanded: bool) -> Look {
        let theme = Theme { colours: false, icons: Icons::Ascii, motion: false };
        Look {
            theme,
            columns,
            expanded,
            thinking: false,
            reader: Some(crate::keys::Key::ctrl('o')),
        }
    }

    fn call(arguments: Value) -> Tool {
        Tool {
            call: "c".into(),
            name: TASK_TOOL.into(),
            arguments: Raw::of(&arguments),
            started: Time(0),
            progress: String::new(),
            details: None,
            end: None,
        }
    }

    fn live_rows(progress: Value, columns: usize) -> Vec<String> {
        let arguments = json!({"context": "c", "tasks": [{"task": "a"}, {"task": "b"}]});
        let tool =
            Tool { details: Some(Raw::of(&json!({"progress": progress}))), ..call(arguments) };
        let rows = tool.live(&look(columns, false), Time(500));
        rows.iter().map(|row| row.text().to_owned()).collect()
    }

    fn ended_rows(details: Value, is_error: bool, columns: usize) -> Vec<String> {
        let arguments = json!({"context": "c", "tasks": [{"name": "Ann", "task": "look\nmore"}]});
        let end = End::of(&[Block::text("TEXT")], Some(Raw::of(&details)), is_error, Some(3_000));
        let tool = Tool { end: Some(end), ..call(arguments) };
        let lines = tool.lines(&look(columns, false));
        lines.iter().map(|line| line.row.text().to_owned()).collect()
    }

    // OBS-6.
    #[test]
    fn each_child_has_a_line_while_the_call_runs() {
        let progress = json!([
            {"index": 0, "id": "Ann", "agent": "scout", "status": "running", "requests": 3,
                "tokens": 12_400, "currentTool": "bash"},
            {"index": 1, "id": "Bob", "agent": "task", "status": "completed", "requests": 1},
            {"index": 2, "id": null, "agent": "task", "status": "pending", "requests": 0},
        ]);
        let running = Theme { colours: false, icons: Icons::Ascii, motion: false };
        let spinner = running.icon(Status::Running, 500);
        assert_eq!(
            live_rows(progress.clone(), 80),
            [
                "  task  2 children".to_owned(),
                format!("    {spinner} Ann · scout · 3 requests · 12.4k tokens · $"),
                "    ok Bob · task · 1 request".to_owned(),
                "    - task · waits for its turn".to_owned(),
            ]
        );
        assert!(live_rows(progress, 24).iter().all(|row| row.chars().count() <= 24));
        let many: Vec<_> = (0..12).map(|n| json!({"id": format!("k{n}"), "agent": "a"})).collect();
        let rows = live_rows(json!(many), 80);
        assert_eq!((rows.len(), rows[9].as_str()), (10, "    … and 4 more"));
    }

    // OBS-5, DELIV-2.
    #[test]
    fn outcomes_are_told_with_output_and_artifact() {
        let details = json!({"results": [
            {"id": "Ann", "agent": "scout", "exitCode": 0, "aborted": false, "durationMs": 12_000,
                "requests": 3, "tokens": 900, "output": "one\ntwo\nthree\n",
                "outputPath": "/s/X/Ann.md"},
            {"id": "Bob", "agent": "task", "exitCode": 1, "aborted": true, "output": "so far",
                "abortReason": "cancelled by the caller"},
            {"id": "Up", "agent": "task", "exitCode": 0, "aborted": true, "abortReason": "no",
                "output": "{\n  \"aborted\": true,\n  \"error\": \"no\"\n}"},
            {"id": "Cy", "agent": "task", "exitCode": 0, "aborted": false, "output": "x",
                "changesApplied": false, "patchPath": "/s/X/Cy.patch"},
            {"id": "Di", "agent": "task", "exitCode": 0, "aborted": false, "output": "y",
                "changesApplied": true, "patchPath": "/s/X/Di.patch"},
        ]});
        assert_eq!(
            ended_rows(details, false, 80),
            [
                "  task  Ann · look",
                "    ok Ann · scout · completed · 12s · 3 requests · 900 tokens",
                "      one",
                "      two",
                "      … 1 line more · Ctrl+O reads all",
                "      → agent://Ann",
                "    -- Bob · task · cancelled",
                "      cancelled by the caller",
                "      so far",
                "    -- Up · task · cancelled",
                "      no",
                "    !! Cy · task · merge failed",
                "      x",
                "      → patch /s/X/Cy.patch",
                "    ok Di · task · completed",
                "      y",
            ]
        );
    }

    // DISP-11.
    #[test]
    fn a_refusal_shows_its_text() {
        let rows = ended_rows(json!({"results": []}), true, 80);
        assert_eq!(rows, ["  task  Ann · look", "    TEXT"]);
    }

    // host.md 8.15, TERM-58: drawing never fails and never passes a control on.
    #[test]
    fn hostile_details_are_drawn() {
        for details in [
            json!(null),
            json!({"results": 7}),
            json!({"results": [7, null, {}]}),
            json!({"results": [{"id": "a\u{1b}[2Jb", "output": "\u{1b}]0;t\u{7}x", "exitCode": "0"}]}),
        ] {
            for columns in [1, 12, 80] {
                let rows = ended_rows(details.clone(), false, columns);
                assert!(
                    !rows.is_empty() && !rows.concat().contains(['\u{1b}', '\u{7}']),
                    "{rows:?}"
                );
            }
        }
        for arguments in [json!(7), json!({"tasks": 7}), json!({"tasks": [7]}), json!({"task": []})]
        {
            assert!(!call(arguments).live(&look(20, false), Time(0)).is_empty());
        }
    }
}
