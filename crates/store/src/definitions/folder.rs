//! Lists the files of a definition folder and keeps what was parsed of them.
//!
//! Must never parse; the caller says what a text means.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::text_file;

/// Size and time of a file; equal ones mean the same content (`crew.md` CAT-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Parsed files by path.
#[derive(Debug)]
pub(super) struct Cache<T> {
    files: BTreeMap<PathBuf, (Stamp, T)>,
}

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache { files: BTreeMap::new() }
    }
}

impl<T> Cache<T> {
    /// What the file means now; an error when it cannot be read.
    pub(super) fn read(&mut self, path: &Path, parse: impl FnOnce(&str) -> T) -> io::Result<&T> {
        // The stamp is older than the text: a change in between is seen by the
        // next call instead of being missed.
        let stamp = match std::fs::metadata(path) {
            Ok(metadata) => Stamp::of(&metadata),
            Err(error) => {
                self.files.remove(path);
                return Err(error);
            }
        };
        let known = self.files.get(path).is_some_and(|(seen, _)| *seen == stamp);
        if !known {
            self.files.remove(path);
            let parsed = parse(&text_file::read(path)?);
            self.files.insert(path.to_owned(), (stamp, parsed));
        }
        let (_, parsed) = &self.files[path];
        Ok(parsed)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Forgets files of a folder that are no longer there.
    pub(super) fn forget_missing(&mut self, folder: &Path, present: &[PathBuf]) {
        self.files.retain(|path, _| {
            path.parent() != Some(folder) || present.iter().any(|other| other == path)
        });
    }
}

/// The `.md` files and links directly in a folder, by the bytes of their names
/// (`crew.md` CAT-2, CAT-3). A missing folder has none.
pub(super) fn definition_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let counts = name.as_encoded_bytes().ends_with(b".md");
        if counts && (kind.is_file() || kind.is_symlink()) {
            names.push(name);
        }
    }
    names.sort_by(|a, b| a.as_encoded_bytes().cmp(b.as_encoded_bytes()));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}
