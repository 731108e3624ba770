//! How the fields of an entry are read, by its type (`host.md` 2.4).
//!
//! Owns the shapes that files may have. Must never buffer the fields of an
//! entry as values: opaque parts keep their text ([`crate::json::Raw`]). Read
//! `entry` for what the fields mean.

use serde::Deserialize;

use super::{EntryBody, Replacement};
use crate::id::EntryId;
use crate::json::Raw;
use crate::message::{Content, Message, SystemMessage, Usage};

/// The body of an entry of this type; `None` for a type we do not know.
pub(super) fn body(kind: &str, line: &str) -> serde_json::Result<Option<EntryBody>> {
    let body = match kind {
        "message" => read::<MessageFields>(line)?,
        "model_change" => read::<ModelChange>(line)?,
        "thinking_level_change" => read::<ThinkingLevelChange>(line)?,
        "compaction" => read::<Compaction>(line)?,
        "branch_summary" => read::<BranchSummary>(line)?,
        "context_edit" => read::<ContextEdit>(line)?,
        "custom" => read::<Custom>(line)?,
        "custom_message" => read::<CustomMessage>(line)?,
        "label" => read::<Label>(line)?,
        "session_info" => read::<SessionInfo>(line)?,
        "usage" => read::<UsageFields>(line)?,
        _ => return Ok(None),
    };
    Ok(Some(body))
}

fn read<'a, F: Deserialize<'a> + Into<EntryBody>>(line: &'a str) -> serde_json::Result<EntryBody> {
    serde_json::from_str::<F>(line).map(Into::into)
}

#[derive(Deserialize)]
struct MessageFields {
    message: Message,
}

impl From<MessageFields> for EntryBody {
    fn from(fields: MessageFields) -> EntryBody {
        let MessageFields { message } = fields;
        EntryBody::Message { message }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelChange {
    provider: String,
    model_id: String,
}

impl From<ModelChange> for EntryBody {
    fn from(fields: ModelChange) -> EntryBody {
        let ModelChange { provider, model_id } = fields;
        EntryBody::ModelChange { provider, model_id }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingLevelChange {
    thinking_level: String,
}

impl From<ThinkingLevelChange> for EntryBody {
    fn from(fields: ThinkingLevelChange) -> EntryBody {
        let ThinkingLevelChange { thinking_level } = fields;
        EntryBody::ThinkingLevelChange { thinking_level }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compaction {
    summary: String,
    first_kept_entry_id: EntryId,
    #[serde(default)]
    tokens_before: u64,
    details: Option<Raw>,
    usage: Option<Usage>,
    from_hook: Option<bool>,
    system_message: Option<SystemMessage>,
}

impl From<Compaction> for EntryBody {
    fn from(fields: Compaction) -> EntryBody {
        let Compaction {
            summary,
            first_kept_entry_id,
            tokens_before,
            details,
            usage,
            from_hook,
            system_message,
        } = fields;
        let system_message = system_message.map(Message::System);
        EntryBody::Compaction {
            summary,
            first_kept_entry_id,
            tokens_before,
            details,
            usage,
            from_hook,
            system_message,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BranchSummary {
    from_id: String,
    summary: String,
    details: Option<Raw>,
    usage: Option<Usage>,
    from_hook: Option<bool>,
}

impl From<BranchSummary> for EntryBody {
    fn from(fields: BranchSummary) -> EntryBody {
        let BranchSummary { from_id, summary, details, usage, from_hook } = fields;
        EntryBody::BranchSummary { from_id, summary, details, usage, from_hook }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextEdit {
    target_id: EntryId,
    replacement: Option<Replacement>,
}

impl From<ContextEdit> for EntryBody {
    fn from(fields: ContextEdit) -> EntryBody {
        let ContextEdit { target_id, replacement } = fields;
        EntryBody::ContextEdit { target_id, replacement }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Custom {
    custom_type: String,
    data: Option<Raw>,
}

impl From<Custom> for EntryBody {
    fn from(fields: Custom) -> EntryBody {
        let Custom { custom_type, data } = fields;
        EntryBody::Custom { custom_type, data }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomMessage {
    custom_type: String,
    #[serde(default)]
    content: Content,
    #[serde(default)]
    display: bool,
    details: Option<Raw>,
}

impl From<CustomMessage> for EntryBody {
    fn from(fields: CustomMessage) -> EntryBody {
        let CustomMessage { custom_type, content, display, details } = fields;
        EntryBody::CustomMessage { custom_type, content, display, details }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Label {
    target_id: EntryId,
    label: Option<String>,
}

impl From<Label> for EntryBody {
    fn from(fields: Label) -> EntryBody {
        let Label { target_id, label } = fields;
        EntryBody::Label { target_id, label }
    }
}

#[derive(Deserialize)]
struct SessionInfo {
    name: Option<String>,
}

impl From<SessionInfo> for EntryBody {
    fn from(fields: SessionInfo) -> EntryBody {
        let SessionInfo { name } = fields;
        EntryBody::SessionInfo { name }
    }
}

#[derive(Deserialize)]
struct UsageFields {
    kind: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    usage: Usage,
    note: Option<String>,
}

impl From<UsageFields> for EntryBody {
    fn from(fields: UsageFields) -> EntryBody {
        let UsageFields { kind, provider, model, usage, note } = fields;
        EntryBody::Usage { kind, provider, model, usage, note }
    }
}
