//! Session files as they are found in the world: old, damaged, huge, and new
//! ones that must come out right (`host.md` 2).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, EntryBody, Header, HeaderKind};
use crew_base::id::EntryId;
use crew_base::message::Message;
use crew_base::time::Time;
use crew_store::error::Error;
use crew_store::session::log::{Plan, SessionLog};
use crew_store::session::open::{self, Opened};
use crew_store::session::totals::{custom_data, totals};
use crew_store::session::tree::{Tree, tree_json};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn header(id: &str) -> Header {
    Header {
        kind: HeaderKind::Session,
        version: 3,
        id: id.into(),
        timestamp: "2026-11-30T13:43:03.766Z".into(),
        cwd: "/w".into(),
        parent_session: None,
    }
}

fn golden(name: &str) -> String {
    fs::read_to_string(Path::new(GOLDEN).join(name)).unwrap()
}

/// A copy of a golden file in a folder of its own.
fn world(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn open(path: &Path) -> Opened {
    open::open(path, header("fresh"), false).unwrap()
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Entry {
    entry(id, parent, {
        let message = Message::user_text(text, Time(5));
        EntryBody::Message { message }
    })
}

fn entry(id: &str, parent: Option<&str>, body: EntryBody) -> Entry {
    Entry {
        id: id.into(),
        parent_id: parent.map(EntryId::from),
        timestamp: "2026-11-30T13:43:04.000Z".into(),
        body,
    }
}

fn context(opened: &Opened) -> String {
    let line = |(id, message): &(EntryId, std::sync::Arc<Message>)| {
        format!("{id} {}\n", serde_json::to_string(&**message).unwrap())
    };
    opened.context.messages.iter().map(line).collect()
}

/// The texts of a context of user, custom and summary messages.
fn texts(opened: &Opened) -> Vec<String> {
    let messages = opened.context.messages.iter();
    let text = |(_, message): &(EntryId, std::sync::Arc<Message>)| {
        if let Message::CompactionSummary(m) = &**message {
            return m.summary.clone();
        }
        if let Message::Custom(m) = &**message {
            return m.content.text();
        }
        let Message::User(m) = &**message else { panic!("{message:?}") };
        m.content.text()
    };
    messages.map(text).collect()
}

#[test]
fn a_file_of_today_loads_and_stays_as_it_is() {
    // host.md 2.6, 2.4.4, 2.4.5, 2.2.10
    let text = golden("v3.jsonl");
    let (_folder, path) = world(&text);
    let opened = open(&path);
    assert_eq!(context(&opened), golden("v3.context.jsonl"));
    assert_eq!(opened.warnings, []);
    let context = &opened.context;
    assert_eq!(context.thinking_level.as_deref(), Some("low"));
    assert_eq!(context.model, Some(("fake".into(), "m2".into())));
    assert_eq!(context.compaction, Some("0000000a".into()));
    let log = &opened.log;
    assert_eq!(log.last(), Some(&"00000017".into()));
    assert_eq!(log.index().name(), Some("golden"));
    assert_eq!(log.index().labels()[&"0000000b".into()].text, "mark");
    assert_eq!(log.header().cwd, "/home/me/app");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let mut lines = String::from(log.header_line()) + "\n";
    log.each_line(0, |_, line| lines += &format!("{line}\n")).unwrap();
    assert_eq!(lines, text, "lines are read back as they stand");
}

#[test]
fn another_leaf_gives_another_context() {
    // host.md 2.6.1, 2.6.5, 2.8.2
    let (_folder, path) = world(&golden("v3.jsonl"));
    let log = open(&path).log;
    let branch = log.project(Some(&"0000000c".into())).unwrap();
    assert_eq!(branch.model, Some(("other".into(), "m9".into())));
    assert_eq!(branch.messages.len(), 7);
    let early = log.project(Some(&"00000005".into())).unwrap();
    assert_eq!(early.messages.len(), 2, "summary, kept message");
    assert_eq!(log.project(None).unwrap().messages.len(), 0);
    let unknown = log.project(Some(&"zzz".into())).unwrap();
    assert_eq!(unknown, log.project(log.last()).unwrap());
}

#[test]
fn totals_count_every_branch_and_custom_data_is_found() {
    // host.md 7.3.2, product.md P-14i
    let (_folder, path) = world(&golden("v3.jsonl"));
    let log = open(&path).log;
    let sum = totals(&log).unwrap();
    assert_eq!((sum.user_messages, sum.assistant_messages), (3, 3));
    assert_eq!((sum.tool_calls, sum.tool_results, sum.messages), (1, 1, 9));
    assert_eq!((sum.usage.input, sum.usage.total_tokens), (63, 112));
    let data = custom_data(&log, "crew.usage").unwrap();
    assert_eq!(data[0].1.text(), r#"{"subagent":"scout-1","n":1.0}"#);
    assert_eq!(custom_data(&log, "crew").unwrap(), []);
}

#[test]
fn old_versions_are_migrated_once() {
    // host.md 2.5, 11.11, 11.12
    for version in ["v1", "v2"] {
        let (folder, path) = world(&golden(&format!("{version}.jsonl")));
        let opened = open(&path);
        let mut migrated = fs::read_to_string(&path).unwrap();
        assert_eq!(opened.log.header().version, 3);
        for (at, entry) in opened.log.index().entries().iter().enumerate() {
            if version == "v1" {
                assert_eq!(entry.id.as_str().len(), 8);
                migrated = migrated.replace(entry.id.as_str(), &format!("<{}>", at + 1));
            }
        }
        assert_eq!(migrated, golden(&format!("{version}.migrated.jsonl")));
        let expected: &[&str] = match version {
            "v1" => &["SUM", "kept", "later"],
            _ => &["says hookMessage", "from a hook"],
        };
        assert_eq!(texts(&opened), expected);
        drop(opened);
        let before = fs::read(&path).unwrap();
        open(&path);
        assert_eq!(fs::read(&path).unwrap(), before, "a second load changes nothing");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn nothing_is_on_disk_before_the_first_prompt() {
    // host.md 2.2.1, 2.2.2, 11.1, 11.2
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions/--w--/s.jsonl");
    let mut log =
        SessionLog::create(Plan { header: header("new"), path: Some(path.clone()), lock: true });
    let model = EntryBody::ModelChange { provider: "fake".into(), model_id: "m1".into() };
    log.append(&entry("m", None, model)).unwrap();
    log.sync().unwrap();
    assert!(!folder.path().join("sessions").exists());
    assert_eq!((log.path(), log.is_saved()), (Some(path.as_path()), false));
    log.append(&user("u", Some("m"), "hello")).unwrap();
    assert!(log.is_saved());
    log.append(&user("v", Some("u"), "again")).unwrap();
    log.sync().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(text.starts_with(r#"{"type":"session","version":3,"id":"new""#));
    assert!(text.ends_with("}\n"));
    assert!(matches!(open::open(&path, header("x"), true), Err(Error::InUse { .. })));
    assert_eq!(log.entry(&"v".into()).unwrap(), user("v", Some("u"), "again"));
    drop(log);
    assert_eq!(texts(&open(&path)), ["hello", "again"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn a_session_without_a_file_answers_like_one_with_a_file() {
    // host.md 6.3.4, 7.3.1
    let mut log = SessionLog::create(Plan { header: header("memory"), path: None, lock: false });
    log.append(&user("u", None, "hello")).unwrap();
    log.append(&user("v", Some("u"), "again")).unwrap();
    assert_eq!((log.path(), log.is_saved()), (None, false));
    assert_eq!(log.project(log.last()).unwrap().messages.len(), 2);
    assert_eq!(log.entry(&"u".into()).unwrap(), user("u", None, "hello"));
    assert!(matches!(log.entry(&"x".into()), Err(Error::UnknownEntry { .. })));
}

#[test]
fn a_planned_file_that_exists_is_an_error_and_the_session_can_go_on() {
    // host.md 2.2.2, 2.2.4
    let (_folder, path) = world("somebody else's");
    let mut log =
        SessionLog::create(Plan { header: header("new"), path: Some(path.clone()), lock: false });
    let error = log.append(&user("u", None, "hello"));
    assert!(matches!(error, Err(Error::Exists { .. })));
    assert_eq!(log.last(), None);
    fs::remove_file(&path).unwrap();
    log.append(&user("v", None, "hello")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn missing_and_empty_files_become_sessions_and_others_are_refused() {
    // host.md 2.2.5, 11.5, 11.6, 7.3.7
    let (folder, path) = world("");
    let opened = open(&path);
    assert!(opened.log.is_saved());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{}\n", opened.log.header_line()));
    let missing = folder.path().join("new/place.jsonl");
    let opened = open(&missing);
    assert_eq!(opened.log.path(), Some(missing.as_path()));
    assert!(!missing.exists());
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        let error = open::open(&path, header("x"), false);
        assert!(matches!(error, Err(Error::NotASession { .. })), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    };
    refused("{\"a\":1}\n{\"b\":2}\n");
    refused("no json");
    refused("\n");
    refused("{\"type\":\"session\",\"id\":7}\n");
    fs::write(&path, format!("junk\n\n{}\n", golden("v3.jsonl"))).unwrap();
    let opened = open(&path);
    assert_eq!(opened.warnings.len(), 1, "{:?}", opened.warnings);
    assert!(matches!(open::open(folder.path(), header("x"), false), Err(Error::Io { .. })));
}

#[test]
fn a_file_cut_at_any_byte_of_its_last_record_resumes_on_a_line_of_its_own() {
    // host.md 2.2.6, 11.3; faults.md C076
    let text = golden("v3.jsonl");
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    let whole = open(&world(&text).1).log.index().entries().len();
    for cut in last..=text.len() {
        let (_folder, path) = world(&text[..cut]);
        let mut log = open(&path).log;
        // Cut to nothing, or only the line feed: no damage.
        let expected = if cut < text.len() - 1 { whole - 1 } else { whole };
        assert_eq!(log.index().entries().len(), expected, "cut at {cut}");
        let parent = log.last().cloned();
        let new = user("new", parent.as_ref().map(EntryId::as_str), "go on");
        log.append(&new).unwrap();
        drop(log);
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(&text[..cut]), "what stood there stays");
        assert_eq!(after.lines().last().unwrap(), new.line());
        let again = open(&path);
        assert_eq!(again.log.index().entries().len(), expected + 1);
        assert_eq!(again.log.entry(&"new".into()).unwrap(), new);
    }
}

#[test]
fn zero_bytes_in_the_middle_cost_no_later_entry_and_are_told() {
    // faults.md C077, host.md 2.2.5, 11.4
    let text = golden("v3.jsonl");
    let all = text.lines().count() - 1;
    let line = text.match_indices('\n').nth(15).unwrap().0 + 1;
    let check = |at: usize, lost: usize| {
        let mut bytes = text.clone().into_bytes();
        bytes.splice(at..at, [0; 500]);
        let (_folder, path) = world("");
        fs::write(&path, &bytes).unwrap();
        let opened = open(&path);
        let log = &opened.log;
        assert_eq!(log.index().entries().len(), all - lost);
        assert_eq!(log.last(), Some(&"00000017".into()));
        assert_eq!(opened.warnings.len(), 1, "{:?}", opened.warnings);
        assert!(opened.warnings[0].message.starts_with("line 17: "));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    };
    check(line, 0);
    check(line + 40, 1);
}

#[test]
fn children_of_a_lost_entry_are_roots_and_the_path_stops_there() {
    // host.md 11.4, 2.6.1, 2.8.1
    let lines = [
        serde_json::to_string(&header("h")).unwrap(),
        user("a", None, "lost").line(),
        r#"{"type":"message","id":"b","parentId":"a",broken"#.into(),
        user("c", Some("b"), "kept").line(),
    ];
    let (_folder, path) = world(&lines.join("\n"));
    let opened = open(&path);
    assert_eq!(texts(&opened), ["kept"]);
    assert_eq!(Tree::of(opened.log.index()).roots, [0, 1]);
}

#[test]
fn lone_surrogates_and_broken_bytes_load_and_are_not_rewritten() {
    // host.md 0.2, 11.25
    let mut bytes = format!("{}\n", serde_json::to_string(&header("h")).unwrap()).into_bytes();
    let line = user("a", None, "cut X here").line();
    bytes.extend(line.replace('X', "\\ud83d").bytes());
    bytes.push(b'\n');
    let line = user("b", Some("a"), "bad X byte").line();
    for byte in line.bytes() {
        bytes.push(if byte == b'X' { 0xFF } else { byte });
    }
    bytes.push(b'\n');
    let (_folder, path) = world("");
    fs::write(&path, &bytes).unwrap();
    let opened = open(&path);
    assert_eq!(texts(&opened), ["cut \u{fffd} here", "bad \u{fffd} byte"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn null_content_and_long_lines_load() {
    // host.md 11.9, 11.10, 11.24, 2.6.4
    let long = "x".repeat(3_000_000);
    let lines = [
        format!(
            r#"{{"filler":"{}","type":"session","version":3,"id":"h"}}"#,
            "y".repeat(1_200_000)
        ),
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":null}}"#
            .into(),
        user("b", Some("a"), &long).line(),
        r#"{"type":"message","id":"c","parentId":"b","message":{"role":"novel","content":"x"}}"#
            .into(),
    ];
    let (_folder, path) = world(&(lines.join("\n") + "\n"));
    assert_eq!(texts(&open(&path)), ["", &long]);
}

#[test]
fn a_chain_of_a_hundred_thousand_entries_needs_no_deep_stack() {
    // host.md 11.8, 2.8.1
    let mut text = serde_json::to_string(&header("h")).unwrap() + "\n";
    text += &(user("e0", None, "root").line() + "\n");
    for n in 1..100_000 {
        text += &format!(
            "{{\"type\":\"custom\",\"id\":\"e{n}\",\"parentId\":\"e{}\",\"timestamp\":\"2026-11-30T13:43:04.000Z\",\"customType\":\"t\"}}\n",
            n - 1
        );
    }
    let (_folder, path) = world(&text);
    let opened = open(&path);
    assert_eq!(texts(&opened), ["root"]);
    let tree = Tree::of(opened.log.index());
    assert_eq!((tree.roots.len(), tree.nodes.len()), (1, 100_000));
    let json = tree_json(&opened.log).unwrap();
    assert_eq!(json.matches("\"children\":[").count(), 100_000);
    assert!(json.ends_with(&"]}".repeat(100_000).chars().chain([']']).collect::<String>()));
}

#[test]
fn the_tree_has_children_by_time_and_labels() {
    // host.md 2.8.1, 2.4.5
    let at = |entry: Entry, time: &str| {
        let timestamp = format!("2026-11-30T13:43:{time}.000Z");
        Entry { timestamp, ..entry }.line()
    };
    let label = |id: &str, parent: &str, text: Option<&str>| {
        let body = EntryBody::Label { target_id: "c".into(), label: text.map(str::to_owned) };
        entry(id, Some(parent), body)
    };
    let lines = [
        serde_json::to_string(&header("h")).unwrap(),
        at(user("a", None, "q"), "01"),
        at(user("b", Some("a"), "late"), "09"),
        at(user("c", Some("a"), "early"), "02"),
        at(user("d", Some("d"), "its own parent"), "03"),
        at(label("l1", "d", Some("old")), "04"),
        at(label("l2", "l1", Some("L")), "05"),
    ];
    let (_folder, path) = world(&lines.join("\n"));
    let log = open(&path).log;
    let tree: serde_json::Value = serde_json::from_str(&tree_json(&log).unwrap()).unwrap();
    assert_eq!(tree[0]["children"][0]["entry"]["id"], "c");
    assert_eq!(tree[0]["children"][0]["label"], "L");
    assert_eq!(tree[0]["children"][0]["labelTimestamp"], "2026-11-30T13:43:05.000Z");
    assert_eq!(tree[0]["children"][1]["entry"]["id"], "b");
    assert_eq!(tree[1]["entry"]["id"], "d");
}
