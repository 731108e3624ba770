//! What is written for a child: names and contents as data (ART-1 to ART-7).
//!
//! Owns the decision what stands in which file. Must never write: the store
//! performs a [`Write`] (staged beside the target, checked, renamed; ART-3)
//! and reports what came of it.

use crate::finalise::{Final, pretty};

/// The files of one child's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The artifact directory.
    pub folder: String,
    /// Name of the text file in it.
    pub text_name: String,
    /// The whole finalised text (ART-2).
    pub text: String,
    /// Name of the sidecar.
    pub data_name: String,
    /// What becomes of the sidecar once the text is written.
    pub sidecar: Sidecar,
}

/// What becomes of the sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sidecar {
    /// It gets this text; if that fails, an old one is removed (ART-4, ART-5).
    Write(String),
    /// An old one is removed (ART-5).
    Remove,
}

/// Size of an artifact (1.2 `outputMeta`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Lines.
    pub lines: usize,
    /// Unicode scalar values (OP-5).
    pub chars: usize,
    /// UTF-8.
    pub bytes: usize,
}

impl Meta {
    /// Measures a text.
    pub fn of(text: &str) -> Meta {
        Meta { lines: text.lines().count(), chars: text.chars().count(), bytes: text.len() }
    }
}

/// The artifact directory of a session: its file without `.jsonl`
/// (TASK-SPAWN-18, OBS-4).
pub fn folder_of(session_file: &str) -> String {
    session_file.strip_suffix(".jsonl").unwrap_or(session_file).to_owned()
}

/// Transcript of a child.
pub fn transcript(folder: &str, id: &str) -> String {
    format!("{folder}/{id}.jsonl")
}

/// The files for a finished child.
pub fn write(folder: &str, id: &str, result: &Final) -> Write {
    let data = result.structured.as_ref().and_then(|structured| structured.data.as_ref());
    Write {
        folder: folder.to_owned(),
        text_name: format!("{id}.md"),
        text: result.output.clone(),
        data_name: format!("{id}.json"),
        sidecar: data.map_or(Sidecar::Remove, |data| Sidecar::Write(format!("{}\n", pretty(data)))),
    }
}

impl Write {
    /// Full path of the text file.
    pub fn path(&self) -> String {
        format!("{}/{}", self.folder, self.text_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finalise::{Structured, Verdict};
    use crew_cycle::schema::{SchemaMode, SchemaSource};
    use serde_json::{Value, json};

    fn result(data: Option<Value>) -> Final {
        let structured = Structured {
            source: SchemaSource::Caller,
            mode: SchemaMode::Permissive,
            verdict: Verdict::Invalid,
            data,
            error: None,
        };
        Final {
            exit: 0,
            stderr: String::new(),
            output: "text\n".into(),
            aborted: false,
            abort_reason: None,
            structured: Some(structured),
        }
    }

    // ART-2, ART-4, ART-5, OBS-4; task.md 12 row 69.
    #[test]
    fn the_sidecar_follows_the_presence_of_data() {
        let with = write("/s/X", "kid", &result(Some(json!({"list": [1]}))));
        assert_eq!(with.path(), "/s/X/kid.md");
        let text = "{\n  \"list\": [\n    1\n  ]\n}\n".to_owned();
        assert_eq!((with.text.as_str(), with.sidecar), ("text\n", Sidecar::Write(text)));
        assert_eq!(write("/s/X", "kid", &result(None)).sidecar, Sidecar::Remove);
        let null = write("/s/X", "kid", &result(Some(Value::Null)));
        assert_eq!(null.sidecar, Sidecar::Write("null\n".into()));
    }

    #[test]
    fn files_of_nested_children_lie_in_their_parents_folder() {
        let folder = folder_of("/s/X.jsonl");
        assert_eq!(folder, "/s/X");
        let nested = folder_of(&transcript(&folder, "A"));
        assert_eq!(transcript(&nested, "A.B"), "/s/X/A/A.B.jsonl");
    }
}
