//! Sessions in the interactive mode: reading files again, questions at the
//! start, exports, names.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::server::{Gate, Reply, Request};
use crate::common::{World, until};
use crate::pty::{Terminal, spawns};
use serde_json::json;

fn echo() -> World {
    World::new(|request| Reply::text(&format!("seen: {}", request.tail())))
}

/// A question can be read before it takes an answer (TERM-18).
fn read_first() {
    std::thread::sleep(Duration::from_millis(400));
}

/// A stored session of another folder, which is returned too.
fn session_elsewhere(world: &World) -> (PathBuf, PathBuf) {
    let other = world.at("other");
    fs::create_dir(&other).unwrap();
    let args = ["--model", "local/m1", "-p", "the first words"];
    let run = world.finish(world.command(&args).current_dir(&other));
    run.is(0, "seen: the first words\n");
    (world.session_files().remove(0), other)
}

// host.md 8.23, crew.md RUN-4, OWN-3, row 81: settings, models and context
// files count again; subagents go on and their results reach the owner.
#[test]
fn reload_reads_everything_and_leaves_the_crew_at_work() {
    let gate = Gate::default();
    let held = gate.clone();
    let world =
        World::new(move |request: &Request| match (request.is_child(), request.has_results()) {
            (true, _) => Reply::report("found it").behind(&held),
            (false, false) => spawns(3),
            (false, true) => Reply::text(&format!("heard {}", request.answers())),
        });
    let mut terminal = Terminal::start(&world, 40, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("heard 1");
    terminal.wait_for("crew 3");
    world.project_file("AGENTS.md", "Answer in rhyme.");
    world.settings(&json!({"crew": {"icons": "symbols"}}));
    let models = fs::read_to_string(world.agent().join("models.json")).unwrap();
    world.agent_file("models.json", &models.replace("\"m2\"", "\"m3\""));
    terminal.send("/reload\r");
    terminal.wait_for("read again: settings, models, keys");
    terminal.wait_for("crew 3");
    terminal.send("/model local/m3\r");
    terminal.wait_for("model: local/m3");
    terminal.send("more\r");
    terminal.wait_for("heard 2");
    let last = world.server.requests().pop().unwrap();
    assert!(last.body["system"].to_string().contains("Answer in rhyme."), "{}", last.body);
    assert_eq!(last.body["model"], "m3");
    gate.open();
    terminal.wait_until("three cards in the new icons", |terminal| {
        terminal.all().matches("✓ scout-").count() >= 3
    });
    assert_eq!(terminal.all().matches("You: go").count(), 1, "nothing is printed twice");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    let owners = world.session_files();
    assert_eq!(
        owners.iter().filter(|path| !crate::common::is_child(path)).count(),
        1,
        "{owners:?}"
    );
}

// product.md P-14d, row 81: what the project brings since the start is asked
// about, and not used before the answer.
#[test]
fn reload_asks_about_what_the_project_brings_since() {
    let world = echo();
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    world.project_file(".pi/settings.json", r#"{"shellCommandPrefix":"echo prefixed;"}"#);
    terminal.wait_for("0%/128k");
    terminal.send("!echo one\r");
    terminal.wait_for("one");
    terminal.rest();
    assert!(!terminal.all().contains("prefixed"));
    terminal.send("/reload\r");
    terminal.wait_for("This folder brings its own settings");
    terminal.wait_for("1 key: shellCommandPrefix");
    read_first();
    terminal.send("2");
    terminal.wait_for("› 2  Only this time");
    terminal.send("\r");
    terminal.wait_for("read again:");
    terminal.send("!echo two\r");
    terminal.wait_for("prefixed");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    assert!(!world.agent().join("trust.json").exists(), "only this time is kept nowhere");
}

// host.md 8.23: not while the owner runs.
#[test]
fn reload_waits_for_an_idle_owner() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("over").behind(&held));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("waits for the model");
    terminal.send("/reload\r");
    terminal.wait_for("/reload has to wait until the owner is idle");
    gate.open();
    terminal.wait_for("over");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-36, host.md 6.3.2: a session of another folder is forked into this one,
// or left alone.
#[test]
fn a_session_of_another_folder_is_forked_only_when_that_is_chosen() {
    let world = echo();
    let (file, _) = session_elsewhere(&world);
    let id = crate::common::lines(&file)[0]["id"].as_str().unwrap().to_owned();
    let mut terminal = Terminal::start(&world, 30, 100, &["--session", &id]);
    terminal.wait_for("This session belongs to ");
    terminal.wait_for("› 1  Leave");
    read_first();
    terminal.send("\r");
    assert_eq!(terminal.code(), 0);
    assert_eq!(world.session_files().len(), 1);
    let mut terminal = Terminal::start(&world, 30, 100, &["--session", &id]);
    terminal.wait_for("› 1  Leave");
    read_first();
    terminal.send("2");
    terminal.wait_for("› 2  Fork it into this folder");
    terminal.send("\r");
    terminal.wait_for("seen: the first words");
    terminal.send("more\r");
    terminal.wait_for("seen: more");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    let files = world.session_files();
    assert_eq!(files.len(), 2, "{files:?}");
    let copy = files.iter().find(|path| **path != file).unwrap();
    assert_eq!(crate::common::lines(copy)[0]["cwd"], json!(world.project()));
}

// TERM-36, host.md 2.3.3: a session whose folder is gone goes on here, which is
// not stored.
#[test]
fn a_session_whose_folder_is_gone_goes_on_here() {
    let world = echo();
    let (file, other) = session_elsewhere(&world);
    fs::remove_dir(&other).unwrap();
    let path = file.to_string_lossy().into_owned();
    let mut terminal = Terminal::start(&world, 30, 100, &["--session", &path]);
    terminal.wait_for("The folder of this session is no longer there");
    read_first();
    terminal.send("2\r");
    terminal.wait_for("seen: the first words");
    terminal.send("!pwd\r");
    terminal.wait_for("/project");
    terminal.send("more\r");
    terminal.wait_for("seen: more");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    assert_eq!(world.session_files(), std::slice::from_ref(&file));
    assert_eq!(crate::common::lines(&file)[0]["cwd"], json!(other));
    let mut terminal = Terminal::start(&world, 30, 100, &["--session", &path]);
    terminal.wait_for("› 1  Leave");
    read_first();
    terminal.send("\x1b");
    assert_eq!(terminal.code(), 0);
}

// TERM-36, host.md 12.8: a session that another process has open.
#[test]
fn a_session_in_use_is_offered_as_a_copy() {
    let world = echo();
    world.print(&["the first words"]).is(0, "seen: the first words\n");
    let mut first = Terminal::start(&world, 30, 100, &["-c"]);
    first.wait_for("seen: the first words");
    let mut second = Terminal::start(&world, 30, 100, &["-c"]);
    second.wait_for("Another crew process has this session open.");
    read_first();
    second.send("2\r");
    second.wait_for("seen: the first words");
    second.send("in the copy\r");
    second.wait_for("seen: in the copy");
    second.rest();
    second.send("\x04");
    assert_eq!(second.code(), 0);
    first.send("\x04");
    assert_eq!(first.code(), 0);
    assert_eq!(world.session_files().len(), 2);
}

// TERM-50, host.md 2.8.10: the form follows the name.
#[test]
fn exports_take_their_form_from_the_name() {
    let world = World::new(|request: &Request| match (request.is_child(), request.has_results()) {
        (true, _) => Reply::report("found **it**"),
        (false, false) => spawns(1),
        (false, true) => Reply::text("all is known"),
    });
    let mut terminal = Terminal::start(&world, 40, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("look around\r");
    terminal.wait_for("✅ scout-");
    terminal.rest();
    let read = |name: &str| fs::read_to_string(world.project().join(name)).unwrap_or_default();
    for name in ["page.html", "text.md", "branch.jsonl"] {
        terminal.send(&format!("/export {name}\r"));
        until(name, || !read(name).is_empty());
    }
    terminal.send("/export --crew whole.md\r");
    until("whole.md", || !read("whole.md").is_empty());
    terminal.send("/export notes.txt\r");
    terminal.wait_for("the name has to end in .html, .md or .jsonl");
    assert!(read("page.html").starts_with("<!"));
    assert!(read("text.md").contains("## You\n\nlook around\n"), "{}", read("text.md"));
    assert!(!read("text.md").contains("## Owner"));
    let whole = read("whole.md");
    assert!(whole.contains("\n## scout · Part 0: completed, $0.00\n\n### Owner\n"), "{whole}");
    let branch = read("branch.jsonl");
    let header: serde_json::Value = serde_json::from_str(branch.lines().next().unwrap()).unwrap();
    assert_eq!((&header["type"], header.get("parentSession")), (&json!("session"), None));
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// host.md 6.2: `--name` names a session that exists too.
#[test]
fn a_session_that_exists_takes_a_name() {
    let world = echo();
    world.print(&["the first words"]).is(0, "seen: the first words\n");
    let mut terminal = Terminal::start(&world, 30, 100, &["-c", "--name", "release notes"]);
    terminal.wait_for("• release notes");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// host.md 8.21: what is wrong with a template is told.
#[test]
fn a_broken_template_is_told_at_the_start() {
    let world = echo();
    fs::create_dir(world.agent().join("prompts")).unwrap();
    world.agent_file("prompts/broken.md", "---\ndescription: [unclosed\n---\nText\n");
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("prompts/broken.md");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-38: a notification of the desktop instead of the bell.
#[test]
fn attention_is_asked_for_in_the_form_of_the_setting() {
    let world = World::new(|_| Reply::text("done").after(Duration::from_millis(500)));
    world.settings(&json!({"crew": {"attention": ["idle"], "attentionForm": "desktop"}}));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("done");
    terminal.wait_until("a notification", |terminal| {
        terminal.bytes().contains("\x1b]9;crew: the owner is idle\x07")
    });
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-12, product.md P-12: the footer and /session say the same.
#[test]
fn the_footer_shows_what_the_session_holds() {
    let world = echo();
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    for number in 1..=3 {
        terminal.send(&format!("turn {number}\r"));
        terminal.wait_for(&format!("seen: turn {number}"));
    }
    // Ten in and five out for each answer.
    terminal.wait_for("↑30 ↓15");
    terminal.send("/session\r");
    terminal.wait_for("own ↑30 ↓15");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-26, TERM-34: the end of a long session is shown first, once, and the
// session goes on as a whole.
#[test]
fn the_end_of_a_long_session_is_shown_once() {
    const TURNS: usize = 1_500;
    let world = World::new(|request: &Request| {
        let text = request.all_text();
        let sees = ["turn 0. ", "turn 1499. "].iter().all(|turn| text.contains(turn));
        Reply::text(&format!("sees all: {sees}"))
    });
    let usage = json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0,
        "totalTokens": 2, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let mut text =
        json!({"type": "session", "version": 3, "id": "01a22cb1-dd55-7564-a692-da1488538842",
        "timestamp": "2026-11-30T13:43:03.766Z", "cwd": world.project()})
        .to_string();
    let filler = "words ".repeat(70);
    for turn in 0..2 * TURNS {
        let is_prompt = turn % 2 == 0;
        let said = format!("{} turn {}. {filler}", if is_prompt { "ask" } else { "say" }, turn / 2);
        let message = match is_prompt {
            true => json!({"role": "user", "content": said, "timestamp": 1}),
            false => json!({"role": "assistant", "content": [{"type": "text", "text": said}],
                "api": "anthropic-messages", "provider": "local", "model": "m1",
                "stopReason": "stop", "usage": usage, "timestamp": 1}),
        };
        let parent = (turn > 0).then(|| format!("{:08x}", turn - 1));
        let entry = json!({"type": "message", "id": format!("{turn:08x}"), "parentId": parent,
            "timestamp": "2026-11-30T13:43:03.766Z", "message": message});
        text.push_str(&format!("\n{entry}"));
    }
    text.push('\n');
    let file = world.project_file("long.jsonl", &text);
    let models = fs::read_to_string(world.agent().join("models.json")).unwrap();
    let larger = models.replace("\"id\":\"m1\"", "\"id\":\"m1\",\"contextWindow\":9000000");
    world.agent_file("models.json", &larger);
    let path = file.to_string_lossy().into_owned();
    let mut terminal = Terminal::start(&world, 40, 100, &["--session", &path]);
    terminal.wait_for("say turn 1499.");
    terminal.wait_for(" earlier messages · Ctrl+O");
    terminal.wait_for("/9M");
    terminal.rest();
    let all = terminal.all();
    assert_eq!(all.matches("say turn 1499.").count(), 1, "{all}");
    assert_eq!(all.matches(" earlier messages · Ctrl+O").count(), 1, "{all}");
    assert_eq!(all.matches("agents: ").count(), 1, "{all}");
    let shown = all.matches("ask turn ").count() + all.matches("say turn ").count();
    let told = format!("{} earlier messages", 2 * TURNS - shown);
    assert!(all.contains(&told), "{told}\n{all}");
    terminal.send("go on\r");
    terminal.wait_for("sees all: true");
    terminal.send("\x0f");
    terminal.wait_for("Esc back");
    terminal.send("/ask turn 0.\r");
    terminal.wait_for("ask turn 0.");
    terminal.send("\x1b");
    terminal.wait_for("─ owner ─");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}
