//! Git directories of a copy (ISO-4): refs, HEAD and index of its own, objects
//! borrowed from the source.
//!
//! Written by hand, since `git clone` would run what the person configured and
//! leave the borrowed path to chance. Must never write into the source.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::Path;

use crate::bytes;
use crate::error::{Result, io_error};
use crate::git::Git;
use crate::source::Source;

/// Makes the git directory `at`, borrowing objects of `source`. It has no ref
/// yet.
pub(crate) fn make(git: &Git<'_>, source: &Source, at: &Path) -> Result<()> {
    write_all(source, at, &settings(git, source)?)
}

/// Makes another one with the settings of `like`, which [`make`] made.
pub(crate) fn make_like(source: &Source, like: &Path, at: &Path) -> Result<()> {
    let path = like.join("config");
    write_all(source, at, &fs::read(&path).map_err(io_error("read", &path))?)
}

fn write_all(source: &Source, at: &Path, config: &[u8]) -> Result<()> {
    let write = |name: &str, text: &[u8]| {
        let path = at.join(name);
        fs::write(&path, text).map_err(io_error("write", &path))
    };
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        let path = at.join(folder);
        fs::create_dir_all(&path).map_err(io_error("create", &path))?;
    }
    borrow(at, &[&source.objects])?;
    write("config", config)?;
    write("HEAD", b"ref: refs/heads/main\n")?;
    for name in ["info/exclude", "info/attributes", "shallow"] {
        copy_if_there(&source.common_dir.join(name), &at.join(name))?;
    }
    Ok(())
}

/// Says where the git directory `at` finds objects that it does not have.
pub(crate) fn borrow(at: &Path, places: &[&Path]) -> Result<()> {
    let path = at.join("objects/info/alternates");
    let lines: Vec<u8> = places.iter().flat_map(|place| quoted_line(place)).collect();
    fs::write(&path, lines).map_err(io_error("write", &path))
}

/// Gives the git directory `at` all refs and the HEAD of the source.
pub(crate) fn add_refs(git: &Git<'_>, source: &Source, at: &Path) -> Result<()> {
    let format = "--format=%(objectname) %(refname)";
    let refs = source.call(git, "list the refs").args(&["for-each-ref", format]).run()?;
    let path = at.join("packed-refs");
    let header = b"# pack-refs with: \n".to_vec();
    fs::write(&path, [header, refs.out].concat()).map_err(io_error("write", &path))?;
    let head = match (&source.branch, &source.head) {
        (Some(branch), _) => format!("ref: {branch}\n"),
        (None, Some(commit)) => format!("{commit}\n"),
        (None, None) => return Ok(()),
    };
    let path = at.join("HEAD");
    fs::write(&path, head).map_err(io_error("write", &path))
}

/// Copies the index of a source to `to`; nothing if there is none yet. Pieces
/// that a split index shares go to `git_dir`.
pub(crate) fn copy_index(source: &Source, git_dir: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(&source.git_dir).map_err(io_error("read", &source.git_dir))?;
    for entry in entries.flatten() {
        if bytes::of(Path::new(&entry.file_name())).starts_with(b"sharedindex.") {
            copy_if_there(&entry.path(), &git_dir.join(entry.file_name()))?;
        }
    }
    copy_if_there(&source.index(), to)
}

/// Copies a file that need not exist, with its time: git takes an index entry
/// for unchanged only if the file is older than the index.
pub(crate) fn copy_if_there(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> io::Result<()> {
        let mut source = File::open(from)?;
        let modified = source.metadata()?.modified()?;
        let mut target = File::create(to)?;
        io::copy(&mut source, &mut target)?;
        target.set_times(FileTimes::new().set_modified(modified))
    };
    match copy() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => Ok(()),
        copied => copied.map_err(io_error("copy", from)),
    }
}

/// The source's own settings, minus those that bind a git directory to a place
/// or to the person's programs.
fn settings(git: &Git<'_>, source: &Source) -> Result<Vec<u8>> {
    let list = source.call(git, "read the settings");
    let listed = list.args(&["config", "--local", "--includes", "--list", "-z"]).end()?;
    let mut out = b"[core]\n\tbare = false\n".to_vec();
    match source.format.as_str() {
        "sha1" => out.extend(b"\trepositoryFormatVersion = 0\n"),
        format => out.extend(
            format!(
                "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = {}\n",
                format.replace(|c: char| !c.is_ascii_alphanumeric(), "")
            )
            .bytes(),
        ),
    }
    for record in bytes::records(&listed.out) {
        let at = record.iter().position(|byte| *byte == b'\n');
        let (key, value) = match at {
            Some(at) => (&record[..at], Some(&record[at + 1..])),
            None => (record, None),
        };
        if !is_left_out(key) {
            out.extend(setting(key, value));
        }
    }
    Ok(out)
}

fn is_left_out(key: &[u8]) -> bool {
    let key = key.to_ascii_lowercase();
    let groups = ["extensions.", "include.", "includeif.", "gc.", "maintenance.", "index."];
    let single = [
        "core.bare",
        "core.worktree",
        "core.repositoryformatversion",
        "core.hookspath",
        "core.fsmonitor",
        "core.untrackedcache",
        "core.splitindex",
        "core.sparsecheckout",
        "core.sparsecheckoutcone",
    ];
    groups.iter().any(|group| key.starts_with(group.as_bytes()))
        || single.iter().any(|name| key == name.as_bytes())
}

/// One setting as lines of a configuration file.
fn setting(key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let dots = |byte: &u8| *byte == b'.';
    let (Some(first), Some(last)) = (key.iter().position(dots), key.iter().rposition(dots)) else {
        return Vec::new();
    };
    let mut out = b"[".to_vec();
    out.extend(&key[..first]);
    if first < last {
        out.extend(b" ");
        out.extend(quoted(&key[first + 1..last]));
    }
    out.extend(b"]\n\t");
    out.extend(&key[last + 1..]);
    if let Some(value) = value {
        out.extend(b" = ");
        out.extend(quoted(value));
    }
    out.push(b'\n');
    out
}

fn quoted(value: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in value {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// A path as a line of `alternates`, in the quotes of C where it needs them.
fn quoted_line(path: &Path) -> Vec<u8> {
    let path = bytes::of(path);
    let is_plain = |byte: &u8| *byte >= b' ' && !matches!(byte, b'"' | b'\\' | 0x7f);
    let mut out = Vec::new();
    if path.iter().all(is_plain) && !path.starts_with(b"#") {
        out.extend(path);
    } else {
        out.push(b'"');
        for byte in path {
            match byte {
                byte if is_plain(byte) => out.push(*byte),
                byte => out.extend(format!("\\{byte:03o}").bytes()),
            }
        }
        out.push(b'"');
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_whatever_their_values_hold() {
        let check = |key: &str, value: Option<&str>, expected: &str| {
            let lines = setting(key.as_bytes(), value.map(str::as_bytes));
            assert_eq!(String::from_utf8(lines).unwrap(), expected);
        };
        check("user.name", Some("A \"B\" \\ C"), "[user]\n\tname = \"A \\\"B\\\" \\\\ C\"\n");
        check("a.b", None, "[a]\n\tb\n");
        check("branch.x.y.remote", Some("o\np"), "[branch \"x.y\"]\n\tremote = \"o\\np\"\n");
        for key in ["core.hooksPath", "core.worktree", "extensions.partialclone", "include.path"] {
            assert!(is_left_out(key.as_bytes()), "{key}");
        }
        assert!(!is_left_out(b"core.autocrlf"));
    }

    #[test]
    fn borrowed_paths_stay_on_one_line() {
        let check = |path: &str, expected: &str| {
            assert_eq!(String::from_utf8(quoted_line(Path::new(path))).unwrap(), expected);
        };
        check("/a b/objects", "/a b/objects\n");
        check("/a\nb", "\"/a\\012b\"\n");
    }
}
