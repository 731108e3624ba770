//! The loop: one task owns the engine and takes one event after the other.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crew_base::entry::Header;
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::limits::SHUTDOWN_GRACE_MS;
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::api::{Command, CommandId, Update};
use crew_engine::{Engine, Event};
use crew_model::Model;
use crew_store::session::log::SessionLog;
use crew_tools::{ChunkSink, UserCommandOutcome};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::query::{Answer, Query, Reply};
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

    pub(crate) fn input(&self, input: Input) {
        let _ = self.inputs.send(input);
    }
}

/// What a face gets to see, in order.
pub struct Updates {
    notices: UnboundedReceiver<Notice>,
}

impl Updates {
    /// The next notice; `None` once everything has ended.
    pub async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }
}

/// One thing for a face.
#[derive(Debug)]
pub enum Notice {
    /// From the engine.
    Update(Update),
    /// A problem that stopped nothing; untrusted text.
    Warning(String),
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
    /// A session was prepared outside; its log becomes the loop's.
    Prepared {
        session: SessionId,
        result: Box<Result<Prepared, String>>,
    },
    Ask {
        session: SessionId,
        query: Query,
        reply: Reply<Answer>,
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
    /// A tool or stream is over and need not be cancelled any more.
    Over {
        session: SessionId,
        run: RunId,
    },
}

/// A session as the shell holds it.
pub(crate) struct Live {
    /// Absent while it is being prepared.
    pub(crate) log: Option<SessionLog>,
    /// For tools and discovery; absent while it is being prepared.
    pub(crate) scope: Option<Arc<Scope>>,
    /// Ends everything of the session.
    pub(crate) cancel: CancellationToken,
    /// What runs, by run.
    pub(crate) runs: HashMap<RunId, CancellationToken>,
    /// The command of the person that runs, until it is cancelled or over.
    pub(crate) command: Option<CancellationToken>,
    /// The entry that could not be written and of which the engine does not
    /// know yet: nothing behind it starts (`style.md` 3).
    pub(crate) failed: Option<EntryId>,
}

/// The loop's state.
pub(crate) struct Loop {
    pub(crate) engine: Engine,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) host: Arc<crew_tools::Host>,
    pub(crate) sessions: HashMap<SessionId, Live>,
    pub(crate) inputs: UnboundedSender<Input>,
    pub(crate) notices: UnboundedSender<Notice>,
    /// Events that come before everything in the channel.
    pub(crate) urgent: VecDeque<Event>,
    pub(crate) tracker: TaskTracker,
    pub(crate) exit: bool,
}

/// Starts the loop on the current async runtime.
pub fn start(parts: Parts) -> (Handle, Updates) {
    let (inputs, receiver) = unbounded_channel();
    let (notices, for_face) = unbounded_channel();
    let handle = Handle { inputs: inputs.clone(), commands: Arc::default() };
    let state = Loop {
        engine: parts.engine,
        model: parts.model,
        workspace: parts.workspace,
        host: parts.host,
        sessions: HashMap::new(),
        inputs,
        notices,
        urgent: VecDeque::new(),
        tracker: TaskTracker::new(),
        exit: false,
    };
    tokio::spawn(state.run(receiver));
    (handle, Updates { notices: for_face })
}

impl Loop {
    async fn run(mut self, mut inputs: UnboundedReceiver<Input>) {
        while !self.exit {
            if let Some(event) = self.urgent.pop_front() {
                self.step(event);
                continue;
            }
            let input = match self.engine.deadline() {
                None => inputs.recv().await,
                Some(deadline) => {
                    tokio::select! {
                        biased;
                        input = inputs.recv() => input,
                        () = tokio::time::sleep_until(clock::instant(deadline)) => {
                            Some(Input::Event(Event::Tick))
                        }
                    }
                }
            };
            match input {
                Some(input) => self.take(input),
                None => break,
            }
        }
        self.shut_down().await;
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Event(event) => self.step(event),
            Input::Prepared { session, result } => self.prepared(session, *result),
            Input::Ask { session, query, reply } => self.ask(&session, query, reply),
            Input::RunCommand { session, command, exclude, chunks, reply } => {
                self.run_command(session, command, exclude, chunks, reply);
            }
            Input::AbortCommand { session } => self.abort_command(&session),
            Input::Over { session, run } => {
                if let Some(live) = self.sessions.get_mut(&session) {
                    live.runs.remove(&run);
                }
            }
        }
    }

    pub(crate) fn step(&mut self, event: Event) {
        if let Event::AppendFailed { session, .. } = &event
            && let Some(live) = self.sessions.get_mut(session)
        {
            live.failed = None;
        }
        for effect in self.engine.step(clock::now(), event) {
            self.perform(effect);
        }
    }

    pub(crate) fn tell(&mut self, notice: Notice) {
        // Without a face there is nobody to tell.
        let _ = self.notices.send(notice);
    }

    /// The second half of a shutdown: everything was cancelled, now wait.
    async fn shut_down(mut self) {
        for live in self.sessions.values() {
            live.cancel.cancel();
        }
        self.tracker.close();
        let grace = Duration::from_millis(SHUTDOWN_GRACE_MS);
        let _ = tokio::time::timeout(grace, self.tracker.wait()).await;
        let host = Arc::clone(&self.host);
        let _ = tokio::task::spawn_blocking(move || host.kill_all()).await;
        for live in self.sessions.values_mut() {
            if let Some(log) = &mut live.log {
                let _ = log.sync();
            }
        }
    }
}
