//! What faces say and what they are told, and the words the shell needs to
//! prepare sessions. Nothing else of the pure crates is for either.

use crew_base::id::{SessionId, SubagentId};
use crew_base::message::Message;

pub use crew_agent::{
    CompactionReason, CompactionResult, CompactionSettings, Control, Loaded, Prompt, QueueMode,
    RetrySettings, Settings, Update as SessionUpdate,
};
pub use crew_base::session::RunEnd;
pub use crew_crew::tools::{
    GUIDELINES as OWNER_GUIDELINES, definitions as owner_tools, is_owner_tool,
};
pub use crew_crew::{
    AbortOrigin, OpenChild, Refusal as CrewRefusal, Status, Update as CrewUpdate, UpdateKind,
};
pub use crew_cycle::report::{GUIDELINE as CHILD_GUIDELINE, definition as report_tool};

use crate::effect::Source;

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
    /// The person closes a subagent that awaits its owner; the owner is told.
    Done(SessionId, SubagentId),
    /// Aborts the run, then compacts the context with these instructions
    /// (`host.md` 3.8.16).
    Compact(SessionId, Option<String>),
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
    /// Working time.
    pub worked_ms: u64,
    /// Tool calls.
    pub tool_calls: u64,
}
