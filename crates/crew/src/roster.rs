//! Who exists and who owns whom (`crew.md` LIFE, OWN).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crew_base::definition::Definition;
use crew_base::id::{Ids, SessionId, SubagentId};
use crew_base::message::Usage;
use crew_base::model::ModelSpec;
use crew_base::time::Time;
use crew_cycle::Cycle;

use crate::activity::Activity;
use crate::delivery::Delivery;
use crate::effect::{Effect, Update, UpdateKind};

/// The five statuses (LIFE-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// In flight.
    Running,
    /// Awaits its owner, done.
    Completed,
    /// Awaits its owner, asking.
    NeedsInput,
    /// Gone, failed.
    Error,
    /// Gone, stopped.
    Aborted,
}

impl Status {
    /// The word in results and snapshots.
    pub fn word(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Completed => "completed",
            Status::NeedsInput => "needs_input",
            Status::Error => "error",
            Status::Aborted => "aborted",
        }
    }

    /// Whether the subagent waits for its owner.
    pub fn awaits_owner(self) -> bool {
        match self {
            Status::Completed | Status::NeedsInput => true,
            Status::Running | Status::Error | Status::Aborted => false,
        }
    }
}

/// The session that calls a tool.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Its id: the only identity of an owner (OWN-1).
    pub session: SessionId,
    /// Its session file, for adoption by a fork (OWN-4).
    pub file: Option<String>,
    /// Its model at this moment (MOD-3).
    pub model: Option<Arc<ModelSpec>>,
}

/// One live subagent.
#[derive(Debug)]
pub struct Subagent {
    /// Its crew identifier.
    pub id: SubagentId,
    /// Its owner.
    pub owner: SessionId,
    /// The owner's session file.
    pub owner_file: Option<String>,
    /// The definition it was spawned with; never replaced (CAT-8).
    pub definition: Arc<Definition>,
    /// Trimmed.
    pub brief: String,
    /// The child session.
    pub session: SessionId,
    /// Its status.
    pub status: Status,
    /// `provider/model-id`, once resolved (MOD-12).
    pub model: Option<String>,
    /// Cumulative tokens and cost (ACT-6).
    pub usage: Usage,
    /// What its tools did.
    pub activity: Activity,
    /// What its last cycle ended with: its report, or what it needs.
    pub settled: Option<String>,
    pub(crate) is_open: bool,
    pub(crate) assignment: Option<String>,
    pub(crate) cycle: Cycle,
    pub(crate) cycle_began: Time,
    pub(crate) worked_ms: u64,
}

impl Subagent {
    /// The last text it wrote in its cycle, if any.
    pub fn last_text(&self) -> Option<&str> {
        self.cycle.facts().last_text.as_deref()
    }

    /// Working time: finished cycles and the running one (LIFE-13).
    pub fn worked_ms(&self, now: Time) -> u64 {
        let running = if self.status == Status::Running { now.since(self.cycle_began) } else { 0 };
        self.worked_ms + running
    }
}

/// Why the crew refuses a call. Data, worded by `Display` for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Arguments that the schema does not allow.
    Arguments(String),
    /// No definition of that name (TOOL-21).
    UnknownDefinition {
        /// As given.
        name: String,
        /// What there is.
        available: Vec<String>,
    },
    /// No subagent with that id.
    UnknownSubagent(SubagentId),
    /// It belongs to another session.
    ForeignSubagent(SubagentId),
    /// Its phase does not allow it.
    WrongPhase(SubagentId, Status),
    /// `crew_abort` aborted nothing (TOOL-35).
    NothingAborted {
        /// Unknown or not open.
        missing: Vec<SubagentId>,
        /// Owned elsewhere.
        foreign: Vec<SubagentId>,
    },
    /// `crew_abort` with `all`, and nothing is open.
    NothingOpen,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[SubagentId]| {
            let words: Vec<_> = ids.iter().map(SubagentId::as_str).collect();
            if words.is_empty() { "none".to_owned() } else { words.join(", ") }
        };
        match self {
            Refusal::Arguments(text) => f.write_str(text),
            Refusal::UnknownDefinition { name, available } => {
                let names =
                    if available.is_empty() { "none".to_owned() } else { available.join(", ") };
                write!(f, "there is no subagent definition named \"{name}\"; available: {names}")
            }
            Refusal::UnknownSubagent(id) => {
                write!(f, "there is no open subagent with the id \"{id}\"")
            }
            Refusal::ForeignSubagent(id) => {
                write!(f, "subagent \"{id}\" belongs to another session")
            }
            Refusal::WrongPhase(id, status) => write!(
                f,
                "subagent \"{id}\" does not await its owner: its status is {}",
                status.word()
            ),
            Refusal::NothingAborted { missing, foreign } => write!(
                f,
                "nothing was aborted; missing or finished: {}; of another session: {}",
                list(missing),
                list(foreign)
            ),
            Refusal::NothingOpen => f.write_str("this session has no open subagent"),
        }
    }
}

/// Place of a subagent in the roster; grows with creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

/// Live subagents in creation order, found by id and by child session.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    by_key: BTreeMap<Key, Subagent>,
    by_id: BTreeMap<SubagentId, Key>,
    by_session: BTreeMap<SessionId, Key>,
    created: u64,
}

impl Roster {
    pub(crate) fn add(&mut self, subagent: Subagent) -> Key {
        self.created += 1;
        let key = Key(self.created);
        self.by_id.insert(subagent.id.clone(), key);
        self.by_session.insert(subagent.session.clone(), key);
        self.by_key.insert(key, subagent);
        key
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Subagent> {
        let subagent = self.by_key.remove(&key)?;
        self.by_id.remove(&subagent.id);
        self.by_session.remove(&subagent.session);
        Some(subagent)
    }

    pub(crate) fn of_id(&self, id: &SubagentId) -> Option<Key> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn of_session(&self, session: &SessionId) -> Option<Key> {
        self.by_session.get(session).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subagent> {
        self.by_key.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subagent> {
        self.by_key.values_mut()
    }

    pub(crate) fn find(&self, wanted: impl Fn(&Subagent) -> bool) -> Option<Key> {
        self.by_key.iter().find(|(_, subagent)| wanted(subagent)).map(|(key, _)| *key)
    }
}

impl std::ops::Index<Key> for Roster {
    type Output = Subagent;
    fn index(&self, key: Key) -> &Subagent {
        self.by_key.get(&key).expect("a key is used only while its subagent lives")
    }
}

impl std::ops::IndexMut<Key> for Roster {
    fn index_mut(&mut self, key: Key) -> &mut Subagent {
        self.by_key.get_mut(&key).expect("a key is used only while its subagent lives")
    }
}

/// All subagents of all owners, and what is on its way to them.
#[derive(Debug, Default)]
pub struct Crew {
    pub(crate) subagents: Roster,
    pub(crate) queues: BTreeMap<SessionId, VecDeque<Delivery>>,
    /// Handed to an owner's agent, not yet in its record.
    pub(crate) handed: Vec<Delivery>,
    /// Entered lately; the write may still fail.
    pub(crate) recorded: VecDeque<Delivery>,
    pub(crate) attached: Option<SessionId>,
    pub(crate) flush_pending: bool,
    pub(crate) deliveries: u64,
    pub(crate) requests: BTreeMap<SessionId, u32>,
    pub(crate) had_open: BTreeMap<SessionId, bool>,
    pub(crate) out: Vec<Effect>,
}

impl Crew {
    /// What is to be done since the last call, in order.
    #[must_use]
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out)
    }

    /// Open subagents of an owner in creation order.
    pub fn open_of<'a>(&'a self, owner: &'a SessionId) -> impl Iterator<Item = &'a Subagent> {
        self.subagents.iter().filter(move |subagent| subagent.owner == *owner)
    }

    /// All open subagents.
    pub fn all(&self) -> impl Iterator<Item = &Subagent> {
        self.subagents.iter()
    }

    /// The subagent of a child session.
    pub fn of_session(&self, session: &SessionId) -> Option<&Subagent> {
        self.subagents.of_session(session).map(|key| &self.subagents[key])
    }

    /// The subagent with an id, if the caller owns it.
    pub(crate) fn owned(&self, owner: &SessionId, id: &SubagentId) -> Result<Key, Refusal> {
        let at = self.subagents.of_id(id).ok_or_else(|| Refusal::UnknownSubagent(id.clone()))?;
        if self.subagents[at].owner == *owner {
            Ok(at)
        } else {
            Err(Refusal::ForeignSubagent(id.clone()))
        }
    }

    /// As [`Crew::owned`], and it awaits its owner.
    pub(crate) fn awaiting(&self, owner: &SessionId, id: &SubagentId) -> Result<Key, Refusal> {
        let at = self.owned(owner, id)?;
        let status = self.subagents[at].status;
        if status.awaits_owner() { Ok(at) } else { Err(Refusal::WrongPhase(id.clone(), status)) }
    }

    /// A fresh subagent id (LIFE-2).
    pub(crate) fn fresh_id(&self, ids: &mut Ids, name: &str) -> SubagentId {
        const TRIES_MAX: usize = 10;
        for _ in 0..TRIES_MAX {
            let id = SubagentId::new(format!("{name}-{}", ids.hex(8)));
            if self.subagents.of_id(&id).is_none() {
                return id;
            }
        }
        SubagentId::new(format!("{name}-{}", ids.hex(16)))
    }

    pub(crate) fn tell(&mut self, at: Key, kind: UpdateKind) {
        let update = self.update(at, kind);
        self.out.push(Effect::Update(update));
    }

    /// What faces are told about a subagent now.
    pub(crate) fn update(&self, at: Key, kind: UpdateKind) -> Update {
        let subagent = &self.subagents[at];
        Update {
            owner: subagent.owner.clone(),
            session: subagent.session.clone(),
            subagent: subagent.id.clone(),
            definition: subagent.definition.name.clone(),
            brief: subagent.brief.clone(),
            model: subagent.model.clone(),
            status: subagent.status,
            kind,
        }
    }

    /// Moves every open subagent of the previous session file, and what waits
    /// for the previous session from them or from ones that are gone, to the
    /// new session (OWN-4 to OWN-8).
    pub fn adopt(&mut self, previous: &SessionId, previous_file: &str, owner: &Owner) {
        let mut moved = Vec::new();
        for subagent in self.subagents.iter_mut() {
            if subagent.owner_file.as_deref() == Some(previous_file) {
                subagent.owner = owner.session.clone();
                subagent.owner_file.clone_from(&owner.file);
                moved.push(subagent.id.clone());
            }
        }
        self.requests.remove(&owner.session);
        // Should the old record turn out not to have taken one, it follows too.
        for delivery in &mut self.recorded {
            if delivery.owner == *previous {
                delivery.owner = owner.session.clone();
            }
        }
        let Some(queue) = self.queues.remove(previous) else { return };
        let (follows, stays): (VecDeque<_>, VecDeque<_>) = queue.into_iter().partition(|waiting| {
            moved.contains(&waiting.subagent) || self.subagents.of_id(&waiting.subagent).is_none()
        });
        if !stays.is_empty() {
            self.queues.insert(previous.clone(), stays);
        }
        for mut delivery in follows {
            delivery.owner = owner.session.clone();
            self.queues.entry(owner.session.clone()).or_default().push_back(delivery);
        }
    }
}
