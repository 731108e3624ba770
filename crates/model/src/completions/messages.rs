//! The messages of a Chat Completions request (`host.md` 9.3.2 to 9.3.8).

use std::borrow::Cow;

use crew_base::json::{Raw, mend_surrogates};
use crew_base::message::{Block, ThinkingBlock, ToolCall};
use crew_base::text::is_blank;
use crew_base::tool::ToolDefinition;
use serde::Serialize;

use super::compat::Compat;
use super::decode::REASONING_FIELDS;
use crate::prepare::{AssistantTurn, ToolResultTurn, Turn, joined_text};
use crate::wire::Fields;

/// Stands for a tool result without text.
const NO_OUTPUT: &str = "(no output)";
/// Stands for the text of a tool result that has only images.
const SEE_IMAGE: &str = "(the output is the image that follows)";
/// Comes before the images of tool results.
const IMAGE_CAPTION: &str = "Images of the tool results above:";
/// What the model says between results and a user message, where a service
/// refuses one directly behind the other.
const RESULTS_SEEN: &str = "The tool results have arrived.";

/// One message.
#[derive(Serialize)]
pub(super) struct Message {
    pub(super) role: &'static str,
    pub(super) content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    /// The member that carries reasoning, under the name it came with.
    #[serde(flatten)]
    reasoning: Fields,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
}

/// Content of a message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    /// `null`.
    Null,
    /// Plain text.
    Text(String),
    /// Parts in order.
    Parts(Vec<Part>),
}

/// One part of a content list.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    /// Text.
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// An image as a data URL.
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

/// A cache marker in Anthropic's form.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttl: Option<&'static str>,
}

#[derive(Serialize)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: String,
    arguments: String,
}

/// A tool as it is offered.
#[derive(Serialize)]
pub(super) struct Tool {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct ToolFunction {
    name: String,
    description: String,
    parameters: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// The tools of a request; `strict` is named only where it is understood.
pub(super) fn tools(tools: &[ToolDefinition], compat: &Compat) -> Vec<Tool> {
    let tool = |tool: &ToolDefinition| Tool {
        kind: "function",
        function: ToolFunction {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            strict: compat.strict.then_some(false),
        },
        cache_control: None,
    };
    tools.iter().map(tool).collect()
}

/// The messages behind the instructions, in order.
pub(super) fn messages(turns: &[Turn<'_>], compat: &Compat) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for turn in turns {
        match turn {
            Turn::User(blocks) => {
                if let Some(content) = user_content(blocks) {
                    push_user(&mut messages, content, compat);
                }
            }
            Turn::Assistant(answer) => messages.extend(assistant(answer, compat)),
            Turn::ToolResults(results) => {
                messages.extend(results.iter().map(|result| tool_result(result, compat)));
                if let Some(images) = result_images(results) {
                    push_user(&mut messages, images, compat);
                }
            }
        }
    }
    messages
}

impl Message {
    /// A message of a role and its content.
    pub(super) fn new(role: &'static str, content: Content) -> Message {
        Message {
            role,
            content,
            name: None,
            tool_call_id: None,
            reasoning: Fields::default(),
            tool_calls: Vec::new(),
        }
    }
}

impl Part {
    /// A text part without marker.
    pub(super) fn text(text: impl Into<String>) -> Part {
        Part::Text { text: text.into(), cache_control: None }
    }
}

/// Adds a user message, with words of the model before it where a service
/// wants some behind tool results (9.3.6).
fn push_user(messages: &mut Vec<Message>, content: Content, compat: &Compat) {
    let behind_results = messages.last().is_some_and(|last| last.role == "tool");
    if behind_results && compat.assistant_after_tool_result {
        let words = Content::Text(RESULTS_SEEN.to_owned());
        messages.push(Message::new("assistant", words));
    }
    messages.push(Message::new("user", content));
}

/// Text as a string, anything else as parts; `None` if nothing is left.
fn user_content(blocks: &[Cow<'_, Block>]) -> Option<Content> {
    let mut parts: Vec<Part> = blocks.iter().filter_map(|block| part(block)).collect();
    if let [Part::Text { text, .. }] = &mut parts[..] {
        return Some(Content::Text(std::mem::take(text)));
    }
    (!parts.is_empty()).then_some(Content::Parts(parts))
}

fn part(block: &Block) -> Option<Part> {
    match block {
        Block::Text(block) if is_blank(&block.text) => None,
        Block::Text(block) => Some(Part::text(&block.text)),
        Block::Image(image) => Some(Part::ImageUrl {
            image_url: ImageUrl { url: format!("data:{};base64,{}", image.mime_type, image.data) },
        }),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

/// An answer; `None` if neither text nor a call is left of it (9.3.4).
fn assistant(answer: &AssistantTurn<'_>, compat: &Compat) -> Option<Message> {
    let mut texts = Vec::new();
    let mut thoughts = Vec::new();
    let mut tool_calls = Vec::new();
    for block in &answer.blocks {
        match &**block {
            Block::Text(block) if is_blank(&block.text) => {}
            Block::Text(block) => texts.push(block.text.as_str()),
            Block::Thinking(block) => thoughts.push(block),
            Block::ToolCall(block) => tool_calls.push(call(block)),
            Block::Image(_) | Block::Other(_) => {}
        }
    }
    let mut text = Some(texts.concat()).filter(|text| !text.is_empty());
    let mut message = Message::new("assistant", Content::Null);
    if compat.thinking_as_text {
        let thought = joined(&thoughts);
        if !is_blank(&thought) {
            let parts = [Some(thought), text.take()];
            let parts = parts.into_iter().flatten().map(Part::text).collect();
            message.content = Content::Parts(parts);
        }
    } else {
        message.reasoning = reasoning(&thoughts);
    }
    if let Some(text) = text {
        message.content = Content::Text(text);
    }
    if matches!(message.content, Content::Null) {
        if tool_calls.is_empty() {
            return None;
        }
        if compat.non_null_content || compat.assistant_after_tool_result {
            message.content = Content::Text(String::new());
        }
    }
    if compat.reasoning_content && message.reasoning.get("reasoning_content").is_none() {
        message.reasoning.set("reasoning_content", "");
    }
    message.tool_calls = tool_calls;
    Some(message)
}

fn call(block: &ToolCall) -> Call {
    Call {
        id: block.id.to_string(),
        kind: "function",
        function: Function {
            name: block.name.clone(),
            arguments: mend_surrogates(block.arguments.text()).into_owned(),
        },
    }
}

/// The member under which reasoning goes back (9.3.5): the details as they
/// came, else the text under the name that the signature tells.
fn reasoning(thoughts: &[&ThinkingBlock]) -> Fields {
    let mut fields = Fields::default();
    let signatures = || thoughts.iter().filter_map(|t| t.thinking_signature.as_deref());
    let mut details = Vec::new();
    for signature in signatures().filter(|signature| signature.starts_with('[')) {
        let list = serde_json::from_str::<Vec<Raw>>(signature);
        details.extend(list.unwrap_or_default());
    }
    if !details.is_empty() {
        fields.set("reasoning_details", &details);
        return fields;
    }
    let text = joined(thoughts);
    let field = signatures().find(|signature| REASONING_FIELDS.contains(signature));
    if let Some(field) = field.filter(|_| !is_blank(&text)) {
        fields.set(field, &text);
    }
    fields
}

fn joined(thoughts: &[&ThinkingBlock]) -> String {
    let texts = thoughts.iter().map(|thought| thought.thinking.as_str());
    let texts: Vec<&str> = texts.filter(|text| !is_blank(text)).collect();
    texts.join("\n")
}

fn tool_result(result: &ToolResultTurn<'_>, compat: &Compat) -> Message {
    let text = joined_text(&result.blocks);
    let has_image = result.blocks.iter().any(|block| is_image(block));
    let text = match (is_blank(&text), has_image) {
        (false, _) => text.into_owned(),
        (true, true) => SEE_IMAGE.to_owned(),
        (true, false) => NO_OUTPUT.to_owned(),
    };
    let mut message = Message::new("tool", Content::Text(text));
    message.tool_call_id = Some(result.call.to_string());
    message.name = compat.tool_result_name.then(|| result.tool.to_owned());
    message
}

/// The images of a run of results, since a tool message holds only text.
fn result_images(results: &[ToolResultTurn<'_>]) -> Option<Content> {
    let blocks = results.iter().flat_map(|result| &result.blocks);
    let images = blocks.filter(|block| is_image(block)).filter_map(|block| part(block));
    let mut parts = vec![Part::text(IMAGE_CAPTION)];
    parts.extend(images);
    (parts.len() > 1).then_some(Content::Parts(parts))
}

fn is_image(block: &Block) -> bool {
    matches!(block, Block::Image(_))
}
