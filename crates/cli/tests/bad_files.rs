//! Bad input in every file the product reads: a message that names the file
//! and the place, the run goes on, the file keeps its bytes (`host.md` 1.3.2,
//! 1.4.3, 1.5.2, 2.2.5, 5.3.2, 5.4.1, 5.6.2; `crew.md` CAT-9, CFG-8).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::client::Client;
use common::server::Reply;
use common::{SECRET, World};
use serde_json::json;

/// A model that shows what the owner's tools say about subagents.
fn world() -> World {
    World::new(|request| match request.has_results() {
        true => Reply::text("ok"),
        false => Reply::call("crew_list", json!({})),
    })
}

/// A file with a fault, and words that must be told together.
type Bad<'a> = (&'a str, &'a [u8], &'a [&'a str]);

/// Writes bad files and runs one prompt: the run ends well, each file is as it
/// was, and a line on standard error or of what the model was told has all the
/// words of a file.
#[track_caller]
fn check(files: &[Bad<'_>]) {
    let world = world();
    let path = |place: &str| match place.strip_prefix("agent/") {
        Some(name) => world.agent().join(name),
        None => world.project().join(place),
    };
    for (place, content, _) in files {
        fs::create_dir_all(path(place).parent().unwrap()).unwrap();
        fs::write(path(place), content).unwrap();
    }
    let run = world.print(&["--approve", "/go"]);
    run.is(0, "ok\n");
    let told: Vec<String> = world.server.requests().iter().map(|r| r.all_text()).collect();
    let told = format!("{}\n{}", run.err, told.join("\n").replace("},{", "},\n{"));
    for (place, content, words) in files {
        let known = told.lines().any(|line| words.iter().all(|word| line.contains(word)));
        let shown = String::from_utf8_lossy(content);
        assert!(known, "{place} {shown}: {words:?} stand together nowhere in {told}");
        assert_eq!(fs::read(path(place)).unwrap(), *content, "{place} keeps its bytes");
    }
    assert!(!run.err.contains(SECRET) && !run.err.contains("panicked"), "{}", run.err);
}

#[test]
fn settings_are_told_with_file_and_key() {
    let mut rows: Vec<(&[u8], &str)> = vec![
        (b"{ \"retry\": ", "settings.json"),
        (b"[1]", "settings.json"),
        (b"\xff\xfe{}", "settings.json"),
        (br#"{"steeringMode":"sometimes"}"#, "`steeringMode`"),
    ];
    rows.push((br#"{"retry":{"maxRetries":"many"}}"#, "`retry.maxRetries`"));
    for (content, word) in rows {
        check(&[
            ("agent/settings.json", content, &["agent/settings.json", word]),
            (".pi/settings.json", content, &[".pi/settings.json", word]),
        ]);
    }
}

#[test]
fn credentials_are_told_with_file_and_provider() {
    let check = |content: &[u8], word: &str| {
        check(&[("agent/auth.json", content, &["auth.json", word])]);
    };
    check(b"{\n \"openai\": sk-1 }", "line 2");
    check(
        br#"{"openai":{"type":"api_key","key":[1]},"google":{"type":"api_key","key":"k"}}"#,
        "openai",
    );
    check(br#"{"local":{"type":"?"}}"#, "local");
    check(b"\xff", "auth.json");
}

#[test]
fn decisions_about_trust_are_told_with_their_file() {
    // An option decides here; without it the run must not trust either.
    let broken = |content: &str| {
        let world = world();
        world.project_file(".pi/SYSTEM.md", "FOREIGN");
        world.agent_file("trust.json", content);
        let run = world.print(&["go"]);
        run.tells(&["trust.json"]);
        let told: String = world.server.requests().iter().map(|r| r.body.to_string()).collect();
        assert!(!told.contains("FOREIGN"), "an unreadable decision is no yes");
        assert_eq!(fs::read_to_string(world.agent().join("trust.json")).unwrap(), content);
    };
    broken("{");
    broken("[]");
    broken(r#"{"/":"yes"}"#);
}

#[test]
fn the_crew_configuration_is_told_with_file_and_agent() {
    let rows: [(&[u8], &str); 4] = [
        (b"{ broken", "pi-crew.json"),
        (b"[]", "pi-crew.json"),
        (br#"{"agents":{"scout":{"colour":"red"}}}"#, "colour"),
        (br#"{"agents":{"scout":7}}"#, "scout"),
    ];
    for (content, word) in rows {
        check(&[
            ("agent/pi-crew.json", content, &["agent/pi-crew.json", word]),
            (".pi/pi-crew.json", content, &[".pi/pi-crew.json", word]),
        ]);
    }
}

#[test]
fn definitions_are_told_with_file_and_field() {
    let rows: [(&str, &[u8], &str); 8] = [
        ("yaml", b"---\nname: [\n---\nx", "line"),
        ("description", b"---\nname: a\n---\nx", "description"),
        ("nameless", b"---\ndescription: d\n---\nx", "name"),
        ("plain", b"no front matter", "plain.md"),
        ("bytes", b"---\nname: \xff\n---\n", "UTF-8"),
        ("level", b"---\nname: a\ndescription: d\nthinking: loud\n---\n", "thinking"),
        ("tools", b"---\nname: b\ndescription: d\ntools: [1, {a: b}]\n---\n", "tools"),
        ("model", b"---\nname: c\ndescription: d\nmodel: noslash\n---\n", "noslash"),
    ];
    for folder in ["agent/agents", ".pi/agents"] {
        let names = rows.map(|(name, _, _)| format!("{folder}/{name}.md"));
        let words = rows.map(|(name, _, word)| [format!("{name}.md"), word.to_owned()]);
        let words = words.each_ref().map(|pair| pair.each_ref().map(String::as_str));
        let files: Vec<Bad<'_>> =
            (0..rows.len()).map(|at| (names[at].as_str(), rows[at].1, &words[at][..])).collect();
        check(&files);
    }
}

#[test]
fn skills_and_templates_are_told_with_their_file() {
    let yaml = b"---\nname: [\n---\n";
    let silent = b"---\nname: silent\n---\n";
    let bytes = b"---\nname: bytes\ndescription: \xff\n---\n";
    let name = b"---\nname: Bad_Name\ndescription: d\n---\n";
    check(&[
        ("agent/skills/yaml/SKILL.md", yaml, &["skills/yaml/SKILL.md", "line"]),
        ("agent/skills/silent/SKILL.md", silent, &["skills/silent/SKILL.md", "description"]),
        ("agent/skills/bytes/SKILL.md", bytes, &["skills/bytes/SKILL.md", "UTF-8"]),
        (".pi/skills/name/SKILL.md", name, &[".pi/skills/name/SKILL.md", "Bad_Name"]),
        (".pi/skills/yaml2/SKILL.md", yaml, &[".pi/skills/yaml2/SKILL.md", "line"]),
        ("agent/prompts/yaml.md", b"---\na: [\n---\n", &["agent/prompts/yaml.md", "line"]),
        (".pi/prompts/yaml.md", b"---\na: [\n---\n", &[".pi/prompts/yaml.md", "line"]),
        (".pi/prompts/bytes.md", b"\xff", &[".pi/prompts/bytes.md", "UTF-8"]),
    ]);
}

#[test]
fn models_are_told_with_file_and_path_and_others_stay_usable() {
    // The file is disabled as a whole; models that need none go on.
    let broken = |content: &str, words: &[&str]| {
        let world = world();
        world.agent_file("models.json", content);
        let run = world.finish(&mut world.command(&["--list-models"]));
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.contains("scripted") && !run.out.contains("local"), "{}", run.out);
        run.tells(words);
        assert_eq!(fs::read_to_string(world.agent().join("models.json")).unwrap(), content);
    };
    broken("{ broken", &["models.json"]);
    broken("[]", &["models.json"]);
    broken(r#"{"providers":[]}"#, &["models.json", "providers"]);
    broken(r#"{"providers":{"x":{"models":[{"id":7}]}}}"#, &["models.json", "id"]);
    broken(r#"{"providers":{"x":{"baseUrl":""}}}"#, &["models.json", "baseUrl"]);
}

/// A session file whose lines behind the header are these.
fn stored(world: &World, lines: &[&str]) -> PathBuf {
    let header = json!({"type": "session", "version": 3, "id": "odd",
        "timestamp": "2026-11-30T13:43:03.766Z", "cwd": world.project()});
    let text = format!("{header}\n{}\n", lines.join("\n"));
    world.project_file("odd.jsonl", text)
}

#[test]
fn damaged_lines_of_a_session_are_told_by_number_and_the_rest_is_used() {
    let good = |id: &str, parent: &str, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t",
            "message": {"role": "user", "content": text, "timestamp": 1}})
        .to_string()
    };
    let (first, second) = (good("a", "none", "FIRST"), good("b", "a", "SECOND"));
    for (bad, word) in [
        ("{ torn", "unreadable"),
        ("[1]", "unreadable"),
        (r#"{"type":7}"#, "type or id"),
        (r#"{"type":"session","version":3,"id":"x"}"#, "second header"),
    ] {
        let world = World::new(|_| Reply::text("ok"));
        let path = stored(&world, &[&first, bad, &second]);
        let before = fs::read_to_string(&path).unwrap();
        let run = world.print(&["--session", "./odd.jsonl", "on"]);
        run.is(0, "ok\n");
        run.tells(&["odd.jsonl", "line 3", word]);
        let sent = world.server.requests()[0].all_text();
        assert!(sent.contains("FIRST") && sent.contains("SECOND"), "{bad}: {sent}");
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(&before), "no line is rewritten: {bad}");
    }
}

#[test]
fn fields_of_every_command_are_judged_by_name_and_the_session_goes_on() {
    // host.md 7.2.2, 7.3; C130: each line with a wrong, a missing or a senseless
    // field names it, and the next command works.
    let world = World::new(|_| Reply::text("ok"));
    let mut client = Client::start(&world, &[]);
    client.prompt("begin");
    let before = client.ask("get_entries", json!({}));
    for (kind, fields, word) in [
        ("prompt", json!({}), "`message`"),
        ("prompt", json!({"message": ["x"]}), "`message`"),
        ("prompt", json!({"message": "x", "images": "y"}), "`images`"),
        ("prompt", json!({"message": "x", "images": [7]}), "images[0]"),
        ("prompt", json!({"message": "x", "streamingBehavior": 7}), "`streamingBehavior`"),
        ("steer", json!({"message": " "}), "`message`"),
        ("follow_up", json!({"text": "x"}), "`message`"),
        ("compact", json!({"customInstructions": 7}), "`customInstructions`"),
        ("bash", json!({"command": 7}), "`command`"),
        ("bash", json!({"command": "true", "excludeFromContext": "no"}), "`excludeFromContext`"),
        ("export_html", json!({"outputPath": 7}), "`outputPath`"),
        ("export_html", json!({"outputPath": "/no/such/folder/x.html"}), "/no/such/folder"),
        ("get_entries", json!({"since": 7}), "`since`"),
        ("get_entries", json!({"since": "nobody"}), "nobody"),
        ("set_model", json!({"provider": "local"}), "`modelId`"),
        ("set_model", json!({"provider": "local", "modelId": "m9"}), "local/m9"),
        ("set_thinking_level", json!({"level": 3}), "`level`"),
        ("set_steering_mode", json!({"mode": "some"}), "`mode`"),
        ("set_follow_up_mode", json!({}), "`mode`"),
        ("set_auto_compaction", json!({"enabled": "yes"}), "`enabled`"),
        ("set_auto_retry", json!({}), "`enabled`"),
        ("set_session_name", json!({}), "`name`"),
        ("set_session_name", json!({"name": " "}), "empty"),
        ("crew_abort", json!({}), "`subagentId`"),
        ("crew_abort", json!({"subagentId": "scout-none"}), "scout-none"),
        ("crew_respond", json!({"subagentId": "scout-none"}), "`message`"),
        ("crew_respond", json!({"subagentId": "scout-none", "message": "m"}), "scout-none"),
        ("crew_done", json!({"subagentId": "scout-none"}), "scout-none"),
        ("new_session", json!({"parentSession": 7}), "`parentSession`"),
        ("switch_session", json!({"sessionPath": " "}), "`sessionPath`"),
        ("fork", json!({}), "`entryId`"),
        ("fork", json!({"entryId": "nobody"}), "entry"),
        ("no_such_command", json!({}), "no_such_command"),
    ] {
        let error = client.refused(kind, fields.clone());
        assert!(error.contains(word), "{kind} {fields}: {error}");
    }
    assert_eq!(client.ask("get_entries", json!({})), before, "nothing came of any of them");
    client.prompt("still there");
    assert_eq!(world.server.requests().len(), 2);
    assert_eq!(client.close(), Some(0));
}
