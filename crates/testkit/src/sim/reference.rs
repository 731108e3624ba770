//! The naive reference of deliveries: a list of settlements and who owns them.

use std::collections::BTreeSet;

use crew_base::id::{SessionId, SubagentId};
use crew_base::limits::DELIVERY_AGE_MS_MAX;
use crew_base::time::Time;
use crew_engine::api::{CrewUpdate, Status, UpdateKind};

/// One settlement that must reach an owner's record.
#[derive(Clone, Debug)]
struct Settlement {
    owner: SessionId,
    subagent: SubagentId,
    status: Status,
    at: Time,
    /// Recorded in this session.
    received: Option<SessionId>,
}

impl Settlement {
    /// Not received and not too old to be.
    fn is_due(&self, now: Time) -> bool {
        self.received.is_none() && now.since(self.at) <= DELIVERY_AGE_MS_MAX
    }
}

/// What must be true of deliveries, kept as simply as possible.
#[derive(Debug, Default)]
pub(super) struct Reference {
    settlements: Vec<Settlement>,
    live: BTreeSet<SubagentId>,
    /// Owners whose record failed to take an entry: their order may differ.
    unordered: BTreeSet<SessionId>,
}

impl Reference {
    pub(super) fn crew(&mut self, now: Time, update: &CrewUpdate) {
        match &update.kind {
            UpdateKind::Spawned => drop(self.live.insert(update.subagent.clone())),
            UpdateKind::Closed => drop(self.live.remove(&update.subagent)),
            UpdateKind::Settled { .. } => self.settlements.push(Settlement {
                owner: update.owner.clone(),
                subagent: update.subagent.clone(),
                status: update.status,
                at: now,
                received: None,
            }),
            UpdateKind::Responded | UpdateKind::Activity { .. } | UpdateKind::Delivered => {}
        }
    }

    pub(super) fn append_failed(&mut self, session: &SessionId) {
        self.unordered.insert(session.clone());
    }

    /// Ownership moves; what was not received follows if its subagent moved or
    /// is gone (OWN-4 to OWN-6).
    pub(super) fn adopted(&mut self, previous: &SessionId, owner: &SessionId) {
        for settlement in &mut self.settlements {
            if settlement.owner == *previous && settlement.received.is_none() {
                settlement.owner = owner.clone();
            }
        }
        if self.unordered.contains(previous) {
            self.unordered.insert(owner.clone());
        }
    }

    /// An owner recorded a result or an abort entry of a subagent.
    pub(super) fn recorded(
        &mut self,
        now: Time,
        session: &SessionId,
        subagent: &str,
        is_abort: bool,
    ) -> Result<(), String> {
        let matches = |settlement: &Settlement| {
            settlement.received.is_none()
                && settlement.subagent.as_str() == subagent
                && (settlement.status == Status::Aborted) == is_abort
        };
        // One that grew too old may have been dropped, or may come late.
        let due = self.settlements.iter().position(|one| matches(one) && one.is_due(now));
        let Some(at) = due.or_else(|| self.settlements.iter().position(matches)) else {
            return Err(format!(
                "{session} recorded something of {subagent} that nobody settled, or twice"
            ));
        };
        if self.settlements[at].owner != *session {
            let owner = &self.settlements[at].owner;
            return Err(format!("{session} recorded a result of {subagent}, which {owner} owns"));
        }
        let ordered = !self.unordered.contains(session);
        let earlier = self.settlements[..at]
            .iter()
            .find(|older| older.owner == *session && older.is_due(now));
        if ordered
            && !is_abort
            && let Some(older) = earlier
        {
            let older = &older.subagent;
            return Err(format!("{session} recorded {subagent} before the older {older}"));
        }
        self.settlements[at].received = Some(session.clone());
        Ok(())
    }

    pub(super) fn settled(&self) -> u64 {
        self.settlements.len() as u64
    }

    pub(super) fn delivered(&self) -> u64 {
        self.settlements.iter().filter(|settlement| settlement.received.is_some()).count() as u64
    }

    /// At the end every settlement was received, unless it grew too old.
    pub(super) fn complete(&self, now: Time) -> Result<(), String> {
        let lost = self.settlements.iter().find(|settlement| settlement.is_due(now));
        match lost {
            None => Ok(()),
            Some(lost) => Err(format!("lost: {lost:?}")),
        }
    }
}
