//! What a move in the tree reads (`host.md` 2.8.2, 2.8.3).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;

use crew_base::entry::{Header, HeaderKind};
use crew_base::id::EntryId;
use crew_base::message::Message;
use crew_store::error::Error;
use crew_store::session::branch::{Branch, branch};
use crew_store::session::log::SessionLog;
use crew_store::session::open::{Opened, open};

const TIME: &str = "2026-11-30T13:43:03.766Z";

/// A session with two branches below `b`:
/// `a(system) u1 b(answer)` then `u2 c r e s` and `u3 d k x`.
fn session(extra: &[&str]) -> (tempfile::TempDir, SessionLog) {
    let message = |id: &str, parent: &str, message: &str| {
        let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{TIME}","message":{message}}}"#
        )
    };
    let user = |text: &str| format!(r#"{{"role":"user","content":"{text}","timestamp":1}}"#);
    let answer = |text: &str| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"api":"a","provider":"p","model":"m","usage":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop","timestamp":1}}"#
        )
    };
    let result = r#"{"role":"toolResult","toolCallId":"t","toolName":"read","content":[],"isError":false,"timestamp":1}"#;
    let system = r#"{"role":"system","content":"s","timestamp":1}"#;
    let other = |kind: &str, id: &str, parent: &str, rest: &str| {
        format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":"{parent}","timestamp":"{TIME}",{rest}}}"#
        )
    };
    let mut text = format!(
        "{}\n",
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-30T13:43:03.766Z","cwd":"/"}"#
    );
    let lines = [
        message("a", "", system),
        message("u1", "a", &user("first")),
        message("b", "u1", &answer("one")),
        message("u2", "b", &user("second")),
        message("c", "u2", &answer("two")),
        message("r", "c", result),
        other("context_edit", "e", "r", r#""targetId":"c","replacement":{"content":"edited"}"#),
        other(
            "branch_summary",
            "s",
            "e",
            r#""fromId":"q","summary":"S","details":{"readFiles":["x"],"modifiedFiles":[]}"#,
        ),
        message("u3", "b", &user("third")),
        message("d", "u3", &answer("three")),
        other("thinking_level_change", "l", "d", r#""thinkingLevel":"high""#),
        other(
            "compaction",
            "k",
            "l",
            r#""summary":"K","firstKeptEntryId":"d","tokensBefore":7,"details":{"readFiles":["y"],"modifiedFiles":[]},"fromHook":true"#,
        ),
        other("custom_message", "x", "k", r#""customType":"t","content":"typed","display":true"#),
    ];
    for line in lines.iter().map(String::as_str).chain(extra.iter().copied()) {
        text.push_str(line);
        text.push('\n');
    }
    let world = tempfile::tempdir().unwrap();
    let path = world.path().join("s.jsonl");
    fs::write(&path, text).unwrap();
    let fresh = Header {
        kind: HeaderKind::Session,
        version: 3,
        id: "s".into(),
        timestamp: TIME.to_owned(),
        cwd: "/".into(),
        parent_session: None,
    };
    let Opened { log, .. } = open(&path, fresh, false).unwrap();
    (world, log)
}

fn words(branch: &Branch) -> Vec<String> {
    let word = |message: &Message| match message {
        Message::User(user) => user.content.text(),
        Message::Assistant(answer) => answer.text(),
        Message::ToolResult(_) => "(result)".to_owned(),
        Message::BranchSummary(branch) => format!("branch {}", branch.summary),
        Message::CompactionSummary(summary) => format!("compacted {}", summary.summary),
        Message::Custom(custom) => custom.content.text(),
        Message::System(_) | Message::BashExecution(_) => "(other)".to_owned(),
    };
    branch.left.iter().map(|left| word(&left.message)).collect()
}

#[test]
fn what_is_written_by_a_person_is_stood_before_and_all_else_on() {
    // host.md 2.8.2
    let (_world, log) = session(&[]);
    let check = |to: &str, leaf: Option<&str>, draft: Option<&str>| {
        let read = branch(&log, Some(&"s".into()), &to.into()).unwrap();
        assert_eq!(read.leaf, leaf.map(EntryId::from), "{to}");
        assert_eq!(read.draft.as_deref(), draft, "{to}");
    };
    check("u3", Some("b"), Some("third"));
    check("u1", Some("a"), Some("first"));
    check("x", Some("k"), Some("typed"));
    check("d", Some("d"), None);
    check("r", Some("r"), None);
    check("l", Some("l"), None);
    let refused = branch(&log, None, &"nowhere".into());
    assert!(matches!(refused, Err(Error::UnknownEntry { .. })));
}

#[test]
fn a_first_message_is_stood_before_everything() {
    let line = format!(
        r#"{{"type":"message","id":"root","parentId":null,"timestamp":"{TIME}","message":{{"role":"user","content":[{{"type":"text","text":"again"}}],"timestamp":1}}}}"#
    );
    let (_world, log) = session(&[&line]);
    let read = branch(&log, Some(&"d".into()), &"root".into()).unwrap();
    assert_eq!((read.leaf.as_ref(), read.draft.as_deref()), (None, Some("again")));
    assert!(read.context.messages.is_empty());
    // Nothing is common: all of the branch is left.
    assert_eq!(words(&read), ["(other)", "first", "one", "third", "three"]);
}

#[test]
fn what_is_left_begins_behind_the_common_ancestor_of_leaf_and_target() {
    // host.md 2.8.3, 3.8.12: edits of the context are honoured.
    let (_world, log) = session(&[]);
    let check = |from: Option<&str>, to: &str, expected: &[&str]| {
        let from = from.map(EntryId::from);
        assert_eq!(words(&branch(&log, from.as_ref(), &to.into()).unwrap()), expected, "{to}");
    };
    check(Some("s"), "d", &["second", "edited", "(result)", "branch S"]);
    check(Some("s"), "u3", &["second", "edited", "(result)", "branch S"]);
    check(Some("x"), "c", &["third", "three", "compacted K", "typed"]);
    // An ancestor, a message of the person, a descendant, the same, nothing.
    check(Some("s"), "c", &["(result)", "branch S"]);
    check(Some("s"), "u2", &["edited", "(result)", "branch S"]);
    check(Some("b"), "s", &[]);
    check(Some("s"), "s", &[]);
    check(None, "s", &[]);
    check(Some("gone"), "s", &[]);
}

#[test]
fn details_of_summaries_count_unless_a_hook_made_them() {
    // host.md 3.8.13
    let (_world, log) = session(&[]);
    let details = |from: &str, to: &str| -> Vec<String> {
        let read = branch(&log, Some(&from.into()), &to.into()).unwrap();
        let texts = read.left.iter().filter_map(|left| left.details.as_ref());
        texts.map(|details| details.text().to_owned()).collect()
    };
    assert_eq!(details("s", "d"), [r#"{"readFiles":["x"],"modifiedFiles":[]}"#]);
    assert_eq!(details("x", "c"), [] as [&str; 0]);
}

#[test]
fn a_snapshot_keeps_to_its_moment() {
    use crew_base::entry::{Entry, EntryBody};
    let (_world, mut log) = session(&[]);
    let before = log.snapshot();
    let body = EntryBody::SessionInfo { name: Some("later".into()) };
    let entry =
        Entry { id: "n".into(), parent_id: Some("x".into()), timestamp: TIME.to_owned(), body };
    log.append(&entry).unwrap();
    assert_eq!((before.last(), log.last()), (Some(&"x".into()), Some(&"n".into())));
    assert_eq!((before.index().name(), log.index().name()), (None, Some("later")));
    let mut seen = Vec::new();
    before.each_line(0, |entry, _| seen.push(entry.id.to_string())).unwrap();
    assert_eq!((seen.len(), seen.last().map(String::as_str)), (13, Some("x")));
}
