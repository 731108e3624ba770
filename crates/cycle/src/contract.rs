//! What a completion contract answers (`task.md` 15.2); the rest of a cycle is
//! common to both and lives in `driver`.

use crew_base::message::{Block, Content, CustomMessage, Message};
use crew_base::time::Time;

use crate::ladder::Reminder;

/// One of the two ways to end a cycle well.
pub trait Contract {
    /// What never changes about it.
    const TERMS: Terms;

    /// Takes a message that the child recorded.
    fn message(&mut self, message: &Message);

    /// Whether what was handed in counts at this moment.
    fn is_accepted(&self) -> bool;

    /// A background result came after the acceptance (`task.md` BARRIER-7).
    fn invalidate(&mut self);

    /// Forgets what another turn handed in (`task.md` EXEC-4, SESS-15).
    fn reset(&mut self);

    /// The words of a reminder.
    fn reminder(&self, reminder: Reminder) -> String;
}

/// The fixed part of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Name of the tool that ends the cycle.
    pub tool: &'static str,
    /// Reminders of one ladder.
    pub reminders_max: u32,
    /// The last reminder forces the tool.
    pub forces_last: bool,
    /// Background jobs hold the end back (`task.md` 7).
    pub has_barrier: bool,
    /// A reminder whose turn fails in the host counts as spent (`task.md` EXEC-12).
    pub spends_failed_reminders: bool,
    /// Entry type of reminders; `None` makes them visible user messages.
    pub reminder_type: Option<&'static str>,
    /// What a dropped reminder is called (`task.md` 1.7).
    pub reminder_label: &'static str,
}

/// A message that the host writes into a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthetic {
    /// Entry type; `None` is a plain user message.
    pub custom_type: Option<&'static str>,
    /// What the model sees.
    pub text: String,
}

impl Synthetic {
    /// The message as it is recorded (`task.md` OBS-7, EXEC-7).
    pub fn message(&self, now: Time) -> Message {
        match self.custom_type {
            None => Message::user_text(self.text.clone(), now),
            Some(_) => self
                .custom(now)
                .map_or_else(|| Message::user_text(self.text.clone(), now), Message::Custom),
        }
    }

    /// The same as a custom message; `None` for a plain user message.
    pub fn custom(&self, now: Time) -> Option<CustomMessage> {
        Some(CustomMessage {
            custom_type: self.custom_type?.to_owned(),
            content: Content::Blocks(vec![Block::text(self.text.clone())]),
            display: false,
            details: None,
            timestamp: now,
        })
    }
}
