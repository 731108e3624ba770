//! Renames that never overwrite what was not looked at.

use std::fs;
use std::io;
use std::path::Path;

#[cfg(any(target_os = "linux", target_os = "macos"))]
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// How a file came to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// Both names changed sides; what stood there is under the other name.
    Exchanged,
    /// The file system cannot exchange: it was looked at, then replaced.
    Replaced,
    /// The file system cannot exchange, and something else stood there.
    Refused,
}

/// Exchanges two files; where that is impossible, replaces `at` if it is as
/// expected.
pub(super) fn exchange(
    fresh: &Path,
    at: &Path,
    is_expected: impl FnOnce(&Path) -> bool,
) -> io::Result<Placed> {
    match by_flag(fresh, at, Way::Exchange) {
        Some(Ok(())) => Ok(Placed::Exchanged),
        Some(Err(error)) => Err(error),
        None => replace(fresh, at, is_expected),
    }
}

/// The way without an exchange: what somebody writes between the look and the
/// rename is lost, which no such file system can prevent.
fn replace(fresh: &Path, at: &Path, is_expected: impl FnOnce(&Path) -> bool) -> io::Result<Placed> {
    match is_expected(at) {
        true => fs::rename(fresh, at).map(|()| Placed::Replaced),
        false => Ok(Placed::Refused),
    }
}

/// Moves a file to a name that must not be taken.
pub(super) fn place(from: &Path, to: &Path) -> io::Result<()> {
    match by_flag(from, to, Way::NoReplace) {
        Some(done) => done,
        None => move_to_free(from, to),
    }
}

fn move_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        Err(_) => fs::rename(from, to),
    }
}

enum Way {
    Exchange,
    NoReplace,
}

/// `None` where the system or the file system does not know the way.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn by_flag(from: &Path, to: &Path, way: Way) -> Option<io::Result<()>> {
    use rustix::io::Errno;
    let flag = match way {
        Way::Exchange => RenameFlags::EXCHANGE,
        Way::NoReplace => RenameFlags::NOREPLACE,
    };
    match renameat_with(CWD, from, CWD, to, flag) {
        Ok(()) => Some(Ok(())),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => None,
        Err(error) => Some(Err(error.into())),
    }
}

/// `None` where the system or the file system does not know the way.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn by_flag(_from: &Path, _to: &Path, _way: Way) -> Option<io::Result<()>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&a, "new").unwrap();
        fs::write(&b, "old").unwrap();
        assert_eq!(place(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&b).unwrap(), b"old");
        let placed = exchange(&a, &b, |_| true).unwrap();
        assert_eq!(fs::read(&b).unwrap(), b"new");
        if placed == Placed::Exchanged {
            assert_eq!(fs::read(&a).unwrap(), b"old");
        }
    }

    #[test]
    fn a_file_system_that_cannot_exchange_is_looked_at_first() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&a, "new").unwrap();
        fs::write(&b, "old").unwrap();
        assert_eq!(replace(&a, &b, |_| false).unwrap(), Placed::Refused);
        assert_eq!(fs::read(&b).unwrap(), b"old");
        assert_eq!(move_to_free(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(replace(&a, &b, |_| true).unwrap(), Placed::Replaced);
        assert_eq!(fs::read(&b).unwrap(), b"new");
        move_to_free(&b, &a).unwrap();
        assert!(a.exists() && !b.exists());
    }
}
