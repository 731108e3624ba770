//! How many output tokens a request may ask for (`host.md` 3.10.8).

use std::borrow::Cow;

use crew_base::message::{Block, Content, Message, StopReason};
use crew_base::model::ModelRequest;
use crew_base::text::units;

use super::{Prepared, Turn};

/// Tokens an image is taken to cost.
const IMAGE_TOKENS: u64 = 1200;

/// The `maxTokens` to send: the model's limit, or what its window leaves.
pub fn max_tokens(request: &ModelRequest, prepared: &Prepared) -> u64 {
    const MARGIN_MIN: u64 = 4096;
    const TIGHT: u64 = 32_768;
    let window = request.model.context_window;
    let input = input_estimate(request, prepared);
    let margin = MARGIN_MIN.max(input * 15 / 100);
    let mut room = window.saturating_sub(input + margin);
    if room < TIGHT {
        room = TIGHT.min(window.saturating_sub(input + MARGIN_MIN));
    }
    request.model.max_tokens.min(room).max(1)
}

/// Tokens of the prompt: the last usable usage plus an estimate of what came
/// after it, else an estimate of everything.
fn input_estimate(request: &ModelRequest, prepared: &Prepared) -> u64 {
    // Usage from before a compaction tells the size of what is gone.
    let compacted = request.messages.iter().rev().find_map(|message| {
        let summary = matches!(message.as_ref(), Message::CompactionSummary(_));
        summary.then(|| message.timestamp())
    });
    let mut after = Size::default();
    for message in request.messages.iter().rev() {
        if let Message::Assistant(answer) = message.as_ref() {
            let whole = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
            let fresh = compacted.is_none_or(|moment| answer.timestamp > moment);
            if whole && fresh && answer.usage.sum() > 0 {
                return answer.usage.sum() + after.tokens();
            }
        }
        after.message(message);
    }
    let mut all = Size::default();
    all.units += units(&prepared.prompt);
    for tool in &prepared.tools {
        all.units += units(&tool.description) + tool.name.len() + tool.parameters.text().len();
    }
    for turn in &prepared.turns {
        match turn {
            Turn::User(blocks) => all.blocks(borrowed(blocks)),
            Turn::Assistant(answer) => all.blocks(borrowed(&answer.blocks)),
            Turn::ToolResults(results) => {
                for result in results {
                    all.blocks(borrowed(&result.blocks));
                }
            }
        }
    }
    all.tokens()
}

fn borrowed<'b>(blocks: &'b [Cow<'_, Block>]) -> impl Iterator<Item = &'b Block> {
    blocks.iter().map(|block| &**block)
}

/// Text units and images of some content.
#[derive(Default)]
struct Size {
    units: usize,
    images: u64,
}

impl Size {
    fn tokens(&self) -> u64 {
        // 3.5 units are one token.
        (self.units as u64 * 2).div_ceil(7) + self.images * IMAGE_TOKENS
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::System(patch) => {
                let texts = patch.sections.0.iter().filter_map(|(_, text)| text.as_deref());
                self.units += texts.map(units).sum::<usize>();
                let tools = patch.tools_added.iter();
                self.units += tools
                    .map(|tool| units(&tool.description) + tool.parameters.text().len())
                    .sum::<usize>();
            }
            Message::User(user) => self.content(&user.content),
            Message::Custom(custom) => self.content(&custom.content),
            Message::Assistant(answer) => self.blocks(&answer.content),
            Message::ToolResult(result) => self.blocks(&result.content),
            Message::BashExecution(run) => self.units += units(&run.command) + units(&run.output),
            Message::BranchSummary(branch) => self.units += units(&branch.summary),
            Message::CompactionSummary(compaction) => self.units += units(&compaction.summary),
        }
    }

    fn content(&mut self, content: &Content) {
        match content {
            Content::Text(text) => self.units += units(text),
            Content::Blocks(blocks) => self.blocks(blocks),
        }
    }

    fn blocks<'b>(&mut self, blocks: impl IntoIterator<Item = &'b Block>) {
        for block in blocks {
            match block {
                Block::Text(text) => self.units += units(&text.text),
                Block::Image(_) => self.images += 1,
                Block::Thinking(thinking) => self.units += units(&thinking.thinking),
                Block::ToolCall(call) => {
                    self.units += units(&call.name) + units(call.arguments.text());
                }
                Block::Other(_) => {}
            }
        }
    }
}
