//! Fork, clone and `--fork` (`host.md` 2.8.4 to 2.8.7).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use crew_base::entry::{Header, HeaderKind};
use crew_base::id::EntryId;
use crew_store::error::Error;
use crew_store::session::copy::{copy_all, copy_branch, fork_point, user_messages};
use crew_store::session::log::{Plan, SessionLog};
use crew_store::session::open::open;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn header(id: &str) -> Header {
    Header {
        kind: HeaderKind::Session,
        version: 3,
        id: id.into(),
        timestamp: "2026-12-30T13:43:03.766Z".into(),
        cwd: "/w".into(),
        parent_session: None,
    }
}

struct World {
    _folder: tempfile::TempDir,
    source: PathBuf,
    copy: PathBuf,
}

fn world(text: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.jsonl");
    fs::write(&source, text).unwrap();
    World { copy: folder.path().join("new/copy.jsonl"), source, _folder: folder }
}

impl World {
    fn log(&self) -> SessionLog {
        open(&self.source, header("x"), false).unwrap().log
    }

    fn plan(&self) -> Plan {
        Plan { header: header("copy"), path: Some(self.copy.clone()), lock: false }
    }

    /// The lines of the copy of a branch, and the one in memory agrees.
    fn branch(&self, leaf: &str) -> Vec<String> {
        let copy = copy_branch(&self.log(), Some(&leaf.into()), self.plan()).unwrap();
        let text = fs::read_to_string(&self.copy).unwrap();
        let loaded = open(&self.copy, header("x"), false).unwrap();
        assert_eq!(loaded.warnings, []);
        assert_eq!(loaded.context, copy.project(copy.last()).unwrap());
        assert_eq!(loaded.log.last(), copy.last());
        text.lines().map(str::to_owned).collect()
    }
}

fn golden(name: &str) -> String {
    fs::read_to_string(Path::new(GOLDEN).join(name)).unwrap()
}

#[test]
fn a_clone_holds_the_path_byte_for_byte_and_its_labels_at_the_end() {
    // host.md 2.8.4, 2.8.5, 2.3.4, 0.3, 2.2.10
    let text = golden("v3.jsonl");
    let w = world(&text);
    let copy = w.branch("00000017");
    let expected = format!(
        r#"{{"type":"session","version":3,"id":"copy","timestamp":"2026-12-30T13:43:03.766Z","cwd":"/w","parentSession":"{}","novel":{{"n":1.50}}}}"#,
        w.source.display()
    );
    assert_eq!(copy[0], expected);
    let on_path = |line: &&str| !line.contains(r#""id":"0000000c""#) && !line.contains("label");
    let old: Vec<&str> = text.lines().skip(1).filter(on_path).collect();
    assert_eq!(copy[1..copy.len() - 1], old);
    assert_eq!(
        copy.last().unwrap(),
        r#"{"type":"label","id":"0000000d","parentId":"00000017","timestamp":"2026-11-30T13:43:10.500Z","targetId":"0000000b","label":"mark"}"#
    );
    assert_eq!(fs::read_to_string(&w.source).unwrap(), text);
}

#[test]
fn dropped_labels_are_linked_over_and_kept_ids_move_to_the_next_entry() {
    // host.md 2.8.5, 11.14, 11.15
    let message = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"{id}"}}}}"#
        )
    };
    let label = |id: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"label","id":"{id}","parentId":"{parent}","timestamp":"t-{id}","targetId":"a","label":"{text}"}}"#
        )
    };
    let compaction = |id: &str, parent: &str, kept: &str| {
        format!(
            r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","timestamp":"t","summary":"s","firstKeptEntryId":"{kept}","tokensBefore":1.0}}"#
        )
    };
    let lines = [
        serde_json::to_string(&header("source")).unwrap(),
        message("a", "null"),
        label("l1", "a", "first"),
        label("l2", "l1", "second"),
        message("b", r#""l2""#),
        compaction("c", "b", "l1"),
        compaction("d", "c", "d"),
        label("l3", "d", "third"),
        compaction("e", "l3", "l3"),
        message("f", r#""e""#),
        label("l4", "f", ""),
    ];
    let w = world(&(lines.join("\n") + "\n"));
    let copy = w.branch("f");
    let expected = [
        message("a", "null"),
        message("b", r#""a""#),
        compaction("c", "b", "b"),
        compaction("d", "c", "d"),
        compaction("e", "d", "e"),
        message("f", r#""e""#),
    ];
    assert_eq!(copy[1..], expected, "the label was removed at last");
    fs::remove_file(&w.copy).unwrap();
    let text = fs::read_to_string(&w.source).unwrap();
    let (text, _) = text.trim_end().rsplit_once('\n').unwrap();
    fs::write(&w.source, text).unwrap();
    let last = w.branch("l3").pop().unwrap();
    assert_eq!(last, label("l3", "d", "third"), "own id and time, new parent");
}

#[test]
fn a_fork_ends_before_the_message_and_gives_its_text() {
    // host.md 2.8.4, 2.8.6, 11.16, 7.3
    let w = world(&golden("v3.jsonl"));
    let log = w.log();
    let (leaf, text) = fork_point(&log, &"0000000b".into()).unwrap();
    assert_eq!((leaf, text.as_str()), (Some("0000000a".into()), "answered twice"));
    for id in ["0000000c", "00000017", "unknown"] {
        let refused = fork_point(&log, &id.into());
        assert!(matches!(refused, Err(Error::UnknownEntry { .. })));
    }
    let texts: Vec<String> =
        user_messages(&log).unwrap().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["forgotten by the compaction", "kept question", "answered twice"]);
    let (leaf, _) = fork_point(&log, &"00000004".into()).unwrap();
    let mut fork = copy_branch(&log, leaf.as_ref(), w.plan()).unwrap();
    assert!(!w.copy.exists(), "no user or assistant message on the path");
    assert_eq!(fork.index().entries().len(), 3);
    let again = log.entry(&"00000004".into()).unwrap();
    fork.append(&again).unwrap();
    let text = fs::read_to_string(&w.copy).unwrap();
    assert_eq!(text.matches(r#""type":"session""#).count(), 1);
    assert_eq!(text.lines().count(), 5);

    let empty = copy_branch(&log, None, w.plan()).unwrap();
    assert_eq!(empty.last(), None::<&EntryId>);
}

#[test]
fn an_unsaved_session_cannot_be_cloned_and_one_in_memory_can() {
    // host.md 2.8.6, 11.17
    let w = world("");
    let fresh = SessionLog::create(w.plan());
    let refused = copy_branch(&fresh, None, w.plan());
    assert!(matches!(refused, Err(Error::NotSaved)));
    let memory = || Plan { path: None, ..w.plan() };
    let source = SessionLog::create(memory());
    let copy = copy_branch(&source, None, memory()).unwrap();
    assert_eq!(copy.header().parent_session, None);
}

#[test]
fn every_branch_is_copied_behind_a_new_header() {
    // host.md 2.8.7
    let text = golden("v3.jsonl");
    let w = world(&format!("{text}damaged\n"));
    copy_all(&w.source, header("copy"), &w.copy).unwrap();
    let copied = fs::read_to_string(&w.copy).unwrap();
    let (head, rest) = copied.split_once('\n').unwrap();
    assert!(head.contains(r#""id":"copy""#) && head.contains(r#""novel":{"n":1.50}"#));
    assert!(head.contains(&format!(r#""parentSession":"{}""#, w.source.display())));
    assert_eq!(rest, text.split_once('\n').unwrap().1);
    let again = copy_all(&w.source, header("copy"), &w.copy);
    assert!(matches!(again, Err(Error::Exists { .. })));
    assert_eq!(fs::read_to_string(&w.copy).unwrap(), copied);

    let w = world("{\"a\":1}\n");
    let refused = copy_all(&w.source, header("copy"), &w.copy);
    assert!(matches!(refused, Err(Error::NotASession { .. })));
    assert!(!w.copy.exists());
}

#[test]
fn an_old_file_is_copied_as_it_is_and_migrated_in_the_copy() {
    // host.md 2.8.7, 2.5
    let text = golden("v1.jsonl");
    let w = world(&text);
    copy_all(&w.source, header("copy"), &w.copy).unwrap();
    let opened = open(&w.copy, header("x"), false).unwrap();
    assert_eq!(opened.log.header().version, 3);
    assert_eq!(opened.context.messages.len(), 3);
    assert_eq!(fs::read_to_string(&w.source).unwrap(), text);
}
