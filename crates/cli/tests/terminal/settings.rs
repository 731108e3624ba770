//! `/settings` in the real program (`host.md` 8.3).

use std::fs;

use crate::common::World;
use crate::common::server::Reply;
use crate::pty::Terminal;

// A change is in the person's file, beside what stood there, and counts without a
// new start; what the project sets stays.
#[test]
fn a_changed_setting_is_kept_and_counts_at_once() {
    let world = World::new(|_| Reply::text("unused"));
    world.project_file(".pi/settings.json", r#"{"treeFilterMode":"all"}"#);
    let mut terminal = Terminal::start(&world, 30, 120, &["--approve"]);
    terminal.wait_for("─ owner ─");
    terminal.send("/");
    terminal.wait_for("crew board, or act on a subagent");
    terminal.send("settings\r");
    terminal.wait_for("value and who set it");
    terminal.send("treeF");
    terminal.wait_for("this project's .pi/settings.json sets it");
    terminal.send("\r\x7f\x7f\x7f\x7f\x7fautoc");
    terminal.wait_for("rows of the completion list");
    terminal.send("\x1b[D");
    terminal.wait_for("4   yours");
    let text = fs::read_to_string(world.agent().join("settings.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "retry": {"maxRetries": 2, "baseDelayMs": 5},
        "defaultThinkingLevel": "off", "autocompleteMaxVisible": 4
    });
    assert_eq!(value, expected);
    terminal.send("\x1b");
    terminal.wait_for("read again: settings, models, keys");
    terminal.wait_for("─ owner ─");
    terminal.send("/");
    terminal.wait_for("copy the last reply");
    assert!(!terminal.screen().contains("crew board, or act"), "{}", terminal.screen());
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// host.md 1.3 `hideThinkingBlock`: it counts from the start.
#[test]
fn thoughts_are_folded_when_the_settings_say_so() {
    let check = |settings: &str, is_shown: bool| {
        let world =
            World::new(|_| Reply::thinking("one thought\nand its rest").and_text("the answer"));
        world.agent_file("settings.json", settings);
        let mut terminal = Terminal::start(&world, 30, 100, &[]);
        terminal.wait_for("─ owner ─");
        terminal.send("go\r");
        terminal.wait_for("the answer");
        terminal.rest_of_owner();
        assert_eq!(terminal.all().contains("and its rest"), is_shown, "{}", terminal.all());
        terminal.send("\x04");
        assert_eq!(terminal.code(), 0);
    };
    check("{}", true);
    check(r#"{"hideThinkingBlock":true}"#, false);
}
