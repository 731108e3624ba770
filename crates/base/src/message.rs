//! Messages: the log format and what a model is asked with (`host.md` 2.7).
//!
//! Field names and order are those of the session files. Reading is lenient
//! (`null` for any optional field, text for a list of blocks); writing is the
//! one form of `host.md` 2.7. Types here come from JSON text only, because
//! opaque parts keep theirs ([`crate::json::Raw`]).

mod read;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::CallId;
use crate::json::{Raw, number};
use crate::time::Time;
use crate::tool::ToolDefinition;

use read::{block_list, or_default};

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// A patch of the prompt and the tool set.
    System(SystemMessage),
    /// What the person said.
    User(UserMessage),
    /// What a model answered.
    Assistant(AssistantMessage),
    /// What a tool gave back.
    ToolResult(ToolResultMessage),
    /// A shell command of the person.
    BashExecution(BashExecutionMessage),
    /// A message of the host; a user message for the model.
    Custom(CustomMessage),
    /// Stands for a branch that was left.
    BranchSummary(BranchSummaryMessage),
    /// Stands for what was compacted away.
    CompactionSummary(CompactionSummaryMessage),
}

/// A message as sessions, requests and faces share it.
pub type SharedMessage = Arc<Message>;

/// Text, or a list of blocks; files hold either.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks in order.
    Blocks(Vec<Block>),
}

/// One part of a message's content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Block {
    /// Text.
    Text(TextBlock),
    /// An image.
    Image(ImageBlock),
    /// What the model thought.
    Thinking(ThinkingBlock),
    /// A tool the model asks for.
    ToolCall(ToolCall),
    /// A block of a kind we do not know, kept as read.
    #[serde(untagged)]
    Other(Raw),
}

/// Text with the opaque signature some providers attach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextBlock {
    /// The text.
    #[serde(deserialize_with = "or_default")]
    pub text: String,
    /// Opaque; replayed to the same model only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
}

/// An image in base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageBlock {
    /// Base64 of the image file.
    pub data: String,
    /// For example `image/png`.
    pub mime_type: String,
}

/// Reasoning, readable or redacted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingBlock {
    /// The readable text, maybe empty.
    #[serde(default, deserialize_with = "or_default")]
    pub thinking: String,
    /// Opaque; replayed to the same model only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// The provider hid the text; the signature holds its data.
    #[serde(default, skip_serializing_if = "is_false", deserialize_with = "or_default")]
    pub redacted: bool,
}

/// A request of the model to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Names the call; its result carries the same id.
    pub id: CallId,
    /// Name of the tool.
    pub name: String,
    /// A JSON object; `{}` when `arguments_error` is set.
    pub arguments: Raw,
    /// Opaque; replayed to the same model only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Kept, not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Why the argument text was no JSON object, with that text
    /// (`host.md` 3.3.6). Such a call is answered with an error, never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
}

/// `system` (`host.md` 2.7.2): a patch; all of them in order give the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    /// Free text, joined before the sections.
    #[serde(default)]
    pub content: Content,
    /// Section name and text; `None` removes the section. In file order.
    #[serde(default, skip_serializing_if = "Sections::is_empty")]
    pub sections: Sections,
    /// Tools that became available.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub tools_added: Vec<ToolDefinition>,
    /// Tools that went away.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub tools_removed: Vec<ToolName>,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// Ordered map of section names to texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sections(pub Vec<(String, Option<String>)>);

/// Names a tool in `toolsRemoved`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolName {
    /// The name.
    pub name: String,
}

/// `user`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// We write blocks: one text, then images (`host.md` 2.7.1).
    #[serde(default)]
    pub content: Content,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// `assistant` (`host.md` 2.7.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, thinking and tool calls in the order they began.
    #[serde(deserialize_with = "block_list")]
    pub content: Vec<Block>,
    /// Wire format, for example `anthropic-messages`.
    #[serde(default, deserialize_with = "or_default")]
    pub api: String,
    /// Provider id.
    #[serde(default, deserialize_with = "or_default")]
    pub provider: String,
    /// The id that was asked for.
    #[serde(default, deserialize_with = "or_default")]
    pub model: String,
    /// All zero when unknown.
    #[serde(default, deserialize_with = "or_default")]
    pub usage: Usage,
    /// How it ended.
    pub stop_reason: StopReason,
    /// Unix milliseconds of the start.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
    /// Id the provider gave the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Only when it differs from `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's own word for the stop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// Why it failed or was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// From request to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The level that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The level the provider was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_thinking_level: Option<String>,
    /// Opaque (`host.md` 2.7.12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Raw>,
}

/// `toolResult` (`host.md` 2.7.9).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call it answers.
    pub tool_call_id: CallId,
    /// Name of the tool.
    #[serde(default, deserialize_with = "or_default")]
    pub tool_name: String,
    /// Text and images, maybe none.
    #[serde(deserialize_with = "block_list")]
    pub content: Vec<Block>,
    /// For faces, never for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Raw>,
    /// Whether the tool failed.
    #[serde(default, deserialize_with = "or_default")]
    pub is_error: bool,
    /// What the tool itself spent at providers (`task.md` OBS-5).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_default")]
    pub usage: Option<Usage>,
    /// Absent when the tool did not run (`host.md` 3.3.10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// `bashExecution` (`host.md` 2.7.10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// What the person ran.
    pub command: String,
    /// Its output, cut at the tail limits.
    #[serde(default, deserialize_with = "or_default")]
    pub output: String,
    /// Absent when it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The person stopped it.
    #[serde(default, deserialize_with = "or_default")]
    pub cancelled: bool,
    /// Whether `output` is not all.
    #[serde(default, deserialize_with = "or_default")]
    pub truncated: bool,
    /// Where all of it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// The model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// `custom` (`host.md` 2.7.11); stored as an entry of type `custom_message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// For example `crew-result`.
    pub custom_type: String,
    /// What the model sees.
    #[serde(default)]
    pub content: Content,
    /// Whether faces show it.
    #[serde(default, deserialize_with = "or_default")]
    pub display: bool,
    /// For faces, never for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Raw>,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// `branchSummary` (`host.md` 2.7.11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The text.
    pub summary: String,
    /// The leaf that was left, or `root`.
    pub from_id: String,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// `compactionSummary` (`host.md` 2.7.11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The text.
    pub summary: String,
    /// Estimated size of what was compacted.
    pub tokens_before: u64,
    /// Unix milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timestamp: Time,
}

/// How an answer ended (`host.md` 2.7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model had no more to say.
    Stop,
    /// The output limit was hit.
    Length,
    /// Tools are to be run.
    ToolUse,
    /// Provider or transport failed.
    Error,
    /// The host stopped it.
    Aborted,
    /// Streaming; never stored.
    Pending,
    /// Read as `Stop`.
    #[serde(other)]
    Deferred,
}

/// Tokens and cost of one answer, each token counted once (`host.md` 2.7.7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that no cache served or stored.
    #[serde(deserialize_with = "or_default")]
    pub input: u64,
    /// Generated tokens, thinking included.
    #[serde(deserialize_with = "or_default")]
    pub output: u64,
    /// Prompt tokens read from a cache.
    #[serde(deserialize_with = "or_default")]
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    #[serde(deserialize_with = "or_default")]
    pub cache_write: u64,
    /// Part of `cache_write` that is kept for one hour.
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// Part of `output` spent on thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// As the provider says, else the sum.
    #[serde(deserialize_with = "or_default")]
    pub total_tokens: u64,
    /// In USD.
    #[serde(deserialize_with = "or_default")]
    pub cost: Cost,
}

/// USD for each bucket of [`Usage`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Of `input`.
    #[serde(serialize_with = "number")]
    pub input: f64,
    /// Of `output`.
    #[serde(serialize_with = "number")]
    pub output: f64,
    /// Of `cache_read`.
    #[serde(serialize_with = "number")]
    pub cache_read: f64,
    /// Of `cache_write`.
    #[serde(serialize_with = "number")]
    pub cache_write: f64,
    /// The sum, or what the provider billed.
    #[serde(serialize_with = "number")]
    pub total: f64,
    /// `total` is the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}

impl Message {
    /// Unix milliseconds of the message.
    pub fn timestamp(&self) -> Time {
        match self {
            Message::System(m) => m.timestamp,
            Message::User(m) => m.timestamp,
            Message::Assistant(m) => m.timestamp,
            Message::ToolResult(m) => m.timestamp,
            Message::BashExecution(m) => m.timestamp,
            Message::Custom(m) => m.timestamp,
            Message::BranchSummary(m) => m.timestamp,
            Message::CompactionSummary(m) => m.timestamp,
        }
    }

    /// The answer of a model, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        if let Message::Assistant(message) = self { Some(message) } else { None }
    }

    /// A user message of one text block (`host.md` 2.7.1).
    pub fn user_text(text: impl Into<String>, timestamp: Time) -> Message {
        Message::User(UserMessage { content: Content::Blocks(vec![Block::text(text)]), timestamp })
    }
}

impl AssistantMessage {
    /// All text blocks, concatenated.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }

    /// The tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content
            .iter()
            .filter_map(|block| if let Block::ToolCall(call) = block { Some(call) } else { None })
    }
}

impl Content {
    /// All text, blocks concatenated.
    pub fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect(),
        }
    }

    /// The content as blocks.
    pub fn blocks(&self) -> Vec<Block> {
        match self {
            Content::Text(text) if text.is_empty() => Vec::new(),
            Content::Text(text) => vec![Block::text(text.clone())],
            Content::Blocks(blocks) => blocks.clone(),
        }
    }
}

impl Default for Content {
    fn default() -> Content {
        Content::Text(String::new())
    }
}

impl Block {
    /// A text block without signature.
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text(TextBlock { text: text.into(), text_signature: None })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        if let Block::Text(block) = self { Some(&block.text) } else { None }
    }
}

impl Sections {
    /// Whether there is no section.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Usage {
    /// Sum of the four buckets.
    pub fn sum(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write]
            .iter()
            .fold(self.input, |sum, part| sum.saturating_add(*part))
    }

    /// Adds another usage to this one.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
    }
}

impl Serialize for Sections {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::from_text;

    fn round_trip(text: &str) {
        let message: Message = from_text(text).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }

    #[test]
    fn stored_messages_are_written_as_they_were_read() {
        round_trip(
            r#"{"role":"user","content":[{"type":"text","text":"greet"}],"timestamp":1796046183871}"#,
        );
        round_trip(concat!(
            r#"{"role":"system","content":"","sections":{"preamble":"p","cwd":null},"toolsAdded":[{"name":"bash","#,
            r#""description":"d","parameters":{"type":"object","required":["command"]}}],"toolsRemoved":[{"name":"x"}],"timestamp":1}"#
        ));
        round_trip(concat!(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},"#,
            r#"{"type":"toolCall","id":"call_1","name":"bash","arguments":{"z":1.0,"a":2e3}},{"type":"novel","x":1}],"#,
            r#""api":"openai-completions","provider":"fake","model":"m1","usage":{"input":60,"output":7,"cacheRead":40,"cacheWrite":0,"#,
            r#""reasoning":0,"totalTokens":107,"cost":{"input":0,"output":0.5,"cacheRead":0,"cacheWrite":0,"total":0.5,"totalFromProvider":false}},"#,
            r#""stopReason":"toolUse","timestamp":1796046183926,"responseId":"chatcmpl-1","rawStopReason":"tool_calls","durationMs":82,"thinkingLevel":"low"}"#
        ));
        round_trip(concat!(
            r#"{"role":"toolResult","toolCallId":"call_1","toolName":"bash","content":[{"type":"text","text":"hi\n"}],"#,
            r#""isError":false,"durationMs":59,"timestamp":1796046184069}"#
        ));
        // task.md OBS-5
        round_trip(concat!(
            r#"{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"isError":false,"#,
            r#""usage":{"input":6,"output":7,"cacheRead":0,"cacheWrite":0,"totalTokens":13,"#,
            r#""cost":{"input":0,"output":0.5,"cacheRead":0,"cacheWrite":0,"total":0.5}},"timestamp":1}"#
        ));
        round_trip(
            r#"{"role":"custom","customType":"crew-result","content":"{}","display":true,"timestamp":5}"#,
        );
    }

    #[test]
    fn null_and_plain_text_content_are_accepted() {
        let read = |text: &str| from_text::<Message>(text).unwrap();
        let Message::User(user) = read(r#"{"role":"user","content":"hi"}"#) else { panic!() };
        assert_eq!(user.content.text(), "hi");
        let Message::User(user) = read(r#"{"role":"user","content":null,"timestamp":null}"#) else {
            panic!()
        };
        assert_eq!(user.content.text(), "");
        let Message::Assistant(answer) =
            read(r#"{"role":"assistant","content":null,"stopReason":"weird","usage":null}"#)
        else {
            panic!()
        };
        assert_eq!((answer.content.len(), answer.stop_reason), (0, StopReason::Deferred));
        let Message::ToolResult(result) =
            read(r#"{"role":"toolResult","toolCallId":"c","content":"\ud83d"}"#)
        else {
            panic!()
        };
        assert_eq!(result.content, [Block::text("\u{fffd}")]);
    }
}
