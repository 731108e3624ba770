//! What the simulated person does.

use crew_base::id::SessionId;
use crew_base::message::Message;
use crew_base::model::ThinkingLevel;
use crew_engine::api::{AbortOrigin, BranchWish, Command, CommandId, Control, QueueMode};
use crew_engine::{Event, Source};

use super::checks::pairs;
use super::world::World;
use crate::fixtures;

const OWNERS_MAX: usize = 4;

impl World {
    pub(super) fn random_command(&mut self) -> Result<(), String> {
        let Some(owner) = self.some_owner() else { return self.open_owner(None) };
        let shown = self.engine.attached().cloned().unwrap_or_else(|| owner.clone());
        let command = match self.rng.below(26) {
            0..=3 => Command::Prompt(shown, self.typed()),
            // Also in the step in which the owner gets idle (case 13).
            4 => Command::PromptOrSteer(shown, self.typed()),
            5 => Command::PromptOrFollowUp(shown, self.typed()),
            6 => Command::Steer(shown, self.typed()),
            7 => Command::FollowUp(shown, self.typed()),
            8..=10 => Command::Abort(shown),
            11 | 12 => Command::Attach(owner),
            13 => Command::Detach(shown),
            14 if self.owners.len() < OWNERS_MAX => return self.open_owner(None),
            15 if self.owners.len() < OWNERS_MAX => return self.fork(shown),
            16 if self.rng.below(4) == 0 => Command::AbortCrew(shown, AbortOrigin::Person),
            17 if self.rng.below(4) == 0 => Command::CloseAwaiting(shown),
            18 if self.disk.load(&owner).is_some() => Command::Leave(owner),
            19 => match self.left.pop() {
                Some(left) => return self.reopen(left),
                None => self.wrong_command(owner),
            },
            20 => self.person(shown),
            21 => Command::Control(shown, self.control()),
            22 => Command::Inject(shown, self.typed()),
            23 => Command::Compact(shown, None),
            24 => match self.place(&shown) {
                Some(navigate) => navigate,
                None => self.wrong_command(shown),
            },
            _ => {
                if self.rng.below(40) == 0 {
                    self.now = self.now + 86_400_001;
                }
                self.wrong_command(owner)
            }
        };
        self.command(command)
    }

    /// A place in the tree of an owner whose calls all have their results: what
    /// lacks one is mended by the encoders (`host.md` 9.1.7).
    fn place(&mut self, session: &SessionId) -> Option<Command> {
        let number = self.rng.below(u64::MAX);
        let to = self.disk.entry(session, number)?;
        let branch = self.disk.branch(session, None, &to).ok()?;
        let messages: Vec<_> = branch.context.into_iter().map(|(_, message)| message).collect();
        pairs(&messages).ok()?;
        let summary = (self.rng.below(2) == 0).then(BranchWish::default);
        let label = (self.rng.below(4) == 0).then(|| "label".to_owned());
        Some(Command::Navigate { session: session.clone(), to, summary, label })
    }

    fn some_owner(&mut self) -> Option<SessionId> {
        let count = self.owners.len() as u64;
        let pick = self.rng.below(count) as usize;
        self.owners.get(pick).cloned()
    }

    /// What the person does to a subagent by hand; the owner may be faster
    /// (`terminal.md` 11, case 23).
    fn person(&mut self, owner: SessionId) -> Command {
        let open: Vec<_> = self.engine.crew().all().map(|one| one.id.clone()).collect();
        let pick = self.rng.below(open.len() as u64) as usize;
        let Some(id) = open.get(pick).cloned() else { return Command::Abort(owner) };
        match self.rng.below(4) {
            0 => Command::Respond(owner, id, self.script.mark("hand")),
            1 => Command::Done(owner, id),
            2 => Command::SteerSubagent(owner, id, self.script.mark("word")),
            _ => Command::AbortSubagent(owner, id),
        }
    }

    fn control(&mut self) -> Control {
        match self.rng.below(7) {
            0 => Control::Model(fixtures::model("other"), ThinkingLevel::High),
            1 => Control::Thinking(ThinkingLevel::Low),
            2 => Control::Steering(QueueMode::All),
            3 => Control::FollowUp(QueueMode::All),
            4 => Control::Name(Some("n".to_owned())),
            5 => Control::Compaction(self.rng.below(4) > 0),
            _ => Control::AbortRetry,
        }
    }

    /// A command for a session that is not shown, not there, or no owner.
    fn wrong_command(&mut self, owner: SessionId) -> Command {
        let child = self.engine.crew().all().next().map(|subagent| subagent.session.clone());
        let other = child.unwrap_or_else(|| SessionId::from("nobody"));
        match self.rng.below(5) {
            0 => Command::Prompt(owner, self.typed()),
            1 => Command::Attach(other),
            2 => Command::AbortCrew(other, AbortOrigin::Person),
            3 => Command::Steer(other, self.typed()),
            _ => Command::Open { session: owner, source: Source::New { name: None }, adopts: None },
        }
    }

    fn typed(&mut self) -> Message {
        Message::user_text(self.script.mark("say"), self.now)
    }

    pub(super) fn command(&mut self, command: Command) -> Result<(), String> {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.checks.asked(id);
        self.take(Event::Command(id, command))
    }

    /// Opens a new owner.
    pub(super) fn open_owner(&mut self, forked: Option<SessionId>) -> Result<(), String> {
        let session = self.engine.fresh_session_id(self.now);
        self.owners.push(session.clone());
        if let Some(previous) = forked.clone().filter(|previous| self.disk.has(previous)) {
            self.adoptions.insert(session.clone(), previous);
        }
        let source = Source::New { name: None };
        self.command(Command::Open { session, source, adopts: forked })
    }

    /// Opens a fork of an owner: one that still runs, is detached, or was left.
    fn fork(&mut self, shown: SessionId) -> Result<(), String> {
        let previous = match self.rng.below(4) {
            0 => self.left.last().cloned().unwrap_or(shown),
            1 if self.engine.attached() == Some(&shown) => {
                self.command(Command::Detach(shown.clone()))?;
                shown
            }
            _ => shown,
        };
        self.open_owner(Some(previous))
    }

    /// Opens an owner again that was left.
    pub(super) fn reopen(&mut self, session: SessionId) -> Result<(), String> {
        self.owners.push(session.clone());
        let source = Source::File(format!("/sessions/{session}.jsonl"));
        self.command(Command::Open { session, source, adopts: None })
    }
}
