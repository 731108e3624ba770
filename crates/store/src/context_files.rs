//! Context files: `AGENTS.md` and its like from the agent directory and from
//! the root down to the working directory (`host.md` 5.1).
//!
//! Reads whole files; never looks at trust, which does not matter here (5.6.5).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crew_base::definition::Warning;
use crew_base::limits::CONTEXT_FILE_BYTES_MAX;

use crate::{files, paths};

/// Names in falling priority (`host.md` 5.1.1).
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// One file for the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text without byte order mark.
    pub text: String,
}

/// Loads the context files in prompt order: agent directory, then root to
/// working directory, each file once (`host.md` 5.1.2).
pub fn load(agent_dir: &Path, cwd: &Path) -> (Vec<ContextFile>, Vec<Warning>) {
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.push(agent_dir);
    folders.reverse();
    let skipped = main_checkout_root(cwd);
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for folder in folders {
        if skipped.as_deref() == Some(folder) && folder != agent_dir {
            continue;
        }
        let Some(path) = first_file(folder) else {
            continue;
        };
        if !seen.insert(paths::resolved(&path)) {
            continue;
        }
        match read(&path) {
            Ok((text, is_whole)) => {
                if !is_whole {
                    let limit = CONTEXT_FILE_BYTES_MAX / 1024;
                    let message = format!("only the first {limit} KiB are used as context");
                    warnings.push(warning(&path, message));
                }
                found.push(ContextFile { path, text });
            }
            Err(error) => warnings.push(warning(&path, format!("cannot be read: {error}"))),
        }
    }
    (found, warnings)
}

fn first_file(folder: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// The text, and whether it is all of it.
fn read(path: &Path) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    let limit = CONTEXT_FILE_BYTES_MAX as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() <= CONTEXT_FILE_BYTES_MAX;
    let text = String::from_utf8_lossy(&bytes);
    let end = text.floor_char_boundary(CONTEXT_FILE_BYTES_MAX.min(text.len()));
    let text = if is_whole { &text } else { &text[..end] };
    Ok((files::without_bom(text).to_owned(), is_whole))
}

fn warning(path: &Path, message: String) -> Warning {
    Warning { path: path.to_string_lossy().into_owned(), message }
}

/// The root of the main checkout when the working directory lies in a linked
/// work tree inside of it whose root has a context file of its own
/// (`host.md` 5.1.3).
fn main_checkout_root(cwd: &Path) -> Option<PathBuf> {
    let tree = cwd.ancestors().find(|folder| folder.join(".git").exists())?;
    let link = fs::read_to_string(tree.join(".git")).ok()?;
    let git_dir = Path::new(link.strip_prefix("gitdir:")?.trim());
    let git_dir = paths::normal(&tree.join(git_dir));
    // A linked work tree's own folder is `<main>/.git/worktrees/<name>`.
    let worktrees = git_dir.parent().filter(|dir| dir.ends_with("worktrees"))?;
    let common = worktrees.parent().filter(|dir| dir.ends_with(".git"))?;
    let main = common.parent()?;
    let nested = tree.ancestors().skip(1);
    let root = nested
        .into_iter()
        .find(|folder| *folder == main || paths::resolved(folder) == paths::resolved(main))?;
    first_file(tree).map(|_| root.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn texts(&self, agent: &str, cwd: &str) -> Vec<String> {
            let (agent, cwd) = (self.0.path().join(agent), self.0.path().join(cwd));
            let (found, warnings) = load(&agent, &cwd);
            assert_eq!(warnings, []);
            found.into_iter().map(|file| file.text).collect()
        }
    }

    #[test]
    fn one_file_per_directory_from_the_agent_directory_down_to_the_project() {
        // host.md 5.1.1, 5.1.2, 0.4
        let w = World(tempfile::tempdir().unwrap());
        w.write("agent/CLAUDE.md", "agent");
        w.write("p/AGENTS.md", "parent");
        w.write("p/q/AGENTS.md", "\u{feff}project");
        w.write("p/q/CLAUDE.md", "shadowed");
        assert_eq!(w.texts("agent", "p/q"), ["agent", "parent", "project"]);
        w.write("p/q/AGENTS.override.md", "override");
        assert_eq!(w.texts("agent", "p/q"), ["agent", "parent", "override"]);
        assert_eq!(w.texts("p", "p/q"), ["parent", "override"], "each path once");
        fs::create_dir_all(w.0.path().join("p/q/r/AGENTS.md")).unwrap();
        assert_eq!(w.texts("p", "p/q/r"), ["parent", "override"], "a folder is no file");
    }

    #[test]
    fn a_nested_work_tree_with_its_own_file_hides_that_of_the_main_checkout() {
        // host.md 5.1.3
        let w = World(tempfile::tempdir().unwrap());
        w.write("main/AGENTS.md", "main");
        w.write("main/.git/HEAD", "");
        w.write("main/trees/t/AGENTS.md", "tree");
        w.write("main/trees/t/.git", "gitdir: ../../.git/worktrees/t\n");
        w.write("main/trees/t/src/x", "");
        assert_eq!(w.texts("none", "main/trees/t/src"), ["tree"]);
        fs::remove_file(w.0.path().join("main/trees/t/AGENTS.md")).unwrap();
        assert_eq!(w.texts("none", "main/trees/t/src"), ["main"]);
        w.write("main/sub/AGENTS.md", "module");
        w.write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        assert_eq!(w.texts("none", "main/sub"), ["main", "module"]);
    }

    #[test]
    fn an_enormous_file_is_cut_and_told() {
        let w = World(tempfile::tempdir().unwrap());
        w.write("p/AGENTS.md", &"ä".repeat(CONTEXT_FILE_BYTES_MAX));
        let (found, warnings) = load(Path::new("/nowhere"), &w.0.path().join("p"));
        assert_eq!(found[0].text.len(), CONTEXT_FILE_BYTES_MAX);
        assert_eq!(warnings.len(), 1);
    }
}
