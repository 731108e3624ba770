//! One list of paths, globs, exclusions and forced items (`host.md` 5.7.1).
//!
//! Must never read a file; it looks at names and at what exists.

use std::path::{Component, Path, PathBuf};

use crew_base::limits::SKILL_FOLDERS_MAX;
use globset::{Glob, GlobBuilder, GlobMatcher};

use super::{resolve, sorted_entries};

/// A settings list, understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    base: PathBuf,
    /// Files and folders to look at, in the order of the list.
    pub(crate) roots: Vec<PathBuf>,
    /// Entries that are no usable pattern.
    pub(crate) faults: Vec<String>,
    excluded: Vec<GlobMatcher>,
    forced_in: Vec<PathBuf>,
    forced_out: Vec<PathBuf>,
}

impl Selection {
    /// Reads the list; paths are relative to `base`.
    pub(crate) fn read(list: &[String], base: &Path, home: Option<&Path>) -> Selection {
        let mut selection = Selection { base: base.to_owned(), ..Selection::default() };
        for entry in list {
            let entry = entry.trim();
            let at = |path: &str| plain(&resolve(path.trim(), base, home));
            if let Some(pattern) = entry.strip_prefix('!') {
                match glob(pattern.trim()) {
                    Some(matcher) => selection.excluded.push(matcher),
                    None => selection.faults.push(entry.to_owned()),
                }
            } else if let Some(path) = entry.strip_prefix('+') {
                selection.forced_in.push(at(path));
                selection.roots.push(at(path));
            } else if let Some(path) = entry.strip_prefix('-') {
                selection.forced_out.push(at(path));
            } else if entry.contains(['*', '?', '[', '{']) {
                match glob(&at(entry).to_string_lossy()) {
                    Some(matcher) => selection.roots.extend(matching(&at(entry), &matcher)),
                    None => selection.faults.push(entry.to_owned()),
                }
            } else if !entry.is_empty() {
                selection.roots.push(at(entry));
            }
        }
        selection
    }

    /// Whether an item stays: forced out beats forced in, which beats a pattern.
    /// A pattern sees the file, its name, its folder, and both relative to the
    /// folder of the list.
    pub(crate) fn keeps(&self, file: &Path) -> bool {
        let forms = self.forms(file);
        let named = |paths: &[PathBuf]| {
            paths.iter().any(|path| file == path || file.parent() == Some(path))
        };
        if named(&self.forced_out) {
            return false;
        }
        named(&self.forced_in)
            || !self.excluded.iter().any(|glob| forms.iter().any(|form| glob.is_match(form)))
    }

    fn forms(&self, file: &Path) -> Vec<PathBuf> {
        let both = [Some(file), file.parent()];
        let mut forms = Vec::new();
        for path in both.into_iter().flatten() {
            forms.push(path.to_owned());
            forms.extend(path.strip_prefix(&self.base).map(Path::to_owned));
            forms.extend(path.file_name().map(PathBuf::from));
        }
        forms
    }
}

fn glob(pattern: &str) -> Option<GlobMatcher> {
    let built: Result<Glob, _> = GlobBuilder::new(pattern).literal_separator(true).build();
    built.ok().map(|glob| glob.compile_matcher())
}

/// Files and folders that a pattern names, below its part without wildcards.
fn matching(pattern: &Path, glob: &GlobMatcher) -> Vec<PathBuf> {
    let fixed: PathBuf = pattern
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']))
        .collect();
    let (mut found, mut folders, mut looked) = (Vec::new(), vec![fixed], 0);
    while let Some(folder) = folders.pop() {
        looked += 1;
        if looked > SKILL_FOLDERS_MAX {
            break;
        }
        for path in sorted_entries(&folder) {
            let is_folder = path.symlink_metadata().is_ok_and(|m| m.is_dir());
            if glob.is_match(&path) {
                found.push(path);
            } else if is_folder {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The path without `.` parts, so that it equals what a listing gives.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_yield_to_forced_items_and_these_to_removed_ones() {
        let check = |list: &[&str], file: &str, expected: bool| {
            let list: Vec<String> = list.iter().map(|entry| (*entry).to_owned()).collect();
            let selection = Selection::read(&list, Path::new("/agent"), Some(Path::new("/home/u")));
            assert_eq!(selection.keeps(Path::new(file)), expected, "{list:?} {file}");
        };
        check(&[], "/agent/skills/a/SKILL.md", true);
        check(&["!skills/a"], "/agent/skills/a/SKILL.md", false);
        check(&["!a*"], "/agent/skills/abc/SKILL.md", false);
        check(&["!**/drafts/**"], "/agent/skills/drafts/x/SKILL.md", false);
        check(&["!a*"], "/agent/skills/b/SKILL.md", true);
        check(&["!x.md"], "/agent/prompts/x.md", false);
        check(&["!*", "+./skills/a"], "/agent/skills/a/SKILL.md", true);
        check(&["+skills/a", "-skills/a/SKILL.md"], "/agent/skills/a/SKILL.md", false);
        check(&["-~/x.md"], "/home/u/x.md", false);
        check(&["-skills/ab"], "/agent/skills/a/SKILL.md", true);
    }

    #[test]
    fn paths_and_globs_become_roots() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        for name in ["one/a.md", "two/b.md", "two/c.txt"] {
            let path = base.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let check = |entry: &str, expected: &[&str]| {
            let selection = Selection::read(&[entry.to_owned()], base, None);
            let expected: Vec<PathBuf> = expected.iter().map(|name| base.join(name)).collect();
            assert_eq!(selection.roots, expected, "{entry}");
        };
        check("one", &["one"]);
        check("./two/b.md", &["two/b.md"]);
        check("*/*.md", &["one/a.md", "two/b.md"]);
        check("t*", &["two"]);
        check("**/*.txt", &["two/c.txt"]);
        check("", &[]);
        let broken = Selection::read(&["![".to_owned()], base, None);
        assert_eq!(broken.faults, ["!["]);
    }
}
