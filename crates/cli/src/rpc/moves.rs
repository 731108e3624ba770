//! Another session takes the place of the one shown (`host.md` 7.3:
//! `new_session`, `switch_session`, `fork`, `clone`).
//!
//! First what runs is stopped and has settled (2.8.8), so that the client sees
//! its end; then the other session is opened; then the old one is left. When
//! opening fails the old one is still there (7.3.7). Only a session that shares
//! its id with the old one is opened after leaving that, which is opened again
//! should this fail. No command is taken meanwhile. Subagents go on.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::id::{EntryId, SessionId};
use crew_base::model::ModelSpec;
use crew_engine::Source;
use crew_engine::api::{Command, Control, Refusal};
use crew_runtime::{Answer, Query, State};
use crew_store::listing;
use crew_store::paths::expand;

use super::face::{Face, Waiting};
use super::look::file_of;
use super::request::Target;
use super::response::Ticket;
use crate::error::refusal;

/// A move under way.
pub(super) struct Move {
    ticket: Ticket,
    plan: Plan,
    stage: Stage,
    /// What the session was that is left.
    left: Box<State>,
}

/// Where to.
struct Plan {
    session: SessionId,
    source: Source,
    /// Whether the crew comes along (`crew.md` OWN-4).
    adopts: bool,
    /// For the response.
    data: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What runs is being stopped.
    Settling,
    /// The other session is being opened.
    Opening,
    /// The old session is being left; the client has been answered.
    Leaving,
    /// The old session is being left before the other one is opened.
    LeavingFirst,
    /// The other session is being opened; there is none at the moment.
    OpeningLast,
    /// That failed: the old session is being opened again.
    Returning,
}

impl Move {
    /// Who waits for its end.
    pub(super) fn into_ticket(self) -> Option<Ticket> {
        match self.stage {
            Stage::Leaving | Stage::Returning => None,
            Stage::Settling | Stage::Opening | Stage::LeavingFirst | Stage::OpeningLast => {
                Some(self.ticket)
            }
        }
    }
}

const MOVED: &str = "{\"cancelled\":false}";

impl Face {
    /// Finds out where to go, and sets out.
    pub(super) async fn start_moving(&mut self, ticket: Ticket, target: Target) {
        let found = match self.state().await {
            Ok(left) => self.plan(target, &left).await.map(|plan| (plan, left)),
            Err(error) => Err(error),
        };
        match found {
            Err(error) => self.reply(&ticket, Err(error)),
            Ok((None, _)) => self.reply(&ticket, Ok(Some(MOVED.to_owned()))),
            Ok((Some(plan), left)) => {
                self.moving = Some(Move { ticket, plan, stage: Stage::Settling, left });
                // Also when nothing seems to run: it may have begun just now.
                let abort = Command::Abort(self.session.clone());
                self.send(abort, Waiting::Settle);
            }
        }
    }

    /// `None` when the session shown is the one that is wanted.
    async fn plan(&mut self, target: Target, left: &State) -> Result<Option<Plan>, String> {
        let moved = MOVED.to_owned();
        Ok(Some(match target {
            Target::New { parent } => {
                let source =
                    parent.map_or(Source::New { name: None }, |parent| Source::Under { parent });
                let session = self.ids.session(crew_runtime::clock::now());
                Plan { session, source, adopts: false, data: moved }
            }
            Target::File { path } => {
                let path = expand(&path, self.config.place.home.as_deref(), &self.cwd);
                if left.file.as_ref() == Some(&path) && !left.is_saved {
                    return Ok(None);
                }
                let session = self.session_of(&path)?;
                let source = Source::File(path.to_string_lossy().into_owned());
                Plan { session, source, adopts: false, data: moved }
            }
            Target::Fork { entry } => {
                let file = saved_file(left)?;
                let wanted = Query::ForkPoint(EntryId::new(entry));
                let invalid = || "Invalid entry ID for forking".to_owned();
                let answer = self.ask(wanted).await.map_err(|_| invalid())?;
                let Answer::ForkPoint { leaf, text } = answer else { return Err(invalid()) };
                let session = self.ids.session(crew_runtime::clock::now());
                let source = Source::Branch { file, leaf };
                let data = serde_json::json!({"text": text, "cancelled": false}).to_string();
                Plan { session, source, adopts: true, data }
            }
            Target::Clone => {
                let file = saved_file(left)?;
                // What is being stopped adds to the end of the file.
                let source = if left.is_at_end {
                    Source::Copy { file }
                } else {
                    Source::Branch { file, leaf: left.leaf.clone() }
                };
                let session = self.ids.session(crew_runtime::clock::now());
                Plan { session, source, adopts: true, data: moved }
            }
        }))
    }

    /// The session of a file: a fresh id when there is none yet (`host.md`
    /// 7.3.7, 2.2.5).
    fn session_of(&mut self, path: &Path) -> Result<SessionId, String> {
        match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(self.ids.session(crew_runtime::clock::now()))
            }
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
            Ok(file) if file.is_file() && file.len() == 0 => {
                Ok(self.ids.session(crew_runtime::clock::now()))
            }
            Ok(file) if !file.is_file() => Err(format!("{} is not a session", path.display())),
            Ok(_) => {
                let header = listing::header(path)
                    .ok_or_else(|| format!("{} is not a session", path.display()))?;
                let cwd = PathBuf::from(&header.cwd);
                if !header.cwd.is_empty() && !cwd.is_dir() {
                    return Err(format!(
                        "the session {} works in {}, which is no longer there",
                        path.display(),
                        cwd.display()
                    ));
                }
                Ok(header.id)
            }
        }
    }

    /// The session shown has settled, or never ran.
    pub(super) fn go_on_moving(&mut self) {
        let busy = self.run.is_busy();
        let Some(moving) = &mut self.moving else { return };
        if moving.stage != Stage::Settling || busy {
            return;
        }
        if moving.plan.session == self.session {
            moving.stage = Stage::LeavingFirst;
            self.send(Command::Leave(self.session.clone()), Waiting::Move);
        } else {
            self.open_other(Stage::Opening);
        }
    }

    fn open_other(&mut self, stage: Stage) {
        let Some(moving) = &mut self.moving else { return };
        let Plan { session, source, adopts, .. } = &moving.plan;
        moving.stage = stage;
        let open = Command::Open {
            session: session.clone(),
            source: source.clone(),
            adopts: adopts.then(|| self.session.clone()),
        };
        self.send(open, Waiting::Move);
    }

    /// The command of the present stage was answered.
    pub(super) fn moved(&mut self, result: Result<(), Refusal>) {
        let Some(moving) = &self.moving else { return };
        match (moving.stage, result) {
            // Its command has an answer of another kind.
            (Stage::Settling, _) => {}
            (Stage::Opening, Ok(())) => {
                let old = self.arrive();
                self.send(Command::Leave(old), Waiting::Move);
                if let Some(moving) = &mut self.moving {
                    moving.stage = Stage::Leaving;
                }
            }
            (Stage::OpeningLast, Ok(())) => {
                self.arrive();
                self.moving = None;
            }
            (Stage::Leaving, _) => self.moving = None,
            (Stage::LeavingFirst, _) => self.open_other(Stage::OpeningLast),
            (Stage::Opening, Err(refused)) => self.stay(&refused),
            (Stage::OpeningLast, Err(refused)) => self.return_to_old(&refused),
            (Stage::Returning, result) => {
                if let Err(refused) = result {
                    crate::output::warning(&refusal(&refused));
                }
                self.run = Default::default();
                self.take_over();
                self.moving = None;
            }
        }
    }

    /// The other session is the one shown: its response is the marker in the
    /// stream of events (`host.md` 7.1.6). Yields the old one.
    fn arrive(&mut self) -> SessionId {
        let Some(moving) = &self.moving else { return self.session.clone() };
        let Plan { session, data, .. } = &moving.plan;
        let (session, data, ticket) = (session.clone(), data.clone(), moving.ticket.clone());
        self.reply(&ticket, Ok(Some(data)));
        self.run = Default::default();
        let old = std::mem::replace(&mut self.session, session);
        self.take_over();
        old
    }

    /// What the person set goes on in the session that is shown now; the model
    /// only where no file names one: a copy keeps its entries and gets none of
    /// its own (`host.md` 2.4.3, 2.8.4).
    fn take_over(&mut self) {
        let Some(moving) = &self.moving else { return };
        let (left, shown) = (&moving.left, &self.prepared);
        let names_one = match &moving.plan.source {
            Source::File(_) | Source::FileHere(_) | Source::Copy { .. } => true,
            Source::Branch { leaf, .. } => leaf.is_some(),
            Source::New { .. } | Source::Under { .. } => false,
        };
        let reference = |model: &Option<_>| model.as_ref().map(|m: &Arc<ModelSpec>| m.reference());
        let is_same =
            reference(&left.model) == reference(&shown.model) && left.thinking == shown.thinking;
        let model = left.model.clone().filter(|_| !is_same);
        let keeps = match moving.stage {
            Stage::Returning => !left.is_saved,
            Stage::Settling
            | Stage::Opening
            | Stage::Leaving
            | Stage::LeavingFirst
            | Stage::OpeningLast => !names_one,
        };
        let model = model.filter(|_| keeps).map(|model| Control::Model(model, left.thinking));
        for control in model.into_iter().chain(self.modes.controls()) {
            self.handle.send(Command::Control(self.session.clone(), control));
        }
    }

    fn stay(&mut self, refused: &Refusal) {
        let Some(moving) = self.moving.take() else { return };
        self.reply(&moving.ticket, Err(refusal(refused)));
    }

    fn return_to_old(&mut self, refused: &Refusal) {
        let Some(moving) = &mut self.moving else { return };
        moving.stage = Stage::Returning;
        let ticket = moving.ticket.clone();
        let source = match file_of(&moving.left) {
            Some(file) => Source::File(file),
            None => Source::New { name: moving.left.name.clone() },
        };
        self.reply(&ticket, Err(refusal(refused)));
        let open = Command::Open { session: self.session.clone(), source, adopts: None };
        self.send(open, Waiting::Move);
    }
}

/// The file that a copy is made from (`host.md` 2.8.6).
fn saved_file(state: &State) -> Result<String, String> {
    match file_of(state) {
        None => Err("the session is kept in memory only and cannot be copied".to_owned()),
        Some(_) if !state.is_saved => Err("the session has not been saved yet".to_owned()),
        Some(file) => Ok(file),
    }
}
