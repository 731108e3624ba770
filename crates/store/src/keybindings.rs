//! `keybindings.json`: action ids, each with the keys it has instead of its own
//! (`host.md` 8.7).
//!
//! Reads only: the file is the person's and is never written. What keys and ids
//! there are knows the terminal face, not this module.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crew_base::definition::Warning;
use crew_base::json;
use serde_json::{Map, Value};

use crate::files;

/// Bytes of the file that are read at most.
const BYTES_MAX: u64 = 1024 * 1024;

/// Where the file lies in an agent directory (`host.md` 1.1.3).
pub fn keybindings_path(agent_dir: &Path) -> PathBuf {
    agent_dir.join("keybindings.json")
}

/// Reads the lines of the file in its order: an id and its keys, none for one
/// that is unbound. A missing or blank file has no lines; one that does not
/// parse has none either and gives a warning, as does a line that is no key and
/// no list of keys.
pub fn read(path: &Path) -> (Vec<(String, Vec<String>)>, Vec<Warning>) {
    let warning = |message: String| Warning { path: path.to_string_lossy().into_owned(), message };
    let unread = |why: String| {
        let message = format!("{why}; the keys are those without the file");
        (Vec::new(), vec![warning(message)])
    };
    let mut bytes = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => return (Vec::new(), Vec::new()),
        Err(error) => return unread(format!("the keys cannot be read: {error}")),
        Ok(_) if bytes.len() as u64 > BYTES_MAX => {
            return unread(format!("the file is larger than {BYTES_MAX} bytes"));
        }
        Ok(_) => {}
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = files::without_bom(&text).trim();
    if text.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let values: Map<String, Value> = match json::from_text(text) {
        Ok(values) => values,
        Err(error) => return unread(format!("the keys do not parse ({error})")),
    };
    let mut lines = Vec::new();
    let mut warnings = Vec::new();
    for (id, value) in values {
        match keys(&value) {
            Some(keys) => lines.push((id, keys)),
            None => warnings.push(warning(format!("{id} is neither a key nor a list of keys"))),
        }
    }
    (lines, warnings)
}

fn keys(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(key) => Some(vec![key.clone()]),
        Value::Array(keys) => keys.iter().map(|key| key.as_str().map(str::to_owned)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
