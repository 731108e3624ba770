//! The naive reference: who owns what, what each child last said, and a list
//! of settlements with who must receive them.

use std::collections::{BTreeMap, BTreeSet};

use crew_base::entry::EntryBody;
use crew_base::id::{SessionId, SubagentId};
use crew_base::limits::DELIVERY_AGE_MS_MAX;
use crew_base::message::{Message, StopReason};
use crew_base::time::Time;
use crew_engine::api::{CrewUpdate, Status, UpdateKind};
use serde_json::Value;

/// One settlement that must reach an owner's record.
#[derive(Clone, Debug)]
struct Settlement {
    owner: SessionId,
    subagent: SubagentId,
    status: Status,
    result: Option<Value>,
    at: Time,
    /// Recorded in this session.
    received: Option<SessionId>,
    /// Its owner tried to record it and could not.
    failed: bool,
    /// Failed, and a fork adopted it before the failure was known: it may come
    /// behind younger ones.
    is_late: bool,
}

impl Settlement {
    fn waits_as(&self, subagent: &str, is_abort: bool) -> bool {
        self.received.is_none()
            && self.subagent.as_str() == subagent
            && (self.status == Status::Aborted) == is_abort
    }

    /// Not received and not too old to be.
    fn is_due(&self, now: Time) -> bool {
        self.received.is_none() && now.since(self.at) <= DELIVERY_AGE_MS_MAX
    }
}

/// What a child said last in its cycle.
#[derive(Clone, Debug, Default)]
struct Last {
    /// Ended well: its calls with name and arguments.
    calls: Vec<(String, String, Value)>,
    good: BTreeSet<String>,
    follow_ups: u32,
}

impl Last {
    /// The report that must be accepted, if any (RES-8).
    fn report(&self) -> Option<&Value> {
        let [(id, name, arguments)] = self.calls.as_slice() else { return None };
        (name == "crew_report" && self.good.contains(id)).then_some(arguments)
    }
}

/// What must be true of ownership, outcomes and deliveries.
#[derive(Debug, Default)]
pub(super) struct Reference {
    settlements: Vec<Settlement>,
    owners: BTreeMap<SubagentId, SessionId>,
    /// Which session each was spawned by, from whichever told it first.
    spawners: BTreeMap<SubagentId, SessionId>,
    said: BTreeMap<SessionId, Last>,
    /// Every session that owned a subagent at some time.
    ever: BTreeSet<(SubagentId, SessionId)>,
}

impl Reference {
    /// A child recorded a message.
    pub(super) fn child_message(
        &mut self,
        session: &SessionId,
        message: &Message,
    ) -> Result<(), String> {
        let last = self.said.entry(session.clone()).or_default();
        match message {
            // Prompts of an owner are marked, the follow-up is not.
            Message::User(user) => {
                let is_follow_up = !user.content.text().contains('§');
                let follow_ups = if is_follow_up { last.follow_ups + 1 } else { 0 };
                *last = Last { follow_ups, ..Last::default() };
                if follow_ups > 1 {
                    return Err(format!("{session} got a second follow-up in one cycle"));
                }
            }
            Message::Assistant(answer) => {
                let failed = matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
                let calls = answer
                    .tool_calls()
                    .filter(|_| !failed)
                    .map(|call| (call.id.to_string(), call.name.clone(), call.arguments.value()));
                last.calls = calls.collect();
                last.good.clear();
            }
            Message::ToolResult(result) if !result.is_error => {
                last.good.insert(result.tool_call_id.to_string());
            }
            _ => {}
        }
        Ok(())
    }

    /// Something happened to a subagent. `torn` if its record was damaged.
    pub(super) fn crew(
        &mut self,
        now: Time,
        update: &CrewUpdate,
        torn: bool,
    ) -> Result<(), String> {
        let id = &update.subagent;
        match &update.kind {
            UpdateKind::Spawned => {
                self.owners.insert(id.clone(), update.owner.clone());
                self.ever.insert((id.clone(), update.owner.clone()));
                self.spawned(&update.owner, id.as_str())?;
            }
            UpdateKind::Settled { .. } => {
                let expected = self.said.get(&update.session).and_then(Last::report).cloned();
                let result = expected.clone().filter(|_| update.status.awaits_owner());
                if update.status.awaits_owner() && expected.is_none() {
                    return Err(format!("{id} has a result that it never reported"));
                }
                if update.status == Status::Error && expected.is_some() && !torn {
                    return Err(format!("{id} reported well and ended as an error"));
                }
                self.settlements.push(Settlement {
                    owner: update.owner.clone(),
                    subagent: id.clone(),
                    status: update.status,
                    result,
                    at: now,
                    received: None,
                    failed: false,
                    is_late: false,
                });
            }
            UpdateKind::Closed
            | UpdateKind::Responded
            | UpdateKind::Activity { .. }
            | UpdateKind::Delivered => {}
        }
        let owner = self.owners.get(id);
        if owner != Some(&update.owner) {
            return Err(format!("{id} is owned by {owner:?}, not by {}", update.owner));
        }
        Ok(())
    }

    /// A session spawned this one, as its tool result or the crew says.
    pub(super) fn spawned(&mut self, session: &SessionId, subagent: &str) -> Result<(), String> {
        let known = self.spawners.entry(SubagentId::new(subagent)).or_insert(session.clone());
        if known == session {
            return Ok(());
        }
        Err(format!("{session} spawned {subagent}, which belongs to {known}"))
    }

    /// A session did something to a subagent: it owned it then (OWN-2). Its tool
    /// result may be written after a fork has adopted the subagent.
    pub(super) fn acted(&self, session: &SessionId, subagent: &str) -> Result<(), String> {
        if self.ever.contains(&(SubagentId::new(subagent), session.clone())) {
            return Ok(());
        }
        Err(format!("{session} did something to {subagent}, which it never owned"))
    }

    /// Ownership moves; what was not received follows (OWN-4 to OWN-6).
    pub(super) fn adopted(&mut self, previous: &SessionId, owner: &SessionId) {
        for (id, known) in self.owners.iter_mut().filter(|(_, known)| *known == previous) {
            known.clone_from(owner);
            self.ever.insert((id.clone(), owner.clone()));
        }
        for settlement in &mut self.settlements {
            if settlement.owner == *previous && settlement.received.is_none() {
                settlement.owner.clone_from(owner);
                settlement.is_late |= settlement.failed;
            }
        }
    }

    /// An owner recorded an abort entry of a subagent.
    pub(super) fn abort_recorded(
        &mut self,
        now: Time,
        session: &SessionId,
        subagent: &str,
    ) -> Result<(), String> {
        let at = self.find(now, session, subagent, true, None)?;
        self.settlements[at].received = Some(session.clone());
        Ok(())
    }

    /// An owner recorded a result message with this content.
    pub(super) fn result_recorded(
        &mut self,
        now: Time,
        session: &SessionId,
        content: &str,
    ) -> Result<(), String> {
        let content: Value =
            serde_json::from_str(content).map_err(|error| format!("{session}: {error}"))?;
        let subagent = content["subagent_id"].as_str().unwrap_or_default();
        let at = self.find(now, session, subagent, false, content.get("result"))?;
        let earlier = self.settlements[..at]
            .iter()
            .find(|older| older.owner == *session && older.is_due(now) && !older.is_late);
        if let Some(older) = earlier {
            let older = &older.subagent;
            return Err(format!("{session} recorded {subagent} before the older {older}"));
        }
        self.settlements[at].received = Some(session.clone());
        Ok(())
    }

    /// A record could not take what it has of a subagent.
    pub(super) fn not_recorded(&mut self, now: Time, session: &SessionId, body: &EntryBody) {
        let (subagent, is_abort) = match body {
            EntryBody::CustomMessage { custom_type, content, .. }
                if custom_type == "crew-result" =>
            {
                (field(&content.text(), "subagent_id"), false)
            }
            EntryBody::Custom { custom_type, data: Some(data) } if custom_type == "crew-abort" => {
                (field(data.text(), "subagentId"), true)
            }
            _ => return,
        };
        let matches = |one: &Settlement| {
            one.waits_as(&subagent, is_abort) && one.owner == *session && !one.failed
        };
        // One that grew too old may have been dropped before.
        let due = self.settlements.iter().position(|one| matches(one) && one.is_due(now));
        if let Some(at) = due.or_else(|| self.settlements.iter().position(matches)) {
            self.settlements[at].failed = true;
        }
    }

    fn find(
        &self,
        now: Time,
        session: &SessionId,
        subagent: &str,
        is_abort: bool,
        result: Option<&Value>,
    ) -> Result<usize, String> {
        let matches =
            |one: &Settlement| one.waits_as(subagent, is_abort) && one.result.as_ref() == result;
        // One that grew too old may have been dropped, or may come late.
        let due = self.settlements.iter().position(|one| matches(one) && one.is_due(now));
        let Some(at) = due.or_else(|| self.settlements.iter().position(matches)) else {
            return Err(format!(
                "{session} recorded {result:?} of {subagent} that nobody settled, or twice"
            ));
        };
        let owner = &self.settlements[at].owner;
        if owner != session {
            return Err(format!("{session} recorded a result of {subagent}, which {owner} owns"));
        }
        Ok(at)
    }

    /// An owner is told to be at rest: nothing more can come to it, but for
    /// what its record refused and what waits behind that (OP-29).
    pub(super) fn rests(&self, now: Time, session: &SessionId) -> Result<(), String> {
        // One that was refused holds the later ones back also when it is too old
        // by now: it is only dropped with the next try.
        let is_held = |one: &Settlement| one.failed && one.received.is_none();
        let waits = |one: &&Settlement| one.owner == *session && (one.is_due(now) || is_held(one));
        match self.settlements.iter().find(waits) {
            Some(waits) if !waits.failed => {
                Err(format!("{session} is said to be at rest before {waits:?}"))
            }
            Some(_) | None => Ok(()),
        }
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

/// A text field of a JSON object, empty when it is not there.
pub(super) fn field(json: &str, name: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    value[name].as_str().unwrap_or_default().to_owned()
}
