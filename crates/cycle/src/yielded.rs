//! The `yield` contract of a `task` child (`task.md` 5, FINAL-1, FINAL-2).
//!
//! Owns the tool, its verdicts and everything the child said or handed in.
//! Must never shape a result: that is `task::finalise`, which reads what is
//! gathered here. Read `yielded::judge` for the verdicts, `yielded::tool` for
//! what the child sees.

mod item;
mod judge;
mod tool;

use crew_base::limits::TASK_REMINDERS_MAX;
use crew_base::message::{AssistantMessage, Message, StopReason};
use crew_base::text::is_blank;

use crate::contract::{Contract, Terms};
use crate::ladder::Reminder;
use crate::schema::OutputSchema;

pub use item::{Item, Status};
pub use judge::Verdict;
pub use tool::{YIELD_TOOL, definition, guideline};

/// Entry type of reminders (`task.md` OBS-7).
pub const REMINDER_TYPE: &str = "task-reminder";

/// What a child handed in and said, from its first prompt on.
#[derive(Clone, Debug)]
pub struct Yields {
    schema: OutputSchema,
    items: Vec<Item>,
    is_accepted: bool,
    corrections: u32,
    empties: u32,
    raw_text: String,
    report: Option<String>,
    last_text: Option<String>,
    cut_text: Option<String>,
}

impl Yields {
    /// Nothing handed in yet.
    pub fn new(schema: OutputSchema) -> Yields {
        Yields {
            schema,
            items: Vec::new(),
            is_accepted: false,
            corrections: 0,
            empties: 0,
            raw_text: String::new(),
            report: None,
            last_text: None,
            cut_text: None,
        }
    }

    /// The schema that applies.
    pub fn schema(&self) -> &OutputSchema {
        &self.schema
    }

    /// Every accepted call in order, also those that no longer count
    /// (YIELD-13).
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// All text of completed answers, in order (FINAL-1, OBS-11).
    pub fn raw_text(&self) -> &str {
        &self.raw_text
    }

    /// The last text of any answer, one that was cut off included (OBS-11).
    pub fn last_words(&self) -> Option<&str> {
        self.cut_text.as_deref().or(self.last_text.as_deref())
    }

    fn answer(&mut self, answer: &AssistantMessage) {
        let text = answer.text();
        match answer.stop_reason {
            StopReason::Error => return,
            StopReason::Aborted => {
                self.cut_text = Some(text).filter(|text| !is_blank(text));
                return;
            }
            StopReason::Stop
            | StopReason::Length
            | StopReason::ToolUse
            | StopReason::Pending
            | StopReason::Deferred => {}
        }
        self.cut_text = None;
        self.raw_text.push_str(&text);
        if answer.tool_calls().any(|call| call.name != YIELD_TOOL) {
            self.report = None;
        } else if !is_blank(&text) {
            self.report = Some(text.clone());
        }
        if !is_blank(&text) {
            self.last_text = Some(text);
        }
    }
}

impl Contract for Yields {
    const TERMS: Terms = Terms {
        tool: YIELD_TOOL,
        reminders_max: TASK_REMINDERS_MAX,
        forces_last: true,
        has_barrier: true,
        spends_failed_reminders: true,
        reminder_type: Some(REMINDER_TYPE),
        reminder_label: "yield reminder",
    };

    fn message(&mut self, message: &Message) {
        if let Some(answer) = message.as_assistant() {
            self.answer(answer);
        }
    }

    fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    fn invalidate(&mut self) {
        self.is_accepted = false;
    }

    /// Counters and what a foreign turn handed in; what was said stays said.
    fn reset(&mut self) {
        *self = Yields::new(self.schema.clone());
    }

    fn reminder(&self, reminder: Reminder) -> String {
        tool::reminder(reminder)
    }
}
