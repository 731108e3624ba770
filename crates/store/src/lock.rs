//! The lock directory that guards `settings.json` and `trust.json`, a protocol
//! shared with Pi (`host.md` 1.3.4).
//!
//! Owns only `<file>.lock`. Must be held for moments: whoever needs it longer
//! calls [`DirLock::refresh`] at least every five seconds.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result, io_error};
use crate::files;

/// Attempts to take a lock (`host.md` 1.3.4).
const TRIES_MAX: u32 = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// Age at which a lock counts as left behind.
const STALE_AGE: Duration = Duration::from_secs(10);

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct DirLock {
    path: PathBuf,
}

impl DirLock {
    /// Takes the lock of a file: up to ten attempts 20 ms apart, a lock older
    /// than 10 s is taken over (`host.md` 1.3.4). The file's folder is created
    /// when missing. Ends with [`Error::Locked`] when somebody keeps it.
    pub fn take(file: &Path) -> Result<DirLock> {
        let path = lock_path(file);
        if let Some(folder) = file.parent() {
            files::create_private_dir(folder)?;
        }
        for attempt in 0..TRIES_MAX {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(DirLock { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if remove_stale(&path) {
                        continue;
                    }
                }
                Err(error) => return Err(io_error("lock", &path)(error)),
            }
            if attempt + 1 < TRIES_MAX {
                thread::sleep(PAUSE);
            }
        }
        Err(Error::Locked { path })
    }

    /// Tells other processes that the holder is alive.
    pub fn refresh(&self) -> Result<()> {
        File::open(&self.path)
            .and_then(|folder| folder.set_modified(SystemTime::now()))
            .map_err(io_error("lock", &self.path))
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // A lock that cannot be removed goes stale by itself.
        let _ = fs::remove_dir(&self.path);
    }
}

fn lock_path(file: &Path) -> PathBuf {
    let mut name = OsString::from(file.as_os_str());
    name.push(".lock");
    PathBuf::from(name)
}

/// Removes a lock that was left behind. It is renamed first, so that of two
/// waiting processes only one removes it, and looked at again, so that a lock
/// retaken in between is put back.
fn remove_stale(path: &Path) -> bool {
    if !is_stale(path) {
        return false;
    }
    let mut name = OsString::from(path.as_os_str());
    name.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let aside = PathBuf::from(name);
    if fs::rename(path, &aside).is_err() {
        return false;
    }
    if is_stale(&aside) {
        return fs::remove_dir(&aside).is_ok();
    }
    let _ = fs::rename(&aside, path);
    false
}

fn is_stale(path: &Path) -> bool {
    fs::metadata(path)
        .and_then(|lock| lock.modified())
        .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > STALE_AGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_refuses_a_second_holder_and_is_free_after_the_drop() {
        let world = tempfile::tempdir().unwrap();
        let file = world.path().join("new/settings.json");
        let held = DirLock::take(&file).unwrap();
        held.refresh().unwrap();
        assert!(matches!(DirLock::take(&file), Err(Error::Locked { .. })));
        drop(held);
        drop(DirLock::take(&file).unwrap());
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_older_than_ten_seconds_is_taken_over() {
        let world = tempfile::tempdir().unwrap();
        let file = world.path().join("settings.json");
        let lock = world.path().join("settings.json.lock");
        fs::create_dir(&lock).unwrap();
        let age = |seconds| {
            let then = SystemTime::now() - Duration::from_secs(seconds);
            File::open(&lock).unwrap().set_modified(then).unwrap();
        };
        age(8);
        assert!(matches!(DirLock::take(&file), Err(Error::Locked { .. })));
        age(11);
        drop(DirLock::take(&file).unwrap());
        assert!(!lock.exists());
    }
}
