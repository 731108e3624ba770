//! The tool `find` (`host.md` 4.7.1, 4.7.2): names by a glob.

use std::path::Path;

use crew_base::tool::{ToolDefinition, ToolOutcome};
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Value, json};

use crate::blocking::{self, Stop};
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::error::Error;
use crate::ls::listing;
use crate::path::resolve_existing;
use crate::read::whole;
use crate::toolbox::definition;
use crate::walk::{Entries, relative};

const LIMIT_DEFAULT: u64 = 1000;

/// The tool.
pub(crate) struct Find {
    definition: ToolDefinition,
}

impl Find {
    pub(crate) fn new() -> Find {
        let parameters = json!({
            "type": "object",
            "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "Glob. Without a slash it fits names at any depth, with one the path below the search folder, for example src/**/*.rs."},
                "path": {"type": "string", "description": "Folder to search; the working directory if absent."},
                "limit": {"type": "number", "description": "Most results; 1000 if absent."}
            }
        });
        let description = "Finds files and folders by a glob, hidden ones too, without what \
            .gitignore rules out. Folders end in a slash. A pattern all in lower case fits \
            upper case as well.";
        Find { definition: definition("find", description, &parameters) }
    }
}

impl Tool for Find {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture {
        Box::pin(async move {
            let cancel = context.cancel.clone();
            let work = move |stop: &Stop| find(&context, &arguments, stop);
            match blocking::run(&cancel, work).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(),
            }
        })
    }
}

fn find(context: &ToolContext, arguments: &Value, stop: &Stop) -> Result<ToolOutcome, Error> {
    let name = arguments["path"].as_str().unwrap_or(".");
    let root = resolve_existing(name, &context.cwd, context.home.as_deref());
    let data = std::fs::metadata(&root).map_err(|source| Error::file(name, source))?;
    if !data.is_dir() {
        return Err(Error::NotDirectory { path: name.to_owned() });
    }
    let pattern = Pattern::new(arguments["pattern"].as_str().unwrap_or_default())?;
    let limit = whole(&arguments["limit"]).unwrap_or(LIMIT_DEFAULT).max(1);
    let mut lines = String::new();
    let mut shown = 0;
    let mut more = false;
    for entry in Entries::below(&root) {
        stop.check()?;
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !pattern.fits(entry.path(), &root, is_folder) {
            continue;
        }
        if shown == limit {
            more = true;
            break;
        }
        shown += 1;
        lines.push_str(&relative(entry.path(), &root));
        lines.push_str(if is_folder { "/\n" } else { "\n" });
    }
    if shown == 0 {
        return Ok(ToolOutcome::text("(nothing found)"));
    }
    Ok(listing(&lines, more.then_some(limit), "resultLimitReached", "results"))
}

struct Pattern {
    glob: GlobMatcher,
    on: On,
    folders_only: bool,
}

/// What the glob is held against.
enum On {
    Name,
    Relative,
    Absolute,
}

impl Pattern {
    fn new(text: &str) -> Result<Pattern, Error> {
        // Decided on the pattern alone, not on where it is anchored.
        let any_case = !text.chars().any(char::is_uppercase);
        let text = text.strip_prefix("./").unwrap_or(text);
        let (text, folders_only) = match text.strip_suffix('/') {
            Some(rest) if !rest.is_empty() => (rest, true),
            Some(_) | None => (text, false),
        };
        let on = if text.starts_with('/') {
            On::Absolute
        } else if text.contains('/') {
            On::Relative
        } else {
            On::Name
        };
        Ok(Pattern { glob: glob(text, any_case)?, on, folders_only })
    }

    fn fits(&self, path: &Path, root: &Path, is_folder: bool) -> bool {
        if self.folders_only && !is_folder {
            return false;
        }
        match self.on {
            On::Name => path.file_name().is_some_and(|name| self.glob.is_match(name)),
            On::Relative => self.glob.is_match(path.strip_prefix(root).unwrap_or(path)),
            On::Absolute => self.glob.is_match(path),
        }
    }
}

/// A glob in which only `**` passes a slash.
pub(crate) fn glob(text: &str, any_case: bool) -> Result<GlobMatcher, Error> {
    let glob = GlobBuilder::new(text).literal_separator(true).case_insensitive(any_case).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| Error::Pattern { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    async fn check(world: &World, arguments: Value, expected: &[&str]) {
        let outcome = world.call("find", arguments.clone()).await;
        let text = outcome.joined_text();
        let found: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(found, expected, "{arguments}");
    }

    #[tokio::test]
    async fn patterns_are_anchored_and_rules_hold() {
        // host.md 4.7.1, 11.83, 11.84
        let world = World::new();
        for name in ["src/a.ts", "src/deep/b.ts", "pkg/src/c.ts", ".hidden.ts", "out/d.ts"] {
            world.file(name, "x");
        }
        world.file("src/Big.TS", "x");
        world.file(".gitignore", "out\n");
        let all = [".hidden.ts", "pkg/src/c.ts", "src/Big.TS", "src/a.ts", "src/deep/b.ts"];
        check(&world, json!({"pattern": "*.ts"}), &all).await;
        check(&world, json!({"pattern": "*.TS"}), &["src/Big.TS"]).await;
        let anchored = ["src/Big.TS", "src/a.ts"];
        check(&world, json!({"pattern": "./src/*.ts"}), &anchored).await;
        check(&world, json!({"pattern": "src/*.ts"}), &anchored).await;
        let deep = ["src/Big.TS", "src/a.ts", "src/deep/b.ts"];
        check(&world, json!({"pattern": "src/**/*.ts"}), &deep).await;
        check(&world, json!({"pattern": "**/c.ts"}), &["pkg/src/c.ts"]).await;
        check(&world, json!({"pattern": "*.ts", "path": "src/deep"}), &["b.ts"]).await;
        check(&world, json!({"pattern": "src/"}), &["pkg/src/", "src/"]).await;
        check(&world, json!({"pattern": "src"}), &["pkg/src/", "src/"]).await;
        let absolute = format!("{}/src/a.*", world.cwd().display());
        check(&world, json!({"pattern": absolute}), &["src/a.ts"]).await;
    }

    #[tokio::test]
    async fn the_limit_is_noted_only_when_more_exists() {
        // host.md 4.7.2
        let world = World::new();
        world.file("a", "");
        world.file("b", "");
        let outcome = world.call("find", json!({"pattern": "*", "limit": 1})).await;
        assert_eq!(outcome.details.unwrap().text(), r#"{"resultLimitReached":1}"#);
        let outcome = world.call("find", json!({"pattern": "*", "limit": 2})).await;
        assert_eq!(outcome, ToolOutcome::text("a\nb"));
    }

    #[tokio::test]
    async fn nothing_found_is_no_error_and_a_bad_pattern_is_one() {
        let world = World::new();
        let outcome = world.call("find", json!({"pattern": "*.none"})).await;
        assert!(!outcome.is_error && !outcome.joined_text().is_empty());
        let failed = async |arguments: Value| world.call("find", arguments).await.is_error;
        assert!(failed(json!({"pattern": "[a"})).await);
        assert!(failed(json!({"pattern": "a", "path": "nowhere"})).await);
    }
}
