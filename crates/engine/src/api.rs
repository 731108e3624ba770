//! What faces say and what they are told, and the words the shell needs to
//! prepare sessions. Nothing else of the pure crates is for either.

use crew_base::id::{EntryId, SessionId, SubagentId};
use crew_base::message::{Message, Usage};
use crew_base::model::ThinkingLevel;
use crew_base::time::Time;

pub use crew_agent::{
    Branch, BranchWish, CompactionOverrides, CompactionReason, CompactionResult,
    CompactionSettings, CompactionSizes, Control, Left, Loaded, MoveEnd, Moved, Prompt, QueueMode,
    RetrySettings, Settings, Update as SessionUpdate,
};
pub use crew_base::session::RunEnd;
pub use crew_crew::activity::{Row as ActivityRow, RowStatus};
pub use crew_crew::tools::{
    GUIDELINES as OWNER_GUIDELINES, definitions as owner_tools, is_owner_tool,
};
pub use crew_crew::{
    AbortOrigin, OpenChild, Refusal as CrewRefusal, Status, Update as CrewUpdate, UpdateKind,
};
pub use crew_cycle::report::{GUIDELINE as CHILD_GUIDELINE, definition as report_tool};

use crate::effect::Source;

/// Words of the blocking `task` tool.
pub mod task {
    pub use crew_cycle::schema::SchemaMode;
    pub use crew_task::agents::{Agent, GENERAL, catalogue, general};
    pub use crew_task::approval::{Approval, Decision, Mode, Policy, Tier};
    pub use crew_task::child::forwards;
    pub use crew_task::dispatch::Standing;
    pub use crew_task::jobs::{BASH_TOOL, bash_definition, wait_definition};
    pub use crew_task::settings::{Backend, Isolation, Merge, Settings, Spawns};
    pub use crew_task::tool::{TASK_TOOL, definition, is_offered};
    pub use crew_task::{
        Lease, OpenTask, Phase, Setup, Update, address, artifact, effort, isolation,
    };
}

/// Names a command; its one answer carries the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandId(pub u64);

/// What a face asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// Opens a session as an owner and attaches it when it is there.
    Open {
        /// The id of the file, or of the session to be made.
        session: SessionId,
        /// Where it comes from.
        source: Source,
        /// The session it was forked or cloned from (`crew.md` OWN-4).
        adopts: Option<SessionId>,
    },
    /// Makes an open owner the one that is shown (`crew.md` RUN-2).
    Attach(SessionId),
    /// Stops showing an owner: its run is aborted, its crew goes on.
    Detach(SessionId),
    /// Starts a run.
    Prompt(SessionId, Message),
    /// Starts a run, or while one goes on joins it (`host.md` 7.3.4).
    PromptOrSteer(SessionId, Message),
    /// Starts a run, or while one goes on enters when it would stop.
    PromptOrFollowUp(SessionId, Message),
    /// Joins the running run, or waits for the next one.
    Steer(SessionId, Message),
    /// Enters when the run would stop.
    FollowUp(SessionId, Message),
    /// Stops the run of a session; its subagents go on.
    Abort(SessionId),
    /// Stops every subagent of an owner.
    AbortCrew(SessionId, AbortOrigin),
    /// The person stops one subagent of an owner (`terminal.md` TERM-44).
    AbortSubagent(SessionId, SubagentId),
    /// The person answers a subagent that awaits its owner; the owner is told
    /// (`terminal.md` TERM-41, TERM-42).
    Respond(SessionId, SubagentId, String),
    /// The person talks to a subagent that runs; to one that awaits its owner
    /// this is an answer. Answered once it is taken: the owner is told then. It
    /// is refused with [`CrewRefusal::WrongPhase`] when the cycle ended first
    /// (`terminal.md` TERM-46).
    SteerSubagent(SessionId, SubagentId, String),
    /// The person closes a subagent that awaits its owner; the owner is told.
    Done(SessionId, SubagentId),
    /// Aborts the run, then compacts the context with these instructions
    /// (`host.md` 3.8.16).
    Compact(SessionId, Option<String>),
    /// Goes to another place in the tree of a session. Answered when it is
    /// there, or the summary of what was left failed or was cancelled
    /// (`host.md` 2.8.2, 2.8.3).
    Navigate {
        /// The session.
        session: SessionId,
        /// The chosen entry.
        to: EntryId,
        /// Whether what is left is summarised.
        summary: Option<BranchWish>,
        /// For the summary if there is one, else for the entry.
        label: Option<String>,
    },
    /// Changes something of a session.
    Control(SessionId, Control),
    /// A message that starts nothing; enters when the run has ended.
    Inject(SessionId, Message),
    /// Leaves an owner: aborts its run and closes the session. Its crew goes
    /// on; results wait until it is opened again. Answered once the aborted
    /// turn is recorded (`host.md` 2.8.8).
    Leave(SessionId),
    /// Closes the subagents that await an owner (`product.md` P-6).
    CloseAwaiting(SessionId),
    /// Ends everything.
    Quit,
}

/// What faces are told, in order.
#[expect(clippy::large_enum_variant, reason = "moved once to each face")]
#[derive(Clone, Debug)]
pub enum Update {
    /// The one answer to a command.
    Answered {
        /// The command.
        command: CommandId,
        /// Whether it took effect.
        result: Result<(), Refusal>,
    },
    /// Something happened in the attached session.
    Session {
        /// The session.
        session: SessionId,
        /// What.
        update: SessionUpdate,
    },
    /// Something happened to a subagent.
    Crew(CrewUpdate),
    /// Something happened to a child of a `task` call (`task.md` OBS-6).
    Task(task::Update),
    /// A run ended because the host failed.
    RunFailed {
        /// The session.
        session: SessionId,
        /// Why.
        error: String,
    },
    /// The attached owner is idle, none of its subagents is in flight and no
    /// result is on its way (`product.md` P-6).
    AtRest(SessionId),
}

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such session is open.
    UnknownSession,
    /// It is not the attached one.
    NotAttached,
    /// It is running; a prompt needs a queue mode (`host.md` 3.1.11).
    Busy,
    /// No model is selected.
    NoModel,
    /// The session could not be opened.
    OpenFailed(String),
    /// The move in the tree was cancelled; the session is where it was.
    MoveCancelled,
    /// The move in the tree failed; the session is where it was.
    MoveFailed(String),
    /// The crew refuses; what it says is for people too.
    Subagent(CrewRefusal),
    /// The host is ending.
    Ending,
}

/// A subagent as faces show it.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentView {
    /// Its id.
    pub subagent: String,
    /// Its definition.
    pub definition: String,
    /// Its brief.
    pub brief: String,
    /// Its status.
    pub status: Status,
    /// `provider/model-id`, once known.
    pub model: Option<String>,
    /// Its session.
    pub session: SessionId,
    /// Its thinking level, once its session is there.
    pub thinking: Option<ThinkingLevel>,
    /// Working time.
    pub worked_ms: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool calls that failed.
    pub failures: u64,
    /// The latest tool calls, oldest first (`crew.md` ACT-2).
    pub rows: Vec<ActivityRow>,
    /// Tokens and cost so far (`crew.md` ACT-6).
    pub usage: Usage,
    /// What its last cycle ended with: its report, or what it needs.
    pub settled: Option<String>,
    /// The last text it wrote in its cycle, shortened.
    pub last_text: Option<String>,
    /// What it waits for, if it is not at work (`terminal.md` TERM-40).
    pub waits: Option<Wait>,
}

/// What a running subagent waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its session is being prepared.
    Opening,
    /// The model has not begun to answer.
    Model,
    /// Other sessions are asked first (`product.md` P-13).
    Turn,
    /// The provider asked for a pause that is over then.
    CoolDown(Time),
    /// A request that failed is tried again then.
    Retry(Time),
    /// The older part of its context is being summarised.
    Compaction,
}
