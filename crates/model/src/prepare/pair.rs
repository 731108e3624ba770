//! Pairs calls with their results (`host.md` 9.1.4, 9.1.5, 9.1.7).
//!
//! Invariant: behind every answer with calls stands one turn with exactly one
//! result for each of them, in the order of the calls.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crew_base::id::CallId;
use crew_base::message::{
    AssistantMessage, Block, StopReason, ThinkingBlock, ToolCall, ToolResultMessage,
};
use crew_base::model::ModelSpec;
use crew_base::text::is_blank;

use super::convert::{ImageOrigin, mended, readable};
use super::{AssistantTurn, Blocks, ToolResultTurn, Turn};

/// Gathers turns; holds back what stands between calls and their results.
pub(super) struct Pairing<'a, 'r> {
    model: &'a ModelSpec,
    images: bool,
    rewrite_id: &'r mut dyn FnMut(&CallId, bool) -> CallId,
    used: BTreeSet<CallId>,
    turns: Vec<Turn<'a>>,
    /// Calls of the last answer.
    open: Vec<OpenCall<'a>>,
    /// User turns since the last answer, while it has calls.
    held: Vec<Turn<'a>>,
}

struct OpenCall<'a> {
    id: &'a CallId,
    sent_id: CallId,
    tool: &'a str,
    result: Option<ToolResultTurn<'a>>,
}

impl<'a, 'r> Pairing<'a, 'r> {
    pub(super) fn new(
        model: &'a ModelSpec,
        images: bool,
        rewrite_id: &'r mut dyn FnMut(&CallId, bool) -> CallId,
    ) -> Pairing<'a, 'r> {
        Pairing {
            model,
            images,
            rewrite_id,
            used: BTreeSet::new(),
            turns: Vec::new(),
            open: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Adds a user turn.
    pub(super) fn user(&mut self, blocks: Blocks<'a>) {
        let turn = Turn::User(readable(blocks, self.images, ImageOrigin::User));
        if self.open.is_empty() {
            self.turns.push(turn);
        } else {
            self.held.push(turn);
        }
    }

    /// Adds an answer; failed and aborted ones are left out (9.1.5).
    pub(super) fn answer(&mut self, answer: &'a AssistantMessage) {
        self.settle();
        match answer.stop_reason {
            StopReason::Error | StopReason::Aborted | StopReason::Pending => return,
            StopReason::Stop | StopReason::Length | StopReason::ToolUse | StopReason::Deferred => {}
        }
        let same_model = answer.provider == self.model.provider
            && answer.api == self.model.api_word
            && answer.model == self.model.id;
        let blocks = answer.content.iter();
        let blocks = blocks.filter_map(|block| self.replayed(block, same_model));
        let blocks = blocks.collect();
        self.turns.push(Turn::Assistant(AssistantTurn {
            same_model,
            blocks,
            source_provider: &answer.provider,
            source_api: &answer.api,
            source_model: &answer.model,
        }));
    }

    /// Adds a result to its call; one without an open call is dropped.
    pub(super) fn result(&mut self, result: &'a ToolResultMessage) {
        let waiting =
            |call: &&mut OpenCall| *call.id == result.tool_call_id && call.result.is_none();
        if let Some(call) = self.open.iter_mut().find(waiting) {
            let blocks = result.content.iter().map(Cow::Borrowed).collect();
            call.result = Some(ToolResultTurn {
                call: call.sent_id.clone(),
                tool: call.tool,
                blocks: readable(blocks, self.images, ImageOrigin::Tool),
                is_error: result.is_error,
            });
        }
    }

    /// The turns.
    pub(super) fn finish(mut self) -> Vec<Turn<'a>> {
        self.settle();
        self.turns
    }

    /// Ends the wait for results: unanswered calls get an error result, what
    /// was held back follows.
    fn settle(&mut self) {
        let results: Vec<ToolResultTurn<'a>> = self.open.drain(..).map(OpenCall::settled).collect();
        if !results.is_empty() {
            self.turns.push(Turn::ToolResults(results));
        }
        self.turns.append(&mut self.held);
    }

    fn replayed(&mut self, block: &'a Block, same_model: bool) -> Option<Cow<'a, Block>> {
        match block {
            Block::Text(text) if same_model || text.text_signature.is_none() => {
                Some(Cow::Borrowed(block))
            }
            Block::Text(text) => {
                let mut text = text.clone();
                text.text_signature = None;
                Some(Cow::Owned(Block::Text(text)))
            }
            Block::Thinking(thinking) => {
                (same_model && is_replayable(thinking)).then_some(Cow::Borrowed(block))
            }
            Block::ToolCall(call) => {
                let wanted = (self.rewrite_id)(&call.id, same_model);
                let sent_id = self.unique(wanted);
                self.open.push(OpenCall {
                    id: &call.id,
                    sent_id: sent_id.clone(),
                    tool: &call.name,
                    result: None,
                });
                let arguments = mended(&call.arguments);
                let thought_signature = call.thought_signature.clone().filter(|_| same_model);
                if sent_id == call.id
                    && arguments == call.arguments
                    && thought_signature == call.thought_signature
                {
                    return Some(Cow::Borrowed(block));
                }
                let call = ToolCall { id: sent_id, arguments, thought_signature, ..call.clone() };
                Some(Cow::Owned(Block::ToolCall(call)))
            }
            Block::Image(_) | Block::Other(_) => None,
        }
    }

    /// The id itself, or one like it that no earlier call has. Servers that
    /// count their calls anew in every answer repeat ids; strict ones refuse
    /// repeated ids.
    fn unique(&mut self, wanted: CallId) -> CallId {
        const LENGTH_MAX: usize = 40;
        let mut id = wanted.clone();
        let mut number = 1;
        while !self.used.insert(id.clone()) {
            number += 1;
            let ending = format!("_{number}");
            let (call, item) = match wanted.as_str().split_once('|') {
                Some((call, item)) => (call, Some(item)),
                None => (wanted.as_str(), None),
            };
            let room = LENGTH_MAX.max(call.len()) - ending.len();
            let kept: String = call.chars().take(room).collect();
            let item = item.map(|item| format!("|{item}")).unwrap_or_default();
            id = CallId::new(format!("{kept}{ending}{item}"));
        }
        id
    }
}

impl<'a> OpenCall<'a> {
    fn settled(self) -> ToolResultTurn<'a> {
        self.result.unwrap_or_else(|| ToolResultTurn {
            call: self.sent_id,
            tool: self.tool,
            blocks: vec![Cow::Owned(Block::text("No result: this call was never finished."))],
            is_error: true,
        })
    }
}

/// Whether thinking of the same model is sent back (9.1.3).
fn is_replayable(thinking: &ThinkingBlock) -> bool {
    let signature = thinking.thinking_signature.as_deref();
    thinking.redacted
        || signature.is_some_and(|signature| !signature.is_empty())
        || !is_blank(&thinking.thinking)
}
