//! Creating and replacing files of ours: private modes whatever the umask, and
//! replacement by rename (`product.md` P-14a, `host.md` 1.1.7, 2.5.4).
//!
//! What already exists keeps its mode. Never follows a policy of its own about
//! where files lie; see `paths` for that.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io_error};

/// Creates a folder and its missing ancestors, each 0700 (`host.md` 1.1.7).
pub fn create_private_dir(path: &Path) -> Result<()> {
    make_dirs(path).map_err(io_error("create", path))
}

fn make_dirs(path: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = path;
    while !at.as_os_str().is_empty() && !at.is_dir() {
        missing.push(at);
        let Some(parent) = at.parent() else { break };
        at = parent;
    }
    for folder in missing.into_iter().rev() {
        match private_dir_builder().create(folder) {
            Ok(()) => set_mode(folder, 0o700)?,
            // Somebody else made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a fresh folder below another, 0700.
pub(crate) fn create_fresh_dir(parent: &Path, prefix: &str) -> Result<PathBuf> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
    let made = made.map_err(io_error("create", parent))?;
    set_mode(made.path(), 0o700).map_err(io_error("create", made.path()))?;
    Ok(made.keep())
}

/// Opens a file that must not exist yet, 0600, for appending.
pub(crate) fn create_exclusive(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    let created = private_mode(&mut options).open(path);
    let file = created.map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            let path = path.to_owned();
            return Error::Exists { path };
        }
        io_error("create", path)(error)
    })?;
    set_file_mode(&file, 0o600).map_err(io_error("create", path))?;
    Ok(file)
}

/// Replaces or creates a file in one step: a temporary file beside it, flushed
/// to disk, then renamed. The mode of an existing file is kept, a new one is
/// 0600; a symbolic link stays and its target is replaced.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes)).map_err(io_error("write", path))
}

/// As [`replace`], with the contents written by a function.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder =
        target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_dirs(folder)?;
    let mut temporary =
        tempfile::Builder::new().prefix(".crew-").suffix(".tmp").tempfile_in(folder)?;
    write(temporary.as_file_mut())?;
    match fs::metadata(&target) {
        Ok(existing) => temporary.as_file().set_permissions(existing.permissions())?,
        Err(_) => set_file_mode(temporary.as_file(), 0o600)?,
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|failed| failed.error)?;
    sync_dir(folder);
    Ok(())
}

/// Makes a rename durable where the system can; a failure changes nothing that
/// the caller could mend.
fn sync_dir(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Drops one leading U+FEFF (`host.md` 0.4).
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(unix)]
fn private_dir_builder() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_dir_builder() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(unix)]
fn private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn set_file_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_file_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        let metadata = fs::metadata(path).expect("the test made this file");
        metadata.permissions().mode() & 0o777
    }

    #[test]
    fn what_we_create_is_private_and_what_exists_keeps_its_mode() {
        // P-14a, host.md 1.1.7
        let world = tempfile::tempdir().unwrap();
        let open = world.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let deep = open.join("a/b");
        create_private_dir(&deep).unwrap();
        assert_eq!((mode(&open), mode(&open.join("a")), mode(&deep)), (0o755, 0o700, 0o700));

        let file = deep.join("f");
        replace(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap()), (0o640, b"two".to_vec()));
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_symbolic_link_survives_a_replacement() {
        let world = tempfile::tempdir().unwrap();
        let (real, link) = (world.path().join("real"), world.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
    }
}
