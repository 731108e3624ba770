//! The tool `grep` (`host.md` 4.6): lines that match a regular expression.
//! Which files are searched is decided here, which lines are shown in
//! `grep::lines`.

mod lines;

use std::path::Path;

use crew_base::limits::GREP_LINE_UNITS_MAX;
use crew_base::tool::{ToolDefinition, ToolOutcome};
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use serde_json::{Value, json};

use crate::blocking::{self, Stop};
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::error::Error;
use crate::find::glob;
use crate::path::resolve_existing;
use crate::read::whole;
use crate::toolbox::definition;
use crate::truncate::{Truncation, details, size};
use crate::walk::{Entries, relative};
use lines::{Found, Hits};

const LIMIT_DEFAULT: u64 = 100;
const CONTEXT_LINES_MAX: u64 = 1000;
/// Memory for one line; a file with a longer one is left out.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The tool.
pub(crate) struct Grep {
    definition: ToolDefinition,
}

impl Grep {
    pub(crate) fn new() -> Grep {
        let parameters = json!({
            "type": "object",
            "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression, or plain text with literal."},
                "path": {"type": "string", "description": "Folder or file; the working directory if absent."},
                "glob": {"type": "string", "description": "Only files that fit, for example *.rs or src/**/*.js; with ! in front only the others."},
                "ignoreCase": {"type": "boolean", "description": "Upper and lower case are equal."},
                "literal": {"type": "boolean", "description": "The pattern is plain text."},
                "context": {"type": "number", "description": "Lines to show around each match."},
                "limit": {"type": "number", "description": "Most matches; 100 if absent."}
            }
        });
        let description = "Searches files for lines that match, hidden files too, without what \
            .gitignore rules out. Matches are shown as path:line: text, lines around them as \
            path-line- text.";
        Grep { definition: definition("grep", description, &parameters) }
    }
}

impl Tool for Grep {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture {
        Box::pin(async move {
            let cancel = context.cancel.clone();
            let work = move |stop: &Stop| grep(&context, &arguments, stop);
            match blocking::run(&cancel, work).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(),
            }
        })
    }
}

fn grep(context: &ToolContext, arguments: &Value, stop: &Stop) -> Result<ToolOutcome, Error> {
    let name = arguments["path"].as_str().unwrap_or(".");
    let root = resolve_existing(name, &context.cwd, context.home.as_deref());
    let data = std::fs::metadata(&root).map_err(|source| Error::file(name, source))?;
    let matcher = matcher(arguments)?;
    let filter = arguments["glob"].as_str().map(Filter::new).transpose()?;
    let around = whole(&arguments["context"]).unwrap_or(0);
    let around = around.min(CONTEXT_LINES_MAX);
    let limit = whole(&arguments["limit"]).unwrap_or(LIMIT_DEFAULT).max(1);
    let mut search =
        Search { matcher, searcher: searcher(around), hits: Hits::new(limit, around), stop };
    if data.is_dir() {
        for entry in Entries::below(&root) {
            stop.check()?;
            let path = entry.path();
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let shown = relative(path, &root);
            if filter.as_ref().is_some_and(|filter| !filter.fits(&shown)) {
                continue;
            }
            // A file that cannot be read is left out.
            let _ = search.file(path, &shown);
            if search.hits.is_over() {
                break;
            }
        }
    } else {
        let shown = root.file_name().unwrap_or_default().to_string_lossy();
        let searched = search.file(&root, &shown);
        searched.map_err(|source| Error::file(name, source))?;
    }
    stop.check()?;
    let is_binary_file = !data.is_dir() && search.hits.is_binary();
    Ok(outcome(&search.hits, limit, is_binary_file))
}

fn matcher(arguments: &Value) -> Result<RegexMatcher, Error> {
    let flag = |key: &str| arguments[key].as_bool().unwrap_or(false);
    let pattern = arguments["pattern"].as_str().unwrap_or_default();
    RegexMatcherBuilder::new()
        .case_insensitive(flag("ignoreCase"))
        .fixed_strings(flag("literal"))
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| Error::Pattern { reason: error.to_string() })
}

fn searcher(around: u64) -> Searcher {
    let around = around as usize;
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(LINE_BYTES_MAX))
        .line_number(true)
        .before_context(around)
        .after_context(around)
        .build()
}

struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    hits: Hits,
    stop: &'a Stop,
}

impl Search<'_> {
    fn file(&mut self, path: &Path, shown: &str) -> std::io::Result<()> {
        let found = Found::new(&mut self.hits, shown, self.stop);
        self.searcher.search_path(&self.matcher, path, found)
    }
}

/// Argument `glob` (`host.md` 4.6.2).
struct Filter {
    glob: GlobMatcher,
    by_name: bool,
    negated: bool,
}

impl Filter {
    fn new(text: &str) -> Result<Filter, Error> {
        let (text, negated) = match text.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let text = text.strip_prefix("./").unwrap_or(text);
        let below = text.strip_prefix('/').unwrap_or(text);
        Ok(Filter {
            glob: glob(below.trim_end_matches('/'), false)?,
            by_name: !text.trim_end_matches('/').contains('/'),
            negated,
        })
    }

    /// A negated glob also rules out what is below a folder that fits.
    fn fits(&self, relative: &str) -> bool {
        if !self.negated {
            return self.fits_one(relative);
        }
        let folders = relative.match_indices('/').map(|(at, _)| &relative[..at]);
        !folders.chain([relative]).any(|path| self.fits_one(path))
    }

    fn fits_one(&self, path: &str) -> bool {
        if self.by_name {
            let name = path.rsplit('/').next().unwrap_or(path);
            self.glob.is_match(name)
        } else {
            self.glob.is_match(path)
        }
    }
}

fn outcome(hits: &Hits, limit: u64, is_binary_file: bool) -> ToolOutcome {
    if hits.matches() == 0 {
        return ToolOutcome::text(if is_binary_file {
            "(no match; the file is binary and was not searched to its end)"
        } else {
            "(no match)"
        });
    }
    let view = Truncation::head(hits.text(), hits.totals());
    let mut notes = Vec::new();
    let mut fields = Vec::new();
    if hits.more_exist() {
        notes.push(format!(
            "Only {limit} matches are shown, more exist; raise limit or narrow the search."
        ));
        fields.push(("matchLimitReached", Value::from(limit)));
    }
    if is_binary_file {
        notes.push("The file is binary and was not searched to its end.".to_owned());
    }
    if view.is_cut() {
        let kept = size(view.content.len() as u64);
        notes.push(format!("The list was cut after {kept}."));
        fields.push(("truncation", view.value()));
    }
    if hits.lines_cut() {
        notes.push(format!(
            "Some lines were cut after {GREP_LINE_UNITS_MAX} characters; use read to see them whole."
        ));
        fields.push(("linesTruncated", Value::Bool(true)));
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

    async fn check(world: &World, arguments: Value, expected: &str) {
        let outcome = world.call("grep", arguments.clone()).await;
        assert_eq!(outcome.joined_text(), expected, "{arguments}");
        assert_eq!(outcome.details, None, "{arguments}");
    }

    fn prepare() -> World {
        let world = World::new();
        world.file("repo/src/a.js", "one\nneedle here\nthree\n");
        world.file("repo/src/b.ts", "Needle too\n");
        world.file("repo/ignored/c.js", "needle\n");
        world.file("repo/.hidden", "a needle.\n");
        world.file("repo/.gitignore", "ignored\n");
        world
    }

    #[tokio::test]
    async fn matches_are_listed_by_path_and_line() {
        // host.md 4.6.1 to 4.6.3, 11.81
        let world = prepare();
        let all = ".hidden:1: a needle.\nsrc/a.js:2: needle here";
        check(&world, json!({"pattern": "needle", "path": "repo"}), all).await;
        let globbed = json!({"pattern": "needle", "path": "repo", "glob": "./src/*.js"});
        check(&world, globbed, "src/a.js:2: needle here").await;
        let named = json!({"pattern": "needle", "path": "repo", "glob": "*.js"});
        check(&world, named, "src/a.js:2: needle here").await;
        let negated = json!({"pattern": "needle", "path": "repo", "glob": "!src"});
        check(&world, negated, ".hidden:1: a needle.").await;
        let any_case = json!({"pattern": "NEEDLE T", "path": "repo", "ignoreCase": true});
        check(&world, any_case, "src/b.ts:1: Needle too").await;
        let literal = json!({"pattern": "needle.", "path": "repo", "literal": true});
        check(&world, literal, ".hidden:1: a needle.").await;
        let one = json!({"pattern": "needle", "path": "repo/src/a.js", "context": 1});
        check(&world, one, "a.js-1- one\na.js:2: needle here\na.js-3- three").await;
        check(&world, json!({"pattern": "absent-word"}), "(no match)").await;
    }

    #[tokio::test]
    async fn a_wrong_pattern_or_path_is_an_error() {
        let world = prepare();
        let failed = async |arguments: Value| world.call("grep", arguments).await.is_error;
        assert!(failed(json!({"pattern": "("})).await);
        assert!(failed(json!({"pattern": "a\nb"})).await);
        assert!(failed(json!({"pattern": "x", "path": "nowhere"})).await);
        assert!(failed(json!({"pattern": "x", "glob": "["})).await);
    }

    #[tokio::test]
    async fn binary_files_are_left_out_and_huge_lists_are_cut() {
        let world = World::new();
        world.file("binary", b"\0needle\n");
        world.file("text", "needle in the hay\n".repeat(9000));
        let arguments = json!({"pattern": "needle", "limit": 9000});
        let outcome = world.call("grep", arguments).await;
        let details = outcome.details.as_ref().unwrap().value();
        assert_eq!(details["truncation"]["totalLines"], 9000);
        assert_eq!(details["truncation"]["truncatedBy"], "bytes");
        assert!(details.get("matchLimitReached").is_none());
        assert!(!outcome.joined_text().contains("binary"));
        let arguments = json!({"pattern": "needle", "path": "binary"});
        let outcome = world.call("grep", arguments).await;
        assert!(outcome.joined_text().contains("is binary"));
    }

    #[tokio::test]
    async fn a_search_stops_when_it_is_cancelled() {
        // host.md 4.1.8
        let world = World::new();
        world.cancel.cancel();
        let outcome = world.call("grep", json!({"pattern": "x", "path": "/"})).await;
        assert!(outcome.joined_text().contains("aborted"));
    }
}
