//! A session file as the checks see it: lines whose bytes must stay, entries
//! that must form a chain (`host.md` 2).
//!
//! Must never repair what it reads; a fault of a file is a verdict.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::run::Outcome;

/// The content of a session file at one moment.
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    text: String,
    /// All lines, the header first.
    pub(crate) entries: Vec<Value>,
}

impl Log {
    /// Reads a file; errors on a line that is no JSON, a missing last line
    /// end, and an entry whose parent is not an earlier one.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read the session file: {error}"))?;
        Self::parse(path, text)
    }

    fn parse(path: &Path, text: String) -> Outcome<Self> {
        if !text.ends_with('\n') {
            return Err("the session file does not end with a line end".to_owned());
        }
        let mut entries = Vec::new();
        let mut known = BTreeSet::new();
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line)
                .map_err(|error| format!("not JSON ({error}): {line}"))?;
            if let Some(parent) = entry["parentId"].as_str()
                && !known.contains(parent)
            {
                return Err(format!("its parent is not an earlier entry: {line}"));
            }
            if !entries.is_empty() {
                let id = entry["id"].as_str().ok_or_else(|| format!("no id: {line}"))?;
                known.insert(id.to_owned());
            }
            entries.push(entry);
        }
        Ok(Self { path: path.to_path_buf(), text, entries })
    }

    /// Reads the file again; errors unless all of its earlier bytes are still
    /// there and at least one line was added.
    pub(crate) fn grown(&self) -> Outcome<Self> {
        let new = Self::read(&self.path)?;
        if !new.text.starts_with(&self.text) {
            return Err("earlier lines of the session file changed".to_owned());
        }
        if new.text.len() == self.text.len() {
            return Err("nothing was added to the session file".to_owned());
        }
        Ok(new)
    }

    /// Returns the entries of a type.
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.entries.iter().filter(|entry| entry["type"] == kind).collect()
    }

    /// Returns the messages of a role with the entries around them.
    pub(crate) fn of_role(&self, role: &str) -> Vec<&Value> {
        self.entries.iter().filter(|entry| entry["message"]["role"] == role).collect()
    }

    /// Returns the path as text for an argument.
    pub(crate) fn argument(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// Returns where two values differ first, with both, or nothing.
pub(crate) fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    if let (Some(a), Some(b)) = (ours.as_object(), theirs.as_object()) {
        let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        return keys.into_iter().find_map(|key| {
            let absent = Value::from("(absent)");
            let inner = difference(a.get(key).unwrap_or(&absent), b.get(key).unwrap_or(&absent))?;
            Some(format!(".{key}{inner}"))
        });
    }
    if let (Some(a), Some(b)) = (ours.as_array(), theirs.as_array())
        && a.len() == b.len()
    {
        return a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(index, (a, b))| difference(a, b).map(|inner| format!("[{index}]{inner}")));
    }
    let same = ours == theirs || (ours.is_number() && ours.as_f64() == theirs.as_f64());
    (!same).then(|| format!(":\n  crew {}\n  pi   {}", cut(ours), cut(theirs)))
}

fn cut(value: &Value) -> String {
    value.to_string().chars().take(SHOWN_CHARS_MAX).collect()
}

const SHOWN_CHARS_MAX: usize = 700;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expected: Result<usize, &str>) {
        match (Log::parse(Path::new("x"), text.to_owned()), expected) {
            (Ok(log), Ok(count)) => assert_eq!(log.entries.len(), count, "{text}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (Ok(_), Err(part)) => panic!("no error with {part}: {text}"),
            (Err(error), Ok(_)) => panic!("{error}: {text}"),
        }
    }

    #[test]
    fn a_chain_of_entries_is_read_and_a_broken_one_is_a_fault() {
        let head = "{\"type\":\"session\",\"id\":\"s\"}\n{\"id\":\"a\",\"parentId\":null}\n";
        check(head, Ok(2));
        check(&format!("{head}{{\"id\":\"b\",\"parentId\":\"a\"}}\n"), Ok(3));
        check(&format!("{head}{{\"id\":\"b\",\"parentId\":\"s\"}}\n"), Err("earlier"));
        check(&format!("{head}{{\"parentId\":\"a\"}}\n"), Err("no id"));
        check(&format!("{head}{{\"id\":\"b\"}}"), Err("line end"));
        check(&format!("{head}nonsense\n"), Err("not JSON"));
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        let base = json!({"a": [1, {"b": "x"}], "n": 0});
        assert_eq!(difference(&base, &json!({"a": [1, {"b": "x"}], "n": 0.0})), None);
        let found = difference(&base, &json!({"a": [1, {"b": "y"}], "n": 0})).unwrap();
        assert!(found.starts_with(".a[1].b:") && found.contains("\"y\""), "{found}");
        let found = difference(&base, &json!({"a": [1], "n": 0})).unwrap();
        assert!(found.starts_with(".a:"), "{found}");
        let found = difference(&base, &json!({"a": [1, {"b": "x"}]})).unwrap();
        assert!(found.contains("(absent)"), "{found}");
    }
}
