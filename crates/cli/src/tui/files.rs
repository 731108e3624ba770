//! Files to complete with (`host.md` 8.11).

use std::path::{Path, PathBuf};

use crew_tui::view::full::list::fuzzy;

/// Files looked at for one question.
const FILES_MAX: usize = 20_000;
/// Offers of one answer.
const OFFERS_MAX: usize = 50;

/// Paths that fit, best first; folders end in a slash. What ignore files rule
/// out is offered only to who types its path.
pub(super) fn find(cwd: &Path, home: Option<&Path>, query: &str, is_path: bool) -> Vec<String> {
    if is_path || query.starts_with(['/', '~', '.']) {
        return in_folder(cwd, home, query);
    }
    let mut paths = crew_tools::names_below(cwd, FILES_MAX);
    paths.sort_by_key(|path| (path.matches('/').count(), path.clone()));
    fuzzy(&paths, query, |path| path).into_iter().take(OFFERS_MAX).cloned().collect()
}

/// Names in the folder that a path leads to.
fn in_folder(cwd: &Path, home: Option<&Path>, query: &str) -> Vec<String> {
    let (folder, name) =
        query.rsplit_once('/').map_or(("", query), |(folder, name)| (folder, name));
    let lead = if query.contains('/') { format!("{folder}/") } else { String::new() };
    let place = match (folder, home) {
        ("", _) if query.starts_with('/') => PathBuf::from("/"),
        ("", _) => cwd.to_owned(),
        ("~", Some(home)) => home.to_owned(),
        (folder, Some(home)) if folder.starts_with("~/") => home.join(&folder[2..]),
        (folder, _) => cwd.join(folder),
    };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            let fits =
                found.starts_with(name) && (name.starts_with('.') || !found.starts_with('.'));
            let is_folder = entry.file_type().ok()?.is_dir()
                || std::fs::metadata(entry.path()).is_ok_and(|file| file.is_dir());
            fits.then(|| format!("{lead}{found}{}", if is_folder { "/" } else { "" }))
        })
        .collect();
    names.sort();
    names.truncate(OFFERS_MAX);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("src/parser")).unwrap();
        std::fs::create_dir_all(root.path().join(".git/objects")).unwrap();
        std::fs::create_dir_all(root.path().join("out/deep")).unwrap();
        for name in ["src/parser/list.rs", "src/main.rs", ".hidden", ".git/objects/x", "out/deep/f"]
        {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        std::fs::write(root.path().join(".gitignore"), "out/\n").unwrap();
        let check = |query: &str, is_path, expected: &[&str]| {
            assert_eq!(find(root.path(), None, query, is_path), expected, "{query}");
        };
        check("plist", false, &["src/parser/list.rs"]);
        check("hidden", false, &[".hidden"]);
        check("objects", false, &[]);
        check("deep", false, &[]);
        check("out/", true, &["out/deep/"]);
        check("src/", true, &["src/main.rs", "src/parser/"]);
        check("./sr", false, &["./src/"]);
        check("nothing/here", true, &[]);
    }
}
