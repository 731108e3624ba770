//! A transcript as a Markdown document (`terminal.md` TERM-50).
//!
//! Owns how items are written there. What tools printed stands in fences that
//! nothing in it can close. Read `item` for what there is.

use crew_engine::api::Status;

use super::card::Card;
use super::item::Item;
use super::tool::Tool;
use crate::cells::{clean_lines, clean_text};

/// The document: a title, then everything in order. `depth` is the level of
/// the title's heading; headings below it are one deeper.
pub fn document(title: &str, items: &[Item], depth: usize) -> String {
    let level = "#".repeat(depth);
    let mut text = format!("{level} {}\n", clean_text(title));
    for item in items {
        text.push('\n');
        text.push_str(&block(item, &format!("{level}#")));
    }
    text
}

fn block(item: &Item, level: &str) -> String {
    match item {
        Item::User(said) => format!("{level} You\n\n{}\n", written(said)),
        Item::Asked(said) => format!("{level} Owner\n\n{}\n", written(said)),
        Item::Answer(said) => format!("{}\n", written(said)),
        Item::Thought(thought) => quoted(thought),
        Item::Tool(tool) => call(tool),
        Item::Card(card) => of_card(card, level),
        Item::Told { deed, subagent, text } => {
            format!("*You {deed} {}: {}*\n", clean_text(subagent), clean_text(text))
        }
        Item::Shell(shell) => {
            format!(
                "`! {}`\n\n{}",
                clean_text(&shell.command).replace('`', "'"),
                fence(&shell.output)
            )
        }
        Item::Summary { head, text } => {
            format!("*{}*\n\n{}", clean_text(head), quoted(text))
        }
        Item::Notice(text) => format!("*{}*\n", clean_text(text)),
        Item::Failure { what, next } => {
            let next = next.as_ref().map(|next| format!(" ({})", clean_text(next)));
            format!("**Error:** {}{}\n", clean_text(what), next.unwrap_or_default())
        }
    }
}

fn call(tool: &Tool) -> String {
    let head = clean_text(&tool.title()).replace('`', "'");
    let Some(end) = &tool.end else { return format!("- `{head}`\n") };
    let failed = if end.is_error { " failed" } else { "" };
    let output = end.text.trim_matches('\n');
    let body = if output.is_empty() { String::new() } else { format!("\n{}", fence(output)) };
    format!("- `{head}`{failed}\n{body}")
}

fn of_card(card: &Card, level: &str) -> String {
    let sign = match card.status {
        Status::Running => "works",
        Status::Completed => "is done",
        Status::NeedsInput => "needs input",
        Status::Error => "failed",
        Status::Aborted => "was stopped",
    };
    let head = format!("{} - {}", clean_text(&card.subagent), clean_text(&card.brief));
    let needs = card.needs.as_ref().map(|needs| format!("\n{}\n", written(needs)));
    format!("{level} {head}: {sign}\n{}\n{}\n", needs.unwrap_or_default(), quoted(&card.text))
}

/// Markdown as it was written, without controls.
fn written(text: &str) -> String {
    clean_lines(text.trim_matches('\n')).join("\n")
}

fn quoted(text: &str) -> String {
    let lines = clean_lines(text.trim_matches('\n'));
    lines.iter().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect()
}

/// A text in a fence longer than every run of its sign in it.
pub fn fence(text: &str) -> String {
    let lines = clean_lines(text.trim_matches('\n'));
    let run = |line: &String| line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let longest = lines.iter().map(run).max().unwrap_or(0);
    let marks = "`".repeat(longest.max(2) + 1);
    format!("{marks}\n{}\n{marks}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tool::End;
    use crew_base::id::CallId;
    use crew_base::json::Raw;
    use crew_base::time::Time;

    fn ran(output: &str) -> Item {
        Item::Tool(Box::new(Tool {
            call: CallId::from("c"),
            name: "bash".into(),
            arguments: Raw::parse(r#"{"command":"ls"}"#).unwrap(),
            started: Time(0),
            progress: String::new(),
            details: None,
            end: Some(End {
                text: output.to_owned(),
                images: 0,
                details: None,
                is_error: false,
                duration_ms: None,
            }),
        }))
    }

    // TERM-50.
    #[test]
    fn a_session_is_written_as_it_was_said() {
        let items = [
            Item::User("look\naround".into()),
            ran("a.rs\n"),
            Item::Answer("There is **one** file.".into()),
        ];
        let expected = "# s\n\n## You\n\nlook\naround\n\n- `$ ls`\n\n```\na.rs\n```\n\n\
                        There is **one** file.\n";
        assert_eq!(document("s", &items, 1), expected);
    }

    // TERM-58: what a tool printed cannot leave its fence, nor bring controls.
    #[test]
    fn output_stays_in_its_fence() {
        let text = document("s", &[ran("```\n# not a heading\n\u{1b}[2J````")], 1);
        assert!(text.contains("`````\n```\n# not a heading\n````\n`````\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
