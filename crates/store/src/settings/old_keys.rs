//! Keys that had other names once, rewritten in memory (`host.md` 1.3.6).

use serde_json::{Map, Value};

/// Gives old keys their new names; a new key that is set wins.
pub(crate) fn rename(settings: &mut Map<String, Value>) {
    if let Some(mode) = settings.remove("queueMode") {
        settings.entry("steeringMode").or_insert(mode);
    }
    if let Some(on) = settings.get("websockets").and_then(Value::as_bool) {
        settings.remove("websockets");
        let word = if on { "websocket" } else { "sse" };
        settings.entry("transport").or_insert(word.into());
    }
    if let Some(Value::Object(skills)) = settings.get_mut("skills") {
        let commands = skills.remove("enableSkillCommands");
        let folders = skills.remove("customDirectories");
        match folders {
            Some(folders) => settings.insert("skills".into(), folders),
            None => settings.remove("skills"),
        };
        if let Some(commands) = commands {
            settings.entry("enableSkillCommands").or_insert(commands);
        }
    }
    if let Some(Value::Object(retry)) = settings.get_mut("retry")
        && let Some(delay) = retry.remove("maxDelayMs")
    {
        let provider = retry.entry("provider").or_insert_with(|| Value::Object(Map::new()));
        if let Some(provider) = provider.as_object_mut() {
            provider.entry("maxRetryDelayMs").or_insert(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_keys_move_and_new_ones_win() {
        // host.md 1.3.6
        let check = |old: &str, new: &str| {
            let mut settings = serde_json::from_str(old).unwrap();
            rename(&mut settings);
            assert_eq!(serde_json::to_string(&settings).unwrap(), new);
        };
        check(r#"{"queueMode":"all"}"#, r#"{"steeringMode":"all"}"#);
        check(
            r#"{"queueMode":"all","steeringMode":"one-at-a-time"}"#,
            r#"{"steeringMode":"one-at-a-time"}"#,
        );
        check(r#"{"websockets":true}"#, r#"{"transport":"websocket"}"#);
        check(r#"{"websockets":false}"#, r#"{"transport":"sse"}"#);
        check(
            r#"{"skills":{"enableSkillCommands":false,"customDirectories":["a"]}}"#,
            r#"{"skills":["a"],"enableSkillCommands":false}"#,
        );
        check(r#"{"skills":["a"]}"#, r#"{"skills":["a"]}"#);
        check(
            r#"{"retry":{"maxDelayMs":5,"enabled":true}}"#,
            r#"{"retry":{"enabled":true,"provider":{"maxRetryDelayMs":5}}}"#,
        );
    }
}
