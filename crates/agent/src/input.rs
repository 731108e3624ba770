//! What can happen to a session.

use crew_base::entry::EntryBody;
use crew_base::id::{EntryId, RunId, TakenEntryIds};
use crew_base::message::{CustomMessage, Message, SharedMessage};
use crew_base::model::ModelEvent;
use crew_base::session::{DeliveryId, ResultMessage};
use crew_base::tool::{ToolOutcome, ToolProgress};

use crate::branch::{Branch, BranchWish};

/// An input of the machine.
#[expect(clippy::large_enum_variant, reason = "moved once, from the engine to the agent")]
#[derive(Clone, Debug)]
pub enum Input {
    /// Starts a session run with these messages; only while idle.
    Prompt(Vec<Message>),
    /// Results of the crew: start a run while idle, else enter before the
    /// next request, all that wait together (`product.md` P-9a).
    Results(Vec<ResultMessage>),
    /// Starts a run when idle and results wait (`crew.md` DEL-5).
    Wake,
    /// Joins the running run after the current tool batch (`host.md` 3.4.1).
    Steer(Message),
    /// Enters when the run would stop (`host.md` 3.4.1).
    FollowUp(Message),
    /// A message that starts nothing: held until the turn ends (`host.md` 3.4.7).
    Inject(CustomMessage),
    /// A message that starts nothing: held until the run ends (`host.md` 3.4.8).
    InjectAfterRun(Message),
    /// An entry that never enters the context, written at once.
    Note {
        /// What it says.
        body: EntryBody,
        /// The delivery it records, if any.
        delivery: Option<DeliveryId>,
    },
    /// Aborts what runs, then compacts the context (`host.md` 3.8.16).
    Compact {
        /// What the summary is to attend to.
        instructions: Option<String>,
    },
    /// Goes to another place in the tree; only while idle (`host.md` 2.8.2).
    Navigate {
        /// The chosen entry.
        to: EntryId,
        /// Whether what is left is summarised.
        summary: Option<BranchWish>,
        /// For the summary if there is one, else for the entry (2.8.3).
        label: Option<String>,
    },
    /// The branches of a move were read, or could not be.
    BranchRead {
        /// The reading.
        run: RunId,
        /// What was found, or why not, for people.
        result: Result<Box<Branch>, String>,
    },
    /// Answers [`crate::Effect::Boundary`] with what is to be recorded there.
    Proceed(Vec<CustomMessage>),
    /// A stream said something.
    Model {
        /// The stream.
        run: RunId,
        /// In order.
        events: Vec<ModelEvent>,
    },
    /// A running tool shows what it has.
    ToolProgress {
        /// The tool's run.
        run: RunId,
        /// So far.
        progress: ToolProgress,
    },
    /// A tool ended, well or not.
    ToolEnded {
        /// The tool's run.
        run: RunId,
        /// What it gave back.
        outcome: ToolOutcome,
    },
    /// The entry could not be written (`host.md` 2.2.4).
    AppendFailed {
        /// The entry.
        entry: EntryId,
        /// Why, for people.
        error: String,
    },
    /// The same for an entry that its run can do without (`task.md` EXEC-15):
    /// if nothing followed it, the request behind it is made again without it.
    AppendLost {
        /// The entry.
        entry: EntryId,
        /// Why, for people.
        error: String,
    },
    /// Stops what runs (`host.md` 3.5).
    Abort,
    /// The deadline has passed.
    Tick,
}

/// A session as it was found on disk (`host.md` 2.6).
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The projected context with the entry of each message.
    pub context: Vec<(EntryId, SharedMessage)>,
    /// The last entry of the file.
    pub leaf: Option<EntryId>,
    /// Ids the file uses.
    pub taken: TakenEntryIds,
    /// Whether any thinking level entry stands in it (`host.md` 2.4.2).
    pub has_level_entry: bool,
}
