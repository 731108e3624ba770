//! Every call of `task` and every child of one, as one machine.
//!
//! Owns calls, queues, ids and children. Must never wait or act: what is to be
//! done comes out of [`Tasks::take_effects`], in order, and each effect that
//! works outside comes back through the method its documentation names. Events
//! of what is gone are late and change nothing. Read `tasks::call` for the way
//! of a call, `tasks::child` for that of a child, `tasks::settle` for its end.

mod call;
mod child;
mod settle;
mod watch;
mod wording;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crew_base::id::{CallId, RunId, SessionId};
use crew_base::message::{CustomMessage, ToolCall};
use crew_base::model::ModelSpec;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_cycle::yielded::Yields;
use crew_cycle::{Driver, Outcome};

use crate::agents::Agent;
use crate::approval::Approval;
use crate::artifact::Meta;
use crate::batch::Settled;
use crate::dispatch::{Resolved, Standing};
use crate::effect::Effect;
use crate::ids::Names;
use crate::isolation::{Capture, Prepared};
use crate::progress::Progress;
use crate::queue::{Place, Queue};
use crate::record::Record;
use crate::settings::{Settings, Spawns};

/// The calling session.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its id.
    pub session: SessionId,
    /// Its file; none in memory.
    pub file: Option<String>,
    /// 0 for a top session, 1 for a crew child (MEET-1).
    pub depth: u32,
    /// Its own policy; `None` is that of the settings, for a top session.
    pub spawns: Option<Spawns>,
    /// Its child id, if it is a `task` child.
    pub id: Option<String>,
    /// Its model at this moment.
    pub model: Option<Arc<ModelSpec>>,
}

/// What is read anew for each dispatch (1.5, TASK-SPAWN-5).
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Settings of the tool.
    pub settings: Settings,
    /// Approval of the calling session.
    pub approval: Approval,
    /// Agents by priority, without the general one.
    pub agents: Vec<Agent>,
    /// Folder of the project's agents, for details.
    pub project_agents: Option<String>,
    /// Tools that no child may have (`--exclude-tools`).
    pub excluded_tools: Vec<String>,
}

/// An artifact folder that exists (TASK-SPAWN-18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The folder.
    pub folder: String,
    /// It is deleted when the call is over.
    pub is_temporary: bool,
    /// Ids of files that are in it.
    pub taken: Vec<String>,
}

/// A child session that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenedTask {
    /// `provider/model-id`.
    pub model: Option<String>,
    /// The selected model was not usable.
    pub is_fallback: bool,
    /// Thinking level.
    pub thinking: Option<String>,
    /// The model's window.
    pub context_window: Option<u64>,
}

/// What happens at a safe boundary of a child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Boundary {
    /// The run ends here as aborted; no further request.
    pub stops: bool,
    /// To be recorded there, in order.
    pub messages: Vec<CustomMessage>,
}

/// All calls and children.
#[derive(Debug, Default)]
pub struct Tasks {
    calls: BTreeMap<RunId, Call>,
    asking: BTreeMap<RunId, Asking>,
    children: BTreeMap<SessionId, Child>,
    queues: BTreeMap<SessionId, Waiting>,
    names: BTreeMap<SessionId, Names>,
    /// Runs whose result is among the effects taken last.
    answered: BTreeSet<RunId>,
    out: Vec<Effect>,
}

/// A call that waits for the person.
#[derive(Debug)]
struct Asking {
    caller: Caller,
    call: ToolCall,
    setup: Arc<Setup>,
}

/// The queue of a session with the limit read last.
#[derive(Debug, Default)]
struct Waiting {
    queue: Queue,
    limit: Option<usize>,
}

/// A call whose preflight was good.
#[derive(Debug)]
struct Call {
    caller: Caller,
    call: CallId,
    setup: Arc<Setup>,
    context: Option<String>,
    lease: Option<Lease>,
    slots: Vec<Slot>,
    began: Time,
    is_cancelled: bool,
    /// When the next snapshot is due, and when the last one was told.
    progress_due: Option<Time>,
    progress_told: Option<Time>,
}

/// One item of a call.
#[derive(Debug)]
struct Slot {
    id: Option<String>,
    resolved: Resolved,
    /// Snapshot of what is over.
    last: Option<serde_json::Value>,
    state: SlotState,
}

#[derive(Debug)]
enum SlotState {
    /// For the lease or a slot.
    Waiting,
    Running(SessionId),
    Done(Box<Settled>),
}

/// A child that started.
#[derive(Debug)]
struct Child {
    place: Place,
    id: String,
    file: String,
    driver: Driver<Yields>,
    stage: Stage,
    progress: Progress,
    /// Retries that were given up last, unless a good answer followed.
    retry_failure: Option<(u32, String)>,
    prepared: Option<Prepared>,
    opened: Option<OpenedTask>,
    /// Nothing it started is left.
    is_closed: bool,
    outcome: Option<Outcome>,
    began: Time,
    jobs: u32,
    depth: u32,
    spawns: Spawns,
}

#[derive(Debug)]
enum Stage {
    /// Its copy is being made; it was cancelled meanwhile.
    Isolating {
        is_cancelled: bool,
    },
    /// Its session is being made.
    Opening,
    Running,
    /// Everything it started is being ended (SESS-11).
    Cleaning {
        until: Time,
    },
    /// Its files are being written.
    Writing {
        record: Box<Record>,
        meta: Meta,
    },
    /// Its changes can be captured once nothing of it is left (ISO-6).
    AwaitingClose {
        record: Box<Record>,
    },
    /// A message for its commits is being made.
    Wording {
        record: Box<Record>,
        capture: Capture,
        /// The diff is there, and the model was asked.
        is_asked: bool,
    },
    /// Its changes are being brought back.
    Integrating {
        record: Box<Record>,
    },
}

impl Tasks {
    /// What is to be done, in order.
    #[must_use]
    pub fn take_effects(&mut self) -> Vec<Effect> {
        let effects = std::mem::take(&mut self.out);
        self.answered = effects.iter().filter_map(answered).collect();
        effects
    }

    /// Whether something waits to be carried out.
    pub fn has_effects(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether a session is a child of this tool.
    pub fn is_child(&self, session: &SessionId) -> bool {
        self.children.contains_key(session)
    }

    /// A child as a caller of its own; `None` for other sessions.
    pub fn caller(&self, session: &SessionId, model: Option<Arc<ModelSpec>>) -> Option<Caller> {
        let child = self.children.get(session)?;
        Some(Caller {
            session: session.clone(),
            file: Some(child.file.clone()),
            depth: child.depth,
            spawns: Some(child.spawns.clone()),
            id: Some(child.id.clone()),
            model,
        })
    }

    /// Whether nothing runs and nothing waits.
    pub fn is_quiet(&self) -> bool {
        self.calls.is_empty()
            && self.asking.is_empty()
            && self.children.is_empty()
            && self.queues.is_empty()
            && self.out.is_empty()
    }

    /// Whether a call waits for the person.
    pub fn is_asking(&self, run: RunId) -> bool {
        self.asking.contains_key(&run)
    }

    /// Whether no call of this session runs or waits.
    pub fn is_quiet_for(&self, session: &SessionId) -> bool {
        let own = self.calls.values().map(|call| &call.caller);
        let asking = self.asking.values().map(|asking| &asking.caller);
        own.chain(asking).all(|caller| caller.session != *session)
    }

    /// Whether a child may compact its context by itself (`crew.md` CAT-18).
    pub fn compacts(&self, session: &SessionId) -> bool {
        self.resolved(session).is_none_or(|resolved| resolved.agent.definition.compaction)
    }

    /// Child sessions that exist, by id of the session.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.children.keys()
    }

    /// A session is gone for good; its ids need not be remembered.
    pub fn forget(&mut self, session: &SessionId) {
        self.names.remove(session);
    }

    fn ended(&mut self, session: &SessionId, run: RunId, outcome: ToolOutcome) {
        let session = session.clone();
        self.out.push(Effect::ToolEnded { session, run, outcome, usage: None });
    }
}

/// The call that an effect answers.
fn answered(effect: &Effect) -> Option<RunId> {
    match effect {
        Effect::ToolEnded { run, .. } => Some(*run),
        Effect::Ask { .. }
        | Effect::Lease { .. }
        | Effect::Isolate(_)
        | Effect::Open(_)
        | Effect::Prompt { .. }
        | Effect::Stop { .. }
        | Effect::Close { .. }
        | Effect::StartJob { .. }
        | Effect::Progress { .. }
        | Effect::WriteArtifact { .. }
        | Effect::Describe { .. }
        | Effect::Word { .. }
        | Effect::StopWording { .. }
        | Effect::Integrate { .. }
        | Effect::Discard { .. }
        | Effect::EndLease { .. }
        | Effect::Update(_) => None,
    }
}

impl Caller {
    fn standing(&self, settings: &Settings) -> Standing {
        let spawns = self.spawns.clone().unwrap_or_else(|| settings.spawns.clone());
        Standing { depth: self.depth, spawns }
    }
}
