//! The place of one copy (ISO-3): a folder below the base with an owner mark
//! that is written before anything is copied.
//!
//! A slot belongs to a living host while that holds the lock on the mark or
//! while the process named in it lives; nobody else may touch it then. Layout:
//! `owner`, `copy.json`, `tree/` (the child's working tree), `git-<n>/` and
//! `index-<n>` (ours, per repository), `merge-<n>/` (a change under way).

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bytes;
use crate::error::{Result, io_error};
use crate::source::{Repository, make_private};

/// Characters of a name that a slot's name repeats.
const NAME_CHARS_MAX: usize = 40;
/// Ending of the name of a copy that is kept for a person (ISO-12).
const KEPT: &str = ".kept";

/// The folder of one copy, owned by this process until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) dir: PathBuf,
    /// Held locked while we live.
    _mark: File,
}

/// What the mark says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    /// Tells two processes with one number apart.
    pub(crate) started: String,
    /// Id of the child.
    pub(crate) child: String,
}

/// What is known about a copy, as kept in its slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// Working directory of the parent, relative to the root.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) cwd: PathBuf,
    /// Outer ones first; the first is the working tree itself.
    pub(crate) repositories: Vec<Repository>,
    /// Its changes are safe elsewhere or were never to be kept.
    pub(crate) is_settled: bool,
}

impl Slot {
    /// Makes the folder for a copy of `root` and marks it as ours.
    pub(crate) fn create(base: &Path, root: &Path, child: &str) -> Result<Slot> {
        make_private(base)?;
        let mut hasher = DefaultHasher::new();
        bytes::of(root).hash(&mut hasher);
        let stem = format!("{}-{:08x}", plain(child), hasher.finish() as u32);
        for number in 1_u32.. {
            let name = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            let dir = base.join(name);
            match fs::create_dir(&dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(io_error("create", &dir))?,
            }
            let mode = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&dir, mode).map_err(io_error("create", &dir))?;
            let path = dir.join("owner");
            let mark = write_mark(&path, child).map_err(io_error("write", &path))?;
            return Ok(Slot { dir, _mark: mark });
        }
        unreachable!("some number is free")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    pub(crate) fn git_dir(&self, number: usize) -> PathBuf {
        self.dir.join(format!("git-{number}"))
    }

    pub(crate) fn index(&self, number: usize) -> PathBuf {
        self.dir.join(format!("index-{number}"))
    }

    pub(crate) fn write_contents(&self, contents: &Contents) -> Result<()> {
        write_json(&self.dir.join("copy.json"), contents)
    }

    pub(crate) fn read_contents(&self) -> Option<Contents> {
        serde_json::from_slice(&fs::read(self.dir.join("copy.json")).ok()?).ok()
    }

    /// Takes over a slot whose owner is dead; `None` while it lives.
    pub(crate) fn take_over(dir: &Path) -> Option<Slot> {
        let path = dir.join("owner");
        let mut mark = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        mark.try_lock().ok()?;
        let mut text = String::new();
        mark.read_to_string(&mut text).ok()?;
        let lives = serde_json::from_str::<Owner>(&text).is_ok_and(|owner| owner.lives());
        (!lives).then(|| Slot { dir: dir.to_owned(), _mark: mark })
    }

    /// Slots of a base, kept ones left out.
    pub(crate) fn list(base: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
        let is_slot = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !name.contains(KEPT) && path.join("owner").is_file()
        };
        let mut slots: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(is_slot).collect();
        slots.sort();
        slots
    }

    /// Removes the slot with everything in it.
    pub(crate) fn remove(self) -> Result<()> {
        remove_all(&self.dir).map_err(io_error("remove", &self.dir))
    }

    /// Moves the slot aside for a person and gives its new place (ISO-12).
    /// Where even that fails the old place is given.
    pub(crate) fn keep(self) -> PathBuf {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for number in 1_u32..10_000 {
            let aside = self.dir.with_file_name(format!("{name}{KEPT}-{number}"));
            if fs::symlink_metadata(&aside).is_ok() {
                continue;
            }
            if fs::rename(&self.dir, &aside).is_ok() {
                return aside;
            }
            break;
        }
        self.dir
    }
}

impl Owner {
    fn own(child: &str) -> Owner {
        let pid = std::process::id();
        Owner { pid, started: started(pid).unwrap_or_default(), child: child.to_owned() }
    }

    fn lives(&self) -> bool {
        started(self.pid).is_some_and(|now| now == self.started)
    }
}

/// Replaces a file of ours in one go; it is on disk when this returns.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let staged = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_all()?;
        fs::rename(&staged, path)
    };
    write().map_err(io_error("write", path))
}

fn write_mark(path: &Path, child: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut mark = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    mark.try_lock().map_err(|error| io::Error::other(error.to_string()))?;
    mark.write_all(&serde_json::to_vec(&Owner::own(child))?)?;
    mark.sync_all()?;
    Ok(mark)
}

/// What tells a living process from an earlier one with its number; `None`
/// when no such process lives.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything, brackets included.
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(&stat[close + 1..]).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let ticks = fields.nth(18)?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{ticks} {}", boot.trim()))
}

/// What tells a living process from an earlier one with its number; `None`
/// when no such process lives.
#[cfg(not(target_os = "linux"))]
fn started(pid: u32) -> Option<String> {
    let mut list = std::process::Command::new("ps");
    let listed = list.args(["-o", "lstart=", "-p", &pid.to_string()]).output().ok()?;
    let text = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Part of a file name made of foreign text.
pub(crate) fn plain(text: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String =
        text.chars().take(NAME_CHARS_MAX).map(|c| if is_good(c) { c } else { '-' }).collect();
    match name.trim_start_matches('.') {
        "" => "child".to_owned(),
        name => name.to_owned(),
    }
}

/// Removes a folder, also what a child made unremovable by its mode.
pub(crate) fn remove_all(dir: &Path) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    if gone(fs::remove_dir_all(dir)).is_ok() {
        return Ok(());
    }
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        // A link is no folder here: `DirEntry::file_type` does not follow it.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let inner = entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(inner.map(|entry| entry.path()));
    }
    gone(fs::remove_dir_all(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    // task.md ISO-3, OBS-13
    #[test]
    fn a_slot_is_private_marked_and_never_shared() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("deep/base");
        let one = Slot::create(&base, Path::new("/p"), "../kid").unwrap();
        let two = Slot::create(&base, Path::new("/p"), "../kid").unwrap();
        assert_ne!(one.dir, two.dir);
        assert_eq!(one.dir.parent(), Some(base.as_path()));
        for path in [&base, &one.dir] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let owner: Owner =
            serde_json::from_slice(&fs::read(one.dir.join("owner")).unwrap()).unwrap();
        assert_eq!((owner.pid, owner.child.as_str()), (std::process::id(), "../kid"));
        assert!(owner.lives() && !owner.started.is_empty());
    }

    #[test]
    fn only_a_slot_of_a_dead_owner_is_taken_over() {
        let base = tempfile::tempdir().unwrap();
        let slot = Slot::create(base.path(), Path::new("/p"), "kid").unwrap();
        let dir = slot.dir.clone();
        assert!(Slot::take_over(&dir).is_none(), "the lock is held");
        drop(slot);
        assert!(Slot::take_over(&dir).is_none(), "the process lives");
        let dead = Owner { started: "earlier".into(), ..Owner::own("kid") };
        fs::write(dir.join("owner"), serde_json::to_vec(&dead).unwrap()).unwrap();
        assert!(Slot::take_over(&dir).is_some(), "another process had that number");
        fs::write(dir.join("owner"), "").unwrap();
        assert!(Slot::take_over(&dir).is_some(), "a mark that was cut off");
    }

    #[test]
    fn a_folder_without_write_permission_is_removed_too() {
        let base = tempfile::tempdir().unwrap();
        let slot = Slot::create(base.path(), Path::new("/p"), "kid").unwrap();
        let inner = slot.tree().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("x"), "x").unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o500)).unwrap();
        let dir = slot.dir.clone();
        slot.remove().unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn names_of_slots_are_plain() {
        let check = |child: &str, expected: &str| assert_eq!(plain(child), expected);
        check("../a/b", "-a-b");
        check("A.B", "A.B");
        check("..", "child");
        check("a\nb é", "a-b--");
    }
}
