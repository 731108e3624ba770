//! Counts and sums over all entries of a session (`host.md` 7.3.2), and the
//! data that the host keeps in `custom` entries.

use crew_base::entry::{EntryBody, read_line};
use crew_base::id::EntryId;
use crew_base::json::{self, Raw};
use crew_base::message::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::index::{Kind, Role};
use super::snapshot::Snapshot;
use crate::error::Result;

/// What a session holds and has cost, children of `crew_spawn` not included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// `message` entries of the role `user`.
    pub user_messages: usize,
    /// `message` entries of the role `assistant`.
    pub assistant_messages: usize,
    /// Tool calls in assistant messages.
    pub tool_calls: usize,
    /// `message` entries of the role `toolResult`.
    pub tool_results: usize,
    /// All `message` entries.
    pub messages: usize,
    /// Tokens and cost of answers, tool results, compactions, branch summaries
    /// and `usage` entries.
    pub usage: Usage,
}

/// Adds up a session.
pub fn totals(log: &Snapshot) -> Result<Totals> {
    let mut totals = Totals::default();
    log.each_line(0, |entry, line| match entry.kind {
        Kind::Message(role) => {
            totals.messages += 1;
            match role {
                Role::User => totals.user_messages += 1,
                Role::Assistant => {
                    totals.assistant_messages += 1;
                    totals.tool_calls += add(&mut totals.usage, line);
                }
                Role::ToolResult => {
                    totals.tool_results += 1;
                    add(&mut totals.usage, line);
                }
                Role::System | Role::BashExecution | Role::Custom | Role::Other => {}
            }
        }
        Kind::Compaction | Kind::BranchSummary | Kind::Usage => {
            add(&mut totals.usage, line);
        }
        Kind::ModelChange
        | Kind::ThinkingLevelChange
        | Kind::ContextEdit
        | Kind::Custom
        | Kind::CustomMessage
        | Kind::Label
        | Kind::SessionInfo
        | Kind::Unknown => {}
    })?;
    Ok(totals)
}

/// Adds the usage of a line and yields the number of its tool calls.
fn add(sum: &mut Usage, line: &str) -> usize {
    #[derive(Deserialize)]
    struct Fields<'a> {
        usage: Option<Usage>,
        #[serde(borrow)]
        message: Option<Message<'a>>,
    }
    #[derive(Deserialize)]
    struct Message<'a> {
        usage: Option<Usage>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Tag<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<&'a str>,
    }
    let mended = json::mend_surrogates(line);
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(&mended) else {
        return 0;
    };
    let in_message = fields.message.as_ref().and_then(|m| m.usage.as_ref());
    for usage in fields.usage.iter().chain(in_message) {
        sum.add(usage);
    }
    let content = fields.message.and_then(|message| message.content);
    let blocks: Option<Vec<Tag<'_>>> =
        content.and_then(|content| serde_json::from_str(content.get()).ok());
    let is_call = |tag: &&Tag<'_>| tag.kind == Some("toolCall");
    blocks.map_or(0, |blocks| blocks.iter().filter(is_call).count())
}

/// The data of all `custom` entries of one type, in file order.
pub fn custom_data(log: &Snapshot, custom_type: &str) -> Result<Vec<(EntryId, Raw)>> {
    let mut found = Vec::new();
    log.each_line(0, |indexed, line| {
        // Looked for as text first: reading every line costs more.
        if indexed.kind != Kind::Custom || !line.contains(custom_type) {
            return;
        }
        if let Ok(entry) = read_line(line)
            && let EntryBody::Custom { custom_type: kind, data: Some(data) } = entry.body
            && kind == custom_type
        {
            found.push((entry.id, data));
        }
    })?;
    Ok(found)
}
