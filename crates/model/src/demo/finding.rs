//! The Markdown of reports: written by scripted children, read by the scripted
//! owner, who cannot know whether another model wrote it.

use crew_base::text::{excerpt, sanitise_inline};

use super::facts::is_plain;

/// A report in the sections of its role; an empty list reads `None`.
pub(super) fn report(sections: &[(&str, &[String])]) -> String {
    let section = |(title, items): &(&str, &[String])| {
        let lines: Vec<_> = items.iter().map(|item| format!("- {item}")).collect();
        let body = if lines.is_empty() { "None".to_owned() } else { lines.join("\n") };
        format!("## {title}\n\n{body}")
    };
    sections.iter().map(section).collect::<Vec<_>>().join("\n\n")
}

/// What a report found: the list under its heading "Findings", else every list
/// item, else its first lines. Clean, short, at most `lines_max`.
pub(super) fn findings(report: &str, lines_max: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut found = Vec::new();
    let mut is_inside = false;
    for line in report.lines() {
        let heading = line.trim_start_matches('#').trim().trim_matches('*');
        if line.starts_with('#') || line.starts_with("**") {
            is_inside = heading.eq_ignore_ascii_case("findings");
        }
        let Some(item) = line.trim_start().strip_prefix("- ") else { continue };
        let item = clean(item);
        if item.is_empty() {
            continue;
        }
        if is_inside {
            found.push(item.clone());
        }
        all.push(item);
    }
    let mut chosen = if found.is_empty() { all } else { found };
    if chosen.is_empty() {
        chosen = report.lines().map(clean).filter(|line| !line.is_empty()).collect();
    }
    chosen.truncate(lines_max);
    chosen
}

/// Foreign text as part of a line.
pub(super) fn clean(text: &str) -> String {
    excerpt(&sanitise_inline(text), LINE_CHARS_MAX)
}

/// Plain paths that stand in backquotes, in order.
pub(super) fn quoted_paths(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|path| is_plain(path)).map(str::to_owned).collect()
}

/// Words in backquotes, joined by commas.
pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

const LINE_CHARS_MAX: usize = 220;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_writes_the_owner_reads() {
        let items = ["Languages: Rust 3".to_owned(), "Entry points: `src/main.rs`".to_owned()];
        let text = report(&[("Scope", &["All".to_owned()]), ("Findings", &items), ("Gaps", &[])]);
        assert!(text.ends_with("## Gaps\n\nNone"), "{text}");
        assert_eq!(findings(&text, 5), items);
        assert_eq!(findings(&text, 1), items[..1]);
        assert_eq!(quoted_paths(&items[1]), ["src/main.rs"]);
    }

    #[test]
    fn reports_of_other_hands_give_their_items_or_first_lines() {
        let check = |text: &str, expected: &[&str]| assert_eq!(findings(text, 2), expected);
        check("**Findings**\n- a\n  - b\n**Gaps**\n- c", &["a", "b"]);
        check("- a\n- b\n- c", &["a", "b"]);
        check("one\n\n two\u{1b}[2J\nthree", &["one", "two"]);
        check("\n \n", &[]);
        assert_eq!(findings(&"x".repeat(9000), 9)[0].chars().count(), LINE_CHARS_MAX + 1);
        assert_eq!(quoted_paths("`../a` or `b c`, `d\u{7}` and `e"), ["b c", "e"]);
    }
}
