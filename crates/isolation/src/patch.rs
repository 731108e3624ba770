//! Brings a delta back as a patch on the working tree (ISO-14).
//!
//! The patch is tried on copies of the files it touches; only what came out of
//! that is put into the person's tree, as one change (`swap`). Index, HEAD and
//! refs are not looked at.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::bytes::{self, shown_path};
use crate::error::{Result, io_error};
use crate::git::Git;
use crate::slot::{Slot, remove_all};
use crate::snapshot::View;
use crate::source::Repository;
use crate::swap::{Shape, Swap, shape};
use crate::trees::{Change, Entry, Trees};

/// How a change of the person's tree ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Applied,
    /// The tree had it already.
    AlreadyThere,
    /// Nothing was changed; why.
    Refused(String),
}

/// One repository that gets its changes back.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) git: Git<'a>,
    pub(crate) slot: &'a Slot,
    pub(crate) number: usize,
    pub(crate) repository: &'a Repository,
    /// The synthetic tree of the copy now.
    pub(crate) tree: &'a str,
    /// The parent's working directory as seen from the first repository.
    pub(crate) cwd: &'a Path,
}

impl Target<'_> {
    /// A fresh folder for the change, with `old/` and `new/`.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        let folder = self.slot.dir.join(format!("merge-{}", self.number));
        remove_all(&folder).map_err(io_error("remove", &folder))?;
        for inner in ["old", "new"] {
            let path = folder.join(inner);
            fs::create_dir_all(&path).map_err(io_error("create", &path))?;
        }
        Ok(folder)
    }

    pub(crate) fn git_dir(&self) -> PathBuf {
        self.slot.git_dir(self.number)
    }

    /// The folder that must stay: where the parent works.
    pub(crate) fn keep(&self) -> &Path {
        self.cwd.strip_prefix(&self.repository.place).unwrap_or(Path::new(""))
    }

    /// What comes to a path, as it lies in `new/`. What the person has keeps its
    /// mode but for the bits that changed from `before` to `after`; a new file
    /// comes as the child has it.
    pub(crate) fn coming(
        &self,
        swap: &Swap<'_>,
        path: &Path,
        old: &Shape,
        before: Option<&Entry>,
        after: Option<&Entry>,
    ) -> Result<Shape> {
        let came = swap.new_content(path);
        Ok(match shape(&came).map_err(io_error("read", &came))? {
            Shape::File(_) => {
                let is_program = |entry: &Entry| entry.mode == "100755";
                let wants = after.is_some_and(is_program);
                let same = before.map(|entry| &entry.mode) == after.map(|entry| &entry.mode);
                Shape::File(match old {
                    Shape::File(mode) if same => *mode,
                    Shape::File(mode) if wants => mode | ((mode & 0o444) >> 2),
                    Shape::File(mode) => mode & !0o111,
                    Shape::Absent | Shape::Link(_) | Shape::Other => {
                        self.mode_in_copy(path).unwrap_or(if wants { 0o755 } else { 0o644 })
                    }
                })
            }
            // A folder is there for what is to stand in it.
            Shape::Other if after.is_none() => Shape::Absent,
            Shape::Other => Shape::Other,
            other @ (Shape::Absent | Shape::Link(_)) => other,
        })
    }

    fn mode_in_copy(&self, path: &Path) -> Option<u32> {
        let in_copy = self.slot.tree().join(&self.repository.place).join(path);
        let meta = fs::symlink_metadata(in_copy).ok()?;
        meta.is_file().then(|| meta.permissions().mode() & 0o777)
    }
}

/// Applies a patch file to the working tree of the source, or not at all.
pub(crate) fn apply(
    target: &Target<'_>,
    patch: &Path,
    warnings: &mut Vec<String>,
) -> Result<Outcome> {
    let folder = target.folder()?;
    let source = &target.repository.source;
    let git_dir = target.git_dir();
    let digits = source.digits();
    let trees = Trees { git: target.git, git_dir: &git_dir, folder: &folder, digits };
    let changes = trees.changes(&target.repository.baseline, target.tree)?;
    let swap = Swap { git: target.git, folder: &folder, root: &source.root };
    let paths: BTreeSet<PathBuf> = changes.iter().map(|change| change.path.clone()).collect();
    let mut olds = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let old = swap.keep_old(number, &change.path, &paths)?;
        if old == Shape::Other {
            let path = shown_path(&change.path);
            return Ok(Outcome::Refused(format!("`{path}` is a folder in the working tree")));
        }
        stage(&swap, number, &change.path, &old)?;
        olds.push(old);
    }
    add_attributes(&swap, &changes)?;
    if let Some(outcome) = try_on_copies(target, &trees, &swap, patch, &changes)? {
        return Ok(outcome);
    }
    let mut steps = Vec::new();
    for (change, old) in changes.into_iter().zip(olds) {
        let (before, after) = (change.old.as_ref(), change.new.as_ref());
        let new = target.coming(&swap, &change.path, &old, before, after)?;
        steps.push((change.path, old, new));
    }
    let journal = swap.journal(&source.common_dir, target.keep(), steps, None);
    match swap.run(&journal) {
        Ok(()) => Ok(Outcome::Applied),
        Err(refused) => {
            warnings.extend(refused.warnings);
            Ok(Outcome::Refused(refused.why))
        }
    }
}

/// Applies the patch to the copies in `new/`; gives the outcome if it ends here.
fn try_on_copies(
    target: &Target<'_>,
    trees: &Trees<'_>,
    swap: &Swap<'_>,
    patch: &Path,
    changes: &[Change],
) -> Result<Option<Outcome>> {
    let staged = swap.folder.join("new");
    let call = || {
        let call = target.git.call("apply the patch", &staged).git_dir(trees.git_dir);
        call.work_tree(&staged).index(&swap.folder.join("no-index")).arg("apply")
    };
    let applied = call().arg("--").arg(patch).end()?;
    if applied.status.success() {
        return Ok(None);
    }
    if call().args(&["-R", "--check", "--"]).arg(patch).end()?.status.success() {
        return Ok(Some(Outcome::AlreadyThere));
    }
    if !is_at_baseline(target, trees, changes)? {
        return Ok(Some(Outcome::Refused(applied.said)));
    }
    // Git does not apply every patch that it writes: not all where files, folders
    // and links take each other's place. Here the result is known without it.
    remove_all(&staged).map_err(io_error("remove", &staged))?;
    fs::create_dir(&staged).map_err(io_error("create", &staged))?;
    let coming = changes.iter().map(|change| (change.path.clone(), change.new.clone()));
    trees.check_out(swap.root, coming, &staged)?;
    Ok(None)
}

/// Whether the person's files are still those that the child started from.
fn is_at_baseline(target: &Target<'_>, trees: &Trees<'_>, changes: &[Change]) -> Result<bool> {
    let index = trees.fresh("index")?;
    trees.read(&index, &target.repository.baseline)?;
    let root = target.repository.source.root.as_path();
    let view =
        View { git: target.git, git_dir: trees.git_dir, index: &index, tree: root, apart: &[] };
    let paths: Vec<PathBuf> = changes.iter().map(|change| change.path.clone()).collect();
    view.update(&paths)?;
    let now = trees.staged(&index, &paths.into_iter().collect())?;
    Ok(changes.iter().all(|change| now.get(&change.path) == change.old.as_ref()))
}

/// Puts a file of the person where the patch is tried. Git replaces files, it
/// never writes into them, so a second name for the kept copy will do.
fn stage(swap: &Swap<'_>, number: usize, path: &Path, old: &Shape) -> Result<()> {
    let to = swap.new_content(path);
    let put = || match old {
        Shape::File(_) => {
            make_parent(&to)?;
            fs::hard_link(swap.old_content(number), &to)
        }
        Shape::Link(leads_to) => {
            make_parent(&to)?;
            symlink(bytes::path(leads_to), &to)
        }
        Shape::Absent | Shape::Other => Ok(()),
    };
    put().map_err(io_error("write", &to))
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Line ends and filters depend on the attributes around a file.
fn add_attributes(swap: &Swap<'_>, changes: &[Change]) -> Result<()> {
    let mut folders: Vec<&Path> =
        changes.iter().flat_map(|change| change.path.ancestors().skip(1)).collect();
    folders.sort();
    folders.dedup();
    for folder in folders {
        let path = folder.join(".gitattributes");
        let (from, to) = (swap.root.join(&path), swap.new_content(&path));
        let is_wanted = matches!(shape(&from), Ok(Shape::File(_)))
            && matches!(shape(&to), Ok(Shape::Absent))
            && !changes.iter().any(|change| change.path == path);
        let parent_is_folder = to
            .parent()
            .is_some_and(|parent| matches!(shape(parent), Ok(Shape::Other | Shape::Absent)));
        if is_wanted && parent_is_folder {
            let copied = make_parent(&to).and_then(|()| fs::copy(&from, &to));
            copied.map_err(io_error("copy", &from))?;
        }
    }
    Ok(())
}
