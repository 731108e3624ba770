//! Results of a `task` call: each child by itself, from details only (`task.md`
//! 1.2, OBS-5), so that no envelope shows.

use crew_base::json::Raw;
use crew_base::message::ToolResultMessage;
use serde_json::Value;

use super::Done;
use super::call::child_link;
use super::children::Children;
use super::markup::{Html, Style, count, duration};
use super::survey::text;

/// The records of a call; none when the details hold no usable ones.
pub(super) fn records(result: &ToolResultMessage) -> Option<Vec<Value>> {
    if result.tool_name != "task" {
        return None;
    }
    let details = result.details.as_ref().map(Raw::value)?;
    let records = details.get("results")?.as_array()?;
    let is_usable =
        !records.is_empty() && records.iter().all(|record| text(record, "id").is_some());
    is_usable.then(|| records.clone())
}

/// Writes the children of a call.
pub(super) fn children(html: &mut Html<'_>, records: &[Value], known: &Children) -> Done {
    records.iter().try_for_each(|record| child(html, record, known))
}

fn child(html: &mut Html<'_>, record: &Value, known: &Children) -> Done {
    let id = text(record, "id").unwrap_or_default();
    html.put("<h4>")?;
    html.inline(id)?;
    html.between(" · ", text(record, "agent").unwrap_or_default(), "")?;
    let (word, is_well) = status(record);
    let mark = if is_well { " · <span>" } else { " · <span class=\"wrong\">" };
    html.between(mark, word, "</span></h4>\n")?;
    html.between("<p class=\"meta\">", &figures(record), "</p>\n")?;
    if let Some(reason) = reason(record) {
        html.block(Style::Code, reason)?;
    }
    if let Some(output) = text(record, "output").filter(|output| !output.trim().is_empty()) {
        html.foldable("Output", Style::Code, output)?;
    }
    child_link(html, known, known.of_task(id))
}

/// The status as the envelope words it (DELIV-2, OP-15), and whether it is good.
fn status(record: &Value) -> (&'static str, bool) {
    let flag = |name: &str| record.get(name).and_then(Value::as_bool);
    if flag("aborted") == Some(true) {
        ("cancelled", false)
    } else if record.get("exitCode").and_then(Value::as_i64) != Some(0) {
        ("failed", false)
    } else if text(record, "error").is_some() || flag("changesApplied") == Some(false) {
        ("merge failed", false)
    } else {
        ("completed", true)
    }
}

fn reason(record: &Value) -> Option<&str> {
    let reasons = ["abortReason", "error", "stderr"];
    reasons.iter().find_map(|name| text(record, name).filter(|reason| !reason.is_empty()))
}

fn figures(record: &Value) -> String {
    let number = |name: &str| record.get(name).and_then(Value::as_u64).unwrap_or(0);
    let requests = usize::try_from(number("requests")).unwrap_or(usize::MAX);
    let mut facts = vec![duration(number("durationMs")), count(requests, "request")];
    facts.extend(text(record, "outputPath").map(str::to_owned));
    facts.extend(text(record, "patchPath").map(str::to_owned));
    facts.join(" · ")
}
