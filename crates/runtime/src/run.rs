//! The loop: one task owns the engine and takes one event after the other.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crew_base::entry::Header;
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::limits::{EVENTS_BEFORE_TICK_MAX, SHUTDOWN_GRACE_MS};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::api::{Command, CommandId, Update};
use crew_engine::{Engine, Event};
use crew_model::Model;
use crew_store::session::log::SessionLog;
use crew_tools::{ChunkSink, UserCommandOutcome};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::{Approvals, Question};
use crate::clock;
use crate::gate::{Gate, Lane, Place};
use crate::preparer::Preparer;
use crate::query::{Asker, Query, Reply};
use crate::work::copies::Isolated;
use crate::workspace::{Prepared, Scope, Workspace};

/// What a running host is made of.
pub struct Parts {
    /// The machine.
    pub engine: Engine,
    /// Answers every request.
    pub model: Arc<dyn Model>,
    /// Prepares sessions and finds definitions.
    pub workspace: Arc<Workspace>,
    /// What the tools of the process share.
    pub host: Arc<crew_tools::Host>,
}

/// What a host works with from now on, after files were read again
/// (`host.md` 8.23).
pub struct Renewed {
    /// Answers every request that is not under way.
    pub model: Arc<dyn Model>,
    /// Prepares every session that is opened from now on.
    pub workspace: Arc<Workspace>,
    /// For the same sessions.
    pub settings: crew_engine::api::Settings,
    /// Requests under way at each provider at most (`product.md` P-13).
    pub requests_max: Option<usize>,
}

/// Sends commands; cheap to copy.
#[derive(Clone)]
pub struct Handle {
    inputs: UnboundedSender<Input>,
    commands: Arc<AtomicU64>,
}

impl Handle {
    /// Sends a command; its answer carries the returned number. After the end
    /// of the host nothing happens.
    pub fn send(&self, command: Command) -> CommandId {
        let id = CommandId(self.commands.fetch_add(1, Ordering::Relaxed) + 1);
        self.input(Input::Event(Event::Command(id, command)));
        id
    }

    /// Changes what the host works with. Open sessions go on as they are.
    pub fn renew(&self, renewed: Renewed) {
        self.input(Input::Renew(Box::new(renewed)));
    }

    pub(crate) fn input(&self, input: Input) {
        let _ = self.inputs.send(input);
    }
}

/// What a face gets to see, in order. Nothing is lost: while too much waits the
/// streams of the attached session are not read (`host.md` 7.1.5).
pub struct Updates {
    notices: UnboundedReceiver<Notice>,
    gate: Arc<Gate>,
}

impl Updates {
    /// The next notice; `None` once everything has ended.
    pub async fn next(&mut self) -> Option<Notice> {
        let notice = self.notices.recv().await?;
        self.gate.taken();
        Some(notice)
    }

    /// A notice that waits already, if there is one.
    pub fn waiting(&mut self) -> Option<Notice> {
        let notice = self.notices.try_recv().ok()?;
        self.gate.taken();
        Some(notice)
    }

    /// The place behind the notice that was taken last.
    pub fn reached(&self) -> Place {
        self.gate.reached()
    }

    /// Whether everything that was told before an answer has been taken.
    pub fn has_reached(&self, place: Place) -> bool {
        self.gate.has_reached(place)
    }

    /// From now on slows nothing, however much waits: for a face that puts
    /// what it missed together itself (`terminal.md` TERM-32).
    #[must_use]
    pub fn slowing_nothing(self) -> Updates {
        self.gate.loosen();
        self
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.gate.loosen();
    }
}

/// One thing for a face.
#[expect(clippy::large_enum_variant, reason = "nearly every notice is an update")]
#[derive(Debug)]
pub enum Notice {
    /// From the engine.
    Update(Update),
    /// A problem that stopped nothing; untrusted text.
    Warning(String),
    /// The person is asked whether a tool may run.
    Question(Question),
    /// A question needs no answer any more.
    QuestionOver(u64),
    /// An owner was prepared; precedes the answer to its `Open`.
    Opened {
        /// The session.
        session: SessionId,
        /// First line of its file.
        header: Header,
        /// Where the file is or will be.
        file: Option<PathBuf>,
        /// Its model, if any is usable.
        model: Option<Arc<ModelSpec>>,
        /// Its thinking level.
        thinking: ThinkingLevel,
    },
}

/// What enters the loop.
pub(crate) enum Input {
    Event(Event),
    /// A batch of a stream.
    Streamed {
        event: Event,
        lane: Arc<Lane>,
    },
    /// A session was prepared outside; its log becomes the loop's.
    Prepared {
        session: SessionId,
        opening: Opening,
        result: Box<Result<Prepared, String>>,
    },
    Ask {
        session: SessionId,
        query: Query,
        asker: Asker,
    },
    RunCommand {
        session: SessionId,
        command: String,
        exclude: bool,
        chunks: ChunkSink,
        reply: Reply<UserCommandOutcome>,
    },
    AbortCommand {
        session: SessionId,
    },
    /// Files were read again.
    Renew(Box<Renewed>),
    /// The person answered a question.
    Allowed {
        question: u64,
        is_allowed: bool,
    },
    /// Work beside the loop has something to say to people.
    Warning(String),
    /// A tool or stream is over and need not be cancelled any more.
    Over {
        session: SessionId,
        run: RunId,
    },
}

/// One opening of a session; an id may be opened again after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening(pub(crate) u64);

/// Where a session stands among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A top session.
    Owner,
    /// A child of the crew.
    Crew,
    /// A child of a `task` call of this session.
    Task(SessionId),
}

/// A session as the shell holds it.
pub(crate) struct Live {
    pub(crate) opening: Opening,
    pub(crate) role: Role,
    /// Absent while it is being prepared.
    pub(crate) log: Option<SessionLog>,
    /// For tools and discovery; absent while it is being prepared.
    pub(crate) scope: Option<Arc<Scope>>,
    /// Ends everything of the session.
    pub(crate) cancel: CancellationToken,
    /// Tools and background commands that have not ended.
    pub(crate) work: TaskTracker,
    /// What runs, by run.
    pub(crate) runs: HashMap<RunId, CancellationToken>,
    /// The command of the person that runs, until it is cancelled or over.
    pub(crate) command: Option<CancellationToken>,
    /// The entry that could not be written and of which the engine does not
    /// know yet: nothing behind it starts (`style.md` 3).
    pub(crate) failed: Option<EntryId>,
}

impl Live {
    /// Whether it is anybody's child.
    pub(crate) fn is_child(&self) -> bool {
        match self.role {
            Role::Owner => false,
            Role::Crew | Role::Task(_) => true,
        }
    }

    /// Its file, also while it is only planned.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.log.as_ref().and_then(|log| log.path()).map(PathBuf::from)
    }
}

/// The loop's state.
pub(crate) struct Loop {
    pub(crate) engine: Engine,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) host: Arc<crew_tools::Host>,
    pub(crate) sessions: HashMap<SessionId, Live>,
    pub(crate) openings: u64,
    pub(crate) inputs: UnboundedSender<Input>,
    pub(crate) notices: UnboundedSender<Notice>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) preparer: Preparer,
    pub(crate) approvals: Approvals,
    /// Temporary artifact folders of calls under way (`task.md` ART-9).
    pub(crate) leases: BTreeSet<PathBuf>,
    /// Copies that isolated children work in.
    pub(crate) isolated: Isolated,
    /// Events that come before everything in the channel.
    pub(crate) urgent: VecDeque<Event>,
    pub(crate) tracker: TaskTracker,
    /// Ends everything; also when the loop itself breaks.
    pub(crate) cancel: CancellationToken,
    /// Ends what did not end when it was cancelled.
    pub(crate) abandon: CancellationToken,
    /// A request was started whose task has not had a turn yet.
    pub(crate) has_fresh_request: bool,
    pub(crate) quit_at: Option<Instant>,
    pub(crate) exit: bool,
}

/// Starts the loop on the current async runtime.
pub fn start(parts: Parts) -> (Handle, Updates) {
    let (inputs, receiver) = unbounded_channel();
    let (notices, for_face) = unbounded_channel();
    let gate: Arc<Gate> = Arc::default();
    let handle = Handle { inputs: inputs.clone(), commands: Arc::default() };
    let host = Arc::clone(&parts.host);
    let state = Loop {
        engine: parts.engine,
        model: parts.model,
        workspace: parts.workspace,
        host: parts.host,
        sessions: HashMap::new(),
        openings: 0,
        inputs,
        notices: notices.clone(),
        gate: Arc::clone(&gate),
        preparer: Preparer::default(),
        approvals: Approvals::default(),
        leases: BTreeSet::new(),
        isolated: Isolated::default(),
        urgent: VecDeque::new(),
        tracker: TaskTracker::new(),
        cancel: CancellationToken::new(),
        abandon: CancellationToken::new(),
        has_fresh_request: false,
        quit_at: None,
        exit: false,
    };
    let ends = [state.cancel.clone().drop_guard(), state.abandon.clone().drop_guard()];
    tokio::spawn(async move {
        let ended = tokio::spawn(state.run(receiver)).await;
        drop(ends);
        if ended.is_err() {
            let text = "an internal failure ended the host; its sessions are kept";
            let _ = notices.send(Notice::Warning(text.to_owned()));
            kill_all(host).await;
        }
        // The face hears of the end only now.
        drop(notices);
    });
    (handle, Updates { notices: for_face, gate })
}

/// No command outlives the host (`host.md` 4.3.8).
async fn kill_all(host: Arc<crew_tools::Host>) {
    let (done, is_done) = tokio::sync::oneshot::channel();
    let work = move || {
        host.kill_all();
        let _ = done.send(());
    };
    // A thread of its own: those of the runtime may all be blocked by then.
    if std::thread::Builder::new().name("kill".to_owned()).spawn(work).is_ok() {
        let _ = tokio::time::timeout(KILL_TIME_MAX, is_done).await;
    }
}

impl Loop {
    async fn run(mut self, mut inputs: UnboundedReceiver<Input>) {
        let mut taken = 0;
        while !self.exit {
            if let Some(event) = self.urgent.pop_front() {
                self.step(event);
            } else if taken >= EVENTS_BEFORE_TICK_MAX && self.is_overdue() {
                taken = 0;
                self.step(Event::Tick);
            } else {
                match self.next(&mut inputs).await {
                    Some(input) => {
                        taken += 1;
                        self.take(input);
                    }
                    None => {
                        taken = 0;
                        self.step(Event::Tick);
                    }
                }
            }
            self.start_work().await;
        }
        self.shut_down().await;
    }

    /// The next input; `None` when the engine's deadline comes first.
    async fn next(&self, inputs: &mut UnboundedReceiver<Input>) -> Option<Input> {
        let Some(deadline) = self.engine.deadline() else {
            return inputs.recv().await;
        };
        tokio::select! {
            biased;
            input = inputs.recv() => input,
            () = tokio::time::sleep_until(clock::instant(deadline)) => None,
        }
    }

    /// A flood of inputs holds up no deadline.
    fn is_overdue(&self) -> bool {
        self.engine.deadline().is_some_and(|at| at <= clock::now())
    }

    /// Requests leave before sessions are prepared, and before the next input:
    /// the task of a request gets its turn only when this one waits.
    async fn start_work(&mut self) {
        if std::mem::take(&mut self.has_fresh_request) {
            tokio::task::yield_now().await;
        }
        self.preparer.start(&self.tracker);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Event(event) => {
                if let Event::Command(_, Command::Quit) = event {
                    self.quit_at.get_or_insert_with(Instant::now);
                }
                self.step(event);
            }
            Input::Streamed { event, lane } => {
                lane.taken();
                self.step(event);
            }
            Input::Prepared { session, opening, result } => {
                self.prepared(session, opening, *result);
            }
            Input::Ask { session, query, asker } => self.ask(&session, query, asker),
            Input::RunCommand { session, command, exclude, chunks, reply } => {
                self.run_command(session, command, exclude, chunks, reply);
            }
            Input::AbortCommand { session } => self.abort_command(&session),
            Input::Renew(renewed) => {
                self.model = renewed.model;
                self.workspace = renewed.workspace;
                self.engine.reconfigure(renewed.settings);
                self.engine.bound_requests(renewed.requests_max);
            }
            Input::Allowed { question, is_allowed } => self.answered(question, is_allowed),
            Input::Warning(text) => self.tell(Notice::Warning(text)),
            Input::Over { session, run } => {
                if let Some(live) = self.sessions.get_mut(&session) {
                    live.runs.remove(&run);
                }
            }
        }
    }

    pub(crate) fn step(&mut self, event: Event) {
        self.note_lease(&event);
        if let Event::AppendFailed { session, .. } = &event
            && let Some(live) = self.sessions.get_mut(session)
        {
            live.failed = None;
        }
        for effect in self.engine.step(clock::now(), event) {
            self.perform(effect);
        }
        self.gate.attach(self.engine.attached());
    }

    pub(crate) fn tell(&mut self, notice: Notice) {
        self.gate.told();
        // Without a face there is nobody to tell.
        let _ = self.notices.send(notice);
    }

    /// The second half of a shutdown: everything was cancelled, now wait. What
    /// the engine waited for since the command counts.
    async fn shut_down(mut self) {
        self.cancel.cancel();
        self.tracker.close();
        let grace = Duration::from_millis(SHUTDOWN_GRACE_MS);
        let now = Instant::now();
        let until = (self.quit_at.unwrap_or(now) + grace).max(now + LAST_WAIT);
        let _ = tokio::time::timeout_at(until, self.tracker.wait()).await;
        self.abandon.cancel();
        kill_all(Arc::clone(&self.host)).await;
        // What still blocks a thread now cannot be ended from inside.
        let _ = tokio::time::timeout(LAST_WAIT, self.tracker.wait()).await;
        for live in self.sessions.values_mut() {
            if let Some(log) = &mut live.log {
                let _ = log.sync();
            }
        }
    }
}

/// Time for tasks to end after the engine has used up the grace.
const LAST_WAIT: Duration = Duration::from_millis(250);
/// Longer than a sweep of all commands takes.
const KILL_TIME_MAX: Duration = Duration::from_secs(3);
