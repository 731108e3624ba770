//! How a path in an argument becomes a path of the system (`host.md` 4.1.6,
//! 4.1.7). There is no fence: absolute paths and links that lead out of the
//! working directory are followed, as the contract allows.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// Resolves an argument against the working directory: `@`, `~`, `file://`,
/// odd spaces, `.` and `..` (`host.md` 4.1.6). Does no IO.
pub fn resolve(text: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let plain: String = text
        .strip_prefix('@')
        .unwrap_or(text)
        .chars()
        .map(|c| if is_odd_space(c) { ' ' } else { c })
        .collect();
    join(&plain, cwd, home)
}

fn join(plain: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    if let Some(path) = from_url(plain) {
        return normal(Path::new(&path));
    }
    if let Some(home) = home
        && let Some(rest) = plain.strip_prefix('~')
    {
        if rest.is_empty() {
            return home.to_owned();
        }
        if let Some(below) = rest.strip_prefix('/') {
            return normal(&home.join(below.trim_start_matches('/')));
        }
    }
    normal(&cwd.join(plain))
}

/// Spaces that models and screenshots put in place of a plain one.
pub(crate) fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn from_url(text: &str) -> Option<String> {
    let scheme = text.get(..7)?;
    if !scheme.eq_ignore_ascii_case("file://") {
        return None;
    }
    let rest = &text[7..];
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    path.starts_with('/').then(|| percent_decode(path))
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(hex.unwrap_or(bytes[at]));
        at += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Removes `.` and `..` by text, as shells do with `cd`.
fn normal(path: &Path) -> PathBuf {
    let mut kept = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                kept.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => kept.push(part),
        }
    }
    kept
}

/// The path to read: the resolved one, or when that is missing the first
/// existing variant of `host.md` 4.1.7, at last the text as written.
pub(crate) fn resolve_existing(text: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = resolve(text, cwd, home);
    if fs::symlink_metadata(&path).is_ok() {
        return path;
    }
    for variant in [narrow_meridiem, decomposed, curly, decomposed_curly] {
        for candidate in [of_name(&path, variant), of_all(&path, cwd, variant)] {
            if candidate != path && fs::symlink_metadata(&candidate).is_ok() {
                return candidate;
            }
        }
    }
    let literal = join(text.strip_prefix('@').unwrap_or(text), cwd, home);
    if literal != path && fs::symlink_metadata(&literal).is_ok() {
        return literal;
    }
    path
}

fn of_name(path: &Path, variant: fn(&str) -> String) -> PathBuf {
    let name = path.file_name().map(|n| variant(&n.to_string_lossy()));
    name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}

fn of_all(path: &Path, cwd: &Path, variant: fn(&str) -> String) -> PathBuf {
    match path.strip_prefix(cwd) {
        Ok(below) => cwd.join(variant(&below.to_string_lossy())),
        Err(_) => PathBuf::from(variant(&path.to_string_lossy())),
    }
}

fn narrow_meridiem(text: &str) -> String {
    let mut changed = text.to_owned();
    for at in (0..text.len()).rev() {
        let Some(tail) = text.get(at..at + 4) else {
            continue;
        };
        if [" AM.", " PM."].iter().any(|m| tail.eq_ignore_ascii_case(m)) {
            changed.replace_range(at..=at, "\u{202f}");
        }
    }
    changed
}

fn decomposed(text: &str) -> String {
    text.nfd().collect()
}

fn curly(text: &str) -> String {
    text.replace('\'', "\u{2019}")
}

fn decomposed_curly(text: &str) -> String {
    curly(&decomposed(text))
}

/// The path with all links resolved, also for a file that does not exist yet.
/// It names a file for the record and the queue (`host.md` 3.3.11).
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::canonicalize(&path) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let Ok(target) = fs::read_link(&path) else {
            return real_missing(&path);
        };
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        path = folder.join(target);
    }
    Err(io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error()))
}

fn real_missing(path: &Path) -> io::Result<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    Ok(real(folder)?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_paths() {
        // host.md 4.1.6
        let check = |text: &str, expected: &str| {
            let path = resolve(text, Path::new("/w/d"), Some(Path::new("/h")));
            assert_eq!(path, Path::new(expected), "{text}");
        };
        check("a.txt", "/w/d/a.txt");
        check("@a.txt", "/w/d/a.txt");
        check("@@a", "/w/d/@a");
        check("./x/../a", "/w/d/a");
        check("../../..", "/");
        check("/etc/x", "/etc/x");
        check("~", "/h");
        check("~/x", "/h/x");
        check("~user/x", "/w/d/~user/x");
        check("file:///a%20b/%zz", "/a b/%zz");
        check("file://localhost/a", "/a");
        check("a\u{a0}b\u{202f}c\u{3000}d", "/w/d/a b c d");
        check(".", "/w/d");
    }

    #[test]
    fn a_missing_file_is_sought_under_its_variants() {
        // host.md 4.1.7
        let folder = tempfile::tempdir().unwrap();
        let check = |stored: &str, asked: &str| {
            fs::write(folder.path().join(stored), "x").unwrap();
            let found = resolve_existing(asked, folder.path(), None);
            assert_eq!(found.file_name().unwrap().to_string_lossy(), stored);
        };
        check("Shot at 9.41.00\u{202f}AM.png", "Shot at 9.41.00 AM.png");
        check("cafe\u{301}.txt", "caf\u{e9}.txt");
        check("it\u{2019}s.txt", "it's.txt");
        check("l\u{2019}e\u{301}t\u{e9}".nfd().collect::<String>().as_str(), "l'\u{e9}t\u{e9}");
        check("odd\u{a0}name", "odd\u{a0}name");
    }

    #[test]
    fn a_dangling_link_names_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        std::os::unix::fs::symlink("later/new.txt", base.join("draft")).unwrap();
        assert_eq!(real(&base.join("draft")).unwrap(), base.join("later/new.txt"));
        std::os::unix::fs::symlink("self", base.join("self")).unwrap();
        assert!(real(&base.join("self")).is_err());
    }
}
