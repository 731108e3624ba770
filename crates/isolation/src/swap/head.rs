//! Moves HEAD and the index of a person along with a change of files (ISO-15).
//!
//! The index is locked like git locks it, so that git waits for us and we for
//! it. Invariant: HEAD is moved last but one; once it stands at the new commit
//! the change counts as made, and a restart only completes the index.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::exchange;
use crate::bytes;
use crate::detached;
use crate::git::Git;
use crate::source::Source;

/// How long another git may hold the index.
const LOCK_TIME_MAX: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A move of HEAD with its index. The folder of the change holds the indexes
/// `index.old` (missing if there is none) and `index.new`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HeadMove {
    pub(crate) source: Source,
    /// Commits.
    pub(crate) old: String,
    pub(crate) new: String,
    /// For the reflog.
    pub(crate) reason: String,
    /// Part of the names of our files beside the index; also what our lock says.
    pub(crate) token: String,
}

/// The index of the person, locked until this is dropped.
pub(super) struct Lock<'a> {
    head: &'a HeadMove,
}

impl HeadMove {
    /// Locks the index and makes sure that nothing moved since the plan.
    pub(super) fn lock(&self, git: &Git<'_>, folder: &Path) -> Result<Lock<'_>, String> {
        let staged = self.beside("lock");
        let said = |error: io::Error| format!("the index cannot be locked: {error}");
        let began = Instant::now();
        fs::write(&staged, &self.token).map_err(said)?;
        loop {
            match exchange::place(&staged, &self.lock_file()) {
                Ok(()) => break,
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    let _ = fs::remove_file(&staged);
                    return Err(said(error));
                }
                Err(_) if began.elapsed() > LOCK_TIME_MAX => {
                    let _ = fs::remove_file(&staged);
                    return Err("another git is at work in the repository".to_owned());
                }
                Err(_) => std::thread::sleep(LOCK_PAUSE),
            }
        }
        let lock = Lock { head: self };
        let head = self.source.current_head(git).map_err(|error| error.to_string())?;
        if head.as_ref() != Some(&self.old) {
            return Err("HEAD was moved meanwhile".to_owned());
        }
        if !self.has_old_index(folder) {
            return Err("the index was changed meanwhile".to_owned());
        }
        Ok(lock)
    }

    /// Whether the index is still the one that was planned with.
    fn has_old_index(&self, folder: &Path) -> bool {
        same_file(&folder.join("index.old"), &self.source.index())
    }

    /// Whether the change was made; then the index is completed.
    pub(super) fn is_done(&self, git: &Git<'_>, folder: &Path) -> bool {
        let call = self.source.call(git, "look at HEAD");
        let args = ["merge-base", "--is-ancestor", &self.new, "HEAD"];
        let is_done = call.args(&args).end().is_ok_and(|ended| ended.status.success());
        if is_done {
            if self.has_old_index(folder) {
                // What fails here leaves an index that git shows as it is.
                let _ = self.install(&folder.join("index.new"));
            }
            self.unlock();
        }
        is_done
    }

    /// Takes HEAD and index back as far as they are ours.
    pub(super) fn undo(&self, git: &Git<'_>, folder: &Path) -> Option<String> {
        let mut warning = None;
        if self.source.current_head(git).ok().flatten().as_ref() == Some(&self.new) {
            let call = self.source.call(git, "move HEAD back");
            let args = ["update-ref", "-m", &self.reason, "HEAD", &self.old, &self.new];
            warning = call.args(&args).run().err().map(|error| error.to_string());
        }
        let is_ours = same_file(&folder.join("index.new"), &self.source.index());
        if is_ours && !self.has_old_index(folder) {
            let put_back = self.install(&folder.join("index.old"));
            warning = warning.or(put_back.err().map(|error| format!("the index: {error}")));
        }
        self.unlock();
        warning
    }

    fn install(&self, index: &Path) -> io::Result<()> {
        if !index.exists() {
            return fs::remove_file(self.source.index());
        }
        let staged = self.beside("index");
        stage(index, &staged, &self.source.index())?;
        fs::rename(&staged, self.source.index())
    }

    /// Removes our lock, and no other.
    fn unlock(&self) {
        for name in ["lock", "index"] {
            let _ = fs::remove_file(self.beside(name));
        }
        if fs::read(self.lock_file()).is_ok_and(|text| text == self.token.as_bytes()) {
            let _ = fs::remove_file(self.lock_file());
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.source.git_dir.join("index.lock")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.source.git_dir.join(format!("{}.{name}", self.token))
    }
}

impl Lock<'_> {
    /// Moves HEAD and the index; the files stand already.
    pub(super) fn finish(self, git: &Git<'_>, folder: &Path) -> Result<(), String> {
        let head = self.head;
        let new = folder.join("index.new");
        // Exits with 1 when a file differs from the index, as it may.
        let call = head.source.call(git, "look at the files").index(&new);
        let args = ["update-index", "-q", "--refresh"];
        call.args(&args).end().map_err(|error| error.to_string())?;
        let staged = head.beside("index");
        let said = |error: io::Error| format!("the index cannot be written: {error}");
        stage(&new, &staged, &head.source.index()).map_err(said)?;
        let call = head.source.call(git, "move HEAD");
        let args = ["update-ref", "-m", &head.reason, "HEAD", &head.new, &head.old];
        call.args(&args).run().map_err(|error| error.to_string())?;
        fs::rename(&staged, head.source.index()).map_err(said)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.head.unlock();
    }
}

/// Copies an index, with the mode that the one in place has.
fn stage(index: &Path, staged: &Path, place: &Path) -> io::Result<()> {
    let copied = detached::copy_if_there(index, staged);
    copied.map_err(|error| io::Error::other(error.to_string()))?;
    match fs::metadata(place) {
        Ok(meta) => fs::set_permissions(staged, meta.permissions()),
        Err(_) => Ok(()),
    }
}

/// Whether two files hold the same bytes, or both are missing.
fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::read(one), fs::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Err(one), Err(other)) => {
            one.kind() == io::ErrorKind::NotFound && other.kind() == io::ErrorKind::NotFound
        }
        _ => false,
    }
}

/// A token for a folder of a change.
pub(crate) fn token(folder: &Path) -> String {
    let name = folder.parent().and_then(Path::file_name).unwrap_or_default();
    let name = String::from_utf8_lossy(bytes::of(Path::new(name))).into_owned();
    format!("crew-{name}-{}", std::process::id())
}
