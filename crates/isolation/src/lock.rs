//! One merge at a time per repository (ISO-15), also between processes.
//!
//! The lock is a file below the base, named after the repository's shared git
//! directory; the person's repository is not written to for it.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::bytes;
use crate::error::{Result, io_error};
use crate::git::Git;
use crate::source::make_private;

const PAUSE: Duration = Duration::from_millis(5);

/// Held while it lives.
pub(crate) struct Lock(#[expect(dead_code, reason = "unlocks when it is dropped")] File);

/// Waits for the lock of a repository, until the caller cancels: for a change
/// of its tree.
pub(crate) fn take(git: &Git<'_>, base: &Path, common_dir: &Path) -> Result<Lock> {
    wait(git, base, common_dir, File::try_lock)
}

/// The same for reading its tree, which several may do at once: no copy starts
/// with half of a change.
pub(crate) fn share(git: &Git<'_>, base: &Path, common_dir: &Path) -> Result<Lock> {
    wait(git, base, common_dir, File::try_lock_shared)
}

fn wait(
    git: &Git<'_>,
    base: &Path,
    common_dir: &Path,
    try_lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Lock> {
    let folder = base.join("locks");
    make_private(&folder)?;
    let mut hasher = DefaultHasher::new();
    let real = std::fs::canonicalize(common_dir);
    bytes::of(real.as_deref().unwrap_or(common_dir)).hash(&mut hasher);
    let path = folder.join(format!("{:016x}", hasher.finish()));
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = opened.map_err(io_error("open", &path))?;
    loop {
        git.check()?;
        match try_lock(&file) {
            Ok(()) => return Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::error::Error;

    // ISO-15
    #[test]
    fn readers_share_and_a_change_waits_for_all() {
        let base = tempfile::tempdir().unwrap();
        let asked = AtomicU32::new(0);
        // Gives up when it was asked three times: it would have waited.
        let cancel = || asked.fetch_add(1, Ordering::Relaxed) >= 3;
        let git = Git { scratch: base.path(), cancel: &cancel, marker: None };
        let common = base.path();
        let one = share(&git, base.path(), common).unwrap();
        let two = share(&git, base.path(), common).unwrap();
        assert!(matches!(take(&git, base.path(), common), Err(Error::Cancelled)));
        drop(one);
        asked.store(0, Ordering::Relaxed);
        assert!(matches!(take(&git, base.path(), common), Err(Error::Cancelled)));
        drop(two);
        asked.store(0, Ordering::Relaxed);
        let change = take(&git, base.path(), common).unwrap();
        assert!(matches!(share(&git, base.path(), common), Err(Error::Cancelled)));
        asked.store(0, Ordering::Relaxed);
        assert!(take(&git, base.path(), Path::new("/another")).is_ok());
        drop(change);
    }
}
