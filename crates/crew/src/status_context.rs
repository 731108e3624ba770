//! What owners are told of their crew's state (`crew.md` CTX).

use serde_json::{Value, json};

use crew_base::id::{Ids, SessionId};
use crew_base::json::Raw;
use crew_base::limits::REMINDER_REQUESTS;
use crew_base::message::{Content, CustomMessage};
use crew_base::time::Time;

use crate::roster::{Crew, Subagent};

/// Type of a snapshot message (CTX-1).
pub const SNAPSHOT: &str = "crew-status";
/// Type of a reminder message (CTX-2).
pub const REMINDER: &str = "crew-reminder";

impl Crew {
    /// Counts a model request of an owner's run (CTX-17).
    pub fn count_request(&mut self, owner: &SessionId) {
        *self.requests.entry(owner.clone()).or_default() += 1;
    }

    /// What to record at a safe boundary of an owner: a snapshot if the state
    /// differs from the newest one in the record, else a reminder if one is
    /// due (CTX-7 to CTX-12, CTX-18 to CTX-21).
    pub fn boundary(
        &mut self,
        now: Time,
        ids: &mut Ids,
        owner: &SessionId,
        newest_snapshot: Option<&str>,
    ) -> Option<CustomMessage> {
        let open: Vec<_> = self.open_of(owner).map(item).collect();
        let is_empty = open.is_empty();
        let current = json!({ "crew_status": open }).to_string();
        let due = match newest_snapshot {
            Some(newest) => newest != current,
            None => !is_empty || self.had_open.get(owner) == Some(&true),
        };
        if due {
            self.had_open.insert(owner.clone(), !is_empty);
            self.requests.insert(owner.clone(), 0);
            return Some(message(now, ids, SNAPSHOT, current));
        }
        if self.requests.get(owner).is_none_or(|count| *count < REMINDER_REQUESTS) {
            return None;
        }
        let awaiting: Vec<_> = self
            .open_of(owner)
            .filter(|subagent| subagent.status.awaits_owner())
            .map(item)
            .collect();
        if awaiting.is_empty() {
            return None;
        }
        self.requests.insert(owner.clone(), 0);
        Some(message(now, ids, REMINDER, json!({ "crew_reminder": awaiting }).to_string()))
    }
}

fn item(subagent: &Subagent) -> Value {
    json!({"subagent_id": subagent.id, "status": subagent.status.word()})
}

fn message(now: Time, ids: &mut Ids, custom_type: &str, content: String) -> CustomMessage {
    CustomMessage {
        custom_type: custom_type.to_owned(),
        content: Content::Text(content),
        display: false,
        details: Some(Raw::of(&json!({"id": ids.hex(16)}))),
        timestamp: now,
    }
}
