//! Brings files of versions 1 and 2 to version 3, once and in one step
//! (`host.md` 2.5).
//!
//! The only place that rewrites a session. Lines are edited as text, so opaque
//! fields keep theirs; lines that do not parse are kept as they are.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use crew_base::entry::SESSION_VERSION;
use crew_base::id::{Ids, TakenEntryIds};

use super::scan::{self, LineReader};
use crate::error::{Result, io_error};
use crate::{files, json_text};

/// Rewrites a file to the current version by a temporary file and a rename; the
/// mode is kept (`host.md` 2.5.4).
pub(crate) fn rewrite(path: &Path) -> Result<()> {
    let source = File::open(path).map_err(io_error("read", path))?;
    let mut reader = BufReader::new(source);
    files::replace_with(path, |target| {
        let mut writer = BufWriter::new(target);
        let mut migration = Migration::new();
        let mut lines = LineReader::new(&mut reader);
        while let Some(line) = lines.next()? {
            let (trimmed, _) = line.trimmed();
            if scan::peek(trimmed.bytes).is_none() {
                writer.write_all(line.bytes)?;
            } else {
                let text = String::from_utf8_lossy(trimmed.bytes);
                let migrated = migration.line(&text).map_err(io::Error::from)?;
                writer.write_all(migrated.as_bytes())?;
            }
            writer.write_all(b"\n")?;
        }
        writer.flush()
    })
    .map_err(io_error("write", path))
}

/// What must be known of the lines before.
struct Migration {
    version: u32,
    ids: Ids,
    taken: TakenEntryIds,
    /// Ids by place in the file's object list; the header is at 0.
    places: Vec<String>,
}

impl Migration {
    fn new() -> Migration {
        Migration {
            version: 0,
            ids: Ids::new(uuid::Uuid::new_v4().as_u64_pair().0),
            taken: TakenEntryIds::default(),
            places: Vec::new(),
        }
    }

    fn line(&mut self, text: &str) -> serde_json::Result<String> {
        if self.places.is_empty() {
            self.version = scan::header(text.as_bytes()).map_or(1, |(header, _)| header.version);
            self.places.push(String::new());
            return json_text::set(text, "version", &SESSION_VERSION.to_string());
        }
        let mut text = text.to_owned();
        if self.version < 2 {
            text = self.with_ids(&text)?;
        }
        with_custom_role(text)
    }

    /// 1 to 2: ids, parents and the id of the first kept entry (`host.md` 2.5.2).
    fn with_ids(&mut self, text: &str) -> serde_json::Result<String> {
        let id = self.ids.entry(&mut self.taken).as_str().to_owned();
        let parent = self.places.last().filter(|id| !id.is_empty());
        let parent = serde_json::to_string(&parent)?;
        let mut text = json_text::set(text, "id", &format!("\"{id}\""))?;
        text = json_text::set(&text, "parentId", &parent)?;
        let fields = json_text::fields(&text)?;
        if let Some(range) = json_text::find(&fields, "firstKeptEntryIndex") {
            let index: Option<usize> = text[range.clone()].parse().ok();
            // An index that names nothing keeps nothing: the own id says so.
            let kept = index.and_then(|at| self.places.get(at));
            let kept = kept.filter(|id| !id.is_empty()).unwrap_or(&id);
            let kept = format!("\"{kept}\"");
            text = json_text::rename(&text, "firstKeptEntryIndex", "firstKeptEntryId", &kept)?;
        }
        self.places.push(id);
        Ok(text)
    }
}

/// 2 to 3: hook messages are custom messages (`host.md` 2.5.3).
fn with_custom_role(text: String) -> serde_json::Result<String> {
    if !text.contains("hookMessage") {
        return Ok(text);
    }
    let fields = json_text::fields(&text)?;
    let is_message = json_text::find(&fields, "type").map(|range| &text[range.clone()]);
    let (Some("\"message\""), Some(range)) = (is_message, json_text::find(&fields, "message"))
    else {
        return Ok(text);
    };
    let message = &text[range.clone()];
    let Ok(inner) = json_text::fields(message) else {
        return Ok(text);
    };
    let role = json_text::find(&inner, "role").map(|range| &message[range.clone()]);
    if role != Some("\"hookMessage\"") {
        return Ok(text);
    }
    let message = json_text::set(message, "role", "\"custom\"")?;
    Ok(json_text::splice(&text, range.clone(), &message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_messages_become_custom_and_nothing_else_changes() {
        // host.md 2.5.3
        let check = |line: &str, expected: &str| {
            assert_eq!(with_custom_role(line.to_owned()).unwrap(), expected);
        };
        check(
            r#"{"type":"message","x":1.50,"message":{"role":"hookMessage","n":1e3}}"#,
            r#"{"type":"message","x":1.50,"message":{"role":"custom","n":1e3}}"#,
        );
        let user = r#"{"type":"message","message":{"role":"user","content":"hookMessage"}}"#;
        check(user, user);
    }
}
