//! Names, main arguments and summaries of tools.

use serde_json::Value;

use super::End;
use crate::format;

/// How much of a tool's output is shown collapsed (`host.md` 8.15).
pub(super) struct Preview {
    pub(super) rows: usize,
    pub(super) from_end: bool,
}

pub(super) fn preview(name: &str) -> Preview {
    let (rows, from_end) = match name {
        "bash" => (5, true),
        // Its summary says how much was read (sketch S-2).
        "read" => (0, false),
        "write" => (10, false),
        "grep" => (15, false),
        "find" | "ls" => (20, false),
        _ => (10, false),
    };
    Preview { rows, from_end }
}

/// The shown name.
pub(super) fn name(name: &str) -> &str {
    if name == "bash" { "$" } else { name }
}

fn text<'a>(arguments: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(name).and_then(Value::as_str))
}

/// What a call works on.
pub(super) fn target(name: &str, arguments: &Value) -> String {
    let path = || text(arguments, &["path", "file_path"]).unwrap_or("...").to_owned();
    match name {
        "bash" => text(arguments, &["command"]).unwrap_or("...").trim_end().to_owned(),
        "read" => format!("{}{}", path(), range(arguments)),
        "edit" | "write" => path(),
        "grep" => {
            let pattern = text(arguments, &["pattern"]).unwrap_or("...");
            let place = text(arguments, &["path"]).unwrap_or(".");
            let glob = text(arguments, &["glob"]).map(|glob| format!(" ({glob})"));
            format!("/{pattern}/ in {place}{}", glob.unwrap_or_default())
        }
        "find" => {
            let pattern = text(arguments, &["pattern"]).unwrap_or("...");
            format!("{pattern} in {}", text(arguments, &["path"]).unwrap_or("."))
        }
        "ls" => text(arguments, &["path"]).unwrap_or(".").to_owned(),
        "crew_list" | "crew_status" => String::new(),
        "crew_report" => text(arguments, &["outcome"]).unwrap_or("...").to_owned(),
        "task" => super::task::target(arguments),
        "crew_spawn" => {
            let role = text(arguments, &["subagent"]).unwrap_or("...");
            format!("{role} · {}", text(arguments, &["brief"]).unwrap_or("..."))
        }
        "crew_respond" | "crew_done" => {
            text(arguments, &["subagent_id"]).unwrap_or("...").to_owned()
        }
        "crew_abort" => aborted(arguments),
        _ => general(arguments),
    }
}

fn range(arguments: &Value) -> String {
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64).filter(|n| *n > 0);
    match (number("offset"), number("limit")) {
        (Some(from), Some(lines)) => format!(":{from}-{}", from + lines - 1),
        (Some(from), None) => format!(":{from}"),
        (None, Some(lines)) => format!(":1-{lines}"),
        (None, None) => String::new(),
    }
}

/// `crew.md` TOOL-42.
fn aborted(arguments: &Value) -> String {
    if arguments.get("all").and_then(Value::as_bool) == Some(true) {
        return "all".to_owned();
    }
    match arguments.get("subagent_ids").and_then(Value::as_array) {
        Some(ids) => format!("{} ids", ids.len()),
        None => text(arguments, &["subagent_id"]).unwrap_or("...").to_owned(),
    }
}

fn general(arguments: &Value) -> String {
    const KEYS: [&str; 8] =
        ["path", "file", "command", "query", "url", "pattern", "prompt", "brief"];
    text(arguments, &KEYS).map(str::to_owned).unwrap_or_default()
}

/// What came of a call (`crew.md` ACT-20 to ACT-22).
pub(super) fn summary(name: &str, arguments: &Value, end: &End) -> Option<String> {
    if end.is_error {
        return None;
    }
    match name {
        "write" => {
            let content = text(arguments, &["content"])?;
            Some(format!("{} written", format::count(content.lines().count(), "line")))
        }
        "edit" => changed(arguments),
        "read" => {
            let lines: Vec<_> = end.text.lines().collect();
            let kept = lines.iter().rposition(|line| {
                !(line.trim().is_empty() || line.starts_with('[') && line.ends_with(']'))
            });
            kept.map(|last| format::count(last + 1, "line"))
        }
        "grep" => {
            let hits = end.text.lines().filter(|line| is_match(line)).count();
            (hits > 0).then(|| format::count(hits, "match"))
        }
        _ => None,
    }
}

fn is_match(line: &str) -> bool {
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(number), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) && rest.starts_with(' ')
}

fn changed(arguments: &Value) -> Option<String> {
    let (mut added, mut removed, mut any) = (0, 0, false);
    for edit in arguments.get("edits")?.as_array()? {
        if let (Some(old), Some(new)) = (text(edit, &["oldText"]), text(edit, &["newText"])) {
            any = true;
            removed += old.lines().count();
            added += new.lines().count();
        }
    }
    any.then(|| format!("+{added} −{removed} lines"))
}
