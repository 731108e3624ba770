//! Messages of `anthropic-messages` (`host.md` 9.2.2 to 9.2.4).

use std::borrow::Cow;

use crew_base::json::Raw;
use crew_base::message::{Block, ImageBlock, ThinkingBlock};
use crew_base::text::is_blank;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::compat::Compat;
use crate::prepare::{AssistantTurn, ToolResultTurn, Turn, joined_text};

/// Asks the provider to keep the prompt up to here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    /// A mark for some minutes, or for the time named.
    pub(super) fn new(ttl: Option<&'static str>) -> CacheControl {
        CacheControl { kind: "ephemeral", ttl }
    }
}

/// One message on the wire.
#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

/// One content block, with the mark of the prompt cache.
#[derive(Serialize)]
pub(super) struct Part<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Text { text: Cow<'a, str> },
    Image { source: Source<'a> },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a Raw },
    ToolResult { tool_use_id: &'a str, content: ResultContent<'a>, is_error: bool },
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> Part<'a> {
    /// A text block.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Part<'a> {
        Part::of(Kind::Text { text: text.into() })
    }

    /// The same block with a mark.
    pub(super) fn marked(self, cache_control: Option<CacheControl>) -> Part<'a> {
        Part { cache_control, ..self }
    }

    fn of(kind: Kind<'a>) -> Part<'a> {
        Part { kind, cache_control: None }
    }

    fn image(image: &'a ImageBlock) -> Part<'a> {
        Part::of(Kind::Image {
            source: Source { kind: "base64", media_type: &image.mime_type, data: &image.data },
        })
    }
}

/// The messages of all turns, made one at a time while they are written, since
/// a conversation may be long. The last block of the last user message is
/// marked (3.10.2), messages without content are left out.
pub(super) struct Messages<'a> {
    pub(super) turns: &'a [Turn<'a>],
    pub(super) cache: Option<CacheControl>,
    pub(super) compat: Compat,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_user = |turn: &Turn<'_>| {
            let message = message(turn, self.compat);
            message.role == "user" && !message.content.is_empty()
        };
        let marked = self.turns.iter().rposition(is_user);
        let mut messages = serializer.serialize_seq(None)?;
        for (at, turn) in self.turns.iter().enumerate() {
            let mut message = message(turn, self.compat);
            if marked == Some(at)
                && let Some(part) = message.content.last_mut()
            {
                part.cache_control = self.cache;
            }
            if !message.content.is_empty() {
                messages.serialize_element(&message)?;
            }
        }
        messages.end()
    }
}

fn message<'a>(turn: &'a Turn<'a>, compat: Compat) -> WireMessage<'a> {
    match turn {
        Turn::User(blocks) => WireMessage { role: "user", content: user(blocks) },
        Turn::Assistant(answer) => {
            WireMessage { role: "assistant", content: assistant(answer, compat) }
        }
        Turn::ToolResults(results) => WireMessage { role: "user", content: tool_results(results) },
    }
}

fn user<'a>(blocks: &'a [Cow<'a, Block>]) -> Vec<Part<'a>> {
    let parts = blocks.iter().filter_map(|block| match &**block {
        Block::Text(text) if is_blank(&text.text) => None,
        Block::Text(text) => Some(Part::text(&*text.text)),
        Block::Image(image) => Some(Part::image(image)),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    parts.collect()
}

fn assistant<'a>(answer: &'a AssistantTurn<'a>, compat: Compat) -> Vec<Part<'a>> {
    let parts = answer.blocks.iter().filter_map(|block| match &**block {
        Block::Text(text) if is_blank(&text.text) => None,
        Block::Text(text) => Some(Part::text(&*text.text)),
        Block::Thinking(thinking) => reasoning(thinking, compat),
        Block::ToolCall(call) => Some(Part::of(Kind::ToolUse {
            id: call.id.as_str(),
            name: &call.name,
            input: &call.arguments,
        })),
        Block::Image(_) | Block::Other(_) => None,
    });
    parts.collect()
}

/// Thinking of the same model as the API accepts it (`host.md` 9.2.3).
fn reasoning(block: &ThinkingBlock, compat: Compat) -> Option<Part<'_>> {
    let signature = block.thinking_signature.as_deref().unwrap_or_default();
    let thinking = &*block.thinking;
    match (block.redacted, signature) {
        (true, "") => None,
        (true, data) => Some(Part::of(Kind::RedactedThinking { data })),
        (false, "") if is_blank(thinking) => None,
        (false, "") if !compat.empty_signature => Some(Part::text(thinking)),
        (false, signature) => Some(Part::of(Kind::Thinking { thinking, signature })),
    }
}

/// One user message of all results (`host.md` 9.2.4). The API takes no images
/// in an error result, so these follow behind all results.
fn tool_results<'a>(results: &'a [ToolResultTurn<'a>]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut behind = Vec::new();
    for result in results {
        let images: Vec<&ImageBlock> =
            result.blocks.iter().filter_map(|block| as_image(block)).collect();
        let text = joined_text(&result.blocks);
        let content = if images.is_empty() {
            let blank = is_blank(&text);
            let text = if blank { Cow::Borrowed("(no output)") } else { text };
            ResultContent::Text(text)
        } else if result.is_error {
            behind.push(Part::text(format!("Images of the failed call {}:", result.call)));
            behind.extend(images.into_iter().map(Part::image));
            let note = "(its images follow behind the results)";
            let text = if is_blank(&text) { note.to_owned() } else { format!("{text}\n{note}") };
            ResultContent::Text(text.into())
        } else {
            ResultContent::Parts(with_images(&result.blocks))
        };
        parts.push(Part::of(Kind::ToolResult {
            tool_use_id: result.call.as_str(),
            content,
            is_error: result.is_error,
        }));
    }
    parts.append(&mut behind);
    parts
}

/// Blocks in their order, with some text in any case.
fn with_images<'a>(blocks: &'a [Cow<'a, Block>]) -> Vec<Part<'a>> {
    let mut parts = user(blocks);
    if parts.iter().all(|part| matches!(part.kind, Kind::Image { .. })) {
        parts.insert(0, Part::text("(see the image)"));
    }
    parts
}

fn as_image(block: &Block) -> Option<&ImageBlock> {
    if let Block::Image(image) = block { Some(image) } else { None }
}
