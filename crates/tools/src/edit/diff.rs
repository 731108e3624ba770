//! What an edit changed, for faces (`host.md` 4.4.7). Pure. Only the changed
//! ranges are compared, never whole files, and huge lines are cut.

use std::ops::Range;
use std::time::{Duration, Instant};

use crew_base::text::excerpt;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::plan::Splice;
use super::view::{line_of, line_starts};

const CONTEXT_LINES: usize = 4;
const COMPARE_TIME_MAX: Duration = Duration::from_millis(500);
/// Characters of a line in the display.
const LINE_CHARS_MAX: usize = 2000;
/// Rows of the display.
const ROWS_MAX: usize = 4000;
/// A larger patch is left empty: a cut one would be wrong.
const PATCH_BYTES_MAX: usize = 512 * 1024;

/// The details of an edit.
#[derive(Debug, PartialEq)]
pub(super) struct Diff {
    /// Rows with line numbers.
    pub(super) display: String,
    /// A unified diff with file headers only.
    pub(super) patch: String,
    /// From 1, in the new file.
    pub(super) first_changed_line: usize,
}

/// Describes the change from `old` to `old` with the splices, which rise.
pub(super) fn diff(old: &str, splices: &[Splice], path: &str) -> Diff {
    let new = spliced(old, splices);
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let ops = operations(old, &new, splices, &old_lines, &new_lines);
    let first_changed_line = ops
        .iter()
        .find(|op| !is_equal(op))
        .map_or(1, |op| (op.new_range().start + 1).min(new_lines.len().max(1)));
    let hunks = group_diff_ops(ops, CONTEXT_LINES);
    Diff {
        display: display(&hunks, &old_lines, &new_lines),
        patch: patch(&hunks, &old_lines, &new_lines, path),
        first_changed_line,
    }
}

fn spliced(old: &str, splices: &[Splice]) -> String {
    let mut new = String::with_capacity(old.len());
    let mut at = 0;
    for splice in splices {
        new.push_str(&old[at..splice.range.start]);
        new.push_str(&splice.text);
        at = splice.range.end;
    }
    new.push_str(&old[at..]);
    new
}

fn is_equal(op: &DiffOp) -> bool {
    matches!(op, DiffOp::Equal { .. })
}

/// Whole lines that changed, in both texts.
struct Region {
    old: Range<usize>,
    new: Range<usize>,
}

fn regions(old: &str, new: &str, splices: &[Splice]) -> Vec<Region> {
    let (old_starts, new_starts) = (line_starts(old), line_starts(new));
    let mut regions: Vec<Region> = Vec::new();
    let mut new_end = 0;
    let mut old_end = 0;
    for splice in splices {
        let start = new_end + (splice.range.start - old_end);
        new_end = start + splice.text.len();
        old_end = splice.range.end;
        let lines = |starts: &[usize], from: usize, to: usize| {
            line_of(starts, from)..line_of(starts, to) + 1
        };
        let region = Region {
            old: lines(&old_starts, splice.range.start, old_end),
            new: lines(&new_starts, start, new_end),
        };
        match regions.last_mut() {
            Some(last) if region.old.start < last.old.end => {
                last.old.end = region.old.end;
                last.new.end = region.new.end;
            }
            Some(_) | None => regions.push(region),
        }
    }
    regions
}

fn operations(
    old: &str,
    new: &str,
    splices: &[Splice],
    old_lines: &[&str],
    new_lines: &[&str],
) -> Vec<DiffOp> {
    let deadline = Some(Instant::now() + COMPARE_TIME_MAX);
    let mut ops = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for region in regions(old, new, splices) {
        push_equal(&mut ops, old_at, new_at, region.old.start - old_at);
        // The empty line behind a last line feed is no element of the lists.
        let old_range = region.old.start..region.old.end.min(old_lines.len());
        let new_range = region.new.start..region.new.end.min(new_lines.len());
        let found = capture_diff_slices_deadline(
            Algorithm::Myers,
            &old_lines[old_range.clone()],
            &new_lines[new_range.clone()],
            deadline,
        );
        for op in found {
            push(&mut ops, moved(op, old_range.start, new_range.start));
        }
        (old_at, new_at) = (old_range.end, new_range.end);
    }
    push_equal(&mut ops, old_at, new_at, old_lines.len() - old_at);
    ops
}

fn push_equal(ops: &mut Vec<DiffOp>, old_index: usize, new_index: usize, len: usize) {
    if len > 0 {
        push(ops, DiffOp::Equal { old_index, new_index, len });
    }
}

/// Adds an operation. Equal neighbours become one, so that the lines around a
/// change are counted right.
fn push(ops: &mut Vec<DiffOp>, op: DiffOp) {
    if let (Some(DiffOp::Equal { len, .. }), DiffOp::Equal { len: more, .. }) =
        (ops.last_mut(), &op)
    {
        *len += more;
    } else {
        ops.push(op);
    }
}

fn moved(op: DiffOp, old_by: usize, new_by: usize) -> DiffOp {
    match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + old_by, new_index: new_index + new_by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + old_by, old_len, new_index: new_index + new_by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + old_by, new_index: new_index + new_by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => DiffOp::Replace {
            old_index: old_index + old_by,
            old_len,
            new_index: new_index + new_by,
            new_len,
        },
    }
}

/// One row of a diff: its sign, its number from 0 and its line.
type Row<'a> = (char, usize, &'a str);

fn rows<'a>(hunk: &[DiffOp], old_lines: &[&'a str], new_lines: &[&'a str]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for op in hunk {
        let old = |sign| op.old_range().map(move |at| (sign, at, old_lines[at]));
        let new = |sign| op.new_range().map(move |at| (sign, at, new_lines[at]));
        if is_equal(op) {
            rows.extend(old(' '));
        } else {
            rows.extend(old('-'));
            rows.extend(new('+'));
        }
    }
    rows
}

fn display(hunks: &[Vec<DiffOp>], old_lines: &[&str], new_lines: &[&str]) -> String {
    let width = old_lines.len().max(new_lines.len()).max(1).to_string().len();
    let gap = format!(" {:>width$} ...", "");
    let mut shown = Vec::new();
    let mut old_end = 0;
    for hunk in hunks {
        let Some(first) = hunk.first() else { continue };
        if first.old_range().start > old_end {
            shown.push(gap.clone());
        }
        for (sign, number, line) in rows(hunk, old_lines, new_lines) {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = excerpt(line, LINE_CHARS_MAX);
            shown.push(format!("{sign}{:>width$} {line}", number + 1));
        }
        old_end = hunk.last().map_or(old_end, |op| op.old_range().end);
    }
    if old_end < old_lines.len() {
        shown.push(gap.clone());
    }
    if shown.len() > ROWS_MAX {
        shown.truncate(ROWS_MAX);
        shown.push(gap);
    }
    shown.join("\n")
}

fn patch(hunks: &[Vec<DiffOp>], old_lines: &[&str], new_lines: &[&str], path: &str) -> String {
    let mut text = format!("--- {path}\n+++ {path}\n");
    for hunk in hunks {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        text.push_str(&format!("@@ -{} +{} @@\n", span(&old), span(&new)));
        for (sign, _, line) in rows(hunk, old_lines, new_lines) {
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
        if text.len() > PATCH_BYTES_MAX {
            return String::new();
        }
    }
    text
}

/// Start and length; an empty range names the line before it.
fn span(range: &Range<usize>) -> String {
    let start = range.start + usize::from(!range.is_empty());
    format!("{start},{}", range.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(old: &str, changes: &[(&str, &str)]) -> Diff {
        let splices: Vec<Splice> = changes
            .iter()
            .map(|(part, text)| {
                let at = old.find(part).unwrap();
                Splice { range: at..at + part.len(), text: (*text).to_owned() }
            })
            .collect();
        diff(old, &splices, "f.txt")
    }

    fn numbered(lines: usize) -> String {
        (1..=lines).map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn a_changed_line_stands_among_four_lines_on_each_side() {
        // host.md 4.4.7
        let found = describe(&numbered(20), &[("line 10\n", "ten\nand more\n")]);
        let expected = "    ...\n  6 line 6\n  7 line 7\n  8 line 8\n  9 line 9\n-10 line 10\n\
            +10 ten\n+11 and more\n 11 line 11\n 12 line 12\n 13 line 13\n 14 line 14\n    ...";
        assert_eq!(found.display, expected);
        assert_eq!(found.first_changed_line, 10);
        assert!(found.patch.starts_with("--- f.txt\n+++ f.txt\n@@ -6,9 +6,10 @@\n line 6\n"));
    }

    #[test]
    fn far_changes_are_two_hunks_and_near_ones_one() {
        let found = describe(&numbered(40), &[("line 3\n", ""), ("line 30\n", "thirty\n")]);
        assert_eq!(found.patch.matches("@@ -").count(), 2);
        assert!(found.patch.contains("@@ -26,9 +25,9 @@"), "{}", found.patch);
        assert_eq!(found.first_changed_line, 3);
        let found = describe(&numbered(40), &[("line 3\n", ""), ("line 9\n", "nine\n")]);
        assert_eq!(found.patch.matches("@@ -").count(), 1);
    }

    #[test]
    fn two_changes_in_one_line_are_one_row() {
        let found = describe("a b c\n", &[("a", "A"), ("c", "C")]);
        assert_eq!(found.display, "-1 a b c\n+1 A b C");
    }

    #[test]
    fn a_missing_last_line_feed_is_marked() {
        let found = describe("a\nb", &[("b", "c")]);
        let end = "-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n";
        assert!(found.patch.ends_with(end), "{}", found.patch);
        let found = describe("a\n", &[("a\n", "")]);
        assert_eq!(found.patch, "--- f.txt\n+++ f.txt\n@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(found.first_changed_line, 1);
    }

    #[test]
    fn a_huge_line_is_cut_in_the_display_and_the_patch_left_out() {
        // host.md 11.76
        let line = format!("{}END", "x".repeat(1 << 20));
        let found = describe(&line, &[("END", "end")]);
        assert!(found.display.len() < 10_000);
        assert_eq!(found.patch, "");
    }
}
