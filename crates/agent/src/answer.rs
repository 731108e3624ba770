//! Gathers the events of one stream into an assistant message.

use crew_base::json::Raw;
use crew_base::message::{AssistantMessage, Block, StopReason, Usage};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelSpec, ThinkingLevel};
use crew_base::time::Time;

/// An answer while it streams.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    message: AssistantMessage,
    complete: Vec<bool>,
}

impl Answer {
    pub(crate) fn new(model: &ModelSpec, thinking: ThinkingLevel, now: Time) -> Answer {
        let mut answer = Answer::without_model(thinking, now);
        answer.message.api.clone_from(&model.api_word);
        answer.message.provider.clone_from(&model.provider);
        answer.message.model.clone_from(&model.id);
        answer
    }

    /// An answer that nobody was asked for, to carry a failure of the host.
    pub(crate) fn without_model(thinking: ThinkingLevel, now: Time) -> Answer {
        let message = AssistantMessage {
            content: Vec::new(),
            api: String::new(),
            provider: String::new(),
            model: String::new(),
            usage: Usage::default(),
            stop_reason: StopReason::Pending,
            timestamp: now,
            response_id: None,
            response_model: None,
            raw_stop_reason: None,
            error_message: None,
            duration_ms: None,
            thinking_level: Some(thinking.word().to_owned()),
            provider_thinking_level: None,
            diagnostics: None,
        };
        Answer { message, complete: Vec::new() }
    }

    /// The message as it stands, for `message_start`.
    pub(crate) fn pending(&self) -> AssistantMessage {
        self.message.clone()
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.message.usage
    }

    /// Takes one event that is not an ending.
    pub(crate) fn take(&mut self, model: &ModelSpec, event: &ModelEvent) {
        match event {
            ModelEvent::BlockStart { index, block } => {
                debug_assert_eq!(*index, self.message.content.len());
                self.message.content.push(block.clone());
                self.complete.push(false);
            }
            ModelEvent::BlockDelta { index, delta } => match self.message.content.get_mut(*index) {
                Some(Block::Text(block)) => block.text.push_str(delta),
                Some(Block::Thinking(block)) => block.thinking.push_str(delta),
                Some(Block::ToolCall(_) | Block::Image(_) | Block::Other(_)) | None => {}
            },
            ModelEvent::BlockEnd { index, block } => {
                if let Some(slot) = self.message.content.get_mut(*index) {
                    *slot = block.clone();
                    self.complete[*index] = true;
                }
            }
            ModelEvent::Usage(usage) => {
                self.message.usage = usage.clone();
                model.price(&mut self.message.usage);
            }
            ModelEvent::Identity { response_id, response_model } => {
                if response_id.is_some() {
                    self.message.response_id.clone_from(response_id);
                }
                if response_model.is_some() {
                    self.message.response_model.clone_from(response_model);
                }
            }
            ModelEvent::Started | ModelEvent::Finished { .. } | ModelEvent::Failed(_) => {}
        }
    }

    /// The stored message of a stream that the protocol ended.
    ///
    /// An answer with neither text, call nor thought that does not follow tool
    /// results is an error (`host.md` 3.6.1, `product.md` P-9d).
    pub(crate) fn finish(
        self,
        now: Time,
        stop_reason: StopReason,
        raw_stop_reason: Option<String>,
        after_results: bool,
    ) -> (AssistantMessage, Option<ModelError>) {
        let mut message = self.message;
        message.stop_reason = stop_reason;
        message.raw_stop_reason = raw_stop_reason;
        message.duration_ms = Some(now.since(message.timestamp));
        let silent = !message.content.iter().any(says_something);
        if silent && !after_results && stop_reason != StopReason::Length {
            let error = ModelError::new(
                ModelErrorKind::Empty,
                "the model ended its answer without text and without a tool call",
            );
            message.stop_reason = StopReason::Error;
            message.error_message = Some(error.message.clone());
            return (message, Some(error));
        }
        (message, None)
    }

    /// The stored message of a stream that failed or was aborted; calls that
    /// did not arrive whole are left out.
    pub(crate) fn broken(self, now: Time, reason: StopReason, text: String) -> AssistantMessage {
        let mut message = self.message;
        let mut complete = self.complete.into_iter();
        message.content.retain_mut(|block| {
            let whole = complete.next().unwrap_or(false);
            if let Block::ToolCall(call) = block
                && !whole
            {
                call.arguments = Raw::empty_object();
                return false;
            }
            true
        });
        message.content.retain(|block| match block {
            Block::Text(text) => !text.text.is_empty(),
            Block::Thinking(block) => {
                !block.thinking.is_empty() || block.thinking_signature.is_some()
            }
            Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => true,
        });
        if message.content.is_empty() {
            message.content.push(Block::text(""));
        }
        message.stop_reason = reason;
        message.error_message = Some(text);
        message.duration_ms = Some(now.since(message.timestamp));
        message
    }
}

fn says_something(block: &Block) -> bool {
    match block {
        Block::Text(block) => !crew_base::text::is_blank(&block.text),
        Block::Thinking(block) => !block.thinking.is_empty() || block.redacted,
        Block::ToolCall(_) | Block::Image(_) | Block::Other(_) => true,
    }
}
