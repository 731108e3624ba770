//! Paths as git gives them: bytes with zeros between, never text.
//!
//! Must never lose a byte of a name; only [`shown`] may, for eyes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Characters of foreign text in one message.
const SHOWN_CHARS_MAX: usize = 600;

/// A path from its bytes.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// The bytes of a path.
pub(crate) fn of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// The parts of output that ends each record with a zero.
pub(crate) fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// Paths as input for `-z --stdin`.
pub(crate) fn list<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        out.extend_from_slice(of(path));
        out.push(0);
    }
    out
}

/// One line of output without its line feed.
pub(crate) fn line(output: &[u8]) -> &[u8] {
    output.strip_suffix(b"\n").unwrap_or(output)
}

/// Foreign text that is safe on a terminal and in a prompt: lines joined,
/// control characters written out, cut at a bound.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    let mut chars = text.trim().chars();
    for c in chars.by_ref().take(SHOWN_CHARS_MAX) {
        match c {
            '\n' => out.push_str("; "),
            c if is_unsafe(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// A path for eyes; a line feed in a name is written out.
pub(crate) fn shown_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().fold(String::new(), |mut out, c| {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        out
    })
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether `path` is one of `places` or lies below one.
pub(crate) fn is_below(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// (De)serialises a path as a list of numbers, so that no name is lost.
pub(crate) mod as_numbers {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
        super::of(path).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(super::path(&Vec::<u8>::deserialize(from)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_leave_its_line_or_steer_a_terminal() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(shown(bytes), expected);
        check(b"error: a\nerror: b\n", "error: a; error: b");
        check(b"\x1b[31mred", "\\u{1b}[31mred");
        check("a\u{202e}b".as_bytes(), "a\\u{202e}b");
        check(b"\xff", "\u{fffd}");
        assert_eq!(shown("x".repeat(2_000).as_bytes()).chars().count(), SHOWN_CHARS_MAX + 1);
        assert_eq!(shown_path(Path::new("a\nb")), "a\\nb");
    }
}
