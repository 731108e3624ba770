//! A repository of a person, copies of it, and what must not change.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crew_isolation::Copies;
use crew_task::isolation::{Capture, Integration, Merged, Plan, Prepared};
use crew_task::settings::{Backend, Merge};
use tempfile::TempDir;

pub(crate) const BACKENDS: [Backend; 2] = [Backend::Worktree, Backend::Copy];

/// Never cancels.
pub(crate) fn never() -> bool {
    false
}

/// What stands at a path: kind, mode and content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    File(u32, Vec<u8>),
    Link(PathBuf),
}

/// All files of a folder but those of git.
pub(crate) type Tree = BTreeMap<PathBuf, Thing>;

pub(crate) struct World {
    pub(crate) _dir: TempDir,
    /// The person's repository: a.txt, b.txt, dir/c.txt with twelve lines each.
    pub(crate) project: PathBuf,
    pub(crate) agent_dir: PathBuf,
    /// Where patches go.
    pub(crate) folder: PathBuf,
    pub(crate) copies: Copies,
    pub(crate) backend: Backend,
    pub(crate) merge: Merge,
    pub(crate) apply: bool,
}

/// A child that works.
pub(crate) struct Child {
    pub(crate) prepared: Prepared,
    pub(crate) warnings: Vec<String>,
    pub(crate) id: String,
}

impl World {
    pub(crate) fn new(backend: Backend) -> World {
        let world = World::empty(backend);
        for name in ["a.txt", "b.txt", "dir/c.txt"] {
            world.write(name, lines(name));
        }
        world.write(".gitignore", "ignored/\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "base"]);
        world
    }

    /// A repository without a commit.
    pub(crate) fn empty(backend: Backend) -> World {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let (project, folder) = (root.join("project"), root.join("session"));
        fs::create_dir(&project).unwrap();
        fs::create_dir(&folder).unwrap();
        let agent_dir = root.join("agent");
        let copies = Copies::new(None, agent_dir.clone());
        let (merge, apply) = (Merge::Patch, true);
        let world = World { _dir: dir, project, agent_dir, folder, copies, backend, merge, apply };
        init(&world.project);
        world
    }

    pub(crate) fn branch(backend: Backend) -> World {
        World { merge: Merge::Branch, ..World::new(backend) }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.project.join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        write(&self.project, name, text);
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.project, args)
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }

    pub(crate) fn start(&self, id: &str) -> Child {
        self.start_in(id, &self.project)
    }

    pub(crate) fn start_in(&self, id: &str, cwd: &Path) -> Child {
        let (prepared, warnings) =
            self.copies.prepare(&plan(id, self.backend), cwd, &never).unwrap();
        Child { prepared, warnings, id: id.to_owned() }
    }

    pub(crate) fn capture(&self, child: &Child) -> Capture {
        Capture {
            handle: child.prepared.handle,
            id: child.id.clone(),
            folder: self.folder.to_str().unwrap().to_owned(),
            merge: self.merge,
            apply: self.apply,
            message: format!("work of {}", child.id),
            generated_message: false,
        }
    }

    pub(crate) fn finish(&self, child: &Child) -> Integration {
        let integration = self.copies.integrate(&self.capture(child), &never).unwrap();
        self.copies.discard(child.prepared.handle).unwrap();
        integration
    }

    /// Finishes and expects that all was applied without a word.
    pub(crate) fn applied(&self, child: &Child) -> Integration {
        let integration = self.finish(child);
        assert_eq!(integration.merged, Merged::Applied, "{}", integration.summary());
        assert_eq!((&integration.error, &integration.warnings), (&None, &Vec::new()));
        integration
    }

    pub(crate) fn patch(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.project)
    }

    /// HEAD, refs, logs, index and stash of the person, byte for byte.
    pub(crate) fn state(&self) -> Tree {
        let mut state = tree_of(&self.path(".git"), &|_| true);
        state.retain(|path, _| {
            let is_kept = ["refs", "logs"].iter().any(|name| path.starts_with(name));
            is_kept
                || ["HEAD", "index", "packed-refs", "config"]
                    .map(Path::new)
                    .contains(&path.as_path())
        });
        state
    }

    /// Names below the base, locks left out.
    pub(crate) fn slots(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.copies.base()) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "locks").collect()
    }
}

impl Child {
    pub(crate) fn cwd(&self) -> &Path {
        Path::new(&self.prepared.cwd)
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.cwd().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        write(self.cwd(), name, text);
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn append(&self, name: &str, text: &str) {
        self.write(name, self.read(name) + text);
    }

    pub(crate) fn remove(&self, name: impl AsRef<Path>) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(self.cwd(), args)
    }
}

pub(crate) fn plan(id: &str, backend: Backend) -> Plan {
    Plan { child: id.into(), id: id.to_owned(), parent: "parent".into(), backend }
}

/// Twelve numbered lines.
pub(crate) fn lines(name: &str) -> String {
    (0..12).map(|number| format!("{name} {number}\n")).collect()
}

/// Replaces one of these lines.
pub(crate) fn with_line(text: &str, number: usize, line: &str) -> String {
    let replaced = text.lines().enumerate();
    replaced.map(|(at, old)| format!("{}\n", if at == number { line } else { old })).collect()
}

pub(crate) fn write(root: &Path, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A path that is not text.
pub(crate) fn odd(bytes: &[u8]) -> OsString {
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}

pub(crate) fn tree(root: &Path) -> Tree {
    tree_of(root, &|name| name != ".git")
}

fn tree_of(root: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if !is_wanted(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                found.insert(path, Thing::Link(fs::read_link(entry.path()).unwrap()));
            } else {
                let thing = Thing::File(mode(&entry.path()), fs::read(entry.path()).unwrap());
                found.insert(path, thing);
            }
        }
    }
    found
}

/// Makes an empty repository of the person, without the samples of a template.
pub(crate) fn init(root: &Path) {
    git(root, &["init", "-q", "-b", "main", "--template="]);
    let config = root.join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + "[user]\n\tname = U\n\temail = u@x\n").unwrap();
}

/// Runs git as the person or the child would and gives its output, trimmed at
/// the end.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let (ok, out) = try_git(dir, args);
    assert!(ok, "git {}: {out}", args.join(" "));
    out
}

pub(crate) fn try_git(dir: &Path, args: &[&str]) -> (bool, String) {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    let who = [
        ("GIT_AUTHOR_NAME", "Kid"),
        ("GIT_AUTHOR_EMAIL", "k@x"),
        ("GIT_COMMITTER_NAME", "Kid"),
        ("GIT_COMMITTER_EMAIL", "k@x"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("LC_ALL", "C"),
    ];
    let output = command.envs(who).output().unwrap();
    let text = if output.status.success() { &output.stdout } else { &output.stderr };
    (output.status.success(), String::from_utf8_lossy(text).trim_end().to_owned())
}
