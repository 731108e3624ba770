//! The line and byte limits of tool output (`host.md` 4.1.2 to 4.1.5).
//!
//! Pure: text in, shorter text and its numbers out.

use crew_base::json::Raw;
use crew_base::limits::{TOOL_BYTES_MAX, TOOL_LINES_MAX};
use serde_json::{Value, json};

/// What was kept of an output, and what there was (`host.md` 4.1.5).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Truncation {
    /// What was kept.
    pub(crate) content: String,
    /// Which limit was hit, if any.
    pub(crate) by: Option<Limit>,
    /// Of everything.
    pub(crate) totals: Totals,
    /// Lines kept.
    pub(crate) output_lines: u64,
    /// Only the end of the last line was kept.
    pub(crate) last_line_partial: bool,
    /// The first line alone is over the byte limit; nothing was kept.
    pub(crate) first_line_exceeds_limit: bool,
}

/// The two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// `TOOL_LINES_MAX`.
    Lines,
    /// `TOOL_BYTES_MAX`.
    Bytes,
}

/// Size of a whole output, which may be larger than the text at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// A trailing line feed does not add a line (`host.md` 4.1.3).
    pub(crate) lines: u64,
    /// UTF-8 bytes.
    pub(crate) bytes: u64,
}

impl Totals {
    /// Counts a text.
    pub(crate) fn of(text: &str) -> Totals {
        Totals { lines: text.split_inclusive('\n').count() as u64, bytes: text.len() as u64 }
    }

    fn fit(self) -> bool {
        self.lines <= TOOL_LINES_MAX as u64 && self.bytes <= TOOL_BYTES_MAX as u64
    }
}

impl Truncation {
    /// Keeps whole lines from the start (`host.md` 4.1.4). `text` may end early
    /// when it is over a limit itself; `totals` tell of everything.
    pub(crate) fn head(text: &str, totals: Totals) -> Truncation {
        if totals.fit() {
            return Truncation::whole(text, totals);
        }
        let mut end = 0;
        let mut lines = 0;
        let mut by = Limit::Lines;
        for line in text.split_inclusive('\n') {
            if lines == TOOL_LINES_MAX as u64 {
                break;
            }
            let shown = end + bare(line).len();
            if shown > TOOL_BYTES_MAX {
                by = Limit::Bytes;
                break;
            }
            end += line.len();
            lines += 1;
        }
        Truncation {
            content: bare(&text[..end]).to_owned(),
            by: Some(by),
            totals,
            output_lines: lines,
            last_line_partial: false,
            first_line_exceeds_limit: lines == 0,
        }
    }

    /// Keeps whole lines from the end, or the end of one giant line
    /// (`host.md` 4.1.4). `text` is the end of everything and may start late.
    pub(crate) fn tail(text: &str, totals: Totals) -> Truncation {
        if totals.fit() {
            return Truncation::whole(text, totals);
        }
        let mut start = text.len();
        let mut lines = 0;
        let mut by = Limit::Bytes;
        while start > 0 {
            if lines == TOOL_LINES_MAX as u64 {
                by = Limit::Lines;
                break;
            }
            let before = &text.as_bytes()[..start - 1];
            let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            if text.len() - line_start > TOOL_BYTES_MAX {
                break;
            }
            start = line_start;
            lines += 1;
        }
        let last_line_partial = lines == 0;
        if last_line_partial {
            start = text.ceil_char_boundary(text.len().saturating_sub(TOOL_BYTES_MAX));
        }
        Truncation {
            content: text[start..].to_owned(),
            by: Some(by),
            totals,
            output_lines: lines.max(1),
            last_line_partial,
            first_line_exceeds_limit: false,
        }
    }

    fn whole(text: &str, totals: Totals) -> Truncation {
        Truncation {
            content: text.to_owned(),
            by: None,
            totals,
            output_lines: totals.lines,
            last_line_partial: false,
            first_line_exceeds_limit: false,
        }
    }

    /// Whether something is missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.by.is_some()
    }

    /// The object of `host.md` 4.1.5.
    pub(crate) fn value(&self) -> Value {
        let by = self.by.map(|limit| match limit {
            Limit::Lines => "lines",
            Limit::Bytes => "bytes",
        });
        json!({
            "content": self.content,
            "truncated": self.is_cut(),
            "truncatedBy": by,
            "totalLines": self.totals.lines,
            "totalBytes": self.totals.bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.content.len(),
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": TOOL_LINES_MAX,
            "maxBytes": TOOL_BYTES_MAX,
        })
    }
}

/// Details of a result; `None` when there is nothing to say.
pub(crate) fn details(fields: Vec<(&str, Value)>) -> Option<Raw> {
    if fields.is_empty() {
        return None;
    }
    let object = fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    Some(Raw::of(&Value::Object(object)))
}

/// A size for people: `512B`, `50.0KB`, `1.5MB` (`host.md` 4.1.5).
pub(crate) fn size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let amount = bytes as f64;
    if amount < KIB {
        format!("{bytes}B")
    } else if amount < KIB * KIB {
        format!("{:.1}KB", amount / KIB)
    } else {
        format!("{:.1}MB", amount / KIB / KIB)
    }
}

/// A line without its line feed.
fn bare(line: &str) -> &str {
    line.strip_suffix('\n').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(lines: usize) -> String {
        (1..=lines).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn exactly_the_limit_is_not_cut() {
        // host.md 4.1.3
        let text = numbered(TOOL_LINES_MAX);
        assert!(!Truncation::head(&text, Totals::of(&text)).is_cut());
        assert!(!Truncation::tail(&text, Totals::of(&text)).is_cut());
        let text = "x".repeat(TOOL_BYTES_MAX);
        assert!(!Truncation::head(&text, Totals::of(&text)).is_cut());
    }

    #[test]
    fn whole_lines_are_kept_from_the_wanted_end() {
        // host.md 4.1.4
        let text = numbered(TOOL_LINES_MAX + 5);
        let head = Truncation::head(&text, Totals::of(&text));
        assert!(head.content.starts_with("1\n") && head.content.ends_with("\n2000"));
        assert_eq!((head.by, head.output_lines), (Some(Limit::Lines), 2000));
        let tail = Truncation::tail(&text, Totals::of(&text));
        assert!(tail.content.starts_with("6\n") && tail.content.ends_with("\n2005\n"));
        assert_eq!((tail.by, tail.totals.lines), (Some(Limit::Lines), 2005));
    }

    #[test]
    fn the_byte_limit_keeps_whole_lines_too() {
        let text = format!("{}\n", "y".repeat(999)).repeat(100);
        let head = Truncation::head(&text, Totals::of(&text));
        assert_eq!((head.by, head.output_lines), (Some(Limit::Bytes), 51));
        let tail = Truncation::tail(&text, Totals::of(&text));
        assert_eq!((tail.by, tail.output_lines), (Some(Limit::Bytes), 51));
    }

    #[test]
    fn a_giant_line_keeps_nothing_at_the_head_and_its_end_at_the_tail() {
        let text = "é".repeat(TOOL_BYTES_MAX);
        let head = Truncation::head(&text, Totals::of(&text));
        assert!(head.first_line_exceeds_limit && head.content.is_empty());
        let tail = Truncation::tail(&text, Totals::of(&text));
        assert!(tail.last_line_partial && tail.output_lines == 1);
        assert_eq!(tail.content.len(), TOOL_BYTES_MAX);
        let text = format!("{}z", "é".repeat(TOOL_BYTES_MAX));
        let tail = Truncation::tail(&text, Totals::of(&text));
        assert_eq!(tail.content.len(), TOOL_BYTES_MAX - 1);
    }

    #[test]
    fn sizes_are_written_for_people() {
        let check = |bytes, text: &str| assert_eq!(size(bytes), text);
        check(512, "512B");
        check(51_200, "50.0KB");
        check(1_572_864, "1.5MB");
    }

    #[test]
    fn details_carry_every_field_of_the_contract() {
        let text = numbered(TOOL_LINES_MAX + 1);
        let value = Truncation::head(&text, Totals::of(&text)).value();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 11);
        assert_eq!(value["truncatedBy"], "lines");
        assert_eq!(value["maxBytes"], 51_200);
    }
}
