//! Tool calls with their results (`host.md` 8.15, `crew.md` TOOL-42 to TOOL-45).
//!
//! Reads arguments and details leniently: what does not fit is shown as it is,
//! never an error.

use std::collections::{HashMap, VecDeque};

use crew_base::entry::EntryBody;
use crew_base::id::CallId;
use crew_base::json::{Raw, from_text};
use crew_base::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use serde::Deserialize;
use serde_json::Value;

use super::Done;
use super::children::Children;
use super::markup::{Html, Style, duration};
use super::page::child_anchor;
use super::survey::text;
use super::task;
use super::transcript::{Look, Transcript};
use crate::error::Result;
use crate::json_text::{fields, pretty};
use crate::session::index::{Kind, Role};

/// Places of the results of one answer, by call.
pub(super) struct Results(HashMap<String, VecDeque<usize>>);

impl Results {
    /// The result of a call; ids may repeat, so each is given once.
    pub(super) fn take(&mut self, call: &CallId) -> Option<usize> {
        self.0.get_mut(call.as_str())?.pop_front()
    }
}

impl Transcript<'_> {
    /// Finds the results of an answer among the entries behind it.
    pub(super) fn results(
        &mut self,
        answer: &AssistantMessage,
        following: &[usize],
    ) -> Result<Results> {
        let mut results = Results(HashMap::new());
        let mut missing = answer.tool_calls().count();
        for place in following {
            match self.view.index.entries()[*place].kind {
                _ if missing == 0 => break,
                Kind::Message(Role::ToolResult) if !self.is_shown(*place) => {
                    if let Ok(ResultLine { message }) = from_text(&self.view.line(*place)?) {
                        results.0.entry(message.tool_call_id).or_default().push_back(*place);
                        missing -= 1;
                    }
                }
                Kind::Message(Role::User | Role::Assistant)
                | Kind::Compaction
                | Kind::BranchSummary => break,
                Kind::Message(_)
                | Kind::ModelChange
                | Kind::ThinkingLevelChange
                | Kind::ContextEdit
                | Kind::Custom
                | Kind::CustomMessage
                | Kind::Label
                | Kind::SessionInfo
                | Kind::Usage
                | Kind::Unknown => {}
            }
        }
        Ok(results)
    }

    /// Writes a call and, if there is one, its result.
    pub(super) fn call(
        &mut self,
        html: &mut Html<'_>,
        place: usize,
        call: &ToolCall,
        result_place: Option<usize>,
    ) -> Done {
        let result = match result_place {
            None => None,
            Some(at) => self.tool_result(at)?,
        };
        let failed = result.as_ref().is_some_and(|result| result.is_error);
        html.put(if failed { "<div class=\"call failed\"" } else { "<div class=\"call\"" })?;
        let shown_at = result_place.filter(|_| result.is_some());
        if let Some(at) = shown_at {
            self.mark_shown(at);
            html.between(" id=\"", &self.anchor(at), "\"")?;
        }
        html.put(">\n<h3>")?;
        html.inline(&call.name)?;
        let arguments = call.arguments.value();
        let target = target(&call.name, &arguments);
        html.between(" <code>", &target, "</code>")?;
        if failed {
            html.put(" <span class=\"wrong\">failed</span>")?;
        }
        if let Some(at) = shown_at {
            self.badges(html, at)?;
        }
        html.put("</h3>\n")?;
        child_link(html, self.children, self.children.of_call(place, call.id.as_str()))?;
        let has_diff = result.as_ref().is_some_and(|result| diff_of(result).is_some());
        call_preview(html, call, &arguments)?;
        call_arguments(html, call, &target, has_diff)?;
        match result {
            None => html.put("<p class=\"note\">No result was recorded.</p>\n")?,
            Some(result) => self.outcome(html, &result)?,
        }
        html.put("</div>\n")
    }

    /// Writes a result whose call is not in reach.
    pub(super) fn lone_result(
        &self,
        html: &mut Html<'_>,
        place: usize,
        result: &ToolResultMessage,
    ) -> Done {
        let class = if result.is_error { "result failed" } else { "result" };
        self.begin(html, Look { class, headline: "Tool result" }, place)?;
        html.put("<p class=\"meta\">")?;
        html.inline(&result.tool_name)?;
        html.put("</p>\n")?;
        self.outcome(html, result)?;
        self.end(html)
    }

    fn tool_result(&mut self, place: usize) -> Result<Option<ToolResultMessage>> {
        let Ok(entry) = self.view.entry(place)? else { return Ok(None) };
        if let EntryBody::Message { message: Message::ToolResult(result) } = entry.body {
            return Ok(Some(result));
        }
        Ok(None)
    }

    /// What a tool gave back: the diff of an edit, a confirmation of a crew
    /// tool, else its text and images.
    fn outcome(&self, html: &mut Html<'_>, result: &ToolResultMessage) -> Done {
        if let Some(shown) = diff_of(result) {
            diff(html, &shown)?;
        } else if let Some(records) = task::records(result) {
            task::children(html, &records, self.children)?;
        } else if let Some(shown) = confirmation(result) {
            html.put("<p class=\"note\">")?;
            html.inline(&shown)?;
            html.put("</p>\n")?;
        } else if result.content.is_empty() {
            html.put("<p class=\"note\">No output.</p>\n")?;
        } else {
            html.put(if result.is_error { "<div class=\"wrong\">\n" } else { "<div>\n" })?;
            output(html, result)?;
            html.put("</div>\n")?;
        }
        match result.duration_ms.filter(|ms| *ms >= 1000) {
            None => Ok(()),
            Some(ms) => html.between("<p class=\"meta\">", &duration(ms), "</p>\n"),
        }
    }
}

/// Writes a link to a child's section.
pub(super) fn child_link(html: &mut Html<'_>, children: &Children, number: Option<usize>) -> Done {
    let Some(number) = number.filter(|number| *number < children.list.len()) else {
        return Ok(());
    };
    let anchor = child_anchor(number);
    html.between(
        "<p class=\"meta\"><a href=\"#",
        &anchor,
        "\">Transcript of the subagent</a></p>\n",
    )
}

/// Errors are always open, since a reader looks for them (`host.md` 8.15).
fn output(html: &mut Html<'_>, result: &ToolResultMessage) -> Done {
    for block in &result.content {
        match block {
            Block::Text(block) if result.is_error => html.block(Style::Code, &block.text)?,
            Block::Text(block) => html.foldable("Result", Style::Code, &block.text)?,
            Block::Image(image) => html.image(image)?,
            Block::Thinking(block) => html.folded("Thinking", Style::Prose, &block.thinking)?,
            Block::ToolCall(call) => html.folded("Call", Style::Code, call.arguments.text())?,
            Block::Other(raw) => html.folded("Other content", Style::Code, &pretty(raw.text()))?,
        }
    }
    Ok(())
}

/// What a call works on, in one line (`host.md` 8.15, `crew.md` TOOL-42).
fn target(name: &str, arguments: &Value) -> String {
    let argument = |key| text(arguments, key).unwrap_or("...");
    let number = |key| arguments.get(key).and_then(Value::as_u64);
    let shown = match name {
        "bash" => argument("command").lines().next().unwrap_or_default().to_owned(),
        "read" => match (number("offset"), number("limit")) {
            (None, None) => argument("path").to_owned(),
            (from, None) => format!("{}:{}", argument("path"), from.unwrap_or(1)),
            (from, Some(limit)) => {
                let from = from.unwrap_or(1);
                let to = from.saturating_add(limit).saturating_sub(1);
                format!("{}:{from}-{to}", argument("path"))
            }
        },
        "write" | "edit" => argument("path").to_owned(),
        "ls" => text(arguments, "path").unwrap_or(".").to_owned(),
        "grep" | "find" => {
            let place = text(arguments, "path").unwrap_or(".");
            format!("{} in {place}", argument("pattern"))
        }
        "crew_spawn" => format!("{} · {}", argument("subagent"), argument("brief")),
        "crew_respond" | "crew_done" => argument("subagent_id").to_owned(),
        "crew_abort" => abort_target(arguments),
        "task" => task_target(arguments),
        _ => String::new(),
    };
    crew_base::text::sanitise_inline(&crew_base::text::excerpt(&shown, TARGET_CHARS_MAX))
}

fn task_target(arguments: &Value) -> String {
    match arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice) {
        Some([item]) => task_target(item),
        Some(items) => format!("{} children", items.len()),
        None => {
            let named = ["name", "agent"].iter().find_map(|key| text(arguments, key));
            named.unwrap_or("task").to_owned()
        }
    }
}

fn abort_target(arguments: &Value) -> String {
    if arguments.get("all").and_then(Value::as_bool) == Some(true) {
        return "all".to_owned();
    }
    match (text(arguments, "subagent_id"), arguments.get("subagent_ids").and_then(Value::as_array))
    {
        (Some(id), _) => id.to_owned(),
        (None, Some(ids)) => format!("{} ids", ids.len()),
        (None, None) => "...".to_owned(),
    }
}

/// The telling argument, where the line above cannot hold it (`crew.md` TOOL-43,
/// TOOL-44).
fn call_preview(html: &mut Html<'_>, call: &ToolCall, arguments: &Value) -> Done {
    let preview = match call.name.as_str() {
        "bash" => text(arguments, "command").filter(|command| command.contains('\n')),
        "crew_spawn" => arguments.get("task").and_then(|task| text(task, "goal")),
        "crew_respond" => text(arguments, "message"),
        _ => None,
    };
    let style = if call.name == "bash" { Style::Code } else { Style::Prose };
    preview.map_or(Ok(()), |preview| html.foldable("Call", style, preview))
}

/// All arguments, folded; left out when the line above told them. Those of an
/// edit whose diff is shown are folded once more.
fn call_arguments(html: &mut Html<'_>, call: &ToolCall, target: &str, has_diff: bool) -> Done {
    if let Some(error) = &call.arguments_error {
        html.put("<p class=\"wrong\">The arguments were no JSON object.</p>\n")?;
        return html.block(Style::Code, error);
    }
    let json = call.arguments.text();
    let members = fields(json).unwrap_or_default();
    let told = match members.as_slice() {
        [] => json == "{}",
        [only] => from_text::<String>(&json[only.value.clone()]).is_ok_and(|value| value == target),
        _ => false,
    };
    if told {
        return Ok(());
    }
    html.put("<details><summary>Arguments</summary>\n")?;
    if members.is_empty() {
        html.block(Style::Code, &pretty(json))?;
    }
    for member in members {
        let value = &json[member.value];
        html.put("<h4>")?;
        html.inline(&member.key)?;
        html.put("</h4>\n")?;
        match from_text::<String>(value) {
            Ok(value) => html.block(Style::Code, &value)?,
            Err(_) if has_diff && member.key == "edits" => {
                html.folded("Edits", Style::Code, &pretty(value))?;
            }
            Err(_) => html.block(Style::Code, &pretty(value))?,
        }
    }
    html.put("</details>\n")
}

/// The diff that an edit left for faces (`host.md` 4.4.7).
fn diff_of(result: &ToolResultMessage) -> Option<String> {
    if result.is_error || result.tool_name != "edit" {
        return None;
    }
    let details = result.details.as_ref().map(Raw::value)?;
    text(&details, "diff").filter(|diff| !diff.is_empty()).map(str::to_owned)
}

fn diff(html: &mut Html<'_>, diff: &str) -> Done {
    html.put("<pre class=\"diff\">\n")?;
    for line in diff.lines() {
        html.put(match line.as_bytes().first() {
            Some(b'+') => "<span class=\"added\">",
            Some(b'-') => "<span class=\"removed\">",
            _ => "<span>",
        })?;
        html.between("", line, "</span>")?;
    }
    html.put("</pre>\n")
}

/// What a crew tool did, from its details (`crew.md` TOOL-45).
fn confirmation(result: &ToolResultMessage) -> Option<String> {
    let verb = match result.tool_name.as_str() {
        _ if result.is_error => return None,
        "crew_spawn" => "Started",
        "crew_respond" => "Answered",
        "crew_done" => "Closed",
        _ => return None,
    };
    let details = result.details.as_ref().map(Raw::value)?;
    Some(format!("{verb} {}", text(&details, "subagentId")?))
}

#[derive(Deserialize)]
struct ResultLine {
    message: ResultId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultId {
    tool_call_id: String,
}

const TARGET_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_line_names_what_the_tool_works_on() {
        // host.md 8.15, crew.md TOOL-42
        let check = |name: &str, arguments: Value, expected: &str| {
            assert_eq!(target(name, &arguments), expected, "{name}");
        };
        check("bash", json!({"command": "ls\n\u{1b}[2Jx"}), "ls");
        check("read", json!({"path": "a.rs"}), "a.rs");
        check("read", json!({"path": "a.rs", "offset": 5}), "a.rs:5");
        check("read", json!({"path": "a.rs", "offset": 5, "limit": 10}), "a.rs:5-14");
        check(
            "read",
            json!({"path": "a", "offset": u64::MAX, "limit": u64::MAX}),
            &format!("a:{0}-{1}", u64::MAX, u64::MAX - 1),
        );
        check("grep", json!({"pattern": "x"}), "x in .");
        check("crew_spawn", json!({"subagent": "scout", "brief": "look"}), "scout · look");
        check("crew_spawn", json!({"subagent": 7}), "... · ...");
        check("crew_abort", json!({"all": true}), "all");
        check("crew_abort", json!({"subagent_ids": ["a", "b"]}), "2 ids");
        check("crew_abort", json!([]), "...");
        check("task", json!({"tasks": [{"name": "Ann", "agent": "scout"}]}), "Ann");
        check("task", json!({"tasks": [{}, {}]}), "2 children");
        check("task", json!({"tasks": 7}), "task");
        check("novel", json!({"path": "x"}), "");
    }
}
