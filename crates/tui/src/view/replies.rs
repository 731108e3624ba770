//! What the program says to the face.

use crew_base::time::Time;

use super::full::Full;
use super::full::picker::{Kind, Picker};
use super::full::reader::Source;
use super::questions::Kind as Question;
use super::{Receiver, View, help};
use crate::request::{Facts, Reply, Shown};
use crate::theme::{MUTED, SUCCESS};
use crate::transcript::entries;
use crate::transcript::item::Item;

/// Rows of a branch that was moved to that are printed.
const MOVED_ROWS_MAX: usize = 40;
/// Rows of a resumed session that are printed (TERM-26).
const RESUMED_ROWS_MAX: usize = 200;

/// Takes a reply.
pub fn reply(view: &mut View, now: Time, reply: Reply) {
    view.now = now.max(view.now);
    match reply {
        Reply::Files { number, paths } => view.files(number, paths),
        Reply::Facts(facts) => view.take_facts(*facts),
        Reply::Found(found) => view.found = *found,
        Reply::Models(offers) => {
            if let Some(picker) = view.picker(|kind| matches!(kind, Kind::Models { .. })) {
                picker.models(offers);
            }
        }
        Reply::Sessions(offers) => {
            if let Some(picker) = view.picker(|kind| matches!(kind, Kind::Sessions { .. })) {
                picker.sessions(offers);
            }
        }
        Reply::Settings { offers, problem } => {
            if let Some(picker) = view.picker(|kind| *kind == Kind::Settings) {
                picker.settings(offers, problem);
            }
        }
        Reply::ForkMessages(messages) => {
            if let Some(picker) = view.picker(|kind| *kind == Kind::Forks) {
                picker.forks(messages);
            }
        }
        Reply::Tree(rows) => {
            if let Some(Full::Tree(tree)) = view.full.as_deref_mut() {
                tree.set(rows);
            }
        }
        Reply::Branch(entries) => view.branch(&entries),
        Reply::Transcript { id, entries } => view.transcript(&id, &entries),
        Reply::Preview { items, before } => view.preview(items, before),
        Reply::Shown(shown) => view.shown(*shown),
        Reply::TakenBack(texts) => view.taken_back(&texts),
        Reply::ShellOutput(text) => {
            if let Some(shell) = &mut view.shell {
                shell.output.push_str(&text);
                keep_end(&mut shell.output);
            }
        }
        Reply::ShellEnded => view.shell = None,
        Reply::Edited(text) => view.editor.set(text.trim_end_matches('\n')),
        Reply::Insert(text) => view.editor.insert_text(&text),
        Reply::Page { title, items } => view.show_page(title, items),
        Reply::Trust(files) => view.ask_person(Question::Trust { files, at: 0, at_start: false }),
        Reply::Choose(choice) => view.ask_person(Question::Choose { choice, at: 0 }),
        Reply::Approval(approval) => view.approval(approval),
        Reply::ApprovalOver(id) => view.approval_over(id),
        Reply::Highlighted(answers) => view.live.coloured(answers),
        Reply::Done(text) => view.live.print(&text, SUCCESS),
        Reply::Failed(what, next) => view.live.add(Item::Failure { what, next }),
        Reply::Warning(text) => view.warn(&text),
    }
    view.settle_level();
}

/// Bytes of a running command's output that are kept for the screen.
const SHELL_OUTPUT_MAX: usize = 16 * 1024;

fn keep_end(text: &mut String) {
    if text.len() > 2 * SHELL_OUTPUT_MAX {
        let from = text.len() - SHELL_OUTPUT_MAX;
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.drain(..from);
    }
}

impl View {
    fn picker(&mut self, is: impl Fn(&Kind) -> bool) -> Option<&mut Picker> {
        match self.full.as_deref_mut() {
            Some(Full::Picker(picker)) if is(&picker.kind) => Some(picker),
            Some(
                Full::Picker(_)
                | Full::Board(_)
                | Full::Reader(..)
                | Full::Tree(_)
                | Full::Keys { .. },
            )
            | None => None,
        }
    }

    fn take_facts(&mut self, mut facts: Facts) {
        self.facts_known = true;
        let figures = std::mem::take(&mut facts.subagents);
        self.crew.figures(self.now, figures);
        // A resumed owner had a crew whose figures are in its file.
        self.crew.had_any |= facts.crew.sum() > 0;
        self.facts = facts;
    }

    fn print_header(&mut self) {
        for line in help::header(self) {
            self.live.print_line(line);
        }
    }

    /// The end of a long session is printed before the whole of it was read.
    fn preview(&mut self, items: Vec<Item>, before: usize) {
        if self.session.is_some() || items.is_empty() {
            return;
        }
        self.print_header();
        self.live.items = items;
        let look = self.look();
        self.live.print_end(&look, RESUMED_ROWS_MAX, before);
        self.previewed = true;
    }

    /// Another session is shown: its end is printed (TERM-26). The same one may
    /// come again after its files were read again.
    fn shown(&mut self, shown: Shown) {
        let is_first = self.session.is_none();
        let is_same = self.session.as_ref() == Some(&shown.session);
        self.session = Some(shown.session);
        self.name = shown.name;
        self.setup.cwd = shown.cwd;
        self.facts.model = shown.model;
        self.facts.thinking = Some(shown.thinking);
        self.facts_known = true;
        if shown.items.is_empty() {
            self.facts.context_tokens = Some(0);
        }
        self.run = Default::default();
        self.queue = Default::default();
        self.shell = None;
        if !is_same {
            self.crew.clear();
            if self.receiver != Receiver::Owner {
                self.receive_as_owner();
            }
        }
        let is_there = std::mem::take(&mut self.previewed) && is_first || is_same;
        if is_first {
            if self.facts.model.is_none() {
                self.tell_no_model();
            } else if !is_there {
                self.print_header();
            }
        }
        let mut live = std::mem::take(&mut self.live);
        live.items = shown.items;
        if !is_first && !is_same {
            let word = self.name.clone().unwrap_or_else(|| "a session without a name".to_owned());
            let text = if live.items.is_empty() {
                "── new session ──".to_owned()
            } else {
                format!("── {} ──", crew_base::text::sanitise_inline(&word))
            };
            live.print(&text, MUTED);
        }
        // What was left and opened again stands on the screen already.
        if !live.items.is_empty() && !is_there {
            let look = self.look();
            live.print_again(&look, RESUMED_ROWS_MAX);
        }
        live.tools.clear();
        self.live = live;
        if let Some(draft) = shown.draft {
            self.editor.set(&draft);
        }
        self.submit_early();
    }

    /// The session stands on another branch: its end is printed, before what
    /// came since.
    fn branch(&mut self, entries: &[crew_base::entry::Entry]) {
        let look = self.look();
        self.live.print("── another place in the tree ──", MUTED);
        self.live.stand_on(entries::items(entries), &look, MOVED_ROWS_MAX);
    }

    fn transcript(&mut self, id: &str, entries: &[crew_base::entry::Entry]) {
        let reader = match self.full.as_deref_mut() {
            Some(Full::Reader(reader, _)) => reader,
            Some(Full::Picker(_) | Full::Board(_) | Full::Tree(_) | Full::Keys { .. }) | None => {
                return;
            }
        };
        let is_wanted = match &reader.source {
            Source::Subagent(known) | Source::Stored(known) => known == id,
            Source::Owner => false,
        };
        if is_wanted {
            // In a subagent's session it is the owner who asks.
            let asked = |item| if let Item::User(text) = item { Item::Asked(text) } else { item };
            reader.set(entries::items(entries).into_iter().map(asked).collect());
        }
    }

    fn taken_back(&mut self, texts: &[String]) {
        let texts: Vec<_> =
            texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return;
        }
        self.give_back(&texts.join("\n"));
    }
}
