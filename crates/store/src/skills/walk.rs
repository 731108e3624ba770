//! Searches a folder for skill files (`host.md` 5.3.3).
//!
//! Must never open anything but ignore files; follows links, and ends on loops.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crew_base::limits::{SKILL_DEPTH_MAX, SKILL_FOLDERS_MAX};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::SKILL_FILE;
use crate::resources::sorted_entries;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// In the order of their paths.
    pub(super) files: Vec<PathBuf>,
    /// Whether a limit ended the search early.
    pub(super) cut: bool,
}

/// Skill files below `root`: its `SKILL.md` alone if it has one, else those of
/// its subfolders, and with `loose_files` also its own `.md` files.
pub(super) fn skill_files(root: &Path, loose_files: bool) -> Walked {
    let mut walk = Walk::default();
    walk.folder(root, loose_files);
    walk.walked
}

#[derive(Default)]
struct Walk {
    walked: Walked,
    ignores: Vec<Gitignore>,
    seen: BTreeSet<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path, loose_files: bool) {
        let Ok(real) = folder.canonicalize() else {
            return;
        };
        if !self.seen.insert(real) {
            return;
        }
        if self.seen.len() > SKILL_FOLDERS_MAX || self.ignores.len() > SKILL_DEPTH_MAX {
            self.walked.cut = true;
            return;
        }
        self.ignores.push(ignore_rules(folder));
        let own = folder.join(SKILL_FILE);
        if own.is_file() && !self.is_ignored(&own, false) {
            self.walked.files.push(own);
        } else {
            for path in sorted_entries(folder) {
                self.entry(&path, loose_files);
            }
        }
        self.ignores.pop();
    }

    fn entry(&mut self, path: &Path, loose_files: bool) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // A link counts as what it points at; a broken one as nothing.
        let Ok(metadata) = std::fs::metadata(path) else {
            return;
        };
        let skipped = name.starts_with(b".") || name == b"node_modules";
        if skipped || self.is_ignored(path, metadata.is_dir()) {
            return;
        }
        if metadata.is_dir() {
            self.folder(path, false);
        } else if loose_files && metadata.is_file() && name.ends_with(b".md") {
            self.walked.files.push(path.to_owned());
        }
    }

    /// The deepest rule that says something about the path counts.
    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        for rules in self.ignores.iter().rev() {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn ignore_rules(folder: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for name in [".gitignore", ".ignore", ".fdignore"] {
        let file = folder.join(name);
        if file.is_file() {
            // Lines that are no patterns are left out, as git does.
            let _ = builder.add(file);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
