//! What the engine wants done. Contract of the shell: `style.md` 3.

use crew_base::entry::Entry;
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::message::ToolCall;
use crew_base::model::ModelRequest;
use crew_crew::OpenChild;
use crew_task::OpenTask;

use crate::api::Update;
use crate::pacing::Held;
use crate::work::TaskWork;

/// One effect. They start in list order; an `Append` completes before later
/// effects of its session start.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ends in [`crate::Event::SessionOpened`].
    OpenSession(OpenPlan),
    /// A failure gives [`crate::Event::AppendFailed`].
    Append {
        /// Whose file.
        session: SessionId,
        /// The entry.
        entry: Entry,
    },
    /// Ends in a `Finished` or `Failed` event.
    StartModel {
        /// Who asks.
        session: SessionId,
        /// Names the stream.
        run: RunId,
        /// The request.
        request: ModelRequest,
    },
    /// Ends in [`crate::Event::ToolEnded`].
    RunTool {
        /// Who asks.
        session: SessionId,
        /// Names the run.
        run: RunId,
        /// The call.
        call: ToolCall,
    },
    /// Ends in [`crate::Event::Discovered`]: the definitions of this moment,
    /// for the working directory and trust of a session.
    Discover {
        /// Names it.
        run: RunId,
        /// For whom.
        session: SessionId,
    },
    /// Reads a place in the tree of a session and what lies between it and the
    /// leaf; ends in [`crate::Event::BranchRead`].
    ReadBranch {
        /// Whose.
        session: SessionId,
        /// Names the reading.
        run: RunId,
        /// The leaf that may be left.
        from: Option<EntryId>,
        /// The entry that was chosen.
        to: EntryId,
    },
    /// Stops a stream or a tool; a tool still ends with its event.
    Cancel {
        /// Whose.
        session: SessionId,
        /// What.
        run: RunId,
    },
    /// Work for the `task` tool; each piece says what it ends in.
    Task(TaskWork),
    /// Closes whatever exists under that id, opening or open, and ends the
    /// processes that its commands left behind; ends in
    /// [`crate::Event::SessionClosed`] once they are gone.
    CloseSession {
        /// Which.
        session: SessionId,
    },
    /// Tell the faces.
    Update(Update),
    /// Nothing is left to do.
    Exit,
}

/// What is to be prepared.
#[derive(Clone, Debug)]
pub enum OpenPlan {
    /// An owner.
    Owner {
        /// Its id.
        session: SessionId,
        /// Where it comes from.
        source: Source,
    },
    /// A child.
    Child(Box<OpenChild>),
    /// A child of the `task` tool (`task.md` SESS-1 to SESS-7).
    Task(Box<OpenTask>),
}

/// Where an owner's session comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A new one, with a name if the person gave one.
    New {
        /// The name.
        name: Option<String>,
    },
    /// A new one that names the file of another as its parent (`host.md`
    /// 2.3.4).
    Under {
        /// The parent's file.
        parent: String,
    },
    /// A file.
    File(String),
    /// A file whose own directory is gone: it runs in the working directory of
    /// new sessions, which is not stored (`host.md` 2.3.3).
    FileHere(String),
    /// A copy of the branch that ends with the last entry of another
    /// session's file (`host.md` 2.8.4).
    Copy {
        /// The file that is copied.
        file: String,
    },
    /// A copy of another session's file up to an entry; without one, of
    /// nothing (`host.md` 2.8.4).
    Branch {
        /// The file that is copied.
        file: String,
        /// The last entry that is kept.
        leaf: Option<EntryId>,
    },
}

impl From<Held> for Effect {
    fn from(held: Held) -> Effect {
        Effect::StartModel { session: held.session, run: held.run, request: held.request }
    }
}
