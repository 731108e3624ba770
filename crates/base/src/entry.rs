//! Entries of a session file (`host.md` 2.3, 2.4).

mod read;

use serde::{Deserialize, Serialize};

use crate::id::{EntryId, SessionId};
use crate::json::Raw;
use crate::message::{Content, Message, Usage};

/// Version of the session format that we write.
pub const SESSION_VERSION: u32 = 3;

/// First line of a session file (`host.md` 2.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Always `session`.
    #[serde(rename = "type")]
    pub kind: HeaderKind,
    /// 3; missing means 1.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The session.
    pub id: SessionId,
    /// ISO time of creation.
    #[serde(default)]
    pub timestamp: String,
    /// Absolute working directory; never changes for a file.
    #[serde(default)]
    pub cwd: String,
    /// File of the session this one came from or belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// The only value of a header's `type`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum HeaderKind {
    /// `session`.
    #[serde(rename = "session")]
    Session,
}

fn first_version() -> u32 {
    1
}

/// One entry: base fields, then those of its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Unique in the file.
    pub id: EntryId,
    /// The entry it follows; `None` for a root.
    pub parent_id: Option<EntryId>,
    /// ISO time.
    pub timestamp: String,
    /// What it says.
    pub body: EntryBody,
}

/// What an entry says, by its `type`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EntryBody {
    /// A message.
    Message {
        /// The message.
        message: Message,
    },
    /// Another model from here on.
    ModelChange {
        /// Provider id.
        provider: String,
        /// Model id.
        model_id: String,
    },
    /// Another thinking level from here on.
    ThinkingLevelChange {
        /// The level's name.
        thinking_level: String,
    },
    /// What came before is replaced by a summary (`host.md` 2.6.2).
    Compaction {
        /// The summary.
        summary: String,
        /// First entry that is kept; the own id keeps nothing.
        first_kept_entry_id: EntryId,
        /// Estimated size before.
        tokens_before: u64,
        /// Files that were read and modified.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Raw>,
        /// What the summary cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Made by an extension.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
        /// Prompt and tools in force.
        #[serde(skip_serializing_if = "Option::is_none")]
        system_message: Option<Message>,
    },
    /// A branch that was left, summarised.
    BranchSummary {
        /// The leaf that was left, or `root`.
        from_id: String,
        /// The summary.
        summary: String,
        /// Files that were read and modified.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Raw>,
        /// What the summary cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Made by an extension.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    },
    /// Drops a message from the context or replaces its content.
    ContextEdit {
        /// The entry it edits.
        target_id: EntryId,
        /// `None` drops the message.
        replacement: Option<Replacement>,
    },
    /// Data of the host; never in the context.
    Custom {
        /// For example `crew-abort`.
        custom_type: String,
        /// Any JSON.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Raw>,
    },
    /// A message of the host; a user message for the model.
    CustomMessage {
        /// For example `crew-result`.
        custom_type: String,
        /// What the model sees.
        content: Content,
        /// Whether faces show it.
        display: bool,
        /// For faces.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Raw>,
    },
    /// A name for an entry.
    Label {
        /// The entry.
        target_id: EntryId,
        /// Absent or empty removes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// A name for the session.
    SessionInfo {
        /// Absent or empty clears it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Tokens spent outside messages.
    Usage {
        /// What for.
        kind: String,
        /// Provider id.
        provider: String,
        /// Model id.
        model: String,
        /// How much.
        usage: Usage,
        /// More words.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A type we do not know; the whole entry as read (`host.md` 2.2.10).
    #[serde(untagged)]
    Unknown(Raw),
}

/// New content of an edited message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    /// Text or blocks.
    pub content: Content,
}

impl Entry {
    /// The line of the file, without its line feed (`host.md` 2.2.1).
    pub fn line(&self) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Base<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            id: &'a EntryId,
            parent_id: &'a Option<EntryId>,
            timestamp: &'a str,
        }
        if let EntryBody::Unknown(raw) = &self.body {
            return raw.text().to_owned();
        }
        let body =
            serde_json::to_string(&self.body).expect("entries hold nothing that JSON refuses");
        let kind = self.body.kind();
        let base =
            Base { kind, id: &self.id, parent_id: &self.parent_id, timestamp: &self.timestamp };
        let mut line = serde_json::to_string(&base).expect("a base holds only text");
        // The body repeats the tag as its first field: `{"type":"label",…}`.
        let rest = &body[r#"{"type":"""#.len() + kind.len()..];
        line.pop();
        line.push_str(rest);
        line
    }
}

impl EntryBody {
    /// The value of `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            EntryBody::Message { .. } => "message",
            EntryBody::ModelChange { .. } => "model_change",
            EntryBody::ThinkingLevelChange { .. } => "thinking_level_change",
            EntryBody::Compaction { .. } => "compaction",
            EntryBody::BranchSummary { .. } => "branch_summary",
            EntryBody::ContextEdit { .. } => "context_edit",
            EntryBody::Custom { .. } => "custom",
            EntryBody::CustomMessage { .. } => "custom_message",
            EntryBody::Label { .. } => "label",
            EntryBody::SessionInfo { .. } => "session_info",
            EntryBody::Usage { .. } => "usage",
            EntryBody::Unknown(_) => "unknown",
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line =
            Raw::parse(&self.line()).ok_or_else(|| serde::ser::Error::custom("entry line"))?;
        line.serialize(serializer)
    }
}

/// Reads the line of an entry. An unknown type, or a known one whose fields do
/// not fit, becomes [`EntryBody::Unknown`]; an error means the line is no JSON
/// object with a textual `type`, `id` and a `parentId`.
pub fn read_line(line: &str) -> serde_json::Result<Entry> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Base {
        #[serde(rename = "type")]
        kind: String,
        id: EntryId,
        #[serde(default)]
        parent_id: Option<EntryId>,
        #[serde(default)]
        timestamp: Option<String>,
    }
    let mended = crate::json::mend_surrogates(line);
    let base: Base = serde_json::from_str(&mended)?;
    let body = read::body(&base.kind, &mended).ok().flatten();
    let unknown =
        || Raw::parse(line).map_or(EntryBody::SessionInfo { name: None }, EntryBody::Unknown);
    Ok(Entry {
        id: base.id,
        parent_id: base.parent_id,
        timestamp: base.timestamp.unwrap_or_default(),
        body: body.unwrap_or_else(unknown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_written_as_they_were_read() {
        for line in [
            r#"{"type":"model_change","id":"d301797c","parentId":null,"timestamp":"2026-11-30T13:43:03.865Z","provider":"fake","modelId":"m1"}"#,
            r#"{"type":"thinking_level_change","id":"6f71a765","parentId":"d301797c","timestamp":"2026-11-30T13:43:03.865Z","thinkingLevel":"low"}"#,
            r#"{"type":"message","id":"d3d68f2d","parentId":"da883ccc","timestamp":"2026-11-30T13:43:03.872Z","message":{"role":"user","content":[{"type":"text","text":"greet"}],"timestamp":1796046183871}}"#,
            r#"{"type":"context_edit","id":"a","parentId":"b","timestamp":"t","targetId":"c","replacement":null}"#,
            r#"{"type":"custom","id":"a","parentId":"b","timestamp":"t","customType":"crew-abort","data":{"n":1.0}}"#,
            r#"{"type":"custom_message","id":"a","parentId":"b","timestamp":"t","customType":"crew-status","content":"{}","display":false,"details":{"id":"x"}}"#,
            r#"{"type":"session_info","id":"a","parentId":"b","timestamp":"t","name":"n"}"#,
            r#"{"type":"crew_test","id":"a","parentId":"b","x":[1.0]}"#,
        ] {
            assert_eq!(read_line(line).unwrap().line(), line);
        }
    }

    #[test]
    fn a_known_type_with_wrong_fields_is_kept_as_read() {
        let line = r#"{"type":"label","id":"a","parentId":null,"timestamp":"t","targetId":7}"#;
        let entry = read_line(line).unwrap();
        assert!(matches!(entry.body, EntryBody::Unknown(_)));
        assert_eq!(entry.line(), line);
    }
}
