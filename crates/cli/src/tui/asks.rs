//! Questions of the program itself: about the project, and about a session that
//! works elsewhere, whose folder is gone, or that another process has open
//! (TERM-36, `host.md` 2.3.3, 6.3.2, 12.8).

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

use crew_engine::Source;
use crew_store::listing;
use crew_store::trust::{self, Choice as Decision, TrustStore};
use crew_tui::request::{Choice, Reply, TrustChoice};
use crew_tui::transcript::document;
use crew_tui::transcript::item::Item;
use crew_tui::view;

use super::face::{End, Face};
use super::start::{now, with_home};
use crate::args::{Options, SessionChoice};
use crate::config::{Place, session};
use crate::error::Error;

/// What waits for an answer.
pub(super) enum Asked {
    /// Nothing.
    Nothing,
    /// The second half of the start, for what is decided about the project.
    TrustAtStart(Box<Options>, Box<Place>),
    /// A reload, for the same.
    TrustAtReload,
    /// The start with a session that works in another folder.
    Elsewhere(Box<Options>, PathBuf),
    /// The start with a session whose folder is gone.
    GoneAtStart(Box<Options>, PathBuf),
    /// A session chosen from the list whose folder is gone.
    Gone(PathBuf),
    /// A session that another process has open.
    InUse(PathBuf),
}

/// The harmless answer at the start.
const LEAVE: (&str, &str) = ("Leave", "nothing is opened or changed");
/// The harmless answer later.
const STAY: (&str, &str) = ("Stay here", "nothing is opened or changed");

impl Face {
    fn choose(&mut self, asked: Asked, text: String, answers: &[(&str, &str)]) {
        self.asked = asked;
        let owned = |(what, more): &(&str, &str)| ((*what).to_owned(), (*more).to_owned());
        let answers = answers.iter().map(owned).collect();
        view::reply(&mut self.view, now(), Reply::Choose(Choice { text, answers }));
    }

    /// What went wrong with the start is asked about, if that helps; else it
    /// is the end.
    pub(super) fn not_loaded(&mut self, error: Error, options: Options) -> Result<(), Error> {
        let options = Box::new(options);
        if let Error::SessionElsewhere { path, cwd } = error {
            let text = format!("This session belongs to {}.", with_home(Path::new(&cwd), None));
            let fork = ("Fork it into this folder", "a copy that works here");
            self.choose(Asked::Elsewhere(options, path), text, &[LEAVE, fork]);
            return Ok(());
        }
        if let Error::SessionFolderGone { path, cwd, .. } = error {
            let text = gone(&cwd);
            self.choose(Asked::GoneAtStart(options, path), text, &[LEAVE, CONTINUE, FORK]);
            return Ok(());
        }
        self.restore();
        Err(error)
    }

    /// A session from the list whose folder is gone.
    pub(super) fn ask_gone(&mut self, path: &Path, cwd: &Path) {
        self.choose(Asked::Gone(path.to_owned()), gone(cwd), &[STAY, CONTINUE, FORK]);
    }

    /// Whether an opening failed because another process has the session; then
    /// a copy is offered.
    pub(super) fn ask_in_use(&mut self, source: &Source) -> bool {
        let (Source::File(path) | Source::FileHere(path)) = source else { return false };
        let path = PathBuf::from(path);
        if !is_in_use(&path) {
            return false;
        }
        let text = "Another crew process has this session open.".to_owned();
        let first = if self.view.session().is_some() { STAY } else { LEAVE };
        let copy = ("Go on in a copy", "the copy has everything up to now");
        self.choose(Asked::InUse(path), text, &[first, copy]);
        true
    }

    /// An answer to one of these.
    pub(super) fn chosen(&mut self, at: usize) {
        match (std::mem::replace(&mut self.asked, Asked::Nothing), at) {
            (Asked::Nothing | Asked::TrustAtStart(..) | Asked::TrustAtReload, _) => {}
            (Asked::Elsewhere(..) | Asked::GoneAtStart(..), 0) => self.leave(),
            (Asked::Elsewhere(options, path), _) => self.load_with(*options, fork_of(&path)),
            (Asked::GoneAtStart(options, path), 1) => {
                self.load_with(*options, SessionChoice::Here(path));
            }
            (Asked::GoneAtStart(options, path), _) => self.load_with(*options, fork_of(&path)),
            (Asked::Gone(_), 0) => {}
            (Asked::Gone(path), 1) => {
                let Some(header) = listing::header(&path) else { return };
                let source = Source::FileHere(path.to_string_lossy().into_owned());
                self.move_or_open(source, header.id);
            }
            (Asked::Gone(path), _) => self.fork_here(&path),
            (Asked::InUse(_), 0) => {
                if self.view.session().is_none() {
                    self.leave();
                }
            }
            (Asked::InUse(path), _) => {
                let file = path.to_string_lossy().into_owned();
                if let Some(session) = self.fresh_id() {
                    self.move_or_open(Source::Copy { file }, session);
                }
            }
        }
    }

    fn leave(&mut self) {
        self.end = Some(End { code: 0, at_once: false });
    }

    fn load_with(&mut self, options: Options, session: SessionChoice) {
        self.load_now(Options { session, ..options });
    }

    /// A copy in the working directory (`host.md` 2.8.7).
    fn fork_here(&mut self, path: &Path) {
        let Some(ready) = &self.ready else { return };
        let crew_runtime::SessionPlace::Folder(folder) = &ready.config.start.place else {
            return self.failed("sessions are kept in memory only");
        };
        let made = session::fork(&path.to_string_lossy(), None, &ready.config.place, folder);
        match made {
            Ok(copy) => self.move_to_file(&copy),
            Err(error) => self.failed(&error.words().text),
        }
    }

    /// What the gated files hold; the person asked to see it.
    pub(super) fn show_trust(&mut self) {
        let place = match (&self.asked, &self.ready) {
            (Asked::TrustAtStart(_, place), _) => (**place).clone(),
            (_, Some(ready)) => ready.config.place.clone(),
            (_, None) => return,
        };
        self.beside(move || {
            let title = "files of this project".to_owned();
            Some(Reply::Page { title, items: gated_items(&place) })
        });
    }

    /// The answer about the project: what waits for it goes on, else the
    /// decision counts for future starts.
    pub(super) fn trusted(&mut self, choice: TrustChoice) {
        let choice = match choice {
            TrustChoice::NotNow => Decision::NotNow,
            TrustChoice::Once => Decision::Session,
            TrustChoice::Folder => Decision::Folder,
            TrustChoice::Parent => Decision::Parent,
            TrustChoice::Never => Decision::No,
        };
        match std::mem::replace(&mut self.asked, Asked::Nothing) {
            Asked::TrustAtStart(mut options, place) => {
                self.keep_decision(choice, &place.agent_dir, &place.cwd);
                options.trust = Some(choice.trusts());
                self.load_now(*options);
            }
            Asked::TrustAtReload => {
                if let Some(ready) = &self.ready {
                    let config = std::sync::Arc::clone(&ready.config);
                    self.keep_decision(choice, &config.place.agent_dir, &config.place.cwd);
                }
                self.said_trust = Some(choice.trusts());
                self.reload_now();
            }
            other @ (Asked::Nothing
            | Asked::Elsewhere(..)
            | Asked::GoneAtStart(..)
            | Asked::Gone(_)
            | Asked::InUse(_)) => {
                self.asked = other;
                self.decide_for_later(choice);
            }
        }
    }

    fn keep_decision(&mut self, choice: Decision, agent_dir: &Path, cwd: &Path) {
        let changes = choice.changes(cwd);
        if !changes.is_empty()
            && let Err(error) = TrustStore::new(agent_dir).record(&changes)
        {
            let text = format!("the decision is not kept: {error}");
            view::reply(&mut self.view, now(), Reply::Warning(text));
        }
    }

    fn decide_for_later(&mut self, choice: Decision) {
        let Some(ready) = &self.ready else { return };
        let place = &ready.config.place;
        let changes = choice.changes(&place.cwd);
        let reply = if changes.is_empty() {
            Reply::Done("nothing is kept; it is asked again at the next start".to_owned())
        } else {
            match TrustStore::new(&place.agent_dir).record(&changes) {
                Ok(()) => Reply::Done("kept; it counts from /reload or the next start".to_owned()),
                Err(error) => Reply::Failed(error.to_string(), None),
            }
        };
        view::reply(&mut self.view, now(), reply);
    }
}

/// Bytes of one file that are shown, and files of one folder.
const SHOWN_BYTES_MAX: u64 = 32 * 1024;
const SHOWN_FILES_MAX: usize = 50;

fn gated_items(place: &Place) -> Vec<Item> {
    let mut items = Vec::new();
    for path in trust::gated(&place.cwd, place.home.as_deref()) {
        let names = match path.is_dir() {
            true => crew_tools::names_below(&path, SHOWN_FILES_MAX),
            false => vec![String::new()],
        };
        for name in names.iter().filter(|name| !name.ends_with('/')) {
            let file = if name.is_empty() { path.clone() } else { path.join(name) };
            let mut text = Vec::new();
            let read = File::open(&file)
                .and_then(|file| file.take(SHOWN_BYTES_MAX).read_to_end(&mut text));
            let body = match read {
                Ok(_) => document::fence(&String::from_utf8_lossy(&text)),
                Err(error) => format!("cannot be read: {error}"),
            };
            let head = document::fence(&with_home(&file, place.home.as_deref()));
            items.push(Item::Answer(format!("{head}\n{body}")));
        }
    }
    items
}

const CONTINUE: (&str, &str) = ("Go on in this folder", "for now; the session keeps its own");
const FORK: (&str, &str) = ("Fork it into this folder", "a copy that works here");

fn gone(cwd: &Path) -> String {
    format!("The folder of this session is no longer there: {}", cwd.display())
}

fn fork_of(path: &Path) -> SessionChoice {
    SessionChoice::Fork { source: path.to_string_lossy().into_owned(), id: None }
}

/// Whether another process holds the lock of a session file.
fn is_in_use(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    // host.md 12.8.
    #[test]
    fn a_held_session_is_known() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("s.jsonl");
        assert!(!is_in_use(&path));
        let file = File::create(&path).unwrap();
        assert!(!is_in_use(&path));
        file.lock().unwrap();
        assert!(is_in_use(&path));
        drop(file);
        assert!(!is_in_use(&path));
    }
}
