//! Where a run stands and what it does next. Sends commands; waits for nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crew_base::id::SessionId;
use crew_base::limits::SHUTDOWN_GRACE_MS;
use crew_base::message::Message;
use crew_engine::Source;
use crew_engine::api::{AbortOrigin, Command, CommandId, Refusal, SessionUpdate, Update};
use crew_runtime::{Handle, Notice};
use tokio::time::Instant;

use super::roster::Roster;
use super::{Cut, CutCause, Failure, Outcome, Plan};

/// The state of a run.
pub(super) struct Course {
    pub(super) outcome: Outcome,
    handle: Handle,
    session: SessionId,
    phase: Phase,
    prompts: VecDeque<Message>,
    crew_wait: Option<Duration>,
    roster: Roster,
    owner_runs: bool,
    /// Retries made since the last good answer.
    retries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The session is being opened.
    Opening(CommandId),
    /// A prompt was sent.
    Asking(CommandId),
    /// A prompt runs, or a result that came before the next prompt could.
    Running,
    /// The last prompt has settled; the crew is awaited, maybe until a moment.
    Waiting(Option<Instant>),
    /// What runs was stopped; its end is awaited until a moment.
    Stopping(Instant),
    /// Everything is being closed.
    Leaving,
}

/// A wait that never ends in practice and still fits the clock.
const FAR: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Course {
    /// Asks for the session.
    pub(super) fn open(handle: Handle, session: SessionId, source: Source, plan: Plan) -> Course {
        let open = Command::Open { session: session.clone(), source, adopts: None };
        let phase = Phase::Opening(handle.send(open));
        Course {
            outcome: Outcome::default(),
            handle,
            session,
            phase,
            prompts: plan.prompts.into(),
            crew_wait: plan.crew_wait,
            roster: Roster::default(),
            owner_runs: false,
            retries: 0,
        }
    }

    /// When to call [`Course::expire`].
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting(deadline) => deadline,
            Phase::Stopping(deadline) => Some(deadline),
            Phase::Opening(_) | Phase::Asking(_) | Phase::Running | Phase::Leaving => None,
        }
    }

    /// The deadline has passed; work may be cut short by that.
    pub(super) fn expire(&mut self) -> Option<Cut> {
        match self.phase {
            Phase::Waiting(_) => self.interrupt(CutCause::WaitBound),
            Phase::Stopping(_) => {
                self.leave();
                None
            }
            Phase::Opening(_) | Phase::Asking(_) | Phase::Running | Phase::Leaving => None,
        }
    }

    /// Stops all that runs and then leaves; the first cause counts.
    pub(super) fn interrupt(&mut self, cause: CutCause) -> Option<Cut> {
        if self.outcome.cut.is_none() {
            self.outcome.cut = Some(cause);
        }
        let origin = match cause {
            CutCause::WaitBound => AbortOrigin::WaitBound,
            CutCause::Signal(_) | CutCause::Output => AbortOrigin::Person,
        };
        match self.phase {
            Phase::Opening(_) => self.leave(),
            Phase::Asking(_) | Phase::Running | Phase::Waiting(_) => {
                let grace = Duration::from_millis(SHUTDOWN_GRACE_MS);
                self.phase = Phase::Stopping(Instant::now() + grace);
                self.handle.send(Command::AbortCrew(self.session.clone(), origin));
                self.handle.send(Command::Abort(self.session.clone()));
            }
            Phase::Stopping(_) | Phase::Leaving => return None,
        }
        Some(Cut { cause, owner_runs: self.owner_runs, children: self.roster.open() })
    }

    /// Takes one notice.
    pub(super) fn take(&mut self, notice: &Notice) {
        match notice {
            Notice::Opened { file, .. } => self.outcome.file.clone_from(file),
            Notice::Warning(_) | Notice::Question(_) | Notice::QuestionOver(_) => {}
            Notice::Update(Update::Answered { command, result }) => {
                self.answered(*command, result);
            }
            Notice::Update(Update::Session { session, update }) if *session == self.session => {
                self.session_update(update);
            }
            Notice::Update(Update::Session { .. }) => {}
            Notice::Update(Update::Crew(update)) => self.roster.take(update),
            // Its calls hold the owner's run until they are over.
            Notice::Update(Update::Task(_)) => {}
            Notice::Update(Update::RunFailed { session, error }) => {
                if *session == self.session && self.outcome.failure.is_none() {
                    self.outcome.failure = Some(Failure::Run(error.clone()));
                    self.leave();
                }
            }
            Notice::Update(Update::AtRest(session)) => {
                let rests = matches!(self.phase, Phase::Waiting(_) | Phase::Stopping(_));
                if rests && *session == self.session {
                    self.leave();
                }
            }
        }
    }

    fn answered(&mut self, command: CommandId, result: &Result<(), Refusal>) {
        match self.phase {
            Phase::Opening(open) if open == command => match result {
                Ok(()) => self.ask(),
                Err(Refusal::OpenFailed(reason)) => self.fail(Failure::Open(reason.clone())),
                Err(refusal) => self.fail(Failure::Refused(refusal.clone())),
            },
            Phase::Asking(prompt) if prompt == command => match result {
                Ok(()) => {
                    self.prompts.pop_front();
                    self.owner_runs = true;
                    self.phase = Phase::Running;
                }
                // A result of the crew came first; its run is waited for.
                Err(Refusal::Busy) => self.phase = Phase::Running,
                Err(refusal) => self.fail(Failure::Refused(refusal.clone())),
            },
            Phase::Opening(_)
            | Phase::Asking(_)
            | Phase::Running
            | Phase::Waiting(_)
            | Phase::Stopping(_)
            | Phase::Leaving => {}
        }
    }

    fn session_update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentStart => self.owner_runs = true,
            SessionUpdate::MessageEnd(message) => self.message(message),
            SessionUpdate::RetryStart { attempt, .. } => self.retries = *attempt,
            SessionUpdate::AgentSettled { .. } => {
                self.owner_runs = false;
                self.settled();
            }
            SessionUpdate::TurnStart
            | SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::ToolStart { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. }
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::AgentEnd { .. }
            | SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::RetryEnd { .. }
            | SessionUpdate::CompactionStart { .. }
            | SessionUpdate::CompactionEnd { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::BranchSummaryStart
            | SessionUpdate::MoveEnd(_)
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_)
            | SessionUpdate::EntryAppended(_) => {}
        }
    }

    fn message(&mut self, message: &Arc<Message>) {
        if let Some(answer) = message.as_assistant() {
            self.outcome.tries = self.retries + 1;
            if answer.error_message.is_none() {
                self.retries = 0;
            }
            self.outcome.answer = Some(Arc::new(answer.clone()));
        }
    }

    fn settled(&mut self) {
        match self.phase {
            Phase::Running if !self.prompts.is_empty() => self.ask(),
            Phase::Running => {
                let open = self.roster.open();
                let wait = self.crew_wait.filter(|_| !open.is_empty());
                let far = Instant::now() + FAR;
                let until = |wait| Instant::now().checked_add(wait).unwrap_or(far);
                self.phase = Phase::Waiting(wait.map(until));
            }
            Phase::Opening(_)
            | Phase::Asking(_)
            | Phase::Waiting(_)
            | Phase::Stopping(_)
            | Phase::Leaving => {}
        }
    }

    fn ask(&mut self) {
        match self.prompts.front() {
            Some(prompt) => {
                let prompt = Command::Prompt(self.session.clone(), prompt.clone());
                self.phase = Phase::Asking(self.handle.send(prompt));
            }
            None => self.leave(),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.outcome.failure.get_or_insert(failure);
        self.leave();
    }

    /// What awaits its owner is closed, then everything ends (`product.md` P-6).
    fn leave(&mut self) {
        if self.phase != Phase::Leaving {
            self.phase = Phase::Leaving;
            self.handle.send(Command::CloseAwaiting(self.session.clone()));
            self.handle.send(Command::Quit);
        }
    }
}
