//! The picker of `/settings` (`host.md` 8.3): keys go through the values of a
//! row, and what changed is read again when the picker is left.
//!
//! Never changes a value by itself: it asks, and shows what the files then hold.

use super::super::View;
use super::super::list::Item;
use super::Picker;
use crate::request::{Request, SettingOffer, SettingOrigin};
use crate::theme::WARNING;

/// What a picker of settings knows beside its rows.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// As they were when the picker was opened.
    before: Option<Vec<SettingOffer>>,
    now: Vec<SettingOffer>,
    problem: Option<String>,
}

impl Picker {
    /// Takes the settings, and why the last change was not made.
    pub fn settings(&mut self, offers: Vec<SettingOffer>, problem: Option<String>) {
        self.waits = false;
        self.list.set(offers.iter().map(item).collect());
        self.settings.before.get_or_insert_with(|| offers.clone());
        self.settings.now = offers;
        self.settings.problem = problem;
    }

    /// Why the last setting was not changed.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.settings.problem.as_deref()
    }

    /// The setting of the selected row.
    pub(crate) fn setting(&self) -> Option<&SettingOffer> {
        let id = &self.list.selected()?.id;
        self.settings.now.iter().find(|offer| offer.key == *id)
    }
}

fn item(offer: &SettingOffer) -> Item {
    let origin = match offer.origin {
        SettingOrigin::Default => "default",
        SettingOrigin::User => "yours  ",
        SettingOrigin::Project => "project",
    };
    Item {
        id: offer.key.clone(),
        left: offer.key.clone(),
        right: format!("{}   {origin}", offer.value),
        short: offer.value.clone(),
        fuzzy: format!("{} {}", offer.key, offer.what),
        is_usable: offer.origin != SettingOrigin::Project,
        ..Item::default()
    }
}

impl View {
    /// Asks for the next or the previous value of the selected setting; one that
    /// the project sets stays.
    pub(super) fn change_setting(&mut self, picker: &Picker, backwards: bool) {
        let Some(offer) = picker.setting() else { return };
        let count = offer.choices.len();
        if offer.origin == SettingOrigin::Project || count == 0 {
            return;
        }
        let at = offer.choices.iter().position(|choice| *choice == offer.value).unwrap_or(0);
        let to = if backwards { at + count - 1 } else { at + 1 } % count;
        self.ask(Request::Set { key: offer.key.clone(), value: offer.choices[to].clone() });
    }

    /// What was changed counts after a reload, which an owner at work puts off.
    pub(super) fn settings_left(&mut self, picker: &Picker) {
        let settings = &picker.settings;
        let before = settings.before.as_deref().unwrap_or(&settings.now);
        let values = |offers: &[SettingOffer]| -> Vec<String> {
            offers.iter().map(|offer| offer.value.clone()).collect()
        };
        if values(before) == values(&settings.now) {
            return;
        }
        if self.is_busy() || self.shell.is_some() {
            let text = "the settings are kept; they count after /reload, once the owner is idle";
            self.live.print(text, WARNING);
        } else {
            self.ask(Request::Reload);
        }
    }
}
