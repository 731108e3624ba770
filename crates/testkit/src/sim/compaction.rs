//! Compactions in the simulation (`host.md` 3.8): how they are provoked, what
//! their requests get, and what must hold of them.

use crew_agent::{CompactionSettings, Settings};
use crew_base::id::Ids;
use crew_base::message::{Block, Message, StopReason, Usage};
use crew_base::model::{CacheRetention, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use serde_json::json;

use super::script::Reply;
use super::world::World;
use crate::fixtures::{block, call, failed, finished, usage};

/// Settings under which short sessions are compacted.
pub(super) fn settings() -> Settings {
    let compaction =
        CompactionSettings { enabled: true, reserve_tokens: 10_000, keep_recent_tokens: 60 };
    Settings { compaction, ..Settings::default() }
}

/// What an answer says it used: now and then more than the threshold allows,
/// or even more than the window holds.
pub(super) fn used(rng: &mut Ids) -> ModelEvent {
    let input = match rng.below(40) {
        0..=4 => 95_000,
        5 => 150_000,
        _ => return usage(),
    };
    let total_tokens = input + 1;
    ModelEvent::Usage(Usage { input, output: 1, total_tokens, ..Usage::default() })
}

/// A refusal of a request that is too long.
pub(super) fn overflow() -> ModelEvent {
    let text = "400: prompt is too long: 120000 tokens > 100000 maximum";
    let error = ModelError::new(ModelErrorKind::Provider, text);
    ModelEvent::Failed(ModelError { status: Some(400), ..error })
}

/// Whether a request asks for a summary.
pub(super) fn is_summary(request: &ModelRequest) -> bool {
    request.cache == CacheRetention::None
}

/// A summary request is whole in itself and offers no tools (3.8.10).
pub(super) fn check(request: &ModelRequest) -> Result<(), String> {
    let [instruction, conversation] = &request.messages[..] else {
        return Err(format!("a summary request of {} messages", request.messages.len()));
    };
    match (instruction.as_ref(), conversation.as_ref()) {
        (Message::System(system), Message::User(_)) if system.tools_added.is_empty() => Ok(()),
        other => Err(format!("a summary request of other messages: {other:?}")),
    }
}

/// What a summary request gets: mostly a summary.
pub(super) fn reply(rng: &mut Ids, calm: bool) -> Reply {
    let text = |stop| {
        vec![
            vec![ModelEvent::Started],
            block(0, Block::text("the summary")).into(),
            vec![usage(), finished(stop)],
        ]
    };
    match if calm { 9 } else { rng.below(14) } {
        0 => vec![vec![failed(ModelErrorKind::Overloaded, Some(529))]],
        1 => vec![vec![ModelEvent::Started], vec![failed(ModelErrorKind::Truncated, None)]],
        2 => vec![vec![overflow()]],
        3 => text(StopReason::Length),
        4 => {
            let call = Block::ToolCall(call("summary", "bash", &json!({"command": "true"})));
            vec![block(0, call).into(), vec![usage(), finished(StopReason::ToolUse)]]
        }
        _ => text(StopReason::Stop),
    }
}

impl World {
    /// The context of every owner is what its file gives (2.6).
    pub(super) fn contexts_are_stored(&self) -> Result<(), String> {
        for session in self.owners.iter().filter(|owner| !self.checks.is_torn(owner)) {
            let Some(agent) = self.engine.agent(session) else { continue };
            let leaf = agent.record().leaf();
            let Some(context) = self.disk.context(session, leaf) else { continue };
            let held: Vec<_> = agent.record().messages().map(|held| untimed(held)).collect();
            let stored: Vec<_> = context.iter().map(|(_, stored)| untimed(stored)).collect();
            if held != stored {
                return Err(format!("{session}: the context is not what the file gives"));
            }
        }
        Ok(())
    }
}

/// A message without the time that only its entry has.
fn untimed(message: &Message) -> Message {
    let mut message = message.clone();
    match &mut message {
        Message::Custom(custom) => custom.timestamp = Default::default(),
        Message::CompactionSummary(summary) => summary.timestamp = Default::default(),
        Message::BranchSummary(summary) => summary.timestamp = Default::default(),
        Message::System(_)
        | Message::User(_)
        | Message::Assistant(_)
        | Message::ToolResult(_)
        | Message::BashExecution(_) => {}
    }
    message
}
