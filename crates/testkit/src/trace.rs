//! Effects as short lines, so that a test can show them in order.

use crew_agent::{Effect, Update};
use crew_base::entry::{Entry, EntryBody};
use crew_base::message::{Block, Message};

/// One effect of a session; deltas of an answer are left out.
pub fn line(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Append(entry) => format!("write {}", body(entry)),
        Effect::StartModel { request, .. } => format!("ask with {}", request.messages.len()),
        Effect::RunTool { call, .. } => format!("run {} {}", call.name, call.id),
        Effect::Cancel { .. } => "cancel".to_owned(),
        Effect::ReadBranch { to, .. } => format!("read branch to {to}"),
        Effect::MoveEnded(_) | Effect::Boundary => return None,
        Effect::Entered(delivery) => format!("entered {}", delivery.0),
        Effect::Refused(deliveries) => {
            let numbers: Vec<_> = deliveries.iter().map(|one| one.0.to_string()).collect();
            format!("refused {}", numbers.join(" "))
        }
        Effect::Update(update) => return update_line(update),
        Effect::Settled(end) => format!("idle {end:?}"),
    })
}

/// What a face is told, named as in `host.md` 3.2.
pub fn update_line(update: &Update) -> Option<String> {
    Some(match update {
        Update::AgentStart => "agent_start".to_owned(),
        Update::TurnStart => "turn_start".to_owned(),
        Update::MessageStart(message) => format!("message_start {}", role(message)),
        Update::MessageUpdate { .. } => return None,
        Update::MessageEnd(message) => format!("message_end {}", message_line(message)),
        Update::ToolStart { call, name, .. } => format!("tool_start {name} {call}"),
        Update::ToolProgress { call, name, .. } => format!("tool_update {name} {call}"),
        Update::ToolEnd { call, name, outcome, duration_ms } => {
            let how = if outcome.is_error { "error" } else { "ok" };
            let ran = if duration_ms.is_some() { "" } else { " not run" };
            format!("tool_end {name} {call} {how}{ran}")
        }
        Update::TurnEnd { results, .. } => format!("turn_end {}", results.len()),
        Update::AgentEnd { will_retry: true, .. } => "agent_end will retry".to_owned(),
        Update::AgentEnd { .. } => "agent_end".to_owned(),
        Update::AgentSettled { aborted } => format!("agent_settled aborted={aborted}"),
        Update::QueueUpdate { steering, follow_up } => format!("queue {steering:?} {follow_up:?}"),
        Update::RetryStart { attempt, attempts_max, delay_ms, error } => {
            format!("retry_start {attempt}/{attempts_max} {delay_ms}ms {error}")
        }
        Update::RetryEnd { success, attempt, final_error } => {
            format!("retry_end {success} {attempt} {}", final_error.as_deref().unwrap_or("-"))
        }
        Update::EntryAppended(entry) => format!("entry {}", body(entry)),
        other => format!("{other:?}"),
    })
}

/// What an entry says.
pub fn body(entry: &Entry) -> String {
    match &entry.body {
        EntryBody::Message { message } => message_line(message),
        EntryBody::CustomMessage { custom_type, content, .. } => {
            format!("{custom_type}: {}", content.text())
        }
        EntryBody::Custom { custom_type, .. } => format!("entry {custom_type}"),
        other => other.kind().to_owned(),
    }
}

/// A message in a few words.
pub fn message_line(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user: {}", user.content.text()),
        Message::Assistant(answer) => {
            let parts: Vec<_> = answer.content.iter().map(block).collect();
            let why = answer.error_message.as_deref().map(|why| format!(" ({why})"));
            let parts = parts.join(" + ");
            format!("{:?}: {parts}{}", answer.stop_reason, why.unwrap_or_default())
        }
        Message::ToolResult(result) => {
            let how = if result.is_error { "error" } else { "ok" };
            let text: String = result.content.iter().filter_map(|part| part.as_text()).collect();
            format!("{} {how}: {text}", result.tool_call_id)
        }
        Message::Custom(custom) => format!("{}: {}", custom.custom_type, custom.content.text()),
        other => role(other).to_owned(),
    }
}

fn block(part: &Block) -> String {
    match part {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => format!("<{}>", thinking.thinking),
        Block::ToolCall(call) => format!("{}({})", call.name, call.id),
        other => format!("{other:?}"),
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::System(_) => "system",
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "result",
        Message::BashExecution(_) => "bash",
        Message::Custom(_) => "custom",
        Message::BranchSummary(_) | Message::CompactionSummary(_) => "summary",
    }
}
