//! Pickers: models, sessions, messages to fork from; settings are changed in
//! one too (`picker::settings`).

#![expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]

mod settings;

use std::path::PathBuf;

use crew_base::id::EntryId;
use crew_base::time::Time;
use crew_engine::api::Status;

use super::list::{Item, List};
use super::reader::{Reader, Source};
use super::{Full, View};
use crate::format;
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use crate::request::{ModelOffer, Request, SessionOffer};

/// What is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A model.
    Models {
        /// Also those that cannot be used.
        all: bool,
    },
    /// A stored session.
    Sessions {
        /// Of all folders.
        all: bool,
        /// Only named ones.
        named: bool,
    },
    /// A message to fork from.
    Forks,
    /// A setting to change.
    Settings,
}

/// A list to choose from.
#[derive(Debug)]
pub struct Picker {
    /// What is chosen.
    pub kind: Kind,
    /// The rows.
    pub list: List,
    /// Whether the rows are still being read.
    pub waits: bool,
    /// Whether the second key of Ctrl+X is awaited.
    leader: bool,
    /// A new name that is typed.
    pub typed: Option<String>,
    /// Whether the deletion of the selected row is to be confirmed.
    pub deleting: bool,
    sessions: Vec<SessionOffer>,
    settings: settings::Settings,
}

impl Picker {
    fn new(kind: Kind) -> Picker {
        Picker {
            kind,
            list: List::default(),
            waits: true,
            leader: false,
            typed: None,
            deleting: false,
            sessions: Vec::new(),
            settings: settings::Settings::default(),
        }
    }

    /// When time changes something: never.
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// Time has passed.
    pub fn tick(&mut self, _now: Time) {}

    /// Takes models.
    pub fn models(&mut self, offers: Vec<ModelOffer>) {
        self.waits = false;
        let current =
            offers.iter().find(|offer| offer.is_current).map(|offer| offer.reference.clone());
        let item = |offer: ModelOffer| {
            let short = offer.facts.split("   ").next().unwrap_or_default().to_owned();
            let short = offer.lacks.clone().unwrap_or(short);
            let mut right = offer.lacks.clone().unwrap_or(offer.facts);
            if offer.is_default {
                right.push_str(if offer.is_current {
                    "    current, default"
                } else {
                    "    default"
                });
            } else if offer.is_current {
                right.push_str("    current");
            }
            Item {
                fuzzy: format!("{} {}", offer.reference, offer.name),
                id: offer.reference.clone(),
                left: offer.reference,
                right,
                short,
                is_usable: offer.lacks.is_none(),
                is_current: offer.is_current,
                ..Item::default()
            }
        };
        let is_first = self.list.items().is_empty();
        self.list.set(offers.into_iter().map(item).collect());
        if let (true, Some(current)) = (is_first, current) {
            self.list.select(&current);
        }
    }

    /// Takes stored sessions.
    pub fn sessions(&mut self, offers: Vec<SessionOffer>) {
        self.waits = false;
        self.sessions = offers;
        self.list_sessions();
    }

    /// Shows sessions with a name only, or all again.
    fn only_named(&mut self) {
        if let Kind::Sessions { named, .. } = &mut self.kind {
            *named = !*named;
            self.list_sessions();
        }
    }

    fn list_sessions(&mut self) {
        let Kind::Sessions { all, named } = self.kind else { return };
        let mut items = Vec::new();
        for offer in self.sessions.iter().filter(|offer| !named || offer.is_named) {
            let id = offer.path.to_string_lossy().into_owned();
            let children = match offer.children.len() {
                0 => String::new(),
                number => format!("{}   ", format::count(number, "subagent")),
            };
            let place = if all { format!("{}   ", offer.cwd) } else { String::new() };
            let age = format::ago(offer.age_ms);
            let cost = format::cost(offer.cost);
            let right = format!("{place}{children}{age:>4}  {:>4} msgs  {cost:>6}", offer.messages);
            let fork = if offer.is_fork { "↳ " } else { "" };
            items.push(Item {
                left: format!("{fork}{}", offer.title),
                right,
                short: age.clone(),
                fuzzy: format!("{} {}", offer.title, offer.cwd),
                exact: format!("{} {}", offer.id, offer.text),
                is_usable: true,
                is_current: offer.is_current,
                id: id.clone(),
                parent: None,
            });
            for child in &offer.children {
                let age = format::ago(child.age_ms);
                items.push(Item {
                    id: child.path.to_string_lossy().into_owned(),
                    left: format!("{}{}", outcome(child.outcome), child.title),
                    right: format!(
                        "{age:>4}  {:>4} msgs  {:>6}",
                        child.messages,
                        format::cost(child.cost)
                    ),
                    short: age,
                    fuzzy: child.title.clone(),
                    exact: child.path.to_string_lossy().into_owned(),
                    parent: Some(id.clone()),
                    is_usable: true,
                    is_current: false,
                });
            }
        }
        self.list.set(items);
    }

    /// Takes messages to fork from, newest selected.
    pub fn forks(&mut self, messages: Vec<(EntryId, String)>) {
        self.waits = false;
        let last = messages.last().map(|(entry, _)| entry.to_string());
        let item = |(entry, text): (EntryId, String)| Item {
            id: entry.to_string(),
            left: crew_base::text::sanitise_inline(&text),
            fuzzy: text,
            is_usable: true,
            ..Item::default()
        };
        self.list.set(messages.into_iter().map(item).collect());
        if let Some(last) = last {
            self.list.select(&last);
        }
    }
}

fn outcome(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Completed) => "✅ ",
        Some(Status::NeedsInput) => "❓ ",
        Some(Status::Error) => "❌ ",
        Some(Status::Aborted) => "■ ",
        Some(Status::Running) | None => "· ",
    }
}

impl View {
    /// Opens a picker and asks for its rows.
    pub(in crate::view) fn open_picker(&mut self, kind: Kind) {
        self.ask(match &kind {
            Kind::Models { all } => Request::Models { all: *all },
            Kind::Sessions { all, .. } => Request::Sessions { all: *all },
            Kind::Forks => Request::ForkMessages,
            Kind::Settings => Request::Settings,
        });
        self.show(Full::Picker(Picker::new(kind)));
    }

    /// Shows stored sessions before any is open (`--resume`).
    pub fn pick_session(&mut self) {
        self.open_picker(Kind::Sessions { all: false, named: false });
    }

    /// Rows of a picker: head, search and foot take the rest.
    pub(crate) fn picker_height(&self) -> usize {
        self.size.rows.saturating_sub(4).max(1)
    }

    /// Takes a key of a picker; tells whether it stays open.
    pub(in crate::view) fn picker_key(&mut self, picker: &mut Picker, key: Key) -> bool {
        if picker.typed.is_some() {
            self.typed_key(picker, key);
            return true;
        }
        if std::mem::take(&mut picker.deleting) {
            if let (Code::Char('y'), Some(item)) = (key.code, picker.list.selected()) {
                self.ask(Request::Delete(PathBuf::from(&item.id)));
                self.ask(self.sessions_again(picker));
            }
            return true;
        }
        if std::mem::take(&mut picker.leader) {
            return self.picker_leader_key(picker, key);
        }
        let stays = self.plain_key(picker, key);
        picker.list.scroll(self.picker_height());
        stays
    }

    fn plain_key(&mut self, picker: &mut Picker, key: Key) -> bool {
        let page = isize::try_from(self.picker_height()).unwrap_or(1);
        let is_sessions = matches!(picker.kind, Kind::Sessions { .. });
        let is_settings = picker.kind == Kind::Settings;
        let list = &mut picker.list;
        match self.setup.keys.find(Context::Picker, key) {
            Some(Action::SelectUp) => list.step(-1),
            Some(Action::SelectDown) => list.step(1),
            Some(Action::SelectPageUp) => list.step(-page),
            Some(Action::SelectPageDown) => list.step(page),
            Some(Action::SelectFirst) => list.step(isize::MIN),
            Some(Action::SelectLast) => list.step(isize::MAX),
            Some(Action::Fold) if is_settings => self.change_setting(picker, true),
            Some(Action::Unfold) if is_settings => self.change_setting(picker, false),
            Some(Action::Fold) => list.fold(false),
            Some(Action::Unfold) => list.fold(true),
            Some(Action::Cancel) => {
                if self.session.is_none() {
                    // The picker of `--resume`: leaving it leaves.
                    self.ask(Request::Quit);
                }
                self.settings_left(picker);
                return false;
            }
            Some(Action::Confirm) => return self.choose(picker, false),
            Some(Action::Tab) => self.other_scope(picker),
            Some(Action::SaveModel) => return self.choose(picker, true),
            Some(Action::NamedOnly) => picker.only_named(),
            Some(Action::Rename) if is_sessions => {
                picker.typed = list.selected().map(|_| String::new());
            }
            Some(Action::DeleteSessionUnsearched) if !list.query.is_empty() => list.unsearch(),
            Some(Action::DeleteSession | Action::DeleteSessionUnsearched) if is_sessions => {
                picker.deleting = list.selected().is_some_and(|item| !item.is_current);
            }
            _ if key == Key::ctrl('x') => picker.leader = true,
            _ if key.code == Code::Backspace => list.unsearch(),
            _ => {
                if let Some(c) = key.typed() {
                    list.search(c);
                }
            }
        }
        true
    }

    fn picker_leader_key(&mut self, picker: &mut Picker, key: Key) -> bool {
        match (key.code, &picker.kind) {
            (Code::Char('s'), Kind::Models { .. }) => return self.choose(picker, true),
            (Code::Char('n'), _) => picker.only_named(),
            _ => {}
        }
        true
    }

    /// Tab: the other scope; the rows are read anew, the selection stays.
    fn other_scope(&mut self, picker: &mut Picker) {
        match &mut picker.kind {
            Kind::Models { all } => {
                *all = !*all;
                let all = *all;
                self.ask(Request::Models { all });
            }
            Kind::Sessions { all, .. } => {
                *all = !*all;
                let all = *all;
                self.ask(Request::Sessions { all });
            }
            Kind::Forks | Kind::Settings => {}
        }
    }

    fn sessions_again(&self, picker: &Picker) -> Request {
        Request::Sessions { all: matches!(picker.kind, Kind::Sessions { all: true, .. }) }
    }

    fn typed_key(&mut self, picker: &mut Picker, key: Key) {
        let Some(typed) = &mut picker.typed else { return };
        match key.code {
            Code::Backspace => {
                typed.pop();
            }
            Code::Esc => picker.typed = None,
            Code::Enter => {
                let typed = picker.typed.take().unwrap_or_default();
                let Some(item) = picker.list.selected() else { return };
                self.ask(Request::Rename(PathBuf::from(&item.id), typed));
                self.ask(self.sessions_again(picker));
            }
            _ => typed.extend(key.typed()),
        }
    }

    /// Chooses the selected row; tells whether the picker stays open.
    fn choose(&mut self, picker: &mut Picker, save: bool) -> bool {
        let Some(item) = picker.list.selected().cloned() else { return true };
        if !item.is_usable {
            return true;
        }
        match picker.kind {
            Kind::Settings => {
                self.change_setting(picker, false);
                return true;
            }
            Kind::Models { .. } => self.ask(Request::UseModel { reference: item.id, save }),
            Kind::Sessions { .. } if item.parent.is_some() => {
                let path = PathBuf::from(&item.id);
                let reader = Reader::new(Source::Stored(item.left.clone()), self.now);
                self.ask(Request::Read { id: item.left, session: None, path: Some(path) });
                self.show(Full::Reader(Box::new(reader), None));
            }
            Kind::Sessions { .. } if item.is_current => {}
            Kind::Sessions { .. } => self.ask(Request::Resume(PathBuf::from(item.id))),
            Kind::Forks => self.ask(Request::Fork(EntryId::new(item.id))),
        }
        false
    }
}
