//! The order in which a face is told of a session (`host.md` 3.1, 3.2).

use std::collections::BTreeSet;

use crew_base::id::CallId;
use crew_base::message::{Message, StopReason};
use crew_engine::api::SessionUpdate;

/// Where the updates of the attached session stand. Nothing is known of a
/// session that was attached in the middle of a run until its next one.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    is_known: bool,
    in_loop: bool,
    in_turn: bool,
    in_message: bool,
    is_retrying: bool,
    is_compacting: bool,
    tools: BTreeSet<CallId>,
    /// Messages appended in this step and not told yet.
    appended: u32,
}

impl Grammar {
    /// Another step begins.
    pub(crate) fn step(&mut self) {
        self.appended = 0;
    }

    /// Another session is shown; `is_idle` if nothing runs in it.
    pub(crate) fn attached(&mut self, is_idle: bool) {
        *self = Grammar { is_known: is_idle, ..Grammar::default() };
    }

    /// A message of the shown session was handed to the shell for writing.
    pub(crate) fn appended(&mut self) {
        self.appended += 1;
    }

    /// Checks one update.
    pub(crate) fn take(&mut self, update: &SessionUpdate) -> Result<(), String> {
        if let SessionUpdate::AgentStart = update
            && !self.is_known
        {
            self.attached(true);
        }
        if !self.is_known {
            return Ok(());
        }
        let holds = self.holds(update);
        if holds { Ok(()) } else { Err(format!("{update:?} does not fit: {self:?}")) }
    }

    fn holds(&mut self, update: &SessionUpdate) -> bool {
        match update {
            SessionUpdate::AgentStart => !std::mem::replace(&mut self.in_loop, true),
            SessionUpdate::TurnStart => {
                self.in_loop && !self.in_message && !std::mem::replace(&mut self.in_turn, true)
            }
            SessionUpdate::MessageStart(_) => !std::mem::replace(&mut self.in_message, true),
            SessionUpdate::MessageUpdate { .. } => self.in_message && self.in_turn,
            SessionUpdate::MessageEnd(message) => self.message_ends(message),
            SessionUpdate::ToolStart { call, .. } => {
                self.in_turn && !self.in_message && self.tools.insert(call.clone())
            }
            SessionUpdate::ToolProgress { call, .. } => self.tools.contains(call),
            SessionUpdate::ToolEnd { call, .. } => self.tools.remove(call),
            SessionUpdate::TurnEnd { .. } => {
                let whole = self.tools.is_empty() && !self.in_message;
                std::mem::replace(&mut self.in_turn, false) && whole
            }
            SessionUpdate::AgentEnd { .. } => {
                !self.in_turn && std::mem::replace(&mut self.in_loop, false)
            }
            SessionUpdate::AgentSettled { .. } => {
                self.is_retrying = false;
                !self.in_loop && !self.in_turn && !self.in_message
            }
            SessionUpdate::RetryStart { attempt, .. } => {
                std::mem::replace(&mut self.is_retrying, true) == (*attempt > 1) && !self.in_loop
            }
            SessionUpdate::RetryEnd { .. } => std::mem::replace(&mut self.is_retrying, false),
            SessionUpdate::CompactionStart { .. } => {
                !self.in_turn
                    && !self.in_message
                    && !std::mem::replace(&mut self.is_compacting, true)
            }
            // What never began may end, but gives nothing.
            SessionUpdate::CompactionEnd { result, .. } => {
                std::mem::replace(&mut self.is_compacting, false) || result.is_none()
            }
            SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::BranchSummaryStart
            | SessionUpdate::MoveEnd(_)
            | SessionUpdate::EntryAppended(_)
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_) => true,
        }
    }

    /// Nothing is announced before it is stored (`host.md` 2.4.8), but for the
    /// message that tells of a failure of the host.
    fn message_ends(&mut self, message: &Message) -> bool {
        let was_open = std::mem::replace(&mut self.in_message, false);
        let is_failure =
            message.as_assistant().is_some_and(|answer| answer.stop_reason == StopReason::Error);
        let stored = self.appended > 0;
        self.appended = self.appended.saturating_sub(1);
        was_open && (stored || is_failure)
    }
}
