//! Stored sessions: the list with subagents below their owner (TERM-47),
//! names, deletion.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crew_base::entry::{EntryBody, read_line};
use crew_base::id::{EntryId, SessionId};
use crew_base::json::Raw;
use crew_engine::api::Status;
use crew_runtime::{SessionPlace, SessionTotals};
use crew_store::listing::{self, Summary};
use crew_tui::format;
use crew_tui::request::{ChildOffer, Reply, SessionOffer};

use super::start::{now, with_home};
use crate::config::Config;

/// Characters of a title made from the first words.
const TITLE_MAX: usize = 80;

/// Sessions of this folder or of all, last used first.
pub(super) fn list(
    config: &Config,
    cwd: &Path,
    all: bool,
    shown: Option<&Path>,
) -> Vec<SessionOffer> {
    let SessionPlace::Folder(folder) = &config.start.place else { return Vec::new() };
    let summaries = if all { listing::list_all(folder) } else { listing::list(folder, cwd) };
    let mut children = children_of(&summaries, folder.path.as_path());
    let home = config.place.home.as_deref();
    let offer = |summary: Summary| {
        let path = summary.path.to_string_lossy().into_owned();
        let title = summary.name.clone().unwrap_or_else(|| first_words(&summary.first_text));
        let children = children.remove(&path).unwrap_or_default();
        SessionOffer {
            cost: summary.cost + children.iter().map(|child| child.cost).sum::<f64>(),
            is_current: shown == Some(summary.path.as_path()),
            children,
            id: summary.id.to_string(),
            title: if title.is_empty() { "(empty)".to_owned() } else { title },
            is_named: summary.name.is_some(),
            cwd: with_home(Path::new(&summary.cwd), home),
            age_ms: now().since(summary.modified),
            messages: summary.messages,
            text: summary.search_text,
            is_fork: summary.parent.is_some(),
            path: summary.path,
        }
    };
    summaries.into_iter().map(offer).collect()
}

fn first_words(text: &str) -> String {
    let clean = crew_base::text::sanitise_inline(text);
    crew_base::text::excerpt(&clean, TITLE_MAX)
}

/// Subagents by the file of their owner, newest first.
fn children_of(owners: &[Summary], folder: &Path) -> BTreeMap<String, Vec<ChildOffer>> {
    let mut folders: Vec<PathBuf> = owners
        .iter()
        .filter_map(|owner| owner.path.parent())
        .chain(std::iter::once(folder))
        .map(|folder| folder.join("crew"))
        .collect();
    folders.sort();
    folders.dedup();
    let mut children: BTreeMap<String, Vec<ChildOffer>> = BTreeMap::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let Some(header) = listing::header(&path) else { continue };
            let Some(owner) = header.parent_session.clone() else { continue };
            children.entry(owner).or_default().push(child(&path));
        }
    }
    for list in children.values_mut() {
        list.sort_by_key(|child| child.age_ms);
    }
    children
}

/// Subagents of one session, oldest first.
pub(super) fn children(session: &Path) -> Vec<ChildOffer> {
    let Some(folder) = session.parent() else { return Vec::new() };
    let mut all = children_of(&[], folder);
    let mut own = all.remove(session.to_string_lossy().as_ref()).unwrap_or_default();
    own.reverse();
    own
}

/// What a child's file tells without its texts.
fn child(path: &Path) -> ChildOffer {
    let (lines, _) = lines(path);
    let mut offer = ChildOffer {
        path: path.to_owned(),
        title: path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        outcome: None,
        age_ms: 0,
        messages: 0,
        cost: 0.0,
    };
    let age = std::fs::metadata(path).and_then(|file| file.modified()).ok();
    offer.age_ms = age
        .and_then(|at| at.elapsed().ok())
        .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    for raw in &lines {
        let Ok(entry) = read_line(raw.text()) else { continue };
        if let EntryBody::Message { message } = &entry.body {
            offer.messages += 1;
            offer.cost += message.as_assistant().map_or(0.0, |answer| answer.usage.cost.total);
        }
        if let EntryBody::SessionInfo { name: Some(name) } = &entry.body {
            offer.title = name.trim_start_matches("crew: ").to_owned();
        }
        if let EntryBody::Custom { custom_type, data } = &entry.body
            && custom_type == "crew.ending"
        {
            let value = data.as_ref().map(|data| data.value()).unwrap_or_default();
            offer.outcome = match value["status"].as_str() {
                Some("error") => Some(Status::Error),
                Some("aborted") => Some(Status::Aborted),
                _ => None,
            };
        }
    }
    offer.outcome = offer.outcome.or_else(|| last_outcome(&lines));
    offer
}

/// The outcome of the last report in a child's file.
fn last_outcome(lines: &[Raw]) -> Option<Status> {
    // The result of the call stands behind it and tells no outcome.
    let outcome = |raw: &Raw| {
        let text = raw.text();
        let is_report = text.contains("\"crew_report\"");
        match (text.contains("\"needs_input\""), text.contains("\"completed\"")) {
            (true, _) if is_report => Some(Status::NeedsInput),
            (false, true) if is_report => Some(Status::Completed),
            (_, _) => None,
        }
    };
    lines.iter().rev().find_map(outcome)
}

/// The entry lines of a file and the last entry.
pub(super) fn lines(path: &Path) -> (Vec<Raw>, Option<EntryId>) {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<Raw> = text.lines().skip(1).filter_map(Raw::parse).collect();
    let leaf = lines.iter().rev().find_map(|raw| read_line(raw.text()).ok()).map(|entry| entry.id);
    (lines, leaf)
}

/// The file of a session in a folder, by the id in its header.
pub(super) fn file_of(folder: &Path, session: &SessionId) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| listing::header(path).is_some_and(|header| header.id == *session))
}

/// Gives a stored session another name.
pub(super) fn rename(path: &Path, name: &str) -> Option<Reply> {
    let result = crate::config::session::rename(path, name);
    let error = result.err()?;
    Some(Reply::Failed(format!("the name was not kept: {error}"), None))
}

/// Deletes a stored session; its subagents' files stay (`crew.md` LIFE-11).
pub(super) fn delete(path: &Path) -> Option<Reply> {
    match std::fs::remove_file(path) {
        Ok(()) => None,
        Err(error) => Some(Reply::Failed(format!("{} stays: {error}", path.display()), None)),
    }
}

/// Counts of the session in one line (`/session`).
pub(super) fn facts(totals: &SessionTotals, file: Option<&str>) -> String {
    let (own, crew) = (&totals.own.usage, &totals.crew);
    let mut text = format!(
        "{} of yours, {} of the owner, {} · own ↑{} ↓{} {} · crew ↑{} ↓{} {}",
        format::count(totals.own.user_messages, "message"),
        totals.own.assistant_messages,
        format::count(totals.own.tool_calls, "tool call"),
        format::tokens(own.input),
        format::tokens(own.output),
        format::cost(own.cost.total),
        format::tokens(crew.input),
        format::tokens(crew.output),
        format::cost(crew.cost.total),
    );
    if let Some(file) = file {
        text.push_str(&format!(" · {file}"));
    }
    text
}
