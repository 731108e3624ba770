//! Changes files of a person, all or none, also when the process is killed in
//! the middle.
//!
//! The folder of a change holds `new/` (what is to stand, by path), `old/<n>`
//! (what stood, by number) and the journal, which is on disk before the first
//! file of the person is touched. Invariant: a file that is not what was
//! planned for is put back as it was found; what a person wrote meanwhile is
//! never removed. Read `swap::undo` for the way back, which a restart takes
//! too, and `swap::head` for moving a branch along.

mod exchange;
pub(crate) mod head;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::bytes::{self, shown_path};
use crate::error::{Result, io_error};
use crate::git::Git;
use crate::slot::write_json;
use exchange::Placed;
use head::HeadMove;
pub(crate) use undo::{is_under_way, read, recover};

const JOURNAL: &str = "journal.json";

/// What stands, or is to stand, at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    Absent,
    /// Permission bits; the bytes are in the folder of the change.
    File(u32),
    /// Where the link leads.
    Link(Vec<u8>),
    /// A folder or a special file; nothing is ever changed there.
    Other,
}

/// One path to change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Relative to the root.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) path: PathBuf,
    pub(crate) old: Shape,
    pub(crate) new: Shape,
    /// Of the kept file.
    number: usize,
    /// A name beside the path, or above it, for the moment of the exchange.
    #[serde(with = "bytes::as_numbers")]
    temporary: PathBuf,
}

/// A change that is planned or under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    #[serde(with = "bytes::as_numbers")]
    root: PathBuf,
    /// Names the repository, for its lock.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) common_dir: PathBuf,
    steps: Vec<Step>,
    /// Folders above removed paths with their modes, outer ones first.
    folders: Vec<(Vec<u8>, u32)>,
    /// A folder that is never removed, even if it becomes empty.
    #[serde(with = "bytes::as_numbers")]
    keep: PathBuf,
    head: Option<HeadMove>,
}

/// Why a change was not made; nothing of it is left.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) why: String,
    /// What could not be put back, since somebody changed it meanwhile.
    pub(crate) warnings: Vec<String>,
}

/// A change with its folder.
pub(crate) struct Swap<'a> {
    pub(crate) git: Git<'a>,
    /// Folder of the change; has `old/` and `new/`.
    pub(crate) folder: &'a Path,
    /// Top of the person's tree.
    pub(crate) root: &'a Path,
}

impl Swap<'_> {
    /// Keeps what stands at a path and says what it is. `number` is the place
    /// of the path among the steps, `all` are their paths: a folder counts as
    /// nothing where all files in it change too, since they may leave it empty.
    pub(crate) fn keep_old(
        &self,
        number: usize,
        path: &Path,
        all: &BTreeSet<PathBuf>,
    ) -> Result<Shape> {
        if is_behind_link(self.root, path) {
            return Ok(Shape::Absent);
        }
        let from = self.root.join(path);
        let old = self.old_content(number);
        let shape = match shape(&from) {
            Ok(Shape::File(mode)) => {
                fs::copy(&from, &old).map_err(io_error("copy", &from))?;
                Shape::File(mode)
            }
            Ok(Shape::Other) if self.folders_in(path, all).is_some() => Shape::Absent,
            other => other.map_err(io_error("read", &from))?,
        };
        Ok(shape)
    }

    pub(crate) fn old_content(&self, number: usize) -> PathBuf {
        self.folder.join("old").join(number.to_string())
    }

    pub(crate) fn new_content(&self, path: &Path) -> PathBuf {
        self.folder.join("new").join(path)
    }

    /// Puts the steps into an order and drops those that change nothing.
    pub(crate) fn journal(
        &self,
        common_dir: &Path,
        keep: &Path,
        steps: Vec<(PathBuf, Shape, Shape)>,
        head: Option<HeadMove>,
    ) -> Journal {
        // Names that nothing in the tree has.
        let token = head::token(self.folder);
        let all: BTreeSet<PathBuf> = steps.iter().map(|(path, ..)| path.clone()).collect();
        let mut folders = BTreeSet::new();
        let mut numbered = Vec::new();
        for (number, (path, old, new)) in steps.into_iter().enumerate() {
            // Nothing on both sides may still mean a folder for other paths.
            let is_nothing = old == Shape::Absent && new == Shape::Absent;
            let content = self.new_content(&path);
            if is_nothing || old == new && is_same(&old, &self.old_content(number), &content) {
                continue;
            }
            if new == Shape::Absent {
                folders.extend(folders_above(&path).into_iter().map(Path::to_owned));
            } else if old == Shape::Absent {
                folders.extend(self.folders_in(&path, &all).unwrap_or_default());
            }
            let temporary = self.nearest_folder(&path).join(format!(".{token}-{number}"));
            numbered.push(Step { path, old, new, number, temporary });
        }
        let mode = |path: &Path| fs::symlink_metadata(self.root.join(path)).ok();
        let folders = folders.iter().filter_map(|path| {
            Some((bytes::of(path).to_vec(), mode(path)?.permissions().mode() & 0o7777))
        });
        Journal {
            root: self.root.to_owned(),
            common_dir: common_dir.to_owned(),
            steps: numbered,
            folders: folders.collect(),
            keep: keep.to_owned(),
            head,
        }
    }

    /// A folder and all folders in it, if every file in them is one of `all`.
    fn folders_in(&self, path: &Path, all: &BTreeSet<PathBuf>) -> Option<Vec<PathBuf>> {
        let mut folders = vec![path.to_owned()];
        let mut at = 0;
        while at < folders.len() {
            let folder = folders[at].clone();
            for entry in fs::read_dir(self.root.join(&folder)).ok()? {
                let entry = entry.ok()?;
                let path = folder.join(entry.file_name());
                if entry.file_type().ok()?.is_dir() {
                    folders.push(path);
                } else if !all.contains(&path) {
                    return None;
                }
            }
            at += 1;
        }
        Some(folders)
    }

    /// The closest real folder above a path.
    fn nearest_folder(&self, path: &Path) -> PathBuf {
        let seen = path.ancestors().find(|at| !is_behind_link(self.root, at));
        let path = seen.unwrap_or(path);
        let is_folder =
            |at: &&Path| fs::symlink_metadata(self.root.join(at)).is_ok_and(|meta| meta.is_dir());
        path.ancestors().skip(1).find(is_folder).unwrap_or(Path::new("")).to_owned()
    }

    /// Makes the change. Once the journal stands a cancel is too late.
    pub(crate) fn run(&self, journal: &Journal) -> Result<(), Refused> {
        let refused = |why: String| Refused { why, warnings: Vec::new() };
        self.check(journal).map_err(refused)?;
        self.git.check().map_err(|error| refused(error.to_string()))?;
        write_json(&self.folder.join(JOURNAL), journal)
            .map_err(|error| refused(error.to_string()))?;
        let certain = Swap { git: self.git.certain(), ..*self };
        let mut done = BTreeSet::new();
        match certain.steps(journal, &mut done) {
            Ok(()) => {
                // The change stands; a journal that stays says so too.
                let _ = fs::remove_file(self.folder.join(JOURNAL));
                Ok(())
            }
            Err(why) => {
                let undone = undo::undo(&certain.git, self.folder, journal, Some(&done));
                Err(Refused { why, warnings: undone.warnings })
            }
        }
    }

    /// Refuses what cannot be done without touching anything.
    fn check(&self, journal: &Journal) -> Result<(), String> {
        let removed: BTreeSet<&Path> = journal
            .steps
            .iter()
            .filter(|step| step.new == Shape::Absent)
            .map(|step| step.path.as_path())
            .collect();
        for step in &journal.steps {
            // A child can make a commit of any tree.
            if !is_file_of_a_tree(&step.path) {
                return Err(format!("`{}` is no name for a file", shown_path(&step.path)));
            }
            if step.old == Shape::Other || step.new == Shape::Other {
                return Err(format!("`{}` is no file", shown_path(&step.path)));
            }
            for above in folders_above(&step.path).into_iter().rev() {
                let is_way = match shape(&self.root.join(above)) {
                    Ok(Shape::Other) if self.root.join(above).is_dir() => continue,
                    // What lies behind is made, or was hidden.
                    Ok(Shape::Absent) => true,
                    Ok(Shape::File(_) | Shape::Link(_)) => removed.contains(above),
                    Ok(Shape::Other) | Err(_) => false,
                };
                if is_way {
                    break;
                }
                return Err(format!("`{}` is no folder", shown_path(above)));
            }
        }
        Ok(())
    }

    /// Makes the change; `done` gets the numbers of the steps that were made.
    fn steps(&self, journal: &Journal, done: &mut BTreeSet<usize>) -> Result<(), String> {
        let said = |path: &Path, error: io::Error| format!("`{}`: {error}", shown_path(path));
        let (gone, set): (Vec<_>, Vec<_>) =
            journal.steps.iter().partition(|step| step.new == Shape::Absent);
        // All content first: a full disk is found while nothing has changed.
        for step in &set {
            let written = self.write(&step.new, &self.new_content(&step.path), &step.temporary);
            written.map_err(|error| said(&step.path, error))?;
        }
        let lock = journal.head.as_ref().map(|head| head.lock(&self.git, self.folder));
        let lock = lock.transpose()?;
        for step in gone {
            self.take_away(step)?;
            done.insert(step.number);
        }
        for (folder, _) in journal.folders.iter().rev() {
            let folder = bytes::path(folder);
            if !journal.keep.starts_with(&folder) {
                // Fails where something is left in it, as it should.
                let _ = fs::remove_dir(self.root.join(folder));
            }
        }
        for step in set {
            if let Some(above) = self.root.join(&step.path).parent() {
                fs::create_dir_all(above).map_err(|error| said(&step.path, error))?;
            }
            self.put(step)?;
            done.insert(step.number);
        }
        match lock {
            Some(lock) => lock.finish(&self.git, self.folder),
            None => Ok(()),
        }
    }

    /// Writes content to a name below the root that is not taken.
    fn write(&self, shape: &Shape, content: &Path, to: &Path) -> io::Result<()> {
        write_shape(shape, content, &self.root.join(to))
    }

    fn take_away(&self, step: &Step) -> Result<(), String> {
        let (at, aside) = (self.root.join(&step.path), self.root.join(&step.temporary));
        let said = |error: io::Error| format!("`{}`: {error}", shown_path(&step.path));
        exchange::place(&at, &aside).map_err(said)?;
        if !is_same(&step.old, &self.old_content(step.number), &aside) {
            exchange::place(&aside, &at).map_err(said)?;
            return Err(changed_meanwhile(&step.path));
        }
        fs::remove_file(&aside).map_err(said)
    }

    fn put(&self, step: &Step) -> Result<(), String> {
        let (at, fresh) = (self.root.join(&step.path), self.root.join(&step.temporary));
        let said = |error: io::Error| match error.kind() == io::ErrorKind::AlreadyExists {
            true => changed_meanwhile(&step.path),
            false => format!("`{}`: {error}", shown_path(&step.path)),
        };
        if step.old == Shape::Absent {
            return exchange::place(&fresh, &at).map_err(said);
        }
        let is_expected = |at: &Path| is_same(&step.old, &self.old_content(step.number), at);
        match exchange::exchange(&fresh, &at, is_expected).map_err(said)? {
            Placed::Exchanged if is_expected(&fresh) => fs::remove_file(&fresh).map_err(said),
            Placed::Exchanged => {
                // Somebody wrote in between: theirs goes back to its place.
                exchange::exchange(&fresh, &at, |_| true).map_err(said)?;
                Err(changed_meanwhile(&step.path))
            }
            Placed::Replaced => Ok(()),
            Placed::Refused => Err(changed_meanwhile(&step.path)),
        }
    }
}

/// The folders that a path lies in, inner ones first, without the root.
fn folders_above(path: &Path) -> Vec<&Path> {
    path.ancestors().skip(1).filter(|above| *above != Path::new("")).collect()
}

/// Whether a folder above a path is a link: then nothing of the tree is there.
fn is_behind_link(root: &Path, path: &Path) -> bool {
    let is_link = |above: &&Path| matches!(shape(&root.join(above)), Ok(Shape::Link(_)));
    folders_above(path).iter().any(is_link)
}

/// Whether a path stays below the root and out of every git directory.
fn is_file_of_a_tree(path: &Path) -> bool {
    let is_good = |part: Component<'_>| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    };
    path.components().next().is_some() && path.components().all(is_good)
}

fn changed_meanwhile(path: &Path) -> String {
    format!("`{}` was changed meanwhile", shown_path(path))
}

/// What stands at a path.
pub(crate) fn shape(path: &Path) -> io::Result<Shape> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            let is_loop = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
            let is_absent = is_loop
                || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
            return if is_absent { Ok(Shape::Absent) } else { Err(error) };
        }
    };
    Ok(if meta.is_symlink() {
        Shape::Link(fs::read_link(path)?.into_os_string().into_vec())
    } else if meta.is_file() {
        Shape::File(meta.permissions().mode() & 0o7777)
    } else {
        Shape::Other
    })
}

/// Makes a file or link of this shape at a name that is not taken.
fn write_shape(shape: &Shape, content: &Path, to: &Path) -> io::Result<()> {
    match shape {
        Shape::File(mode) => {
            let mut from = File::open(content)?;
            let mut file = File::options().write(true).create_new(true).open(to)?;
            file.set_permissions(Permissions::from_mode(*mode))?;
            io::copy(&mut from, &mut file).map(drop)
        }
        Shape::Link(target) => symlink(bytes::path(target), to),
        Shape::Absent | Shape::Other => Ok(()),
    }
}

/// Whether what stands at a path has this shape and these bytes; modes may
/// differ.
pub(crate) fn is_same(expected: &Shape, content: &Path, at: &Path) -> bool {
    match (expected, shape(at)) {
        (Shape::File(_), Ok(Shape::File(_))) => has_same_bytes(content, at).unwrap_or(false),
        (expected, Ok(now)) => *expected == now,
        (_, Err(_)) => false,
    }
}

/// As [`is_same`], modes included.
fn is_exactly(expected: &Shape, content: &Path, at: &Path) -> bool {
    is_same(expected, content, at) && shape(at).is_ok_and(|now| now == *expected)
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let length = one.read(&mut a)?;
        if length == 0 {
            return Ok(true);
        }
        if other.read_exact(&mut b[..length]).is_err() || a[..length] != b[..length] {
            return Ok(false);
        }
    }
}
