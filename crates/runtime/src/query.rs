//! What faces may look up in a session, and commands of the person.
//!
//! Answers come from the loop, so they are consistent with every command sent
//! before them. What stands in a file is read beside it: see `reading`.

use std::path::PathBuf;
use std::sync::Arc;

use crew_base::entry::Header;
use crew_base::id::{EntryId, SessionId};
use crew_base::json::Raw;
use crew_base::message::{BashExecutionMessage, Message, SharedMessage, Usage};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::Event;
use crew_engine::api::{Command, CommandId, QueueMode, SubagentView, Wait};
use crew_store::error::Error;
use crew_store::session::log::SessionLog;
use crew_store::session::snapshot::Snapshot;
use crew_store::session::totals::Totals;
use crew_tools::{ChunkSink, UserCommand, UserCommandOutcome};
use tokio::sync::oneshot;

use crate::gate::Place;
use crate::reading::Reading;
use crate::run::{Handle, Input, Loop};

/// A question about an open session.
#[derive(Clone, Debug)]
pub enum Query {
    /// What it is and does.
    State,
    /// The projected context (`host.md` 2.6.4).
    Messages,
    /// Raw entries behind one, or all (`host.md` 7.3 `get_entries`).
    Entries {
        /// The entry before the first wanted one.
        since: Option<EntryId>,
    },
    /// The tree as JSON (`host.md` 2.8.1).
    Tree,
    /// Counts, tokens and cost (`host.md` 7.3.2).
    Totals,
    /// User messages that can be forked from.
    ForkMessages,
    /// Where a fork from a user message ends.
    ForkPoint(EntryId),
    /// Whether an entry exists.
    Known(EntryId),
    /// Its open subagents.
    Subagents,
    /// Takes the typed messages that wait out of the queue.
    ClearQueue,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// To `State`.
    State(Box<State>),
    /// To `Messages`.
    Messages(Vec<SharedMessage>),
    /// To `Entries`.
    Entries {
        /// Lines as stored.
        entries: Vec<Raw>,
        /// The entry the next one follows.
        leaf: Option<EntryId>,
    },
    /// To `Tree`.
    Tree {
        /// A JSON list of nodes.
        tree: Raw,
        /// The entry the next one follows.
        leaf: Option<EntryId>,
    },
    /// To `Totals`.
    Totals(Box<SessionTotals>),
    /// To `ForkMessages`.
    ForkMessages(Vec<(EntryId, String)>),
    /// To `ForkPoint`.
    ForkPoint {
        /// The last entry that is kept.
        leaf: Option<EntryId>,
        /// Text of the message, for the editor.
        text: String,
    },
    /// To `Known`: it exists.
    Known,
    /// To `Subagents`.
    Subagents(Vec<SubagentView>),
    /// To `ClearQueue`.
    Cleared {
        /// Texts in order.
        steering: Vec<String>,
        /// Texts in order.
        follow_up: Vec<String>,
    },
}

/// What a session is and does (`host.md` 7.3.1).
#[derive(Clone, Debug)]
pub struct State {
    /// First line of its file.
    pub header: Header,
    /// Planned or existing file.
    pub file: Option<PathBuf>,
    /// Whether the file exists.
    pub is_saved: bool,
    /// Its name.
    pub name: Option<String>,
    /// Its model.
    pub model: Option<Arc<ModelSpec>>,
    /// Its thinking level.
    pub thinking: ThinkingLevel,
    /// Whether a run is going on.
    pub is_running: bool,
    /// Whether the context is being compacted, within a run or by itself.
    pub is_compacting: bool,
    /// Tokens of the context; unknown after a compaction until an answer tells
    /// (`host.md` 7.3.2).
    pub context_tokens: Option<u64>,
    /// Of steering messages.
    pub steering: QueueMode,
    /// Of follow-ups.
    pub follow_up: QueueMode,
    /// Messages of the context.
    pub messages: usize,
    /// Typed messages that wait.
    pub pending: usize,
    /// Results of its subagents that wait for the next request.
    pub results_waiting: usize,
    /// What it waits for, if it is not at work.
    pub waits: Option<Wait>,
    /// The entry the next one follows.
    pub leaf: Option<EntryId>,
    /// Whether that is the last one of the file: not after a move in the tree.
    pub is_at_end: bool,
}

/// What a session holds and has cost.
#[derive(Clone, Debug, Default)]
pub struct SessionTotals {
    /// Counts, and the session's own tokens and cost.
    pub own: Totals,
    /// Tokens and cost of its children, also of those that are gone
    /// (`product.md` P-12, P-14i).
    pub crew: Usage,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// No such session is open.
    #[error("no such session is open")]
    UnknownSession,
    /// There is no such entry.
    #[error("entry not found: {0}")]
    UnknownEntry(EntryId),
    /// A command of the person runs already.
    #[error("a command is running already")]
    Busy,
    /// The command could not be run.
    #[error("{0}")]
    Tool(String),
    /// The file could not be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The host has ended.
    #[error("the host has ended")]
    Ended,
}

/// Where the answer to a question goes.
pub(crate) struct Asker(oneshot::Sender<(Result<Answer, QueryError>, Place)>);

/// Where the outcome of a command of the person goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, QueryError>>;

/// An answer, or what has to be read for it.
enum Looked {
    Now(Result<Answer, QueryError>),
    Later(Snapshot, Reading),
}

impl Handle {
    /// Asks about an open session.
    pub async fn ask(&self, session: &SessionId, query: Query) -> Result<Answer, QueryError> {
        self.ask_in_place(session, query).await.0
    }

    /// As [`Handle::ask`], with the place of the answer among the notices: what
    /// was told before the moment that the answer tells of comes before it.
    pub async fn ask_in_place(
        &self,
        session: &SessionId,
        query: Query,
    ) -> (Result<Answer, QueryError>, Place) {
        let (reply, answer) = oneshot::channel();
        self.input(Input::Ask { session: session.clone(), query, asker: Asker(reply) });
        answer.await.unwrap_or((Err(QueryError::Ended), Place::default()))
    }

    /// Runs a shell command of the person (`host.md` 4.3.9); its message enters
    /// the session when no run is going on (3.4.8).
    pub async fn run_command(
        &self,
        session: &SessionId,
        command: String,
        exclude: bool,
        chunks: ChunkSink,
    ) -> Result<UserCommandOutcome, QueryError> {
        let (reply, outcome) = oneshot::channel();
        let session = session.clone();
        self.input(Input::RunCommand { session, command, exclude, chunks, reply });
        outcome.await.map_err(|_| QueryError::Ended)?
    }

    /// Stops the command of the person, if one runs.
    pub fn abort_command(&self, session: &SessionId) {
        self.input(Input::AbortCommand { session: session.clone() });
    }
}

impl Asker {
    /// A face that no longer waits needs no answer.
    fn tell(self, answer: Result<Answer, QueryError>, place: Place) {
        let _ = self.0.send((answer, place));
    }
}

impl Loop {
    pub(crate) fn ask(&mut self, session: &SessionId, query: Query, asker: Asker) {
        let place = self.gate.place();
        match self.look_up(session, query) {
            Looked::Now(answer) => asker.tell(answer, place),
            Looked::Later(snapshot, reading) => {
                self.tracker.spawn_blocking(move || asker.tell(reading.read(&snapshot), place));
            }
        }
    }

    /// What stands in the file is read beside the loop, as of this moment.
    fn look_up(&mut self, id: &SessionId, query: Query) -> Looked {
        if matches!(query, Query::ClearQueue) {
            let (steering, follow_up, effects) = self.engine.clear_queue(id);
            effects.into_iter().for_each(|effect| self.perform(effect));
            return Looked::Now(Ok(Answer::Cleared { steering, follow_up }));
        }
        let live = self.sessions.get(id);
        let (Some(live), Some(agent)) = (live, self.engine.agent(id)) else {
            return Looked::Now(Err(QueryError::UnknownSession));
        };
        let Some(log) = &live.log else {
            return Looked::Now(Err(QueryError::UnknownSession));
        };
        let leaf = || agent.record().leaf().cloned();
        let reading = match query {
            Query::State => {
                let state = self.state(id, log).ok_or(QueryError::UnknownSession);
                return Looked::Now(state.map(|state| Answer::State(Box::new(state))));
            }
            Query::Messages => {
                let messages = agent.record().messages().cloned().collect();
                return Looked::Now(Ok(Answer::Messages(messages)));
            }
            Query::Subagents => {
                let subagents = self.engine.subagents(id);
                return Looked::Now(Ok(Answer::Subagents(subagents)));
            }
            Query::Known(entry) => {
                let is_known = log.index().position(&entry).is_some();
                let unknown = QueryError::UnknownEntry(entry);
                return Looked::Now(if is_known { Ok(Answer::Known) } else { Err(unknown) });
            }
            Query::ClearQueue => {
                return Looked::Now(Err(QueryError::UnknownSession));
            }
            Query::Entries { since } => Reading::Entries { since, leaf: leaf() },
            Query::Tree => Reading::Tree { leaf: leaf() },
            Query::Totals => Reading::Totals { open: self.engine.crew_usage(id) },
            Query::ForkMessages => Reading::ForkMessages,
            Query::ForkPoint(entry) => Reading::ForkPoint(entry),
        };
        Looked::Later(log.snapshot(), reading)
    }

    fn state(&self, id: &SessionId, log: &SessionLog) -> Option<State> {
        let agent = self.engine.agent(id)?;
        let (steering, follow_up) = agent.queue_modes();
        let (waiting, later) = agent.queued_texts();
        Some(State {
            header: log.header().clone(),
            file: log.path().map(PathBuf::from),
            is_saved: log.is_saved(),
            name: log.index().name().map(str::to_owned),
            model: agent.model().cloned(),
            thinking: agent.thinking(),
            is_running: !agent.is_idle() && !agent.is_moving(),
            is_compacting: agent.is_compacting(),
            context_tokens: agent.context_tokens(),
            steering,
            follow_up,
            messages: agent.record().messages().count(),
            pending: waiting.len() + later.len(),
            results_waiting: self.engine.results_waiting(id),
            waits: self.engine.wait_of(id),
            leaf: agent.record().leaf().cloned(),
            is_at_end: agent.record().leaf() == log.last(),
        })
    }

    pub(crate) fn run_command(
        &mut self,
        session: SessionId,
        command: String,
        exclude: bool,
        chunks: ChunkSink,
        reply: Reply<UserCommandOutcome>,
    ) {
        let Some(live) = self.sessions.get_mut(&session) else {
            let _ = reply.send(Err(QueryError::UnknownSession));
            return;
        };
        let Some(scope) = live.scope.clone() else {
            let _ = reply.send(Err(QueryError::UnknownSession));
            return;
        };
        if live.command.as_ref().is_some_and(|running| !running.is_cancelled()) {
            let _ = reply.send(Err(QueryError::Busy));
            return;
        }
        let cancel = live.cancel.child_token();
        live.command = Some(cancel.clone());
        let user = UserCommand {
            session: session.clone(),
            cwd: scope.cwd.clone(),
            command: command.clone(),
            shell: self.workspace.shell(),
            cancel: cancel.clone(),
        };
        let (host, inputs) = (Arc::clone(&self.host), self.inputs.clone());
        self.tracker.spawn(async move {
            let result = host.run_user_command(user, chunks).await;
            cancel.cancel();
            if let Ok(outcome) = &result {
                let message = executed(command, outcome, exclude);
                let command = Command::Inject(session, message);
                // The face did not number this command and waits for no answer.
                let _ = inputs.send(Input::Event(Event::Command(CommandId(0), command)));
            }
            let result = result.map_err(|error| QueryError::Tool(error.to_string()));
            let _ = reply.send(result);
        });
    }

    pub(crate) fn abort_command(&mut self, session: &SessionId) {
        if let Some(live) = self.sessions.get(session)
            && let Some(command) = &live.command
        {
            command.cancel();
        }
    }
}

fn executed(command: String, outcome: &UserCommandOutcome, exclude: bool) -> Message {
    Message::BashExecution(BashExecutionMessage {
        command,
        output: outcome.output.clone(),
        exit_code: outcome.exit_code,
        cancelled: outcome.cancelled,
        truncated: outcome.truncated,
        full_output_path: outcome.full_output_path.clone(),
        exclude_from_context: exclude.then_some(true),
        timestamp: crate::clock::now(),
    })
}
