//! Which session a run works in, and in which directory (`host.md` 2.3, 6.3).
//!
//! Reads headers only, and copies for `--fork`; opening is the runtime's.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, EntryBody, Header, HeaderKind, SESSION_VERSION};
use crew_base::id::{Ids, SessionId};
use crew_base::limits::SESSION_LINE_BYTES_MAX;
use crew_engine::Source;
use crew_runtime::SessionPlace;
use crew_store::error::Error as StoreError;
use crew_store::listing::{self, Found};
use crew_store::paths::SessionFolder;
use crew_store::session::copy::copy_all;
use crew_store::session::open::open;

use super::Place;
use crate::args::{Options, SessionChoice};
use crate::error::Error;

/// The session to open.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// Its id; `None` for a fresh one.
    pub(crate) session: Option<SessionId>,
    /// Where it comes from.
    pub(crate) source: Source,
    /// Where it works.
    pub(crate) cwd: PathBuf,
    /// Where sessions are kept.
    pub(crate) place: SessionPlace,
}

impl Start {
    /// A new session that is not kept.
    pub(crate) fn in_memory(cwd: PathBuf) -> Start {
        let source = Source::New { name: None };
        Start { session: None, source, cwd, place: SessionPlace::Memory }
    }
}

/// Decides by the options (`host.md` 6.3).
pub(crate) fn choose(
    options: &Options,
    place: &Place,
    folder: SessionFolder,
    warnings: &mut Vec<String>,
) -> Result<Start, Error> {
    let new = |session: Option<SessionId>, place_of: SessionPlace| Start {
        session,
        source: Source::New { name: options.name.clone() },
        cwd: place.cwd.clone(),
        place: place_of,
    };
    if options.session == SessionChoice::Memory {
        return Ok(new(None, SessionPlace::Memory));
    }
    if !folder.custom && !place.has_agent_dir() {
        return Err(Error::NoHome);
    }
    let path = match &options.session {
        SessionChoice::New | SessionChoice::Memory => None,
        SessionChoice::Latest => listing::latest(&folder, &place.cwd),
        SessionChoice::Id(id) => {
            let found = listing::by_exact_id(id, &folder, &place.cwd);
            if found.is_none() {
                warnings.push(format!("there is no session {id} here yet; it is made"));
                return Ok(new(Some(SessionId::new(id.as_str())), SessionPlace::Folder(folder)));
            }
            found
        }
        SessionChoice::Named(text) => Some(named(text, place, &folder)?),
        SessionChoice::Here(path) => Some(path.clone()),
        SessionChoice::Fork { source, id } => Some(fork(source, id.as_deref(), place, &folder)?),
    };
    let Some(path) = path else {
        return Ok(new(None, SessionPlace::Folder(folder)));
    };
    let is_here = matches!(options.session, SessionChoice::Here(_));
    let keeps_cwd = is_here || options.session == SessionChoice::Latest;
    let mut start = of_file(path.clone(), place, folder, keeps_cwd)?;
    if let (Some(name), Some(_)) = (&options.name, &start.session) {
        rename(&path, name)?;
    }
    if is_here {
        start.source = Source::FileHere(path.to_string_lossy().into_owned());
    }
    Ok(start)
}

/// Gives a stored session another name; an empty one takes it away.
pub(crate) fn rename(path: &Path, name: &str) -> Result<(), StoreError> {
    let unused = Header {
        kind: HeaderKind::Session,
        version: SESSION_VERSION,
        id: SessionId::new(""),
        timestamp: String::new(),
        cwd: String::new(),
        parent_session: None,
    };
    let mut opened = open(path, unused, true)?;
    let name = crew_base::text::sanitise_inline(name);
    let mut taken = opened.log.index().taken();
    let entry = Entry {
        id: Ids::new(crate::wiring::seed()).entry(&mut taken),
        parent_id: opened.log.last().cloned(),
        timestamp: crew_runtime::clock::now().iso(),
        body: EntryBody::SessionInfo { name: (!name.is_empty()).then_some(name) },
    };
    opened.log.append(&entry)
}

fn named(text: &str, place: &Place, folder: &SessionFolder) -> Result<PathBuf, Error> {
    match listing::find(text, folder, &place.cwd, place.home.as_deref()) {
        Found::Path(path) | Found::Here(path) => Ok(path),
        Found::Elsewhere { path, cwd } => Err(Error::SessionElsewhere { path, cwd }),
        Found::Nothing => Err(Error::NoSuchSession(text.to_owned())),
    }
}

/// Copies a session of any directory into this one (`host.md` 2.8.7, 6.3.3).
pub(crate) fn fork(
    source: &str,
    id: Option<&str>,
    place: &Place,
    folder: &SessionFolder,
) -> Result<PathBuf, Error> {
    let path = match listing::find(source, folder, &place.cwd, place.home.as_deref()) {
        Found::Path(path) | Found::Here(path) | Found::Elsewhere { path, .. } => path,
        Found::Nothing => return Err(Error::NoSuchSession(source.to_owned())),
    };
    if let Some(known) = id.and_then(|id| listing::by_exact_id(id, folder, &place.cwd)) {
        return Err(StoreError::Exists { path: known }.into());
    }
    let now = crew_runtime::clock::now();
    let header = Header {
        kind: HeaderKind::Session,
        version: SESSION_VERSION,
        id: id.map_or_else(|| Ids::new(crate::wiring::seed()).session(now), SessionId::new),
        timestamp: now.iso(),
        cwd: place.cwd.to_string_lossy().into_owned(),
        parent_session: Some(path.to_string_lossy().into_owned()),
    };
    let target = folder.file(&header);
    copy_all(&path, header, &target)?;
    Ok(target)
}

/// A session by its file, which may be missing or empty: then it is made there
/// (`host.md` 2.2.5). It runs where its header says (2.3.2).
fn of_file(
    path: PathBuf,
    place: &Place,
    folder: SessionFolder,
    keeps_cwd: bool,
) -> Result<Start, Error> {
    let header = match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(source) => return Err(Error::File { path, source }),
        Ok(file) if file.is_file() && file.len() == 0 => None,
        Ok(_) => Some(header(&path)?),
    };
    let source = Source::File(path.to_string_lossy().into_owned());
    let Some(header) = header else {
        let (cwd, place) = (place.cwd.clone(), SessionPlace::Folder(folder));
        return Ok(Start { session: None, source, cwd, place });
    };
    let mut cwd = PathBuf::from(&header.cwd);
    if header.cwd.is_empty() || keeps_cwd {
        cwd.clone_from(&place.cwd);
    }
    if !cwd.is_dir() {
        return Err(Error::SessionFolderGone { path, cwd, here: place.cwd.clone() });
    }
    Ok(Start { session: Some(header.id), source, cwd, place: SessionPlace::Folder(folder) })
}

/// The header of a file, however long it is (`host.md` 2.2.8).
fn header(path: &Path) -> Result<Header, Error> {
    if let Some(header) = listing::header(path) {
        return Ok(header);
    }
    let read = || -> std::io::Result<Option<Header>> {
        let mut reader = BufReader::new(File::open(path)?).take(SESSION_LINE_BYTES_MAX as u64);
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line).ok())
    };
    match read() {
        Ok(Some(header)) => Ok(header),
        Ok(None) => Err(StoreError::NotASession { path: path.to_owned() }.into()),
        Err(source) => Err(Error::File { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;
    use std::sync::Arc;

    struct World {
        root: tempfile::TempDir,
        place: Place,
    }

    impl World {
        fn new() -> World {
            let root = tempfile::tempdir().unwrap();
            let at = |name: &str| {
                let path = root.path().join(name);
                std::fs::create_dir(&path).unwrap();
                path
            };
            let place = Place {
                environment: Environment(Arc::default()),
                cwd: at("project"),
                home: Some(at("home")),
                agent_dir: at("agent"),
            };
            World { place, root }
        }

        fn folder(&self) -> SessionFolder {
            SessionFolder::new(&self.place.agent_dir, &self.place.cwd, None)
        }

        fn session(&self, name: &str, id: &str, cwd: &Path) -> PathBuf {
            let folder = self.folder().path;
            std::fs::create_dir_all(&folder).unwrap();
            let cwd = cwd.to_string_lossy();
            let line = serde_json::json!({
                "type": "session", "version": 3, "id": id, "timestamp": "", "cwd": cwd
            });
            let path = folder.join(name);
            std::fs::write(&path, format!("{line}\n")).unwrap();
            path
        }

        fn choose(&self, session: SessionChoice) -> Result<Start, Error> {
            let options = Options { session, ..Options::default() };
            choose(&options, &self.place, self.folder(), &mut Vec::new())
        }
    }

    #[test]
    fn a_named_session_runs_where_its_header_says() {
        // host.md 2.3.2
        let world = World::new();
        let other = world.root.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let path = world.session("a.jsonl", "abc-1", &other);
        let named = SessionChoice::Named(path.to_string_lossy().into_owned());
        let start = world.choose(named).unwrap();
        assert_eq!((start.cwd, start.session), (other, Some(SessionId::new("abc-1"))));
    }

    #[test]
    fn a_session_whose_folder_is_gone_is_an_error_with_both_paths() {
        // host.md 2.3.3, 11.19
        let world = World::new();
        let path = world.session("a.jsonl", "abc-1", Path::new("/no/such/place"));
        let named = SessionChoice::Named(path.to_string_lossy().into_owned());
        let words = world.choose(named).unwrap_err().words();
        assert!(words.text.contains("/no/such/place"), "{}", words.text);
        assert!(words.hints.join("").contains("project"), "{:?}", words.hints);
    }

    #[test]
    fn a_session_that_exists_gets_the_name_that_is_given() {
        // host.md 6.2 `--name`
        let world = World::new();
        let cwd = world.place.cwd.clone();
        let path = world.session("a.jsonl", "abc-1", &cwd);
        let options = Options {
            session: SessionChoice::Named("abc".into()),
            name: Some("release notes".into()),
            ..Options::default()
        };
        choose(&options, &world.place, world.folder(), &mut Vec::new()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(r#""name":"release notes""#), "{text}");
    }

    #[test]
    fn a_session_whose_folder_is_gone_may_run_here() {
        // host.md 2.3.3
        let world = World::new();
        let path = world.session("a.jsonl", "abc-1", Path::new("/no/such/place"));
        let start = world.choose(SessionChoice::Here(path.clone())).unwrap();
        assert_eq!(start.cwd, world.place.cwd);
        assert!(matches!(start.source, Source::FileHere(file) if Path::new(&file) == path));
    }

    #[test]
    fn ids_are_found_by_their_beginning_or_exactly() {
        // host.md 6.3.1, 6.3.3, 11.22
        let world = World::new();
        let cwd = world.place.cwd.clone();
        world.session("a.jsonl", "abc-1", &cwd);
        let start = world.choose(SessionChoice::Named("abc".into())).unwrap();
        assert_eq!(start.session, Some(SessionId::new("abc-1")));
        let start = world.choose(SessionChoice::Id("abc".into())).unwrap();
        assert!(matches!(start.source, Source::New { .. }));
        let missing = world.choose(SessionChoice::Named("zzz".into()));
        assert!(matches!(missing, Err(Error::NoSuchSession(_))));
    }

    #[test]
    fn what_is_no_session_is_refused_and_what_is_missing_is_made() {
        // host.md 2.2.5
        let world = World::new();
        let path = world.root.path().join("x.jsonl");
        let choose = || world.choose(SessionChoice::Named(path.to_string_lossy().into_owned()));
        let made = choose().unwrap();
        assert!(made.session.is_none() && matches!(made.source, Source::File(_)));
        std::fs::write(&path, "").unwrap();
        assert!(choose().unwrap().session.is_none());
        std::fs::write(&path, "hello\n").unwrap();
        assert!(matches!(choose(), Err(Error::Store(StoreError::NotASession { .. }))));
    }

    #[test]
    fn without_a_home_nothing_is_written_anywhere() {
        let mut world = World::new();
        world.place.home = None;
        assert!(matches!(world.choose(SessionChoice::New), Err(Error::NoHome)));
        assert!(world.choose(SessionChoice::Memory).is_ok());
    }
}
