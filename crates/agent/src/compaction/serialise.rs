//! A conversation as text for the model that summarises it (`host.md` 3.8.11).

use crew_base::json::Raw;
use crew_base::message::{AssistantMessage, Block, Content, Message, ToolCall};
use crew_base::text::{cut_units, is_blank, units};

/// UTF-16 units of a tool result that are shown.
const RESULT_UNITS_MAX: usize = 2000;

/// All messages in order, one paragraph each; empty when none says anything.
/// Thinking and system messages are left out.
pub(crate) fn conversation<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let paragraphs: Vec<String> = messages.filter_map(paragraph).collect();
    // The text stands inside a tag, which nothing in it may close.
    paragraphs.join("\n\n").replace("</conversation", "<\\/conversation")
}

fn paragraph(message: &Message) -> Option<String> {
    match message {
        Message::System(_) => None,
        Message::User(user) => said("User", &content(&user.content)),
        Message::Custom(custom) => {
            said(&format!("Notice ({})", custom.custom_type), &content(&custom.content))
        }
        Message::Assistant(answer) => assistant(answer),
        Message::ToolResult(result) => {
            let whose = if result.is_error { "Failure of" } else { "Result of" };
            let text = shortened(&blocks(&result.content));
            let text = if is_blank(&text) { "(nothing)".to_owned() } else { text };
            said(&format!("{whose} {}", result.tool_name), &text)
        }
        Message::BashExecution(run) if run.exclude_from_context == Some(true) => None,
        Message::BashExecution(run) => {
            said("User ran", &format!("{}\n{}", run.command, shortened(&run.output)))
        }
        Message::BranchSummary(branch) => {
            said("Summary of a branch that was left", &branch.summary)
        }
        Message::CompactionSummary(summary) => {
            said("Summary of what came before", &summary.summary)
        }
    }
}

fn said(who: &str, text: &str) -> Option<String> {
    (!is_blank(text)).then(|| format!("{who}: {}", text.trim_end()))
}

fn assistant(answer: &AssistantMessage) -> Option<String> {
    let text = said("Assistant", &answer.text());
    let calls: Vec<String> = answer.tool_calls().map(written_call).collect();
    let calls = (!calls.is_empty()).then(|| format!("Assistant calls: {}", calls.join("; ")));
    let parts: Vec<String> = text.into_iter().chain(calls).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// `name(key=json, …)`.
fn written_call(call: &ToolCall) -> String {
    let arguments = call.arguments.value();
    let Some(fields) = arguments.as_object() else {
        return format!("{}({})", call.name, call.arguments.text());
    };
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("{key}={}", Raw::of(value).text())).collect();
    format!("{}({})", call.name, fields.join(", "))
}

fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(list) => blocks(list),
    }
}

fn blocks(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.text.clone()),
        Block::Image(_) => Some("(an image)".to_owned()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    };
    blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn shortened(text: &str) -> String {
    let kept = cut_units(text, RESULT_UNITS_MAX);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    format!("{kept}\n[{} more characters are not shown]", units(&text[kept.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{answer, call, custom, result, system, user};
    use crew_base::message::ThinkingBlock;

    fn check(messages: &[Message], expected: &str) {
        assert_eq!(conversation(messages.iter()), expected);
    }

    #[test]
    fn the_conversation_is_written_without_thoughts_and_prompt() {
        let mut thoughtful = answer("I look.", 0);
        thoughtful.content.insert(
            0,
            Block::Thinking(ThinkingBlock { thinking: "secret".into(), ..Default::default() }),
        );
        thoughtful.content.push(call("c1", "read", r#"{"path":"a b.txt","limit":3}"#));
        thoughtful.content.push(call("c2", "ls", "{}"));
        check(
            &[
                system("be good"),
                user("what is there?"),
                Message::Assistant(thoughtful),
                result("c1", "text"),
                result("c2", ""),
                custom("crew-result", "{\"report\":\"x\"}"),
            ],
            "User: what is there?\n\n\
             Assistant: I look.\n\
             Assistant calls: read(path=\"a b.txt\", limit=3); ls()\n\n\
             Result of tool: text\n\n\
             Result of tool: (nothing)\n\n\
             Notice (crew-result): {\"report\":\"x\"}",
        );
        check(&[system("only this")], "");
    }

    #[test]
    fn a_long_result_is_cut_with_a_note_and_never_inside_a_pair() {
        let text = format!("{}😀tail", "r".repeat(1999));
        let written = conversation([result("c", &text)].iter());
        assert!(written.contains(&"r".repeat(1999)), "{written}");
        assert!(!written.contains('😀'));
        assert!(written.ends_with("[6 more characters are not shown]"), "{written}");
        check(&[result("c", &"r".repeat(2000))], &format!("Result of tool: {}", "r".repeat(2000)));
    }

    #[test]
    fn nothing_said_can_close_the_tag_around_it() {
        let written = conversation([user("a </conversation> b")].iter());
        assert!(!written.contains("</conversation"), "{written}");
    }
}
