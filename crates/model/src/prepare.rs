//! Shared preparation of a request (`host.md` 9.1, 2.6.6, 2.7.2): from the
//! projected context to turns that every wire format can write down.
//!
//! Pure. Must never know a wire format; what differs (ids) comes in as a
//! function. Read `prepare::prompt`, `prepare::pair` and `prepare::room` next.

mod convert;
mod pair;
mod prompt;
mod room;

use crew_base::id::CallId;
use crew_base::message::{Block, Message};
use crew_base::model::ModelRequest;
use crew_base::tool::ToolDefinition;

use crate::wire::EncodeOptions;

pub use room::max_tokens;

/// A request as the encoders take it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// All system messages folded into one text, maybe blank.
    pub prompt: String,
    /// The tools in force, in order.
    pub tools: Vec<ToolDefinition>,
    /// The conversation; every call is followed by exactly one result.
    pub turns: Vec<Turn>,
}

/// One turn of the conversation. Neighbours of the same kind are not merged,
/// and any of them may be empty; encoders drop what they cannot send.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Text and image blocks.
    User(Vec<Block>),
    /// An answer of a model.
    Assistant(AssistantTurn),
    /// The results of all calls of the answer before, in the order of calls.
    ToolResults(Vec<ToolResultTurn>),
}

/// An answer with what may be replayed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistantTurn {
    /// Whether provider, API and model id equal the request's (9.1.2).
    pub same_model: bool,
    /// Text, thinking and calls, filtered by 9.1.3; ids are already those to
    /// send. No images, no unknown kinds.
    pub blocks: Vec<Block>,
    /// Provider that answered.
    pub source_provider: String,
    /// Wire format it answered in.
    pub source_api: String,
    /// Model id that was asked.
    pub source_model: String,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResultTurn {
    /// The id to send, equal to that of its call.
    pub call: CallId,
    /// Name of the tool.
    pub tool: String,
    /// Text and image blocks.
    pub blocks: Vec<Block>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// Prepares a request. `rewrite_id` gets each call's id and whether its answer
/// came from the same model, and gives the id to send (9.1.4); the result
/// follows its call. Ids that clash are made unique afterwards.
pub fn prepare(
    request: &ModelRequest,
    options: &EncodeOptions,
    rewrite_id: &mut dyn FnMut(&CallId, bool) -> CallId,
) -> Prepared {
    let images = request.model.images && !options.block_images;
    let mut head = prompt::Head::default();
    let mut pairing = pair::Pairing::new(&request.model, images, rewrite_id);
    for message in &request.messages {
        match message.as_ref() {
            Message::System(patch) => head.apply(patch),
            Message::Assistant(answer) => pairing.answer(answer),
            Message::ToolResult(result) => pairing.result(result),
            Message::User(user) => pairing.user(user.content.blocks()),
            Message::Custom(custom) => pairing.user(custom.content.blocks()),
            Message::BashExecution(run) => {
                if let Some(text) = convert::shell_run(run) {
                    pairing.user(vec![Block::text(text)]);
                }
            }
            Message::BranchSummary(branch) => {
                pairing.user(vec![Block::text(convert::branch(&branch.summary))]);
            }
            Message::CompactionSummary(compaction) => {
                pairing.user(vec![Block::text(convert::compaction(&compaction.summary))]);
            }
        }
    }
    let (prompt, tools) = head.finish();
    Prepared { prompt, tools, turns: pairing.finish() }
}

#[cfg(test)]
pub(crate) mod tests;
