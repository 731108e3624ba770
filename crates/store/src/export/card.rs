//! Cards of the crew: results, errors, abort entries, endings (`crew.md` CARD).
//!
//! Built from details only, so that no protocol text shows (CARD-5).

use crew_base::json::from_text;
use crew_base::message::{Content, Usage};
use serde_json::Value;

use super::Done;
use super::call::child_link;
use super::markup::{Html, Style, count, duration};
use super::page::spent;
use super::survey::{Sum, text};
use super::transcript::{Look, Transcript};

impl Transcript<'_> {
    /// A result, an error or an abort of a subagent (`crew.md` CARD-1 to CARD-4).
    pub(super) fn settled(&self, html: &mut Html<'_>, place: usize, data: &Value) -> Done {
        let (class, headline) = match text(data, "status") {
            Some("completed") => ("completed", "✅ Crew result"),
            Some("needs_input") => ("needs_input", "❓ Crew question"),
            Some("aborted") => ("failed", "⏹️ Crew abort"),
            Some("error") => ("failed", "❌ Crew error"),
            _ => ("custom", "Subagent update"),
        };
        self.begin(html, Look { class, headline }, place)?;
        let id = text(data, "subagentId").unwrap_or_default();
        html.put("<p><strong>")?;
        html.inline(id)?;
        html.put("</strong> · ")?;
        html.inline(text(data, "brief").unwrap_or_default())?;
        html.put("</p>\n")?;
        if let Some(result) = data.get("result") {
            if let Some(needs) = text(result, "needs") {
                html.put("<h4>Needs</h4>\n")?;
                html.block(Style::Prose, needs)?;
                html.put("<h4>Report</h4>\n")?;
            }
            html.block(Style::Prose, text(result, "report").unwrap_or_default())?;
        }
        how_far(html, data)?;
        child_link(html, self.children, self.children.of_subagent(id))?;
        self.end(html)
    }

    /// A result without usable details (`crew.md` CARD-5).
    pub(super) fn neutral(&self, html: &mut Html<'_>, place: usize, content: &Content) -> Done {
        self.begin(html, Look { class: "custom", headline: "Subagent update" }, place)?;
        html.block(Style::Prose, &content.text())?;
        self.end(html)
    }

    /// What the person did to a subagent (`terminal.md` TERM-42).
    pub(super) fn person(&self, html: &mut Html<'_>, place: usize, content: &Content) -> Done {
        let value: Value = from_text(&content.text()).unwrap_or_default();
        let Some(id) = text(&value, "subagent_id") else {
            return self.neutral(html, place, content);
        };
        let words = [
            ("user_answered", "You answered "),
            ("user_steered", "You steered "),
            ("user_closed", "You closed "),
        ];
        self.begin(html, Look { class: "user", headline: "You, to the crew" }, place)?;
        for (key, verb) in words {
            let Some(said) = value.get(key) else { continue };
            html.put("<p>")?;
            html.put(verb)?;
            html.inline(id)?;
            html.put("</p>\n")?;
            if let Some(said) = said.as_str() {
                html.block(Style::Prose, said)?;
            }
        }
        self.end(html)
    }

    /// How a child ended without a result (`crew.md` LIFE-5).
    pub(super) fn ending(&self, html: &mut Html<'_>, place: usize, data: &Value) -> Done {
        let headline = match text(data, "status") {
            Some("aborted") => "⏹️ Ended by an abort",
            _ => "❌ Ended with an error",
        };
        self.begin(html, Look { class: "failed", headline }, place)?;
        how_far(html, data)?;
        self.end(html)
    }

    /// What a subagent has cost so far (`product.md` P-14i).
    pub(super) fn crew_usage(&self, html: &mut Html<'_>, place: usize, data: &Value) -> Done {
        let usage = data.get("usage").map(Value::to_string).unwrap_or_default();
        let usage: Usage = from_text(&usage).unwrap_or_default();
        self.begin_note(html, place)?;
        html.put("Crew so far: ")?;
        html.inline(text(data, "subagentId").unwrap_or_default())?;
        html.put(" ")?;
        html.inline(&spent(&Sum::of(&usage)))?;
        html.put("</p>\n")
    }
}

/// What ended it, its last text, the tools run and the working time
/// (`product.md` P-11).
fn how_far(html: &mut Html<'_>, data: &Value) -> Done {
    if let Some(cause) = text(data, "error").or(text(data, "reason")) {
        html.put("<div class=\"wrong\">\n")?;
        html.block(Style::Prose, cause)?;
        html.put("</div>\n")?;
    }
    if let Some(last) = text(data, "lastText") {
        html.put("<h4>Its last words</h4>\n")?;
        html.block(Style::Prose, last)?;
    }
    let number = |key| data.get(key).and_then(Value::as_u64);
    let tools = number("toolsRun").and_then(|tools| usize::try_from(tools).ok());
    let mut facts = Vec::new();
    facts.extend(tools.map(|tools| format!("{} run", count(tools, "tool"))));
    facts.extend(number("workedMs").map(|ms| format!("worked {}", duration(ms))));
    if facts.is_empty() {
        return Ok(());
    }
    html.between("<p class=\"meta\">", &facts.join(" · "), "</p>\n")
}
