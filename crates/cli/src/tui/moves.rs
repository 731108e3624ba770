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
use crew_runtime::{Answer, Handle, Query};
use crew_store::listing;
use crew_tui::request::{ModelFacts, Reply, Shown};
use crew_tui::view;

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
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Settling,
    Opening,
    Leaving,
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
        let Some(shown) = self.view.session().cloned() else { return };
        self.moving = Some(Move { session, source, adopts, draft, stage: Stage::Settling });
        self.send_own(Command::Abort(shown), Waiting::Settle);
    }

    /// Goes on once nothing runs any more.
    pub(super) fn go_on_moving(&mut self) {
        let busy = self.view.is_busy();
        let Some(shown) = self.view.session().cloned() else { return };
        let Some(moving) = &mut self.moving else { return };
        if moving.stage != Stage::Settling || busy {
            return;
        }
        moving.stage = Stage::Opening;
        let open = Command::Open {
            session: moving.session.clone(),
            source: moving.source.clone(),
            adopts: moving.adopts.then_some(shown),
        };
        self.send_own(open, Waiting::Move);
    }

    /// The command of the present stage was answered.
    pub(super) fn moved(&mut self, result: Result<(), Refusal>) {
        let Some(stage) = self.moving.as_ref().map(|moving| moving.stage) else { return };
        match (stage, result) {
            (Stage::Settling, _) => {}
            (Stage::Opening, Ok(())) => {
                let old = self.view.session().cloned();
                if let Some(moving) = &mut self.moving {
                    moving.stage = Stage::Leaving;
                }
                match old {
                    Some(old) => self.send_own(Command::Leave(old), Waiting::Move),
                    None => self.moving = None,
                }
            }
            (Stage::Opening, Err(refusal)) => {
                self.moving = None;
                self.failed(&crate::error::refusal(&refusal));
            }
            (Stage::Leaving, _) => self.moving = None,
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
        self.cwd = PathBuf::from(&header.cwd);
        self.file = file;
        self.totals = Default::default();
        let cwd = with_home(Path::new(&header.cwd), ready.config.place.home.as_deref());
        let (handle, done) = (ready.handle.clone(), self.done.clone());
        tokio::spawn(async move {
            let name = match handle.ask(&session, Query::State).await {
                Ok(Answer::State(state)) => state.name,
                Ok(_) | Err(_) => None,
            };
            let entries = branch(&handle, &session).await;
            let shown = Shown { session, name, entries, draft, cwd, model, thinking };
            let _ = done.send(Done::Shown(Box::new(shown)));
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
            let text = format!("its folder {} is no longer there", cwd.display());
            self.failed(&text);
            return;
        }
        if self.view.session() == Some(&header.id) {
            return;
        }
        let source = Source::File(path.to_string_lossy().into_owned());
        if self.view.session().is_none() {
            return self.open(header.id, source);
        }
        self.move_to(source, header.id, false, None);
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
            None => (Source::Copy { file }, None),
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

    fn fresh_id(&mut self) -> Option<SessionId> {
        let ready = self.ready.as_mut()?;
        Some(ready.ids.session(now()))
    }
}

/// Entries of the branch an open session stands on, oldest first.
pub(super) async fn branch(handle: &Handle, session: &SessionId) -> Vec<Entry> {
    let answer = handle.ask(session, Query::Entries { since: None }).await;
    let Ok(Answer::Entries { entries, leaf }) = answer else { return Vec::new() };
    let read = tokio::task::spawn_blocking(move || walk(&entries, leaf.as_ref()));
    read.await.unwrap_or_default()
}

/// The way from the root to the leaf.
pub(super) fn walk(lines: &[Raw], leaf: Option<&EntryId>) -> Vec<Entry> {
    let entries: Vec<Entry> = lines.iter().filter_map(|raw| read_line(raw.text()).ok()).collect();
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
    way.reverse();
    way.into_iter().map(|place| entries[place].clone()).collect()
}
