//! One content block while it streams.

use crew_base::id::CallId;
use crew_base::json::{Raw, from_text};
use crew_base::message::{Block, TextBlock, ThinkingBlock, ToolCall};
use crew_base::model::ModelEvent;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;

/// A block that has begun.
pub(super) struct Open {
    /// Our own position.
    pub(super) index: usize,
    kind: Kind,
}

enum Kind {
    Text(String),
    Thinking(ThinkingBlock),
    Call {
        id: CallId,
        name: String,
        /// Arguments that came with the start.
        initial: Option<Raw>,
        /// JSON text from deltas.
        text: String,
    },
}

impl Open {
    /// Begins a call; `initial` is the input that came with its start.
    pub(super) fn call(index: usize, id: CallId, block: &Value, initial: Option<Raw>) -> Open {
        let kind = Kind::Call {
            id,
            name: block["name"].as_str().unwrap_or_default().to_owned(),
            initial,
            text: String::new(),
        };
        Open { index, kind }
    }

    /// Begins a block of text or thinking, still without the text that may
    /// come with its start.
    pub(super) fn of(index: usize, block: &Value) -> Option<Open> {
        let text = |name: &str| block[name].as_str().filter(|text| !text.is_empty());
        let kind = match block["type"].as_str()? {
            "text" => Kind::Text(String::new()),
            "thinking" => Kind::Thinking(ThinkingBlock {
                thinking_signature: text("signature").map(str::to_owned),
                ..ThinkingBlock::default()
            }),
            "redacted_thinking" => Kind::Thinking(ThinkingBlock {
                thinking_signature: text("data").map(str::to_owned),
                redacted: true,
                ..ThinkingBlock::default()
            }),
            _ => return None,
        };
        Some(Open { index, kind })
    }

    /// Begins the block a delta without a start belongs to.
    pub(super) fn by_delta(index: usize, delta: &Value) -> Option<Open> {
        let kind = match delta["type"].as_str()? {
            "text_delta" => Kind::Text(String::new()),
            "thinking_delta" => Kind::Thinking(ThinkingBlock::default()),
            _ => return None,
        };
        Some(Open { index, kind })
    }

    /// Tells the start, and the text that came with it.
    pub(super) fn announce(&mut self, block: &Value, out: &mut Vec<ModelEvent>) {
        out.push(ModelEvent::BlockStart { index: self.index, block: self.bare() });
        let with_start = match &self.kind {
            Kind::Text(_) => block["text"].as_str(),
            Kind::Thinking(thinking) if !thinking.redacted => block["thinking"].as_str(),
            Kind::Thinking(_) | Kind::Call { .. } => None,
        };
        if let Some(text) = with_start {
            self.add(text, out);
        }
    }

    /// Takes a delta; one of another type than the block's is ignored.
    pub(super) fn delta(&mut self, delta: &Value, out: &mut Vec<ModelEvent>) {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        match (delta["type"].as_str().unwrap_or_default(), &mut self.kind) {
            ("text_delta", Kind::Text(_)) => self.add(text("text"), out),
            ("thinking_delta", Kind::Thinking(_)) => self.add(text("thinking"), out),
            ("input_json_delta", Kind::Call { .. }) => self.add(text("partial_json"), out),
            ("signature_delta", Kind::Thinking(thinking)) => {
                let signature = text("signature");
                if !signature.is_empty() {
                    let known = thinking.thinking_signature.get_or_insert_default();
                    known.push_str(signature);
                }
            }
            _ => {}
        }
    }

    /// Ends the block; arguments are parsed now and never before.
    pub(super) fn end(self) -> ModelEvent {
        let block = match self.kind {
            Kind::Text(text) => Block::text(text),
            Kind::Thinking(thinking) => Block::Thinking(thinking),
            Kind::Call { id, name, initial, text } => {
                let arguments = match initial {
                    Some(initial) if text.trim().is_empty() => arguments::of_raw(&initial),
                    Some(_) | None => arguments::parse(&text),
                };
                Block::ToolCall(ToolCall {
                    id,
                    name,
                    arguments: arguments.value,
                    arguments_error: arguments.error,
                    thought_signature: None,
                    namespace: None,
                })
            }
        };
        ModelEvent::BlockEnd { index: self.index, block }
    }

    fn add(&mut self, added: &str, out: &mut Vec<ModelEvent>) {
        if added.is_empty() {
            return;
        }
        match &mut self.kind {
            Kind::Text(text) | Kind::Call { text, .. } => text.push_str(added),
            Kind::Thinking(thinking) => thinking.thinking.push_str(added),
        }
        out.push(ModelEvent::BlockDelta { index: self.index, delta: added.to_owned() });
    }

    /// The block as its start is told: without text, without arguments.
    fn bare(&self) -> Block {
        match &self.kind {
            Kind::Text(_) => Block::Text(TextBlock::default()),
            Kind::Thinking(thinking) => Block::Thinking(ThinkingBlock {
                redacted: thinking.redacted,
                ..ThinkingBlock::default()
            }),
            Kind::Call { id, name, .. } => Block::ToolCall(ToolCall {
                id: id.clone(),
                name: name.clone(),
                arguments: Raw::empty_object(),
                thought_signature: None,
                namespace: None,
                arguments_error: None,
            }),
        }
    }
}

/// The `input` of a starting call in its own text; `None` without or with an
/// empty one.
pub(super) fn initial_input(data: &str) -> Option<Raw> {
    #[derive(Deserialize)]
    struct Start {
        content_block: Block,
    }
    #[derive(Deserialize)]
    struct Block {
        input: Option<Raw>,
    }
    let start: Start = from_text(data).or_else(|_| from_text(&arguments::repair(data))).ok()?;
    let blank = |raw: &Raw| raw.value().as_object().is_some_and(|map| map.is_empty());
    start.content_block.input.filter(|raw| !blank(raw))
}
