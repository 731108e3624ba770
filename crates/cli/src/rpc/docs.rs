//! Keeps `docs/rpc.md` in step: what it sends is understood, what it shows is
//! well formed, no command is missing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::request::{Command, parse};

const DOCUMENT: &str = include_str!("../../../../docs/rpc.md");

/// Lines of all blocks of one kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let open = format!("```json {kind}");
    let mut inside = false;
    let mut lines = Vec::new();
    for line in DOCUMENT.lines() {
        match line {
            "```" => inside = false,
            line if line == open => inside = true,
            line if inside => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// All commands of `host.md` 7.3, and those of the crew.
const COMMANDS: [&str; 41] = [
    "prompt",
    "steer",
    "follow_up",
    "abort",
    "clear_queue",
    "new_session",
    "get_state",
    "get_messages",
    "set_model",
    "cycle_model",
    "get_available_models",
    "set_thinking_level",
    "cycle_thinking_level",
    "get_available_thinking_levels",
    "set_steering_mode",
    "set_follow_up_mode",
    "compact",
    "set_auto_compaction",
    "set_auto_retry",
    "abort_retry",
    "bash",
    "abort_bash",
    "get_session_stats",
    "export_html",
    "switch_session",
    "fork",
    "clone",
    "get_fork_messages",
    "get_entries",
    "get_tree",
    "get_last_assistant_text",
    "set_session_name",
    "get_commands",
    "extension_ui_response",
    "crew_navigate",
    "crew_set_label",
    "crew_list_open",
    "crew_respond",
    "crew_done",
    "crew_abort",
    "zzz",
];

#[test]
fn every_command_is_understood_and_shown_in_the_document() {
    let sent = blocks("send");
    let mut kinds = BTreeSet::new();
    for line in sent {
        let request = parse(line).unwrap_or_else(|refused| panic!("{line}: {}", refused.error));
        kinds.insert(request.ticket.kind);
    }
    for kind in COMMANDS {
        let unknown = parse(&format!("{{\"type\":\"{kind}\"}}"))
            .is_err_and(|refused| refused.error.starts_with("Unknown command"));
        assert_eq!(unknown, kind == "zzz", "{kind}");
        assert_eq!(kinds.contains(kind), kind != "zzz", "no example of {kind}");
    }
    assert_eq!(kinds.len(), COMMANDS.len() - 1);
    let answered = parse(r#"{"type":"extension_ui_response"}"#).map(|request| request.command);
    let expected = Command::UiResponse { id: None, confirmed: false };
    assert_eq!(answered.ok(), Some(expected));
}

#[test]
fn every_line_that_is_received_is_an_event_or_a_response() {
    let received = blocks("receive");
    assert!(received.len() > 20, "{}", received.len());
    for line in received {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let kind = value["type"].as_str().unwrap_or_else(|| panic!("{line}"));
        let is_response = kind == "response";
        assert_eq!(value["success"].is_boolean(), is_response, "{line}");
        assert_eq!(value["command"].is_string(), is_response, "{line}");
        assert!(DOCUMENT.contains(&format!("`{kind}`")) || is_response, "{kind} is not listed");
    }
}
