//! Events as lines of JSON (`host.md` 3.2, 7.4; for the crew 7.3.12).
//!
//! Pure: updates in, text out. Opaque parts of messages keep their text, so
//! nothing here goes through a JSON value. Must never leave an event out or
//! put one on two lines.

mod moved;

use std::collections::BTreeMap;

use crew_base::entry::{Entry, Header};
use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::message::{Block, Message, SharedMessage, Usage};
use crew_base::model::ModelEvent;
use crew_base::tool::{ToolOutcome, ToolProgress};
use crew_engine::api::{CompactionReason, CompactionResult, CrewUpdate, SessionUpdate, UpdateKind};
use serde::Serialize;

pub(crate) use moved::MoveWire;

/// Turns updates into lines; remembers which block of the streaming answer is
/// of which kind, because a delta does not say.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    open: BTreeMap<usize, BlockKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    ToolCall,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Event<'a> {
    AgentStart,
    TurnStart,
    MessageStart {
        message: &'a Message,
    },
    MessageUpdate {
        usage: &'a Usage,
        assistant_message_event: AnswerEvent<'a>,
    },
    MessageEnd {
        message: &'a Message,
    },
    ToolExecutionStart {
        tool_call_id: &'a CallId,
        tool_name: &'a str,
        args: &'a Raw,
    },
    ToolExecutionUpdate {
        tool_call_id: &'a CallId,
        tool_name: &'a str,
        args: &'a Raw,
        partial_result: ToolResult<'a>,
    },
    ToolExecutionEnd {
        tool_call_id: &'a CallId,
        tool_name: &'a str,
        result: ToolResult<'a>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    TurnEnd {
        message: &'a Message,
        tool_results: &'a [SharedMessage],
    },
    AgentEnd {
        messages: &'a [SharedMessage],
        will_retry: bool,
    },
    AgentSettled {
        aborted: bool,
    },
    QueueUpdate {
        steering: &'a [String],
        follow_up: &'a [String],
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<&'a str>,
    },
    CompactionStart {
        reason: &'a str,
    },
    CompactionEnd {
        reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CompactionWire<'a>>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<&'a str>,
    },
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    SummarizationRetryAttemptStart {
        source: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    SummarizationRetryFinished,
    #[serde(rename = "crew_branch_summary_start")]
    BranchSummaryStart,
    #[serde(rename = "crew_tree_move_end")]
    MoveEnd(MoveWire),
    EntryAppended {
        entry: &'a Entry,
    },
    ThinkingLevelChanged {
        level: &'a str,
    },
    SessionInfoChanged {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
}

/// The result of a compaction (`host.md` 3.8.15).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionWire<'a> {
    summary: &'a str,
    first_kept_entry_id: &'a str,
    tokens_before: u64,
    estimated_tokens_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Raw>,
}

impl<'a> From<&'a CompactionResult> for CompactionWire<'a> {
    fn from(result: &'a CompactionResult) -> CompactionWire<'a> {
        CompactionWire {
            summary: &result.summary,
            first_kept_entry_id: result.first_kept_entry_id.as_str(),
            tokens_before: result.tokens_before,
            estimated_tokens_after: result.estimated_tokens_after,
            usage: result.usage.as_ref(),
            details: result.details.as_ref(),
        }
    }
}

#[derive(Serialize)]
struct ToolResult<'a> {
    content: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Raw>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
enum AnswerEvent<'a> {
    #[serde(rename = "text_start")]
    TextStart { content_index: usize },
    #[serde(rename = "thinking_start")]
    ThinkingStart { content_index: usize },
    #[serde(rename = "toolcall_start")]
    ToolCallStart { content_index: usize, id: &'a CallId, tool_name: &'a str },
    #[serde(rename = "text_delta")]
    TextDelta { content_index: usize, delta: &'a str },
    #[serde(rename = "thinking_delta")]
    ThinkingDelta { content_index: usize, delta: &'a str },
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta { content_index: usize, delta: &'a str },
    #[serde(rename = "text_end")]
    TextEnd { content_index: usize, content: &'a str },
    #[serde(rename = "thinking_end")]
    ThinkingEnd { content_index: usize, content: &'a str },
    #[serde(rename = "toolcall_end")]
    ToolCallEnd { content_index: usize, tool_call: &'a Block },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CrewEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    owner_id: &'a str,
    session_id: &'a str,
    subagent_id: &'a str,
    subagent: &'a str,
    brief: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
}

impl Wire {
    /// The line of a session's update, with its line feed; `None` for what has
    /// no event on the wire.
    pub(crate) fn session(&mut self, update: &SessionUpdate) -> Option<String> {
        let event = match update {
            SessionUpdate::AgentStart => Event::AgentStart,
            SessionUpdate::TurnStart => Event::TurnStart,
            SessionUpdate::MessageStart(message) => {
                if message.as_assistant().is_some() {
                    self.open.clear();
                }
                Event::MessageStart { message }
            }
            SessionUpdate::MessageUpdate { event, usage } => {
                Event::MessageUpdate { usage, assistant_message_event: self.answer_event(event)? }
            }
            SessionUpdate::MessageEnd(message) => Event::MessageEnd { message },
            SessionUpdate::ToolStart { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. } => tool_event(update)?,
            SessionUpdate::TurnEnd { message, results } => {
                Event::TurnEnd { message, tool_results: results }
            }
            SessionUpdate::AgentEnd { messages, will_retry } => {
                Event::AgentEnd { messages, will_retry: *will_retry }
            }
            SessionUpdate::AgentSettled { aborted } => Event::AgentSettled { aborted: *aborted },
            SessionUpdate::QueueUpdate { steering, follow_up } => {
                Event::QueueUpdate { steering, follow_up }
            }
            SessionUpdate::RetryStart { attempt, attempts_max, delay_ms, error } => {
                Event::AutoRetryStart {
                    attempt: *attempt,
                    max_attempts: *attempts_max,
                    delay_ms: *delay_ms,
                    error_message: error,
                }
            }
            SessionUpdate::RetryEnd { success, attempt, final_error } => Event::AutoRetryEnd {
                success: *success,
                attempt: *attempt,
                final_error: final_error.as_deref(),
            },
            SessionUpdate::CompactionStart { .. }
            | SessionUpdate::CompactionEnd { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished => compaction_event(update)?,
            SessionUpdate::BranchSummaryStart => Event::BranchSummaryStart,
            SessionUpdate::MoveEnd(end) => Event::MoveEnd(MoveWire::from(end)),
            SessionUpdate::EntryAppended(entry) => Event::EntryAppended { entry },
            SessionUpdate::ThinkingLevelChanged(level) => {
                Event::ThinkingLevelChanged { level: level.word() }
            }
            SessionUpdate::SessionInfoChanged(name) => {
                Event::SessionInfoChanged { name: name.as_deref() }
            }
        };
        Some(line(&event))
    }

    fn answer_event<'a>(&mut self, event: &'a ModelEvent) -> Option<AnswerEvent<'a>> {
        match event {
            ModelEvent::BlockStart { index, block } => {
                let content_index = *index;
                let (kind, event) = match block {
                    Block::Text(_) => (BlockKind::Text, AnswerEvent::TextStart { content_index }),
                    Block::Thinking(_) => {
                        (BlockKind::Thinking, AnswerEvent::ThinkingStart { content_index })
                    }
                    Block::ToolCall(call) => {
                        let (id, tool_name) = (&call.id, call.name.as_str());
                        let event = AnswerEvent::ToolCallStart { content_index, id, tool_name };
                        (BlockKind::ToolCall, event)
                    }
                    Block::Image(_) | Block::Other(_) => return None,
                };
                self.open.insert(content_index, kind);
                Some(event)
            }
            ModelEvent::BlockDelta { index, delta } => {
                let content_index = *index;
                Some(match self.open.get(index)? {
                    BlockKind::Text => AnswerEvent::TextDelta { content_index, delta },
                    BlockKind::Thinking => AnswerEvent::ThinkingDelta { content_index, delta },
                    BlockKind::ToolCall => AnswerEvent::ToolCallDelta { content_index, delta },
                })
            }
            ModelEvent::BlockEnd { index, block } => {
                let content_index = *index;
                Some(match block {
                    Block::Text(text) => {
                        AnswerEvent::TextEnd { content_index, content: &text.text }
                    }
                    Block::Thinking(thinking) => {
                        AnswerEvent::ThinkingEnd { content_index, content: &thinking.thinking }
                    }
                    Block::ToolCall(_) => {
                        AnswerEvent::ToolCallEnd { content_index, tool_call: block }
                    }
                    Block::Image(_) | Block::Other(_) => return None,
                })
            }
            ModelEvent::Started
            | ModelEvent::Usage(_)
            | ModelEvent::Identity { .. }
            | ModelEvent::Finished { .. }
            | ModelEvent::Failed(_) => None,
        }
    }
}

/// The event of a tool; `None` for another update.
fn tool_event(update: &SessionUpdate) -> Option<Event<'_>> {
    if let SessionUpdate::ToolStart { call, name, arguments } = update {
        return Some(Event::ToolExecutionStart {
            tool_call_id: call,
            tool_name: name,
            args: arguments,
        });
    }
    if let SessionUpdate::ToolProgress { call, name, arguments, progress } = update {
        return Some(Event::ToolExecutionUpdate {
            tool_call_id: call,
            tool_name: name,
            args: arguments,
            partial_result: ToolResult::of_progress(progress),
        });
    }
    let SessionUpdate::ToolEnd { call, name, outcome, duration_ms } = update else { return None };
    Some(Event::ToolExecutionEnd {
        tool_call_id: call,
        tool_name: name,
        result: ToolResult::of_outcome(outcome),
        is_error: outcome.is_error,
        duration_ms: *duration_ms,
    })
}

/// The event of a compaction; `None` for another update.
fn compaction_event(update: &SessionUpdate) -> Option<Event<'_>> {
    if let SessionUpdate::CompactionStart { reason } = update {
        return Some(Event::CompactionStart { reason: reason.word() });
    }
    if let SessionUpdate::CompactionEnd { reason, result, aborted, will_retry, error } = update {
        return Some(Event::CompactionEnd {
            reason: reason.word(),
            result: result.as_ref().map(CompactionWire::from),
            aborted: *aborted,
            will_retry: *will_retry,
            error_message: error.as_deref(),
        });
    }
    if let SessionUpdate::SummaryRetryScheduled { attempt, attempts_max, delay_ms, error } = update
    {
        return Some(Event::SummarizationRetryScheduled {
            attempt: *attempt,
            max_attempts: *attempts_max,
            delay_ms: *delay_ms,
            error_message: error,
        });
    }
    if let SessionUpdate::SummaryRetryStart { reason } = update {
        let source = if reason.is_some() { "compaction" } else { "branchSummary" };
        let reason = reason.map(CompactionReason::word);
        return Some(Event::SummarizationRetryAttemptStart { source, reason });
    }
    let is_finished = matches!(update, SessionUpdate::SummaryRetryFinished);
    is_finished.then_some(Event::SummarizationRetryFinished)
}

/// The line of something that happened to a subagent.
pub(crate) fn crew(update: &CrewUpdate) -> String {
    let mut event = CrewEvent {
        kind: "crew_spawned",
        owner_id: update.owner.as_str(),
        session_id: update.session.as_str(),
        subagent_id: update.subagent.as_str(),
        subagent: &update.definition,
        brief: &update.brief,
        status: update.status.word(),
        model: update.model.as_deref(),
        tool: None,
        target: None,
        text: None,
        usage: None,
    };
    match &update.kind {
        UpdateKind::Spawned => {}
        UpdateKind::Responded => event.kind = "crew_responded",
        UpdateKind::Activity { tool, target } => {
            event.kind = "crew_activity";
            event.tool = Some(tool);
            event.target = Some(target);
        }
        UpdateKind::Settled { text, usage } => {
            event.kind = "crew_settled";
            event.text = Some(text);
            event.usage = Some(usage);
        }
        UpdateKind::Delivered => event.kind = "crew_delivered",
        UpdateKind::Closed => event.kind = "crew_closed",
    }
    line(&event)
}

/// The first line of the JSON face (`host.md` 6.1.4).
pub(crate) fn header(header: &Header) -> String {
    line(header)
}

/// Compact JSON and a line feed (`host.md` 0.1, 7.1.1).
fn line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).expect("events hold nothing that JSON refuses");
    line.push('\n');
    line
}

impl<'a> ToolResult<'a> {
    fn of_outcome(outcome: &'a ToolOutcome) -> ToolResult<'a> {
        ToolResult { content: &outcome.content, details: outcome.details.as_ref() }
    }

    fn of_progress(progress: &'a ToolProgress) -> ToolResult<'a> {
        ToolResult { content: &progress.content, details: progress.details.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::message::{TextBlock, ThinkingBlock, ToolCall};
    use crew_base::time::Time;
    use std::sync::Arc;

    fn call(arguments: &str) -> Block {
        Block::ToolCall(ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: Raw::parse(arguments).unwrap(),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        })
    }

    fn update(event: ModelEvent) -> SessionUpdate {
        SessionUpdate::MessageUpdate { event, usage: Usage::default() }
    }

    #[test]
    fn deltas_carry_the_kind_of_their_block_and_no_message() {
        // host.md 7.4.1, 11.90
        let mut wire = Wire::default();
        let mut check = |event: ModelEvent, expected: &str| {
            let line = wire.session(&update(event)).unwrap();
            let at = line.find("\"assistantMessageEvent\":").unwrap();
            assert_eq!(&line[at + 24..], format!("{expected}}}\n"));
            assert!(line.contains("\"usage\":{") && !line.contains("\"message\""), "{line}");
        };
        let text = Block::Text(TextBlock::default());
        let thinking = Block::Thinking(ThinkingBlock::default());
        check(
            ModelEvent::BlockStart { index: 0, block: thinking },
            r#"{"type":"thinking_start","contentIndex":0}"#,
        );
        check(
            ModelEvent::BlockStart { index: 1, block: text },
            r#"{"type":"text_start","contentIndex":1}"#,
        );
        check(
            ModelEvent::BlockStart { index: 2, block: call("{}") },
            r#"{"type":"toolcall_start","contentIndex":2,"id":"c1","toolName":"bash"}"#,
        );
        check(
            ModelEvent::BlockDelta { index: 1, delta: "a\u{2028}".into() },
            "{\"type\":\"text_delta\",\"contentIndex\":1,\"delta\":\"a\u{2028}\"}",
        );
        check(
            ModelEvent::BlockDelta { index: 2, delta: "{".into() },
            r#"{"type":"toolcall_delta","contentIndex":2,"delta":"{"}"#,
        );
        check(
            ModelEvent::BlockEnd { index: 2, block: call(r#"{"z":1.0,"a":2}"#) },
            r#"{"type":"toolcall_end","contentIndex":2,"toolCall":{"type":"toolCall","id":"c1","name":"bash","arguments":{"z":1.0,"a":2}}}"#,
        );
        check(
            ModelEvent::BlockEnd { index: 1, block: Block::text("whole") },
            r#"{"type":"text_end","contentIndex":1,"content":"whole"}"#,
        );
    }

    #[test]
    fn what_has_no_event_gives_no_line() {
        let mut wire = Wire::default();
        assert_eq!(wire.session(&update(ModelEvent::Started)), None);
        let stray = ModelEvent::BlockDelta { index: 7, delta: "x".into() };
        assert_eq!(wire.session(&update(stray)), None);
    }

    #[test]
    fn events_have_the_documented_fields() {
        // host.md 3.2
        let mut wire = Wire::default();
        let mut check = |update: SessionUpdate, expected: &str| {
            assert_eq!(wire.session(&update).unwrap(), format!("{expected}\n"));
        };
        let user = Arc::new(Message::user_text("hi", Time(5)));
        let shown = r#"{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}"#;
        check(
            SessionUpdate::MessageStart(user.clone()),
            &format!(r#"{{"type":"message_start","message":{shown}}}"#),
        );
        check(
            SessionUpdate::AgentEnd { messages: vec![user], will_retry: false },
            &format!(r#"{{"type":"agent_end","messages":[{shown}],"willRetry":false}}"#),
        );
        check(
            SessionUpdate::AgentSettled { aborted: true },
            r#"{"type":"agent_settled","aborted":true}"#,
        );
        check(
            SessionUpdate::ToolEnd {
                call: "c".into(),
                name: "ls".into(),
                outcome: ToolOutcome::error("no"),
                duration_ms: None,
            },
            r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"ls","result":{"content":[{"type":"text","text":"no"}]},"isError":true}"#,
        );
        check(
            SessionUpdate::RetryStart {
                attempt: 1,
                attempts_max: 3,
                delay_ms: 20,
                error: "e".into(),
            },
            r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":20,"errorMessage":"e"}"#,
        );
        check(
            SessionUpdate::QueueUpdate { steering: vec!["a".into()], follow_up: Vec::new() },
            r#"{"type":"queue_update","steering":["a"],"followUp":[]}"#,
        );
    }

    #[test]
    fn crew_events_name_owner_child_and_what_happened() {
        // host.md 7.3.12, product.md P-20
        let line = crew(&CrewUpdate {
            owner: "o".into(),
            session: "s".into(),
            subagent: "scout-1".into(),
            definition: "scout".into(),
            brief: "look".into(),
            model: Some("p/m".into()),
            status: crew_engine::api::Status::Running,
            kind: UpdateKind::Activity { tool: "bash".into(), target: "ls".into() },
        });
        let expected = r#"{"type":"crew_activity","ownerId":"o","sessionId":"s","subagentId":"scout-1","subagent":"scout","brief":"look","status":"running","model":"p/m","tool":"bash","target":"ls"}"#;
        assert_eq!(line, format!("{expected}\n"));
    }
}
