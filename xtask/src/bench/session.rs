//! Long session files (`host.md` 2) for the resume rows.
//!
//! The files look like those of real work: many turns of a call, its result
//! and some prose.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Returns a session file of about `bytes` bytes whose working directory is
/// `cwd`. With `compacted` a checkpoint every two megabytes replaces what was
/// before it, as in a session that was really worked in; else the whole file
/// is context.
pub(crate) fn long_session(bytes: usize, cwd: &str, compacted: bool) -> String {
    let mut file = File::new(cwd);
    let mut checkpoint = 0;
    while file.text.len() < bytes {
        file.turn();
        if compacted && file.text.len() - checkpoint > CHECKPOINT_BYTES {
            file.checkpoint();
            checkpoint = file.text.len();
        }
    }
    file.text
}

struct File {
    text: String,
    entries: usize,
    turns: usize,
}

impl File {
    fn new(cwd: &str) -> Self {
        let header = json!({
            "type": "session", "version": 3, "id": "01a22cb1-dd55-7564-a692-da1488538842",
            "timestamp": TIMESTAMP, "cwd": cwd,
        });
        let mut file = Self { text: format!("{header}\n"), entries: 0, turns: 0 };
        file.entry(json!({"type": "model_change", "provider": "bench", "modelId": "m1"}));
        file.entry(json!({"type": "thinking_level_change", "thinkingLevel": "off"}));
        file
    }

    /// Appends an entry below the last one and returns its id.
    fn entry(&mut self, mut entry: Value) -> String {
        let id = format!("{:08x}", self.entries + 1);
        entry["id"] = json!(id);
        entry["parentId"] = match self.entries {
            0 => Value::Null,
            last => json!(format!("{last:08x}")),
        };
        entry["timestamp"] = json!(TIMESTAMP);
        self.entries += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{entry}");
        id
    }

    fn message(&mut self, message: Value) -> String {
        self.entry(json!({"type": "message", "message": message}))
    }

    /// Appends a prompt, a call, its result and an answer: about five
    /// kilobytes.
    fn turn(&mut self) {
        let call = format!("toolu_{}", self.turns);
        let prompt = json!([{"type": "text", "text": format!("Look at part {}.", self.turns)}]);
        self.message(json!({"role": "user", "content": prompt, "timestamp": MILLISECONDS}));
        let arguments = json!({"path": "notes.txt", "offset": self.turns});
        let content =
            json!([{"type": "toolCall", "id": call, "name": "read", "arguments": arguments}]);
        self.message(assistant(&content, "toolUse"));
        let output = json!([{"type": "text", "text": LINE.repeat(64)}]);
        self.message(json!({
            "role": "toolResult", "toolCallId": call, "toolName": "read", "content": output,
            "isError": false, "timestamp": MILLISECONDS,
        }));
        let content = json!([{"type": "text", "text": LINE.repeat(8)}]);
        self.message(assistant(&content, "stop"));
        self.turns += 1;
    }

    fn checkpoint(&mut self) {
        let last = format!("{:08x}", self.entries);
        self.entry(json!({
            "type": "compaction", "summary": LINE.repeat(20), "firstKeptEntryId": last,
            "tokensBefore": 500_000,
        }));
    }
}

fn assistant(content: &Value, stop: &str) -> Value {
    let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
    json!({
        "role": "assistant", "content": content, "api": "anthropic-messages", "provider": "bench",
        "model": "m1", "stopReason": stop, "timestamp": MILLISECONDS, "thinkingLevel": "off",
        "usage": {
            "input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
            "cost": cost,
        },
    })
}

const TIMESTAMP: &str = "2026-11-30T13:43:03.766Z";
const MILLISECONDS: u64 = 1_796_046_183_766;
const CHECKPOINT_BYTES: usize = 2_000_000;
/// One line of some tool's output, 64 bytes.
const LINE: &str = "pub fn name_of_something(argument: &Type) -> Result<Value, E> {\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<Value> {
        let lines = text.lines().skip(1);
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn entries_form_one_chain_and_the_size_is_as_asked() {
        let text = long_session(100_000, "/project", false);
        assert!((100_000..110_000).contains(&text.len()));
        let entries = entries(&text);
        assert!(entries[0]["parentId"].is_null());
        for pair in entries.windows(2) {
            assert_eq!(pair[1]["parentId"], pair[0]["id"]);
        }
    }

    #[test]
    fn a_checkpoint_keeps_an_entry_that_exists() {
        let text = long_session(2_100_000, "/project", true);
        let entries = entries(&text);
        let at = entries.iter().position(|entry| entry["type"] == "compaction");
        let at = at.unwrap();
        assert_eq!(entries[at]["firstKeptEntryId"], entries[at - 1]["id"]);
    }
}
