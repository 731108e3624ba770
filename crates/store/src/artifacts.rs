//! Files of results: the folder of a session's `task` children and what is
//! written there (`task.md` 9, TASK-SPAWN-18, OBS-4, OBS-12).
//!
//! Owns folders and writes. Must never choose names or decide what is kept:
//! `crew_task::artifact` does. Who reads results by address is the tool `read`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crew_task::Lease;
use crew_task::artifact::{Sidecar, Write};

use crate::error::{Error, Result, io_error};
use crate::files::{create_fresh_dir, create_private_dir};

/// Endings of the files that take an id (TASK-SPAWN-16).
const ENDINGS: [&str; 4] = ["jsonl", "md", "json", "patch"];

/// What came of a write whose text stands.
#[derive(Debug)]
pub struct Written {
    /// Path of the text file.
    pub path: String,
    /// Problems with the sidecar, to be logged (ART-5).
    pub problems: Vec<Error>,
}

/// Makes the folder, 0700, and lists the ids of the files in it; without one,
/// a fresh folder below `tmp` (TASK-SPAWN-18).
pub fn lease(folder: Option<&Path>, tmp: &Path) -> Result<Lease> {
    let (folder, is_temporary) = match folder {
        Some(folder) => {
            create_private_dir(folder)?;
            (folder.to_owned(), false)
        }
        None => (create_fresh_dir(tmp, "crew-task-")?, true),
    };
    let taken = ids(&folder).map_err(io_error("read", &folder))?;
    Ok(Lease { folder: folder.to_string_lossy().into_owned(), is_temporary, taken })
}

/// Every id that a file of the folder has, once.
fn ids(folder: &Path) -> io::Result<Vec<String>> {
    let mut ids = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = PathBuf::from(entry?.file_name());
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending))
            && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
        {
            ids.insert(stem.to_owned());
        }
    }
    Ok(ids.into_iter().collect())
}

/// Writes the text, then what becomes of the sidecar (ART-3 to ART-6). When the
/// text cannot be written the sidecar is left alone.
pub fn write(write: &Write) -> Result<Written> {
    let folder = Path::new(&write.folder);
    let path = folder.join(&write.text_name);
    replace(folder, &path, write.text.as_bytes()).map_err(io_error("write", &path))?;
    let sidecar = folder.join(&write.data_name);
    let mut problems = Vec::new();
    let mut is_stale = true;
    if let Sidecar::Write(text) = &write.sidecar {
        match replace(folder, &sidecar, text.as_bytes()) {
            Ok(()) => is_stale = false,
            Err(error) => problems.push(io_error("write", &sidecar)(error)),
        }
    }
    if is_stale
        && let Err(error) = fs::remove_file(&sidecar)
        && error.kind() != io::ErrorKind::NotFound
    {
        problems.push(io_error("remove", &sidecar)(error));
    }
    Ok(Written { path: write.path(), problems })
}

/// Deletes a temporary folder with everything in it (ART-10).
pub fn end_lease(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", folder)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Puts a whole file in the place of an old one; a link is replaced, never
/// followed, since children write into this folder too.
fn replace(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut staged =
        tempfile::Builder::new().prefix(".crew-").suffix(".tmp").tempfile_in(folder)?;
    staged.write_all(bytes)?;
    staged.as_file().sync_data()?;
    let length = staged.as_file().metadata()?.len();
    if length != bytes.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::WriteZero, "the file is not complete"));
    }
    staged.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct World {
        root: tempfile::TempDir,
    }

    impl World {
        fn new() -> World {
            World { root: tempfile::tempdir().unwrap() }
        }

        fn folder(&self) -> PathBuf {
            self.root.path().join("deep/X")
        }

        fn write(&self, text: &str, sidecar: Sidecar) -> Result<Written> {
            write(&Write {
                folder: self.folder().to_string_lossy().into_owned(),
                text_name: "kid.md".into(),
                text: text.into(),
                data_name: "kid.json".into(),
                sidecar,
            })
        }

        fn lease(&self) -> Lease {
            lease(Some(&self.folder()), self.root.path()).unwrap()
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.folder().join(name)).ok()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.folder()).unwrap();
            let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
            names.sort();
            names
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    // TASK-SPAWN-16, TASK-SPAWN-18, product.md P-14a.
    #[test]
    fn a_lease_makes_the_folder_and_knows_the_ids_in_it() {
        let world = World::new();
        assert_eq!(world.lease().taken, Vec::<String>::new());
        assert_eq!(mode(&world.folder()), 0o700);
        for name in ["A.jsonl", "A.md", "A.json", "B.patch", "A.Low.md", "note.txt", ".x.tmp"] {
            fs::write(world.folder().join(name), "").unwrap();
        }
        fs::create_dir(world.folder().join("A")).unwrap();
        let lease = world.lease();
        assert_eq!((lease.taken.join(" "), lease.is_temporary), ("A A.Low B".into(), false));
    }

    // DELIV-11; task.md 12 row 74.
    #[test]
    fn a_folder_whose_name_is_taken_is_an_error() {
        let world = World::new();
        fs::create_dir_all(world.root.path().join("deep")).unwrap();
        fs::write(world.folder(), "in the way").unwrap();
        assert!(lease(Some(&world.folder()), world.root.path()).is_err());
    }

    // ART-10, OBS-12; task.md 12 row 72.
    #[test]
    fn a_temporary_folder_is_private_and_goes_with_what_is_in_it() {
        let world = World::new();
        let lease = lease(None, world.root.path()).unwrap();
        let folder = Path::new(&lease.folder);
        assert!(lease.is_temporary && folder.starts_with(world.root.path()));
        assert_eq!(mode(folder), 0o700);
        fs::write(folder.join("kid.jsonl"), "x").unwrap();
        end_lease(folder).unwrap();
        assert!(!folder.exists());
        end_lease(folder).unwrap();
    }

    // ART-3 to ART-5, product.md P-14a; task.md 12 row 69.
    #[test]
    fn text_and_sidecar_are_replaced_and_a_stale_sidecar_goes() {
        let world = World::new();
        world.lease();
        let written = world.write("one\n", Sidecar::Write("{}\n".into())).unwrap();
        assert_eq!(written.path, world.folder().join("kid.md").to_string_lossy());
        assert_eq!(world.text("kid.json").as_deref(), Some("{}\n"));
        assert_eq!(mode(&world.folder().join("kid.md")), 0o600);
        assert!(world.write("two\n", Sidecar::Remove).unwrap().problems.is_empty());
        assert_eq!(
            (world.text("kid.md").as_deref(), world.text("kid.json")),
            (Some("two\n"), None)
        );
        assert_eq!(world.names(), ["kid.md"]);
    }

    // ART-3, ART-6; task.md 12 row 65.
    #[test]
    fn a_text_that_cannot_be_written_leaves_everything_as_it_was() {
        let world = World::new();
        world.lease();
        fs::create_dir_all(world.folder().join("kid.md/x")).unwrap();
        fs::write(world.folder().join("kid.json"), "old").unwrap();
        assert!(world.write("new", Sidecar::Remove).is_err());
        assert_eq!(world.text("kid.json").as_deref(), Some("old"));
        assert_eq!(world.names(), ["kid.json", "kid.md"]);
    }

    // ART-5; task.md 12 row 70.
    #[test]
    fn a_sidecar_that_cannot_be_written_keeps_the_text() {
        let world = World::new();
        world.lease();
        fs::create_dir_all(world.folder().join("kid.json/x")).unwrap();
        let written = world.write("new", Sidecar::Write("{}".into())).unwrap();
        // Neither written nor, being a folder, removed.
        assert_eq!(written.problems.len(), 2);
        assert_eq!(world.text("kid.md").as_deref(), Some("new"));
        assert_eq!(world.names(), ["kid.json", "kid.md"]);
    }

    #[test]
    fn a_link_in_the_folder_is_replaced_and_not_followed() {
        let world = World::new();
        world.lease();
        let precious = world.root.path().join("precious");
        fs::write(&precious, "keep").unwrap();
        std::os::unix::fs::symlink(&precious, world.folder().join("kid.md")).unwrap();
        world.write("new", Sidecar::Remove).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "keep");
        assert_eq!(world.text("kid.md").as_deref(), Some("new"));
    }
}
