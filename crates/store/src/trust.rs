//! Whether the files of a project may act: what is gated, what was decided, and
//! the decision itself (`host.md` 5.6, `product.md` P-9c, P-14d).
//!
//! [`decide`] is pure; [`TrustStore`] reads and writes `trust.json`. Never asks
//! anybody; a face does, and stores the answer here.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Error, Result, io_error};
use crate::lock::DirLock;
use crate::settings::typed::DefaultTrust;
use crate::{files, paths};

/// Members of `.pi` that need trust (`host.md` 5.6.1, `product.md` P-9c).
pub const GATED: [&str; 11] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
    "agents",
    "pi-crew.json",
    "crew",
];

/// Lists what needs trust before it is used in a directory, as paths: gated
/// members of `.pi`, and `.agents/skills` there and above, the user's own
/// excepted (`host.md` 5.6.1).
pub fn gated(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let project = paths::project_dir(cwd);
    let members = GATED.iter().map(|name| project.join(name));
    let own = home.map(|home| paths::resolved(&home.join(".agents/skills")));
    let skills = cwd
        .ancestors()
        .map(|folder| folder.join(".agents/skills"))
        .filter(|folder| folder.is_dir() && own.as_ref() != Some(&paths::resolved(folder)));
    let exists = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    members.filter(exists).chain(skills).collect()
}

/// What a decision rests on (`host.md` 5.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustInput {
    /// `--approve` or `--no-approve`.
    pub option: Option<bool>,
    /// Whether anything gated exists.
    pub gated: bool,
    /// The stored decision that counts here.
    pub stored: Option<bool>,
    /// Setting `defaultProjectTrust` of the user file.
    pub default: DefaultTrust,
    /// Whether a person can be asked.
    pub interactive: bool,
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Somebody said yes.
    Trusted,
    /// Nothing is gated so far; what appears later is not covered
    /// (`product.md` P-14d).
    Implied,
    /// Gated resources are skipped.
    Untrusted,
    /// A person is to be asked.
    Ask,
}

impl Trust {
    /// Whether gated resources are used.
    pub fn allows(self) -> bool {
        match self {
            Trust::Trusted | Trust::Implied => true,
            Trust::Untrusted | Trust::Ask => false,
        }
    }
}

/// Decides (`host.md` 5.6.3).
pub fn decide(input: TrustInput) -> Trust {
    let said = |yes: bool| if yes { Trust::Trusted } else { Trust::Untrusted };
    if let Some(yes) = input.option.or(input.stored) {
        return said(yes);
    }
    if !input.gated {
        return Trust::Implied;
    }
    match input.default {
        DefaultTrust::Always => Trust::Trusted,
        DefaultTrust::Never => Trust::Untrusted,
        DefaultTrust::Ask if input.interactive => Trust::Ask,
        DefaultTrust::Ask => Trust::Untrusted,
    }
}

/// What a person may answer (`host.md` 5.6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Trust this folder.
    Folder,
    /// Trust the folder above and all in it.
    Parent,
    /// Trust for this session only.
    Session,
    /// Do not trust.
    No,
    /// Do not trust for this session.
    NotNow,
}

impl Choice {
    /// Whether gated resources are used from now on.
    pub fn trusts(self) -> bool {
        match self {
            Choice::Folder | Choice::Parent | Choice::Session => true,
            Choice::No | Choice::NotNow => false,
        }
    }

    /// What is stored: a folder and its decision, or nothing to remove its
    /// entry (`host.md` 5.6.4).
    pub fn changes(self, folder: &Path) -> Vec<(PathBuf, Option<bool>)> {
        let folder = paths::resolved(folder);
        match self {
            Choice::Folder => vec![(folder, Some(true))],
            Choice::No => vec![(folder, Some(false))],
            Choice::Session | Choice::NotNow => Vec::new(),
            Choice::Parent => match folder.parent() {
                Some(parent) => vec![(parent.to_owned(), Some(true)), (folder.clone(), None)],
                None => vec![(folder, Some(true))],
            },
        }
    }
}

/// `trust.json` (`host.md` 5.6.2).
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
}

impl TrustStore {
    /// The store of an agent directory.
    pub fn new(agent_dir: &Path) -> TrustStore {
        TrustStore { path: agent_dir.join("trust.json") }
    }

    /// The decision for a folder: that of the nearest entry at or above it. An
    /// unreadable or invalid store is an error.
    pub fn decision(&self, folder: &Path) -> Result<Option<bool>> {
        let stored = self.read()?;
        let folder = paths::resolved(folder);
        Ok(folder.ancestors().find_map(|at| stored.get(at.to_string_lossy().as_ref()).copied()))
    }

    /// Stores decisions under the lock; an invalid store is never overwritten.
    pub fn record(&self, changes: &[(PathBuf, Option<bool>)]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let _lock = DirLock::take(&self.path)?;
        let mut stored = self.read()?;
        for (folder, decision) in changes {
            let folder = folder.to_string_lossy().into_owned();
            match decision {
                Some(decision) => stored.insert(folder, *decision),
                None => stored.remove(&folder),
            };
        }
        let text = serde_json::to_string_pretty(&stored).unwrap_or_default() + "\n";
        files::replace(&self.path, text.as_bytes())
    }

    fn read(&self) -> Result<BTreeMap<String, bool>> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(io_error("read", &self.path)(error)),
        };
        let invalid = |reason: String| Error::Invalid { path: self.path.clone(), reason };
        let text = std::str::from_utf8(&bytes).map_err(|error| invalid(error.to_string()))?;
        let values: Map<String, Value> = serde_json::from_str(files::without_bom(text))
            .map_err(|error| invalid(error.to_string()))?;
        let mut stored = BTreeMap::new();
        for (folder, value) in values {
            match value.as_bool() {
                Some(decision) => {
                    stored.insert(folder, decision);
                }
                None if value.is_null() => {}
                None => {
                    return Err(invalid(format!(
                        "the decision for {folder} is neither true nor false"
                    )));
                }
            }
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_beat_stored_decisions_and_these_beat_the_setting() {
        // host.md 5.6.3, 11.99; product.md P-14d
        let check = |option, gated, stored, default, interactive, expected| {
            let input = TrustInput { option, gated, stored, default, interactive };
            assert_eq!(decide(input), expected, "{input:?}");
        };
        use DefaultTrust::{Always, Ask, Never};
        check(Some(true), true, Some(false), Never, false, Trust::Trusted);
        check(Some(false), false, Some(true), Always, false, Trust::Untrusted);
        check(None, true, Some(true), Never, false, Trust::Trusted);
        check(None, false, Some(false), Always, true, Trust::Untrusted);
        check(None, false, None, Never, true, Trust::Implied);
        check(None, true, None, Always, false, Trust::Trusted);
        check(None, true, None, Never, true, Trust::Untrusted);
        check(None, true, None, Ask, true, Trust::Ask);
        check(None, true, None, Ask, false, Trust::Untrusted);
    }

    #[test]
    fn members_of_the_project_folder_and_shared_skills_are_gated() {
        // host.md 5.6.1, product.md P-9c
        let world = tempfile::tempdir().unwrap();
        let home = paths::resolved(world.path());
        let cwd = home.join("a/b");
        fs::create_dir_all(cwd.join(".pi")).unwrap();
        fs::create_dir_all(home.join(".agents/skills")).unwrap();
        let check = |expected: &[&str]| {
            let found = gated(&cwd, Some(&home));
            let expected: Vec<PathBuf> = expected.iter().map(|path| home.join(path)).collect();
            assert_eq!(found, expected);
        };
        check(&[]);
        fs::write(cwd.join(".pi/other.md"), "").unwrap();
        check(&[]);
        fs::write(cwd.join(".pi/pi-crew.json"), "").unwrap();
        check(&["a/b/.pi/pi-crew.json"]);
        fs::create_dir_all(home.join("a/.agents/skills")).unwrap();
        check(&["a/b/.pi/pi-crew.json", "a/.agents/skills"]);
    }

    #[test]
    fn the_nearest_entry_with_a_decision_wins() {
        // host.md 5.6.2
        let world = tempfile::tempdir().unwrap();
        let root = paths::resolved(world.path());
        let store = TrustStore::new(&root);
        let (a, b, c) = (root.join("a"), root.join("a/b"), root.join("a/b/c"));
        fs::create_dir_all(&c).unwrap();
        assert_eq!(store.decision(&c).unwrap(), None);
        store.record(&[(a.clone(), Some(true)), (b.clone(), Some(false))]).unwrap();
        assert_eq!(store.decision(&a).unwrap(), Some(true));
        assert_eq!(store.decision(&c).unwrap(), Some(false));
        store.record(&Choice::Parent.changes(&b)).unwrap();
        assert_eq!(store.decision(&c).unwrap(), Some(true));
        let text = fs::read_to_string(root.join("trust.json")).unwrap();
        let a = serde_json::to_string(&a).unwrap();
        assert_eq!(text, format!("{{\n  {a}: true\n}}\n"));
        assert!(!root.join("trust.json.lock").exists());
    }

    #[test]
    fn an_invalid_store_is_an_error_and_stays_as_it_is() {
        // host.md 5.6.2
        let world = tempfile::tempdir().unwrap();
        let store = TrustStore::new(world.path());
        let path = world.path().join("trust.json");
        let check = |text: &str| {
            fs::write(&path, text).unwrap();
            let change = [(PathBuf::from("/x"), Some(true))];
            assert!(matches!(store.decision(Path::new("/x")), Err(Error::Invalid { .. })));
            assert!(matches!(store.record(&change), Err(Error::Invalid { .. })));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        };
        check("{");
        check("[]");
        check(r#"{"/x":"yes"}"#);
        fs::write(&path, r#"{"/x":null}"#).unwrap();
        assert_eq!(store.decision(Path::new("/x")).unwrap(), None);
    }
}
