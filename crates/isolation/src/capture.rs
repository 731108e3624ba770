//! Finds out what a child changed (ISO-6 to ISO-8): a synthetic tree of every
//! repository of the copy, and the patch files.
//!
//! Trusts nothing in the copy: its git directories may be gone or changed, so
//! the trees are taken with ours. Patch files come as a whole set or not at all.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crew_task::isolation::{nested_patch_name, patch_name};

use crate::bytes;
use crate::detached;
use crate::error::{Error, Result, io_error};
use crate::git::Git;
use crate::prepare;
use crate::slot::{Contents, Slot};
use crate::snapshot::View;
use crate::trees::Trees;

/// Characters of a repository's place in the name of its patch file.
const PLACE_CHARS_MAX: usize = 100;

/// What is to be brought back from one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Of the copy's repositories.
    pub(crate) number: usize,
    /// The synthetic tree of now.
    pub(crate) tree: String,
}

/// The repositories that differ from their baseline, the first one only if it
/// does too.
pub(crate) fn deltas(
    git: &Git<'_>,
    slot: &Slot,
    contents: &Contents,
    warnings: &mut Vec<String>,
) -> Result<Vec<Delta>> {
    let mut deltas = Vec::new();
    for (number, repository) in contents.repositories.iter().enumerate() {
        let place = slot.tree().join(&repository.place);
        check_folders(&slot.tree(), &repository.place)?;
        fs::create_dir_all(&place).map_err(io_error("create", &place))?;
        let index = slot.dir.join(format!("index-now-{number}"));
        // Left by a git that was cancelled.
        let _ = fs::remove_file(index.with_extension("lock"));
        let _ = fs::remove_file(&index);
        detached::copy_if_there(&slot.index(number), &index)?;
        let git_dir = slot.git_dir(number);
        let apart = prepare::apart(&contents.repositories, number);
        let view =
            View { git: *git, git_dir: &git_dir, index: &index, tree: &place, apart: &apart };
        let (paths, made) = view.changed()?;
        view.update(&paths)?;
        view.update(&added_by_force(&view)?)?;
        for folder in made {
            view.update(&files_of_new(&view, &folder)?)?;
            warnings.push(format!(
                "`{}` is a repository that the child made: its files count as changes of the one \
                 around it, its history does not",
                bytes::shown_path(&repository.place.join(&folder))
            ));
        }
        let tree = view.write_tree()?;
        if tree != repository.baseline {
            deltas.push(Delta { number, tree });
        }
    }
    Ok(deltas)
}

/// A child may have put a link where a folder of a repository was; what it
/// leads to is no part of the copy.
fn check_folders(top: &Path, place: &Path) -> Result<()> {
    let mut at = top.to_owned();
    for part in place {
        at.push(part);
        let Ok(meta) = fs::symlink_metadata(&at) else { return Ok(()) };
        if !meta.is_dir() {
            let error = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            return Err(io_error("read", &at)(error));
        }
    }
    Ok(())
}

/// What the child tracks although git would ignore it.
fn added_by_force(view: &View<'_>) -> Result<Vec<PathBuf>> {
    let git_dir = view.tree.join(".git");
    let index = git_dir.join("index");
    if !index.is_file() {
        return Ok(Vec::new());
    }
    // An index that the child broke says nothing.
    let theirs = View { git_dir: &git_dir, index: &index, ..*view };
    let Ok(listed) = theirs.tracked() else { return Ok(Vec::new()) };
    let known = view.tracked()?;
    let is_file = |path: &PathBuf| {
        fs::symlink_metadata(view.tree.join(path)).is_ok_and(|meta| !meta.is_dir())
    };
    let mut added: Vec<PathBuf> = listed.difference(&known).cloned().collect();
    added.retain(|path| !bytes::is_below(path, view.apart) && is_file(path));
    Ok(added)
}

/// The files of a repository that came with the child, as seen from the one
/// around it.
fn files_of_new(view: &View<'_>, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let dir = view.tree.join(&folder);
        if !dir.join(".git").exists() {
            continue;
        }
        let call = view.git.call("list the files", &dir);
        let call = call.git_dir(&dir.join(".git")).work_tree(&dir);
        let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        for record in bytes::records(&call.args(&args).run()?.out) {
            let inner = folder.join(bytes::path(record.strip_suffix(b"/").unwrap_or(record)));
            match fs::symlink_metadata(view.tree.join(&inner)) {
                Ok(meta) if meta.is_dir() => folders.push(inner),
                Ok(_) => files.push(inner),
                Err(_) => {}
            }
        }
    }
    Ok(files)
}

/// The patch files of a copy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Patches {
    /// For the working tree itself, possibly an empty one.
    pub(crate) root: Option<PathBuf>,
    /// For the others, each with its number among the repositories.
    pub(crate) nested: Vec<(usize, PathBuf)>,
}

/// What the patch files of a copy are made from.
pub(crate) struct PatchSet<'a> {
    pub(crate) git: Git<'a>,
    pub(crate) slot: &'a Slot,
    pub(crate) contents: &'a Contents,
    pub(crate) deltas: &'a [Delta],
    /// Where they go.
    pub(crate) folder: &'a Path,
    /// Id of the child.
    pub(crate) id: &'a str,
}

impl PatchSet<'_> {
    /// Writes the files (ISO-8), all or none; with `root` also that of the
    /// working tree itself.
    pub(crate) fn write(&self, root: bool) -> Result<Patches> {
        let mut written = Vec::new();
        let patches = self.write_all(root, &mut written);
        if patches.is_err() {
            for path in written {
                // The set is incomplete; a file that cannot be removed stays.
                let _ = fs::remove_file(path);
            }
        }
        patches
    }

    fn write_all(&self, root: bool, written: &mut Vec<PathBuf>) -> Result<Patches> {
        let mut patches = Patches::default();
        if root {
            let baseline = self.contents.repositories[0].baseline.as_str();
            let now = self.deltas.iter().find(|delta| delta.number == 0);
            let tree = now.map_or(baseline, |delta| delta.tree.as_str());
            patches.root = Some(self.write_one(0, tree, &patch_name(self.id), written)?);
        }
        let inner = self.deltas.iter().filter(|delta| delta.number > 0);
        for (at, Delta { number, tree }) in inner.enumerate() {
            let place = self.contents.repositories[*number].place.to_string_lossy();
            let place: String = place.chars().take(PLACE_CHARS_MAX).collect();
            let name = nested_patch_name(self.id, at + 1, &place);
            patches.nested.push((*number, self.write_one(*number, tree, &name, written)?));
        }
        Ok(patches)
    }

    fn write_one(
        &self,
        number: usize,
        tree: &str,
        name: &str,
        written: &mut Vec<PathBuf>,
    ) -> Result<PathBuf> {
        let repository = &self.contents.repositories[number];
        let path = self.folder.join(name);
        let staged = path.with_extension("patch.new");
        let mut options = OpenOptions::new();
        let made = options.write(true).create(true).truncate(true).mode(0o600).open(&staged);
        let file = made.map_err(io_error("write", &staged))?;
        written.push(staged.clone());
        let copy = file.try_clone().map_err(io_error("write", &staged))?;
        let git_dir = self.slot.git_dir(number);
        let digits = repository.source.digits();
        let trees = Trees { git: self.git, git_dir: &git_dir, folder: &self.slot.dir, digits };
        trees.write_patch(&repository.baseline, tree, copy)?;
        publish(&file, &staged, &path)?;
        written.push(path.clone());
        Ok(path)
    }
}

/// Gives a finished file its name.
fn publish(file: &File, staged: &Path, path: &Path) -> Result<()> {
    let published = file.sync_all().and_then(|()| fs::rename(staged, path));
    published.map_err(io_error("write", path))
}

/// A path that is told to others.
pub(crate) fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::NotText { path: path.to_owned() })
}
