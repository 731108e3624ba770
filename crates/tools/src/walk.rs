//! Walks a folder under the ignore rules (`host.md` 4.6.1, 4.7.1): hidden files
//! count, `.git` itself does not, `.gitignore` holds also outside repositories,
//! and the rules of a parent end at the border of a nested repository.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::{DirEntry, Walk, WalkBuilder};

/// Names below a folder in the order of the search tools, folders with a slash
/// at their end; not more than `names_max`.
pub fn names_below(root: &Path, names_max: usize) -> Vec<String> {
    let name = |entry: DirEntry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let slash = if is_folder { "/" } else { "" };
        format!("{}{slash}", relative(entry.path(), root))
    };
    Entries::below(root).take(names_max).map(name).collect()
}

/// Entries below a folder, sorted by name within each folder.
pub(crate) struct Entries {
    walk: Walk,
    in_repository: bool,
    /// Repositories met outside of any repository; each is walked on its own.
    nested: Arc<Mutex<VecDeque<PathBuf>>>,
}

impl Entries {
    /// Starts below `root`, which is not yielded itself.
    pub(crate) fn below(root: &Path) -> Entries {
        let in_repository = root.ancestors().any(is_repository);
        let nested = Arc::default();
        Entries { walk: walk(root, in_repository, &nested), in_repository, nested }
    }

    fn next_nested(&self) -> Option<PathBuf> {
        let mut nested = self.nested.lock().unwrap_or_else(PoisonError::into_inner);
        nested.pop_front()
    }
}

impl Iterator for Entries {
    type Item = DirEntry;

    fn next(&mut self) -> Option<DirEntry> {
        loop {
            match self.walk.next() {
                // What cannot be read is left out.
                Some(Err(_)) => {}
                Some(Ok(entry)) if entry.depth() > 0 => return Some(entry),
                // The top of a nested repository is an entry of its parent.
                Some(Ok(entry)) if !self.in_repository && is_repository(entry.path()) => {
                    return Some(entry);
                }
                Some(Ok(_)) => {}
                None => {
                    let root = self.next_nested()?;
                    self.walk = walk(&root, true, &self.nested);
                }
            }
        }
    }
}

/// Inside a repository the library knows the borders; outside it would not
/// see them, so that nested repositories are put aside.
fn walk(root: &Path, in_repository: bool, nested: &Arc<Mutex<VecDeque<PathBuf>>>) -> Walk {
    let nested = Arc::clone(nested);
    let keep = move |entry: &DirEntry| {
        if entry.depth() == 0 {
            return true;
        }
        if entry.file_name() == ".git" {
            return false;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !in_repository && is_folder && is_repository(entry.path()) {
            let mut nested = nested.lock().unwrap_or_else(PoisonError::into_inner);
            nested.push_back(entry.path().to_owned());
            return false;
        }
        true
    };
    WalkBuilder::new(root)
        .hidden(false)
        .require_git(in_repository)
        .sort_by_file_name(|a, b| a.cmp(b))
        .filter_entry(keep)
        .build()
}

fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// The path below `root` with `/` between its parts.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn files(world: &World, root: &str) -> Vec<String> {
        let root = world.cwd().join(root);
        Entries::below(&root)
            .filter(|entry| entry.path().is_file())
            .map(|entry| relative(entry.path(), &root))
            .collect()
    }

    fn prepare(world: &World) {
        for name in ["a.log", "a.txt", ".hidden", "inner/b.log", "inner/b.txt"] {
            world.file(name, "x");
        }
        world.file(".gitignore", "*.log\n");
        world.file("inner/.git/HEAD", "x");
    }

    #[test]
    fn rules_hold_outside_repositories_and_end_at_nested_ones() {
        // host.md 4.7.1
        let world = World::new();
        prepare(&world);
        let expected = [".gitignore", ".hidden", "a.txt", "inner/b.log", "inner/b.txt"];
        assert_eq!(files(&world, "."), expected);
    }

    #[test]
    fn rules_hold_inside_repositories_and_end_at_nested_ones() {
        let world = World::new();
        prepare(&world);
        world.file(".git/HEAD", "x");
        let expected = [".gitignore", ".hidden", "a.txt", "inner/b.log", "inner/b.txt"];
        assert_eq!(files(&world, "."), expected);
        world.file("sub/c.log", "x");
        world.file("sub/c.txt", "x");
        assert_eq!(files(&world, "sub"), ["c.txt"], "rules of the parents hold");
        assert_eq!(files(&world, "inner"), ["b.log", "b.txt"], "not across the border");
    }

    #[test]
    fn an_ignored_nested_repository_stays_ignored() {
        let world = World::new();
        prepare(&world);
        world.file(".gitignore", "inner\n");
        assert_eq!(files(&world, "."), [".gitignore", ".hidden", "a.log", "a.txt"]);
    }
}
