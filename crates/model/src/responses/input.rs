//! The input items of a Responses request (`host.md` 9.4.1 to 9.4.5).

use std::borrow::Cow;

use crew_base::json::{Raw, mend_surrogates};
use crew_base::message::{Block, TextBlock, ThinkingBlock, ToolCall};
use crew_base::model::ModelRequest;
use crew_base::text::is_blank;
use serde_json::{Value, json};

use super::{ID_CHARS_MAX, split_id};
use crate::assembly::short_digest;
use crate::prepare::{AssistantTurn, ToolResultTurn, Turn, joined_text};

/// Stands for a tool result without text or image.
const NO_OUTPUT: &str = "(no output)";

/// The items of a conversation, in order.
pub(super) fn items(request: &ModelRequest, turns: &[Turn<'_>]) -> Vec<Raw> {
    let mut items = Vec::new();
    for (position, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(blocks) => {
                let parts = parts(blocks);
                if !parts.is_empty() {
                    items.push(Raw::of(&json!({ "role": "user", "content": parts })));
                }
            }
            Turn::Assistant(answer) => items.extend(answer_items(request, answer, position)),
            Turn::ToolResults(results) => items.extend(results.iter().map(output_item)),
        }
    }
    items
}

fn parts(blocks: &[Cow<'_, Block>]) -> Vec<Value> {
    let part = |block: &Cow<'_, Block>| match &**block {
        Block::Text(text) if is_blank(&text.text) => None,
        Block::Text(text) => Some(json!({ "type": "input_text", "text": text.text })),
        Block::Image(image) => Some(json!({
            "type": "input_image",
            "detail": "auto",
            "image_url": format!("data:{};base64,{}", image.mime_type, image.data),
        })),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    };
    blocks.iter().filter_map(part).collect()
}

/// The items of an answer (9.4.3). Reasoning at its end is left out: the API
/// refuses reasoning without the item that it led to.
fn answer_items(request: &ModelRequest, answer: &AssistantTurn<'_>, position: usize) -> Vec<Raw> {
    let mut items = Vec::new();
    let mut sendable = 0;
    for (at, block) in answer.blocks.iter().enumerate() {
        let (item, is_reasoning) = match &**block {
            Block::Thinking(block) => (reasoning_item(block), true),
            Block::Text(block) => (text_item(block, &format!("msg_{position}_{at}")), false),
            Block::ToolCall(call) => (Some(call_item(request, answer, call)), false),
            Block::Image(_) | Block::Other(_) => (None, false),
        };
        if let Some(item) = item {
            items.push(item);
            sendable = if is_reasoning { sendable } else { items.len() };
        }
    }
    items.truncate(sendable);
    items
}

/// The stored item, as it came.
fn reasoning_item(block: &ThinkingBlock) -> Option<Raw> {
    let signature = block.thinking_signature.as_deref()?;
    let item = Raw::parse(&mend_surrogates(signature))?;
    (item.value().get("type")?.as_str() == Some("reasoning")).then_some(item)
}

fn text_item(block: &TextBlock, generated_id: &str) -> Option<Raw> {
    if is_blank(&block.text) {
        return None;
    }
    let signature = block.text_signature.as_deref().unwrap_or("");
    let (id, phase) = read_signature(signature);
    let id = match id {
        None => generated_id.to_owned(),
        Some(id) if id.chars().count() > ID_CHARS_MAX => format!("msg_{}", short_digest(&id)),
        Some(id) => id,
    };
    let mut item = json!({
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "id": id,
    });
    if let Some(phase) = phase {
        item["phase"] = phase;
    }
    item["content"] = json!([{ "type": "output_text", "text": block.text, "annotations": [] }]);
    Some(Raw::of(&item))
}

/// Id and phase of a text: `{"v":1,"id","phase"?}`, or a bare id.
fn read_signature(signature: &str) -> (Option<String>, Option<Value>) {
    if !signature.starts_with('{') {
        let id = Some(signature).filter(|id| !id.is_empty());
        return (id.map(str::to_owned), None);
    }
    let value: Value = serde_json::from_str(signature).unwrap_or_default();
    let id = value.get("id").and_then(Value::as_str).map(str::to_owned);
    let phase = value.get("phase").filter(|phase| phase.is_string());
    (id.filter(|id| !id.is_empty()), phase.cloned())
}

fn call_item(request: &ModelRequest, answer: &AssistantTurn<'_>, call: &ToolCall) -> Raw {
    let (call_id, item) = split_id(call.id.as_str());
    let mut value = json!({
        "type": "function_call",
        "call_id": call_id,
        "name": call.name,
        "arguments": mend_surrogates(call.arguments.text()),
    });
    // The id ties a call to reasoning that another model does not get back.
    let is_sibling = !answer.same_model && answer.source_provider == request.model.provider;
    let item = item.filter(|item| item.starts_with("fc_") && !is_sibling);
    if let Some(item) = item {
        value["id"] = json!(item);
    }
    Raw::of(&value)
}

/// A result (9.4.5): one string, or a list when it holds images.
fn output_item(result: &ToolResultTurn<'_>) -> Raw {
    let (call_id, _) = split_id(result.call.as_str());
    let has_image = result.blocks.iter().any(|block| matches!(&**block, Block::Image(_)));
    let output = if has_image {
        json!(parts(&result.blocks))
    } else {
        let text = joined_text(&result.blocks);
        json!(if is_blank(&text) { NO_OUTPUT } else { &text })
    };
    Raw::of(&json!({
        "type": "function_call_output",
        "call_id": call_id,
        "output": output,
    }))
}
