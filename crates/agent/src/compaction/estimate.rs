//! Sizes in tokens, without asking anybody (`host.md` 3.8.4).

use crew_base::message::{Block, Content, Message, SystemMessage, Usage};
use crew_base::text::units;

/// UTF-16 units that an image counts as.
const IMAGE_UNITS: usize = 4800;
/// UTF-16 units of one token.
const TOKEN_UNITS: usize = 4;

/// The estimated tokens of one message.
pub(crate) fn tokens(message: &Message) -> u64 {
    let units = match message {
        Message::System(message) => system(message),
        Message::User(message) => content(&message.content),
        Message::Custom(message) => content(&message.content),
        Message::Assistant(message) => blocks(&message.content),
        Message::ToolResult(message) => blocks(&message.content),
        Message::BashExecution(run) => units(&run.command) + units(&run.output),
        Message::BranchSummary(message) => units(&message.summary),
        Message::CompactionSummary(message) => units(&message.summary),
    };
    units.div_ceil(TOKEN_UNITS) as u64
}

/// The tokens a provider counted, prompt and answer (`host.md` 3.8.3); zero
/// when it did not say.
pub(crate) fn counted(usage: &Usage) -> u64 {
    if usage.total_tokens > 0 { usage.total_tokens } else { usage.sum() }
}

fn system(message: &SystemMessage) -> usize {
    let sections = message.sections.0.iter().filter_map(|(_, text)| text.as_deref());
    let tools = if message.tools_added.is_empty() {
        0
    } else {
        serde_json::to_string(&message.tools_added).map_or(0, |json| units(&json))
    };
    content(&message.content) + sections.map(units).sum::<usize>() + tools
}

fn content(content: &Content) -> usize {
    match content {
        Content::Text(text) => units(text),
        Content::Blocks(list) => blocks(list),
    }
}

fn blocks(blocks: &[Block]) -> usize {
    let size = |block: &Block| match block {
        Block::Text(text) => units(&text.text),
        Block::Image(_) => IMAGE_UNITS,
        Block::Thinking(thinking) => units(&thinking.thinking),
        Block::ToolCall(call) => units(&call.name) + units(call.arguments.text()),
        Block::Other(_) => 0,
    };
    blocks.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{answer, call, result, user};
    use crew_base::json::Raw;
    use crew_base::message::{
        BashExecutionMessage, CompactionSummaryMessage, ImageBlock, Sections, ThinkingBlock,
        UserMessage,
    };
    use crew_base::time::Time;
    use crew_base::tool::ToolDefinition;

    #[test]
    fn four_units_are_a_token_rounded_up_for_each_message() {
        let check = |message: Message, expected: u64| {
            assert_eq!(tokens(&message), expected, "{message:?}");
        };
        check(user(""), 0);
        check(user("a"), 1);
        check(user("abcd"), 1);
        check(user("abcde"), 2);
        // Two units for each, whatever the bytes.
        check(user("😀😀"), 1);
        check(result("c", "12345678"), 2);
        let image = Block::Image(ImageBlock { data: "x".repeat(9), mime_type: "image/png".into() });
        let content = Content::Blocks(vec![Block::text("abcd"), image]);
        check(Message::User(UserMessage { content, timestamp: Time(0) }), 1201);
        let mut thinking = answer("ab", 0);
        thinking.content.insert(
            0,
            Block::Thinking(ThinkingBlock { thinking: "123456".into(), ..Default::default() }),
        );
        check(Message::Assistant(thinking), 2);
        let mut calling = answer("", 0);
        calling.content = vec![call("c", "read", r#"{"path":"a"}"#)];
        check(Message::Assistant(calling), 4);
        check(
            Message::BashExecution(BashExecutionMessage {
                command: "ls".into(),
                output: "a\nb\n".into(),
                exit_code: Some(0),
                cancelled: false,
                truncated: false,
                full_output_path: None,
                exclude_from_context: None,
                timestamp: Time(0),
            }),
            2,
        );
        let summary = "12345".into();
        let timestamp = Time(0);
        let tokens_before = 9;
        check(
            Message::CompactionSummary(CompactionSummaryMessage {
                summary,
                tokens_before,
                timestamp,
            }),
            2,
        );
    }

    #[test]
    fn a_system_message_counts_its_sections_and_its_tools() {
        let tool = ToolDefinition {
            name: "t".into(),
            description: "d".into(),
            parameters: Raw::empty_object(),
            constrained_sampling: None,
        };
        // [{"name":"t","description":"d","parameters":{}}] has 48 units.
        let message = SystemMessage {
            content: Content::Text("1234".into()),
            sections: Sections(vec![("a".into(), Some("12345678".into())), ("b".into(), None)]),
            tools_added: vec![tool],
            tools_removed: Vec::new(),
            timestamp: Time(0),
        };
        assert_eq!(tokens(&Message::System(message)), 1 + 2 + 12);
    }

    #[test]
    fn the_total_of_the_provider_wins_over_the_sum() {
        let usage = Usage { input: 5, output: 2, cache_read: 3, ..Usage::default() };
        assert_eq!(counted(&usage), 10);
        assert_eq!(counted(&Usage { total_tokens: 12, ..usage }), 12);
        assert_eq!(counted(&Usage::default()), 0);
    }
}
