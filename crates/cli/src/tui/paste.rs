//! The clipboard's image or files, read by a program of the desktop (`host.md`
//! 8.5). An image becomes a private file that the draft names; text comes by
//! the terminal's own paste.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crew_tui::request::Reply;

use super::start::now;
use crate::config::Environment;

/// How long such a program may take.
const TIME_MAX: Duration = Duration::from_secs(3);
/// Bytes that are taken.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Kinds of image, best first, with the ending of their files.
const IMAGES: [(&str, &str); 4] =
    [("image/png", "png"), ("image/jpeg", "jpg"), ("image/webp", "webp"), ("image/gif", "gif")];

/// What the draft gets.
pub(super) fn from_clipboard(environment: &Environment) -> Reply {
    let readers = readers(environment);
    let mut has_reader = false;
    for reader in readers {
        let Some(kinds) = reader.kinds() else { continue };
        has_reader = true;
        if kinds.lines().any(|kind| kind.trim() == "text/uri-list")
            && let Some(list) = reader.read("text/uri-list")
        {
            let paths = paths(&String::from_utf8_lossy(&list));
            if !paths.is_empty() {
                return Reply::Insert(mentions(&paths));
            }
        }
        let image = IMAGES.iter().find(|(kind, _)| kinds.lines().any(|line| line.trim() == *kind));
        if let Some((kind, ending)) = image
            && let Some(bytes) = reader.read(kind)
        {
            return keep(&bytes, ending);
        }
    }
    let (what, next) = if has_reader {
        ("the clipboard holds neither an image nor files", "text comes by the terminal's own paste")
    } else {
        (
            "no program that reads the clipboard was found",
            "wl-paste, xclip or pngpaste do; or type @ and a path",
        )
    };
    Reply::Failed(what.to_owned(), Some(next.to_owned()))
}

/// A program that reads the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Wayland,
    X11,
    Mac,
}

fn readers(environment: &Environment) -> Vec<Reader> {
    let has = |name: &str| environment.get(name).is_some();
    let mut readers = Vec::new();
    if has("WAYLAND_DISPLAY") {
        readers.push(Reader::Wayland);
    }
    if has("DISPLAY") {
        readers.push(Reader::X11);
    }
    if cfg!(target_os = "macos") {
        readers.push(Reader::Mac);
    }
    readers
}

impl Reader {
    /// What the clipboard offers, one kind a line; nothing when the program is
    /// not there.
    fn kinds(self) -> Option<String> {
        let text = match self {
            Reader::Wayland => run("wl-paste", &["--list-types"])?,
            Reader::X11 => run("xclip", &["-selection", "clipboard", "-t", "TARGETS", "-o"])?,
            // It knows images only.
            Reader::Mac => return run("pngpaste", &["-b"]).map(|_| "image/png".to_owned()),
        };
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn read(self, kind: &str) -> Option<Vec<u8>> {
        let bytes = match self {
            Reader::Wayland => run("wl-paste", &["--no-newline", "--type", kind]),
            Reader::X11 => run("xclip", &["-selection", "clipboard", "-t", kind, "-o"]),
            Reader::Mac => run("pngpaste", &["-"]),
        };
        bytes.filter(|bytes| !bytes.is_empty())
    }
}

/// What a program prints; nothing when it is missing, fails or hangs.
fn run(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.take(BYTES_MAX).read_to_end(&mut bytes).map(|_| bytes)
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < TIME_MAX => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let bytes = reading.join().ok()?.ok()?;
    status.success().then_some(bytes)
}

/// Local files of a list of addresses.
fn paths(list: &str) -> Vec<String> {
    let lines = list.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.strip_prefix("file://")).filter_map(decoded).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    let path = String::from_utf8(bytes).ok()?;
    path.starts_with('/').then_some(path)
}

fn mentions(paths: &[String]) -> String {
    let mention = |path: &String| {
        if path.contains(' ') { format!("@\"{path}\" ") } else { format!("@{path} ") }
    };
    paths.iter().map(mention).collect()
}

fn keep(bytes: &[u8], ending: &str) -> Reply {
    let path = std::env::temp_dir().join(format!("crew-paste-{}.{ending}", now().0));
    match crew_store::files::replace(&path, bytes) {
        Ok(()) => Reply::Insert(mentions(&[path.to_string_lossy().into_owned()])),
        Err(error) => Reply::Failed(format!("the image cannot be kept: {error}"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_files_become_mentions() {
        let check = |list: &str, expected: &str| assert_eq!(mentions(&paths(list)), expected);
        check("file:///a/b.rs\r\nfile:///a/c%20d.rs\r\n", "@/a/b.rs @\"/a/c d.rs\" ");
        check("# comment\nhttps://example.invalid/x\n", "");
        check("file:///bad%zz\nfile://%2", "");
    }

    #[test]
    fn a_program_that_is_missing_or_fails_gives_nothing() {
        assert_eq!(run("no-such-program-of-ours", &[]), None);
        assert_eq!(run("false", &[]), None);
        assert_eq!(run("printf", &["ab"]).as_deref(), Some(b"ab".as_slice()));
    }
}
