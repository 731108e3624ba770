//! What the face knows and shows: one value, changed by updates, keys and
//! time, drawn by a function that changes nothing (`style.md` 8).
//!
//! Owns the draft, the receiver of the text, open menus, questions and
//! full-screen views. Must never let an event move focus, selection, scroll
//! position, receiver or draft (`terminal.md` TERM-35). Read `view::updates`
//! for what the engine tells, `view::input` for keys, `view::submit` for Enter.

pub(crate) mod approvals;
pub mod complete;
pub mod crew;
pub mod full;
mod help;
mod input;
mod keymap;
pub(crate) mod questions;
mod replies;
mod slash;
mod submit;
mod updates;

use std::collections::{BTreeMap, VecDeque};

use crew_base::id::SessionId;
use crew_base::time::Time;
use crew_engine::api::{Command, CommandId, CompactionReason, Status};

use crate::draw::crew::{Level, Widget};
use crate::editor::Editor;
use crate::keys::action::Action;
use crate::markdown::Line;
use crate::request::{Approval, Facts, Found, Request, Setup};
use crate::screen::Size;
use crate::transcript::Look;
use crate::transcript::live::Live;

pub use input::key;
pub use replies::reply;
pub use updates::update;

use complete::Menu;
use crew::Crew;
use full::Full;
use questions::Question;

pub(crate) use help::LEADER;

/// The whole state of the face.
#[derive(Debug)]
pub struct View {
    /// What it was started with.
    pub setup: Setup,
    pub(crate) found: Found,
    pub(crate) size: Size,
    pub(crate) now: Time,
    pub(crate) session: Option<SessionId>,
    pub(crate) name: Option<String>,
    pub(crate) live: Live,
    pub(crate) crew: Crew,
    pub(crate) facts: Facts,
    pub(crate) facts_known: bool,
    pub(crate) editor: Editor,
    pub(crate) receiver: Receiver,
    /// The owner's draft while something else is typed (TERM-41).
    pub(crate) aside: Option<Editor>,
    pub(crate) run: Run,
    pub(crate) queue: Queued,
    pub(crate) menu: Option<Menu>,
    pub(crate) question: Option<Question>,
    /// Tools that wait for the person's word, oldest first.
    pub(crate) approvals: VecDeque<Approval>,
    pub(crate) full: Option<Box<Full>>,
    pub(crate) shell: Option<Shell>,
    /// Since when the second key of Ctrl+X is awaited (TERM-15).
    pub(crate) leader: Option<Time>,
    /// Whether the next character is jumped to, and backwards.
    pub(crate) jump: Option<bool>,
    pub(crate) history_search: Option<String>,
    pub(crate) last_key: Time,
    pub(crate) last_ctrl_c: Option<Time>,
    pub(crate) last_esc: Option<Time>,
    pub(crate) widget_long: bool,
    pub(crate) enhanced: bool,
    pub(crate) focused: Option<bool>,
    level: Level,
    richer_since: Option<(Time, Level)>,
    pub(crate) files: Files,
    pub(crate) attention: Option<Time>,
    /// The end of the session that is being opened was printed.
    previewed: bool,
    pub(crate) quitting: bool,
    /// Texts entered while the session is being opened, and whether they are
    /// follow-ups.
    pub(crate) early: Vec<(String, bool)>,
    /// Whether files of the project are not used (TERM-13).
    pub untrusted: bool,
    requests: Vec<Request>,
    /// What the command that was just returned is about.
    unsent: Option<Sent>,
    sent: BTreeMap<CommandId, Sent>,
}

/// Who gets the text (TERM-4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Receiver {
    /// The owner.
    #[default]
    Owner,
    /// A subagent that needs an answer, by id.
    Answer(String),
    /// A subagent that runs, by id (TERM-46).
    Steer(String),
}

impl Receiver {
    /// The subagent that gets the text.
    pub(crate) fn subagent(&self) -> Option<&str> {
        match self {
            Receiver::Owner => None,
            Receiver::Answer(id) | Receiver::Steer(id) => Some(id),
        }
    }
}

/// What the owner does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Since when it runs.
    pub(crate) since: Option<Time>,
    /// The wait before the next try.
    pub(crate) retry: Option<Retry>,
    /// A compaction since when.
    pub(crate) compacting: Option<(Time, CompactionReason)>,
    /// A branch that is left is being summarised since when.
    pub(crate) leaving: Option<Time>,
    /// A failure that is told unless a retry follows (TERM-24).
    pub(crate) failure: Option<(String, String)>,
    /// What the last try of the chain failed with.
    pub(crate) cause: Option<String>,
    /// Tries of the chain that goes on.
    pub(crate) tries: u32,
}

/// A wait before a try.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) attempt: u32,
    pub(crate) attempts_max: u32,
    pub(crate) until: Time,
    pub(crate) error: String,
}

/// Typed messages that wait (TERM-61).
#[derive(Clone, Debug, Default)]
pub(crate) struct Queued {
    pub(crate) steering: Vec<String>,
    pub(crate) follow_up: Vec<String>,
}

/// A command of the person that runs.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    pub(crate) command: String,
    pub(crate) since: Time,
    pub(crate) output: String,
}

/// The question for files that is on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) number: u64,
    pub(crate) query: Option<String>,
}

/// What a command was about, for its answer.
#[derive(Clone, Debug)]
pub(crate) enum Sent {
    /// Text for the owner.
    Text(String),
    /// An answer to a subagent.
    Answer { subagent: String, text: String },
    /// Words to a running subagent, until it takes them.
    Steer { subagent: String, text: String },
    /// Anything else, in words.
    Other(String),
}

impl View {
    /// A face that shows nothing yet.
    pub fn new(setup: Setup, size: Size, now: Time) -> View {
        let mut live = Live::default();
        if setup.theme.colours {
            live.colour_code();
        }
        View {
            setup,
            found: Found::default(),
            size,
            now,
            session: None,
            name: None,
            live,
            crew: Crew::default(),
            facts: Facts::default(),
            facts_known: false,
            editor: Editor::default(),
            receiver: Receiver::Owner,
            aside: None,
            run: Run::default(),
            queue: Queued::default(),
            menu: None,
            question: None,
            approvals: VecDeque::new(),
            full: None,
            shell: None,
            leader: None,
            jump: None,
            history_search: None,
            last_key: Time(0),
            last_ctrl_c: None,
            last_esc: None,
            widget_long: false,
            enhanced: false,
            focused: None,
            level: Level::default(),
            richer_since: None,
            files: Files::default(),
            attention: None,
            previewed: false,
            quitting: false,
            early: Vec::new(),
            untrusted: false,
            requests: Vec::new(),
            unsent: None,
            sent: BTreeMap::new(),
        }
    }

    /// Asks something of the program.
    pub(crate) fn ask(&mut self, request: Request) {
        self.requests.push(request);
    }

    /// A command whose answer is about `sent`.
    pub(crate) fn command(&mut self, command: Command, sent: Sent) -> Option<Command> {
        self.unsent = Some(sent);
        Some(command)
    }

    /// How items are drawn on the main screen.
    pub(crate) fn look(&self) -> Look {
        Look {
            theme: self.setup.theme,
            columns: self.size.columns,
            expanded: false,
            thinking: self.setup.thinking,
            reader: self.setup.keys.key(Action::Transcript),
        }
    }

    /// Whether the owner runs or compacts.
    pub fn is_busy(&self) -> bool {
        self.run.since.is_some() || self.run.compacting.is_some() || self.run.leaving.is_some()
    }

    /// Words that subagents have not taken yet: for whom, and what.
    pub(crate) fn steers(&self) -> impl Iterator<Item = (&str, &String)> {
        self.sent.values().filter_map(|sent| match sent {
            Sent::Steer { subagent, text } => Some((subagent.as_str(), text)),
            Sent::Text(_) | Sent::Answer { .. } | Sent::Other(_) => None,
        })
    }

    /// The widget at this size (TERM-10, TERM-11).
    pub(crate) fn widget(&self) -> Widget {
        let rows = self.size.rows;
        let budget = match rows {
            20.. if self.widget_long => rows - 12,
            20.. => ((rows - 10) / 2).min(14),
            12..20 => 3,
            6..12 => 1,
            _ => 0,
        };
        Widget {
            theme: self.setup.theme,
            columns: self.size.columns,
            budget,
            long: self.widget_long,
            tools: self.setup.widget_tools,
            now: self.now,
        }
    }

    /// The level in force: a poorer one at once, a richer one after a second
    /// without change (TERM-11).
    fn settle_level(&mut self) {
        let wanted = self.widget().level(&self.crew);
        if wanted >= self.level || self.crew.open.is_empty() {
            self.level = wanted;
            self.richer_since = None;
            return;
        }
        match self.richer_since {
            Some((since, level)) if level == wanted => {
                if self.now.since(since) >= RICHER_MS {
                    self.level = wanted;
                    self.richer_since = None;
                }
            }
            Some(_) | None => self.richer_since = Some((self.now, wanted)),
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Whether anything moves by itself: spinners and clocks (TERM-28).
    pub fn is_moving(&self) -> bool {
        self.is_busy() || self.shell.is_some() || self.crew.counts().running > 0
    }

    /// When [`tick`] has something to do, beside spinners.
    pub fn deadline(&self) -> Option<Time> {
        let leader = self.leader.map(|since| since + LEADER_MS).filter(|at| *at > self.now);
        let richer = self.richer_since.map(|(since, _)| since + RICHER_MS);
        let armed = self.full.as_ref().and_then(|full| full.deadline());
        let code = self.live.deadline().filter(|at| *at > self.now);
        [leader, richer, armed, code].into_iter().flatten().min()
    }

    /// Whether the terminal shows the alternate screen.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Whether figures of the host are worth asking for (TERM-29).
    pub fn wants_facts(&self) -> bool {
        self.session.is_some() && (self.is_busy() || !self.crew.open.is_empty())
    }

    /// Subagents that are in flight or need input, with id, brief and working
    /// time (TERM-27).
    pub fn open_work(&self) -> Vec<(String, String, u64)> {
        let work = |subagent: &crew::Subagent| {
            let (id, brief) = (subagent.id.clone(), subagent.brief.clone());
            (id, brief, subagent.worked_ms(self.now))
        };
        let is_work = |one: &&crew::Subagent| match one.status {
            Status::Running | Status::NeedsInput => true,
            Status::Completed | Status::Error | Status::Aborted => false,
        };
        self.crew.open.iter().filter(is_work).map(work).collect()
    }

    /// `provider/id` of the model in use.
    pub fn model_reference(&self) -> Option<String> {
        self.facts.model.as_ref().map(|model| format!("{}/{}", model.provider, model.id))
    }

    /// The thinking level in use.
    pub fn thinking(&self) -> Option<crew_base::model::ThinkingLevel> {
        self.facts.thinking
    }

    /// Title of the terminal: name of the session and folder, and how many
    /// subagents need the person (TERM-39, `host.md` 8.22). Clean text.
    pub fn title(&self) -> String {
        let folder = self.setup.cwd.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
        let place = match &self.name {
            Some(name) => format!("{name} - {folder}"),
            None => folder.to_owned(),
        };
        let title = match self.crew.counts().waiting {
            0 => format!("crew - {place}"),
            waiting => format!("crew {waiting}? · {place}"),
        };
        crew_base::text::excerpt(&crew_base::text::sanitise_inline(&title), TITLE_CHARS_MAX)
    }

    /// The session that is shown.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }
}

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 120;

/// How long a widget stays as it is before it gets richer (TERM-11).
const RICHER_MS: u64 = 1_000;
/// How long Ctrl+X waits before its choices are shown (TERM-15).
pub(crate) const LEADER_MS: u64 = 400;

/// Time has passed.
pub fn tick(view: &mut View, now: Time) {
    view.now = now.max(view.now);
    view.settle_level();
    view.live.tick(now);
    if let Some(full) = &mut view.full {
        full.tick(now);
    }
}

/// The terminal has another size.
pub fn resize(view: &mut View, size: Size) {
    view.size = size;
    view.settle_level();
}

/// The command that [`key`] returned was sent under this number.
pub fn sent(view: &mut View, id: CommandId) {
    if let Some(sent) = view.unsent.take() {
        view.sent.insert(id, sent);
    }
}

/// A command that was asked for is about to be sent: a text of it comes back
/// when it is refused.
pub fn sending(view: &mut View, command: &Command) {
    if let Command::PromptOrSteer(_, message) | Command::PromptOrFollowUp(_, message) = command
        && let crew_base::message::Message::User(user) = message
    {
        view.unsent = Some(Sent::Text(user.content.text()));
    }
}

/// The command that [`key`] returned could not be sent; a text of it stands in
/// the editor again.
pub fn not_sent(view: &mut View) {
    if let Some(Sent::Text(text)) = view.unsent.take() {
        view.give_back(&text);
    }
}

/// What is asked of the program since the last call.
pub fn take_requests(view: &mut View) -> Vec<Request> {
    let asks = view.live.take_asks();
    if !asks.is_empty() {
        view.ask(Request::Highlight(asks));
    }
    std::mem::take(&mut view.requests)
}

/// Rows to print, each final (TERM-21); none while a full view is open.
pub fn take_final(view: &mut View) -> Vec<Line> {
    if view.full.is_some() {
        return Vec::new();
    }
    let look = view.look();
    view.live.tick(view.now);
    view.live.take_final(&look)
}

/// The last rows to print: nothing waits for its colours any longer (TERM-27).
pub fn take_last(view: &mut View) -> Vec<Line> {
    view.live.release();
    take_final(view)
}

/// Whether rows wait for print.
pub fn has_final(view: &View) -> bool {
    view.full.is_none() && view.live.has_final()
}

#[cfg(test)]
mod tests;
