//! The turns of a Gemini request (`host.md` 9.5.2 to 9.5.4).

use std::borrow::Cow;

use crew_base::json::Raw;
use crew_base::message::{Block, ImageBlock};
use crew_base::text::is_blank;
use serde::Serialize;

use super::models::Traits;
use crate::prepare::{AssistantTurn, ToolResultTurn, Turn, joined_text};

/// Stands for a tool result without text.
const NO_OUTPUT: &str = "(no output)";
/// Stands for the text of a tool result that has only images.
const SEE_IMAGE: &str = "(the output is an image)";
/// Comes before the images of tool results.
const IMAGE_CAPTION: &str = "Images of the tool results above:";

/// One turn.
#[derive(Serialize)]
pub(super) struct Content {
    role: &'static str,
    parts: Vec<Part>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData {
    mime_type: String,
    data: String,
}

#[derive(Serialize)]
struct FunctionCall {
    name: String,
    args: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

#[derive(Serialize)]
struct FunctionResponse {
    name: String,
    response: Response,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response {
    Output(String),
    Error(String),
}

/// The turns of a conversation, in order; empty ones are dropped.
pub(super) fn contents(turns: &[Turn<'_>], traits: Traits) -> Vec<Content> {
    let mut contents = Vec::new();
    let mut push = |role, parts: Vec<Part>| {
        if !parts.is_empty() {
            contents.push(Content { role, parts });
        }
    };
    for turn in turns {
        match turn {
            Turn::User(blocks) => {
                push("user", blocks.iter().filter_map(|block| user_part(block)).collect());
            }
            Turn::Assistant(answer) => push("model", model_parts(answer, traits)),
            Turn::ToolResults(results) => {
                let parts = results.iter().map(|result| result_part(result, traits));
                push("user", parts.collect());
                if !traits.nested_images {
                    push("user", captioned_images(results));
                }
            }
        }
    }
    contents
}

fn user_part(block: &Block) -> Option<Part> {
    match block {
        Block::Text(block) if is_blank(&block.text) => None,
        Block::Text(block) => Some(text_part(&block.text)),
        Block::Image(image) => Some(image_part(image)),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

fn text_part(text: &str) -> Part {
    Part { text: Some(text.to_owned()), ..Part::default() }
}

fn image_part(image: &ImageBlock) -> Part {
    Part {
        inline_data: Some(InlineData {
            mime_type: image.mime_type.clone(),
            data: image.data.clone(),
        }),
        ..Part::default()
    }
}

/// The parts of an answer. Signatures are already those of this model only;
/// a blank part goes back when it carries one (9.5.2).
fn model_parts(answer: &AssistantTurn<'_>, traits: Traits) -> Vec<Part> {
    let part = |block: &Cow<'_, Block>| match &**block {
        Block::Text(block) => {
            let signature = signature(block.text_signature.as_deref());
            spoken(&block.text, signature)
        }
        Block::Thinking(block) => {
            let signature = signature(block.thinking_signature.as_deref());
            let part = spoken(&block.thinking, signature)?;
            Some(Part { thought: Some(true), ..part })
        }
        Block::ToolCall(call) => Some(Part {
            function_call: Some(FunctionCall {
                name: call.name.clone(),
                args: call.arguments.clone(),
                id: traits.call_ids.then(|| call.id.to_string()),
            }),
            thought_signature: signature(call.thought_signature.as_deref()),
            ..Part::default()
        }),
        Block::Image(_) | Block::Other(_) => None,
    };
    answer.blocks.iter().filter_map(part).collect()
}

fn spoken(text: &str, signature: Option<String>) -> Option<Part> {
    if is_blank(text) && signature.is_none() {
        return None;
    }
    Some(Part { thought_signature: signature, ..text_part(text) })
}

/// A signature the API can decode: base64 in whole groups of four.
fn signature(signature: Option<&str>) -> Option<String> {
    let valid = |text: &&str| {
        let body = text.trim_end_matches('=');
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
        !body.is_empty()
            && text.len().is_multiple_of(4)
            && text.len() - body.len() <= 2
            && body.bytes().all(known)
    };
    signature.filter(valid).map(str::to_owned)
}

fn result_part(result: &ToolResultTurn<'_>, traits: Traits) -> Part {
    let images = images(result);
    let text = joined_text(&result.blocks);
    let text = match (is_blank(&text), images.is_empty()) {
        (false, _) => text.into_owned(),
        (true, true) => NO_OUTPUT.to_owned(),
        (true, false) => SEE_IMAGE.to_owned(),
    };
    let response = if result.is_error { Response::Error(text) } else { Response::Output(text) };
    Part {
        function_response: Some(FunctionResponse {
            name: result.tool.to_owned(),
            response,
            id: traits.call_ids.then(|| result.call.to_string()),
            parts: if traits.nested_images { images } else { Vec::new() },
        }),
        ..Part::default()
    }
}

fn images(result: &ToolResultTurn<'_>) -> Vec<Part> {
    let image = |block: &Cow<'_, Block>| match &**block {
        Block::Image(image) => Some(image_part(image)),
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    };
    result.blocks.iter().filter_map(image).collect()
}

fn captioned_images(results: &[ToolResultTurn<'_>]) -> Vec<Part> {
    let mut parts: Vec<Part> = results.iter().flat_map(images).collect();
    if !parts.is_empty() {
        parts.insert(0, text_part(IMAGE_CAPTION));
    }
    parts
}
