//! Finds what edits mean and builds the new bytes (`host.md` 4.4.2 to 4.4.6).
//! Pure: a view and edits in, bytes and the changed ranges out.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::fuzzy::fuzzy;
use super::view::{View, line_of, line_range, line_starts};
use crate::error::EditError;

/// Occurrences that are counted; an error says at most this many.
const COUNT_MAX: usize = 1000;
/// Time for comparing the lines of one edit; after it the result is coarser.
const COMPARE_TIME_MAX: Duration = Duration::from_millis(200);

/// One edit, its line breaks normalised.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) old: String,
    pub(super) new: String,
}

/// What is to be written.
pub(super) struct Plan {
    /// The new file.
    pub(super) bytes: Vec<u8>,
    /// How the view changes, in rising order.
    pub(super) splices: Vec<Splice>,
}

/// A range of the view and the text that replaces it.
#[derive(Debug)]
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// Where an edit applies.
struct Place {
    range: Range<usize>,
    /// Number of the edit.
    index: usize,
}

/// Applies all edits to the original text, or none.
pub(super) fn plan(view: &View<'_>, changes: &[Change]) -> Result<Plan, EditError> {
    if changes.is_empty() {
        return Err(EditError::None);
    }
    let loose = fuzzy(&view.text);
    let (places, is_loose) = locate(&view.text, &loose, changes)?;
    let plan = if is_loose {
        rewrite_lines(view, &loose, &places, changes)?
    } else {
        replace(view, &places, changes)
    };
    if plan.bytes == view.bytes {
        return Err(EditError::Unchanged);
    }
    Ok(plan)
}

/// Places in the exact text, or all in the loose one when any edit needs it.
fn locate(exact: &str, loose: &str, changes: &[Change]) -> Result<(Vec<Place>, bool), EditError> {
    let mut found = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let index = (changes.len() > 1).then_some(number);
        if change.old.is_empty() {
            return Err(EditError::Empty { index });
        }
        let in_exact = occurrences(exact, &change.old);
        let in_loose = occurrences(loose, &fuzzy(&change.old));
        // Always counted in the loose text too, so that a text that looks the
        // same elsewhere is never taken for unique.
        let count = in_exact.0.max(in_loose.0);
        if count > 1 {
            return Err(EditError::Ambiguous { index, count });
        }
        if count == 0 {
            let line = nearest_line(exact, &change.old);
            return Err(EditError::NotFound { index, line });
        }
        found.push((in_exact.1, in_loose.1));
    }
    let is_loose = found.iter().any(|(in_exact, _)| in_exact.is_none());
    let mut places = Vec::new();
    for (number, (in_exact, in_loose)) in found.into_iter().enumerate() {
        let Some(range) = (if is_loose { in_loose } else { in_exact }) else {
            let index = (changes.len() > 1).then_some(number);
            return Err(EditError::NotFound { index, line: None });
        };
        places.push(Place { range, index: number });
    }
    places.sort_by_key(|place| place.range.start);
    for pair in places.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            return Err(EditError::Overlap { first: pair[0].index, second: pair[1].index });
        }
    }
    Ok((places, is_loose))
}

/// How often a text occurs, overlapping ones included, and where first.
fn occurrences(text: &str, needle: &str) -> (usize, Option<Range<usize>>) {
    let Some(step) = needle.chars().next().map(char::len_utf8) else {
        return (0, None);
    };
    let mut count = 0;
    let mut first = None;
    let mut from = 0;
    while count < COUNT_MAX
        && let Some(at) = text[from..].find(needle).map(|at| at + from)
    {
        count += 1;
        first.get_or_insert(at..at + needle.len());
        from = at + step;
    }
    (count, first)
}

/// A hint for what was not found: where its first line with words stands.
fn nearest_line(text: &str, old: &str) -> Option<usize> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    if old.trim() == wanted {
        return None;
    }
    let mut lines = text.lines().enumerate();
    let (number, _) = lines.find(|(_, line)| line.trim() == wanted)?;
    Some(number + 1)
}

/// Puts bytes together. Invariant: a lone CR that was kept and a line feed
/// that now follows it stay two line breaks (`host.md` 4.4.6).
#[derive(Default)]
struct Assembly(Vec<u8>);

impl Assembly {
    fn add(&mut self, bytes: &[u8]) {
        if self.0.ends_with(b"\r") && bytes.starts_with(b"\n") {
            self.0.push(b'\r');
        }
        self.0.extend_from_slice(bytes);
    }
}

/// Replaces exact matches. Lines that an edit only repeats keep their bytes.
fn replace(view: &View<'_>, places: &[Place], changes: &[Change]) -> Plan {
    let mut out = Assembly::default();
    let mut splices = Vec::new();
    let mut at = 0;
    for place in places {
        let ending = view.ending_at(place.range.start);
        let new = &changes[place.index].new;
        for (old_part, new_part) in differing(&view.text[place.range.clone()], new) {
            let base = place.range.start;
            let range = base + old_part.start..base + old_part.end;
            let text = &new[new_part];
            out.add(&view.bytes[at..view.byte(range.start)]);
            out.add(text.replace('\n', ending).as_bytes());
            at = view.byte(range.end);
            let text = text.to_owned();
            splices.push(Splice { range, text });
        }
    }
    out.add(&view.bytes[at..]);
    Plan { bytes: out.0, splices }
}

/// The ranges in which two texts differ: by lines, then without the characters
/// that both have at the start and at the end.
fn differing(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let deadline = Some(Instant::now() + COMPARE_TIME_MAX);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, deadline);
    let (old_at, new_at) = (offsets(&old_lines), offsets(&new_lines));
    let mut parts = Vec::new();
    for op in ops {
        if let DiffOp::Equal { .. } = op {
            continue;
        }
        let (a, b) = (op.old_range(), op.new_range());
        let a = old_at[a.start]..old_at[a.end];
        let b = new_at[b.start]..new_at[b.end];
        let (start, end) = common(&old[a.clone()], &new[b.clone()]);
        let part = (a.start + start..a.end - end, b.start + start..b.end - end);
        if !(part.0.is_empty() && part.1.is_empty()) {
            parts.push(part);
        }
    }
    parts
}

fn offsets(lines: &[&str]) -> Vec<usize> {
    let mut at = 0;
    let ends = lines.iter().map(|line| {
        at += line.len();
        at
    });
    std::iter::once(0).chain(ends).collect()
}

/// Lengths of what two texts have in common at the start and at the end.
fn common(a: &str, b: &str) -> (usize, usize) {
    let same = |(x, y): &(char, char)| x == y;
    let width = |(c, _): (char, char)| c.len_utf8();
    let start = a.chars().zip(b.chars()).take_while(same).map(width).sum();
    let (a, b) = (&a[start..], &b[start..]);
    let both = a.chars().rev().zip(b.chars().rev());
    (start, both.take_while(same).map(width).sum())
}

/// Lines that belong together because loose matches touch them.
struct Group {
    lines: Range<usize>,
    /// The line feed of the last line belongs to a match.
    takes_end: bool,
    places: Range<usize>,
}

/// Rewrites the lines that loose matches touch from the loose text; all other
/// lines keep their bytes (`host.md` 4.4.5).
fn rewrite_lines(
    view: &View<'_>,
    loose: &str,
    places: &[Place],
    changes: &[Change],
) -> Result<Plan, EditError> {
    let starts = line_starts(loose);
    let mut out = Assembly::default();
    let mut splices = Vec::new();
    let mut at = 0;
    for group in groups(loose, &starts, places) {
        let last = group.lines.end - 1;
        let first_start = view.line(group.lines.start).start;
        let feed = usize::from(!group.takes_end && !view.terminator(last).is_empty());
        let range = first_start..view.line(last).end - feed;
        if std::str::from_utf8(view.bytes_of(range.clone())).is_err() {
            let line = group.lines.start + 1;
            return Err(EditError::NotText { line });
        }
        out.add(&view.bytes[at..view.byte(range.start)]);
        at = view.byte(range.end);
        let loose_end = line_range(&starts, last, loose.len()).end - feed;
        let mut position = starts[group.lines.start];
        let mut text = String::new();
        for place in &places[group.places] {
            let kept = position..place.range.start;
            keep(&mut out, view, &loose[kept.clone()], line_of(&starts, kept.start));
            text.push_str(&loose[kept]);
            let new = &changes[place.index].new;
            let line = line_of(&starts, place.range.start);
            let ending = view.ending_at(view.line(line).start);
            out.add(new.replace('\n', ending).as_bytes());
            text.push_str(new);
            position = place.range.end;
        }
        keep(&mut out, view, &loose[position..loose_end], last);
        text.push_str(&loose[position..loose_end]);
        splices.push(Splice { range, text });
    }
    out.add(&view.bytes[at..]);
    Ok(Plan { bytes: out.0, splices })
}

fn groups(loose: &str, starts: &[usize], places: &[Place]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let first = line_of(starts, place.range.start);
        let last = line_of(starts, place.range.end - 1);
        let takes_end = loose.as_bytes()[place.range.end - 1] == b'\n';
        match groups.last_mut() {
            Some(group) if first < group.lines.end => {
                group.lines.end = last + 1;
                group.takes_end = takes_end;
                group.places.end = number + 1;
            }
            Some(_) | None => {
                groups.push(Group { lines: first..last + 1, takes_end, places: number..number + 1 })
            }
        }
    }
    groups
}

/// Adds loose text whose line breaks were not matched, with their own bytes.
fn keep(out: &mut Assembly, view: &View<'_>, text: &str, first_line: usize) {
    for (number, line) in text.split_inclusive('\n').enumerate() {
        match line.strip_suffix('\n') {
            Some(bare) => {
                out.add(bare.as_bytes());
                out.add(view.terminator(first_line + number));
            }
            None => out.add(line.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(bytes: &[u8], edits: &[(&str, &str)]) -> Result<Vec<u8>, EditError> {
        let changes: Vec<Change> = edits
            .iter()
            .map(|(old, new)| Change { old: (*old).to_owned(), new: (*new).to_owned() })
            .collect();
        let view = View::of(bytes);
        let plan = plan(&view, &changes)?;
        let mut text = view.text.clone();
        for splice in plan.splices.iter().rev() {
            text.replace_range(splice.range.clone(), &splice.text);
        }
        assert_eq!(View::of(&plan.bytes).text, text, "view and bytes agree");
        Ok(plan.bytes)
    }

    fn check(bytes: &[u8], edits: &[(&str, &str)], expected: &[u8]) {
        let result = edit(bytes, edits).unwrap();
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(show(&result), show(expected));
        assert_eq!(result, expected);
    }

    #[test]
    fn untouched_text_keeps_its_bytes() {
        // host.md 4.4.6, 11.71, 11.72, C134
        check(b"a\r\nb\nc\rd\r\ne", &[("c", "C")], b"a\r\nb\nC\rd\r\ne");
        check(
            b"\xef\xbb\xbfone\r\ntwo\r\n",
            &[("one\ntwo", "1\nx\n2")],
            b"\xef\xbb\xbf1\r\nx\r\n2\r\n",
        );
        check(b"a\r\nb\nc\n", &[("a\nb\nc", "a\nB\nc")], b"a\r\nB\nc\n");
        check(b"a\r\nb\nc\nd\r\n", &[("a\nb\nc\nd", "A\nb\nc\nD")], b"A\r\nb\nc\nD\r\n");
        check(b"x\xff y\nz", &[("z", "Z")], b"x\xff y\nZ");
        check(b"x\xff y\nz", &[("x\u{fffd} y", "x\u{fffd} Y")], b"x\xff Y\nz");
        check(b"last", &[("last", "last\nmore")], b"last\nmore");
        check(b"a\r\nlast", &[("last", "last\nmore")], b"a\r\nlast\r\nmore");
        check(b"a\rb\rc", &[("b", "b\nx")], b"a\rb\rx\rc");
    }

    #[test]
    fn a_seam_makes_no_new_line_break_of_two() {
        // host.md 4.4.6
        check(b"a\rX\nb", &[("X", "")], b"a\r\r\nb");
        check(b"a\rb\nc", &[("b", "\nb")], b"a\r\r\nb\nc");
        check(b"a\nb\rX", &[("X", "\n")], b"a\nb\r\r\n");
    }

    #[test]
    fn all_edits_match_the_original() {
        // host.md 4.4.2
        check(b"a\nb\n", &[("a", "b2"), ("b", "a2")], b"b2\na2\n");
        check(b"ab", &[("b", "2"), ("a", "1")], b"12");
    }

    #[test]
    fn typographic_variants_match_and_other_lines_stay() {
        // host.md 4.4.4, 4.4.5, 11.73
        let keep =
            |middle: &str| format!("keep \u{201c}this\u{201d}  \r\n{middle}keep\u{2014}that\n");
        let source = keep("say \u{201c}hello\u{201d} \u{2013} now\u{a0}  \n");
        let edits = [("say \"hello\" - now\n", "SAY\n")];
        check(source.as_bytes(), &edits, keep("SAY\n").as_bytes());
        let edits = [("\"hello\" - now", "'x'\ny")];
        check(source.as_bytes(), &edits, keep("say 'x'\ny\n").as_bytes());
        let wide = "\u{ff21}\u{ff22}\r\ncafe\u{301} au lait \r\nend \r\n";
        let edits = [("caf\u{e9}", "tea"), ("lait", "citron")];
        let expected = "\u{ff21}\u{ff22}\r\ntea au citron\r\nend \r\n";
        check(wide.as_bytes(), &edits, expected.as_bytes());
        let edits = [("AB\ncaf\u{e9}", "1\n2"), ("end", "END")];
        check(wide.as_bytes(), &edits, b"1\r\n2 au lait\r\nEND\r\n");
    }

    #[test]
    fn joining_two_lines_loosely_keeps_the_second() {
        let source = "it\u{2019}s\nnext\u{2014}one \n";
        check(source.as_bytes(), &[("it's\n", "X")], "Xnext\u{2014}one \n".as_bytes());
    }

    #[test]
    fn what_cannot_be_done_is_told() {
        // host.md 4.4.3, 11.74
        let file = b"aaa\nbbb\nccc\naaa\nx \xff y\n";
        let refuse = |edits: &[(&str, &str)]| edit(file, edits).unwrap_err();
        let index = None;
        assert_eq!(refuse(&[("zzz", "y")]), EditError::NotFound { index, line: None });
        assert_eq!(refuse(&[("aaa", "y")]), EditError::Ambiguous { index, count: 2 });
        assert_eq!(refuse(&[("", "y")]), EditError::Empty { index });
        assert_eq!(refuse(&[("bbb", "bbb")]), EditError::Unchanged);
        assert_eq!(refuse(&[]), EditError::None);
        let overlap = [("ccc", "2"), ("bbb\nccc", "1")];
        assert_eq!(refuse(&overlap), EditError::Overlap { first: 1, second: 0 });
        let index = Some(1);
        let line = Some(3);
        let edits = [("bbb", "B"), ("ccc\nnope", "x")];
        assert_eq!(refuse(&edits), EditError::NotFound { index, line });
        assert_eq!(
            refuse(&[("x \u{fffd} y\n\u{201c}", "q")]),
            EditError::NotFound { index: None, line: Some(5) }
        );
        assert_eq!(refuse(&[("x\u{a0}\u{fffd}", "q")]), EditError::NotText { line: 5 });
        let alike = "it's\nit\u{2019}s\n".as_bytes();
        let error = edit(alike, &[("it's", "x")]).unwrap_err();
        assert_eq!(error, EditError::Ambiguous { index: None, count: 2 });
        let error = edit(b"aaa", &[("aa", "x")]).unwrap_err();
        assert_eq!(error, EditError::Ambiguous { index: None, count: 2 });
    }

    #[test]
    fn a_line_of_many_megabytes_is_edited_quickly() {
        // host.md 11.76
        let mut file = "x".repeat(4 << 20).into_bytes();
        file.extend(b"needle");
        file.extend("y".repeat(4 << 20).into_bytes());
        let started = Instant::now();
        let result = edit(&file, &[("needle", "thread")]).unwrap();
        assert_eq!(result.len(), file.len());
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// C134: lines before and behind an edited word keep every byte.
        #[test]
        fn an_edit_of_one_word_changes_that_word_only(
            before in "([a-c \u{e9}\u{201c}]{0,4}(\r\n|\n|\r)){0,6}",
            after in "((\r\n|\n|\r)[a-c \u{e9}\u{2019}]{0,4}){0,6}",
            bom in any::<bool>(),
            new in "[d-f]{1,5}",
        ) {
            let bom = if bom { "\u{feff}" } else { "" };
            let file = format!("{bom}{before}WORD{after}");
            let expected = format!("{bom}{before}{new}{after}");
            let result = edit(file.as_bytes(), &[("WORD", &new)]).unwrap();
            prop_assert_eq!(result, expected.into_bytes());
        }

        /// Whatever is inserted or removed, the bytes read back as the text.
        #[test]
        fn bytes_and_text_agree_after_any_edit(
            file in "[ab\r\n\u{a0}]{0,12}Z[ab\r\n]{0,12}",
            old in "[ab\n]{0,2}Z[ab\n]{0,2}",
            new in "[ab\n]{0,4}",
        ) {
            // `edit` asserts the agreement; not found and unchanged are fine.
            let _ = edit(file.as_bytes(), &[(&old, &new)]);
        }
    }
}
