//! Invariants that hold after each step (`style.md` 4).

mod grammar;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, SessionId};
use crew_base::message::{Message, SharedMessage, StopReason};
use crew_base::model::ModelRequest;
use crew_engine::api::{CommandId, CrewUpdate, MoveEnd, Status, UpdateKind};

pub(super) use grammar::Grammar;

/// What the checks remember.
#[derive(Default)]
pub(super) struct Checks {
    /// Last request of each session; forgotten when its context was edited.
    requests: BTreeMap<SessionId, Vec<SharedMessage>>,
    statuses: BTreeMap<String, Status>,
    /// Sessions that lost entries; their requests are mended by the encoders
    /// (`host.md` 9.1.7).
    torn: BTreeSet<SessionId>,
    /// The last entry written of each session, which is where one that is
    /// opened again stands.
    ends: BTreeMap<SessionId, EntryId>,
    /// Where each session stands.
    leaves: BTreeMap<SessionId, EntryId>,
    /// Where a session may stand besides its last entry: a move in its tree goes
    /// there, or may have gone (`host.md` 2.8.2).
    places: BTreeMap<SessionId, BTreeSet<Option<EntryId>>>,
    /// In which session each marked text was typed.
    markers: BTreeMap<String, SessionId>,
    unanswered: BTreeSet<CommandId>,
}

impl Checks {
    /// The session may go there, if nothing comes between.
    pub(super) fn may_move(&mut self, session: &SessionId, leaf: Option<EntryId>) {
        self.places.entry(session.clone()).or_default().insert(leaf);
    }

    /// A move ended. While an entry of the session is lost, the move may be
    /// taken back with it, or not.
    pub(super) fn moved(&mut self, session: &SessionId, end: &MoveEnd, is_broken: bool) {
        if is_broken {
            return;
        }
        let places = self.places.remove(session).unwrap_or_default();
        if let MoveEnd::Moved(moved) = end
            && places.contains(&moved.leaf)
        {
            self.requests.remove(session);
            match &moved.leaf {
                Some(leaf) => self.leaves.insert(session.clone(), leaf.clone()),
                None => self.leaves.remove(session),
            };
        }
    }

    /// A session is opened again from its file.
    pub(super) fn reopened(&mut self, session: &SessionId) {
        self.requests.remove(session);
        self.places.remove(session);
        let end = self.ends.get(session).cloned();
        self.leaves.extend(end.map(|end| (session.clone(), end)));
    }

    pub(super) fn torn(&mut self, session: &SessionId) {
        self.requests.remove(session);
        self.torn.insert(session.clone());
    }

    pub(super) fn is_torn(&self, session: &SessionId) -> bool {
        self.torn.contains(session)
    }

    /// A written entry follows the one written before it (`host.md` 2.2.4,
    /// 2.4.1); what was typed stands once and in one session.
    pub(super) fn written(&mut self, session: &SessionId, entry: &Entry) -> Result<(), String> {
        self.ends.insert(session.clone(), entry.id.clone());
        let leaf = self.leaves.insert(session.clone(), entry.id.clone());
        let places = self.places.get(session);
        let moved = places.is_some_and(|places| places.contains(&entry.parent_id));
        if leaf != entry.parent_id && moved {
            self.requests.remove(session);
        } else if leaf != entry.parent_id {
            let (id, parent) = (&entry.id, &entry.parent_id);
            return Err(format!("{session}: entry {id} follows {parent:?}, written was {leaf:?}"));
        }
        if let EntryBody::ContextEdit { .. } | EntryBody::Compaction { .. } = &entry.body {
            self.requests.remove(session);
        }
        if let EntryBody::Message { message: Message::User(user) } = &entry.body {
            let text = user.content.text();
            for word in text.split_whitespace().filter(|word| word.starts_with('§')) {
                if let Some(first) = self.markers.insert(word.to_owned(), session.clone()) {
                    return Err(format!("{word} stands in {first} and again in {session}"));
                }
            }
        }
        Ok(())
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
            // What was settled may enter after its subagent is gone.
            UpdateKind::Delivered => before.is_some() || update.status != Status::Running,
            UpdateKind::Activity { .. } | UpdateKind::Closed => before.is_some(),
        };
        if !legal {
            return Err(format!("{id}: {:?} after {before:?}", update.kind));
        }
        if update.kind == UpdateKind::Closed {
            self.statuses.remove(&id);
        } else if update.kind != UpdateKind::Delivered {
            self.statuses.insert(id, update.status);
        }
        Ok(())
    }

    pub(super) fn asked(&mut self, command: CommandId) {
        self.unanswered.insert(command);
    }

    /// Every command has one answer.
    pub(super) fn answered(&mut self, command: CommandId) -> Result<(), String> {
        if self.unanswered.remove(&command) {
            Ok(())
        } else {
            Err(format!("{command:?} was answered twice, or never asked"))
        }
    }

    pub(super) fn all_answered(&self) -> Result<(), String> {
        match self.unanswered.first() {
            None => Ok(()),
            Some(left) => Err(format!("{left:?} was never answered")),
        }
    }
}

/// Every call of a good answer has exactly one result, directly behind it.
pub(super) fn pairs(messages: &[SharedMessage]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::ToolResult(result) => {
                let id = result.tool_call_id.as_str();
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
                    open = answer.tool_calls().map(|call| call.id.as_str()).collect();
                }
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("calls without result: {open:?}")) }
}
