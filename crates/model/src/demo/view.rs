//! A request as the script sees it: tools offered, and what was said and done,
//! oldest first. Answers that failed are left out, as none of their calls ran.

use crew_base::id::CallId;
use crew_base::message::{
    AssistantMessage, Block, Message, SharedMessage, StopReason, SystemMessage, ToolResultMessage,
};
use serde_json::Value;

/// A request in the few terms of the script.
pub(super) struct View {
    tools: Vec<String>,
    pub(super) items: Vec<Item>,
    /// Size of the request, for the estimate of tokens.
    pub(super) chars: usize,
}

/// One thing that happened.
pub(super) enum Item {
    /// Words of the prompt's author.
    User(String),
    /// An answer and its calls.
    Answer(Vec<Call>),
    /// What a tool gave back.
    Result(Outcome),
    /// The content of a message of the crew.
    Crew(Value),
}

/// A call that was made.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// The result of a call.
pub(super) struct Outcome {
    pub(super) call: CallId,
    pub(super) text: String,
    pub(super) is_error: bool,
    /// The tool says that more was there.
    pub(super) is_cut: bool,
}

impl View {
    /// Reads the messages of a request.
    pub(super) fn of(messages: &[SharedMessage]) -> View {
        let mut view = View { tools: Vec::new(), items: Vec::new(), chars: 0 };
        for message in messages {
            view.take(message);
        }
        view
    }

    /// Whether a tool may be called.
    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    fn take(&mut self, message: &Message) {
        match message {
            Message::System(patch) => self.patch(patch),
            Message::User(user) => self.push_text(user.content.text(), Item::User),
            Message::Assistant(answer) => self.answer(answer),
            Message::ToolResult(result) => self.result(result),
            Message::Custom(custom) => {
                let text = custom.content.text();
                self.chars += text.len();
                if custom.custom_type.starts_with("crew-") {
                    self.items.extend(serde_json::from_str(&text).ok().map(Item::Crew));
                }
            }
            Message::BashExecution(run) => self.chars += run.output.len(),
            Message::BranchSummary(branch) => self.chars += branch.summary.len(),
            Message::CompactionSummary(compaction) => self.chars += compaction.summary.len(),
        }
    }

    fn push_text(&mut self, text: String, item: fn(String) -> Item) {
        self.chars += text.len();
        self.items.push(item(text));
    }

    fn patch(&mut self, patch: &SystemMessage) {
        let sections = patch.sections.0.iter().filter_map(|(_, text)| text.as_ref());
        self.chars += patch.content.text().len() + sections.map(String::len).sum::<usize>();
        self.tools.retain(|tool| !patch.tools_removed.iter().any(|removed| removed.name == *tool));
        for tool in &patch.tools_added {
            self.chars += tool.description.len() + tool.parameters.text().len();
            if !self.offers(&tool.name) {
                self.tools.push(tool.name.clone());
            }
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) {
        self.chars += answer.text().len();
        match answer.stop_reason {
            StopReason::Error | StopReason::Aborted => return,
            StopReason::Stop
            | StopReason::Length
            | StopReason::ToolUse
            | StopReason::Pending
            | StopReason::Deferred => {}
        }
        let calls = answer.tool_calls().map(|call| Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.value(),
        });
        self.items.push(Item::Answer(calls.collect()));
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let texts: Vec<_> = result.content.iter().filter_map(Block::as_text).collect();
        let text = texts.join("\n");
        self.chars += text.len();
        let details = result.details.as_ref().map(|details| details.value());
        self.items.push(Item::Result(Outcome {
            call: result.tool_call_id.clone(),
            text,
            is_error: result.is_error,
            is_cut: details.is_some_and(|details| details.get("truncation").is_some()),
        }));
    }
}
