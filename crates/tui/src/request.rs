//! What the face needs from the rest of the program, as plain data.
//!
//! The face reads no file, no clock and no environment. Whoever runs it serves
//! [`Request`]s and gives [`Reply`]s (`style.md` 8).

use std::path::PathBuf;

use crew_base::entry::Entry;
use crew_base::id::{EntryId, SessionId};
use crew_base::message::Usage;
use crew_base::model::ThinkingLevel;
use crew_engine::api::{Command, Status};

use crate::theme::Theme;

/// What the face is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Version of the program.
    pub version: String,
    /// Colours and icons of this terminal.
    pub theme: Theme,
    /// Working directory with `~`.
    pub cwd: String,
    /// Git branch, if any.
    pub branch: Option<String>,
    /// Rows of a completion menu.
    pub menu_rows: usize,
    /// Whether tool rows are part of the widget (`crew.md` WID-14).
    pub widget_tools: bool,
    /// Whether thoughts are shown in full at the start.
    pub thinking: bool,
    /// What Esc twice on an empty editor does.
    pub double_escape: DoubleEscape,
    /// Which events ask for attention (TERM-38).
    pub attention: Vec<String>,
    /// Whether attention rings the bell.
    pub bell: bool,
    /// Whether several providers have models that can be used.
    pub several_providers: bool,
    /// Whether the start header is shown.
    pub header: bool,
}

/// What Esc twice does (`host.md` 1.3 `doubleEscapeAction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleEscape {
    /// The tree.
    Tree,
    /// The list of messages to fork from.
    Fork,
    /// Nothing.
    Nothing,
}

/// What was found at the start, for the header (`host.md` 8.21).
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Context files by name.
    pub context_files: Vec<String>,
    /// Number of skills.
    pub skills: usize,
    /// Prompt templates: name and description.
    pub templates: Vec<(String, String)>,
    /// Skills: name and description.
    pub skill_names: Vec<(String, String)>,
    /// Subagent definitions: name and description.
    pub agents: Vec<(String, String)>,
    /// What was looked for when there is no model (P-4).
    pub looked_for: String,
}

/// A session that is shown from now on.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its id.
    pub session: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// Its branch so far, oldest first.
    pub entries: Vec<Entry>,
    /// Text for the editor, as after a fork.
    pub draft: Option<String>,
    /// Working directory with `~`.
    pub cwd: String,
    /// Its model, if any is usable.
    pub model: Option<ModelFacts>,
    /// Its thinking level.
    pub thinking: ThinkingLevel,
}

/// Figures that change while sessions run.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The model of the shown session.
    pub model: Option<ModelFacts>,
    /// Its thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// Tokens of its context, if known.
    pub context_tokens: Option<u64>,
    /// Its own tokens and cost.
    pub own: Usage,
    /// Those of its subagents.
    pub crew: Usage,
    /// Whether contexts are compacted by themselves.
    pub auto_compaction: bool,
    /// Results that wait for the next request (TERM-61).
    pub results_waiting: usize,
    /// Its open subagents.
    pub subagents: Vec<SubagentFacts>,
}

/// A model as the footer names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// Its provider.
    pub provider: String,
    /// Its id.
    pub id: String,
    /// Size of its window in tokens.
    pub window: u64,
    /// Levels it supports; one for a model that does not think.
    pub levels: Vec<ThinkingLevel>,
    /// Built in and scripted.
    pub is_scripted: bool,
}

/// Figures of one open subagent.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentFacts {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: Option<SessionId>,
    /// Its definition.
    pub definition: String,
    /// Its brief.
    pub brief: String,
    /// `provider/model-id`, once known.
    pub model: Option<String>,
    /// Its thinking level, once known.
    pub thinking: Option<ThinkingLevel>,
    /// Its status.
    pub status: Status,
    /// Working time so far.
    pub worked_ms: u64,
    /// Calls started.
    pub tool_calls: u64,
    /// Calls that failed; unknown without figures.
    pub failures: u64,
    /// Tokens and cost.
    pub usage: Option<Usage>,
    /// Latest activity, oldest first; `None` where only updates tell.
    pub rows: Option<Vec<Activity>>,
    /// What it waits for, in words.
    pub waits: Option<String>,
    /// Its last words.
    pub last_text: Option<String>,
}

/// One tool call of a subagent (`crew.md` ACT-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Shown name.
    pub name: String,
    /// What it works on.
    pub target: String,
    /// How it stands.
    pub state: ActivityState,
    /// What came of it.
    pub summary: Option<String>,
}

/// How a tool call of a subagent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityState {
    /// Started.
    Running,
    /// Ended well.
    Done,
    /// Failed.
    Failed,
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOffer {
    /// `provider/id`.
    pub reference: String,
    /// Its name for people.
    pub name: String,
    /// Window and price.
    pub facts: String,
    /// Why it cannot be used, if it cannot.
    pub lacks: Option<String>,
    /// Whether it is the current one.
    pub is_current: bool,
    /// Whether it is the default.
    pub is_default: bool,
}

/// A stored session that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOffer {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// Its name or its first words.
    pub title: String,
    /// Whether it has a name.
    pub is_named: bool,
    /// Its working directory with `~`.
    pub cwd: String,
    /// Milliseconds since its last message.
    pub age_ms: u64,
    /// Messages.
    pub messages: usize,
    /// Text that searches look into.
    pub text: String,
    /// Whether it is the shown one.
    pub is_current: bool,
    /// Whether it came from another one by a fork.
    pub is_fork: bool,
    /// Its subagents.
    pub children: Vec<ChildOffer>,
}

/// A stored session of a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildOffer {
    /// Its file.
    pub path: PathBuf,
    /// Its name.
    pub title: String,
    /// How it ended, if its file says so.
    pub outcome: Option<Status>,
    /// Milliseconds since its last message.
    pub age_ms: u64,
    /// Messages.
    pub messages: usize,
}

/// A node of the session tree, in the order it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// The entry.
    pub entry: EntryId,
    /// Lines that lead to it.
    pub lead: String,
    /// Who and what.
    pub text: String,
    /// Its label.
    pub label: Option<String>,
    /// Whether the present conversation goes through it.
    pub is_active: bool,
    /// Whether it is where the session stands.
    pub is_leaf: bool,
    /// Whether it is a message of the person.
    pub is_user: bool,
}

/// Choices about a project (`host.md` 5.6.4), in the order of sketch S-11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChoice {
    /// Not this time.
    NotNow,
    /// Only this time.
    Once,
    /// Always in this folder.
    Folder,
    /// Always below the folder above.
    Parent,
    /// Never in this folder.
    Never,
}

impl TrustChoice {
    /// All of them in order.
    pub const ALL: [TrustChoice; 5] = [
        TrustChoice::NotNow,
        TrustChoice::Once,
        TrustChoice::Folder,
        TrustChoice::Parent,
        TrustChoice::Never,
    ];
}

/// What the trust question names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustFiles {
    /// Path and what it holds.
    pub files: Vec<(String, String)>,
    /// The folder above, with `~`.
    pub parent: String,
}

/// What is asked of the program.
#[derive(Clone, Debug)]
pub enum Request {
    /// A command that follows from an earlier one.
    Send(Box<Command>),
    /// The figures of now.
    Facts,
    /// Files that match; the reply carries the number.
    Files {
        /// Names the question.
        number: u64,
        /// What was typed behind `@`, or a path to complete.
        query: String,
        /// Whether only names that begin with it count (Tab).
        is_path: bool,
    },
    /// Models that can be chosen, or all.
    Models {
        /// Also those that cannot be used.
        all: bool,
    },
    /// Another model for the shown session.
    UseModel {
        /// What was typed or chosen.
        reference: String,
        /// Also as default.
        save: bool,
    },
    /// The next or previous model.
    CycleModel {
        /// The previous one.
        backwards: bool,
    },
    /// Stored sessions.
    Sessions {
        /// Of all folders.
        all: bool,
    },
    /// The transcript of a subagent's session.
    Read {
        /// Its id.
        id: String,
        /// Its session, while it is open.
        session: Option<SessionId>,
        /// Its file.
        path: Option<PathBuf>,
    },
    /// A new session.
    New,
    /// A stored session.
    Resume(PathBuf),
    /// A stored session gets another name.
    Rename(PathBuf, String),
    /// A stored session is deleted.
    Delete(PathBuf),
    /// Messages to fork from.
    ForkMessages,
    /// A copy up to a message.
    Fork(EntryId),
    /// A copy of everything.
    Clone,
    /// The tree of the session.
    Tree,
    /// Another place in the tree.
    Navigate(EntryId),
    /// A label for an entry; empty removes it.
    Label(EntryId, String),
    /// The typed messages that wait come back.
    TakeBack,
    /// A command of the person.
    Shell {
        /// What to run.
        command: String,
        /// The model is not told.
        exclude: bool,
    },
    /// Stops the command of the person.
    StopShell,
    /// The draft in an editor outside.
    EditOutside(String),
    /// A text for the clipboard, and what it is.
    Copy {
        /// What it is.
        what: String,
        /// The text.
        text: String,
    },
    /// The clipboard's image or files.
    PasteOutside,
    /// The session as a page, with a name if given.
    Export(Option<String>),
    /// Counts of the session.
    Session,
    /// What is asked about the project, for `/trust`.
    Trust,
    /// The answer to a question about the project.
    Trusted(TrustChoice),
    /// Everything is read again.
    Reload,
    /// Rings.
    Bell,
    /// The program pauses.
    Suspend,
    /// The screen is drawn anew.
    Redraw,
    /// The program ends.
    Quit,
    /// The program ends at once.
    ExitNow,
}

/// What the program says.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Files in order of their fit.
    Files {
        /// The question.
        number: u64,
        /// Paths; folders end in a slash.
        paths: Vec<String>,
    },
    /// The figures of now.
    Facts(Box<Facts>),
    /// What was found at the start or by a reload.
    Found(Box<Found>),
    /// Models to choose from.
    Models(Vec<ModelOffer>),
    /// Sessions to choose from.
    Sessions(Vec<SessionOffer>),
    /// A subagent's transcript.
    Transcript {
        /// The subagent or session.
        id: String,
        /// Its branch.
        entries: Vec<Entry>,
    },
    /// Another session is shown.
    Shown(Box<Shown>),
    /// Messages to fork from.
    ForkMessages(Vec<(EntryId, String)>),
    /// The tree.
    Tree(Vec<TreeRow>),
    /// Texts that were taken back.
    TakenBack(Vec<String>),
    /// Output of a command of the person so far.
    ShellOutput(String),
    /// The command of the person is over.
    ShellEnded,
    /// The draft as the editor outside left it.
    Edited(String),
    /// Text for the draft.
    Insert(String),
    /// What is asked about the project.
    Trust(TrustFiles),
    /// Something was done.
    Done(String),
    /// Something was not done: what, and what can be done.
    Failed(String, Option<String>),
    /// A problem that stopped nothing.
    Warning(String),
}
