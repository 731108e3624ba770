//! Completion menus: commands, files, `@crew:` mentions (`host.md` 8.11,
//! `crew.md` MEN-9, MEN-10).

use super::View;
use super::full::list::fuzzy;
use crate::editor::Editor;
use crate::request::Request;

/// An open menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// What is offered.
    pub offers: Vec<Offer>,
    /// The chosen offer.
    pub at: usize,
    /// First offer that is shown.
    pub top: usize,
    /// Where the completed word begins in the buffer.
    from: usize,
    /// Whether Enter runs what was chosen.
    pub runs: bool,
    /// Whether Enter takes an offer only after one was chosen: arguments are
    /// otherwise taken as typed.
    pub is_quiet: bool,
    /// Whether the person chose.
    pub is_chosen: bool,
}

/// One offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What is inserted.
    pub insert: String,
    /// What is shown.
    pub label: String,
    /// What it is.
    pub hint: String,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// A command at the start.
    Command(String),
    /// An argument of a command.
    Argument(&'static str, String),
    /// A mention of a subagent.
    Agent(String),
    /// A file.
    File(String),
}

impl Menu {
    /// Moves the choice; it stays on the screen.
    pub fn step(&mut self, by: isize, rows: usize) {
        let last = self.offers.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.is_chosen |= by != 0;
        if self.at < self.top {
            self.top = self.at;
        } else if self.at >= self.top + rows {
            self.top = self.at + 1 - rows;
        }
    }
}

impl View {
    /// Opens, changes or closes the menu after the draft changed.
    pub(super) fn complete(&mut self) {
        let Some((from, word)) = word(&self.editor) else {
            self.close_menu();
            return;
        };
        let offers = match &word {
            Word::Command(query) => self.commands(query),
            Word::Argument(command, query) => self.arguments(command, query),
            Word::Agent(query) => self.agents(query),
            Word::File(query) => {
                self.ask_files(query, from, false);
                return;
            }
        };
        let runs = matches!(word, Word::Command(_) | Word::Argument(..));
        self.open_menu(offers, from, runs);
        if let (Word::Argument(..), Some(menu)) = (&word, &mut self.menu) {
            menu.is_quiet = true;
        }
    }

    fn open_menu(&mut self, offers: Vec<Offer>, from: usize, runs: bool) {
        if offers.is_empty() {
            self.menu = None;
            return;
        }
        let at = match &self.menu {
            Some(menu) if menu.from == from => {
                let chosen = menu.offers.get(menu.at).map(|offer| offer.insert.clone());
                offers.iter().position(|offer| Some(&offer.insert) == chosen.as_ref()).unwrap_or(0)
            }
            Some(_) | None => 0,
        };
        let is_chosen = at > 0;
        let mut menu = Menu { offers, at, top: 0, from, runs, is_quiet: false, is_chosen };
        menu.step(0, self.setup.menu_rows);
        self.menu = Some(menu);
    }

    /// Closes the menu and forgets the question for files.
    pub(super) fn close_menu(&mut self) {
        self.menu = None;
        self.files.query = None;
    }

    /// Takes what was chosen; tells whether it is to be run.
    pub(super) fn accept(&mut self) -> bool {
        let Some(menu) = self.menu.take() else { return false };
        let Some(offer) = menu.offers.get(menu.at) else { return false };
        let to = self.editor.cursor();
        self.editor.replace(menu.from, to, &offer.insert);
        self.files.query = None;
        if offer.insert.ends_with('/') && offer.insert.starts_with('@') {
            // A folder: its content is offered next.
            self.complete();
        }
        menu.runs
    }

    /// Completes the path before the cursor (Tab).
    pub(super) fn complete_path(&mut self) {
        let before = &self.editor.buffer()[..self.editor.cursor()];
        let from = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = before[from..].to_owned();
        if let Some(query) = word.strip_prefix('@') {
            let query = query.to_owned();
            self.ask_files(&query, from, false);
        } else {
            self.ask_files(&word, from, true);
        }
    }

    fn ask_files(&mut self, query: &str, from: usize, is_path: bool) {
        self.files.number += 1;
        self.files.query = Some(query.to_owned());
        if let Some(menu) = &self.menu
            && menu.from != from
        {
            self.menu = None;
        }
        let (number, query) = (self.files.number, query.to_owned());
        self.ask(Request::Files { number, query, is_path });
    }

    /// Files arrived for a question that may be old (TERM-35: never changes
    /// the draft).
    pub(super) fn files(&mut self, number: u64, paths: Vec<String>) {
        if number != self.files.number || self.files.query.is_none() {
            return;
        }
        let before = &self.editor.buffer()[..self.editor.cursor()];
        let from = match word(&self.editor) {
            Some((from, Word::File(_))) => from,
            Some(_) | None => before.rfind(char::is_whitespace).map_or(0, |at| at + 1),
        };
        let is_mention = self.editor.buffer()[from..].starts_with('@');
        let offer = |path: String| {
            let quoted = path.contains(' ');
            let sign = if is_mention { "@" } else { "" };
            let text = if quoted { format!("{sign}\"{path}\"") } else { format!("{sign}{path}") };
            let is_folder = path.ends_with('/');
            let insert =
                if is_folder && !quoted || !is_mention { text } else { format!("{text} ") };
            Offer { insert, label: path, hint: String::new() }
        };
        let offers = paths.into_iter().map(offer).collect();
        self.open_menu(offers, from, false);
    }

    fn commands(&self, query: &str) -> Vec<Offer> {
        let ours = super::slash::COMMANDS.iter().map(|(name, arguments, what)| {
            let space = if arguments.is_empty() { "" } else { " " };
            let hint = if arguments.is_empty() {
                (*what).to_owned()
            } else {
                format!("{arguments} · {what}")
            };
            Offer { insert: format!("/{name}{space}"), label: format!("/{name}"), hint }
        });
        let theirs = self.found.templates.iter().map(|(name, what)| Offer {
            insert: format!("/{name} "),
            label: format!("/{name}"),
            hint: what.clone(),
        });
        let skills = self.found.skill_names.iter().map(|(name, what)| Offer {
            insert: format!("/skill:{name} "),
            label: format!("/skill:{name}"),
            hint: what.clone(),
        });
        let mut all: Vec<Offer> = ours.chain(theirs).chain(skills).collect();
        all.sort_by(|a, b| a.label.cmp(&b.label));
        all.retain(|offer| offer.label != "/scrollback");
        if query.is_empty() {
            return all;
        }
        let begins = |offer: &&Offer| offer.label[1..].starts_with(query);
        let mut offers: Vec<Offer> = all.iter().filter(begins).cloned().collect();
        let rest: Vec<Offer> = all.iter().filter(|offer| !begins(offer)).cloned().collect();
        offers.extend(fuzzy(&rest, query, |offer| &offer.label).into_iter().cloned());
        offers
    }

    fn arguments(&self, command: &str, query: &str) -> Vec<Offer> {
        let words: Vec<(String, String)> = match command {
            "thinking" => {
                let levels = self.facts.model.as_ref().map(|model| model.levels.clone());
                let levels = levels.unwrap_or_default();
                levels.iter().map(|level| (level.word().to_owned(), String::new())).collect()
            }
            "model" => self.found.models.clone(),
            "pi-crew-abort" => {
                self.crew.open.iter().map(|one| (one.id.clone(), one.brief.clone())).collect()
            }
            "crew" => {
                let mut words = Vec::new();
                for one in &self.crew.open {
                    let deeds: &[&str] = if one.awaits() {
                        &["answer", "close", "stop", "read"]
                    } else {
                        &["steer", "stop", "read"]
                    };
                    for deed in deeds {
                        words.push((format!("{deed} {}", one.id), one.brief.clone()));
                    }
                }
                words
            }
            _ => Vec::new(),
        };
        let offers: Vec<Offer> = words
            .into_iter()
            .map(|(word, hint)| {
                let takes_text = word.starts_with("answer ") || word.starts_with("steer ");
                let space = if takes_text { " " } else { "" };
                Offer { insert: format!("/{command} {word}{space}"), label: word, hint }
            })
            .collect();
        fuzzy(&offers, query, |offer| &offer.label).into_iter().cloned().collect()
    }

    fn agents(&self, query: &str) -> Vec<Offer> {
        let is_mention = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let offers: Vec<Offer> = self
            .found
            .agents
            .iter()
            .filter(|(name, _)| is_mention(name))
            .map(|(name, what)| Offer {
                insert: format!("@crew:{name} "),
                label: format!("@crew:{name}"),
                hint: what.clone(),
            })
            .collect();
        let label = |offer: &Offer| offer.label["@crew:".len()..].to_owned();
        let names: Vec<(String, Offer)> =
            offers.into_iter().map(|offer| (label(&offer), offer)).collect();
        fuzzy(&names, query, |(name, _)| name).into_iter().map(|(_, offer)| offer.clone()).collect()
    }
}

/// The word before the cursor that can be completed, and where it begins.
fn word(editor: &Editor) -> Option<(usize, Word)> {
    let before = &editor.buffer()[..editor.cursor()];
    if let Some(rest) = before.strip_prefix('/') {
        if let Some((name, argument)) = rest.split_once(' ') {
            let commands = ["model", "thinking", "crew", "pi-crew-abort"];
            let known = commands.into_iter().find(|known| *known == name)?;
            if argument.contains('\n') || argument.split(' ').count() > 2 {
                return None;
            }
            return Some((0, Word::Argument(known, argument.to_owned())));
        }
        let is_word = !rest.contains(char::is_whitespace);
        return is_word.then(|| (0, Word::Command(rest.to_owned())));
    }
    let from = mention_start(before)?;
    let word = &before[from + 1..];
    if let Some(name) = word.strip_prefix("crew:") {
        return Some((from, Word::Agent(name.to_owned())));
    }
    Some((from, Word::File(word.trim_start_matches('"').to_owned())))
}

/// Where the `@` stands that the word before the cursor begins with: at the
/// start, after a blank or an opening sign (`crew.md` MEN-2).
fn mention_start(before: &str) -> Option<usize> {
    let at = before.rfind('@')?;
    let word = &before[at + 1..];
    let quoted = word.starts_with('"') && !word[1..].contains('"');
    if word.contains(char::is_whitespace) && !quoted {
        return None;
    }
    let opens = |c: char| c.is_whitespace() || "([{<\"'`*,;:".contains(c);
    before[..at].chars().next_back().is_none_or(opens).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(usize, Word)>) {
        let mut editor = Editor::default();
        editor.set(text);
        assert_eq!(word(&editor), expected, "{text}");
    }

    #[test]
    fn words_that_can_be_completed_are_known() {
        check("/mo", Some((0, Word::Command("mo".into()))));
        check("/thinking hi", Some((0, Word::Argument("thinking", "hi".into()))));
        check("/new x", None);
        check("see @src/ma", Some((4, Word::File("src/ma".into()))));
        check("see @\"a b", Some((4, Word::File("a b".into()))));
        check("(@crew:sc", Some((1, Word::Agent("sc".into()))));
        check("mail@host", None);
        check("@a b", None);
        check("plain", None);
    }
}
