//! The shown session as a file whose form its name says (`host.md` 2.8.10,
//! TERM-50). Reads session files only; exports follow the umask.

use std::path::{Path, PathBuf};

use crew_base::entry::EntryBody;
use crew_base::id::EntryId;
use crew_store::export::{ExportOptions, default_name, file_to_html, jsonl_to_file};
use crew_store::listing;
use crew_store::session::open::open;
use crew_tui::format;
use crew_tui::request::{ChildOffer, Reply};
use crew_tui::transcript::item::Item;
use crew_tui::transcript::{document, entries};

use super::moves::walk;
use super::sessions;
use super::start::now;

/// Writes the branch that ends at `leaf`; without a path a page with the usual
/// name in `cwd`.
pub(super) fn export(
    session: &Path,
    leaf: Option<&EntryId>,
    path: Option<PathBuf>,
    cwd: &Path,
    with_crew: bool,
) -> Reply {
    let path = path.unwrap_or_else(|| cwd.join(default_name(session)));
    let form = path.extension().map(|form| form.to_string_lossy().to_lowercase());
    let result = match form.as_deref() {
        Some("jsonl") if with_crew => {
            Err("a .jsonl file holds one session; --crew goes with .html and .md".to_owned())
        }
        Some("jsonl") => jsonl(session, leaf, &path),
        Some("md" | "markdown") => markdown(session, leaf, &path, with_crew),
        Some("html" | "htm") => page(session, leaf, &path, with_crew),
        Some(_) | None => Err("the name has to end in .html, .md or .jsonl".to_owned()),
    };
    match result {
        Ok(()) => Reply::Done(format!("exported to {}", path.display())),
        Err(error) => Reply::Failed(format!("not exported: {error}"), None),
    }
}

fn page(
    session: &Path,
    leaf: Option<&EntryId>,
    path: &Path,
    with_crew: bool,
) -> Result<(), String> {
    let options = ExportOptions { children: with_crew, leaf: leaf.cloned() };
    file_to_html(session, &options, path).map_err(|error| error.to_string())
}

fn jsonl(session: &Path, leaf: Option<&EntryId>, path: &Path) -> Result<(), String> {
    let header = listing::header(session).ok_or("it is not a session")?;
    let opened = open(session, header, false).map_err(|error| error.to_string())?;
    jsonl_to_file(&opened.log, leaf, now(), path).map_err(|error| error.to_string())
}

fn markdown(
    session: &Path,
    leaf: Option<&EntryId>,
    path: &Path,
    with_crew: bool,
) -> Result<(), String> {
    if path == session {
        return Err("that is the session itself".to_owned());
    }
    let mut text = transcript(session, leaf, "Session", 1);
    if with_crew {
        for child in sessions::children(session) {
            text.push('\n');
            text.push_str(&transcript(&child.path, None, &title(&child), 2));
        }
    }
    std::fs::write(path, text).map_err(|error| error.to_string())
}

/// Id and brief, outcome and cost of a subagent.
fn title(child: &ChildOffer) -> String {
    let outcome = child.outcome.map_or("without an outcome", |status| status.word());
    format!("{}: {outcome}, {}", child.title, format::cost(child.cost))
}

fn transcript(session: &Path, leaf: Option<&EntryId>, fallback: &str, depth: usize) -> String {
    let (lines, last) = sessions::lines(session);
    let branch = walk(&lines, leaf.or(last.as_ref()));
    let name = branch.iter().rev().find_map(|entry| {
        if let EntryBody::SessionInfo { name } = &entry.body { name.clone() } else { None }
    });
    let title = if depth == 1 { name.as_deref().unwrap_or(fallback) } else { fallback };
    // In a subagent's session it is the owner who asks.
    let asked = |item| if let Item::User(text) = item { Item::Asked(text) } else { item };
    let asked = |item| if depth > 1 { asked(item) } else { item };
    let items: Vec<Item> = entries::items(&branch).into_iter().map(asked).collect();
    document::document(title, &items, depth)
}
