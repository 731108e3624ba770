//! Tree objects compared and put together; no working tree is read or written.
//!
//! Holds the ladder of ISO-10: a delta is laid onto another tree as a patch,
//! then by three-way merge, then by taking the child's files whole.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::bytes;
use crate::error::{Result, io_error};
use crate::git::{Call, Git};

/// A file as a tree names it: mode and object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Octal digits.
    pub(crate) mode: String,
    pub(crate) object: String,
}

/// One path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<Entry>,
    pub(crate) new: Option<Entry>,
}

/// Our git directory with a folder for passing files.
#[derive(Clone, Copy)]
pub(crate) struct Trees<'a> {
    pub(crate) git: Git<'a>,
    pub(crate) git_dir: &'a Path,
    /// For indexes and patches; exists.
    pub(crate) folder: &'a Path,
    /// Digits of an object's name.
    pub(crate) digits: usize,
}

impl<'a> Trees<'a> {
    pub(crate) fn call(&self, action: &'static str) -> Call<'a> {
        self.git.call(action, self.folder).git_dir(self.git_dir).work_tree(self.folder)
    }

    /// The tree of a commit.
    pub(crate) fn of_commit(&self, commit: &str) -> Result<String> {
        let name = format!("{commit}^{{tree}}");
        let tree = self.call("read a commit").args(&["rev-parse", "--verify"]).arg(name).run()?;
        Ok(tree.line())
    }

    /// Paths that differ, renames as a removal and an addition.
    pub(crate) fn changes(&self, old: &str, new: &str) -> Result<Vec<Change>> {
        if old == new {
            return Ok(Vec::new());
        }
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new];
        let diff = self.call("compare two trees").args(&args).run()?;
        let mut records = bytes::records(&diff.out);
        let mut changes = Vec::new();
        while let (Some(meta), Some(path)) = (records.next(), records.next()) {
            let meta = String::from_utf8_lossy(meta).into_owned();
            let mut words = meta.trim_start_matches(':').split(' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (old_mode, new_mode, old, new) = (word(), word(), word(), word());
            let entry = |mode: String, object| (mode != "000000").then_some(Entry { mode, object });
            changes.push(Change {
                path: bytes::path(path),
                old: entry(old_mode, old),
                new: entry(new_mode, new),
            });
        }
        let is_link = |entry: &Option<Entry>| entry.as_ref().is_some_and(Entry::is_link);
        changes.retain(|change| !is_link(&change.old) && !is_link(&change.new));
        Ok(changes)
    }

    /// The entries of some paths of a tree.
    pub(crate) fn entries(
        &self,
        tree: &str,
        paths: &BTreeSet<PathBuf>,
    ) -> Result<BTreeMap<PathBuf, Entry>> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree];
        let listed = self.call("read a tree").args(&args).run()?;
        let all = listed_entries(&listed.out);
        Ok(all.filter(|(path, _)| paths.contains(path)).collect())
    }

    /// The submodules of a tree.
    pub(crate) fn links(&self, tree: &str) -> Result<BTreeMap<PathBuf, Entry>> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree];
        let listed = self.call("read a tree").args(&args).run()?;
        Ok(listed_entries(&listed.out).filter(|(_, entry)| entry.is_link()).collect())
    }

    /// The entries of some paths of an index, conflicts left out.
    pub(crate) fn staged(
        &self,
        index: &Path,
        paths: &BTreeSet<PathBuf>,
    ) -> Result<BTreeMap<PathBuf, Entry>> {
        let args = ["ls-files", "-z", "--stage"];
        let listed = self.call("read the index").index(index).args(&args).run()?;
        let all = listed_entries(&listed.out);
        Ok(all.filter(|(path, _)| paths.contains(path)).collect())
    }

    /// Writes the difference as a patch that `git apply` takes (ISO-8).
    pub(crate) fn write_patch(&self, old: &str, new: &str, to: File) -> Result<()> {
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "-M",
            "--binary",
            "--full-index",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            old,
            new,
        ];
        self.call("write the patch").args(&args).to(to).run().map(drop)
    }

    /// Writes the difference for eyes into a new file, which is given back at
    /// its start.
    pub(crate) fn write_diff(&self, old: &str, new: &str, path: &Path) -> Result<File> {
        let mut options = File::options();
        let made = options.read(true).write(true).create_new(true).open(path);
        let mut file = made.map_err(io_error("write", path))?;
        let copy = file.try_clone().map_err(io_error("write", path))?;
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "-M",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            old,
            new,
        ];
        self.call("compare two trees").args(&args).to(copy).run()?;
        file.seek(SeekFrom::Start(0)).map_err(io_error("read", path))?;
        Ok(file)
    }

    /// A tree with some paths set or taken out.
    pub(crate) fn with(
        &self,
        tree: &str,
        entries: impl IntoIterator<Item = (PathBuf, Option<Entry>)>,
    ) -> Result<String> {
        let index = self.fresh("index")?;
        self.read(&index, tree)?;
        self.set(&index, entries)?;
        self.write(&index)
    }

    /// Lays the difference from `old` to `new` onto the tree `onto`, for the
    /// paths that `new` does not have in common with `onto` anyway. `None`
    /// when it does not fit; with `may_replace` the files of `new` are taken
    /// whole then (ISO-10).
    pub(crate) fn lay(
        &self,
        old: &str,
        new: &str,
        onto: &str,
        may_replace: bool,
    ) -> Result<Option<String>> {
        if old == onto {
            return Ok(Some(new.to_owned()));
        }
        let open: BTreeSet<PathBuf> =
            self.changes(onto, new)?.into_iter().map(|change| change.path).collect();
        let mut changes = self.changes(old, new)?;
        changes.retain(|change| open.contains(&change.path));
        if changes.is_empty() {
            return Ok(Some(onto.to_owned()));
        }
        let entries = || changes.iter().map(|change| (change.path.clone(), change.new.clone()));
        let wanted = self.with(old, entries())?;
        let patch = self.fresh("patch")?;
        let file = File::create(&patch).map_err(io_error("write", &patch))?;
        self.write_patch(old, &wanted, file)?;
        for way in [&["--cached"][..], &["--cached", "--3way"]] {
            let index = self.fresh("index")?;
            self.read(&index, onto)?;
            let call = self.call("apply the changes").index(&index).arg("apply").args(way);
            if call.arg("--").arg(&patch).end()?.status.success() {
                return self.write(&index).map(Some);
            }
        }
        if may_replace { self.with(onto, entries()).map(Some) } else { Ok(None) }
    }

    /// Fills an index from a tree.
    pub(crate) fn read(&self, index: &Path, tree: &str) -> Result<()> {
        self.call("read a tree").index(index).args(&["read-tree", tree]).run().map(drop)
    }

    /// Sets or takes out entries of an index.
    pub(crate) fn set(
        &self,
        index: &Path,
        entries: impl IntoIterator<Item = (PathBuf, Option<Entry>)>,
    ) -> Result<()> {
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for (path, entry) in entries {
            let out = if entry.is_some() { &mut added } else { &mut removed };
            let none = || Entry { mode: "0".to_owned(), object: "0".repeat(self.digits) };
            let Entry { mode, object } = entry.unwrap_or_else(none);
            out.extend(format!("{mode} {object}\t").bytes());
            out.extend(bytes::of(&path));
            out.push(0);
        }
        // Removals first, since a file may take the place of a folder.
        let input = [removed, added].concat();
        let call = self.call("put a tree together").index(index);
        call.args(&["update-index", "-z", "--index-info"]).input(input).run().map(drop)
    }

    /// Writes files below the folder `to`, as the filters and line ends of the
    /// working tree `root` want them. Entries of `None` are left out.
    pub(crate) fn check_out(
        &self,
        root: &Path,
        entries: impl Iterator<Item = (PathBuf, Option<Entry>)>,
        to: &Path,
    ) -> Result<()> {
        let index = self.fresh("index")?;
        self.set(&index, entries.filter(|(_, entry)| entry.is_some()))?;
        if !index.exists() {
            return Ok(());
        }
        let mut prefix = OsString::from("--prefix=");
        prefix.push(to.join(""));
        let call = self.git.call("write the files", root);
        let call = call.git_dir(self.git_dir).work_tree(root).index(&index);
        call.args(&["checkout-index", "--all", "--force", "-q"]).arg(prefix).run().map(drop)
    }

    pub(crate) fn write(&self, index: &Path) -> Result<String> {
        let call = self.call("put a tree together").index(index);
        Ok(call.args(&["write-tree", "--missing-ok"]).run()?.line())
    }

    /// Merges three files; `None` when they do not fit. Absent ones and links
    /// never do.
    pub(crate) fn merge_files(
        &self,
        base: Option<&Entry>,
        ours: Option<&Entry>,
        theirs: Option<&Entry>,
    ) -> Result<Option<Entry>> {
        let (Some(base), Some(ours), Some(theirs)) = (base, ours, theirs) else { return Ok(None) };
        if ![base, ours, theirs].iter().all(|entry| entry.mode.starts_with("100")) {
            return Ok(None);
        }
        let file = |entry: &Entry| -> Result<PathBuf> {
            let path = self.fresh("side")?;
            let to = File::create(&path).map_err(io_error("write", &path))?;
            let call = self.call("read a file").args(&["cat-file", "blob", &entry.object]);
            call.to(to).run()?;
            Ok(path)
        };
        let (mine, common, other) = (file(ours)?, file(base)?, file(theirs)?);
        let call = self.call("merge a file").args(&["merge-file", "-q", "-p"]);
        let merged = call.arg(&mine).arg(&common).arg(&other).end()?;
        if !merged.status.success() {
            return Ok(None);
        }
        let call = self.call("write a file").args(&["hash-object", "-w", "--stdin"]);
        let written = call.input(merged.out).run()?;
        let mode = if theirs.mode == base.mode { &ours.mode } else { &theirs.mode };
        Ok(Some(Entry { mode: mode.clone(), object: written.line() }))
    }

    /// A name in our folder that nothing has yet.
    pub(crate) fn fresh(&self, stem: &str) -> Result<PathBuf> {
        let mut number = 1_u32;
        loop {
            let path = self.folder.join(format!("{stem}-{number}"));
            match fs::symlink_metadata(&path) {
                Ok(_) => number += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path),
                Err(error) => return Err(io_error("read", &path)(error)),
            }
        }
    }
}

impl Entry {
    /// Of a submodule.
    fn is_link(&self) -> bool {
        self.mode == "160000"
    }
}

/// Reads the output of `ls-tree` (mode, kind, object) or of `ls-files --stage`
/// (mode, object, stage).
fn listed_entries(output: &[u8]) -> impl Iterator<Item = (PathBuf, Entry)> {
    bytes::records(output).filter_map(|record| {
        let at = record.iter().position(|byte| *byte == b'\t')?;
        let meta = String::from_utf8_lossy(&record[..at]).into_owned();
        let words: Vec<&str> = meta.split(' ').collect();
        let [mode, second, third] = words[..] else { return None };
        let object = if third.len() == 1 { second } else { third };
        let entry = Entry { mode: mode.to_owned(), object: object.to_owned() };
        Some((bytes::path(&record[at + 1..]), entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty repository with a folder for passing files.
    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            let place = Place { dir: tempfile::tempdir().unwrap() };
            let git = place.git();
            git.call("init", place.dir.path()).args(&["init", "-q", "--bare", "r"]).run().unwrap();
            place
        }

        fn git(&self) -> Git<'_> {
            Git { scratch: self.dir.path(), cancel: &|| false, marker: None }
        }

        fn with<T>(&self, act: impl FnOnce(&Trees<'_>) -> T) -> T {
            let git_dir = self.dir.path().join("r");
            act(&Trees { git: self.git(), git_dir: &git_dir, folder: self.dir.path(), digits: 40 })
        }

        /// A tree of these files.
        fn tree(&self, files: &[(&str, &str)]) -> String {
            self.with(|trees| {
                let empty = trees.call("make").args(&["mktree"]).run().unwrap().line();
                let entries = files.iter().map(|(name, text)| {
                    let call = trees.call("write").args(&["hash-object", "-w", "--stdin"]);
                    let object = call.input(text.as_bytes().to_vec()).run().unwrap().line();
                    (PathBuf::from(name), Some(Entry { mode: "100644".to_owned(), object }))
                });
                trees.with(&empty, entries.collect::<Vec<_>>()).unwrap()
            })
        }
    }

    /// Twelve lines, some of them replaced.
    fn text(replaced: &[(usize, &str)]) -> String {
        let line = |number| {
            let found = replaced.iter().find(|(at, _)| *at == number);
            found.map_or(format!("{number}\n"), |(_, text)| format!("{text}\n"))
        };
        (0..12).map(line).collect()
    }

    // ISO-10
    #[test]
    fn a_delta_is_laid_as_gently_as_it_can() {
        let place = Place::new();
        let onto = text(&[]);
        let check = |user: &[(usize, &str)], child: (usize, &str), fits: Option<&str>| {
            let old = text(user);
            let all: Vec<(usize, &str)> =
                std::iter::once(child).chain(user.iter().copied()).collect();
            let new = text(&all);
            let [old, onto, expected_whole] =
                [&old, &onto, &new].map(|text| place.tree(&[("a", text), ("b", "b\n")]));
            let new = place.tree(&[("a", &new), ("b", "b\n")]);
            let lay = |may_replace| place.with(|trees| trees.lay(&old, &new, &onto, may_replace));
            let expected = fits.map(|text| place.tree(&[("a", text), ("b", "b\n")]));
            assert_eq!(lay(false).unwrap(), expected, "{child:?}");
            assert_eq!(lay(true).unwrap(), Some(expected.unwrap_or(expected_whole)), "{child:?}");
        };
        check(&[(10, "user")], (1, "child"), Some(&text(&[(1, "child")])));
        // Too close for a patch, not for a merge.
        check(&[(3, "user")], (5, "child"), Some(&text(&[(5, "child")])));
        check(&[(3, "user")], (3, "child"), None);
    }

    // What the person has not committed is no removal of theirs.
    #[test]
    fn paths_that_the_goal_shares_with_the_ground_are_left_out() {
        let place = Place::new();
        let onto = place.tree(&[("a", "a\n")]);
        let old = place.tree(&[("a", "a of the user\n"), ("mine", "m\n")]);
        let new = place.tree(&[("a", "a\n"), ("made", "n\n")]);
        let laid = place.with(|trees| trees.lay(&old, &new, &onto, false)).unwrap();
        assert_eq!(laid, Some(place.tree(&[("a", "a\n"), ("made", "n\n")])));
    }

    #[test]
    fn files_merge_by_lines_and_modes_by_who_changed_them() {
        let place = Place::new();
        let entry = |text: &str, mode: &str| {
            let tree = place.tree(&[("a", text)]);
            let only = BTreeSet::from([PathBuf::from("a")]);
            let entries = place.with(|trees| trees.entries(&tree, &only)).unwrap();
            Entry { mode: mode.to_owned(), ..entries[Path::new("a")].clone() }
        };
        let merge = |base: &Entry, ours: &Entry, theirs: &Entry| {
            place.with(|trees| trees.merge_files(Some(base), Some(ours), Some(theirs))).unwrap()
        };
        let base = entry(&text(&[]), "100644");
        let ours = entry(&text(&[(1, "ours")]), "100644");
        let theirs = entry(&text(&[(9, "theirs")]), "100755");
        let both = entry(&text(&[(1, "ours"), (9, "theirs")]), "100755");
        assert_eq!(merge(&base, &ours, &theirs), Some(both));
        assert_eq!(merge(&base, &ours, &entry(&text(&[(1, "theirs")]), "100644")), None);
        let binary = entry("\0\u{1}", "100644");
        assert_eq!(merge(&base, &binary, &theirs), None);
        let link = entry("target", "120000");
        assert_eq!(merge(&base, &link, &theirs), None);
        let absent = place.with(|trees| trees.merge_files(None, Some(&ours), Some(&theirs)));
        assert_eq!(absent.unwrap(), None);
    }
}
