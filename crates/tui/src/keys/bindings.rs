//! Which key does what: the defaults with what `keybindings.json` says
//! (`host.md` 8.7, TERM-19).
//!
//! Built once when the file was read and only looked up afterwards. Never binds
//! the leader Ctrl+X nor Ctrl+\, which work whatever the file says.

use std::collections::BTreeMap;

use super::action::{ACTIONS, Action, Context, Known, OF_PI};
use super::{Code, Key};

/// Keys that no file can bind.
const FIXED: [Key; 2] = [Key::ctrl('x'), Key::ctrl('\\')];

/// Unknown ids that are named.
const UNKNOWN_MAX: usize = 8;

/// Keys and actions in force.
#[derive(Clone, Debug)]
pub struct Bindings {
    /// What a key does; nothing for one that was taken from its action.
    meanings: BTreeMap<(Context, Key), Option<Action>>,
    /// Keys of each action, in the order of their names.
    keys: BTreeMap<Action, Vec<Key>>,
}

impl Default for Bindings {
    fn default() -> Bindings {
        Bindings::new(&[], false).0
    }
}

impl Bindings {
    /// The keys by what a file says: action ids, each with the keys that take
    /// the place of its own. `of_pi` is `crew.keys: "pi"`. Also what is wrong
    /// with the file, one sentence each; what is wrong changes nothing.
    pub fn new(file: &[(String, Vec<String>)], of_pi: bool) -> (Bindings, Vec<String>) {
        let mut problems = Vec::new();
        let own = own_keys(file, &mut problems);
        let mut bindings = Bindings { meanings: BTreeMap::new(), keys: BTreeMap::new() };
        for (known, keys) in &own {
            bindings.bind(known, keys, &mut problems);
        }
        for known in ACTIONS {
            let keys = keys(defaults(known, of_pi));
            if own.iter().any(|(other, _)| other.action == known.action) {
                bindings.unbind(known, &keys);
            } else {
                bindings.bind(known, &keys, &mut problems);
            }
        }
        (bindings, problems)
    }

    /// Binds the keys that nothing has bound before.
    fn bind(&mut self, known: &Known, keys: &[Key], problems: &mut Vec<String>) {
        for key in keys {
            let mut is_taken = false;
            for context in known.contexts {
                let meaning = self.meanings.entry((*context, *key)).or_insert(None);
                match *meaning {
                    Some(other) if other != known.action => {
                        is_taken = true;
                        let told = format!("{key} does {} and not {}", id(other), known.id);
                        if !problems.contains(&told) {
                            problems.push(told);
                        }
                    }
                    Some(_) | None => *meaning = Some(known.action),
                }
            }
            let named = self.keys.entry(known.action).or_default();
            if !is_taken && !named.contains(key) {
                named.push(*key);
            }
        }
    }

    /// Keys of an action that the file gave others do nothing by themselves.
    fn unbind(&mut self, known: &Known, keys: &[Key]) {
        for key in keys {
            for context in known.contexts {
                self.meanings.entry((*context, *key)).or_insert(None);
            }
        }
    }

    /// What a key does in a place.
    pub(crate) fn find(&self, context: Context, key: Key) -> Option<Action> {
        let key = key.normal();
        if let Some(meaning) = self.meanings.get(&(context, key)) {
            return *meaning;
        }
        // Modifiers that nothing is bound to change nothing.
        if key.shift {
            return self.find(context, Key { shift: false, ..key });
        }
        let is_character = matches!(key.code, Code::Char(_));
        if (key.ctrl || key.alt) && !is_character {
            return self.find(context, Key::plain(key.code));
        }
        None
    }

    /// The first key of an action.
    pub(crate) fn key(&self, action: Action) -> Option<Key> {
        self.keys.get(&action)?.first().copied()
    }

    /// All keys of an action, as words.
    pub(crate) fn all(&self, action: Action) -> impl Iterator<Item = String> {
        self.keys.get(&action).into_iter().flatten().map(Key::to_string)
    }

    /// The same for places where letters are keys: a capital stands for itself.
    pub(crate) fn letter_hint(&self, action: Action, what: &str) -> Option<String> {
        match self.key(action)?.typed() {
            Some(c) if c != ' ' => Some(format!("{c} {what}")),
            Some(_) | None => self.hint(action, what),
        }
    }

    /// A hint with the key of an action in front; nothing without a key.
    pub(crate) fn hint(&self, action: Action, what: &str) -> Option<String> {
        self.key(action).map(|key| format!("{key} {what}"))
    }
}

/// The lines of a file that can be used, in the order of the file. A line whose
/// keys are all wrong is as if it were not there.
fn own_keys(
    file: &[(String, Vec<String>)],
    problems: &mut Vec<String>,
) -> Vec<(&'static Known, Vec<Key>)> {
    let mut own: Vec<(&'static Known, Vec<Key>)> = Vec::new();
    let mut unknown = Vec::new();
    for (id, texts) in file {
        let Some(known) = ACTIONS.iter().find(|known| known.id == id || is_old(known, id)) else {
            unknown.push(crew_base::text::sanitise_inline(id));
            continue;
        };
        // The new name of an action wins over the old one.
        if known.id != id && file.iter().any(|(other, _)| other == known.id) {
            continue;
        }
        let mut keys = Vec::new();
        for text in texts {
            match Key::named(text) {
                Ok(key) if FIXED.contains(&Key { shift: false, ..key }) => {
                    problems
                        .push(format!("{id}: {key} cannot be bound, it always stays what it is"));
                }
                Ok(key) => keys.push(key),
                Err(wrong) => {
                    let text = crew_base::text::sanitise_inline(text);
                    problems.push(format!("{id}: the key \"{text}\" is not used: {wrong}"));
                }
            }
        }
        if texts.is_empty() || !keys.is_empty() {
            own.push((known, keys));
        }
    }
    if !unknown.is_empty() {
        let actions = if unknown.len() == 1 { "action" } else { "actions" };
        let more = match unknown.len().saturating_sub(UNKNOWN_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        unknown.truncate(UNKNOWN_MAX);
        problems.push(format!("no {actions} here: {}{more}", unknown.join(", ")));
    }
    own
}

fn is_old(known: &Known, id: &str) -> bool {
    !known.old.is_empty() && known.old == id
}

fn id(action: Action) -> &'static str {
    ACTIONS.iter().find(|known| known.action == action).map_or("", |known| known.id)
}

fn defaults(known: &Known, of_pi: bool) -> &'static str {
    let pi = OF_PI.iter().find(|(action, _)| of_pi && *action == known.action);
    pi.map_or(known.keys, |(_, keys)| keys)
}

fn keys(texts: &str) -> Vec<Key> {
    texts.split_whitespace().filter_map(|text| Key::named(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(lines: &[(&str, &[&str])], of_pi: bool) -> (Bindings, Vec<String>) {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let lines: Vec<_> =
            lines.iter().map(|(id, keys)| ((*id).to_owned(), owned(keys))).collect();
        Bindings::new(&lines, of_pi)
    }

    /// What the keys do in the editor, with a file, and what is told.
    fn check(lines: &[(&str, &[&str])], keys: &[(&str, Option<Action>)], told: &[&str]) {
        let (bindings, problems) = built(lines, false);
        for (key, action) in keys {
            let key = Key::named(key).unwrap();
            assert_eq!(bindings.find(Context::Editor, key), *action, "{key} of {lines:?}");
        }
        assert_eq!(problems, told, "{lines:?}");
    }

    // TERM-16 and the table: no default is wrong, none is claimed twice.
    #[test]
    fn the_defaults_are_keys_and_do_not_meet() {
        for of_pi in [false, true] {
            assert_eq!(built(&[], of_pi).1, Vec::<String>::new());
            for known in ACTIONS {
                let texts = defaults(known, of_pi).split_whitespace().count();
                assert_eq!(keys(defaults(known, of_pi)).len(), texts, "{}", known.id);
                assert!(keys(defaults(known, of_pi)).iter().all(|key| !FIXED.contains(key)));
            }
        }
        for (at, known) in ACTIONS.iter().enumerate() {
            let twins = ACTIONS[at + 1..].iter();
            assert!(
                twins.clone().all(|other| other.action != known.action && other.id != known.id)
            );
        }
    }

    #[test]
    fn the_manual_lists_every_action_with_its_keys() {
        let manual = include_str!("../../../../docs/terminal.md");
        for known in ACTIONS {
            let keys: Vec<_> = known.keys.split(' ').map(|key| format!("`{key}`")).collect();
            let keys = if known.keys.is_empty() { "–".to_owned() } else { keys.join(", ") };
            let row = format!("| `{}` | {keys} | ", known.id);
            assert!(manual.contains(&row), "{row}");
        }
    }

    // host.md 8.7.
    #[test]
    fn keys_of_the_file_take_the_place_of_the_defaults() {
        use Action::{KillBlankWord, Left, Redraw, Thoughts};
        let lines: &[(&str, &[&str])] = &[("app.thinking.toggle", &["alt+t", "f5"])];
        check(lines, &[("alt+t", Some(Thoughts)), ("f5", Some(Thoughts)), ("ctrl+t", None)], &[]);
        check(&[("crew.redraw", &[])], &[("ctrl+l", None)], &[]);
        check(&[("deleteWordBackward", &["alt+w"])], &[("alt+w", Some(KillBlankWord))], &[]);
        let both: &[(&str, &[&str])] =
            &[("tui.editor.cursorLeft", &["alt+h"]), ("cursorLeft", &["alt+g"])];
        check(both, &[("alt+h", Some(Left)), ("alt+g", None)], &[]);
        check(&[], &[("ctrl+l", Some(Redraw)), ("ctrl+home", Some(Action::LineStart))], &[]);
        // An unbound Alt+Up is not suddenly Up.
        check(&[("app.message.dequeue", &[])], &[("alt+up", None), ("up", Some(Action::Up))], &[]);
    }

    #[test]
    fn a_key_claimed_twice_goes_to_the_file_and_then_to_the_first() {
        use Action::{HistoryOlder, Redraw, Thoughts, Up};
        check(
            &[("tui.editor.cursorUp", &["up", "ctrl+p"])],
            &[("ctrl+p", Some(Up)), ("ctrl+n", Some(Action::HistoryNewer))],
            &["Ctrl+P does tui.editor.cursorUp and not crew.history.older"],
        );
        check(
            &[("crew.redraw", &["f2"]), ("app.thinking.toggle", &["f2", "f3"])],
            &[("f2", Some(Redraw)), ("f3", Some(Thoughts))],
            &["F2 does crew.redraw and not app.thinking.toggle"],
        );
        // Two that give way to each other are no conflict.
        check(
            &[("crew.redraw", &["ctrl+p"]), ("crew.history.older", &["ctrl+l"])],
            &[("ctrl+p", Some(Redraw)), ("ctrl+l", Some(HistoryOlder))],
            &[],
        );
        let (bindings, _) = built(&[("tui.editor.cursorUp", &["ctrl+p"])], false);
        assert_eq!(bindings.key(HistoryOlder), None);
        assert_eq!(bindings.find(Context::List, Key::ctrl('p')), Some(Action::SelectUp));
    }

    // TERM-19: the leader stays; what is wrong changes nothing and is told.
    #[test]
    fn what_cannot_be_bound_is_told() {
        use Action::{Redraw, Thoughts};
        check(
            &[("crew.redraw", &["ctrl+x"])],
            &[("ctrl+x", None), ("ctrl+l", Some(Redraw))],
            &["crew.redraw: Ctrl+X cannot be bound, it always stays what it is"],
        );
        check(
            &[("app.thinking.toggle", &["meta+t", "f7"])],
            &[("f7", Some(Thoughts)), ("ctrl+t", None)],
            &[
                "app.thinking.toggle: the key \"meta+t\" is not used: \"meta\" is none of ctrl, alt \
               and shift",
            ],
        );
        check(
            &[("app.fly", &["f1"]), ("crew.land\u{1b}", &["f2"])],
            &[("f1", Some(Action::Help)), ("f2", None)],
            &["no actions here: app.fly, crew.land"],
        );
    }

    // TERM-19.
    #[test]
    fn the_keys_of_pi_choose_models() {
        let (bindings, _) = built(&[], true);
        let find = |key: &str| bindings.find(Context::Editor, Key::named(key).unwrap());
        assert_eq!(find("ctrl+l"), Some(Action::ModelPicker));
        assert_eq!(find("ctrl+p"), Some(Action::NextModel));
        assert_eq!(find("ctrl+shift+p"), Some(Action::PreviousModel));
        assert_eq!(bindings.find(Context::List, Key::ctrl('p')), Some(Action::SelectUp));
    }
}
