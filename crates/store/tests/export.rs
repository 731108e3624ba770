//! Exports of sessions: what a page shows, that nothing on it can act, and that
//! a branch is copied as it stands (`host.md` 2.8.10, 2.6.7).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use crew_base::entry::{Header, HeaderKind};
use crew_base::time::Time;
use crew_store::error::Error;
use crew_store::export::{ExportOptions, html, html_to_file, jsonl, jsonl_to_file};
use crew_store::session::log::{Plan, SessionLog};
use crew_store::session::open;
use serde_json::{Value, json};

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

/// A session file in a folder of its own.
struct World {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl World {
    fn new(text: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, text).unwrap();
        World { folder, path }
    }

    /// A session of the given entries, each the child of the one before.
    fn of(entries: &[Value]) -> World {
        World::new(&session("own", None, entries))
    }

    fn log(&self) -> SessionLog {
        open::open(&self.path, header("fresh"), false).unwrap().log
    }

    fn page(&self, options: &ExportOptions) -> String {
        page(&self.log(), options)
    }

    /// Puts a child of the session beside it.
    fn child(&self, name: &str, created: &str, entries: &[Value]) {
        let folder = self.folder.path().join("crew");
        fs::create_dir_all(&folder).unwrap();
        let parent = Some(self.path.to_str().unwrap());
        let text = session(name, parent, entries).replace("2026-11-30T13:43:03.766Z", created);
        fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
    }
}

fn page(log: &SessionLog, options: &ExportOptions) -> String {
    let mut out = Vec::new();
    html(log, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn session(id: &str, parent: Option<&str>, entries: &[Value]) -> String {
    let mut head = header(id);
    head.parent_session = parent.map(str::to_owned);
    let mut text = serde_json::to_string(&head).unwrap() + "\n";
    for (at, entry) in entries.iter().enumerate() {
        let mut line = entry.clone();
        let fields = line.as_object_mut().unwrap();
        let before = at.checked_sub(1).map(|at| format!("e{at}"));
        fields.entry("id").or_insert(json!(format!("e{at}")));
        fields.entry("parentId").or_insert(json!(before));
        fields.entry("timestamp").or_insert(json!("2026-11-30T13:43:04.000Z"));
        text += &format!("{line}\n");
    }
    text
}

fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": text, "timestamp": 1}})
}

fn answer(content: Value) -> Value {
    json!({"type": "message", "message": {
        "role": "assistant", "content": content, "provider": "fake", "model": "m1",
        "stopReason": "stop", "timestamp": 1,
    }})
}

fn result(call: &str, name: &str, text: &str, details: Value) -> Value {
    json!({"type": "message", "message": {
        "role": "toolResult", "toolCallId": call, "toolName": name, "isError": false,
        "content": [{"type": "text", "text": text}], "details": details, "timestamp": 1,
    }})
}

fn spawn(call: &str, brief: &str, goal: &str) -> Value {
    json!({"type": "toolCall", "id": call, "name": "crew_spawn", "arguments": {
        "subagent": "scout", "brief": brief,
        "task": {"goal": goal, "context": [], "instructions": ["look"]},
    }})
}

/// The page without its style sheet, which is no matter of structure.
fn structure(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}{after}")
}

/// Walks the tags of a page: each must be known, every one that opens must be
/// closed, and attributes must be of the kinds we write.
fn check_markup(page: &str) {
    let body = structure(page);
    let mut open: Vec<&str> = Vec::new();
    for part in body.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("unclosed tag: {part}"));
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed here: {part}");
            continue;
        }
        let name = tag.split_whitespace().next().unwrap();
        assert!(TAGS.contains(&name), "unknown tag: {tag}");
        for attribute in attributes(&tag[name.len()..]) {
            assert!(ATTRIBUTES.contains(&attribute), "{attribute} in {tag}");
        }
        if !["meta", "img", "!DOCTYPE"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0], "left open");
    assert!(!body.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "controls");
    for link in body.split("href=\"").skip(1) {
        assert!(link.starts_with('#'), "a link leads away: {link:.60}");
    }
    for source in body.split("src=\"").skip(1) {
        assert!(source.starts_with("data:image/"), "something is loaded: {source:.60}");
    }
}

/// Names of the attributes of a tag.
fn attributes(mut rest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some((name, value)) = rest.split_once("=\"") {
        names.push(name.trim());
        rest = value.split_once('"').unwrap().1;
    }
    names.push(rest.trim());
    names.retain(|name| !name.is_empty());
    names
}

const TAGS: &[&str] = &[
    "!DOCTYPE", "html", "head", "meta", "title", "body", "header", "h1", "h2", "h3", "h4", "dl",
    "dt", "dd", "bdi", "nav", "ul", "li", "a", "main", "section", "details", "summary", "div",
    "span", "p", "pre", "code", "strong", "time", "img", "footer",
];
const ATTRIBUTES: &[&str] = &[
    "html",
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "id",
    "class",
    "href",
    "src",
    "alt",
    "datetime",
];

#[test]
fn a_page_shows_every_kind_of_entry() {
    // host.md 2.6.7, 2.8.10, 8.15, 8.16; crew.md CARD-1 to CARD-5; product.md P-12
    let world = World::new(&fs::read_to_string(Path::new(GOLDEN).join("export.jsonl")).unwrap());
    let page = world.page(&ExportOptions::default());
    check_markup(&page);
    let golden = Path::new(GOLDEN).join("export.html");
    if std::env::var_os("CREW_BLESS").is_some() {
        fs::write(&golden, structure(&page)).unwrap();
    }
    assert_eq!(structure(&page), fs::read_to_string(golden).unwrap());
    let index_size = world.log().index().entries().len();
    let anchors = page.matches(" id=\"").count();
    assert_eq!(anchors, index_size, "each entry has one anchor");
}

#[test]
fn nothing_a_session_holds_becomes_markup() {
    let evil = "</pre></style></script><script>alert(1)</script><img src=x onerror=y>\
                \"'>&lt; javascript:x \u{1b}[2J\u{1b}]0;t\u{7}\u{0}\u{9b}1m\u{202e}\r";
    let call = json!({"type": "toolCall", "id": evil, "name": evil, "arguments": {evil: evil, "n": [evil]}});
    let texts = json!([{"type": "text", "text": evil}]);
    let mut entries = vec![
        json!({"type": "session_info", "name": evil}),
        json!({"type": "model_change", "provider": evil, "modelId": evil}),
        json!({"type": "thinking_level_change", "thinkingLevel": evil}),
        json!({"type": "message", "message": {"role": "system", "content": evil, "sections": {evil: evil},
            "toolsAdded": [{"name": evil, "description": evil, "parameters": {evil: evil}}],
            "toolsRemoved": [{"name": evil}]}}),
        user(evil),
        answer(json!([{"type": "thinking", "thinking": evil}, {"type": "text", "text": evil},
            {"type": "image", "data": evil, "mimeType": evil}, {"type": evil, "x": evil}, call])),
        result(evil, evil, evil, json!({evil: evil})),
        result("none", evil, evil, json!({"diff": evil})),
        json!({"type": "message", "message": {"role": "bashExecution", "command": evil, "output": evil,
            "fullOutputPath": evil, "truncated": true}}),
        json!({"type": "message", "message": {"role": "assistant", "content": texts, "stopReason": "error",
            "errorMessage": evil, "provider": evil, "model": evil, "thinkingLevel": evil}}),
        json!({"type": "compaction", "summary": evil, "firstKeptEntryId": evil, "tokensBefore": 1,
            "details": {"readFiles": [evil]}}),
        json!({"type": "branch_summary", "fromId": evil, "summary": evil}),
        json!({"type": "context_edit", "targetId": "e4", "replacement": {"content": evil}}),
        json!({"type": "custom", "customType": evil, "data": {evil: evil}}),
        json!({"type": "label", "targetId": "e4", "label": evil}),
        json!({"type": "usage", "kind": evil, "provider": evil, "model": evil, "usage": {}, "note": evil}),
        json!({"type": evil, "x": evil, "id": evil}),
        json!({"type": "message", "parentId": evil, "message": 7}),
    ];
    let card = json!({"subagentId": evil, "subagent": evil, "brief": evil, "status": evil,
        "result": {"report": evil, "needs": evil}, "error": evil, "lastText": evil});
    for kind in ["crew-result", "crew-status", "crew-user", evil] {
        entries.push(json!({"type": "custom_message", "customType": kind, "content": evil,
            "display": true, "details": card}));
        entries.push(json!({"type": "custom_message", "customType": kind, "content": texts,
            "display": false}));
    }
    for kind in ["crew-abort", "crew.ending", "crew.usage"] {
        entries.push(json!({"type": "custom", "customType": kind, "data": card}));
    }
    let world = World::new(&session(evil, Some(evil), &entries));
    let page = world.page(&ExportOptions { children: true, leaf: None });
    check_markup(&page);
    assert!(page.matches("&lt;script&gt;alert(1)").count() > 40);
    assert_eq!(page.matches("</style>").count(), 1);
}

#[test]
fn damaged_and_odd_content_is_shown_as_far_as_it_goes() {
    // host.md 0.2, 2.2.10, 2.6.1, 2.8.1
    let huge = "x".repeat(1_000_000);
    let text = [
        r#"{"type":"session","version":3,"id":"odd","timestamp":"not a time","cwd":""}"#.to_owned(),
        r#"{"type":"message","id":"a","parentId":"c","message":{"role":"user","content":"lone \ud83d half"}}"#.to_owned(),
        r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"toolCall","id":"k","name":"bash","arguments":[1]}],"stopReason":"weird","usage":null}}"#.to_owned(),
        format!(r#"{{"type":"message","id":"c","parentId":"b","message":{{"role":"user","content":"{huge}"}}}}"#),
        r#"{"type":"message","id":"lone","parentId":"gone","message":{"role":"user","content":"an orphan"}}"#.to_owned(),
        r#"{"type":"message","id":"x","parentId":"y","message":{"role":"user","content":"round"}}"#.to_owned(),
        r#"{"type":"message","id":"y","parentId":"x","message":{"role":"user","content":"and round"}}"#.to_owned(),
        r#"{"type":"message","id":"lone","parentId":"lone","message":{"role":"user","content":"the same id"}}"#.to_owned(),
        r#"{"type":"label","id":"l","parentId":"b","targetId":7}"#.to_owned(),
    ];
    let spent = r#"{"type":"usage","id":"ID","parentId":"l","kind":"k","provider":"p","model":"m","usage":{"input":18446744073709551615,"cost":{"total":1e308}}}"#;
    let spent = [spent.replace("ID", "u1"), spent.replace("ID", "u2")].join("\n");
    let world = World::new(&(text.join("\n") + "\n" + &spent + "\n"));
    let page = world.page(&ExportOptions::default());
    check_markup(&page);
    assert!(page.contains("↑ 18,446,744,073,709,551,615"), "sums do not overflow");
    for shown in ["lone \u{fffd} half", &huge, "an orphan", "round", "and round", "the same id"] {
        assert!(page.contains(shown), "{shown:.40}");
    }
    assert!(page.contains("No result was recorded"));
    assert_eq!(page.matches(" id=\"").count(), 10, "each entry once, anchors unique");
}

#[test]
fn results_stand_with_their_calls_also_when_ids_repeat() {
    // host.md 8.15
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": id}});
    let world = World::of(&[
        user("go"),
        answer(json!([call("a"), call("b"), call("a")])),
        result("b", "bash", "second", Value::Null),
        result("a", "bash", "first", Value::Null),
        json!({"type": "label", "targetId": "e0", "label": "between"}),
        result("a", "bash", "third", Value::Null),
        answer(json!([call("a")])),
        result("a", "bash", "fourth", Value::Null),
        result("a", "bash", "one too many", Value::Null),
        json!({"type": "context_edit", "targetId": "e3", "replacement": null}),
    ]);
    let page = world.page(&ExportOptions::default());
    check_markup(&page);
    let at =
        |text: &str| page.find(&format!(">\n{text}</pre>")).unwrap_or_else(|| panic!("{text}"));
    assert!(at("first") < at("second") && at("second") < at("third"));
    assert!(at("third") < at("fourth") && at("fourth") < at("one too many"));
    assert_eq!(page.matches("Tool result").count(), 1, "only the last stands alone");
    assert!(!page.contains("No result was recorded"));
    let (_, first) = page.split_once("id=\"e.e3\"").unwrap();
    assert!(first.split_once("</h3>").unwrap().0.contains("left out of the model’s context"));
}

#[test]
fn the_leaf_decides_which_branch_is_open() {
    // host.md 2.6.7, 2.8.1
    let mut left = answer(json!([{"type": "text", "text": "left"}]));
    left["id"] = json!("left");
    let mut right = answer(json!([{"type": "text", "text": "right"}]));
    right["parentId"] = json!("e0");
    let world = World::of(&[user("fork"), left, right]);
    let check = |leaf: Option<&str>, folded: &str| {
        let leaf = leaf.map(Into::into);
        let page = world.page(&ExportOptions { children: false, leaf });
        check_markup(&page);
        let (_, branch) = page.split_once("<details class=\"branch\">").unwrap();
        let (branch, _) = branch.split_once("</details>").unwrap();
        assert!(branch.starts_with("<summary>Another branch · 1 entry · 0 prompts"), "{branch}");
        assert!(branch.contains(&format!("\n{folded}</pre>")), "{branch}");
    };
    check(None, "left");
    check(Some("left"), "right");
}

#[test]
fn children_follow_on_request_and_are_linked_from_their_calls() {
    // host.md 12.4, terminal.md TERM-50, crew.md ISO-9
    let card = |id: &str, status: &str| {
        json!({"type": "custom_message", "customType": "crew-result",
        "content": "{}", "display": true, "details": {"subagentId": id, "brief": "look", "status": status,
        "result": {"report": "r"}}})
    };
    let world = World::of(&[
        user("go"),
        answer(json!([
            spawn("c1", "look", "Never opened."),
            spawn("c1b", "look", "Same."),
            spawn("c1c", "look", "Same.")
        ])),
        result("c1", "crew_spawn", "{}", json!({"subagentId": "scout-0"})),
        result("c1b", "crew_spawn", "{}", json!({"subagentId": "scout-1"})),
        result("c1c", "crew_spawn", "{}", json!({"subagentId": "scout-2"})),
        card("scout-1", "needs_input"),
        card("scout-1", "completed"),
        answer(json!([spawn("c1", "later", "Other.")])),
        result("c1", "crew_spawn", "{}", json!({"subagentId": "scout-3"})),
    ]);
    let entries = |title: &str, goal: &str, said: &str| {
        let mut last = answer(json!([{"type": "text", "text": said}]));
        last["message"]["usage"] = json!({"input": 5, "cost": {"total": 0.5}});
        [
            json!({"type": "session_info", "name": title}),
            user(&format!("## Goal\n\n{goal}\n\n## Context\n\nNone.")),
            last,
            json!({"type": "custom", "customType": "crew.ending", "data": {"status": "aborted", "reason": "why"}}),
        ]
    };
    world.child(
        "one",
        "2026-11-30T13:43:05.000Z",
        &entries("crew: scout · look", "Same.", "I am one"),
    );
    world.child(
        "two",
        "2026-11-30T13:43:06.000Z",
        &entries("crew: scout · look", "Same.", "I am two"),
    );
    world.child(
        "three",
        "2026-11-30T13:43:07.000Z",
        &entries("crew: scout · later", "Other.", "I am three"),
    );
    world.child("four", "2026-11-30T13:43:08.000Z", &entries("named anew", "Same.", "I am four"));
    let foreign = session(
        "foreign",
        Some("/elsewhere.jsonl"),
        &entries("crew: scout · look", "Same.", "I am foreign"),
    );
    fs::write(world.folder.path().join("crew/foreign.jsonl"), foreign).unwrap();
    fs::write(world.folder.path().join("crew/broken.jsonl"), "no session").unwrap();

    let without = world.page(&ExportOptions::default());
    assert!(!without.contains("I am") && !without.contains("crew-1"));
    let page = world.page(&ExportOptions { children: true, leaf: None });
    check_markup(&page);
    assert!(!page.contains("I am foreign"));
    let sections: Vec<&str> = page.split("<section id=\"crew-").skip(1).collect();
    let expected = [
        ("scout-1 · look", "completed", "I am one"),
        ("scout-2 · look", "aborted", "I am two"),
        ("scout-3 · later", "aborted", "I am three"),
        ("named anew", "aborted", "I am four"),
    ];
    assert_eq!(sections.len(), expected.len());
    for (section, (label, outcome, said)) in sections.iter().zip(expected) {
        let heading = format!("<h2><bdi>{label}</bdi></h2>");
        assert!(section.contains(&heading), "{label}: {section:.200}");
        assert!(
            section.contains(&format!("<dt>Outcome</dt><dd><bdi>{outcome}</bdi></dd>")),
            "{label}"
        );
        assert!(section.contains(said) && section.contains("$0.50"), "{label}");
    }
    // Once in the list, once at the call; scout-1 also at its two cards.
    let links = |number: usize| page.matches(&format!("href=\"#crew-{number}\"")).count();
    assert_eq!([links(1), links(2), links(3), links(4)], [4, 2, 2, 1]);
    let anchors: Vec<&str> =
        page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let distinct: std::collections::BTreeSet<&&str> = anchors.iter().collect();
    assert_eq!(distinct.len(), anchors.len(), "anchors of all sessions differ");
}

#[test]
fn a_session_of_twenty_megabytes_is_a_page_of_about_that_size() {
    let line = "some words of output that a tool gave, again and again\n".repeat(20);
    let mut entries = vec![user("go")];
    for at in 0..9000 {
        let id = format!("call_{at}");
        let call =
            json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}});
        entries.push(answer(json!([call])));
        entries.push(result(&id, "bash", &format!("{at} {line}{line}"), Value::Null));
    }
    let world = World::of(&entries);
    let size = fs::metadata(&world.path).unwrap().len();
    assert!(size > 20_000_000, "{size}");
    /// Counts what is written, so that the test holds no page either.
    struct Counter(u64, usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            self.1 = self.1.max(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0, 0);
    html(&world.log(), &ExportOptions::default(), &mut counter).unwrap();
    assert!(counter.0 > 20_000_000 && counter.0 < size * 2, "{} of {size}", counter.0);
    assert!(counter.1 < 100_000, "written in pieces, the largest of {}", counter.1);
}

#[test]
fn a_deep_tree_of_branches_needs_no_recursion() {
    // host.md 2.8.1
    let mut entries = vec![user("root")];
    for at in 0..20_000 {
        let mut entry = user("fork");
        entry["id"] = json!(format!("f{at}"));
        entry["parentId"] =
            json!(if at == 0 { "e0".into() } else { format!("f{}", (at - 1) / 2 * 2) });
        entries.push(entry);
    }
    let mut last = user("leaf");
    last["parentId"] = json!("e0");
    entries.push(last);
    let world = World::of(&entries);
    let page = world.page(&ExportOptions::default());
    check_markup(&page);
    assert_eq!(page.matches(" id=\"").count(), 20_002);
    assert_eq!(page.matches("<details class=\"branch\">").count(), 1);
}

#[test]
fn a_branch_is_copied_line_by_line_behind_a_new_header() {
    // host.md 2.8.10, 2.3.4, 2.7.12, 0.2, 0.6
    let text = fs::read_to_string(Path::new(GOLDEN).join("export.jsonl")).unwrap();
    let world = World::new(&text);
    let copy = |leaf: Option<&str>| {
        let mut out = Vec::new();
        let leaf = leaf.map(Into::into);
        jsonl(&world.log(), leaf.as_ref(), Time(1_900_000_000_000), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let whole = copy(None);
    let head = whole.lines().next().unwrap();
    assert_eq!(
        head,
        r#"{"type":"session","version":3,"id":"export-1","timestamp":"2030-03-17T17:46:40.000Z","cwd":"/home/me/app","novel":1.50}"#
    );
    let left_out = [r#""id":"c6""#, r#""id":"c7""#];
    let expected: Vec<&str> =
        text.lines().skip(1).filter(|line| !left_out.iter().any(|id| line.contains(id))).collect();
    assert_eq!(whole.lines().skip(1).collect::<Vec<_>>(), expected);
    let left = copy(Some("c6"));
    assert!(left.ends_with('\n') && left.lines().last().unwrap().contains("the left branch"));

    let again = World::new(&whole);
    let (before, after) = (world.log(), again.log());
    assert_eq!(before.project(before.last()).unwrap(), after.project(after.last()).unwrap());
}

#[test]
fn a_chain_that_does_not_fit_is_mended_in_the_copy_only() {
    // host.md 2.6.1, 2.8.10
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#,
        r#"{"type":"message","id":"a","parentId":"gone","x":"\ud83d","message":{"role":"user","content":"1.0"}}"#,
        r#"{"type":"message","id":"b","parentId":"a", "n":1.50,"message":{"role":"user","content":"x"}}"#,
    ];
    let world = World::new(&(lines.join("\n") + "\n"));
    let mut out = Vec::new();
    jsonl(&world.log(), None, Time(0), &mut out).unwrap();
    let copy = String::from_utf8(out).unwrap();
    let copied: Vec<&str> = copy.lines().collect();
    assert_eq!(copied[1], lines[1].replace(r#""gone""#, "null"));
    assert_eq!(copied[2], lines[2]);
    assert_eq!(fs::read_to_string(&world.path).unwrap(), lines.join("\n") + "\n");
}

#[test]
fn a_session_in_memory_can_be_exported() {
    // host.md 7.3.1
    let log = SessionLog::create(Plan { header: header("memory"), path: None, lock: false });
    let text = page(&log, &ExportOptions { children: true, leaf: None });
    check_markup(&text);
    assert!(text.contains("<title>Session memory</title>"));
    let mut out = Vec::new();
    jsonl(&log, None, Time(0), &mut out).unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let world = World::of(&[user("go")]);
    let (log, options) = (world.log(), ExportOptions::default());
    let at = |name: &str| world.folder.path().join(name);
    let target = at("page.html");
    html_to_file(&log, &options, &target).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), page(&log, &options));
    jsonl_to_file(&log, None, Time(0), &target).unwrap();
    assert!(fs::read_to_string(&target).unwrap().starts_with(r#"{"type":"session""#));

    fs::create_dir(at("folder")).unwrap();
    let is_io = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Io { .. })));
    is_io(html_to_file(&log, &options, &at("folder")));
    is_io(html_to_file(&log, &options, &at("none/page.html")));
    assert!(!at("none").exists(), "no folder is made");
    let own = html_to_file(&log, &options, &world.path);
    assert!(matches!(own, Err(Error::Exists { .. })), "the session itself is safe");
    assert_eq!(log.index().entries().len(), 1);
    assert!(fs::read_to_string(&world.path).unwrap().contains(r#""role":"user""#));
    assert_eq!(fs::read_dir(world.folder.path()).unwrap().count(), 3, "nothing is left behind");
}

#[test]
fn what_cannot_be_read_or_written_is_told_and_leaves_nothing() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let world = World::of(&[user("go"), user("on")]);
    let (log, options) = (world.log(), ExportOptions::default());
    let check = |result: Result<(), Error>, expected: &str| {
        let Err(Error::Io { action, .. }) = result else { panic!("{result:?}") };
        assert_eq!(action, expected);
    };
    check(html(&log, &options, &mut Full), "write");
    check(jsonl(&log, None, Time(0), &mut Full), "write");
    fs::write(&world.path, "cut by somebody else").unwrap();
    let target = world.folder.path().join("page.html");
    check(html_to_file(&log, &options, &target), "read");
    check(jsonl_to_file(&log, None, Time(0), &target), "read");
    assert_eq!(fs::read_dir(world.folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let world = World::of(&[user("go")]);
    let device = Path::new("/dev/null");
    html_to_file(&world.log(), &ExportOptions::default(), device).unwrap();
    assert!(fs::metadata(device).unwrap().file_type().is_char_device());
}

#[cfg(unix)]
#[test]
fn an_export_follows_the_umask_and_an_existing_file_keeps_its_mode() {
    // product.md P-14a
    use std::os::unix::fs::PermissionsExt;
    let world = World::of(&[user("go")]);
    let at = |name: &str| world.folder.path().join(name);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::write(at("plain"), "as any program makes it").unwrap();
    html_to_file(&world.log(), &ExportOptions::default(), &at("page.html")).unwrap();
    assert_eq!(mode(&at("page.html")), mode(&at("plain")));
    fs::set_permissions(at("page.html"), fs::Permissions::from_mode(0o640)).unwrap();
    let link = at("link.html");
    std::os::unix::fs::symlink(at("page.html"), &link).unwrap();
    html_to_file(&world.log(), &ExportOptions::default(), &link).unwrap();
    assert_eq!(mode(&at("page.html")), 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn children_of_a_task_call_stand_by_themselves() {
    // task.md OBS-5, DELIV-2; host.md 8.15: no envelope shows
    let call = json!({"type": "toolCall", "id": "t", "name": "task", "arguments":
        {"context": "c", "tasks": [{"name": "Ann", "task": "a"}, {"name": "Bob", "task": "b"}]}});
    let records = json!({"results": [
        {"id": "Ann", "agent": "scout", "exitCode": 0, "aborted": false, "durationMs": 12_000,
            "requests": 3, "output": "<b>found</b>", "outputPath": "/s/X/Ann.md"},
        {"id": "Bob", "agent": "task", "exitCode": 1, "aborted": true, "output": "",
            "abortReason": "cancelled by the caller"},
    ]});
    let world = World::of(&[
        user("go"),
        answer(json!([call])),
        result("t", "task", "<task-result id=\"Ann\">ENVELOPE</task-result>", records),
    ]);
    let folder = world.path.with_extension("");
    fs::create_dir(&folder).unwrap();
    let parent = Some(world.path.to_str().unwrap());
    let said = answer(json!([{"type": "text", "text": "I am Ann"}]));
    fs::write(folder.join("Ann.jsonl"), session("a", parent, &[user("do a"), said])).unwrap();
    let without = world.page(&ExportOptions::default());
    assert!(!without.contains("I am Ann"));
    let page = world.page(&ExportOptions { children: true, leaf: None });
    check_markup(&page);
    for part in ["2 children", "&lt;b&gt;found", "completed", "3 requests", "/s/X/Ann.md"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("cancelled by the caller") && !page.contains("ENVELOPE"));
    // OBS-4: the transcript follows and is linked from the record.
    assert!(page.contains("I am Ann") && page.contains("<h2><bdi>Ann</bdi></h2>"));
    assert_eq!(page.matches(">Transcript of the subagent</a>").count(), 1);
}
