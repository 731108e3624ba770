//! Discovery of subagent definitions (`crew.md` 10): project, user and bundled
//! files, then the overrides of `pi-crew.json`.
//!
//! Owns the cache that keeps unchanged files from being parsed again. Must
//! never write, decide about trust, or stop at a bad file. The rules of one
//! file are in `definitions::file`, of overrides in `definitions::overrides`,
//! of tool lists in `definitions::deltas`.

mod deltas;
mod extra;
mod fields;
mod file;
mod folder;
mod overrides;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::definition::{Definition, Discovery, Source, Warning};
use crew_task::agents::Agent;

pub use fields::split_model;
pub(crate) use file::parse;

use crate::bundled;
use extra::Extra;
use file::Parsed;
use folder::Cache;
use overrides::Overrides;

/// The name of the configuration file in both folders (`crew.md` CFG-1).
pub const CONFIGURATION_FILE: &str = "pi-crew.json";

/// Where definitions and overrides lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The agent directory.
    pub user_dir: PathBuf,
    /// `.pi` of the working directory.
    pub project_dir: PathBuf,
}

/// What one discovery found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Definitions, warnings and the folders for new ones.
    pub discovery: Discovery,
    /// The same definitions with the keys that only the `task` tool reads
    /// (`task.md` OBS-2).
    pub agents: Vec<Agent>,
    /// `widget.showToolCalls`, project over user (`crew.md` CFG-9).
    pub show_tool_calls: bool,
}

/// Discovers definitions, and remembers what it parsed.
#[derive(Debug, Default)]
pub struct Catalog {
    definitions: Cache<Parsed>,
    configurations: Cache<Overrides>,
    bundled: Option<Vec<Parsed>>,
}

impl Catalog {
    /// Looks at the files of this moment (`crew.md` CAT-1 to CAT-9, 10.4); a
    /// file is parsed again only when its size or time changed. `trusted` tells
    /// whether project files may be used.
    pub fn discover(&mut self, folders: &Folders, trusted: bool) -> Found {
        let project = folders.project_dir.join("agents");
        let user = folders.user_dir.join("agents");
        let mut run = Run::default();
        if trusted {
            self.read_folder(&project, Source::Project, &mut run);
        } else if has_gated_files(folders) {
            run.warn(
                &folders.project_dir,
                "The project is not trusted: its subagent definitions and its pi-crew.json are skipped. Trust the project to use them.",
            );
        }
        self.read_folder(&user, Source::User, &mut run);
        self.add_bundled(&mut run);
        let show_tool_calls = self.apply_configurations(folders, trusted, &mut run);
        let shown = |folder: &Path| folder.to_string_lossy().into_owned();
        let both = run.definitions.iter().zip(run.extras);
        let agents = both.map(|(definition, extra)| extra.agent(definition)).collect();
        let discovery = Discovery {
            definitions: run.definitions,
            warnings: run.warnings,
            folders: vec![shown(&project), shown(&user)],
        };
        Found { discovery, agents, show_tool_calls }
    }

    fn read_folder(&mut self, folder: &Path, source: Source, run: &mut Run) {
        let files = match folder::definition_files(folder) {
            Ok(files) => files,
            Err(error) => {
                run.warn(folder, format!("The folder cannot be read: {error}."));
                return;
            }
        };
        self.definitions.forget_missing(folder, &files);
        let mut names = BTreeSet::new();
        for path in files {
            let shown = path.to_string_lossy();
            let parsed = self.definitions.read(&path, |text| file::parse(text, source, &shown));
            match parsed {
                Ok(parsed) => run.add(parsed, &path, &mut names),
                Err(error) => run.warn(&path, format!("The file cannot be read: {error}.")),
            }
        }
    }

    fn add_bundled(&mut self, run: &mut Run) {
        let parsed = self.bundled.get_or_insert_with(|| {
            let files = bundled::definitions().iter();
            files.map(|file| parse(file.text, Source::Bundled, &bundled::path_of(file))).collect()
        });
        let mut names = BTreeSet::new();
        for (file, parsed) in bundled::definitions().iter().zip(parsed) {
            let path = bundled::path_of(file);
            run.add(parsed, Path::new(&path), &mut names);
        }
    }

    /// Applies the user file, then the project file (`crew.md` CFG-5).
    fn apply_configurations(&mut self, folders: &Folders, trusted: bool, run: &mut Run) -> bool {
        let user = folders.user_dir.join(CONFIGURATION_FILE);
        let project = folders.project_dir.join(CONFIGURATION_FILE);
        let mut show_tool_calls = true;
        let mut unknown: BTreeMap<String, PathBuf> = BTreeMap::new();
        for path in [Some(user), trusted.then_some(project)].into_iter().flatten() {
            let found = match self.configurations.read(&path, overrides::parse) {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    run.warn(&path, format!("The file cannot be read: {error}."));
                    continue;
                }
            };
            show_tool_calls = found.show_tool_calls.unwrap_or(show_tool_calls);
            for warning in &found.warnings {
                run.warn(&path, warning.clone());
            }
            for (name, set) in &found.agents {
                let Some(definition) = run.definition(name) else {
                    unknown.insert(name.clone(), path.clone());
                    continue;
                };
                let mut warnings = Vec::new();
                overrides::apply(definition, set, &mut warnings);
                for warning in warnings {
                    run.warn(&path, warning);
                }
            }
        }
        for (name, path) in unknown {
            let text = format!("The override for \"{name}\" fits no subagent that was discovered.");
            run.warn(&path, text);
        }
        show_tool_calls
    }
}

/// Whether there is something that trust keeps back (`crew.md` CAT-7).
fn has_gated_files(folders: &Folders) -> bool {
    let configuration = folders.project_dir.join(CONFIGURATION_FILE);
    let definitions = folder::definition_files(&folders.project_dir.join("agents"));
    // A folder that cannot be read may hold some.
    let has_definitions = definitions.map_or(true, |files| !files.is_empty());
    configuration.symlink_metadata().is_ok() || has_definitions
}

/// One discovery under way.
#[derive(Default)]
struct Run {
    definitions: Vec<Arc<Definition>>,
    /// In the order of the definitions.
    extras: Vec<Extra>,
    places: BTreeMap<String, usize>,
    warnings: Vec<Warning>,
}

impl Run {
    fn warn(&mut self, path: &Path, message: impl Into<String>) {
        self.warnings
            .push(Warning { path: path.to_string_lossy().into_owned(), message: message.into() });
    }

    /// Adds what a file gave; `names` are those of its source so far
    /// (`crew.md` CAT-4, CAT-5).
    fn add(&mut self, parsed: &Parsed, path: &Path, names: &mut BTreeSet<String>) {
        for warning in &parsed.warnings {
            self.warn(path, warning.clone());
        }
        let definition = match &parsed.definition {
            Ok(definition) => definition,
            Err(reason) => return self.warn(path, reason.clone()),
        };
        if !names.insert(definition.name.clone()) {
            let name = &definition.name;
            let text = format!(
                "Another file of this folder already defines \"{name}\"; this one is skipped."
            );
            return self.warn(path, text);
        }
        if !self.places.contains_key(&definition.name) {
            self.places.insert(definition.name.clone(), self.definitions.len());
            self.definitions.push(Arc::clone(definition));
            self.extras.push(parsed.extra.clone());
        }
    }

    fn definition(&mut self, name: &str) -> Option<&mut Definition> {
        let place = *self.places.get(name)?;
        self.definitions.get_mut(place).map(Arc::make_mut)
    }
}

#[cfg(test)]
mod tests;
