//! Another session takes the place of the one shown (`host.md` 2.8.8, 7.3.7).
//!
//! What runs is stopped and has settled first; then the other session is
//! opened; then the old one is left. When opening fails the old one is still
//! there. Subagents go on.

use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, Header, read_line};
use crew_base::id::{EntryId, SessionId};
use crew_base::json::Raw;
use crew_base::model::ThinkingLevel;
use crew_engine::Source;
use crew_engine::api::{Command, Refusal};
use crew_runtime::{Answer, Handle, Place, Query};
use crew_store::listing;
use crew_tui::request::{ModelFacts, Reply, Shown};
use crew_tui::transcript::entries;
use crew_tui::view;

use super::coming::Coming;
use super::face::{Done, Face, Waiting};
use super::start::{now, with_home};

/// A move under way.
pub(super) struct Move {
    pub(super) session: SessionId,
    pub(super) source: Source,
    /// Whether the crew comes along (`crew.md` OWN-4).
    pub(super) adopts: bool,
    /// For the editor.
    pub(super) draft: Option<String>,
    /// The session that is left.
    from: SessionId,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Settling,
    Opening,
    Leaving,
    /// The same for a session that takes its own place.
    SettlingToReopen,
    LeavingToReopen,
    Reopening,
}

impl Move {
    fn open(&self) -> Command {
        Command::Open {
            session: self.session.clone(),
            source: self.source.clone(),
            adopts: self.adopts.then(|| self.from.clone()),
        }
    }
}

impl Face {
    /// Sets out for another session.
    pub(super) fn move_to(
        &mut self,
        source: Source,
        session: SessionId,
        adopts: bool,
        draft: Option<String>,
    ) {
        if self.moving.is_some() {
            self.failed("another session is being opened already");
            return;
        }
        let Some(from) = self.view.session().cloned() else { return };
        let stage = Stage::Settling;
        self.moving = Some(Move { session, source, adopts, draft, from: from.clone(), stage });
        self.send_own(Command::Abort(from), Waiting::Settle);
    }

    /// Leaves the shown session and opens it again, or another one in its
    /// place, with what the host works with now.
    pub(super) fn reopen(&mut self, source: Source, session: SessionId) {
        let Some(from) = self.view.session().cloned() else { return };
        let stage = Stage::SettlingToReopen;
        let (adopts, draft) = (false, None);
        self.moving = Some(Move { session, source, adopts, draft, from: from.clone(), stage });
        self.send_own(Command::Abort(from), Waiting::Settle);
    }

    /// The same when none is shown yet.
    pub(super) fn move_or_open(&mut self, source: Source, session: SessionId) {
        if self.view.session().is_none() {
            return self.open(session, source);
        }
        self.move_to(source, session, false, None);
    }

    /// Goes on once nothing runs any more.
    pub(super) fn go_on_moving(&mut self) {
        let busy = self.view.is_busy();
        let Some(moving) = self.moving.as_mut().filter(|_| !busy) else { return };
        let command = match moving.stage {
            Stage::Settling => {
                moving.stage = Stage::Opening;
                moving.open()
            }
            Stage::SettlingToReopen => {
                moving.stage = Stage::LeavingToReopen;
                Command::Leave(moving.from.clone())
            }
            Stage::Opening | Stage::Leaving | Stage::LeavingToReopen | Stage::Reopening => return,
        };
        self.send_own(command, Waiting::Move);
    }

    /// The command of the present stage was answered.
    pub(super) fn moved(&mut self, result: Result<(), Refusal>) {
        let Some(moving) = &mut self.moving else { return };
        match (moving.stage, result) {
            (Stage::Settling | Stage::SettlingToReopen, _) => {}
            (Stage::Opening, Ok(())) => {
                moving.stage = Stage::Leaving;
                let leave = Command::Leave(moving.from.clone());
                self.send_own(leave, Waiting::Move);
            }
            (Stage::Opening, Err(refusal)) => {
                let source = moving.source.clone();
                self.moving = None;
                if !self.ask_in_use(&source) {
                    self.failed(&crate::error::refusal(&refusal));
                }
            }
            (Stage::LeavingToReopen, Ok(())) => {
                moving.stage = Stage::Reopening;
                let open = moving.open();
                self.send_own(open, Waiting::Move);
            }
            (Stage::Reopening, Err(refusal)) => {
                self.moving = None;
                let what = crate::error::refusal(&refusal);
                let next = Some("/resume opens another session".to_owned());
                view::reply(&mut self.view, now(), Reply::Failed(what, next));
            }
            (Stage::LeavingToReopen, Err(refusal)) => {
                self.moving = None;
                self.failed(&crate::error::refusal(&refusal));
            }
            (Stage::Leaving, _) | (Stage::Reopening, Ok(())) => self.moving = None,
        }
    }

    /// A session was prepared: it is the one shown from now on. Its entries
    /// are read beside the loop.
    pub(super) fn opened(
        &mut self,
        session: SessionId,
        header: &Header,
        file: Option<PathBuf>,
        model: Option<ModelFacts>,
        thinking: ThinkingLevel,
    ) {
        let Some(ready) = &self.ready else { return };
        let draft = self.moving.as_mut().and_then(|moving| moving.draft.take());
        // A session whose folder is gone runs in the one of new sessions.
        let own = PathBuf::from(&header.cwd);
        self.cwd = if own.is_dir() { own } else { ready.config.place.cwd.clone() };
        self.file = file;
        self.totals = Default::default();
        let cwd = with_home(&self.cwd, ready.config.place.home.as_deref());
        let (handle, done) = (ready.handle.clone(), self.done.clone());
        self.coming = Some(Coming::new(session.clone()));
        tokio::spawn(async move {
            let name = match handle.ask(&session, Query::State).await {
                Ok(Answer::State(state)) => state.name,
                Ok(_) | Err(_) => None,
            };
            let (entries, place) = branch_in_place(&handle, &session).await;
            let read = tokio::task::spawn_blocking(move || entries::items(&entries)).await;
            let items = read.unwrap_or_default();
            let shown = Shown { session, name, items, draft, cwd, model, thinking };
            let _ = done.send(Done::Shown(Box::new(shown), place));
        });
    }

    pub(super) fn failed(&mut self, what: &str) {
        view::reply(&mut self.view, now(), Reply::Failed(what.to_owned(), None));
    }

    /// A new session.
    pub(super) fn move_to_new(&mut self) {
        if let Some(session) = self.fresh_id() {
            self.move_to(Source::New { name: None }, session, false, None);
        }
    }

    /// A stored session.
    pub(super) fn move_to_file(&mut self, path: &Path) {
        let Some(header) = listing::header(path) else {
            self.failed(&format!("{} is not a session", path.display()));
            return;
        };
        let cwd = Path::new(&header.cwd);
        if !header.cwd.is_empty() && !cwd.is_dir() {
            return self.ask_gone(path, cwd);
        }
        if self.view.session() == Some(&header.id) {
            return;
        }
        let source = Source::File(path.to_string_lossy().into_owned());
        self.move_or_open(source, header.id);
    }

    /// A copy up to a message, or of everything.
    pub(super) async fn move_to_copy(&mut self, entry: Option<EntryId>) {
        let (Some(ready), Some(shown)) = (&self.ready, self.view.session().cloned()) else {
            return;
        };
        let state = match ready.handle.ask(&shown, Query::State).await {
            Ok(Answer::State(state)) => state,
            Ok(_) | Err(_) => return,
        };
        let file = match state.file {
            Some(file) if state.is_saved => file.to_string_lossy().into_owned(),
            Some(_) => return self.failed("the session has not been saved yet"),
            None => return self.failed("the session is kept in memory only"),
        };
        let (source, draft) = match entry {
            // What is being stopped adds to the end of the file.
            None if state.is_at_end => (Source::Copy { file }, None),
            None => (Source::Branch { file, leaf: state.leaf }, None),
            Some(entry) => match ready.handle.ask(&shown, Query::ForkPoint(entry)).await {
                Ok(Answer::ForkPoint { leaf, text }) => (Source::Branch { file, leaf }, Some(text)),
                Ok(_) => return,
                Err(error) => return self.failed(&error.to_string()),
            },
        };
        if let Some(session) = self.fresh_id() {
            self.move_to(source, session, true, draft);
        }
    }

    pub(super) fn fresh_id(&mut self) -> Option<SessionId> {
        let ready = self.ready.as_mut()?;
        Some(ready.ids.session(now()))
    }
}

/// Entries of the branch an open session stands on, oldest first.
pub(super) async fn branch(handle: &Handle, session: &SessionId) -> Vec<Entry> {
    branch_in_place(handle, session).await.0
}

/// The same with its place among the notices.
async fn branch_in_place(handle: &Handle, session: &SessionId) -> (Vec<Entry>, Place) {
    let (answer, place) = handle.ask_in_place(session, Query::Entries { since: None }).await;
    let Ok(Answer::Entries { entries, leaf }) = answer else { return (Vec::new(), place) };
    let read = tokio::task::spawn_blocking(move || walk(&entries, leaf.as_ref()));
    (read.await.unwrap_or_default(), place)
}

/// Entries of lines; what cannot be read is left out.
pub(super) fn read(lines: &[Raw]) -> Vec<Entry> {
    lines.iter().filter_map(|raw| read_line(raw.text()).ok()).collect()
}

/// The way from the root to the leaf.
pub(super) fn walk(lines: &[Raw], leaf: Option<&EntryId>) -> Vec<Entry> {
    way(read(lines), leaf)
}

/// The same through entries that were read.
fn way(entries: Vec<Entry>, leaf: Option<&EntryId>) -> Vec<Entry> {
    let places: std::collections::HashMap<EntryId, usize> =
        entries.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
    let mut at = match leaf {
        Some(leaf) => places.get(leaf).copied(),
        None => None,
    };
    let mut way = Vec::new();
    while let Some(place) = at {
        way.push(place);
        let entry = &entries[place];
        let parent = entry.parent_id.as_ref().filter(|parent| **parent != entry.id);
        at = parent.and_then(|parent| places.get(parent).copied());
        // A damaged file could lead in a circle.
        if way.len() > entries.len() {
            break;
        }
    }
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    way.into_iter().rev().filter_map(|place| entries[place].take()).collect()
}
