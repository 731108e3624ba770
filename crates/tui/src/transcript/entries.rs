//! A session read from its entries (TERM-26, TERM-45, TERM-49).

use std::collections::BTreeMap;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::CallId;
use crew_base::message::{AssistantMessage, Block, Message, StopReason};
use crew_base::time::Time;

use super::item::{Item, compacted};
use super::tool::{End, Tool};

/// Items of the entries of one branch, oldest first.
pub fn items(entries: &[Entry]) -> Vec<Item> {
    let mut reading = Reading::default();
    for entry in entries {
        reading.entry(&entry.body);
    }
    reading.items
}

/// Items of messages, oldest first.
pub fn items_of_messages<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<Item> {
    let mut reading = Reading::default();
    messages.for_each(|message| reading.message(message));
    reading.items
}

#[derive(Default)]
struct Reading {
    items: Vec<Item>,
    /// Where the calls stand that have no result yet.
    calls: BTreeMap<CallId, usize>,
}

impl Reading {
    fn entry(&mut self, body: &EntryBody) {
        match body {
            EntryBody::Message { message } => self.message(message),
            EntryBody::Compaction { summary, tokens_before, .. } => {
                let (head, text) = (compacted(*tokens_before), summary.clone());
                self.items.push(Item::Summary { head, text });
            }
            EntryBody::BranchSummary { summary, .. } => {
                let head = "a branch that was left".to_owned();
                self.items.push(Item::Summary { head, text: summary.clone() });
            }
            EntryBody::Custom { custom_type, data } => {
                self.items.extend(Item::note(custom_type, data.as_ref()));
            }
            EntryBody::CustomMessage { custom_type, content, display, details } => {
                let message = crew_base::message::CustomMessage {
                    custom_type: custom_type.clone(),
                    content: content.clone(),
                    display: *display,
                    details: details.clone(),
                    timestamp: Time(0),
                };
                self.items.extend(Item::custom(&message));
            }
            EntryBody::ModelChange { .. }
            | EntryBody::ThinkingLevelChange { .. }
            | EntryBody::ContextEdit { .. }
            | EntryBody::Label { .. }
            | EntryBody::SessionInfo { .. }
            | EntryBody::Usage { .. }
            | EntryBody::Unknown(_) => {}
        }
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::System(_) => {}
            Message::User(user) => self.items.push(Item::User(user.content.text())),
            Message::Assistant(answer) => self.answer(answer),
            Message::ToolResult(result) => {
                let end = End::of(
                    &result.content,
                    result.details.clone(),
                    result.is_error,
                    result.duration_ms,
                );
                let at = self.calls.remove(&result.tool_call_id);
                if let Some(Item::Tool(tool)) = at.and_then(|at| self.items.get_mut(at)) {
                    tool.end = Some(end);
                }
            }
            Message::BashExecution(shell) => self.items.push(Item::Shell(Box::new(shell.clone()))),
            Message::Custom(custom) => self.items.extend(Item::custom(custom)),
            Message::BranchSummary(summary) => {
                let head = "a branch that was left".to_owned();
                self.items.push(Item::Summary { head, text: summary.summary.clone() });
            }
            Message::CompactionSummary(summary) => {
                let head = compacted(summary.tokens_before);
                self.items.push(Item::Summary { head, text: summary.summary.clone() });
            }
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) {
        for block in &answer.content {
            match block {
                Block::Text(text) if crew_base::text::is_blank(&text.text) => {}
                Block::Text(text) => self.items.push(Item::Answer(text.text.clone())),
                Block::Thinking(thought) if crew_base::text::is_blank(&thought.thinking) => {}
                Block::Thinking(thought) => {
                    self.items.push(Item::Thought(thought.thinking.clone()));
                }
                Block::ToolCall(call) => {
                    self.calls.insert(call.id.clone(), self.items.len());
                    self.items.push(Item::Tool(Box::new(Tool {
                        call: call.id.clone(),
                        name: call.name.clone(),
                        arguments: call.arguments.clone(),
                        started: answer.timestamp,
                        progress: String::new(),
                        details: None,
                        end: None,
                    })));
                }
                Block::Image(_) | Block::Other(_) => {}
            }
        }
        match answer.stop_reason {
            StopReason::Error => {
                let what = answer.error_message.clone().unwrap_or_default();
                let what = format!("{}: {what}", answer.provider);
                self.items.push(Item::Failure { what, next: None });
            }
            StopReason::Aborted => self.items.push(Item::Notice("stopped".to_owned())),
            StopReason::Stop
            | StopReason::Length
            | StopReason::ToolUse
            | StopReason::Pending
            | StopReason::Deferred => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_the_items_that_were_shown_live() {
        let lines = [
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"look"}}"#,
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"toolCall","id":"c1","name":"ls","arguments":{}}],"stopReason":"toolUse"}}"#,
            r#"{"type":"message","id":"c","parentId":"b","timestamp":"t","message":{"role":"toolResult","toolCallId":"c1","toolName":"ls","content":"a\nb"}}"#,
            r#"{"type":"custom","id":"d","parentId":"c","timestamp":"t","customType":"crew-abort","data":{"subagentId":"s-1","brief":"B","status":"aborted","reason":"r"}}"#,
            r#"{"type":"custom_message","id":"e","parentId":"d","timestamp":"t","customType":"crew-status","content":"{}","display":false}"#,
        ];
        let entries: Vec<_> =
            lines.iter().map(|line| crew_base::entry::read_line(line).unwrap()).collect();
        let items = items(&entries);
        assert_eq!(items.len(), 4, "{items:?}");
        assert_eq!(items[0], Item::User("look".into()));
        assert!(
            matches!(&items[2], Item::Tool(tool) if tool.end.as_ref().is_some_and(|end| end.text == "a\nb"))
        );
        assert!(matches!(&items[3], Item::Card(_)));
    }
}
