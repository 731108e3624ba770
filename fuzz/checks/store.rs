//! What must hold for any file on disk: it loads or is refused by name, what
//! was read is never rewritten, no panic.
//!
//! Used by the fuzz targets and, with the corpus, by a test of `crew-store`.
//! Writes into a temporary folder of its own only.

use std::fs;

use crew_base::entry::{Header, HeaderKind, SESSION_VERSION, read_line};
use crew_base::id::SessionId;
use crew_store::error::Error;
use crew_store::frontmatter;
use crew_store::session::open::open;

/// A session file of any content (`host.md` 2.2.5): refused untouched, or
/// loaded with at most a line feed behind it, and loaded again the same way.
pub(crate) fn session(bytes: &[u8]) {
    for line in String::from_utf8_lossy(bytes).lines() {
        if let Ok(entry) = read_line(line) {
            let written = entry.line();
            assert!(!written.contains('\n'));
            let again = read_line(&written).expect("what is written can be read");
            assert_eq!(again.line(), written, "and is written the same way again");
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("s.jsonl");
    fs::write(&path, bytes).expect("the folder is writable");
    match open(&path, header(), false) {
        Err(Error::NotASession { path: told }) => {
            assert_eq!(told, path);
            assert_eq!(fs::read(&path).expect("it stays"), bytes, "left as it was");
        }
        Err(error) => panic!("{error}"),
        Ok(opened) => {
            let kept = fs::read(&path).expect("it stays");
            let is_old = opened.log.header().version < SESSION_VERSION;
            assert!(!is_old, "an old version is migrated at once");
            let (first, leaf) = (opened.context, opened.log.last().cloned());
            drop(opened.log);
            let again = open(&path, header(), false).expect("what loaded once loads again");
            assert_eq!(again.log.last().cloned(), leaf);
            assert_eq!(again.context.messages.len(), first.messages.len());
            assert_eq!(fs::read(&path).expect("it stays"), kept, "reading changes nothing");
        }
    }
}

/// Front matter of any content (`crew.md` CAT-10): unique keys, a body, or an
/// error that names a line of the file.
pub(crate) fn front_matter(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match frontmatter::read(&text) {
        Err(error) => {
            let lines = text.replace("\r\n", "\n").replace('\r', "\n").lines().count();
            assert!(error.line >= 1 && error.line <= lines + 1, "{error} of {lines} lines");
            assert!(!error.reason.is_empty());
        }
        Ok(document) => {
            let mut keys: Vec<&str> = document.fields.iter().map(|(key, _)| key.as_str()).collect();
            keys.sort_unstable();
            let count = keys.len();
            keys.dedup();
            assert_eq!(keys.len(), count, "keys are unique");
            assert!(!document.body.contains('\r'));
        }
    }
}

fn header() -> Header {
    Header {
        kind: HeaderKind::Session,
        version: SESSION_VERSION,
        id: SessionId::from("fresh"),
        timestamp: "2026-11-30T13:43:03.766Z".to_owned(),
        cwd: "/work".to_owned(),
        parent_session: None,
    }
}
