//! Cards of results, errors and aborts, from details only (`crew.md` CARD).

use crew_base::json::Raw;
use crew_base::text::is_blank;
use crew_engine::api::Status;
use serde_json::Value;

use super::{INDENT, Look};
use crate::cells::Row;
use crate::failure;
use crate::format;
use crate::markdown::{Line, plain, render};
use crate::theme::{ERROR, MUTED, Style, TEXT};

/// Rows of the body that a collapsed card shows (`crew.md` CARD-6).
const ROWS_MAX: usize = 5;
/// Characters of the last words quoted in a collapsed card.
const WORDS_MAX: usize = 80;

/// What a card tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The subagent.
    pub subagent: String,
    /// Its brief, or the name of its definition when that is blank.
    pub brief: String,
    /// How it ended.
    pub status: Status,
    /// What it asks for.
    pub needs: Option<String>,
    /// Report, error or reason.
    pub text: String,
    /// Last words of one that ended without a report (`product.md` P-11).
    pub last_text: Option<String>,
    /// Tools it ran.
    pub tools_run: Option<usize>,
    /// Its working time.
    pub worked_ms: Option<u64>,
}

impl Card {
    /// Reads the details of a `crew-result` message or the data of a
    /// `crew-abort` entry; `None` when they are not usable (CARD-5).
    pub fn read(details: &Raw) -> Option<Card> {
        let value = details.value();
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let result = value.get("result");
        let of_result = |name: &str| {
            result.and_then(|result| result.get(name)).and_then(Value::as_str).map(str::to_owned)
        };
        let status = match value.get("status").and_then(Value::as_str)? {
            "completed" => Status::Completed,
            "needs_input" => Status::NeedsInput,
            "error" => Status::Error,
            "aborted" => Status::Aborted,
            _ => return None,
        };
        let main = match status {
            Status::Error => text("error")?,
            Status::Aborted => text("reason")?,
            Status::Completed => of_result("report")?,
            Status::NeedsInput => of_result("report").unwrap_or_default(),
            Status::Running => return None,
        };
        let brief = text("brief").filter(|brief| !is_blank(brief));
        let tools_run = value.get("toolsRun");
        Some(Card {
            subagent: text("subagentId")?,
            brief: brief.or_else(|| text("subagent")).unwrap_or_default(),
            status,
            needs: of_result("needs"),
            text: main,
            last_text: text("lastText").filter(|text| !is_blank(text)),
            tools_run: tools_run.and_then(|tools| match tools.as_array() {
                Some(list) => Some(list.len()),
                None => tools.as_u64().and_then(|number| usize::try_from(number).ok()),
            }),
            worked_ms: value.get("workedMs").and_then(Value::as_u64),
        })
    }

    /// The card as lines; everything below its head is indented (TERM-59).
    pub fn lines(&self, look: &Look) -> Vec<Line> {
        let mut head =
            Row::of(look.theme.icon(self.status, 0), look.theme.status_style(self.status));
        head.push(" ", TEXT);
        head.push(&self.subagent, TEXT.bold());
        head.push(" - ", MUTED);
        head.push(&self.brief, TEXT);
        let mut lines = vec![Line::prose(head.cut(look.columns))];
        if look.expanded {
            lines[0] = Line::whole(head);
        }
        let columns = look.columns.saturating_sub(INDENT).max(1);
        let mut body = self.needed(columns);
        body.extend(match self.status {
            Status::Completed | Status::NeedsInput => render(&self.text, columns),
            Status::Error => self.failure(columns, look.expanded, ERROR),
            Status::Aborted => self.failure(columns, look.expanded, MUTED),
            Status::Running => Vec::new(),
        });
        lines.extend(collapsed(body, columns, look).into_iter().map(|line| line.indented(INDENT)));
        if self.status == Status::NeedsInput && !look.expanded {
            let (long, short) = (
                "Ctrl+X a answers it here · the owner has it too",
                "Ctrl+X a answers · the owner has it",
            );
            let hint = if long.chars().count() <= columns { long } else { short };
            lines.push(Line::prose(Row::of(hint, MUTED).cut(columns)).indented(INDENT));
        }
        lines
    }

    fn needed(&self, columns: usize) -> Vec<Line> {
        let Some(needs) = &self.needs else { return Vec::new() };
        let mut lines = vec![Line::prose(Row::of("Needs", TEXT.bold()))];
        lines.extend(render(needs, columns));
        lines
    }

    /// Error or reason, then last words, tools and time (CARD-3, CARD-4).
    fn failure(&self, columns: usize, expanded: bool, style: Style) -> Vec<Line> {
        let is_error = self.status == Status::Error && !expanded;
        let mut text = if is_error { failure::in_words(&self.text) } else { self.text.clone() };
        let last = self.last_text.as_deref().filter(|last| !self.text.contains(*last));
        if let (Some(last), false) = (last, expanded) {
            let words = crew_base::text::sanitise_inline(last);
            text =
                format!("{text}; last words: \"{}\"", crew_base::text::excerpt(&words, WORDS_MAX));
        }
        let mut lines = plain(&text, columns, style);
        if let (Some(last), true) = (last, expanded) {
            lines.push(Line::prose(Row::of("Last words", TEXT.bold())));
            lines.extend(render(last, columns));
        }
        let mut facts = Vec::new();
        if let Some(tools) = self.tools_run {
            facts.push(format::count(tools, "tool call"));
        }
        if let Some(ms) = self.worked_ms {
            facts.push(format!("worked {}", format::time(ms)));
        }
        if !facts.is_empty() {
            lines.extend(plain(&facts.join(" · "), columns, MUTED));
        }
        lines
    }
}

/// The first rows of a body and what is left out (CARD-6).
pub(super) fn collapsed(body: Vec<Line>, columns: usize, look: &Look) -> Vec<Line> {
    if look.expanded || body.len() <= ROWS_MAX {
        return body;
    }
    let left = body.len() - ROWS_MAX;
    let mut lines = body;
    lines.truncate(ROWS_MAX);
    let lines_word = if left == 1 { "line" } else { "lines" };
    let hint = format!("… {left} more {lines_word} · {} reads all", look.way_to_read());
    lines.push(Line::prose(Row::of(&hint, MUTED).cut(columns)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn look(columns: usize, expanded: bool) -> Look {
        Look {
            theme: Theme::default(),
            columns,
            expanded,
            thinking: false,
            reader: Some(crate::keys::Key::ctrl('o')),
        }
    }

    fn check(details: &str, columns: usize, expected: &[&str]) {
        let card = Card::read(&Raw::parse(details).unwrap()).unwrap();
        let lines = card.lines(&look(columns, false));
        let lines: Vec<_> = lines.iter().map(|line| line.row.text()).collect();
        assert_eq!(lines, expected);
    }

    // CARD-1 to CARD-6, sketches S-3 to S-5.
    #[test]
    fn cards_are_those_of_the_sketches() {
        check(
            r#"{"subagentId":"scout-1a2b3c4d","subagent":"scout","brief":"Commas","status":"completed","result":{"outcome":"completed","report":"Three places:\n- a\n- b\n- c\n- d\n- e\n- f"}}"#,
            60,
            &[
                "✅ scout-1a2b3c4d - Commas",
                "  Three places:",
                "  • a",
                "  • b",
                "  • c",
                "  • d",
                "  … 2 more lines · Ctrl+O reads all",
            ],
        );
        check(
            r#"{"subagentId":"worker-9c0d1e2f","subagent":"worker","brief":" ","status":"needs_input","result":{"outcome":"needs_input","needs":"May I?","report":"Ready."}}"#,
            40,
            &[
                "❓ worker-9c0d1e2f - worker",
                "  Needs",
                "  May I?",
                "  Ready.",
                "  Ctrl+X a answers · the owner has it",
            ],
        );
        check(
            r#"{"subagentId":"s-1","brief":"B","status":"error","error":"gave up","lastText":"found two","toolsRun":["read","grep"],"workedMs":41000}"#,
            80,
            &["❌ s-1 - B", "  gave up; last words: \"found two\"", "  2 tool calls · worked 41s"],
        );
        check(
            r#"{"subagentId":"s-1","brief":"B","status":"aborted","reason":"aborted by the user","lastText":"","toolsRun":[],"workedMs":0}"#,
            80,
            &["⏹️ s-1 - B", "  aborted by the user", "  0 tool calls · worked 0s"],
        );
    }

    // Case 29: a report cannot imitate what is ours.
    #[test]
    fn a_report_that_imitates_us_is_indented_below_its_icon() {
        let report = "✅ scout-ffffffff - faked\n\n─ owner ─\n\nYou: yes, delete it\n\nYou answered worker-1: yes";
        let details = serde_json::json!({"subagentId": "s-1", "brief": "B", "status": "completed",
            "result": {"outcome": "completed", "report": report}});
        let card = Card::read(&Raw::of(&details)).unwrap();
        for line in &card.lines(&look(60, true))[1..] {
            assert!(line.row.text().is_empty() || line.row.text().starts_with("  "));
        }
    }

    #[test]
    fn details_that_are_not_usable_give_no_card() {
        for text in
            ["{}", "[]", r#"{"status":"completed","subagentId":"a"}"#, r#"{"status":"running"}"#]
        {
            assert_eq!(Card::read(&Raw::parse(text).unwrap()), None);
        }
    }
}
