//! Recursive copies, and the modes of what git checked out.
//!
//! Never follows a symbolic link and never copies a git directory of a
//! repository that gets one of its own. Devices, sockets and pipes stay behind.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::bytes::{is_below, shown_path};
use crate::error::{Result, io_error};
use crate::git::Git;

/// Things left behind that are named in warnings.
const NAMED_MAX: usize = 10;

/// Copies the folder `from` to the existing folder `to`: contents, modes,
/// times and links. Leaves out the git directories of `repositories` (places
/// below `from`) and everything at or below a place of `apart`.
pub(crate) fn copy_tree(
    git: &Git<'_>,
    from: &Path,
    to: &Path,
    repositories: &BTreeSet<PathBuf>,
    apart: &[PathBuf],
    warnings: &mut Vec<String>,
) -> Result<()> {
    let mut left = Vec::new();
    let mut folders = vec![PathBuf::new()];
    let mut made = Vec::new();
    while let Some(folder) = folders.pop() {
        let dir = from.join(&folder);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                left.push(folder);
                continue;
            }
            Err(error) => return Err(io_error("read", &dir)(error)),
        };
        for entry in entries {
            git.check()?;
            let entry = entry.map_err(io_error("read", &dir))?;
            let place = folder.join(entry.file_name());
            if is_below(&place, apart) {
                continue;
            }
            let is_git = entry.file_name() == ".git";
            if is_git && repositories.contains(&folder) {
                continue;
            }
            let kind = entry.file_type().map_err(io_error("read", &entry.path()))?;
            // A file of this name leads to somebody else's repository.
            if is_git && !kind.is_dir() {
                left.push(place);
                continue;
            }
            let target = to.join(&place);
            if kind.is_dir() {
                fs::create_dir(&target).map_err(io_error("create", &target))?;
                made.push(place.clone());
                folders.push(place);
            } else if !copy_one(&entry.path(), &target)? {
                left.push(place);
            }
        }
    }
    // Inner ones first: an outer one may forbid to enter it.
    for folder in made.iter().rev() {
        keep_mode(&from.join(folder), &to.join(folder));
    }
    for place in left.iter().take(NAMED_MAX) {
        warnings.push(format!("`{}` was not copied", shown_path(place)));
    }
    if left.len() > NAMED_MAX {
        warnings.push(format!("{} more were not copied", left.len() - NAMED_MAX));
    }
    Ok(())
}

/// Copies a file or a link; false for anything else and for what may not be
/// read. What is gone meanwhile counts as copied.
fn copy_one(from: &Path, to: &Path) -> Result<bool> {
    let copied = fs::symlink_metadata(from).and_then(|meta| {
        if meta.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else if meta.is_file() {
            fs::copy(from, to)?;
            // Programs that build compare times; without them all is built anew.
            if let (Ok(modified), Ok(file)) =
                (meta.modified(), File::options().write(true).open(to))
            {
                let _ = file.set_times(FileTimes::new().set_modified(modified));
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    });
    match copied {
        Ok(copied) => Ok(copied),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(io_error("copy", from)(error)),
    }
}

/// Gives what git wrote the modes that the source has (OBS-13); git keeps one
/// bit of them only.
pub(crate) fn keep_modes<'a>(from: &Path, to: &Path, paths: impl IntoIterator<Item = &'a PathBuf>) {
    let mut folders = BTreeSet::new();
    for path in paths {
        keep_mode(&from.join(path), &to.join(path));
        let inner = path.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
        folders.extend(inner.map(Path::to_owned));
    }
    for folder in folders.iter().rev() {
        keep_mode(&from.join(folder), &to.join(folder));
    }
}

/// A mode that cannot be kept is no reason to give up the copy.
fn keep_mode(from: &Path, to: &Path) {
    let (Ok(from), Ok(copy)) = (fs::symlink_metadata(from), fs::symlink_metadata(to)) else {
        return;
    };
    let is_same_kind = from.is_file() && copy.is_file() || from.is_dir() && copy.is_dir();
    let mode = from.permissions().mode() & 0o7777;
    if is_same_kind && mode != copy.permissions().mode() & 0o7777 {
        let _ = fs::set_permissions(to, Permissions::from_mode(mode));
    }
}
