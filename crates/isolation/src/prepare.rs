//! Makes a copy (ISO-2 to ISO-5): the baseline of every repository, then the
//! files, by the first backend that works.
//!
//! The source is only read. Invariant: the recorded baseline is exactly what
//! the copy holds when the child starts; a person may edit while it is made.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crew_task::settings::Backend;

use crate::bytes;
use crate::copying;
use crate::detached;
use crate::error::{Error, Result, io_error};
use crate::git::Git;
use crate::slot::{Contents, Slot, remove_all};
use crate::snapshot::View;
use crate::source::{self, Repository, Source};

/// Fills a slot with a copy of the repository around `cwd`.
pub(crate) fn fill(
    git: &Git<'_>,
    slot: &Slot,
    base: &Path,
    root: Source,
    cwd: &Path,
    backend: Backend,
    warnings: &mut Vec<String>,
) -> Result<Contents> {
    let inner = relative(&root.root, cwd);
    let (mut repositories, left_out) = source::all(git, root, base, warnings)?;
    for (number, repository) in repositories.iter().enumerate() {
        detached::make(git, &repository.source, &slot.git_dir(number))?;
    }
    let making = Making { git: *git, slot, base, left_out: &left_out };
    let order = match backend {
        Backend::Auto | Backend::Worktree => [Backend::Worktree, Backend::Copy],
        Backend::Copy => [Backend::Copy, Backend::Worktree],
    };
    let [first, second] = order.map(|backend| (backend, name(backend)));
    if let Err(error) = making.run(&mut repositories, first.0, warnings) {
        if matches!(error, Error::Cancelled | Error::TooLarge { .. }) {
            return Err(error);
        }
        remove_all(&slot.tree()).map_err(io_error("remove", &slot.tree()))?;
        let said = bytes::shown(error.to_string().as_bytes());
        // The first way is the one that was asked for.
        making.run(&mut repositories, second.0, warnings).map_err(|_| error)?;
        warnings.push(format!("{} was used, since {} failed: {said}", second.1, first.1));
    }
    let contents = Contents { cwd: inner, repositories, is_settled: false };
    let start = slot.tree().join(&contents.cwd);
    fs::create_dir_all(&start).map_err(io_error("create", &start))?;
    slot.write_contents(&contents)?;
    Ok(contents)
}

fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Auto | Backend::Worktree => "a work tree",
        Backend::Copy => "a copy",
    }
}

/// The working directory as seen from the top of the repository.
fn relative(root: &Path, cwd: &Path) -> PathBuf {
    let real = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let top = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    real.strip_prefix(&top).map(Path::to_owned).unwrap_or_default()
}

struct Making<'a> {
    git: Git<'a>,
    slot: &'a Slot,
    base: &'a Path,
    /// Places of repositories that are no part of the copy.
    left_out: &'a [PathBuf],
}

impl Making<'_> {
    fn run(
        &self,
        repositories: &mut [Repository],
        backend: Backend,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let tree = self.slot.tree();
        fs::create_dir(&tree).map_err(io_error("create", &tree))?;
        fs::set_permissions(&tree, Permissions::from_mode(0o700))
            .map_err(io_error("create", &tree))?;
        match backend {
            Backend::Auto | Backend::Worktree => self.check_out(repositories)?,
            Backend::Copy => self.copy(repositories, warnings)?,
        }
        for (number, repository) in repositories.iter().enumerate() {
            self.give_git_dir(number, repository)?;
        }
        Ok(())
    }

    /// Takes a synthetic tree of each source and lets git write it.
    fn check_out(&self, repositories: &mut [Repository]) -> Result<()> {
        let all = repositories.to_vec();
        for (number, repository) in repositories.iter_mut().enumerate() {
            let (git_dir, index) = (self.slot.git_dir(number), self.slot.index(number));
            let root = repository.source.root.clone();
            let apart = self.apart(&all, number);
            self.fresh_index(repository, number)?;
            let from = View {
                git: self.git,
                git_dir: &git_dir,
                index: &index,
                tree: &root,
                apart: &apart,
            };
            let (paths, _) = from.changed()?;
            from.check_size(&paths)?;
            from.update(&paths)?;
            repository.baseline = from.write_tree()?;
            let place = self.slot.tree().join(&repository.place);
            fs::create_dir_all(&place).map_err(io_error("create", &place))?;
            let to = View { tree: &place, ..from };
            let call = to.call("check out the files");
            call.args(&["checkout-index", "--all", "--force", "--quiet", "--index"]).run()?;
            copying::keep_modes(&root, &place, &from.tracked()?);
        }
        Ok(())
    }

    /// Copies all files, then takes the synthetic trees of what arrived.
    fn copy(&self, repositories: &mut [Repository], warnings: &mut Vec<String>) -> Result<()> {
        let all = repositories.to_vec();
        let views = |number: usize, tree: &Path| -> Result<Option<String>> {
            let (git_dir, index) = (self.slot.git_dir(number), self.slot.index(number));
            let apart = self.apart(&all, number);
            self.fresh_index(&all[number], number)?;
            let view =
                View { git: self.git, git_dir: &git_dir, index: &index, tree, apart: &apart };
            let (paths, _) = view.changed()?;
            view.check_size(&paths)?;
            if tree == all[number].source.root {
                return Ok(None);
            }
            view.update(&paths)?;
            view.write_tree().map(Some)
        };
        // Before the work: a refusal should not cost a copy.
        for (number, repository) in all.iter().enumerate() {
            views(number, &repository.source.root)?;
        }
        let places: BTreeSet<PathBuf> = all.iter().map(|one| one.place.clone()).collect();
        let (from, to) = (&all[0].source.root, self.slot.tree());
        let mut apart = self.left_out.to_vec();
        apart.extend(self.base.strip_prefix(from).ok().map(Path::to_owned));
        copying::copy_tree(&self.git, from, &to, &places, &apart, warnings)?;
        for (number, repository) in repositories.iter_mut().enumerate() {
            let place = to.join(&repository.place);
            fs::create_dir_all(&place).map_err(io_error("create", &place))?;
            repository.baseline = views(number, &place)?.unwrap_or_default();
        }
        Ok(())
    }

    /// Starts our index from the person's.
    fn fresh_index(&self, repository: &Repository, number: usize) -> Result<()> {
        let index = self.slot.index(number);
        // Left over from a backend that failed, or not there.
        let _ = fs::remove_file(&index);
        detached::copy_index(&repository.source, &self.slot.git_dir(number), &index)
    }

    /// What is no part of a repository's tree, as seen from its root.
    fn apart(&self, all: &[Repository], number: usize) -> Vec<PathBuf> {
        let mut apart = apart(all, number);
        let base = self.base.strip_prefix(&all[number].source.root);
        apart.extend(base.ok().map(Path::to_owned));
        apart
    }

    /// Gives the copy of a repository its own git directory, with the index as
    /// the person has it: what is staged there is staged here.
    fn give_git_dir(&self, number: usize, repository: &Repository) -> Result<()> {
        let place = self.slot.tree().join(&repository.place);
        let git_dir = place.join(".git");
        detached::make_like(&repository.source, &self.slot.git_dir(number), &git_dir)?;
        detached::add_refs(&self.git, &repository.source, &git_dir)?;
        let index = git_dir.join("index");
        detached::copy_index(&repository.source, &git_dir, &index)?;
        let view =
            View { git: self.git, git_dir: &git_dir, index: &index, tree: &place, apart: &[] };
        if index.exists() {
            // Exits with 1 when something differs, which is no failure.
            view.call("look at the copy").args(&["update-index", "-q", "--refresh"]).end()?;
        }
        Ok(())
    }
}

/// Places of the repositories that lie in repository `number`, as seen from
/// its root.
pub(crate) fn apart(all: &[Repository], number: usize) -> Vec<PathBuf> {
    let outer = &all[number].place;
    let inner = all.iter().enumerate().filter(|(other, _)| *other != number);
    inner
        .filter_map(|(_, other)| other.place.strip_prefix(outer).ok())
        .filter(|place| !place.as_os_str().is_empty())
        .map(Path::to_owned)
        .collect()
}
