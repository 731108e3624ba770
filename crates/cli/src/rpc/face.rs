//! The loop of the face: lines, notices and ends of longer work come in,
//! commands and lines of output go out, each in its order.
//!
//! Waits for nothing but answers that come at once. What it knows of the run
//! it learns from the notices, in their order, so that a response stands where
//! it belongs among the events. Read `rpc::act` for what commands do.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crew_base::id::{Ids, SessionId};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::api::{
    Command as EngineCommand, CommandId, CompactionReason, Refusal, SessionUpdate, Update,
};
use crew_model::select::Scoped;
use crew_runtime::{Handle, Notice, Updates};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use super::act::{Modes, compacted};
use super::dialog;
use super::lines::{Line, Lines};
use super::look::Seen;
use super::moves::Move;
use super::output::{Outbox, Writer};
use super::request::{self, Refused};
use super::response::{Reply, Ticket, json};
use super::shell::{Shell, ShellEnd};
use super::wire::{self, MoveWire, Wire};
use crate::args::Options;
use crate::config::Config;
use crate::drive::signals::Signals;
use crate::error::{Error, refusal};
use crate::output;

/// How long the end of the input waits for a session that is being opened, or
/// for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last lines may take to be read by the client.
const LAST_LINES: Duration = Duration::from_millis(500);
/// Notices shown before the answer to a question, at most: more than the
/// runtime lets wait.
const CATCH_UP_MAX: usize = 2048;

/// The face of one client.
pub(super) struct Face {
    pub(super) handle: Handle,
    pub(super) updates: Updates,
    pub(super) config: Config,
    pub(super) options: Options,
    /// Models to cycle through.
    pub(super) scope: Vec<Scoped>,
    /// For new sessions.
    pub(super) ids: Ids,
    pub(super) out: Outbox,
    /// The session shown.
    pub(super) session: SessionId,
    /// Its working directory.
    pub(super) cwd: PathBuf,
    pub(super) run: Run,
    pub(super) modes: Modes,
    pub(super) waiting: BTreeMap<CommandId, Waiting>,
    /// Aborts that wait for the run to settle.
    pub(super) aborting: Vec<Ticket>,
    /// Compactions that were asked for, in order.
    pub(super) compactions: VecDeque<Ticket>,
    /// The session that takes the place of this one.
    pub(super) moving: Option<Move>,
    /// Where the newest answer stands among the notices.
    pub(super) seen: Seen,
    pub(super) shells: Vec<Shell>,
    pub(super) shell_news: Arc<Notify>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    /// The session that was prepared last.
    pub(super) prepared: Prepared,
    wire: Wire,
    state: State,
    failure: Option<Error>,
}

/// What is known of a session that was prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Its model, if any is usable.
    pub(super) model: Option<Arc<ModelSpec>>,
    /// Its thinking level.
    pub(super) thinking: ThinkingLevel,
}

/// Work beside the loop that has ended.
pub(super) enum Done {
    /// A command of the person.
    Shell(ShellEnd),
    /// Anything else; the response.
    Reply(Ticket, Reply),
}

/// What the notices so far say about the session shown.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// From the acceptance of a prompt until it has settled.
    pub(super) running: bool,
    /// A compaction is under way.
    pub(super) compacting: bool,
    /// A branch that is left is being summarised.
    pub(super) leaving: bool,
    /// How the last move in the tree ended.
    pub(super) moved: MoveWire,
    /// Runs that settled by an abort.
    pub(super) aborted: u64,
}

impl Run {
    /// Whether a prompt would be refused.
    pub(super) fn is_busy(&self) -> bool {
        self.running || self.compacting || self.leaving
    }
}

/// What follows from the answer to a command.
pub(super) enum Waiting {
    /// The first session is there, or is not.
    Start,
    /// A prompt was taken.
    Prompt(Ticket),
    /// A message was queued.
    Queued(Ticket),
    /// A run is being stopped; how many were before.
    Abort(Ticket, u64),
    /// A compaction was asked for; its end is the response.
    Compaction(Ticket),
    /// A move in the tree was asked for; its end is the response.
    Navigate(Ticket),
    /// The response is this data.
    Data(Ticket, Option<String>),
    /// What runs is being stopped for a move.
    Settle,
    /// The move goes on.
    Move,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    /// With this exit code.
    Ending(u8),
}

/// What the face works on, made by `rpc`.
pub(super) struct Start {
    pub(super) handle: Handle,
    pub(super) updates: Updates,
    pub(super) config: Config,
    pub(super) options: Options,
    pub(super) scope: Vec<Scoped>,
    pub(super) ids: Ids,
    pub(super) session: SessionId,
    pub(super) source: crew_engine::Source,
    pub(super) signals: Signals,
    pub(super) lines: Lines,
    pub(super) writer: Writer,
}

/// Serves the client until the input ends or a signal comes; yields the exit
/// code (`host.md` 7.1.4).
pub(super) async fn serve(start: Start) -> Result<u8, Error> {
    let (done, mut all_done) = mpsc::unbounded_channel();
    let Start { session, source, mut signals, mut lines, writer, .. } = start;
    let mut face = Face {
        cwd: start.config.place.cwd.clone(),
        modes: Modes::of(&start.config.settings),
        waiting: BTreeMap::new(),
        handle: start.handle,
        updates: start.updates,
        config: start.config,
        options: start.options,
        scope: start.scope,
        ids: start.ids,
        session,
        done,
        out: Outbox::default(),
        run: Run::default(),
        aborting: Vec::new(),
        compactions: VecDeque::new(),
        moving: None,
        seen: Seen::default(),
        shells: Vec::new(),
        shell_news: Arc::default(),
        wire: Wire::default(),
        prepared: Prepared { model: None, thinking: ThinkingLevel::Off },
        state: State::Opening,
        failure: None,
    };
    let open = EngineCommand::Open { session: face.session.clone(), source, adopts: None };
    face.send(open, Waiting::Start);
    let shell_news = Arc::clone(&face.shell_news);
    let (mut input_ended, mut closed) = (None, false);
    loop {
        let has_room = closed || face.is_ending() || !face.out.is_full();
        let patience = input_ended.filter(|_| face.is_held_up());
        tokio::select! {
            Some(stop) = signals.next() => face.end(stop.exit_code()),
            permit = writer.room(), if !closed && !face.out.is_empty() => match permit {
                Some(permit) => face.write(permit),
                None => {
                    closed = true;
                    face.output_closed();
                }
            },
            notice = face.updates.next(), if has_room => match notice {
                Some(notice) => face.notice(notice),
                None => break,
            },
            Some(done) = all_done.recv() => face.finished(done),
            () = shell_news.notified(), if has_room => face.show_shells(),
            line = lines.lines.recv(), if face.takes_lines() => match line {
                Some(line) => face.line(line).await,
                None => face.end(0),
            },
            _ = &mut lines.ended, if input_ended.is_none() => {
                input_ended = Some(Instant::now() + PATIENCE);
            }
            () = sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                face.end(0);
            }
        }
        if closed {
            face.out = Outbox::default();
        }
    }
    face.finish(writer).await
}

impl Face {
    /// Ends everything in order; a signal's code counts more than the end of
    /// the input.
    fn end(&mut self, code: u8) {
        if let State::Ending(before) = self.state {
            self.state = State::Ending(before.max(code));
            return;
        }
        self.state = State::Ending(code);
        self.shells.iter().for_each(Shell::release);
        self.handle.send(EngineCommand::Quit);
    }

    fn write(&mut self, room: mpsc::Permit<'_, String>) {
        if let Some(line) = self.out.take() {
            room.send(line);
        }
    }

    /// The client is gone; at an end of another kind nobody misses the rest.
    fn output_closed(&mut self) {
        if !self.is_ending() {
            self.end(1);
        }
    }

    fn finished(&mut self, done: Done) {
        match done {
            Done::Shell(end) => self.shell_ended(end),
            Done::Reply(ticket, reply) => self.reply(&ticket, reply),
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.state, State::Ending(_))
    }

    /// Whether the last commands wait for a session or for a client that does
    /// not read.
    fn is_held_up(&self) -> bool {
        !self.is_ending() && !self.takes_lines()
    }

    fn takes_lines(&self) -> bool {
        self.state == State::Open && self.moving.is_none() && !self.out.is_overfull()
    }

    /// Answers who still waits, and lets the client read the last lines.
    async fn finish(mut self, writer: Writer) -> Result<u8, Error> {
        let late = std::mem::take(&mut self.waiting).into_values().filter_map(Waiting::ticket);
        let late: Vec<Ticket> = late
            .chain(std::mem::take(&mut self.aborting))
            .chain(self.moving.take().and_then(Move::into_ticket))
            .chain(std::mem::take(&mut self.compactions))
            .chain(std::mem::take(&mut self.shells).into_iter().map(Shell::into_ticket))
            .collect();
        for ticket in late {
            self.reply(&ticket, Err(refusal(&Refusal::Ending)));
        }
        let last = async {
            while let Some(line) = self.out.take() {
                let Some(permit) = writer.room().await else { break };
                permit.send(line);
            }
            writer.finish().await
        };
        // A client that reads nothing does not keep the process alive.
        let written = timeout(LAST_LINES, last).await.unwrap_or(Ok(()));
        match (self.failure, self.state) {
            (Some(error), _) => Err(error),
            (None, State::Ending(0)) => Ok(0),
            (None, State::Ending(code)) => written.map(|()| code).map_err(Error::Output),
            // The host ended by itself and has said why.
            (None, State::Opening | State::Open) => Ok(1),
        }
    }

    async fn line(&mut self, line: Line) {
        let request = match line {
            Line::Text(text) => request::parse(&text),
            Line::Bad(reason) => Err(request::unreadable(None, &reason)),
        };
        match request {
            Ok(request) => self.act(request).await,
            Err(Refused { ticket, error }) => self.reply(&ticket, Err(error)),
        }
    }

    /// Puts a response among the events.
    pub(super) fn reply(&mut self, ticket: &Ticket, reply: Reply) {
        self.out.put(ticket.line(&reply));
    }

    /// Sends a command whose answer leads on.
    pub(super) fn send(&mut self, command: EngineCommand, waiting: Waiting) {
        let id = self.handle.send(command);
        self.waiting.insert(id, waiting);
    }

    /// Shows what happened before an answer that has just come, unless the
    /// client does not read.
    pub(super) fn catch_up(&mut self) {
        for _ in 0..CATCH_UP_MAX {
            if self.out.is_full() || self.updates.has_reached(self.seen.get()) {
                return;
            }
            let Some(notice) = self.updates.waiting() else { return };
            self.notice(notice);
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Warning(text) => output::warning(&text),
            Notice::Question(question) => self.out.put(dialog::line(&question)),
            // There is no word for it; a late answer is ignored.
            Notice::QuestionOver(_) => {}
            Notice::Opened { header, model, thinking, .. } => {
                self.prepared = Prepared { model, thinking };
                self.cwd = PathBuf::from(header.cwd);
            }
            Notice::Update(Update::Answered { command, result }) => self.answered(command, result),
            Notice::Update(Update::Session { update, .. }) => self.session_update(&update),
            Notice::Update(Update::Crew(update)) => self.out.put(wire::crew(&update)),
            Notice::Update(Update::Task(update)) => self.out.put(format!("{}\n", update.json())),
            Notice::Update(Update::RunFailed { session, error }) => {
                output::warning(&error);
                self.out.put(run_failed(&session, &error));
            }
            Notice::Update(Update::AtRest(_)) => {}
        }
    }

    fn session_update(&mut self, update: &SessionUpdate) {
        if let Some(line) = self.wire.session(update) {
            self.out.put(line);
        }
        self.track(update);
    }

    /// Follows the state of the run.
    fn track(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentStart => self.run.running = true,
            SessionUpdate::AgentSettled { aborted } => {
                self.run.running = false;
                self.run.aborted += u64::from(*aborted);
                self.settled();
            }
            SessionUpdate::CompactionStart { .. } => self.run.compacting = true,
            SessionUpdate::CompactionEnd { reason, result, aborted, error, .. } => {
                self.run.compacting = false;
                if *reason == CompactionReason::Manual
                    && let Some(ticket) = self.compactions.pop_front()
                {
                    let reply = compacted(result.as_ref(), *aborted, error.as_deref());
                    self.reply(&ticket, reply);
                }
                if !self.run.running {
                    self.settled();
                }
            }
            SessionUpdate::BranchSummaryStart => self.run.leaving = true,
            SessionUpdate::MoveEnd(end) => {
                self.run.leaving = false;
                self.run.moved = MoveWire::from(end);
                self.settled();
            }
            SessionUpdate::TurnStart
            | SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::MessageEnd(_)
            | SessionUpdate::ToolStart { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. }
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::AgentEnd { .. }
            | SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::RetryStart { .. }
            | SessionUpdate::RetryEnd { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_)
            | SessionUpdate::EntryAppended(_) => {}
        }
    }

    /// Nothing runs any more, or another run has begun after it.
    pub(super) fn settled(&mut self) {
        for ticket in std::mem::take(&mut self.aborting) {
            self.reply(&ticket, Ok(None));
        }
        self.go_on_moving();
    }

    fn answered(&mut self, command: CommandId, result: Result<(), Refusal>) {
        let Some(waiting) = self.waiting.remove(&command) else { return };
        match waiting {
            Waiting::Start => self.started(result),
            Waiting::Move => self.moved(result),
            Waiting::Settle => self.go_on_moving(),
            Waiting::Compaction(ticket) => {
                if let Err(refused) = result {
                    self.compactions.retain(|waiting| *waiting != ticket);
                    self.reply(&ticket, Err(self.refused(&refused)));
                }
            }
            Waiting::Prompt(ticket) => {
                let disposition = if self.run.is_busy() { "queued" } else { "started" };
                self.run.running |= result.is_ok() && !self.run.is_busy();
                let reply = result.map(|()| Some(disposed(disposition)));
                self.reply(&ticket, reply.map_err(|refused| self.refused(&refused)));
            }
            Waiting::Queued(ticket) => {
                let reply = result.map(|()| Some(disposed("queued")));
                self.reply(&ticket, reply.map_err(|refused| self.refused(&refused)));
            }
            Waiting::Navigate(ticket) => {
                let reply = match result {
                    Ok(()) | Err(Refusal::MoveCancelled) => Ok(Some(json(&self.run.moved))),
                    Err(refused) => Err(self.refused(&refused)),
                };
                self.reply(&ticket, reply);
            }
            Waiting::Data(ticket, data) => {
                let reply = result.map(|()| data).map_err(|refused| self.refused(&refused));
                self.reply(&ticket, reply);
            }
            Waiting::Abort(ticket, before) => match result {
                Ok(()) if self.run.is_busy() && self.run.aborted == before => {
                    self.aborting.push(ticket);
                }
                Ok(()) => self.reply(&ticket, Ok(None)),
                Err(refused) => self.reply(&ticket, Err(refusal(&refused))),
            },
        }
    }

    /// A refusal in the words of the protocol (`host.md` 7.3.3).
    fn refused(&self, refused: &Refusal) -> String {
        match refused {
            Refusal::Busy if self.run.compacting => {
                "The session is being compacted; try again when it has ended".to_owned()
            }
            Refusal::Busy if self.run.leaving => {
                "A branch of the session is being summarised; try again when it has ended"
                    .to_owned()
            }
            Refusal::Busy => "The session is already processing a prompt; give \
                              `streamingBehavior` to queue this one"
                .to_owned(),
            Refusal::UnknownSession
            | Refusal::NotAttached
            | Refusal::NoModel
            | Refusal::OpenFailed(_)
            | Refusal::MoveCancelled
            | Refusal::MoveFailed(_)
            | Refusal::Subagent(_)
            | Refusal::Ending => refusal(refused),
        }
    }

    fn started(&mut self, result: Result<(), Refusal>) {
        let failure = match result {
            Ok(()) if self.prepared.model.is_some() => {
                if self.state == State::Opening {
                    self.state = State::Open;
                }
                return;
            }
            // host.md 6.1.9
            Ok(()) => Error::Refused(Refusal::NoModel),
            Err(Refusal::OpenFailed(reason)) => Error::Open(reason),
            Err(refused) => Error::Refused(refused),
        };
        if !self.is_ending() {
            self.failure = Some(failure);
            self.end(1);
        }
    }
}

impl Waiting {
    fn ticket(self) -> Option<Ticket> {
        match self {
            // The end of a compaction is waited for elsewhere.
            Waiting::Start | Waiting::Move | Waiting::Settle | Waiting::Compaction(_) => None,
            Waiting::Prompt(ticket)
            | Waiting::Queued(ticket)
            | Waiting::Navigate(ticket)
            | Waiting::Abort(ticket, _)
            | Waiting::Data(ticket, _) => Some(ticket),
        }
    }
}

fn disposed(word: &str) -> String {
    format!("{{\"disposition\":\"{word}\"}}")
}

/// Tells that a run ended because the host failed; the conversation says so
/// too.
fn run_failed(session: &SessionId, error: &str) -> String {
    format!(
        "{{\"type\":\"crew_run_failed\",\"sessionId\":{},\"error\":{}}}\n",
        json(&session.as_str()),
        json(&error)
    )
}
