//! Shared preparation of a request (`host.md` 9.1, 2.6.6, 2.7.2): from the
//! projected context to turns that every wire format can write down.
//!
//! Pure. Must never know a wire format; what differs (ids) comes in as a
//! function. Read `prepare::prompt`, `prepare::pair` and `prepare::room` next.

mod convert;
mod pair;
mod prompt;
mod room;

use std::borrow::Cow;

use crew_base::id::CallId;
use crew_base::message::{Block, Content, Message};
use crew_base::model::ModelRequest;
use crew_base::tool::ToolDefinition;

use crate::wire::EncodeOptions;

pub use room::max_tokens;

/// A request as the encoders take it; what need not be changed is borrowed from
/// its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared<'a> {
    /// All system messages folded into one text, maybe blank.
    pub prompt: String,
    /// The tools in force, in order.
    pub tools: Vec<ToolDefinition>,
    /// The conversation; every call is followed by exactly one result.
    pub turns: Vec<Turn<'a>>,
}

/// One turn of the conversation. Neighbours of the same kind are not merged,
/// and any of them may be empty; encoders drop what they cannot send.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn<'a> {
    /// Text and image blocks.
    User(Blocks<'a>),
    /// An answer of a model.
    Assistant(AssistantTurn<'a>),
    /// The results of all calls of the answer before, in the order of calls.
    ToolResults(Vec<ToolResultTurn<'a>>),
}

/// Content of a turn.
pub type Blocks<'a> = Vec<Cow<'a, Block>>;

/// An answer with what may be replayed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistantTurn<'a> {
    /// Whether provider, API and model id equal the request's (9.1.2).
    pub same_model: bool,
    /// Text, thinking and calls, filtered by 9.1.3; ids are already those to
    /// send. No images, no unknown kinds.
    pub blocks: Blocks<'a>,
    /// Provider that answered.
    pub source_provider: &'a str,
    /// Wire format it answered in.
    pub source_api: &'a str,
    /// Model id that was asked.
    pub source_model: &'a str,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResultTurn<'a> {
    /// The id to send, equal to that of its call.
    pub call: CallId,
    /// Name of the tool.
    pub tool: &'a str,
    /// Text and image blocks.
    pub blocks: Blocks<'a>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// Prepares a request. `rewrite_id` gets each call's id and whether its answer
/// came from the same model, and gives the id to send (9.1.4); the result
/// follows its call. Ids that clash are made unique afterwards.
pub fn prepare<'a>(
    request: &'a ModelRequest,
    options: &EncodeOptions,
    rewrite_id: &mut dyn FnMut(&CallId, bool) -> CallId,
) -> Prepared<'a> {
    let images = request.model.images && !options.block_images;
    let mut head = prompt::Head::default();
    let mut pairing = pair::Pairing::new(&request.model, images, rewrite_id);
    for message in &request.messages {
        match message.as_ref() {
            Message::System(patch) => head.apply(patch),
            Message::Assistant(answer) => pairing.answer(answer),
            Message::ToolResult(result) => pairing.result(result),
            Message::User(user) => pairing.user(blocks(&user.content)),
            Message::Custom(custom) => pairing.user(blocks(&custom.content)),
            Message::BashExecution(run) => {
                if let Some(text) = convert::shell_run(run) {
                    pairing.user(said(text));
                }
            }
            Message::BranchSummary(branch) => {
                pairing.user(said(convert::branch(&branch.summary)));
            }
            Message::CompactionSummary(compaction) => {
                pairing.user(said(convert::compaction(&compaction.summary)));
            }
        }
    }
    let (prompt, tools) = head.finish();
    Prepared { prompt, tools, turns: pairing.finish() }
}

impl Prepared<'_> {
    /// About how many bytes the conversation is.
    pub fn bytes(&self) -> usize {
        const TURN: usize = 160;
        let size = |block: &Cow<'_, Block>| TURN + bytes(block);
        let blocks = |blocks: &Blocks<'_>| blocks.iter().map(size).sum::<usize>();
        let turn = |turn: &Turn<'_>| match turn {
            Turn::User(content) => blocks(content),
            Turn::Assistant(answer) => blocks(&answer.blocks),
            Turn::ToolResults(results) => results.iter().map(|result| blocks(&result.blocks)).sum(),
        };
        self.prompt.len() + self.turns.iter().map(turn).sum::<usize>()
    }
}

fn bytes(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.text.len(),
        Block::Image(image) => image.data.len(),
        Block::Thinking(thinking) => {
            thinking.thinking.len() + thinking.thinking_signature.as_ref().map_or(0, String::len)
        }
        Block::ToolCall(call) => call.arguments.text().len(),
        Block::Other(_) => 0,
    }
}

fn blocks(content: &Content) -> Blocks<'_> {
    match content {
        Content::Text(_) => content.blocks().into_iter().map(Cow::Owned).collect(),
        Content::Blocks(blocks) => blocks.iter().map(Cow::Borrowed).collect(),
    }
}

fn said<'a>(text: String) -> Blocks<'a> {
    vec![Cow::Owned(Block::text(text))]
}

/// The texts of some content, joined by line ends.
pub fn joined_text<'a>(blocks: &'a [Cow<'_, Block>]) -> Cow<'a, str> {
    let mut texts = blocks.iter().filter_map(|block| block.as_text());
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else {
        return Cow::Borrowed(first);
    };
    let mut joined = format!("{first}\n{second}");
    for text in texts {
        joined.push('\n');
        joined.push_str(text);
    }
    Cow::Owned(joined)
}

#[cfg(test)]
pub(crate) mod tests;
