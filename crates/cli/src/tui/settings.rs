//! `/settings`: what can be changed by hand, and the change itself
//! (`host.md` 8.3, 1.3.3). Only settings that this program reads are offered.
//!
//! Values are read from the files each time; what counts in the running program
//! changes by `tui::reload` alone. Never writes the project's file.

use std::path::Path;

use crew_store::paths;
use crew_store::settings::file::{Scope, SettingsFiles, settings_path};
use crew_tui::request::{Reply, SettingOffer, SettingOrigin};
use serde_json::Value;

use super::face::Face;
use crate::config::Config;

/// A setting that goes through a few values.
struct Setting {
    /// Its dotted key.
    key: &'static str,
    /// What it decides.
    what: &'static str,
    /// Its values as the file writes them, texts without quotes.
    choices: &'static [&'static str],
    /// The value of an absent key.
    default: &'static str,
    /// Whether the default can be had only without the key.
    is_default_absence: bool,
}

const fn setting(
    key: &'static str,
    what: &'static str,
    choices: &'static [&'static str],
    default: &'static str,
) -> Setting {
    Setting { key, what, choices, default, is_default_absence: false }
}

const fn optional(
    key: &'static str,
    what: &'static str,
    choices: &'static [&'static str],
    default: &'static str,
) -> Setting {
    Setting { key, what, choices, default, is_default_absence: true }
}

const FLAG: &[&str] = &["false", "true"];
const MODES: &[&str] = &["one-at-a-time", "all"];
const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const FILTERS: &[&str] = &["default", "no-tools", "user-only", "labeled-only", "all"];
const ROWS: &[&str] = &[
    "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20",
];

/// In the order in which they are listed.
const SETTINGS: &[Setting] = &[
    setting("defaultThinkingLevel", "thinking level of new sessions", LEVELS, "medium"),
    setting("hideThinkingBlock", "hide what models think", FLAG, "false"),
    setting("steeringMode", "steering messages that enter at once", MODES, "one-at-a-time"),
    setting("followUpMode", "follow-up messages that enter at once", MODES, "one-at-a-time"),
    setting("compaction.enabled", "summarise a full context by itself", FLAG, "true"),
    setting("retry.enabled", "try again after errors of a provider", FLAG, "true"),
    setting("branchSummary.skipPrompt", "never offer to summarise a branch", FLAG, "false"),
    setting("images.autoResize", "make large images fit", FLAG, "true"),
    setting("images.blockImages", "send no images", FLAG, "false"),
    setting("doubleEscapeAction", "Esc twice opens", &["tree", "fork", "none"], "tree"),
    setting("treeFilterMode", "what the tree shows at first", FILTERS, "default"),
    setting("quietStartup", "no header at the start", &["false", "header", "true"], "false"),
    setting("autocompleteMaxVisible", "rows of the completion list", ROWS, "5"),
    setting("crew.attentionForm", "how you are called", &["bell", "desktop", "off"], "bell"),
    setting("crew.motion", "spinners move", FLAG, "true"),
    optional("crew.icons", "icons", &["by locale", "emoji", "symbols", "ascii"], "by locale"),
    optional("crew.keys", "Ctrl+L and Ctrl+P as here or as in Pi", &["crew", "pi"], "crew"),
];

impl Setting {
    fn path(&self) -> Vec<&'static str> {
        self.key.split('.').collect()
    }

    /// The JSON of a choice; nothing where the key has to be absent.
    fn json(&self, choice: &str) -> Option<Value> {
        if self.is_default_absence && choice == self.default {
            return None;
        }
        Some(match (choice.parse::<bool>(), choice.parse::<u64>()) {
            (Ok(flag), _) => Value::from(flag),
            (Err(_), Ok(number)) => Value::from(number),
            (Err(_), Err(_)) => Value::from(choice),
        })
    }

    /// The choice that a file makes; a value that cannot be used is none.
    fn choice_in(&self, file: &Value) -> Option<&'static str> {
        let value = self.path().into_iter().try_fold(file, |value, key| value.get(key))?;
        let is_it = |choice: &&&str| self.json(choice).as_ref() == Some(value);
        self.choices.iter().find(is_it).copied()
    }

    fn offer(&self, user: &Value, project: Option<&Value>) -> SettingOffer {
        let theirs = project.and_then(|file| self.choice_in(file));
        let (value, origin) = match (theirs, self.choice_in(user)) {
            (Some(value), _) => (value, SettingOrigin::Project),
            (None, Some(value)) => (value, SettingOrigin::User),
            (None, None) => (self.default, SettingOrigin::Default),
        };
        SettingOffer {
            key: self.key.to_owned(),
            what: self.what.to_owned(),
            value: value.to_owned(),
            choices: self.choices.iter().map(|choice| (*choice).to_owned()).collect(),
            origin,
        }
    }
}

/// The values in force, from both files; the project's only when there is one
/// to read.
fn offers(user: &Path, project: Option<&Path>) -> Vec<SettingOffer> {
    let values = |path: &Path| SettingsFiles::load(path, None).0.merged();
    let (user, project) = (values(user), project.map(values));
    SETTINGS.iter().map(|setting| setting.offer(&user, project.as_ref())).collect()
}

/// Writes one value to the user's file. Fails in words when it cannot be
/// written, and for a key or a value that is not offered.
fn write(file: &Path, key: &str, choice: &str) -> Result<(), String> {
    let setting = SETTINGS.iter().find(|setting| setting.key == key);
    let setting = setting.filter(|setting| setting.choices.contains(&choice));
    let setting = setting.ok_or_else(|| format!("{key} cannot be {choice}"))?;
    let (mut files, _) = SettingsFiles::load(file, None);
    let value = setting.json(choice);
    files
        .update(Scope::User, &setting.path(), value.as_ref())
        .map_err(|error| format!("{key} was not kept: {error}"))
}

/// The project's file, when it is trusted.
fn project_file(config: &Config) -> Option<std::path::PathBuf> {
    let file = settings_path(&paths::project_dir(&config.place.cwd));
    Some(file).filter(|file| config.trust.allows() && file.exists())
}

impl Face {
    /// Lists the settings.
    pub(super) fn settings(&mut self) {
        self.list_settings(None);
    }

    /// Changes one, and lists them again. Not beside the loop, so that quick
    /// changes keep their order; the files are small.
    pub(super) fn set_setting(&mut self, key: &str, choice: &str) {
        let Some(ready) = &self.ready else { return };
        let folder = &ready.config.place.agent_dir;
        let written = if folder.is_dir() {
            write(&settings_path(folder), key, choice)
        } else {
            Err("this run has no folder to keep settings in".to_owned())
        };
        self.list_settings(written.err());
    }

    fn list_settings(&mut self, problem: Option<String>) {
        let Some(ready) = &self.ready else { return };
        let user = settings_path(&ready.config.place.agent_dir);
        let offers = offers(&user, project_file(&ready.config).as_deref());
        self.say(Reply::Settings { offers, problem });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        folder: tempfile::TempDir,
    }

    impl Files {
        fn new(user: &str, project: &str) -> Files {
            let files = Files { folder: tempfile::tempdir().unwrap() };
            std::fs::write(files.user(), user).unwrap();
            std::fs::write(files.project(), project).unwrap();
            files
        }

        fn user(&self) -> std::path::PathBuf {
            self.folder.path().join("user.json")
        }

        fn project(&self) -> std::path::PathBuf {
            self.folder.path().join("project.json")
        }

        fn value(&self, key: &str) -> (String, SettingOrigin) {
            let found = offers(&self.user(), Some(&self.project()));
            let found = found.into_iter().find(|offer| offer.key == key).unwrap();
            (found.value, found.origin)
        }
    }

    #[test]
    fn each_value_says_which_file_it_comes_from() {
        // host.md 1.3.1; a value that cannot be used counts as not set.
        let user = r#"{"steeringMode":"all","followUpMode":7,"crew":{"icons":"ascii"},
                       "autocompleteMaxVisible":9,"retry":{"enabled":false}}"#;
        let files = Files::new(user, r#"{"retry":{"enabled":true},"treeFilterMode":"none"}"#);
        let check = |key: &str, value: &str, origin| {
            assert_eq!(files.value(key), (value.to_owned(), origin), "{key}");
        };
        check("steeringMode", "all", SettingOrigin::User);
        check("followUpMode", "one-at-a-time", SettingOrigin::Default);
        check("crew.icons", "ascii", SettingOrigin::User);
        check("crew.keys", "crew", SettingOrigin::Default);
        check("autocompleteMaxVisible", "9", SettingOrigin::User);
        check("retry.enabled", "true", SettingOrigin::Project);
        check("treeFilterMode", "default", SettingOrigin::Default);
    }

    #[test]
    fn a_change_touches_its_own_key_only() {
        // host.md 1.3.3
        let check = |before: &str, key: &str, choice: &str, after: &str| {
            let files = Files::new(before, "{}");
            write(&files.user(), key, choice).unwrap();
            let text = std::fs::read_to_string(files.user()).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(after).unwrap(), "{key}");
        };
        check("{}", "hideThinkingBlock", "true", r#"{"hideThinkingBlock":true}"#);
        check(r#"{"x":1}"#, "autocompleteMaxVisible", "8", r#"{"x":1,"autocompleteMaxVisible":8}"#);
        check(
            r#"{"crew":{"icons":"ascii","y":2}}"#,
            "crew.icons",
            "by locale",
            r#"{"crew":{"y":2}}"#,
        );
        check("{}", "quietStartup", "header", r#"{"quietStartup":"header"}"#);
    }

    #[test]
    fn a_file_that_does_not_parse_is_left_alone_and_that_is_told() {
        // host.md 1.3.2
        let files = Files::new("{", "{}");
        let problem = write(&files.user(), "crew.motion", "false").unwrap_err();
        assert!(problem.starts_with("crew.motion was not kept: "), "{problem}");
        assert_eq!(std::fs::read_to_string(files.user()).unwrap(), "{");
    }

    #[test]
    fn every_offered_value_is_one_that_the_program_reads() {
        for setting in SETTINGS {
            assert!(setting.choices.contains(&setting.default), "{}", setting.key);
            for choice in setting.choices {
                let files = Files::new("{}", "{}");
                write(&files.user(), setting.key, choice).unwrap();
                let (_, warnings) = SettingsFiles::load(&files.user(), None).0.settings();
                assert!(warnings.is_empty(), "{} {choice}: {warnings:?}", setting.key);
                assert_eq!(files.value(setting.key).0, *choice);
            }
        }
    }

    #[test]
    fn what_is_not_offered_is_not_written() {
        let files = Files::new("{}", "{}");
        assert!(write(&files.user(), "crew.motion", "perhaps").is_err());
        assert!(write(&files.user(), "httpProxy", "true").is_err());
        assert_eq!(std::fs::read_to_string(files.user()).unwrap(), "{}");
    }
}
