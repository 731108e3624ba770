//! Child ids: from names or made up, never repeated (TASK-SPAWN-16, OP-21).

use std::collections::BTreeSet;

use crew_base::id::Ids;
use crew_base::limits::TASK_NAME_CHARS_MAX;

/// The ids that one session's children have or had; letters of either case
/// are the same.
#[derive(Clone, Debug, Default)]
pub struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Marks ids as used, for instance those of files found.
    pub fn take<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        self.taken.extend(ids.into_iter().map(str::to_lowercase));
    }

    /// A fresh id; nested children carry the id of their parent in front.
    pub fn allocate(&mut self, ids: &mut Ids, name: Option<&str>, parent: Option<&str>) -> String {
        let base = name.map(sanitise).filter(|clean| !clean.is_empty());
        let base = base.unwrap_or_else(|| two_words(ids));
        let mut number = 1;
        loop {
            let own = numbered(&base, number);
            let id = parent.map_or_else(|| own.clone(), |parent| format!("{parent}.{own}"));
            if self.taken.insert(id.to_lowercase()) {
                return id;
            }
            number += 1;
        }
    }
}

fn numbered(base: &str, number: u32) -> String {
    if number == 1 {
        return base.to_owned();
    }
    let suffix = format!("-{number}");
    let room = TASK_NAME_CHARS_MAX.saturating_sub(suffix.len());
    let base: String = base.chars().take(room).collect();
    format!("{base}{suffix}")
}

/// Letters, digits, `_` and `-`; a run of anything else is one `-`.
fn sanitise(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut clean = String::new();
    for c in name.trim().chars() {
        if is_good(c) {
            clean.push(c);
        } else if !clean.ends_with('-') {
            clean.push('-');
        }
    }
    let cut: String = clean.trim_matches('-').chars().take(TASK_NAME_CHARS_MAX).collect();
    cut.trim_end_matches('-').to_owned()
}

fn two_words(ids: &mut Ids) -> String {
    let mut draw = |words: &[&'static str]| words[ids.below(words.len() as u64) as usize];
    let first = draw(&FIRST);
    format!("{first}{}", draw(&SECOND))
}

const FIRST: [&str; 24] = [
    "Amber", "Brisk", "Calm", "Clear", "Copper", "Deep", "Early", "Fair", "Fleet", "Golden",
    "Green", "Grey", "High", "Keen", "Light", "Long", "North", "Quiet", "Red", "Sharp", "Silver",
    "Still", "Swift", "Warm",
];

const SECOND: [&str; 24] = [
    "Anchor", "Beacon", "Bridge", "Canvas", "Compass", "Current", "Delta", "Ferry", "Harbour",
    "Helm", "Island", "Keel", "Lantern", "Ledger", "Mast", "Meadow", "Oar", "Pilot", "Quarry",
    "River", "Rudder", "Sail", "Summit", "Tide",
];

#[cfg(test)]
mod tests {
    use super::*;

    // TASK-SPAWN-16, OP-21.
    #[test]
    fn names_become_ids() {
        let check = |name: &str, expected: &str| {
            assert_eq!(Names::default().allocate(&mut Ids::new(1), Some(name), None), expected);
        };
        check("Re view/../ä!", "Re-view");
        check(" W ", "W");
        check("a.b", "a-b");
        check(&"x".repeat(80), &"x".repeat(48));
        check("_-x", "_-x");
    }

    #[test]
    fn repeats_get_numbers_whatever_their_case() {
        let mut names = Names::default();
        let mut ids = Ids::new(1);
        names.take(["found"]);
        assert_eq!(names.allocate(&mut ids, Some("W"), None), "W");
        assert_eq!(names.allocate(&mut ids, Some("w"), None), "w-2");
        assert_eq!(names.allocate(&mut ids, Some("W"), None), "W-3");
        assert_eq!(names.allocate(&mut ids, Some("Found"), None), "Found-2");
        assert_eq!(names.allocate(&mut ids, Some("Low"), Some("kid")), "kid.Low");
        let long = "x".repeat(48);
        names.allocate(&mut ids, Some(&long), None);
        assert_eq!(names.allocate(&mut ids, Some(&long), None), format!("{}-2", "x".repeat(46)));
    }

    #[test]
    fn without_a_name_two_words_are_drawn() {
        let mut names = Names::default();
        let mut ids = Ids::new(1);
        let mut seen = BTreeSet::new();
        for _ in 0..700 {
            let id = names.allocate(&mut ids, Some("!!"), None);
            assert!(id.len() <= TASK_NAME_CHARS_MAX && sanitise(&id) == id, "{id}");
            assert!(seen.insert(id));
        }
    }
}
