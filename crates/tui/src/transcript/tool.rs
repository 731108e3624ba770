//! Tool calls: what they work on, what came of them (`host.md` 8.15,
//! `crew.md` TOOL-42 to TOOL-45).
//!
//! Drawing never fails, whatever the arguments and details are.

mod crew;
mod target;
mod task;

use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::message::Block;
use crew_base::time::Time;
use serde_json::Value;

use super::{INDENT, Look};
use crate::cells::{Row, clean_lines};
use crate::format;
use crate::markdown::{Line, render};
use crate::theme::{CODE, ERROR, MUTED, Role, SUCCESS, Style, TEXT, WARNING};

/// Columns in front of a tool's output.
const OUTPUT_INDENT: usize = 4;
/// Rows of an error that is shown collapsed.
const ERROR_ROWS_MAX: usize = 6;
/// Rows of a diff that is shown collapsed.
const DIFF_ROWS_MAX: usize = 24;
/// Characters of one output row that are drawn.
const ROW_CHARS_MAX: usize = 2_000;
/// Rows of output that are drawn at all.
const ROWS_MAX: usize = 5_000;

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// As the model gave them.
    pub arguments: Raw,
    /// When it started, for the clock of one that runs.
    pub started: Time,
    /// What it shows while it runs.
    pub progress: String,
    /// The same, for faces.
    pub details: Option<Raw>,
    /// What it gave back.
    pub end: Option<End>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// All text.
    pub text: String,
    /// Images among the content.
    pub images: usize,
    /// For faces.
    pub details: Option<Raw>,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it ran.
    pub duration_ms: Option<u64>,
}

impl End {
    /// Of content, details and the rest.
    pub fn of(content: &[Block], details: Option<Raw>, is_error: bool, ms: Option<u64>) -> End {
        let texts: Vec<_> = content.iter().filter_map(Block::as_text).collect();
        let images = content.iter().filter(|block| matches!(block, Block::Image(_))).count();
        End { text: texts.join("\n"), images, details, is_error, duration_ms: ms }
    }
}

impl Tool {
    /// The call line: name, what it works on, what came of it.
    fn head(&self, look: &Look) -> Row {
        let arguments = self.arguments.value();
        let style = match &self.end {
            None => WARNING,
            Some(end) if end.is_error => ERROR,
            Some(_) => SUCCESS,
        };
        let mut row = Row::new();
        row.space(INDENT);
        row.push(target::name(&self.name), style);
        let target = target::target(&self.name, &arguments);
        if !target.is_empty() {
            row.push("  ", TEXT);
            row.push(&target, TEXT);
        }
        let mut facts = Vec::new();
        if let Some(end) = &self.end {
            facts.extend(target::summary(&self.name, &arguments, end));
            let is_shell = self.name == "bash";
            facts.extend(end.duration_ms.filter(|ms| is_shell && *ms >= 1000).map(format::time));
        }
        let facts: String = facts.iter().map(|fact| format!(" · {fact}")).collect();
        if look.expanded || row.width() + facts.chars().count() <= look.columns {
            row.push(&facts, MUTED);
        }
        row
    }

    /// Name and target in one line.
    pub fn title(&self) -> String {
        let target = target::target(&self.name, &self.arguments.value());
        format!("{} {target}", target::name(&self.name)).trim_end().to_owned()
    }

    /// The call while it runs: one row, the clock of a shell, its last output.
    pub fn live(&self, look: &Look, now: Time) -> Vec<Row> {
        let mut head = self.head(look);
        let ms = now.since(self.started);
        if ms >= 1000 {
            head.push(&format!(" · {}", format::time(ms)), MUTED);
        }
        let mut rows = vec![head.cut(look.columns)];
        if let Some(own) = task::live(self, look, now) {
            rows.extend(own);
            return rows;
        }
        let lines = clean_lines(&self.progress);
        let lines: Vec<_> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
        let shown = target::preview(&self.name).rows.min(lines.len());
        for line in &lines[lines.len() - shown..] {
            rows.push(output_row(line, MUTED).cut(look.columns));
        }
        rows
    }

    /// The call when it has ended.
    pub fn lines(&self, look: &Look) -> Vec<Line> {
        let mut lines = vec![Line::whole(self.head(look))];
        let Some(end) = &self.end else { return lines };
        if let Some(own) = crew::lines(self, end, look) {
            lines.extend(own);
            return lines;
        }
        if let Some(own) = task::lines(self, end, look) {
            lines.extend(own);
            return lines;
        }
        if end.is_error {
            let body = output(&end.text, ERROR);
            lines.extend(cut(body, ERROR_ROWS_MAX, false, look));
            return lines;
        }
        if let Some(diff) = diff(end) {
            lines.extend(cut(diff, DIFF_ROWS_MAX, false, look));
            return lines;
        }
        if self.name == "write" {
            let arguments = self.arguments.value();
            let content = arguments.get("content").and_then(Value::as_str).unwrap_or_default();
            let preview = target::preview(&self.name);
            lines.extend(cut(output(content, MUTED), preview.rows, preview.from_end, look));
            return lines;
        }
        let preview = target::preview(&self.name);
        lines.extend(cut(output(&end.text, MUTED), preview.rows, preview.from_end, look));
        if end.images > 0 {
            let text = format!("[{}]", format::count(end.images, "image"));
            lines.push(Line::whole(output_row(&text, MUTED)));
        }
        lines
    }
}

fn output_row(line: &str, style: Style) -> Row {
    let mut row = Row::new();
    row.space(OUTPUT_INDENT);
    let end = line.char_indices().nth(ROW_CHARS_MAX);
    row.push(end.map_or(line, |(end, _)| &line[..end]), style);
    if end.is_some() {
        row.push("…", MUTED);
    }
    row
}

/// Output of a tool: one line each, its colours dropped (TERM-23, TERM-62).
fn output(text: &str, style: Style) -> Vec<Line> {
    let lines = clean_lines(text.trim_end_matches('\n'));
    if lines.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    lines.iter().take(ROWS_MAX).map(|line| Line::whole(output_row(line, style))).collect()
}

/// The diff of an edit.
fn diff(end: &End) -> Option<Vec<Line>> {
    let details = end.details.as_ref()?.value();
    let text = details.get("diff").and_then(Value::as_str)?;
    let line = |line: &String| {
        let style = match line.chars().next() {
            Some('+') => Style::role(Role::Added),
            Some('-') => Style::role(Role::Removed),
            Some(_) | None => MUTED,
        };
        Line::whole(output_row(line, style))
    };
    Some(clean_lines(text.trim_end_matches('\n')).iter().take(ROWS_MAX).map(line).collect())
}

/// The collapsed form of output: some rows and what is left out.
fn cut(body: Vec<Line>, rows: usize, from_end: bool, look: &Look) -> Vec<Line> {
    if look.expanded || body.len() <= rows || rows == 0 {
        return if rows == 0 && !look.expanded { Vec::new() } else { body };
    }
    let left = body.len() - rows;
    let place = if from_end { "earlier" } else { "more" };
    let (count, way) = (format::count(left, "line"), look.way_to_read());
    let hint = format!("… {count} {place} · {way} reads all");
    let hint = Line::prose(output_row(&hint, MUTED).cut(look.columns));
    if from_end {
        let mut lines = vec![hint];
        lines.extend(body.into_iter().skip(left));
        lines
    } else {
        let mut lines = body;
        lines.truncate(rows);
        lines.push(hint);
        lines
    }
}

/// Markdown below a call.
fn markdown(text: &str, look: &Look) -> Vec<Line> {
    let columns = look.columns.saturating_sub(OUTPUT_INDENT).max(1);
    render(text, columns).into_iter().map(|line| line.indented(OUTPUT_INDENT)).collect()
}

/// A command of the person, as recorded (`host.md` 4.3.9).
pub fn shell_lines(command: &str, output_text: &str, facts: &[String], look: &Look) -> Vec<Line> {
    let mut head = Row::of("!", Style::role(Role::Accent).bold());
    head.push(" ", TEXT);
    head.push(command, CODE);
    for fact in facts {
        head.push(&format!(" · {fact}"), MUTED);
    }
    let mut lines = vec![Line::whole(head)];
    let rows = target::preview("bash").rows * 4;
    lines.extend(cut(output(output_text, MUTED), rows, true, look));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn tool(name: &str, arguments: &str, end: Option<End>) -> Tool {
        Tool {
            call: CallId::from("c"),
            name: name.to_owned(),
            arguments: Raw::parse(arguments).unwrap(),
            started: Time(0),
            progress: String::new(),
            details: None,
            end,
        }
    }

    fn ended(text: &str) -> Option<End> {
        Some(End::of(&[Block::text(text)], None, false, Some(2_000)))
    }

    fn shown(tool: &Tool, columns: usize, expanded: bool) -> Vec<String> {
        let look = Look {
            theme: Theme::default(),
            columns,
            expanded,
            thinking: false,
            reader: Some(crate::keys::Key::ctrl('o')),
        };
        tool.lines(&look).iter().map(|line| line.row.text().to_owned()).collect()
    }

    fn check(name: &str, arguments: &str, text: &str, expected: &[&str]) {
        assert_eq!(shown(&tool(name, arguments, ended(text)), 80, false), expected);
    }

    #[test]
    fn rows_name_what_the_tool_works_on_and_what_came_of_it() {
        check(
            "read",
            r#"{"path":"src/a.rs","offset":120,"limit":61}"#,
            &"x\n".repeat(61),
            &["  read  src/a.rs:120-180 · 61 lines"],
        );
        check("bash", r#"{"command":"cargo test"}"#, "ok", &["  $  cargo test · 2s", "    ok"]);
        check(
            "grep",
            r#"{"pattern":"x+","path":"src"}"#,
            "a.rs:1: x\na.rs:2: xx",
            &["  grep  /x+/ in src · 2 matches", "    a.rs:1: x", "    a.rs:2: xx"],
        );
        check("ls", "{}", "a\nb", &["  ls  .", "    a", "    b"]);
        check("novel", r#"{"query":"q"}"#, "fine", &["  novel  q", "    fine"]);
    }

    #[test]
    fn long_output_is_cut_and_says_so() {
        let many: String = (0..9).map(|n| format!("{n}\n")).collect();
        let bash = tool("bash", r#"{"command":"seq"}"#, ended(&many));
        let rows = shown(&bash, 80, false);
        assert_eq!(rows[1..3], ["    … 4 lines earlier · Ctrl+O reads all", "    4"]);
        assert_eq!(rows.len(), 7);
        assert_eq!(shown(&bash, 80, true).len(), 10);
    }

    #[test]
    fn an_edit_shows_its_diff_and_a_failure_its_text() {
        let details = Raw::parse(r#"{"diff":"-1 old\n+1 new"}"#).unwrap();
        let end = End { details: Some(details), ..ended("Made it.").unwrap() };
        let arguments = r#"{"path":"a","edits":[{"oldText":"old","newText":"new"}]}"#;
        let rows = shown(&tool("edit", arguments, Some(end)), 80, false);
        assert_eq!(rows, ["  edit  a · +1 −1 lines", "    -1 old", "    +1 new"]);
        let end = End { is_error: true, ..ended("no such file").unwrap() };
        let rows = shown(&tool("edit", r#"{"path":"a"}"#, Some(end)), 80, false);
        assert_eq!(rows, ["  edit  a", "    no such file"]);
    }

    // TERM-45, TERM-49: a child's transcript holds what it handed in.
    #[test]
    fn a_report_is_shown_in_its_own_transcript() {
        let arguments =
            r#"{"outcome":"needs_input","needs":"Tabs?","report":"Ready.\n\n- a\n- b"}"#;
        check("crew_report", arguments, "{}", &["  crew_report  needs_input", "    Tabs?"]);
        let all = shown(&tool("crew_report", arguments, ended("{}")), 80, true);
        let expected = ["  crew_report  needs_input", "    Needs", "    Tabs?", "    Ready."];
        assert_eq!(all[..4], expected);
        assert!(all.iter().any(|row| row == "    • b"), "{all:?}");
    }

    // TOOL-42 to TOOL-45: no JSON is ever shown.
    #[test]
    fn crew_tools_are_drawn_from_details() {
        let spawned =
            Raw::parse(r#"{"subagentId":"scout-1","subagent":"scout","brief":"B"}"#).unwrap();
        let end = End { details: Some(spawned), ..ended(r#"{"subagent_id":"scout-1"}"#).unwrap() };
        let arguments = r#"{"subagent":"scout","brief":"B","task":{"goal":"G","context":[],"instructions":["do"]}}"#;
        let spawn = tool("crew_spawn", arguments, Some(end));
        assert_eq!(
            shown(&spawn, 80, false),
            ["  crew_spawn  scout · B", "    G", "    started scout-1"]
        );
        assert!(shown(&spawn, 80, true).contains(&"    1. do".to_owned()));
        let broken = tool("crew_spawn", r#"{"brief":7}"#, None);
        assert_eq!(shown(&broken, 80, false), ["  crew_spawn  ... · ..."]);
        let aborted =
            Raw::parse(r#"{"aborted_ids":["a"],"missing_ids":[],"foreign_ids":["b"]}"#).unwrap();
        let end = End { details: Some(aborted), ..ended("{}").unwrap() };
        let rows =
            shown(&tool("crew_abort", r#"{"subagent_ids":["a","b"]}"#, Some(end)), 80, false);
        assert_eq!(rows, ["  crew_abort  2 ids", "    aborted: a", "    of another session: b"]);
    }

    // host.md 8.15: drawing never fails.
    #[test]
    fn malformed_arguments_and_details_are_drawn() {
        for name in [
            "read",
            "bash",
            "edit",
            "write",
            "grep",
            "find",
            "ls",
            "crew_spawn",
            "crew_status",
            "x",
        ] {
            for arguments in
                ["{}", "[]", "null", "7", r#"{"path":7,"edits":7,"command":[],"content":{}}"#]
            {
                for details in [
                    None,
                    Raw::parse("[]"),
                    Raw::parse(r#"{"diff":7,"subagents":7,"sessions":{}}"#),
                ] {
                    let end = End { details, ..ended("text").unwrap() };
                    assert!(!shown(&tool(name, arguments, Some(end)), 20, false).is_empty());
                }
            }
        }
    }

    // Case 31.
    #[test]
    fn a_progress_bar_leaves_one_row() {
        let bar: String = (0..10_000).map(|n| format!("{n}%\r")).collect();
        let rows = shown(&tool("bash", r#"{"command":"x"}"#, ended(&(bar + "done\n"))), 80, false);
        assert_eq!(rows, ["  $  x · 2s", "    done"]);
    }
}
