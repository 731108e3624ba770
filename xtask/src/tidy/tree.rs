//! The text files of the repository, read once.
//!
//! Must never hold build products or anything outside the repository. Read
//! `scan` for what the sources look like to a check.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::scan::Source;
use crate::run::Outcome;

/// Every file a check may look at, by its path from the root with `/`.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    sources: BTreeMap<String, Source>,
}

impl Tree {
    /// Reads the repository below `root`; errors when a folder or a text file
    /// cannot be read.
    pub(crate) fn load(root: &Path) -> Outcome<Self> {
        let mut files = BTreeMap::new();
        read_folder(root, "", &mut files)?;
        Ok(Self::from_map(files))
    }

    /// Makes a tree of given files.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let owned = files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned()));
        Self::from_map(owned.collect())
    }

    fn from_map(files: BTreeMap<String, String>) -> Self {
        let sources = files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path.clone(), Source::parse(path, text)))
            .collect();
        Self { files, sources }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns every file with its text, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns every Rust file, by path.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// Returns the folders below `crates/` that hold a manifest.
    pub(crate) fn crates(&self) -> Vec<&str> {
        self.files
            .keys()
            .filter_map(|path| path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
            .collect()
    }
}

/// Returns the folder name of the crate that a path lies in (`xtask` for the
/// task runner).
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return Some("xtask");
    }
    path.strip_prefix("crates/")?.split('/').next()
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Outcome {
    let shown = if prefix.is_empty() { "." } else { prefix };
    let unreadable = |error: std::io::Error| format!("cannot read {shown}: {error}");
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{prefix}{name}");
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            read_folder(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(entry.path())
                .map_err(|error| format!("cannot read {path}: {error}"))?;
            files.insert(path, text);
        }
    }
    Ok(())
}

fn is_text(path: &str) -> bool {
    let by_ending = [".rs", ".toml", ".md", ".txt", ".yml", ".sh"];
    by_ending.iter().any(|ending| path.ends_with(ending)) || path.starts_with(".ci/")
}

/// Folders that hold no source: build products, the repository's own store
/// and test data that is kept byte for byte.
const SKIPPED: &[&str] = &["target", ".git", "golden", "fixtures", "snapshots"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_the_folders_with_a_manifest() {
        let tree = Tree::of(&[
            ("crates/base/Cargo.toml", ""),
            ("crates/base/src/lib.rs", ""),
            ("xtask/Cargo.toml", ""),
        ]);
        assert_eq!(tree.crates(), ["base"]);
    }

    #[test]
    fn a_path_belongs_to_the_crate_it_lies_in() {
        assert_eq!(crate_of("crates/crew/src/lib.rs"), Some("crew"));
        assert_eq!(crate_of("xtask/src/main.rs"), Some("xtask"));
        assert_eq!(crate_of("README.md"), None);
    }

    #[test]
    fn the_repository_itself_can_be_read() {
        let tree = Tree::load(&crate::run::root()).unwrap();
        assert!(tree.text("Cargo.toml").is_some());
        assert!(tree.text(".ci/run").is_some());
        assert!(!tree.files().any(|(path, _)| path.starts_with("target/")));
    }
}
