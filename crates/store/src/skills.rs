//! Skills (`host.md` 5.3): finding them, listing them for a model, expanding
//! `/skill:NAME`.
//!
//! Must never decide about trust or change a file. How a folder is searched is
//! in `skills::walk`, settings lists are in `resources`.

mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crew_base::definition::Warning;
use crew_base::text::units;

use crate::bundled;
use crate::frontmatter::{self, Value};
use crate::resources::{Origin, Selection, Sources, shown};
use crate::text_file;

/// A skill as discovery found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, maybe against the name rules.
    pub name: String,
    /// What it is for; never blank.
    pub description: String,
    /// Its Markdown file, absolute.
    pub file: PathBuf,
    /// Whether it is left out of the list for models
    /// (`disable-model-invocation`).
    pub hidden: bool,
    /// Where it came from.
    pub origin: Origin,
}

impl Skill {
    /// The folder that relative paths in the skill start from.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

/// What one search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By priority of source; names are unique.
    pub skills: Vec<Skill>,
    /// What was wrong, and where.
    pub warnings: Vec<Warning>,
}

/// Finds all skills (`host.md` 5.3.3, 5.3.4, 5.7.1). The bundled skill is found
/// once `bundled::materialise` has written it.
pub fn discover(sources: &Sources) -> Found {
    let mut search = Search::default();
    let (project, user) = (sources.project_selection(), sources.user_selection());
    let home_agents = sources.home.as_deref().map(|home| home.join(".agents/skills"));
    if sources.discover && sources.trusted {
        search.listed(&project, &sources.project_dir, Origin::ProjectSettings);
        let own = sources.project_dir.join("skills");
        search.folder(&own, true, Origin::ProjectFolder, &project);
        for folder in folders_to_repository_root(&sources.cwd) {
            let folder = folder.join(".agents/skills");
            if home_agents.as_ref() != Some(&folder) {
                search.folder(&folder, false, Origin::ProjectAgents, &project);
            }
        }
    }
    if sources.discover {
        search.listed(&user, &sources.agent_dir, Origin::UserSettings);
        let own = sources.agent_dir.join("skills");
        search.folder(&own, true, Origin::UserFolder, &user);
        if let Some(folder) = &home_agents {
            search.folder(folder, false, Origin::UserAgents, &user);
        }
        let shipped = bundled::skill_folder(&sources.agent_dir);
        search.folder(&shipped, false, Origin::Bundled, &user);
    }
    let all = Selection::default();
    for path in &sources.paths {
        search.path(&sources.absolute(path), Origin::CommandLine, &all);
    }
    search.found
}

/// The skills of a subagent (`crew.md` ISO-7): those of its list, or all but
/// the bundled one, which is about leading a crew. Second, the listed names
/// that were not discovered.
pub fn for_child(skills: &[Skill], listed: Option<&[String]>) -> (Vec<Skill>, Vec<String>) {
    let kept = |skill: &&Skill| match listed {
        Some(names) => names.contains(&skill.name),
        None => skill.origin != Origin::Bundled,
    };
    let known = |name: &&String| skills.iter().any(|skill| skill.name == **name);
    let unknown = listed.unwrap_or_default().iter();
    (
        skills.iter().filter(kept).cloned().collect(),
        unknown.filter(|name| !known(name)).cloned().collect(),
    )
}

/// The section `skills` of a system prompt (`host.md` 5.3.5); `None` when no
/// skill is visible or the model has neither `read` nor `bash`.
pub fn prompt_section(skills: &[Skill], tools: &[String]) -> Option<String> {
    let can_load = tools.iter().any(|tool| tool == "read" || tool == "bash");
    let visible: Vec<&Skill> = skills.iter().filter(|skill| !skill.hidden).collect();
    if !can_load || visible.is_empty() {
        return None;
    }
    let mut text = String::from(SECTION_HINT);
    text.push_str("\n\n<available_skills>\n");
    for skill in visible {
        let (name, description) = (escape(&skill.name), escape(&skill.description));
        let location = escape(&shown(&skill.file));
        let _ = write!(
            text,
            "  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n    <location>{location}</location>\n  </skill>\n"
        );
    }
    text.push_str("</available_skills>");
    Some(text)
}

/// Expands `/skill:NAME args` with the file as it is now (`host.md` 5.3.6).
/// `None` when the input is no such command or the name is unknown.
pub fn expand(skills: &[Skill], input: &str) -> io::Result<Option<String>> {
    let Some(rest) = input.strip_prefix("/skill:") else {
        return Ok(None);
    };
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        return Ok(None);
    };
    let body = frontmatter::split(&text_file::read(&skill.file)?).body;
    let (body, args) = (body.trim(), args.trim());
    let attribute = |text: &str| text.replace('"', "&quot;");
    let (name, location) = (attribute(name), attribute(&shown(&skill.file)));
    let folder = shown(skill.folder());
    let mut text = format!(
        "<skill name=\"{name}\" location=\"{location}\">\nRelative paths in this skill start at {folder}.\n\n{body}\n</skill>"
    );
    if !args.is_empty() {
        text.push_str("\n\n");
        text.push_str(args);
    }
    Ok(Some(text))
}

/// A skill file that was looked at; no skill and no warning means that the file
/// is none and that this is fine.
pub(crate) struct Loaded {
    pub(crate) skill: Option<Skill>,
    pub(crate) warnings: Vec<String>,
}

/// Reads one skill file (`host.md` 5.3.2).
pub(crate) fn load(file: &Path, origin: Origin) -> Loaded {
    let refused = |warnings: Vec<String>| Loaded { skill: None, warnings };
    let read = text_file::read(file)
        .map_err(|error| format!("The skill cannot be read: {error}."))
        .and_then(|text| {
            frontmatter::read(&text)
                .map_err(|error| format!("The front matter cannot be read: {error}."))
        });
    let document = match read {
        Ok(document) => document,
        Err(reason) => return refused(vec![reason]),
    };
    let Some(description) = document.text("description") else {
        let is_skill_file = file.file_name().is_some_and(|name| name == SKILL_FILE);
        let reason = "The skill has no description and is not loaded.".to_owned();
        return refused(is_skill_file.then_some(reason).into_iter().collect());
    };
    let folder = file.parent().and_then(Path::file_name);
    let folder = folder.map(|name| name.to_string_lossy().into_owned());
    let name = document.text("name").map(str::to_owned).or(folder);
    let name = name.unwrap_or_default();
    let mut warnings = name_faults(&name);
    let length = units(description);
    if length > DESCRIPTION_UNITS_MAX {
        warnings.push(format!(
            "The description has {length} characters; at most {DESCRIPTION_UNITS_MAX} are meant."
        ));
    }
    let hidden = document.get("disable-model-invocation");
    let skill = Skill {
        name,
        description: description.to_owned(),
        file: file.to_owned(),
        hidden: hidden.and_then(Value::as_bool) == Some(true),
        origin,
    };
    Loaded { skill: Some(skill), warnings }
}

const SKILL_FILE: &str = "SKILL.md";
const NAME_CHARS_MAX: usize = 64;
const DESCRIPTION_UNITS_MAX: usize = 1024;

const SECTION_HINT: &str = "Skills hold instructions for particular kinds of work. \
When a task fits the description of one, load its file first and follow it. \
A relative path in a skill is relative to the folder of that file.";

fn name_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(fits) {
        faults.push("may hold only lower-case letters, digits and hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        faults.push("may hold only single hyphens, not at its ends");
    }
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        faults.push("must have 1 to 64 characters");
    }
    let told = |fault: &str| format!("The name of the skill \"{name}\" {fault}.");
    faults.into_iter().map(told).collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// The folder and those above it, down to the first that holds `.git`; without
/// a repository up to the root of the file system.
fn folders_to_repository_root(folder: &Path) -> Vec<&Path> {
    let mut folders = Vec::new();
    for at in folder.ancestors() {
        folders.push(at);
        if at.join(".git").symlink_metadata().is_ok() {
            break;
        }
    }
    folders
}

/// One discovery under way.
#[derive(Default)]
struct Search {
    found: Found,
    by_name: BTreeMap<String, PathBuf>,
    real_files: BTreeSet<PathBuf>,
}

impl Search {
    fn warn(&mut self, path: &Path, message: impl Into<String>) {
        self.found.warnings.push(Warning { path: shown(path), message: message.into() });
    }

    fn listed(&mut self, selection: &Selection, base: &Path, origin: Origin) {
        for fault in &selection.faults {
            let text = format!("The entry \"{fault}\" of the setting \"skills\" is no pattern.");
            self.warn(base, text);
        }
        for root in &selection.roots {
            self.path(root, origin, selection);
        }
    }

    /// A path that somebody named: a file or a folder, which should exist.
    fn path(&mut self, path: &Path, origin: Origin, selection: &Selection) {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.folder(path, false, origin, selection),
            Ok(_) => self.file(path, origin, selection),
            Err(error) => self.warn(path, format!("No skill can be loaded from here: {error}.")),
        }
    }

    fn folder(&mut self, folder: &Path, loose_files: bool, origin: Origin, selection: &Selection) {
        let walked = walk::skill_files(folder, loose_files);
        if walked.cut {
            self.warn(folder, "The folder is too large; not all of it was searched for skills.");
        }
        for file in walked.files {
            self.file(&file, origin, selection);
        }
    }

    fn file(&mut self, file: &Path, origin: Origin, selection: &Selection) {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        if !selection.keeps(file) || self.real_files.contains(&real) {
            return;
        }
        let Loaded { skill, warnings } = load(file, origin);
        for warning in warnings {
            self.warn(file, warning);
        }
        let Some(skill) = skill else { return };
        self.real_files.insert(real);
        match self.by_name.get(&skill.name) {
            None => {
                self.by_name.insert(skill.name.clone(), file.to_owned());
                self.found.skills.push(skill);
            }
            // What ships with the product may be replaced without a word.
            Some(_) if origin == Origin::Bundled => {}
            Some(winner) => {
                let (name, winner) = (&skill.name, shown(winner));
                let text = format!(
                    "A skill \"{name}\" is already loaded from {winner}; this one is skipped."
                );
                self.warn(file, text);
            }
        }
    }
}

#[cfg(test)]
mod tests;
