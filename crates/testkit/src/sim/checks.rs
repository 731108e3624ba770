//! Invariants that hold after each step (`style.md` 4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::message::{Message, SharedMessage, StopReason};
use crew_base::model::ModelRequest;
use crew_engine::api::{CrewUpdate, Status, UpdateKind};

/// What the checks remember.
#[derive(Default)]
pub(super) struct Checks {
    /// Last request of each session; forgotten when its context was edited.
    requests: BTreeMap<SessionId, Vec<SharedMessage>>,
    statuses: BTreeMap<String, Status>,
    /// Sessions that lost entries; their requests are mended by the encoders
    /// (`host.md` 9.1.7).
    torn: BTreeSet<SessionId>,
}

impl Checks {
    pub(super) fn edited(&mut self, session: &SessionId) {
        self.requests.remove(session);
    }

    pub(super) fn torn(&mut self, session: &SessionId) {
        self.edited(session);
        self.torn.insert(session.clone());
    }

    /// A request extends the one before it, is well paired, and holds no
    /// abort entry.
    pub(super) fn request(
        &mut self,
        session: &SessionId,
        request: &ModelRequest,
    ) -> Result<(), String> {
        if let Some(before) = self.requests.get(session) {
            let same = before
                .iter()
                .zip(&request.messages)
                .all(|(old, new)| Arc::ptr_eq(old, new) || old == new);
            if !same || before.len() > request.messages.len() {
                return Err(format!("{session}: the request does not extend the one before it"));
            }
        }
        if !self.torn.contains(session) {
            pairs(&request.messages).map_err(|error| format!("{session}: {error}"))?;
        }
        self.requests.insert(session.clone(), request.messages.clone());
        Ok(())
    }

    /// Only the legal transitions of LIFE-3 happen.
    pub(super) fn crew(&mut self, update: &CrewUpdate) -> Result<(), String> {
        let id = update.subagent.to_string();
        let before = self.statuses.get(&id).copied();
        let legal = match &update.kind {
            UpdateKind::Spawned => before.is_none(),
            UpdateKind::Responded => before.is_some_and(Status::awaits_owner),
            UpdateKind::Settled { .. } => match update.status {
                Status::Aborted => before.is_some(),
                Status::Completed | Status::NeedsInput | Status::Error => {
                    before == Some(Status::Running)
                }
                Status::Running => false,
            },
            UpdateKind::Activity { .. } | UpdateKind::Delivered | UpdateKind::Closed => {
                before.is_some()
            }
        };
        if !legal {
            return Err(format!("{id}: {:?} after {before:?}", update.kind));
        }
        if update.kind == UpdateKind::Closed {
            self.statuses.remove(&id);
        } else {
            self.statuses.insert(id, update.status);
        }
        Ok(())
    }
}

/// Every call of a good answer has exactly one result, directly behind it.
fn pairs(messages: &[SharedMessage]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::ToolResult(result) => {
                let id = result.tool_call_id.to_string();
                let Some(at) = open.iter().position(|call| *call == id) else {
                    return Err(format!("a result for no open call: {id}"));
                };
                open.remove(at);
            }
            Message::Custom(custom) if custom.custom_type == "crew-abort" => {
                return Err("an abort entry in the context".to_owned());
            }
            other => {
                if !open.is_empty() {
                    return Err(format!("calls without result before another message: {open:?}"));
                }
                if let Message::Assistant(answer) = other
                    && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                {
                    open = answer.tool_calls().map(|call| call.id.to_string()).collect();
                }
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("calls without result: {open:?}")) }
}
