//! Finds sessions: by project, by id, the latest one (`host.md` 2.1.2, 2.8.11,
//! 6.3.1).
//!
//! Reads only, and no more of a file than the question needs: the header for
//! finding, one pass for a row of the picker. Files that cannot be read are no
//! sessions here (2.2.8).

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crew_base::entry::{EntryBody, Header, read_line};
use crew_base::id::SessionId;
use crew_base::limits::{SESSION_HEADER_BYTES_MAX, SESSION_SEARCH_BYTES_MAX};
use crew_base::message::Message;
use crew_base::time::Time;

use crate::paths::{self, SessionFolder};
use crate::session::index::{Kind, Role};
use crate::session::project::read_message;
use crate::session::scan::{self, LineReader};

/// One row of a session list (`host.md` 2.8.11).
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The file.
    pub path: PathBuf,
    /// The session.
    pub id: SessionId,
    /// Its working directory.
    pub cwd: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// File of the session it came from.
    pub parent: Option<String>,
    /// Time of its header, zero if that has none.
    pub created: Time,
    /// Its last user or assistant message, else the header, else the file.
    pub modified: Time,
    /// Number of `message` entries.
    pub messages: usize,
    /// What its own answers cost, in dollars.
    pub cost: f64,
    /// The first prompt, empty if there is none.
    pub first_text: String,
    /// Prompts and answers, cut at a bound.
    pub search_text: String,
}

/// What an argument like that of `--session` names (`host.md` 6.3.1).
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It is a path, existing or not.
    Path(PathBuf),
    /// A session of this project.
    Here(PathBuf),
    /// A session of another project.
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// Where that session works.
        cwd: String,
    },
    /// No session has that id.
    Nothing,
}

/// A session file that was only glanced at.
struct Head {
    path: PathBuf,
    header: Header,
}

/// Yields the session of a directory that was written last, by the time of its
/// file (`host.md` 2.8.11).
pub fn latest(folder: &SessionFolder, cwd: &Path) -> Option<PathBuf> {
    let cwd = paths::resolved(cwd);
    let belongs = |head: &Head| belongs(&head.header, &cwd);
    heads(&folder.path).find(belongs).map(|head| head.path)
}

/// Lists the sessions of a directory, last modified first.
pub fn list(folder: &SessionFolder, cwd: &Path) -> Vec<Summary> {
    let cwd = paths::resolved(cwd);
    let own = heads(&folder.path).filter(|head| belongs(&head.header, &cwd));
    summaries(own)
}

/// Lists the sessions of all directories, last modified first.
pub fn list_all(folder: &SessionFolder) -> Vec<Summary> {
    summaries(everywhere(folder).into_iter())
}

/// Resolves a session argument: a path if it looks like one, else an id or the
/// beginning of one, this project first (`host.md` 6.3.1). Of several that
/// begin so the one written last is meant.
pub fn find(argument: &str, folder: &SessionFolder, cwd: &Path, home: Option<&Path>) -> Found {
    if argument.contains(['/', '\\']) || argument.ends_with(".jsonl") {
        return Found::Path(paths::expand(argument, home, cwd));
    }
    if argument.is_empty() {
        return Found::Nothing;
    }
    let here = paths::resolved(cwd);
    let own: Vec<Head> = heads(&folder.path).filter(|head| belongs(&head.header, &here)).collect();
    if let Some(head) = by_id(own, argument) {
        return Found::Here(head.path);
    }
    match by_id(everywhere(folder), argument) {
        None => Found::Nothing,
        Some(head) => Found::Elsewhere { path: head.path, cwd: head.header.cwd },
    }
}

/// Finds a session of this project by its whole id (`host.md` 6.3.3).
pub fn by_exact_id(id: &str, folder: &SessionFolder, cwd: &Path) -> Option<PathBuf> {
    let here = paths::resolved(cwd);
    let is_it = |head: &Head| head.header.id.as_str() == id && belongs(&head.header, &here);
    heads(&folder.path).find(is_it).map(|head| head.path)
}

/// Reads the header of a file, within the bound for listing (`host.md` 2.2.8).
pub fn header(path: &Path) -> Option<Header> {
    const GLANCE_BYTES: usize = 4096;
    let file = File::open(path).ok()?.take(SESSION_HEADER_BYTES_MAX as u64);
    let mut reader = BufReader::with_capacity(GLANCE_BYTES, file);
    let mut lines = LineReader::new(&mut reader);
    while let Some(line) = lines.next().ok()? {
        let (line, _) = line.trimmed();
        if scan::peek(line.bytes).is_some() {
            return scan::header(line.bytes).map(|(header, _)| header);
        }
    }
    None
}

fn by_id(mut heads: Vec<Head>, text: &str) -> Option<Head> {
    let exact = |head: &Head| head.header.id.as_str() == text;
    let begins = |head: &Head| head.header.id.as_str().starts_with(text);
    let at = heads.iter().position(exact).or_else(|| heads.iter().position(begins))?;
    Some(heads.swap_remove(at))
}

/// The header's directory decides, since the name of a folder can stand for
/// several; `cwd` is resolved.
fn belongs(header: &Header, cwd: &Path) -> bool {
    header.cwd.is_empty() || paths::resolved(Path::new(&header.cwd)) == cwd
}

/// The sessions that lie directly in a folder, last written first; headers are
/// read as the list is walked.
fn heads(folder: &Path) -> impl Iterator<Item = Head> {
    let mut files: Vec<(u64, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|item| item.ok().map(|item| item.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .filter_map(|path| Some((written(&path)?, path)))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    files.into_iter().filter_map(|(_, path)| {
        let header = header(&path)?;
        Some(Head { path, header })
    })
}

/// Time of the last write of a regular file in nanoseconds.
fn written(path: &Path) -> Option<u64> {
    let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let modified = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(modified.as_nanos()).ok()
}

/// The sessions of all projects: those of a shared folder, then those in the
/// folders of the agent directory.
fn everywhere(folder: &SessionFolder) -> Vec<Head> {
    let mut all = Vec::new();
    if folder.custom {
        all.extend(heads(&folder.path));
    }
    let folders = fs::read_dir(&folder.root).into_iter().flatten();
    for project in folders.filter_map(Result::ok) {
        all.extend(heads(&project.path()));
    }
    all
}

fn summaries(heads: impl Iterator<Item = Head>) -> Vec<Summary> {
    let mut rows: Vec<Summary> = heads.filter_map(summary).collect();
    rows.sort_by(|a, b| b.modified.cmp(&a.modified).then(b.path.cmp(&a.path)));
    rows
}

fn summary(head: Head) -> Option<Summary> {
    let created = scan::time_of(&head.header.timestamp);
    let mut row = Summary {
        id: head.header.id,
        cwd: head.header.cwd,
        name: None,
        parent: head.header.parent_session,
        created,
        modified: Time(0),
        messages: 0,
        cost: 0.0,
        first_text: String::new(),
        search_text: String::new(),
        path: head.path,
    };
    let file = File::open(&row.path).ok()?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut lines = LineReader::new(&mut reader);
    while let Ok(Some(line)) = lines.next() {
        let (line, _) = line.trimmed();
        if let Some(peek) = scan::peek(line.bytes)
            && let Some(kind) = peek.entry_kind()
        {
            take(&mut row, kind, line.bytes);
        }
    }
    if row.modified == Time(0) {
        row.modified = created;
    }
    if row.modified == Time(0) {
        row.modified = Time(written(&row.path)? / 1_000_000);
    }
    Some(row)
}

fn take(row: &mut Summary, kind: Kind, line: &[u8]) {
    match kind {
        Kind::Message(role) => {
            row.messages += 1;
            let is_talk = matches!(role, Role::User | Role::Assistant);
            if is_talk && let Some(message) = read_message(role, &String::from_utf8_lossy(line)) {
                row.modified = row.modified.max(message.timestamp());
                if let Message::Assistant(answer) = &message {
                    row.cost += answer.usage.cost.total;
                }
                take_text(row, &message);
            }
        }
        Kind::SessionInfo => {
            if let Ok(entry) = read_line(&String::from_utf8_lossy(line))
                && let EntryBody::SessionInfo { name } = entry.body
            {
                row.name = name.filter(|name| !name.is_empty());
            }
        }
        Kind::ModelChange
        | Kind::ThinkingLevelChange
        | Kind::Compaction
        | Kind::BranchSummary
        | Kind::ContextEdit
        | Kind::Custom
        | Kind::CustomMessage
        | Kind::Label
        | Kind::Usage
        | Kind::Unknown => {}
    }
}

fn take_text(row: &mut Summary, message: &Message) {
    let text = match message {
        Message::User(message) => {
            let text = message.content.text();
            if row.first_text.is_empty() {
                row.first_text.clone_from(&text);
            }
            text
        }
        Message::Assistant(message) => message.text(),
        Message::System(_)
        | Message::ToolResult(_)
        | Message::BashExecution(_)
        | Message::Custom(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_) => return,
    };
    let room = SESSION_SEARCH_BYTES_MAX.saturating_sub(row.search_text.len() + 1);
    let end = text.floor_char_boundary(room.min(text.len()));
    if end > 0 {
        row.search_text.push_str(&text[..end]);
        row.search_text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    struct World {
        root: tempfile::TempDir,
        a: PathBuf,
        b: PathBuf,
    }

    fn world() -> World {
        let root = tempfile::tempdir().unwrap();
        let (a, b) = (root.path().join("p/x-y"), root.path().join("p/x/y"));
        fs::create_dir_all(&a).unwrap();
        fs::create_dir_all(&b).unwrap();
        World { a, b, root }
    }

    impl World {
        fn folder(&self, cwd: &Path, custom: Option<&str>) -> SessionFolder {
            let custom = custom.map(|name| self.root.path().join(name));
            SessionFolder::new(&self.root.path().join("agent"), cwd, custom)
        }

        /// Writes a session `age` seconds old.
        fn session(&self, folder: &SessionFolder, id: &str, cwd: &Path, age: u64) -> PathBuf {
            let message = |role: &str, at: u64, text: &str| {
                format!(
                    r#"{{"type":"message","id":"e{at}","parentId":null,"timestamp":"t","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop","timestamp":{at}}}}}"#
                )
            };
            let cwd = cwd.to_string_lossy();
            let text = [
                format!(
                    r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-11-30T13:43:03.766Z","cwd":"{cwd}"}}"#
                ),
                message("user", 1_900_000_000_000 - age * 1000, "first prompt"),
                message("assistant", 1_900_000_000_001 - age * 1000, "an answer"),
                r#"{"type":"session_info","id":"n","parentId":null,"timestamp":"t","name":"named"}"#.into(),
                r#"{"type":"session_info","id":"m","parentId":null,"timestamp":"t","name":""}"#.into(),
            ];
            fs::create_dir_all(&folder.path).unwrap();
            let path = folder.path.join(format!("{id}.jsonl"));
            fs::write(&path, text.join("\n")).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
            path
        }
    }

    #[test]
    fn the_directory_in_the_header_decides_when_projects_share_a_folder() {
        // host.md 2.1.1, 2.1.2, 11.21
        let w = world();
        for custom in [None, Some("shared")] {
            let (fa, fb) = (w.folder(&w.a, custom), w.folder(&w.b, custom));
            assert_eq!(fa.path, fb.path, "the encoding is lossy");
            let old = w.session(&fa, "old", &w.a, 100);
            let own = w.session(&fa, "own", &w.a, 50);
            let other = w.session(&fb, "other", &w.b, 10);
            fs::write(fa.path.join("notes.jsonl"), "{\"a\":1}\n").unwrap();
            fs::create_dir_all(fa.path.join("crew")).unwrap();
            w.session(
                &SessionFolder { path: fa.path.join("crew"), ..fa.clone() },
                "child",
                &w.a,
                1,
            );
            assert_eq!(latest(&fa, &w.a), Some(own.clone()));
            assert_eq!(latest(&fb, &w.b), Some(other));
            let listed: Vec<_> = list(&fa, &w.a).into_iter().map(|row| row.path).collect();
            assert_eq!(listed, [own, old], "children are not listed (C131)");
        }
    }

    #[test]
    fn a_row_tells_what_the_picker_shows() {
        // host.md 2.8.11, 11.23
        let w = world();
        let folder = w.folder(&w.a, None);
        w.session(&folder, "own", &w.a, 0);
        let row = list(&folder, &w.a).remove(0);
        assert_eq!((row.id.as_str(), row.name, row.messages), ("own", None, 2));
        assert_eq!(row.created, Time(1_796_046_183_766));
        assert_eq!(row.modified, Time(1_900_000_000_001));
        assert_eq!(row.first_text, "first prompt");
        assert_eq!(row.search_text, "first prompt\nan answer\n");
    }

    #[test]
    fn an_argument_is_a_path_or_an_id_of_this_project_or_of_any() {
        // host.md 6.3.1
        let w = world();
        let (here, there) = (w.folder(&w.a, None), w.folder(w.root.path(), None));
        let first = w.session(&here, "abc-1", &w.a, 20);
        let second = w.session(&here, "abc-12", &w.a, 10);
        let far = w.session(&there, "abd", w.root.path(), 5);
        let check = |argument: &str, expected: Found| {
            assert_eq!(find(argument, &here, &w.a, None), expected, "{argument}");
        };
        check("abc-1", Found::Here(first.clone()));
        check("abc", Found::Here(second.clone()));
        check("ab", Found::Here(second));
        let cwd = w.root.path().to_string_lossy().into_owned();
        check("abd", Found::Elsewhere { path: far, cwd });
        check("zzz", Found::Nothing);
        check("", Found::Nothing);
        check("x.jsonl", Found::Path(w.a.join("x.jsonl")));
        check("../s/t", Found::Path(w.root.path().join("p/s/t")));
        assert_eq!(by_exact_id("abc-1", &here, &w.a), Some(first));
        assert_eq!(by_exact_id("abc", &here, &w.a), None, "6.3.3, 11.22");
    }

    #[test]
    fn a_header_beyond_the_bound_is_not_listed() {
        // host.md 2.2.8, 11.10
        let w = world();
        let folder = w.folder(&w.a, None);
        let path = w.session(&folder, "own", &w.a, 0);
        let text = fs::read_to_string(&path).unwrap();
        let filler = format!("{{\"x\":\"{}\",", "y".repeat(SESSION_HEADER_BYTES_MAX));
        fs::write(&path, text.replacen('{', &filler, 1)).unwrap();
        assert_eq!(latest(&folder, &w.a), None);
        assert_eq!(list(&folder, &w.a), []);
    }
}
