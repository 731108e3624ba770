//! What can be said of a text for certain: a listing of the top folder, and a
//! file as the tool `read` shows it.

use crew_base::text::{excerpt, sanitise_inline};

/// Entries of a folder, one sentence.
pub(super) fn folder(listing: &str) -> String {
    let is_entry = |line: &&str| {
        let is_note = line.starts_with('[') || line.starts_with('(') && line.ends_with(')');
        !is_note && !line.trim().is_empty()
    };
    let entries: Vec<_> = listing.lines().filter(is_entry).map(shown).collect();
    let (folders, files): (Vec<_>, Vec<_>) = entries.iter().partition(|name| name.ends_with('/'));
    if entries.is_empty() {
        return "it is empty".to_owned();
    }
    let part = |names: &[&String], one: &str, many: &str| match names {
        [] => format!("no {one}"),
        [name] => format!("one {one} ({name})"),
        names => {
            let some: Vec<_> = names.iter().take(NAMES_MAX).map(|name| name.as_str()).collect();
            let more = if names.len() > NAMES_MAX { ", …" } else { "" };
            format!("{} {many} ({}{more})", names.len(), some.join(", "))
        }
    };
    format!(
        "it holds {} and {}",
        part(&folders, "folder", "folders"),
        part(&files, "file", "files")
    )
}

/// A name for people: clean, short, in backquotes of its own only.
fn shown(name: &str) -> String {
    excerpt(&sanitise_inline(name).replace('`', "'"), NAME_CHARS_MAX)
}

/// What stands out in a file.
#[derive(Debug, PartialEq)]
pub(super) struct Look {
    pub(super) lines: usize,
    pub(super) blank: usize,
    /// Number and characters of the longest line; `None` without lines.
    pub(super) longest: Option<(usize, usize)>,
    /// Number of the first line that declares a test.
    pub(super) test: Option<usize>,
    /// How many lines are marked as unfinished, and the number of the first.
    pub(super) unfinished: Option<(usize, usize)>,
    /// Only the start of the file was shown.
    pub(super) is_cut: bool,
}

/// Looks at the text that `read` returned; `is_cut` says that a note about
/// more lines ends it.
pub(super) fn file(text: &str, is_cut: bool) -> Look {
    let body = match text {
        "[The file is empty.]" => "",
        // With nothing but the note, no line could be shown.
        text if is_cut => text.rfind("\n\n[").map_or("", |end| &text[..end]),
        text => text,
    };
    let numbered = || body.lines().enumerate().map(|(at, line)| (at + 1, line));
    let has = |line: &str, marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
    let unfinished = numbered().filter(|(_, line)| has(line, &UNFINISHED_MARKS));
    let widths = numbered().map(|(number, line)| (number, line.chars().count()));
    Look {
        lines: body.lines().count(),
        blank: numbered().filter(|(_, line)| line.trim().is_empty()).count(),
        // Of equal ones the first.
        longest: widths.max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0))),
        test: numbered().find(|(_, line)| has(line, &TEST_MARKS)).map(|(number, _)| number),
        unfinished: unfinished.clone().next().map(|(first, _)| (unfinished.count(), first)),
        is_cut,
    }
}

const NAMES_MAX: usize = 5;
const NAME_CHARS_MAX: usize = 40;
/// Marks of unfinished work, written so that they are none themselves.
const UNFINISHED_MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const TEST_MARKS: [&str; 6] =
    ["#[test]", "#[tokio::test", "def test_", "func Test", "@Test", "describe("];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_becomes_one_sentence() {
        let check = |listing: &str, expected: &str| assert_eq!(folder(listing), expected);
        check("(empty folder)", "it is empty");
        check("(no output)", "it is empty");
        check("src/\nREADME.md", "it holds one folder (src/) and one file (README.md)");
        check(
            "a\nb\nc\nd\ne\nf\n\n[Only 6 entries are shown, more exist.]",
            "it holds no folder and 6 files (a, b, c, d, e, …)",
        );
        check("x\u{1b}[31m`y\nz\u{7}/", "it holds one folder (z /) and one file (x'y)");
    }

    #[test]
    fn a_file_is_described_by_what_can_be_counted() {
        let look =
            file(concat!("fn a() {}\n\n#[test]\n// TO", "DO x\n// FIX", "ME\n1234567890\n"), false);
        assert_eq!((look.lines, look.blank, look.longest), (6, 1, Some((6, 10))));
        assert_eq!((look.test, look.unfinished), (Some(3), Some((2, 4))));
        let equal = file("ab\ncd", false);
        assert_eq!(equal.longest, Some((1, 2)));
        let empty = file("[The file is empty.]", false);
        assert_eq!((empty.lines, empty.longest), (0, None));
    }

    #[test]
    fn a_note_about_more_lines_is_no_line_of_the_file() {
        let look = file("a\nbb\n\n[Lines 1-2 of 9 are shown.]", true);
        assert_eq!((look.lines, look.longest, look.is_cut), (2, Some((2, 2)), true));
        assert_eq!(file("[Line 1 has 60KB, more than the limit.]", true).lines, 0);
        assert_eq!(file("[workspace]\n", false).lines, 1);
    }
}
