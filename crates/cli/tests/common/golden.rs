//! Golden transcripts: what differs from run to run is replaced, the rest is
//! compared with a file.

use std::path::PathBuf;

use serde_json::{Value, json};

/// Replaces what differs from run to run.
pub(crate) fn normal(mut event: Value, project: &str, names: &mut Names) -> Value {
    walk(&mut event, project, names);
    event
}

/// Ids in the order of their first appearance.
#[derive(Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    fn of(&mut self, id: &str) -> String {
        let at = self.0.iter().position(|known| known == id).unwrap_or_else(|| {
            self.0.push(id.to_owned());
            self.0.len() - 1
        });
        format!("<id {}>", at + 1)
    }
}

const IDS: [&str; 10] = [
    "id",
    "parentId",
    "ownerId",
    "sessionId",
    "subagentId",
    "subagent_id",
    "toolCallId",
    "targetId",
    "entryId",
    "leafId",
];

fn walk(value: &mut Value, project: &str, names: &mut Names) {
    if let Some(items) = value.as_array_mut() {
        items.iter_mut().for_each(|item| walk(item, project, names));
    }
    let Some(object) = value.as_object_mut() else {
        if let Some(text) = value.as_str() {
            *value = json!(replace_ids(&text.replace(project, "<project>"), names));
        }
        return;
    };
    for (key, value) in object.iter_mut() {
        match key.as_str() {
            "timestamp" => *value = json!("<time>"),
            "durationMs" | "workedMs" => *value = json!("<ms>"),
            // The texts of the prompt are other crates' matter.
            "sections" | "toolsAdded" => *value = json!("<prompt>"),
            key if IDS.contains(&key) && value.is_string() => {
                *value = json!(names.of(value.as_str().unwrap()));
            }
            _ => walk(value, project, names),
        }
    }
}

/// Ids of subagents also stand inside texts.
fn replace_ids(text: &str, names: &mut Names) -> String {
    let mut replaced = text.to_owned();
    while let Some(at) = replaced.find("scout-") {
        let end = replaced[at + 6..].find(|c: char| !c.is_ascii_hexdigit());
        let end = end.map_or(replaced.len(), |end| at + 6 + end);
        let name = names.of(&replaced[at..end]);
        replaced.replace_range(at..end, &name);
    }
    replaced
}

/// Compares a text with a golden file, line by line; with `CREW_BLESS` set the
/// file is written.
pub(crate) fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("CREW_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (got, wanted)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, wanted, "line {} of {}", line + 1, path.display());
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{}", path.display());
}
