//! Tool lists and their deltas (`crew.md` 10.3). The form of deltas is our own
//! decision (OP-2), so parsing and merging live here alone.
//!
//! Pure; must never know where a list came from.

use std::fmt;

/// Something in a list that had no or a doubtful effect (`crew.md` CAT-28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeltaWarning {
    /// A tool was to be removed that is not in the list.
    Absent(String),
    /// A sign without a name; the entry as written.
    Nameless(String),
    /// The list both adds and removes the tool.
    Contradiction(String),
}

impl fmt::Display for DeltaWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeltaWarning::Absent(tool) => {
                write!(f, "\"-{tool}\" removes a tool that is not in the list at that point")
            }
            DeltaWarning::Nameless(entry) => write!(f, "\"{entry}\" names no tool; it is skipped"),
            DeltaWarning::Contradiction(tool) => {
                write!(f, "\"{tool}\" is both added and removed; the later entry counts")
            }
        }
    }
}

/// The tool list after `list` was applied to the `inherited` one (`crew.md`
/// CAT-24, CAT-25, CAT-27, CAT-29), with what was odd about it.
pub(super) fn resolve(inherited: &[String], list: &[String]) -> (Vec<String>, Vec<DeltaWarning>) {
    let entries: Vec<Entry<'_>> = list.iter().map(|text| Entry::parse(text)).collect();
    let resets = list.is_empty() || entries.iter().any(|e| matches!(e, Entry::Plain(_)));
    let mut tools: Vec<String> = if resets { Vec::new() } else { inherited.to_vec() };
    let mut warnings = Vec::new();
    for entry in &entries {
        if let Entry::Plain(name) = entry {
            add(&mut tools, name);
        }
    }
    for (at, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Plain(_) => {}
            Entry::Add(name) => add(&mut tools, name),
            Entry::Remove(name) => match tools.iter().position(|tool| tool == name) {
                Some(place) => drop(tools.remove(place)),
                None if *name == REPORT_TOOL => {}
                None => warnings.push(DeltaWarning::Absent((*name).to_owned())),
            },
            Entry::Nameless => warnings.push(DeltaWarning::Nameless(list[at].clone())),
        }
        if let Some(name) = entry.turns_round(&entries[..at]) {
            let warning = DeltaWarning::Contradiction(name.to_owned());
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    (tools, warnings)
}

/// Every child has it and no list decides about it (`crew.md` CAT-29, ISO-3).
const REPORT_TOOL: &str = "crew_report";

#[derive(Clone, Copy, PartialEq)]
enum Entry<'a> {
    Plain(&'a str),
    Add(&'a str),
    Remove(&'a str),
    Nameless,
}

impl<'a> Entry<'a> {
    fn parse(text: &'a str) -> Entry<'a> {
        let text = text.trim();
        let signed = |rest: &'a str, entry: fn(&'a str) -> Entry<'a>| match rest.trim_start() {
            "" => Entry::Nameless,
            name => entry(name),
        };
        if let Some(rest) = text.strip_prefix('+') {
            signed(rest, Entry::Add)
        } else if let Some(rest) = text.strip_prefix('-') {
            signed(rest, Entry::Remove)
        } else {
            Entry::Plain(text)
        }
    }

    /// The name, if an earlier entry has the opposite sign for it.
    fn turns_round(self, earlier: &[Entry<'_>]) -> Option<&'a str> {
        let (name, opposite) = match self {
            Entry::Add(name) => (name, Entry::Remove(name)),
            Entry::Remove(name) => (name, Entry::Add(name)),
            Entry::Plain(_) | Entry::Nameless => return None,
        };
        (name != REPORT_TOOL && earlier.contains(&opposite)).then_some(name)
    }
}

fn add(tools: &mut Vec<String>, name: &str) {
    if name != REPORT_TOOL && !tools.iter().any(|tool| tool == name) {
        tools.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn lists_reset_and_deltas_build_on_what_is_inherited() {
        let check = |inherited: &str, list: &[&str], expected: &str| {
            let list: Vec<String> = list.iter().map(|e| (*e).to_owned()).collect();
            let (tools, _) = resolve(&words(inherited), &list);
            assert_eq!(tools, words(expected), "{inherited} with {list:?}");
        };
        // CAT-25: a plain entry resets, plain entries come first, then signs.
        check("a b", &["read", "bash", "read"], "read bash");
        check("a b", &["+ls", "read", "-bash", "bash"], "read ls");
        check("a b", &[], "");
        // Rows 65 and 66.
        check("read bash", &["+grep"], "read bash grep");
        check("read bash grep", &["-bash"], "read grep");
        check("read bash grep", &["read", "+ls"], "read ls");
        // CAT-24: whitespace after the sign; CAT-27: places are kept.
        check("a b c", &["+ d", "-  b", "+a"], "a c d");
        check("a b", &["-a", "+a"], "b a");
        check("a", &["+x", "-x"], "a");
        // CAT-28: a sign alone is skipped and is no plain entry.
        check("a", &["+", "- "], "a");
        // CAT-29: neither granted nor removed, yet a list stays a list.
        check("a", &["+crew_report", "-crew_report"], "a");
        check("a", &["crew_report"], "");
        check("a", &["crew_report", "b"], "b");
        // CAT-22: any name will do.
        check("", &["mcp:db/query", "+_x"], "mcp:db/query _x");
    }

    #[test]
    fn doubtful_entries_are_told() {
        // CAT-28, row 67.
        let check = |inherited: &str, list: &str, expected: &[DeltaWarning]| {
            let (_, warnings) = resolve(&words(inherited), &words(list));
            assert_eq!(warnings, expected, "{inherited} with {list}");
        };
        let absent = |tool: &str| DeltaWarning::Absent(tool.into());
        let both = |tool: &str| DeltaWarning::Contradiction(tool.into());
        check("a", "-b", &[absent("b")]);
        check("a", "-a -a", &[absent("a")]);
        check("a", "b -a", &[absent("a")]);
        check("a", "+", &[DeltaWarning::Nameless("+".into())]);
        check("a", "-a +a", &[both("a")]);
        check("a", "+b -b +b", &[both("b")]);
        check("a", "-b +b", &[absent("b"), both("b")]);
        check("a", "+a", &[]);
        check("a", "b -b", &[]);
        check("a", "+crew_report -crew_report", &[]);
        check("a", "crew_report a a", &[]);
    }
}
