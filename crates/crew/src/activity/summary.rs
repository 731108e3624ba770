//! What came of a tool call, in a few words.
//!
//! Owns the result summaries (`crew.md` ACT-20 to ACT-22). Must never quote
//! content: counts only. Read `activity` for when they are shown.

use crew_base::json::{Raw, from_text};
use crew_base::message::Block;
use serde_json::{Map, Value};

/// The summary that the arguments of `write` and `edit` tell (`crew.md`
/// ACT-20).
pub fn summary_at_start(tool: &str, arguments: &Raw) -> Option<String> {
    let is_write = tool.eq_ignore_ascii_case("write");
    if !is_write && !tool.eq_ignore_ascii_case("edit") {
        return None;
    }
    let arguments = arguments.value();
    let arguments = arguments.as_object()?;
    if is_write {
        let lines = line_count(arguments.get("content")?.as_str()?);
        return Some(format!("{} written", counted(lines, "line", "lines")));
    }
    let sizes = edit_sizes(arguments);
    if sizes.is_empty() {
        return None;
    }
    let added: usize = sizes.iter().map(|size| size.added).sum();
    let removed: usize = sizes.iter().map(|size| size.removed).sum();
    Some(format!("+{added} \u{2212}{removed} lines"))
}

/// The summary that the result of `read` and `grep` tells (`crew.md` ACT-21);
/// none for an image and for zero matches.
pub fn summary_at_end(tool: &str, result: &[Block]) -> Option<String> {
    let texts = || -> Vec<&str> { result.iter().filter_map(Block::as_text).collect() };
    if tool.eq_ignore_ascii_case("read") {
        // The text beside an image is a note about it.
        if result.iter().any(|block| matches!(block, Block::Image(_))) {
            return None;
        }
        return Some(counted(read_lines(&texts().join("\n")), "line", "lines"));
    }
    if tool.eq_ignore_ascii_case("grep") {
        let is_match = |line: &&str| is_grep_match(line);
        let matches = texts().iter().flat_map(|text| text.lines()).filter(is_match).count();
        return (matches > 0).then(|| counted(matches, "match", "matches"));
    }
    None
}

struct EditSize {
    added: usize,
    removed: usize,
}

/// Takes the accepted forms of `host.md` 4.4.1: a list, one object, either as
/// JSON text, and the two texts at the top.
fn edit_sizes(arguments: &Map<String, Value>) -> Vec<EditSize> {
    let mut sizes: Vec<EditSize> = edit_size(arguments).into_iter().collect();
    let Some(edits) = arguments.get("edits") else {
        return sizes;
    };
    let parsed: Option<Value> = edits.as_str().and_then(|text| from_text(text).ok());
    let edits = parsed.as_ref().unwrap_or(edits);
    if let Some(list) = edits.as_array() {
        sizes.extend(list.iter().filter_map(Value::as_object).filter_map(edit_size));
    } else {
        sizes.extend(edits.as_object().and_then(edit_size));
    }
    sizes
}

fn edit_size(edit: &Map<String, Value>) -> Option<EditSize> {
    Some(EditSize {
        added: line_count(edit.get("newText")?.as_str()?),
        removed: line_count(edit.get("oldText")?.as_str()?),
    })
}

fn line_count(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Lines without a trailing marker about further lines and trailing blank ones.
fn read_lines(text: &str) -> usize {
    let text = text.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let above = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    if crew_base::text::is_blank(above) && is_marker(last) {
        line_count(before.trim_end())
    } else {
        line_count(text)
    }
}

/// The notes of `host.md` 4.2.2 and 4.2.3 stand in brackets and give a line
/// number or an offset.
fn is_marker(line: &str) -> bool {
    let Some(note) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return false;
    };
    let note = note.to_lowercase();
    note.contains(|c: char| c.is_ascii_digit())
        && (note.contains("line") || note.contains("offset"))
}

/// Whether the first line number of a `grep` line stands between colons; that
/// of a context line stands between hyphens (`host.md` 4.6.3).
fn is_grep_match(line: &str) -> bool {
    let bytes = line.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        let mark = bytes[at];
        at += 1;
        if !matches!(mark, b':' | b'-') {
            continue;
        }
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        at += digits;
        let is_closed = bytes.get(at) == Some(&mark);
        if digits > 0 && is_closed && matches!(bytes.get(at + 1), None | Some(b' ')) {
            return mark == b':';
        }
    }
    false
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::message::ImageBlock;
    use serde_json::json;

    fn at_start(tool: &str, arguments: Value) -> Option<String> {
        summary_at_start(tool, &Raw::of(&arguments))
    }

    fn at_end(tool: &str, text: &str) -> Option<String> {
        summary_at_end(tool, &[Block::text(text)])
    }

    // ACT-20, ACT-22.
    #[test]
    fn a_write_tells_its_lines() {
        let check = |content: &str, expected: &str| {
            let arguments = json!({"path": "p", "content": content});
            assert_eq!(at_start("write", arguments).as_deref(), Some(expected), "{content:?}");
        };
        check("", "0 lines written");
        check("a", "1 line written");
        check("a\n", "1 line written");
        check("a\r\n", "1 line written");
        check("a\r\nb", "2 lines written");
        check("a\n\n", "2 lines written");
        check("\n", "1 line written");
        assert_eq!(at_start("Write", json!({"content": "a"})).as_deref(), Some("1 line written"));
        assert_eq!(at_start("write", json!({"path": "p"})), None);
        assert_eq!(at_start("write", json!({"content": 5})), None);
        assert_eq!(at_start("write", json!("text")), None);
        assert_eq!(at_start("other", json!({"content": "a"})), None);
    }

    // ACT-20; the forms of host.md 4.4.1.
    #[test]
    fn an_edit_tells_lines_added_and_removed() {
        let check = |arguments: Value, expected: Option<&str>| {
            assert_eq!(at_start("edit", arguments).as_deref(), expected);
        };
        let one = json!({"oldText": "a\nb\n", "newText": "c"});
        let two = json!({"oldText": "", "newText": "x\r\ny\r\n"});
        check(json!({"edits": [one, two]}), Some("+3 \u{2212}2 lines"));
        check(json!({"edits": [one, {"oldText": "z"}, 7]}), Some("+1 \u{2212}2 lines"));
        check(json!({"edits": one}), Some("+1 \u{2212}2 lines"));
        check(json!({"edits": json!([one, two]).to_string()}), Some("+3 \u{2212}2 lines"));
        check(json!({"oldText": "a", "newText": "", "edits": [two]}), Some("+2 \u{2212}1 lines"));
        check(json!({"edits": [{"newText": "z"}]}), None);
        check(json!({"edits": "no json"}), None);
        check(json!({}), None);
        check(json!([]), None);
    }

    // ACT-21, ACT-22.
    #[test]
    fn a_read_tells_lines_without_blank_end_and_marker() {
        let check = |text: &str, expected: &str| {
            assert_eq!(at_end("READ", text).as_deref(), Some(expected), "{text:?}");
        };
        check("", "0 lines");
        check("\n\n", "0 lines");
        check("a", "1 line");
        check("a\n", "1 line");
        check("a\r\nb\r\n \r\n\n", "2 lines");
        check("\n\na", "3 lines");
        check("a\nb\n\n[Lines 1-2 of 90 shown, go on with offset 3]", "2 lines");
        check("a\n\n\n[7 more lines; next offset=4]\n", "1 line");
        check("[Line 1 is 60.0KB, over the limit]", "0 lines");
        check("a\n[line 2]", "2 lines");
        check("a\n\n[section]", "3 lines");
    }

    // ACT-21.
    #[test]
    fn an_image_has_no_line_count() {
        let image =
            Block::Image(ImageBlock { data: "AA==".to_owned(), mime_type: "image/png".to_owned() });
        assert_eq!(summary_at_end("read", &[Block::text("image/png"), image]), None);
        assert_eq!(summary_at_end("read", &[]).as_deref(), Some("0 lines"));
    }

    // ACT-21, ACT-22.
    #[test]
    fn a_grep_counts_matches_not_context() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(at_end("grep", text).as_deref(), expected, "{text:?}");
        };
        check("src/a.rs:3: let x", Some("1 match"));
        check("a:1: x\na-2- y\na:3: \nb:4:\n", Some("3 matches"));
        check("a-12- see b:3: here", None);
        check("my-2-file.rs:3: x", Some("1 match"));
        check("a:1: x-2- y", Some("1 match"));
        check("No match", None);
        check("", None);
        check(":3: x", None);
        check("a:: x\na:b: x\na:3x: y\ntime 12:30:45 h", None);
        check("a:1: x\n\n[100 matches shown: raise the limit]", Some("1 match"));
        check("é:1: x", Some("1 match"));
    }

    #[test]
    fn hostile_results_are_counted_in_one_pass() {
        for part in [":1", "-1-", ":::", "1", "[", "\n", "é:"] {
            let text = part.repeat(1_000_000 / part.len());
            assert!(at_end("read", &text).is_some());
            assert_eq!(at_end("grep", &text), None, "{part:?}");
        }
    }
}
