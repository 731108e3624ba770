//! Where things lie: agent directory, project directory, session folders and
//! session file names (`host.md` 1.1, 2.1).
//!
//! Pure functions over given values; reads neither environment nor disk, except
//! that [`resolved`] asks the disk what a path really is.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crew_base::entry::Header;

/// Looks up an environment variable; an empty value counts as unset.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Name of the folder for what only we understand (`host.md` 1.1.5).
pub const CREW_FOLDER: &str = "crew";

/// Yields the agent directory, absolute (`host.md` 1.1.1).
pub fn agent_dir(env: Environment<'_>, home: Option<&Path>, cwd: &Path) -> PathBuf {
    let configured = ["CREW_CODING_AGENT_DIR", "PI_CODING_AGENT_DIR"]
        .into_iter()
        .find_map(|name| env(name).filter(|value| !value.is_empty()));
    match configured {
        Some(path) => expand(&path, home, cwd),
        None => normal(&home.unwrap_or(cwd).join(".pi").join("agent")),
    }
}

/// Yields the project directory of a working directory (`host.md` 1.1.2).
pub fn project_dir(cwd: &Path) -> PathBuf {
    cwd.join(".pi")
}

/// Yields the custom session directory, if one is configured: `--session-dir`,
/// then the environment, then setting `sessionDir` (`host.md` 1.2.1). Relative
/// paths count from the working directory.
pub fn custom_session_dir(
    option: Option<&str>,
    env: Environment<'_>,
    setting: Option<&str>,
    home: Option<&Path>,
    cwd: &Path,
) -> Option<PathBuf> {
    let from_env = || {
        ["CREW_CODING_AGENT_SESSION_DIR", "PI_CODING_AGENT_SESSION_DIR"]
            .into_iter()
            .find_map(|name| env(name).filter(|value| !value.is_empty()))
    };
    option
        .map(str::to_owned)
        .or_else(from_env)
        .or_else(|| setting.map(str::to_owned))
        .filter(|path| !path.is_empty())
        .map(|path| expand(&path, home, cwd))
}

/// Expands a leading `~` or `~/` and makes the path absolute and free of `.`
/// and `..`, without asking the disk.
pub fn expand(path: &str, home: Option<&Path>, base: &Path) -> PathBuf {
    let expanded = match (path, home) {
        ("~", Some(home)) => home.to_owned(),
        (_, Some(home)) => match path.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => PathBuf::from(path),
        },
        (_, None) => PathBuf::from(path),
    };
    normal(&base.join(expanded))
}

/// Removes `.` and resolves `..` by text.
pub fn normal(path: &Path) -> PathBuf {
    let mut kept = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                kept.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => kept.push(part),
        }
    }
    kept
}

/// Yields the path with its links resolved, as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| normal(path))
}

/// Names the session folder of a working directory (`host.md` 2.1.1).
pub fn encoded_cwd(cwd: &Path) -> String {
    let text = cwd.to_string_lossy();
    let rest = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    format!("--{}--", rest.replace(['/', '\\', ':'], "-"))
}

/// Yields the folder that holds the session folders of all projects.
pub fn sessions_root(agent_dir: &Path) -> PathBuf {
    agent_dir.join("sessions")
}

/// Where the sessions of one project lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFolder {
    /// The folder; sessions are its direct `.jsonl` children.
    pub path: PathBuf,
    /// The sessions of all projects: the folder itself when it was configured,
    /// else the folder above it.
    pub root: PathBuf,
    /// Whether the folder was configured, so that projects share it
    /// (`host.md` 2.1.2).
    pub custom: bool,
}

impl SessionFolder {
    /// The session folder of a working directory (`host.md` 2.1.1, 2.1.2).
    pub fn new(agent_dir: &Path, cwd: &Path, custom: Option<PathBuf>) -> SessionFolder {
        let root = sessions_root(agent_dir);
        match custom {
            Some(path) => SessionFolder { path, root, custom: true },
            None => SessionFolder { path: root.join(encoded_cwd(cwd)), root, custom: false },
        }
    }

    /// The planned file of a new session in this folder.
    pub fn file(&self, header: &Header) -> PathBuf {
        self.path.join(session_file_name(header))
    }
}

/// Yields the folder for sessions of children: `crew/` beside the owner's file,
/// else in the session folder of the project (`host.md` 12.4, `crew.md` ISO-8).
pub fn child_folder(owner_file: Option<&Path>, session_folder: &Path) -> PathBuf {
    owner_file.and_then(Path::parent).unwrap_or(session_folder).join(CREW_FOLDER)
}

/// Names the file of a session (`host.md` 2.1.3).
pub fn session_file_name(header: &Header) -> String {
    let time = header.timestamp.replace([':', '.'], "-");
    format!("{time}_{}.jsonl", header.id)
}

/// Whether a text may be a custom session id (`host.md` 2.1.4).
pub fn is_session_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Shows a path with `/` separators (`host.md` 5.2.3).
pub fn with_slashes(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::entry::HeaderKind;

    #[test]
    fn the_agent_directory_is_the_first_that_is_set() {
        // host.md 1.1.1
        let check = |set: &[(&str, &str)], expected: &str| {
            let env = |name: &str| {
                let found = set.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let dir = agent_dir(&env, Some(Path::new("/home/me")), Path::new("/srv/x"));
            assert_eq!(dir, Path::new(expected));
        };
        check(&[], "/home/me/.pi/agent");
        check(&[("PI_CODING_AGENT_DIR", "~/p")], "/home/me/p");
        check(&[("PI_CODING_AGENT_DIR", "/p"), ("CREW_CODING_AGENT_DIR", "~")], "/home/me");
        check(&[("CREW_CODING_AGENT_DIR", ""), ("PI_CODING_AGENT_DIR", "../a/./b")], "/srv/a/b");
        check(&[("CREW_CODING_AGENT_DIR", "~other/x")], "/srv/x/~other/x");
    }

    #[test]
    fn the_session_directory_goes_by_option_environment_setting() {
        // host.md 1.2.1
        let none = |_: &str| None;
        let env = |name: &str| (name == "PI_CODING_AGENT_SESSION_DIR").then(|| "/env".to_owned());
        let home = Some(Path::new("/home/me"));
        let cwd = Path::new("/w");
        let dir = custom_session_dir(Some("o"), &env, Some("s"), home, cwd);
        assert_eq!(dir, Some("/w/o".into()));
        let dir = custom_session_dir(None, &env, Some("s"), home, cwd);
        assert_eq!(dir, Some("/env".into()));
        let dir = custom_session_dir(None, &none, Some("~/s"), home, cwd);
        assert_eq!(dir, Some("/home/me/s".into()));
        assert_eq!(custom_session_dir(None, &none, None, home, cwd), None);
    }

    #[test]
    fn session_folders_and_files_are_named_by_directory_and_header() {
        // host.md 2.1.1, 2.1.3, 12.4
        let check = |cwd: &str, name: &str| assert_eq!(encoded_cwd(Path::new(cwd)), name);
        check("/home/me/app", "--home-me-app--");
        check("C:\\work\\x", "--C--work-x--");
        let header = Header {
            kind: HeaderKind::Session,
            version: 3,
            id: "01a22cb1-dd55-7564-a692-da1488538842".into(),
            timestamp: "2026-11-30T13:43:03.766Z".into(),
            cwd: "/home/me/app".into(),
            parent_session: None,
        };
        let folder = SessionFolder::new(Path::new("/a"), Path::new("/home/me/app"), None);
        let file = folder.file(&header);
        assert_eq!(
            file,
            Path::new(
                "/a/sessions/--home-me-app--/2026-11-30T13-43-03-766Z_01a22cb1-dd55-7564-a692-da1488538842.jsonl"
            )
        );
        assert_eq!(child_folder(Some(&file), &folder.path), folder.path.join("crew"));
        assert_eq!(child_folder(None, Path::new("/s")), Path::new("/s/crew"));
    }

    #[test]
    fn custom_session_ids_have_no_punctuation_at_their_ends() {
        // host.md 2.1.4
        let check =
            |text: &str, expected: bool| assert_eq!(is_session_id(text), expected, "{text}");
        check("a", true);
        check("Fix-1.2_b", true);
        check("", false);
        check("-a", false);
        check("a.", false);
        check("a/b", false);
        check("a b", false);
    }
}
