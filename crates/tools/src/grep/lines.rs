//! Which lines of the searched files are shown (`host.md` 4.6.3 to 4.6.5):
//! the limit, the lines around matches, cut lines, bounded memory.

use std::io;

use crew_base::limits::{GREP_LINE_UNITS_MAX, TOOL_BYTES_MAX};
use crew_base::text::cut_units;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use crate::blocking::Stop;
use crate::truncate::Totals;

/// Text that is kept; what comes after it is only counted.
const TEXT_BYTES_MAX: usize = TOOL_BYTES_MAX * 2;

/// All lines found so far.
pub(super) struct Hits {
    limit: u64,
    around: u64,
    matches: u64,
    more: bool,
    cut: bool,
    binary: bool,
    text: String,
    totals: Totals,
}

impl Hits {
    pub(super) fn new(limit: u64, around: u64) -> Hits {
        Hits {
            limit,
            around,
            matches: 0,
            more: false,
            cut: false,
            binary: false,
            text: String::new(),
            totals: Totals::default(),
        }
    }

    /// Matches shown.
    pub(super) fn matches(&self) -> u64 {
        self.matches
    }

    /// The limit was reached and one more match does exist.
    pub(super) fn more_exist(&self) -> bool {
        self.more
    }

    /// Whether nothing that follows can change the result.
    pub(super) fn is_over(&self) -> bool {
        self.more
    }

    pub(super) fn lines_cut(&self) -> bool {
        self.cut
    }

    /// A searched file is binary and was left there.
    pub(super) fn is_binary(&self) -> bool {
        self.binary
    }

    /// Lines joined by line feeds; more than a result holds at most.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Of everything, the lines that were only counted included.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    fn add(&mut self, line: &str) {
        let separator = u64::from(self.totals.lines > 0);
        self.totals.lines += 1;
        self.totals.bytes += line.len() as u64 + separator;
        if self.text.len() < TEXT_BYTES_MAX {
            if separator > 0 {
                self.text.push('\n');
            }
            self.text.push_str(line);
        }
    }
}

/// Takes what the searcher finds in one file.
pub(super) struct Found<'a> {
    hits: &'a mut Hits,
    shown: &'a str,
    stop: &'a Stop,
    /// Line of the last match of this file that was shown as one.
    last_match: Option<u64>,
}

impl<'a> Found<'a> {
    pub(super) fn new(hits: &'a mut Hits, shown: &'a str, stop: &'a Stop) -> Found<'a> {
        Found { hits, shown, stop, last_match: None }
    }

    fn is_full(&self) -> bool {
        self.hits.matches == self.hits.limit
    }

    /// Whether a line belongs to the last shown match.
    fn trails(&self, line: u64) -> bool {
        self.last_match.is_some_and(|last| line <= last + self.hits.around)
    }

    fn show(&mut self, line: u64, mark: char, bytes: &[u8]) {
        let text = self.text(bytes);
        let space = if text.is_empty() { "" } else { " " };
        let shown = format!("{}{mark}{line}{mark}{space}{text}", self.shown);
        self.hits.add(&shown);
    }

    /// The line without its terminator, cut, in valid UTF-8.
    fn text(&mut self, bytes: &[u8]) -> String {
        let bytes = bytes
            .strip_suffix(b"\n")
            .map_or(bytes, |line| line.strip_suffix(b"\r").unwrap_or(line));
        // No character has more than four bytes, so this is enough to cut.
        let start = &bytes[..bytes.len().min(4 * (GREP_LINE_UNITS_MAX + 1))];
        let text = String::from_utf8_lossy(start);
        let kept = cut_units(&text, GREP_LINE_UNITS_MAX);
        if kept.len() == text.len() && start.len() == bytes.len() {
            return text.into_owned();
        }
        self.hits.cut = true;
        format!("{kept}… [cut]")
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.stop.check().is_err() {
            return Ok(false);
        }
        let line = found.line_number().unwrap_or(0);
        if self.is_full() {
            self.hits.more = true;
            let trails = self.trails(line);
            if trails {
                self.show(line, '-', found.bytes());
            }
            return Ok(trails);
        }
        self.hits.matches += 1;
        self.last_match = Some(line);
        self.show(line, ':', found.bytes());
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.hits.binary = true;
        Ok(false)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = context.line_number().unwrap_or(0);
        if self.is_full() && !self.trails(line) {
            // A line before the next match, or after one that is not shown.
            self.hits.more = true;
            return Ok(false);
        }
        self.show(line, '-', context.bytes());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crew_base::text::units;
    use serde_json::{Value, json};

    use crate::testing::World;

    async fn grep(text: &str, mut arguments: Value) -> (String, Value) {
        let world = World::new();
        world.file("f", text);
        arguments["path"] = json!("f");
        let outcome = world.call("grep", arguments).await;
        let details = outcome.details.as_ref().map_or(Value::Null, |d| d.value());
        (outcome.joined_text(), details)
    }

    #[tokio::test]
    async fn the_limit_is_noted_only_when_one_more_match_exists() {
        // host.md 4.6.4, 11.80
        let hits = "hit\n".repeat(5);
        let (text, details) = grep(&hits, json!({"pattern": "hit", "limit": 5})).await;
        assert_eq!((text.matches("hit").count(), details), (5, Value::Null));
        let (text, details) = grep(&hits, json!({"pattern": "hit", "limit": 4.9})).await;
        assert_eq!(details["matchLimitReached"], 4);
        assert!(text.contains("f:4: hit\n\n[Only 4 matches"));
    }

    #[tokio::test]
    async fn one_more_match_may_be_in_another_file() {
        let world = World::new();
        world.file("a", "hit\n");
        let arguments = json!({"pattern": "hit", "limit": 1});
        assert_eq!(world.call("grep", arguments.clone()).await.details, None);
        world.file("b", "hit\n");
        assert!(world.call("grep", arguments).await.details.is_some());
    }

    #[tokio::test]
    async fn a_match_after_the_last_allowed_one_is_shown_as_context() {
        // host.md 4.6.4
        let arguments = json!({"pattern": "hit", "limit": 1, "context": 2});
        let (text, details) = grep("a\nhit\nhit\nb\nc\nd\n", arguments.clone()).await;
        assert!(text.starts_with("f-1- a\nf:2: hit\nf-3- hit\nf-4- b\n\n["), "{text}");
        assert_eq!(details["matchLimitReached"], 1);
        let (text, details) = grep("hit\nb\nc\nd\ne\nf\nhit\n", arguments.clone()).await;
        assert!(text.starts_with("f:1: hit\nf-2- b\nf-3- c\n\n["), "{text}");
        assert_eq!(details["matchLimitReached"], 1);
        let (text, details) = grep("hit\nb\nc\nd\n", arguments).await;
        assert_eq!((text.as_str(), details), ("f:1: hit\nf-2- b\nf-3- c", Value::Null));
    }

    #[tokio::test]
    async fn only_the_line_terminator_is_stripped() {
        // host.md 4.6.3
        let (text, _) = grep("a\rx\r\nb x\n", json!({"pattern": "x"})).await;
        assert_eq!(text, "f:1: a\rx\nf:2: b x");
    }

    #[tokio::test]
    async fn long_lines_are_cut_between_characters() {
        // host.md 4.6.3, 11.82
        let line = format!("{}😀tail", "x".repeat(499));
        let (text, details) = grep(&line, json!({"pattern": "x"})).await;
        assert!(text.starts_with(&format!("f:1: {}… [cut]", "x".repeat(499))), "{text}");
        assert_eq!(details["linesTruncated"], true);
        let exact = "x".repeat(500);
        let (text, details) = grep(&exact, json!({"pattern": "x"})).await;
        assert_eq!((units(&text), details), (505, Value::Null));
    }
}
