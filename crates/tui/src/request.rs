//! What the face needs from the rest of the program, as plain data.
//!
//! The face reads no file, no clock and no environment. Whoever runs it serves
//! [`Request`]s and gives [`Reply`]s (`style.md` 8).

mod approval;
mod offers;

use std::path::PathBuf;

use crew_base::entry::Entry;
use crew_base::id::{EntryId, SessionId};
use crew_base::message::Usage;
use crew_base::model::ThinkingLevel;
use crew_engine::api::{Command, Status};

use crate::highlight::{Ask, Coloured};
use crate::keys::Bindings;
use crate::theme::Theme;
use crate::transcript::item::Item;

pub use approval::Approval;
pub use offers::{ChildOffer, ModelOffer, SessionOffer, SettingOffer, SettingOrigin};

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
    /// Whether thoughts are shown in full; a key of the person changes it.
    pub thinking: bool,
    /// What Esc twice on an empty editor does.
    pub double_escape: DoubleEscape,
    /// What the tree shows at first.
    pub tree_filter: TreeFilter,
    /// Moves in the tree never ask for a summary
    /// (`branchSummary.skipPrompt`).
    pub skip_summary: bool,
    /// Which events ask for attention (TERM-38).
    pub attention: Vec<String>,
    /// How attention is asked for.
    pub attention_form: AttentionForm,
    /// Whether several providers have models that can be used.
    pub several_providers: bool,
    /// Whether the start header is shown.
    pub header: bool,
    /// Which key does what.
    pub keys: Bindings,
}

/// How the person is called (TERM-38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionForm {
    /// The terminal's bell.
    Bell,
    /// A notification of the desktop, which the terminal passes on.
    Desktop,
    /// Not at all.
    Off,
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
    /// Models that can be used: reference and name.
    pub models: Vec<(String, String)>,
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
    /// What was said and done in it, oldest first.
    pub items: Vec<Item>,
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
    /// Why its request is held back, in words, if it is.
    pub waits: Option<String>,
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
    /// What its last cycle ended with: its report, or what it needs.
    pub settled: Option<String>,
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

/// An entry of the session tree; each stands before its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// The entry.
    pub entry: EntryId,
    /// The one it follows.
    pub parent: Option<EntryId>,
    /// What it is.
    pub kind: RowKind,
    /// What it says, in one clean line.
    pub text: String,
    /// Its label.
    pub label: Option<String>,
    /// When it got that, `2026-11-30 13:43`.
    pub labelled: Option<String>,
    /// Whether it is where the session stands.
    pub is_leaf: bool,
}

/// What an entry of the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A message of the person.
    User,
    /// An answer with text.
    Answer,
    /// An answer that only calls tools.
    Calls,
    /// The result of a tool.
    Result,
    /// A command of the person.
    Shell,
    /// A result or an error of a subagent.
    Card(Status),
    /// Another message that is shown.
    Notice,
    /// Stands for what was compacted or left.
    Summary,
    /// Settings, labels, figures, and what only the model sees.
    Setting,
    /// A type that is not known.
    Unknown,
}

/// Which entries of the tree are shown (`host.md` 1.3 `treeFilterMode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeFilter {
    /// What was said and done.
    #[default]
    Default,
    /// The same without results of tools.
    NoTools,
    /// Messages of the person.
    UserOnly,
    /// What has a label.
    Labelled,
    /// Everything.
    All,
}

impl TreeFilter {
    /// All of them, in the order Ctrl+O goes through.
    pub const ALL: [TreeFilter; 5] = [
        TreeFilter::Default,
        TreeFilter::NoTools,
        TreeFilter::UserOnly,
        TreeFilter::Labelled,
        TreeFilter::All,
    ];

    /// Its word in the settings.
    pub fn word(self) -> &'static str {
        match self {
            TreeFilter::Default => "default",
            TreeFilter::NoTools => "no-tools",
            TreeFilter::UserOnly => "user-only",
            TreeFilter::Labelled => "labeled-only",
            TreeFilter::All => "all",
        }
    }

    /// The filter of a word; unknown ones mean the default.
    pub fn of(word: &str) -> TreeFilter {
        let known = TreeFilter::ALL.into_iter().find(|filter| filter.word() == word);
        known.unwrap_or_default()
    }
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

/// A question with its answers; the first one changes nothing and is the
/// default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// What is asked.
    pub text: String,
    /// Answers: what is done, and what that means.
    pub answers: Vec<(String, String)>,
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
    /// The branch that ends with an entry, after a move there.
    Branch(Option<EntryId>),
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
    /// The session as a file, whose form its name says (TERM-50).
    Export {
        /// Where, if that was given.
        path: Option<String>,
        /// With the transcripts of its subagents.
        with_crew: bool,
    },
    /// Counts of the session.
    Session,
    /// What is asked about the project, for `/trust`.
    Trust,
    /// What the files of the project hold, before it is decided about.
    ShowTrust,
    /// The key of this provider is asked for and stored; without a name the
    /// providers are told.
    Login(String),
    /// The stored key of this provider is removed.
    Logout(String),
    /// The answer to a question about the project.
    Trusted(TrustChoice),
    /// Everything is read again.
    Reload,
    /// The settings and their values (`host.md` 8.3).
    Settings,
    /// A setting gets another of its values.
    Set {
        /// Its dotted key.
        key: String,
        /// The value, one of its choices.
        value: String,
    },
    /// Calls the person: why, in words for a notification.
    Attention(String),
    /// What was chosen of a [`Choice`], from zero.
    Chosen(usize),
    /// Whether a tool may run (`task.md` OBS-3).
    Approve {
        /// Names the question.
        id: u64,
        /// It may.
        is_allowed: bool,
    },
    /// Colours of lines of code, in this order. The answer may come late or not
    /// at all; it must not be made on the thread that draws.
    Highlight(Vec<Ask>),
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
    /// The settings as the files have them now.
    Settings {
        /// All of them.
        offers: Vec<SettingOffer>,
        /// Why the last one was not changed, if it was not.
        problem: Option<String>,
    },
    /// A subagent's transcript.
    Transcript {
        /// The subagent or session.
        id: String,
        /// Its branch.
        entries: Vec<Entry>,
    },
    /// The end of a long session that is being opened at the start.
    Preview {
        /// The newest items.
        items: Vec<Item>,
        /// Messages before them.
        before: usize,
    },
    /// Another session is shown.
    Shown(Box<Shown>),
    /// Messages to fork from.
    ForkMessages(Vec<(EntryId, String)>),
    /// The tree.
    Tree(Vec<TreeRow>),
    /// The branch that was moved to.
    Branch(Vec<Entry>),
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
    /// Something to read, and what it is.
    Page {
        /// What it is.
        title: String,
        /// What it holds.
        items: Vec<Item>,
    },
    /// Something has to be chosen before it can go on (TERM-36).
    Choose(Choice),
    /// A tool waits for the person's word.
    Approval(Approval),
    /// A tool waits no more.
    ApprovalOver(u64),
    /// Colours of lines of code.
    Highlighted(Vec<Coloured>),
    /// Something was done.
    Done(String),
    /// Something was not done: what, and what can be done.
    Failed(String, Option<String>),
    /// A problem that stopped nothing.
    Warning(String),
}
