//! What faces may look up in a session, and commands of the person.
//!
//! Answers come from the loop, so they are consistent with every command sent
//! before them.

use std::path::PathBuf;
use std::sync::Arc;

use crew_base::entry::Header;
use crew_base::id::{EntryId, SessionId};
use crew_base::json::Raw;
use crew_base::message::{BashExecutionMessage, Message, SharedMessage, Usage};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::Event;
use crew_engine::api::{Command, CommandId, QueueMode, SubagentView};
use crew_store::error::Error;
use crew_store::session::copy::{fork_point, user_messages};
use crew_store::session::index::Kind;
use crew_store::session::totals::{Totals, custom_data, totals};
use crew_store::session::tree::tree_json;
use crew_tools::{ChunkSink, UserCommand, UserCommandOutcome};
use tokio::sync::oneshot;

use crate::run::{Handle, Input, Live, Loop};

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
    /// The entry the next one follows.
    pub leaf: Option<EntryId>,
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

pub(crate) type Reply<T> = oneshot::Sender<Result<T, QueryError>>;

impl Handle {
    /// Asks about an open session.
    pub async fn ask(&self, session: &SessionId, query: Query) -> Result<Answer, QueryError> {
        let (reply, answer) = oneshot::channel();
        self.input(Input::Ask { session: session.clone(), query, reply });
        answer.await.map_err(|_| QueryError::Ended)?
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

impl Loop {
    pub(crate) fn ask(&mut self, session: &SessionId, query: Query, reply: Reply<Answer>) {
        // A face that no longer waits needs no answer.
        let _ = reply.send(self.look_up(session, query));
    }

    fn look_up(&mut self, id: &SessionId, query: Query) -> Result<Answer, QueryError> {
        if matches!(query, Query::ClearQueue) {
            let (steering, follow_up, effects) = self.engine.clear_queue(id);
            effects.into_iter().for_each(|effect| self.perform(effect));
            return Ok(Answer::Cleared { steering, follow_up });
        }
        let live = self.sessions.get(id).ok_or(QueryError::UnknownSession)?;
        let log = live.log.as_ref().ok_or(QueryError::UnknownSession)?;
        let agent = self.engine.agent(id).ok_or(QueryError::UnknownSession)?;
        let leaf = agent.record().leaf().cloned();
        Ok(match query {
            Query::State => Answer::State(Box::new(self.state(id, live)?)),
            Query::Messages => Answer::Messages(agent.record().messages().cloned().collect()),
            Query::Entries { since } => Answer::Entries { entries: entries(live, since)?, leaf },
            Query::Tree => {
                let tree = Raw::parse(&tree_json(log)?).unwrap_or_else(Raw::empty_object);
                Answer::Tree { tree, leaf }
            }
            Query::Totals => {
                let crew = crew_usage(live, &self.engine.crew_usage(id))?;
                Answer::Totals(Box::new(SessionTotals { own: totals(log)?, crew }))
            }
            Query::ForkMessages => Answer::ForkMessages(user_messages(log)?),
            Query::ForkPoint(entry) => {
                let (leaf, text) = fork_point(log, &entry)?;
                Answer::ForkPoint { leaf, text }
            }
            Query::Subagents => Answer::Subagents(self.engine.subagents(id)),
            Query::ClearQueue => return Err(QueryError::UnknownSession),
        })
    }

    fn state(&self, id: &SessionId, live: &Live) -> Result<State, QueryError> {
        let log = live.log.as_ref().ok_or(QueryError::UnknownSession)?;
        let agent = self.engine.agent(id).ok_or(QueryError::UnknownSession)?;
        let (steering, follow_up) = agent.queue_modes();
        let (waiting, later) = agent.queued_texts();
        Ok(State {
            header: log.header().clone(),
            file: log.path().map(PathBuf::from),
            is_saved: log.is_saved(),
            name: log.index().name().map(str::to_owned),
            model: agent.model().cloned(),
            thinking: agent.thinking(),
            is_running: !agent.is_idle(),
            is_compacting: agent.is_compacting(),
            context_tokens: agent.context_tokens(),
            steering,
            follow_up,
            messages: agent.record().messages().count(),
            pending: waiting.len() + later.len(),
            leaf: agent.record().leaf().cloned(),
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

fn entries(live: &Live, since: Option<EntryId>) -> Result<Vec<Raw>, QueryError> {
    let Some(log) = &live.log else { return Err(QueryError::UnknownSession) };
    let from = match since {
        None => 0,
        Some(id) => match log.index().position(&id) {
            Some(at) => at + 1,
            None => return Err(QueryError::UnknownEntry(id)),
        },
    };
    let mut entries = Vec::new();
    log.each_line(from, |_, line| entries.extend(Raw::parse(line)))?;
    Ok(entries)
}

/// Usage of all children of a session: the newest record of each in its file,
/// and the live figures of those still open.
fn crew_usage(live: &Live, open: &[(String, Usage)]) -> Result<Usage, QueryError> {
    let Some(log) = &live.log else { return Ok(Usage::default()) };
    let mut newest: Vec<(String, Usage)> = Vec::new();
    let mut set = |id: String, usage: Usage| match newest.iter_mut().find(|(known, _)| *known == id)
    {
        Some((_, known)) => *known = usage,
        None => newest.push((id, usage)),
    };
    let has_any = log.index().entries().iter().any(|entry| entry.kind == Kind::Custom);
    if has_any {
        for (_, data) in custom_data(log, "crew.usage")? {
            let value = data.value();
            let id = value["subagentId"].as_str().unwrap_or_default().to_owned();
            let usage = serde_json::from_value(value["usage"].clone()).unwrap_or_default();
            set(id, usage);
        }
    }
    for (id, usage) in open {
        set(id.clone(), usage.clone());
    }
    let mut sum = Usage::default();
    newest.iter().for_each(|(_, usage)| sum.add(usage));
    Ok(sum)
}
