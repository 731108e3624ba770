//! Synthetic trees (ISO-7): what a working tree holds now, commits and
//! uncommitted work alike, as one tree object.
//!
//! Works on an index and a git directory of our own; the working tree is only
//! read. What git ignores is not part of a tree, unless it is tracked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::bytes;
use crate::error::{Error, Result};
use crate::git::{Call, Git};
use crate::source;

/// Uncommitted content of one repository that a copy takes along
/// (`task.md` 1.6).
pub const BASELINE_BYTES_MAX: u64 = 1 << 30;

/// A working tree seen through our own git directory and index.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) git: Git<'a>,
    /// Our git directory.
    pub(crate) git_dir: &'a Path,
    /// Our index.
    pub(crate) index: &'a Path,
    /// The working tree.
    pub(crate) tree: &'a Path,
    /// Places in it that are no part of it: other repositories, our own folder.
    pub(crate) apart: &'a [PathBuf],
}

impl<'a> View<'a> {
    pub(crate) fn call(&self, action: &'static str) -> Call<'a> {
        let call = self.git.call(action, self.tree);
        call.git_dir(self.git_dir).work_tree(self.tree).index(self.index)
    }

    /// Paths that differ from the index, untracked ones included; and folders
    /// that are repositories nobody told us about.
    pub(crate) fn changed(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let stage = self.call("list the files").args(&["ls-files", "-z", "--stage"]).run()?;
        let links = source::links(&stage.out);
        let list = ["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"];
        let listed = self.call("list the files").args(&list).run()?;
        let (mut paths, mut repositories) = (BTreeSet::new(), BTreeSet::new());
        for record in bytes::records(&listed.out) {
            let folder = record.strip_suffix(b"/");
            let path = bytes::path(folder.unwrap_or(record));
            if links.contains(&path) || bytes::is_below(&path, self.apart) {
                continue;
            }
            match folder {
                Some(_) => repositories.insert(path),
                None => paths.insert(path),
            };
        }
        Ok((paths.into_iter().collect(), repositories.into_iter().collect()))
    }

    /// Counts the content of changed paths; fails above the bound, as soon as
    /// it is certain.
    pub(crate) fn check_size(&self, paths: &[PathBuf]) -> Result<()> {
        let mut bytes: u64 = 0;
        for path in paths {
            let Ok(meta) = fs::symlink_metadata(self.tree.join(path)) else { continue };
            bytes = bytes.saturating_add(if meta.is_dir() { 0 } else { meta.len() });
            if bytes > BASELINE_BYTES_MAX {
                let path = self.tree.to_owned();
                return Err(Error::TooLarge { path, bytes, bytes_max: BASELINE_BYTES_MAX });
            }
        }
        Ok(())
    }

    /// Puts the state of `paths` into the index.
    pub(crate) fn update(&self, paths: &[PathBuf]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        // Git calls it an error to ask for a folder, and for what lies behind a
        // link; there is no file of that name then.
        let mut links = BTreeMap::new();
        let (gone, rest): (Vec<&Path>, Vec<&Path>) = paths
            .iter()
            .map(PathBuf::as_path)
            .partition(|path| self.is_behind_link(path, &mut links) || self.is_folder(path));
        for (args, paths) in [
            (&["update-index", "--force-remove", "-z", "--stdin"][..], gone),
            (&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], rest),
        ] {
            if !paths.is_empty() {
                self.call("record the files").args(args).input(bytes::list(paths)).run()?;
            }
        }
        Ok(())
    }

    fn is_folder(&self, path: &Path) -> bool {
        fs::symlink_metadata(self.tree.join(path)).is_ok_and(|meta| meta.is_dir())
    }

    /// Whether a folder of a path is a link; `known` remembers them.
    fn is_behind_link<'p>(&self, path: &'p Path, known: &mut BTreeMap<&'p Path, bool>) -> bool {
        let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) else {
            return false;
        };
        if let Some(is_behind) = known.get(folder) {
            return *is_behind;
        }
        let meta = fs::symlink_metadata(self.tree.join(folder));
        let is_link = meta.is_ok_and(|meta| meta.is_symlink());
        let is_behind = is_link || self.is_behind_link(folder, known);
        known.insert(folder, is_behind);
        is_behind
    }

    /// The index as a tree object.
    pub(crate) fn write_tree(&self) -> Result<String> {
        let written = self.call("record the files").args(&["write-tree", "--missing-ok"]).run()?;
        Ok(written.line())
    }

    /// Paths of the index.
    pub(crate) fn tracked(&self) -> Result<BTreeSet<PathBuf>> {
        let listed = self.call("list the files").args(&["ls-files", "-z"]).run()?;
        Ok(bytes::records(&listed.out).map(bytes::path).collect())
    }
}
