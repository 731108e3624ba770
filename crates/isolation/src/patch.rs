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
use crate::source::Repository;
use crate::swap::{Shape, Swap, shape};
use crate::trees::{Change, Trees};

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

    /// The mode of a file that comes to the tree. What the person has keeps its
    /// mode but for the bits that the child changed; a new file comes as the
    /// child has it.
    pub(crate) fn mode(
        &self,
        old: &Shape,
        change: (Option<&str>, Option<&str>),
        path: &Path,
    ) -> u32 {
        let is_program = |mode: &str| mode == "100755";
        let (before, after) = change;
        let wants = after.is_some_and(is_program);
        match old {
            Shape::File(mode) if before == after => *mode,
            Shape::File(mode) if wants => mode | ((mode & 0o444) >> 2),
            Shape::File(mode) => mode & !0o111,
            Shape::Absent | Shape::Link(_) | Shape::Other => {
                let in_copy = self.slot.tree().join(&self.repository.place).join(path);
                match fs::symlink_metadata(in_copy) {
                    Ok(meta) if meta.is_file() => meta.permissions().mode() & 0o777,
                    _ if wants => 0o755,
                    _ => 0o644,
                }
            }
        }
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
    let staged = folder.join("new");
    let call = || {
        let call = target.git.call("apply the patch", &staged).git_dir(&git_dir);
        call.work_tree(&staged).index(&folder.join("no-index")).arg("apply")
    };
    let applied = call().arg("--").arg(patch).end()?;
    if !applied.status.success() {
        let back = call().args(&["-R", "--check", "--"]).arg(patch).end()?;
        return Ok(match back.status.success() {
            true => Outcome::AlreadyThere,
            false => Outcome::Refused(applied.said),
        });
    }
    let mut steps = Vec::new();
    for (change, old) in changes.into_iter().zip(olds) {
        let came = swap.new_content(&change.path);
        let new = match shape(&came).map_err(io_error("read", &came))? {
            Shape::File(_) => {
                let mode = |entry: &Option<crate::trees::Entry>| {
                    entry.as_ref().map(|entry| entry.mode.clone())
                };
                let (before, after) = (mode(&change.old), mode(&change.new));
                let modes = (before.as_deref(), after.as_deref());
                Shape::File(target.mode(&old, modes, &change.path))
            }
            // A folder is there for what is to stand in it.
            Shape::Other => Shape::Absent,
            other @ (Shape::Absent | Shape::Link(_)) => other,
        };
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
