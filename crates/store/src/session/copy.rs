//! Fork, clone and `--fork`: new files from the lines of an old one
//! (`host.md` 2.8.4 to 2.8.7).
//!
//! Lines are copied as text; only a parent or a kept id that no longer fits is
//! replaced in it. The source is never written.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use crew_base::entry::{Entry, EntryBody, Header};
use crew_base::id::EntryId;
use crew_base::message::Message;

use super::index::{Indexed, Kind, Role};
use super::log::{Plan, SessionLog};
use super::project::read_message;
use super::scan::{self, LineReader};
use super::snapshot::Snapshot;
use crate::error::{Error, Result, io_error};
use crate::{files, json_text};

/// Copies the branch that ends at `leaf` into a new session; `None` gives an
/// empty one (`host.md` 2.8.4). Ids, times and contents stay; labels move to the
/// end (2.8.5); the file follows the rule of lazy creation (2.8.6). A parent in
/// the plan's header wins over the source's file. A session with a planned file
/// that does not exist yet is refused.
pub fn copy_branch(
    source: &SessionLog,
    leaf: Option<&EntryId>,
    mut plan: Plan,
) -> Result<SessionLog> {
    if source.path().is_some() && !source.is_saved() {
        return Err(Error::NotSaved);
    }
    if plan.header.parent_session.is_none() {
        let path = source.path().map(|path| path.to_string_lossy().into_owned());
        plan.header.parent_session = path;
    }
    let header_line = inherit(&plan.header, source.header_line());
    let mut copy = SessionLog::with_header(plan, header_line);
    let path = leaf.map_or_else(Vec::new, |leaf| source.index().path(leaf));
    copy_entries(source, &path, &mut copy)?;
    copy_labels(source, &mut copy)?;
    if copy.index().makes_file() {
        copy.save()?;
    }
    Ok(copy)
}

fn copy_entries(source: &SessionLog, path: &[usize], copy: &mut SessionLog) -> Result<()> {
    let entries = source.index().entries();
    let mut lines = source.lines()?;
    for (at, place) in path.iter().enumerate() {
        let entry = &entries[*place];
        if entry.kind == Kind::Label {
            continue;
        }
        let parent_id = copy.last().cloned();
        let line = lines.text(entry).map_err(source.read_error())?;
        let mut line = relinked(&line, &entry.parent_id, &parent_id);
        if entry.kind == Kind::Compaction {
            line = with_kept_entry(line, |kept| next_kept(entries, &path[..=at], kept));
        }
        let indexed = Indexed { parent_id, ..entry.clone() };
        let text = line.clone();
        copy.stage(indexed, line, || crew_base::entry::read_line(&text).ok());
    }
    Ok(())
}

/// What a kept id becomes when it names a label of the path: the next entry
/// behind that label that is copied, at the latest the compaction itself, which
/// stands last in `path` and then keeps nothing.
fn next_kept(entries: &[Indexed], path: &[usize], kept: &str) -> Option<EntryId> {
    let is_label = |place: &&usize| entries[**place].kind == Kind::Label;
    let at =
        path.iter().position(|place| is_label(&place) && entries[*place].id.as_str() == kept)?;
    let mut copied = path[at..].iter().skip_while(is_label);
    copied.next().map(|place| entries[*place].id.clone())
}

/// Labels in force whose target was copied, chained behind the last entry with
/// their own ids and times (`host.md` 2.8.5).
fn copy_labels(source: &SessionLog, copy: &mut SessionLog) -> Result<()> {
    let mut labels: Vec<_> = source.index().labels().iter().collect();
    labels.sort_by_key(|(_, label)| label.at);
    for (target, label) in labels {
        if copy.index().position(target).is_none() {
            continue;
        }
        let entry = Entry {
            id: label.entry.clone(),
            parent_id: copy.last().cloned(),
            timestamp: label.timestamp.clone(),
            body: EntryBody::Label { target_id: target.clone(), label: Some(label.text.clone()) },
        };
        let indexed = Indexed {
            id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            kind: Kind::Label,
            time: scan::time_of(&entry.timestamp),
            start: 0,
            len: 0,
        };
        copy.stage(indexed, entry.line(), || Some(entry));
    }
    Ok(())
}

/// Replaces the parent in a line, and only if it is another one.
fn relinked(line: &str, old: &Option<EntryId>, new: &Option<EntryId>) -> String {
    if old == new {
        return line.to_owned();
    }
    let parent = match new {
        Some(id) => serde_json::Value::from(id.as_str()).to_string(),
        None => "null".to_owned(),
    };
    // A line of the index is an object, or it would not be there.
    json_text::set(line, "parentId", &parent).unwrap_or_else(|_| line.to_owned())
}

fn with_kept_entry(line: String, other: impl FnOnce(&str) -> Option<EntryId>) -> String {
    let Ok(fields) = json_text::fields(&line) else {
        return line;
    };
    let Some(range) = json_text::find(&fields, "firstKeptEntryId") else {
        return line;
    };
    let kept: Option<String> = serde_json::from_str(&line[range.clone()]).ok();
    match kept.and_then(|kept| other(&kept)) {
        None => line,
        Some(id) => {
            let id = serde_json::Value::from(id.as_str()).to_string();
            json_text::splice(&line, range.clone(), &id)
        }
    }
}

/// A header line with the unknown fields of another one (`host.md` 0.3).
fn inherit(header: &Header, source_line: &str) -> String {
    let own = serde_json::to_string(header).expect("a header holds only text and a number");
    let known = ["type", "version", "id", "timestamp", "cwd", "parentSession"];
    let mut line = own;
    for field in json_text::fields(source_line).unwrap_or_default() {
        if !known.contains(&field.key.as_str()) {
            line = json_text::set(&line, &field.key, &source_line[field.value]).unwrap_or(line);
        }
    }
    line
}

/// Copies all entries of a session file, every branch, behind a new header
/// (`host.md` 2.8.7). Old versions stay old here; opening the copy migrates it.
/// A failure leaves no file.
pub fn copy_all(source: &Path, mut header: Header, target: &Path) -> Result<()> {
    let file = File::open(source).map_err(io_error("read", source))?;
    let mut reader = BufReader::new(file);
    let mut lines = LineReader::new(&mut reader);
    let mut head = None;
    while let Some(line) = lines.next().map_err(io_error("read", source))? {
        let (line, _) = line.trimmed();
        if scan::peek(line.bytes).is_some() {
            head = scan::header(line.bytes);
            break;
        }
    }
    let (old, old_line) = head.ok_or_else(|| Error::NotASession { path: source.to_owned() })?;
    header.version = old.version;
    header.parent_session = Some(source.to_string_lossy().into_owned());
    if let Some(folder) = target.parent() {
        files::create_private_dir(folder)?;
    }
    let created = files::create_exclusive(target)?;
    let mut writer = BufWriter::new(created);
    let copied = writeln!(writer, "{}", inherit(&header, &old_line))
        .and_then(|()| copy_lines(&mut lines, &mut writer))
        .and_then(|()| writer.flush());
    copied.map_err(|error| {
        let _ = std::fs::remove_file(target);
        io_error("write", target)(error)
    })
}

fn copy_lines(lines: &mut LineReader<'_>, writer: &mut dyn Write) -> io::Result<()> {
    while let Some(line) = lines.next()? {
        let (line, _) = line.trimmed();
        let Some(peek) = scan::peek(line.bytes) else {
            continue;
        };
        if peek.kind.text() != Some("session") {
            writer.write_all(line.bytes)?;
            writer.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Where a fork from a user message ends, and the message's text for the editor
/// (`host.md` 2.8.4); an error for any other entry.
pub fn fork_point(source: &Snapshot, id: &EntryId) -> Result<(Option<EntryId>, String)> {
    let unknown = || Error::UnknownEntry { id: id.as_str().to_owned() };
    let at = source.index().position(id).ok_or_else(unknown)?;
    let entry = &source.index().entries()[at];
    if entry.kind != Kind::Message(Role::User) {
        return Err(unknown());
    }
    let mut lines = source.lines()?;
    let line = lines.text(entry).map_err(source.read_error())?;
    let text = user_text(&line).unwrap_or_default();
    let parent = entry.parent_id.clone();
    let known = parent.filter(|parent| source.index().position(parent).is_some());
    Ok((known, text))
}

/// All user messages with text, in file order (`host.md` 7.3,
/// `get_fork_messages`).
pub fn user_messages(source: &Snapshot) -> Result<Vec<(EntryId, String)>> {
    let mut messages = Vec::new();
    let mut lines = source.lines()?;
    for entry in source.index().entries() {
        if entry.kind == Kind::Message(Role::User) {
            let line = lines.text(entry).map_err(source.read_error())?;
            let text = user_text(&line).filter(|text| !text.is_empty());
            messages.extend(text.map(|text| (entry.id.clone(), text)));
        }
    }
    Ok(messages)
}

fn user_text(line: &str) -> Option<String> {
    if let Some(Message::User(message)) = read_message(Role::User, line) {
        Some(message.content.text())
    } else {
        None
    }
}
