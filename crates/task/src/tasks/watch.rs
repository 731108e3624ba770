//! Clocks of calls and children, and the snapshots that faces see.

use serde_json::{Value, json};

use crew_base::id::{Ids, RunId, SessionId};
use crew_base::json::Raw;
use crew_base::limits::TASK_PROGRESS_MS;
use crew_base::time::Time;
use crew_base::tool::ToolProgress;

use super::{SlotState, Stage, Tasks};
use crate::effect::Effect;
use crate::progress::Progress;

impl Tasks {
    /// When to call [`Tasks::tick`].
    pub fn deadline(&self) -> Option<Time> {
        let children = self.children.values().filter_map(|child| match &child.stage {
            Stage::Cleaning { until } => Some(*until),
            Stage::Opening | Stage::Running => child.driver.deadline(),
            Stage::Isolating { .. }
            | Stage::Writing { .. }
            | Stage::AwaitingClose { .. }
            | Stage::Wording { .. }
            | Stage::Integrating { .. } => None,
        });
        let calls = self.calls.values().filter_map(|call| call.progress_due);
        children.chain(calls).min()
    }

    /// Serves what is due.
    pub fn tick(&mut self, now: Time, ids: &mut Ids) {
        for session in self.children.keys().cloned().collect::<Vec<_>>() {
            self.tick_child(now, ids, &session);
        }
        for run in self.calls.keys().copied().collect::<Vec<_>>() {
            let due = self.calls.get(&run).and_then(|call| call.progress_due);
            if due.is_some_and(|due| now >= due) {
                self.tell_progress(now, run);
            }
        }
    }

    fn tick_child(&mut self, now: Time, ids: &mut Ids, session: &SessionId) {
        let Some(child) = self.children.get_mut(session) else { return };
        match &child.stage {
            Stage::Opening | Stage::Running => {
                child.driver.tick(now);
                self.drain(now, session);
            }
            Stage::Cleaning { until } if now >= *until => self.finish(now, ids, session, true),
            Stage::Cleaning { .. }
            | Stage::Isolating { .. }
            | Stage::Writing { .. }
            | Stage::AwaitingClose { .. }
            | Stage::Wording { .. }
            | Stage::Integrating { .. } => {}
        }
    }

    /// Something of a call changed; it is told at once or with the next
    /// snapshot (SESS-10).
    pub(super) fn touch(&mut self, now: Time, run: RunId, at_once: bool) {
        if at_once {
            self.tell_progress(now, run);
        } else if let Some(call) = self.calls.get_mut(&run) {
            let due = call.progress_told.map_or(now, |told| (told + TASK_PROGRESS_MS).max(now));
            call.progress_due.get_or_insert(due);
        }
    }

    pub(super) fn tell_progress(&mut self, now: Time, run: RunId) {
        let Some(call) = self.calls.get(&run) else { return };
        let snapshots: Vec<Value> = call
            .slots
            .iter()
            .enumerate()
            .map(|(index, slot)| {
                let agent = slot.resolved.agent.name();
                let waiting = || Progress::default().json(index, slot.id.as_deref(), agent);
                match &slot.state {
                    SlotState::Waiting => waiting(),
                    SlotState::Running(session) => match self.children.get(session) {
                        Some(child) => child.progress.json(index, Some(&child.id), agent),
                        None => waiting(),
                    },
                    SlotState::Done(_) => slot.last.clone().unwrap_or_else(waiting),
                }
            })
            .collect();
        let details = Some(Raw::of(&json!({ "progress": snapshots })));
        let progress = ToolProgress { content: Vec::new(), details };
        let session = call.caller.session.clone();
        if let Some(call) = self.calls.get_mut(&run) {
            call.progress_due = None;
            call.progress_told = Some(now);
        }
        self.out.push(Effect::Progress { session, run, progress });
    }
}
