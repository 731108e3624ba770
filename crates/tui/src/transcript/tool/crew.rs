//! Results of the owner tools, from details only (`crew.md` TOOL-43 to TOOL-45),
//! and reports in the transcripts of children.

use serde_json::Value;

use super::{End, OUTPUT_INDENT, Tool, markdown, output_row};
use crate::cells::Row;
use crate::markdown::Line;
use crate::theme::{ERROR, MUTED, TEXT};
use crate::transcript::Look;

/// The tool with which a child reports.
const REPORT: &str = "crew_report";

/// The lines below a call of an owner tool; `None` for any other tool.
pub(super) fn lines(tool: &Tool, end: &End, look: &Look) -> Option<Vec<Line>> {
    if tool.name == REPORT && !end.is_error {
        return Some(report(&tool.arguments.value(), look));
    }
    if !crew_engine::api::is_owner_tool(&tool.name) {
        return None;
    }
    let details = end.details.as_ref().map_or(Value::Null, |details| details.value());
    let arguments = tool.arguments.value();
    let mut lines = match tool.name.as_str() {
        "crew_spawn" => task(&arguments, look),
        "crew_respond" => message(&arguments, look),
        _ => Vec::new(),
    };
    if end.is_error {
        let text = details.get("error").and_then(Value::as_str).unwrap_or(&end.text);
        lines.extend(wrapped(text, look, ERROR));
        return Some(lines);
    }
    let id = details.get("subagentId").and_then(Value::as_str).unwrap_or("...");
    let told = match tool.name.as_str() {
        "crew_spawn" => vec![format!("started {id}")],
        "crew_respond" => vec![format!("{id} goes on")],
        "crew_done" => vec![format!("closed {id}")],
        "crew_abort" => classes(&details),
        "crew_list" => named(&details, "subagents", &["name", "description"]),
        _ => named(&details, "sessions", &["subagent_id", "status", "brief"]),
    };
    for text in told {
        lines.extend(wrapped(&text, look, MUTED));
    }
    Some(lines)
}

fn wrapped(text: &str, look: &Look, style: crate::theme::Style) -> Vec<Line> {
    let columns = look.columns.saturating_sub(OUTPUT_INDENT).max(1);
    let rows = Row::of(text, style).wrap(columns, 2);
    rows.into_iter().map(|row| Line::prose(row).indented(OUTPUT_INDENT)).collect()
}

/// The goal, or expanded the whole task (TOOL-43).
fn task(arguments: &Value, look: &Look) -> Vec<Line> {
    let Some(task) = arguments.get("task") else { return Vec::new() };
    let Some(goal) = task.get("goal").and_then(Value::as_str) else { return Vec::new() };
    let list = |name: &str| -> Option<Vec<&str>> {
        task.get(name)?.as_array()?.iter().map(Value::as_str).collect()
    };
    let (Some(context), Some(instructions)) = (list("context"), list("instructions")) else {
        return preview(goal, look);
    };
    if !look.expanded {
        return preview(goal, look);
    }
    let mut text = format!("## Goal\n\n{goal}\n\n## Context\n\n");
    context.iter().for_each(|item| text.push_str(&format!("- {item}\n")));
    text.push_str("\n## Instructions\n\n");
    let numbered = instructions.iter().enumerate();
    numbered.for_each(|(at, item)| text.push_str(&format!("{}. {item}\n", at + 1)));
    markdown(&text, look)
}

/// The answer, cut when collapsed (TOOL-44).
fn message(arguments: &Value, look: &Look) -> Vec<Line> {
    let Some(text) = arguments.get("message").and_then(Value::as_str) else { return Vec::new() };
    if look.expanded { markdown(text, look) } else { preview(text, look) }
}

/// What a child handed in, in its own transcript: what it needs and its report.
fn report(arguments: &Value, look: &Look) -> Vec<Line> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let (needs, report) = (text("needs"), text("report"));
    if !look.expanded {
        return preview(if needs.is_empty() { report } else { needs }, look);
    }
    let mut lines = Vec::new();
    if !needs.is_empty() {
        lines.push(Line::prose(output_row("Needs", TEXT.bold())));
        lines.extend(markdown(needs, look));
    }
    lines.extend(markdown(report, look));
    lines
}

fn preview(text: &str, look: &Look) -> Vec<Line> {
    vec![Line::prose(output_row(&crate::cells::clean_text(text), TEXT).cut(look.columns))]
}

fn classes(details: &Value) -> Vec<String> {
    let class = |name: &str, word: &str| {
        let ids: Vec<_> = details.get(name)?.as_array()?.iter().filter_map(Value::as_str).collect();
        (!ids.is_empty()).then(|| format!("{word}: {}", ids.join(", ")))
    };
    let classes = [
        class("aborted_ids", "aborted"),
        class("missing_ids", "missing or finished"),
        class("foreign_ids", "of another session"),
    ];
    classes.into_iter().flatten().collect()
}

fn named(details: &Value, list: &str, fields: &[&str]) -> Vec<String> {
    let Some(items) = details.get(list).and_then(Value::as_array) else {
        return vec!["none".to_owned()];
    };
    let line = |item: &Value| {
        let texts = fields.iter().filter_map(|field| item.get(field).and_then(Value::as_str));
        texts.collect::<Vec<_>>().join(" · ")
    };
    let lines: Vec<_> = items.iter().map(line).collect();
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
}
