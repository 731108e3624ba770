//! The two settings files: loading, merging, and writes that touch only what
//! was edited here (`host.md` 1.3.1 to 1.3.4).

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crew_base::definition::Warning;
use crew_base::json;
use serde_json::{Map, Value};

use super::old_keys;
use super::reader::Layer;
use super::task::TaskSettings;
use super::typed::Settings;
use crate::error::{Error, Result, io_error};
use crate::lock::DirLock;
use crate::{files, json_text};

/// Settings that count in the user file only (`host.md` 1.3.5).
pub(crate) const USER_ONLY: [&str; 4] =
    ["defaultProjectTrust", "httpProxy", "cacheWarming", "selfUpdateCommand"];

/// Which file a setting is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `<agent-dir>/settings.json`.
    User,
    /// `.pi/settings.json`.
    Project,
}

/// Both settings files as loaded and edited.
#[derive(Debug)]
pub struct SettingsFiles {
    user: SettingsFile,
    /// Only of a trusted project (`host.md` 5.6.5).
    project: Option<SettingsFile>,
}

/// One file.
#[derive(Debug)]
struct SettingsFile {
    layer: Layer,
    /// Edits that are not on disk yet: path of keys, and the JSON text or
    /// nothing for a removed key.
    edits: Vec<(Vec<String>, Option<String>)>,
}

impl SettingsFiles {
    /// Loads the user file and, for a trusted project only, the project file. A
    /// missing file is empty; one that does not parse counts as empty, gives a
    /// warning, and is not written until it parses again (`host.md` 1.3.2).
    pub fn load(user: &Path, project: Option<&Path>) -> (SettingsFiles, Vec<Warning>) {
        let mut warnings = Vec::new();
        let mut load = |path: &Path| {
            let mut layer = Layer { path: path.to_owned(), values: Map::new() };
            match read(path) {
                Ok((_, values)) => layer.values = values,
                Err(error) => warnings.push(warning(path, &error)),
            }
            old_keys::rename(&mut layer.values);
            SettingsFile { layer, edits: Vec::new() }
        };
        let files = SettingsFiles { user: load(user), project: project.map(&mut load) };
        (files, warnings)
    }

    /// The settings in force, and what is wrong with single keys.
    pub fn settings(&self) -> (Settings, Vec<Warning>) {
        let project = self.project.as_ref().map(|file| &file.layer);
        Settings::read(&self.user.layer, project)
    }

    /// What the `task` tool and the approval of tools go by (`task.md` 1.5,
    /// OBS-3), and what is wrong with single keys.
    pub fn task(&self) -> (TaskSettings, Vec<Warning>) {
        let project = self.project.as_ref().map(|file| &file.layer);
        TaskSettings::read(&self.user.layer, project)
    }

    /// Both files merged: objects key by key, all else by replacement
    /// (`host.md` 1.3.1, 1.3.5).
    pub fn merged(&self) -> Value {
        let mut merged = self.user.layer.values.clone();
        if let Some(project) = &self.project {
            let mut values = project.layer.values.clone();
            values.retain(|key, _| !USER_ONLY.contains(&key.as_str()));
            merge(&mut merged, &values);
        }
        Value::Object(merged)
    }

    /// Changes one setting here and on disk; `None` removes it. The change
    /// counts in memory also when it could not be written, and is then written
    /// with the next one that can (`host.md` 1.3.3).
    pub fn update(&mut self, scope: Scope, path: &[&str], value: Option<&Value>) -> Result<()> {
        let file = match scope {
            Scope::User => &mut self.user,
            Scope::Project => self.project.as_mut().ok_or(Error::Untrusted)?,
        };
        file.layer.set(path, value);
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        file.edits.retain(|(edited, _)| *edited != path);
        file.edits.push((path, value.map(Value::to_string)));
        file.write()
    }
}

impl SettingsFile {
    fn write(&mut self) -> Result<()> {
        edit(&self.layer.path, &self.edits)?;
        self.edits.clear();
        Ok(())
    }
}

/// Changes values of a JSON file in place, each by its path of keys; `None`
/// removes one. The file is locked and read anew; all else in it stays.
pub(crate) fn edit(path: &Path, edits: &[(Vec<String>, Option<String>)]) -> Result<()> {
    let lock = DirLock::take(path)?;
    let (mut text, _) = read(path)?;
    let invalid = |error: serde_json::Error| Error::Invalid {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    for (keys, value) in edits {
        text = json_text::set_path(&text, keys, value.as_deref()).map_err(invalid)?;
    }
    lock.refresh()?;
    files::replace(path, json_text::pretty(&text).as_bytes())
}

/// Reads `sessionDir` of a project file, the one key that counts before trust is
/// known (`host.md` 1.1.4).
pub fn project_session_dir(path: &Path) -> Option<String> {
    let (_, values) = read(path).ok()?;
    values.get("sessionDir")?.as_str().map(str::to_owned)
}

/// The text and the values of a file; a missing or blank one is `{}`.
fn read(path: &Path) -> Result<(String, Map<String, Value>)> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let text = files::without_bom(&text).trim();
    let text = if text.is_empty() { "{}" } else { text };
    match json::from_text(text) {
        Ok(values) => Ok((text.to_owned(), values)),
        Err(error) => Err(Error::Invalid { path: path.to_owned(), reason: error.to_string() }),
    }
}

fn warning(path: &Path, error: &Error) -> Warning {
    let message = match error {
        Error::Invalid { reason, .. } => {
            format!(
                "the settings do not parse ({reason}); defaults are used and the file is left alone"
            )
        }
        Error::Io { source, .. } => format!("the settings cannot be read: {source}"),
        Error::NotASession { .. }
        | Error::Exists { .. }
        | Error::InUse { .. }
        | Error::NotSaved
        | Error::UnknownEntry { .. }
        | Error::Locked { .. }
        | Error::Untrusted => error.to_string(),
    };
    Warning { path: path.to_string_lossy().into_owned(), message }
}

/// Lays one object over another (`host.md` 1.3.1).
pub(crate) fn merge(below: &mut Map<String, Value>, above: &Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Yields the path of the settings file in the agent or project directory.
pub fn settings_path(directory: &Path) -> PathBuf {
    directory.join("settings.json")
}
