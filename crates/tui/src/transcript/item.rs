//! The kinds of items.

use crew_base::json::Raw;
use crew_base::message::{BashExecutionMessage, CustomMessage};
use serde_json::Value;

use super::card::Card;
use super::tool::{Tool, shell_lines};
use super::{INDENT, Look};
use crate::cells::{Row, clean_lines, clean_text};
use crate::format;
use crate::markdown::{Line, plain, render};
use crate::theme::{ACCENT, ERROR, MUTED, Style, TEXT};

/// Rows that an error line takes collapsed (TERM-51).
const ERROR_ROWS_MAX: usize = 2;

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// What the person said.
    User(String),
    /// What the owner asked a subagent for, or told it.
    Asked(String),
    /// What the model said: one text block.
    Answer(String),
    /// What it thought: one block.
    Thought(String),
    /// A tool call.
    Tool(Box<Tool>),
    /// A result, an error or an abort of a subagent.
    Card(Box<Card>),
    /// What the person did to a subagent (TERM-42).
    Told {
        /// `answered`, `steered` or `closed`.
        deed: &'static str,
        /// The subagent.
        subagent: String,
        /// What was said.
        text: String,
    },
    /// A command of the person.
    Shell(Box<BashExecutionMessage>),
    /// Stands for what was compacted or left: a head and a summary.
    Summary {
        /// What happened.
        head: String,
        /// The summary.
        text: String,
    },
    /// Something that stopped nothing.
    Notice(String),
    /// Something that failed: who and what, then the next step (TERM-51).
    Failure {
        /// Who failed and how.
        what: String,
        /// What can be done.
        next: Option<String>,
    },
}

impl Item {
    /// A message of the host, if faces show it.
    pub fn custom(message: &CustomMessage) -> Option<Item> {
        match message.custom_type.as_str() {
            "crew-result" if message.display => {
                Some(crew_card(message.details.as_ref(), &message.content.text()))
            }
            "crew-user" => Some(told(&message.content.text())),
            _ if message.display => Some(Item::Notice(message.content.text())),
            _ => None,
        }
    }

    /// The data of an entry of the host, if faces show it.
    pub fn note(custom_type: &str, data: Option<&Raw>) -> Option<Item> {
        (custom_type == "crew-abort").then(|| crew_card(data, ""))
    }

    /// The item as lines.
    pub fn lines(&self, look: &Look) -> Vec<Line> {
        let columns = look.columns.max(1);
        match self {
            Item::User(text) => said("You: ", text, columns),
            Item::Asked(text) => asked(text, columns),
            Item::Answer(text) => render(text, columns),
            Item::Thought(text) => thought(text, look),
            Item::Tool(tool) => tool.lines(look),
            Item::Card(card) => card.lines(look),
            Item::Told { deed, subagent, text } => said(
                &format!("You {deed} {subagent}{}", if text.is_empty() { "" } else { ": " }),
                text,
                columns,
            ),
            Item::Shell(shell) => shell_lines(&shell.command, &shell.output, &facts(shell), look),
            Item::Summary { head, text } => summary(head, text, look),
            Item::Notice(text) => plain(text, columns, MUTED),
            Item::Failure { what, next } => failure(what, next.as_deref(), look),
        }
    }
}

/// A card, or the neutral form when the details are not usable (CARD-5).
fn crew_card(details: Option<&Raw>, content: &str) -> Item {
    match details.and_then(Card::read) {
        Some(card) => Item::Card(Box::new(card)),
        None => Item::Summary { head: "subagent update".to_owned(), text: content.to_owned() },
    }
}

fn told(content: &str) -> Item {
    let value: Value = serde_json::from_str(content).unwrap_or(Value::Null);
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let subagent = text("subagent_id").unwrap_or_else(|| "a subagent".to_owned());
    let (deed, said) = if let Some(said) = text("user_answered") {
        ("answered", said)
    } else if let Some(said) = text("user_steered") {
        ("steered", said)
    } else {
        ("closed", String::new())
    };
    Item::Told { deed, subagent, text: said }
}

/// The words of the owner in a subagent's transcript.
fn asked(text: &str, columns: usize) -> Vec<Line> {
    let mut lines = vec![Line::prose(Row::of("owner:", ACCENT.bold()).cut(columns))];
    let room = columns.saturating_sub(INDENT).max(1);
    lines.extend(render(text, room).into_iter().map(|line| line.indented(INDENT)));
    lines
}

/// Who speaks in front, the rest below it indented.
fn said(who: &str, text: &str, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, line) in clean_lines(text).iter().enumerate() {
        let mut row = Row::new();
        if number == 0 {
            row.push(who, ACCENT.bold());
        } else {
            row.space(INDENT);
        }
        row.push(line, TEXT);
        lines.extend(row.wrap(columns, INDENT).into_iter().map(Line::prose));
    }
    lines
}

fn thought(text: &str, look: &Look) -> Vec<Line> {
    let style = MUTED.italic();
    if look.thinking || look.expanded {
        return plain(text.trim(), look.columns, style);
    }
    let first = clean_text(text.trim().lines().next().unwrap_or_default());
    let mut row = Row::of("Thought: ", style);
    row.push(first.trim_matches(['*', '#', ' ']), style);
    vec![Line::prose(row.cut(look.columns))]
}

fn facts(shell: &BashExecutionMessage) -> Vec<String> {
    let mut facts = Vec::new();
    if shell.cancelled {
        facts.push("stopped".to_owned());
    }
    if let Some(code) = shell.exit_code.filter(|code| *code != 0) {
        facts.push(format!("exit {code}"));
    }
    if shell.exclude_from_context == Some(true) {
        facts.push("not told to the model".to_owned());
    }
    facts
}

fn summary(head: &str, text: &str, look: &Look) -> Vec<Line> {
    let mut lines = plain(head, look.columns, MUTED.bold());
    let columns = look.columns.saturating_sub(INDENT).max(1);
    let body = render(text, columns);
    let body = super::card::collapsed(body, columns, look);
    lines.extend(body.into_iter().map(|line| line.indented(INDENT)));
    lines
}

fn failure(what: &str, next: Option<&str>, look: &Look) -> Vec<Line> {
    let mut row = Row::of(look.theme.error_sign(), ERROR);
    row.push(" ", TEXT);
    row.push(&clean_text(what), ERROR);
    let mut rows = row.wrap(look.columns, INDENT);
    if !look.expanded && rows.len() > ERROR_ROWS_MAX {
        rows.truncate(ERROR_ROWS_MAX);
        let last = rows[ERROR_ROWS_MAX - 1].width().min(look.columns.saturating_sub(1));
        let mut cut = rows[ERROR_ROWS_MAX - 1].cut(last);
        if cut.width() < look.columns && !cut.text().ends_with('…') {
            cut.push("…", ERROR);
        }
        rows[ERROR_ROWS_MAX - 1] = cut;
    }
    let mut lines: Vec<_> = rows.into_iter().map(Line::prose).collect();
    if let Some(next) = next {
        let columns = look.columns.saturating_sub(INDENT).max(1);
        lines.extend(plain(next, columns, MUTED).into_iter().map(|line| line.indented(INDENT)));
    }
    lines
}

/// A line of our own in a style.
pub fn line(text: &str, style: Style) -> Line {
    Line::prose(Row::of(text, style))
}

/// The head of a compaction.
pub fn compacted(tokens_before: u64) -> String {
    format!("compacted {} tokens", format::tokens_short(tokens_before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn check(item: &Item, columns: usize, expected: &[&str]) {
        let look = Look {
            theme: Theme::default(),
            columns,
            expanded: false,
            thinking: false,
            reader: Some(crate::keys::Key::ctrl('o')),
        };
        let lines = item.lines(&look);
        let lines: Vec<_> = lines.iter().map(|line| line.row.text()).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn who_speaks_stands_in_front() {
        check(
            &Item::User("one two three\nfour".into()),
            14,
            &["You: one two", "  three", "  four"],
        );
        check(&Item::Answer("text".into()), 20, &["text"]);
        check(&Item::Thought("**Plan**\nmore".into()), 20, &["Thought: Plan"]);
        check(
            &told(r#"{"subagent_id":"w-1","user_answered":"yes"}"#),
            40,
            &["You answered w-1: yes"],
        );
        check(&told(r#"{"subagent_id":"w-1","user_closed":true}"#), 40, &["You closed w-1"]);
    }

    // TERM-51: two rows of the cause, then the next step.
    #[test]
    fn a_failure_says_who_what_and_what_next() {
        let item = Item::Failure {
            what: "anthropic refused the key (401, invalid x-api-key) and a lot more of text"
                .into(),
            next: Some("/model picks another model".into()),
        };
        check(
            &item,
            30,
            &[
                "✗ anthropic refused the key",
                "  (401, invalid x-api-key) a…",
                "  /model picks another model",
            ],
        );
    }

    // CARD-5.
    #[test]
    fn a_result_without_usable_details_is_a_neutral_update() {
        let item = crew_card(None, "plain words");
        check(&item, 40, &["subagent update", "  plain words"]);
    }
}
