//! What a tool call works on, in one redacted line.
//!
//! Owns the table of `crew.md` 13.3 (ACT-14 to ACT-19). Must never show a
//! value of a sensitive key or an unredacted text. Read `shell` for commands.

use crew_base::json::Raw;
use serde_json::{Map, Value};

use super::redaction::{cap, is_sensitive_key, redact, with_tilde};
use super::shell;

/// Shown name and target of a call, each one clean line of bounded length
/// (`crew.md` 13.3, ACT-15, WID-8). Arguments of any shape are taken; `home`
/// is the user's home directory.
pub fn target(tool: &str, arguments: &Raw, home: Option<&str>) -> (String, String) {
    let value = arguments.value();
    let empty = Map::new();
    let arguments = value.as_object().unwrap_or(&empty);
    let tool_name = tool.to_ascii_lowercase();
    let (name, target) = match tool_name.as_str() {
        "bash" => ("$", command_target(arguments, home)),
        "read" => read_target(tool, arguments, home),
        "grep" => (tool, grep_target(arguments, home)),
        _ => (tool, general_target(arguments, home)),
    };
    let name = crew_base::text::sanitise_inline(name);
    (cap(&name), cap(target.trim()))
}

fn command_target(arguments: &Map<String, Value>, home: Option<&str>) -> String {
    let command = arguments.get("command").and_then(Value::as_str);
    command.map_or_else(String::new, |command| shell::summarise(command, home))
}

fn read_target<'a>(
    tool: &'a str,
    arguments: &Map<String, Value>,
    home: Option<&str>,
) -> (&'a str, String) {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let Some(path) = text("path").or_else(|| text("file_path")) else {
        return (tool, String::new());
    };
    if let Some(folder) = skill_folder(path) {
        return ("skill", redact(folder));
    }
    let positive = |key: &str| arguments.get(key).and_then(whole).filter(|n| *n > 0);
    let mut target = redact(&with_tilde(path, home));
    if let Some(offset) = positive("offset") {
        target.push_str(&format!(":{offset}"));
        if let Some(limit) = positive("limit") {
            target.push_str(&format!("-{}", offset.saturating_add(limit - 1)));
        }
    }
    (tool, target)
}

/// Name of the directory that holds a `SKILL.md`, when the path tells it.
fn skill_folder(path: &str) -> Option<&str> {
    let mut parts = path.split(['/', '\\']).filter(|part| !part.is_empty());
    let file = parts.next_back()?;
    let folder = parts.next_back()?;
    (file == "SKILL.md" && !matches!(folder, "." | ".." | "~")).then_some(folder)
}

/// A whole number of JSON, fractions floored.
fn whole(value: &Value) -> Option<u64> {
    // A cast of a float saturates; below zero and not-a-number become zero.
    value.as_u64().or_else(|| value.as_f64().map(|n| n as u64))
}

fn grep_target(arguments: &Map<String, Value>, home: Option<&str>) -> String {
    let shown = |key: &str| {
        let text = arguments.get(key)?.as_str()?;
        Some(redact(&with_tilde(text, home))).filter(|text| !text.is_empty())
    };
    let Some(pattern) = arguments.get("pattern").and_then(Value::as_str) else {
        return String::new();
    };
    let path = shown("path").unwrap_or_else(|| ".".to_owned());
    let glob = shown("glob").map_or_else(String::new, |glob| format!(" ({glob})"));
    format!("/{}/ in {path}{glob}", redact(pattern))
}

/// `crew.md` ACT-16.
fn general_target(arguments: &Map<String, Value>, home: Option<&str>) -> String {
    let plain = |key: &str| key.to_lowercase().replace(['_', '-'], "");
    let known = TARGET_KEYS.iter().find_map(|wanted| {
        let mut named = arguments.iter().filter(|(key, _)| plain(key) == *wanted);
        named.find_map(|(_, value)| shown_value(value, home))
    });
    known
        .or_else(|| {
            let mut open = arguments.iter().filter(|(key, _)| !is_sensitive_key(key));
            open.find_map(|(_, value)| shown_value(value, home))
        })
        .unwrap_or_default()
}

/// The text a value yields, never blank; objects and null yield none.
fn shown_value(value: &Value, home: Option<&str>) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(redact(&with_tilde(text, home))).filter(|text| !text.is_empty());
    }
    // The depth of arrays is bounded by the parser.
    if let Some(items) = value.as_array() {
        return items.iter().find_map(|item| shown_value(item, home));
    }
    (value.is_number() || value.is_boolean()).then(|| value.to_string())
}

/// In this order (`crew.md` ACT-16).
const TARGET_KEYS: [&str; 9] =
    ["path", "file", "filepath", "command", "query", "url", "pattern", "prompt", "brief"];

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::limits::ACTIVITY_CHARS_MAX;
    use serde_json::json;

    fn check(tool: &str, arguments: Value, name: &str, expected: &str) {
        let shown = target(tool, &Raw::of(&arguments), Some("/home/u"));
        assert_eq!(shown, (name.to_owned(), expected.to_owned()), "{arguments}");
    }

    // Rows 84 and 85: ACT-17, WID-8.
    #[test]
    fn bash_is_a_dollar_and_its_command() {
        let check = |arguments: Value, expected: &str| check("Bash", arguments, "$", expected);
        check(json!({"command": "API_TOKEN=x npm test && npm run lint"}), "npm test · 2 steps");
        check(json!({"command": "cd /home/u/src/app"}), "cd ~/src/app");
        check(json!({"timeout": 5}), "");
        check(json!({"command": ["ls"]}), "");
        check(json!("ls"), "");
    }

    // 13.3 `read`, ACT-14.
    #[test]
    fn a_read_shows_its_path_and_range() {
        let check = |arguments: Value, expected: &str| check("read", arguments, "read", expected);
        check(json!({"path": "/home/u/a.rs"}), "~/a.rs");
        check(json!({"file_path": "b.rs"}), "b.rs");
        check(json!({"path": 1, "file_path": "b.rs"}), "b.rs");
        check(json!({"path": "a", "offset": 120, "limit": 61}), "a:120-180");
        check(json!({"path": "a", "offset": 120}), "a:120");
        check(json!({"path": "a", "offset": 120, "limit": 0}), "a:120");
        check(json!({"path": "a", "offset": 0, "limit": 5}), "a");
        check(json!({"path": "a", "offset": -3, "limit": 5}), "a");
        check(json!({"path": "a", "limit": 5}), "a");
        check(json!({"path": "a", "offset": 2.0, "limit": 1}), "a:2-2");
        check(json!({"path": "a", "offset": "2"}), "a");
        check(
            json!({"path": "a", "offset": u64::MAX, "limit": u64::MAX}),
            "a:18446744073709551615-18446744073709551615",
        );
        check(json!({"path": "a\n\u{1b}[2Jb"}), "a b");
        check(json!({}), "");
    }

    // 13.3 `read` of a skill.
    #[test]
    fn the_reading_of_a_skill_shows_its_directory() {
        let skill = |path: &str, folder: &str| {
            check("read", json!({"path": path, "offset": 3}), "skill", folder);
        };
        skill("/home/u/skills/pdf/SKILL.md", "pdf");
        skill("pdf//SKILL.md", "pdf");
        skill("C:\\skills\\pdf\\SKILL.md", "pdf");
        for path in ["SKILL.md", "./SKILL.md", "a/skill.md", "a/XSKILL.md", "SKILL.md/a"] {
            check("read", json!({"path": path}), "read", path);
        }
    }

    // 13.3 `grep`.
    #[test]
    fn a_grep_shows_pattern_place_and_glob() {
        let check = |arguments: Value, expected: &str| check("grep", arguments, "grep", expected);
        check(json!({"pattern": "x+"}), "/x+/ in .");
        check(json!({"pattern": "x", "path": "/home/u/p"}), "/x/ in ~/p");
        check(json!({"pattern": "x", "path": "", "glob": "*.rs"}), "/x/ in . (*.rs)");
        check(json!({"pattern": "Bearer abc", "path": "p"}), "/Bearer ***/ in p");
        check(json!({"path": "p"}), "");
    }

    // Rows 86 and 87: ACT-9, ACT-16, ACT-19.
    #[test]
    fn other_tools_show_the_first_telling_argument() {
        let check = |arguments: Value, expected: &str| check("mine", arguments, "mine", expected);
        check(json!({"apiKey": "k"}), "");
        check(json!({"x": "one", "url": "https://u:p@h/a?b", "Brief": "b"}), "https://h/a");
        check(json!({"brief": "b", "prompt": "p", "pattern": "t", "url": "u"}), "u");
        check(json!({"command": "c d; e", "file-path": "f"}), "f");
        check(json!({"FILE_PATH": "f", "file": "", "path": "  "}), "f");
        check(json!({"path": {"x": 1}, "file": null, "note": "n"}), "n");
        check(json!({"token": "t", "max": 5}), "5");
        check(json!({"on": false}), "false");
        check(json!({"list": [{}, "", [null, "deep"], "late"]}), "deep");
        check(json!({"o": {"path": "p"}}), "");
        check(json!({"q": "a\u{1b}[31m\n\tb --token abc"}), "a b --token=***");
        check(json!({"path": "/home/u/a/b"}), "~/a/b");
        check(json!({}), "");
        check(json!("text"), "");
        check(json!(["text"]), "");
        check(json!(null), "");
    }

    // ACT-8, ACT-15.
    #[test]
    fn names_and_targets_are_one_bounded_line() {
        check("a\u{1b}[1m\nb", json!({}), "a b", "");
        let long = "ab\n".repeat(400_000);
        for (tool, key) in
            [("bash", "command"), ("read", "path"), ("grep", "pattern"), (&*long, "q")]
        {
            let arguments = Raw::of(&json!({ key: long }));
            let (name, target) = target(tool, &arguments, Some("/home/u"));
            assert!(target.chars().count() <= ACTIVITY_CHARS_MAX);
            assert!(name.chars().count() <= ACTIVITY_CHARS_MAX);
            assert!(!format!("{name}{target}").contains(char::is_control));
        }
    }

    #[test]
    fn deeply_nested_arguments_do_no_harm() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        let deep = Raw::parse(&deep).unwrap();
        assert_eq!(target("mine", &deep, None), ("mine".to_owned(), String::new()));
    }
}
