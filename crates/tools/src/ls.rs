//! The tool `ls` (`host.md` 4.7.3).

use std::fs;

use crew_base::tool::{ToolDefinition, ToolOutcome};
use serde_json::{Value, json};

use crate::blocking::{self, Stop};
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::error::Error;
use crate::path::resolve_existing;
use crate::read::whole;
use crate::toolbox::definition;
use crate::truncate::{Totals, Truncation, details, size};

const LIMIT_DEFAULT: u64 = 500;

/// The tool.
pub(crate) struct Ls {
    definition: ToolDefinition,
}

impl Ls {
    pub(crate) fn new() -> Ls {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Folder; the working directory if absent."},
                "limit": {"type": "number", "description": "Most entries to list; 500 if absent."}
            }
        });
        let description = "Lists the entries of a folder by name, hidden ones too. Folders end \
            in a slash.";
        Ls { definition: definition("ls", description, &parameters) }
    }
}

impl Tool for Ls {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture {
        Box::pin(async move {
            let cancel = context.cancel.clone();
            let work = move |stop: &Stop| list(&context, &arguments, stop);
            match blocking::run(&cancel, work).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(),
            }
        })
    }
}

fn list(context: &ToolContext, arguments: &Value, stop: &Stop) -> Result<ToolOutcome, Error> {
    let name = arguments["path"].as_str().unwrap_or(".");
    let path = resolve_existing(name, &context.cwd, context.home.as_deref());
    let failed = |source| Error::file(name, source);
    if !fs::metadata(&path).map_err(failed)?.is_dir() {
        return Err(Error::NotDirectory { path: name.to_owned() });
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        stop.check()?;
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        entries.push((name.to_string_lossy().to_lowercase(), name));
    }
    entries.sort();
    let limit = whole(&arguments["limit"]).unwrap_or(LIMIT_DEFAULT).max(1);
    let mut lines = String::new();
    let mut shown = 0;
    let mut more = false;
    for (_, name) in entries {
        stop.check()?;
        // Links are followed; what cannot be examined is left out.
        let Ok(data) = fs::metadata(path.join(&name)) else {
            continue;
        };
        if shown == limit {
            more = true;
            break;
        }
        shown += 1;
        lines.push_str(&name.to_string_lossy());
        lines.push_str(if data.is_dir() { "/\n" } else { "\n" });
    }
    if shown == 0 {
        return Ok(ToolOutcome::text("(empty folder)"));
    }
    Ok(listing(&lines, more.then_some(limit), "entryLimitReached", "entries"))
}

/// The result of a listing: lines, a trailer for what is missing, details.
pub(crate) fn listing(
    lines: &str,
    limit_reached: Option<u64>,
    key: &'static str,
    what: &str,
) -> ToolOutcome {
    let lines = lines.strip_suffix('\n').unwrap_or(lines);
    let view = Truncation::head(lines, Totals::of(lines));
    let mut notes = Vec::new();
    let mut fields = Vec::new();
    if let Some(limit) = limit_reached {
        notes.push(format!("Only {limit} {what} are shown, more exist; raise limit to see them."));
        fields.push((key, Value::from(limit)));
    }
    if view.is_cut() {
        let kept = size(view.content.len() as u64);
        notes.push(format!("The list was cut after {kept}."));
        fields.push(("truncation", view.value()));
    }
    let mut text = view.content;
    if !notes.is_empty() {
        text.push_str(&format!("\n\n[{}]", notes.join(" ")));
    }
    ToolOutcome { details: details(fields), ..ToolOutcome::text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[tokio::test]
    async fn entries_are_sorted_marked_and_limited() {
        // host.md 4.7.3
        let world = World::new();
        for name in ["b.txt", "A.txt", ".dot", "dir/x"] {
            world.file(name, "x");
        }
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, world.cwd().join(name)).unwrap();
        };
        link("dir", "c-link");
        link("nowhere", "dangling");
        let outcome = world.call("ls", json!({})).await;
        assert_eq!(outcome, ToolOutcome::text(".dot\nA.txt\nb.txt\nc-link/\ndir/"));
        let outcome = world.call("ls", json!({"limit": 2.9})).await;
        assert!(outcome.joined_text().starts_with(".dot\nA.txt\n\n[Only 2 entries"));
        assert_eq!(outcome.details.unwrap().text(), r#"{"entryLimitReached":2}"#);
        let outcome = world.call("ls", json!({"limit": 5})).await;
        assert_eq!(outcome.details, None, "exactly the limit");
        let outcome = world.call("ls", json!({"limit": -3})).await;
        assert!(outcome.joined_text().starts_with(".dot\n\n"));
    }

    #[tokio::test]
    async fn missing_folders_are_errors_and_empty_ones_are_not() {
        let world = World::new();
        world.file("file", "x");
        let check = async |path: &str, failed: bool| {
            let outcome = world.call("ls", json!({"path": path})).await;
            assert_eq!(outcome.is_error, failed, "{path}");
            assert!(!outcome.joined_text().is_empty());
        };
        check("nowhere", true).await;
        check("file", true).await;
        std::fs::create_dir(world.cwd().join("void")).unwrap();
        check("void", false).await;
    }

    #[tokio::test]
    async fn a_long_list_is_cut_at_the_byte_limit() {
        let lines = format!("{}\n", "n".repeat(99)).repeat(1000);
        let outcome = listing(&lines, None, "entryLimitReached", "entries");
        let details = outcome.details.unwrap().value();
        assert_eq!(details["truncation"]["truncatedBy"], "bytes");
    }
}
