//! One branch of a session as a session file (`host.md` 2.8.10).
//!
//! Works on lines as bytes; only a parent that no longer fits is replaced. Must
//! never parse what it copies.

use std::io::Write;

use crew_base::id::EntryId;
use crew_base::time::Time;
use serde_json::Value;

use super::{Done, Failure};
use crate::json_text;
use crate::session::log::SessionLog;

/// Writes the header, then the branch that ends at `leaf`.
pub(super) fn write(
    log: &SessionLog,
    leaf: Option<&EntryId>,
    created: Time,
    out: &mut dyn Write,
) -> Done {
    out.write_all(header(log, created).as_bytes())?;
    out.write_all(b"\n")?;
    let index = log.index();
    let Some(leaf) = leaf.or(log.last()) else {
        return Ok(());
    };
    let mut lines = log.lines()?;
    let mut parent: Option<&EntryId> = None;
    for place in index.path(leaf) {
        let entry = &index.entries()[place];
        let failed = |error| Failure::Read(log.read_error()(error));
        if entry.parent_id.as_ref() == parent {
            out.write_all(lines.bytes(entry).map_err(failed)?)?;
        } else {
            let line = lines.text(entry).map_err(failed)?;
            let id = parent.map_or(Value::Null, |id| Value::from(id.as_str()));
            // A line of the index is an object, or it would not be there.
            let linked = json_text::set(&line, "parentId", &id.to_string());
            out.write_all(linked.as_deref().unwrap_or(&line).as_bytes())?;
        }
        out.write_all(b"\n")?;
        parent = Some(&entry.id);
    }
    Ok(())
}

/// The header with another time and without a parent (`host.md` 2.3.4).
fn header(log: &SessionLog, created: Time) -> String {
    let time = Value::from(created.iso()).to_string();
    let parent = ["parentSession".to_owned()];
    let edited = json_text::set(log.header_line(), "timestamp", &time)
        .and_then(|line| json_text::set_path(&line, &parent, None));
    edited.unwrap_or_else(|_| {
        let mut header = log.header().clone();
        header.timestamp = created.iso();
        header.parent_session = None;
        serde_json::to_string(&header).expect("a header holds only text and a number")
    })
}
