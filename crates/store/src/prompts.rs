//! Prompt templates (`host.md` 5.4): finding them, and turning `/name args`
//! into the text that is sent.
//!
//! Must never decide about trust or change a file. Arguments and placeholders
//! are in `prompts::arguments`.

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crew_base::definition::Warning;
use crew_base::text::{cut_units, units};

pub use arguments::{parse as parse_arguments, substitute};

use crate::bundled;
use crate::frontmatter;
use crate::resources::{Origin, Selection, Sources, shown, sorted_entries};
use crate::text_file;

/// A template as discovery found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The command without its slash.
    pub name: String,
    /// What it is for; maybe empty.
    pub description: String,
    /// What completion shows for the arguments.
    pub argument_hint: Option<String>,
    /// The text with its placeholders.
    pub body: String,
    /// Its file, or the name of a bundled one.
    pub path: String,
    /// Where it came from.
    pub origin: Origin,
}

/// What one search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By priority of source; names are unique.
    pub templates: Vec<Template>,
    /// What was wrong, and where.
    pub warnings: Vec<Warning>,
}

/// Finds all templates (`host.md` 5.4.1, 5.7.1): project before user before the
/// command line, the bundled ones last (`crew.md` CMD-1).
pub fn discover(sources: &Sources) -> Found {
    let mut search = Search::default();
    let (project, user) = (sources.project_selection(), sources.user_selection());
    if sources.discover && sources.trusted {
        search.listed(&project, &sources.project_dir, Origin::ProjectSettings);
        let own = sources.project_dir.join("prompts");
        search.folder(&own, Origin::ProjectFolder, &project);
    }
    if sources.discover {
        search.listed(&user, &sources.agent_dir, Origin::UserSettings);
        let own = sources.agent_dir.join("prompts");
        search.folder(&own, Origin::UserFolder, &user);
    }
    let all = Selection::default();
    for path in &sources.paths {
        search.path(&sources.absolute(path), Origin::CommandLine, &all);
    }
    if sources.discover {
        search.bundled();
    }
    search.found
}

/// Expands `/name args` at the very start of an input (`host.md` 5.4.2). `None`
/// when it is no command or the name is unknown.
pub fn expand(templates: &[Template], input: &str) -> Option<String> {
    let rest = input.strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let template = templates.iter().find(|template| template.name == name)?;
    Some(substitute(&template.body, &parse_arguments(args)))
}

/// Reads the text of a template whose file has this name; an error says why the
/// front matter cannot be read.
pub(crate) fn parse(file_name: &str, text: &str) -> Result<Template, String> {
    let document = frontmatter::read(text)
        .map_err(|error| format!("The front matter cannot be read: {error}."))?;
    let described = document.text("description").map(str::to_owned);
    let template = Template {
        name: file_name.strip_suffix(".md").unwrap_or(file_name).to_owned(),
        description: described.unwrap_or_else(|| first_line(&document.body)),
        argument_hint: document.text("argument-hint").map(str::to_owned),
        body: document.body,
        path: file_name.to_owned(),
        origin: Origin::Bundled,
    };
    Ok(template)
}

const DESCRIPTION_UNITS: usize = 60;

/// The first line that is not blank, shortened (`host.md` 5.4.1).
fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    if units(line) <= DESCRIPTION_UNITS {
        return line.to_owned();
    }
    format!("{}...", cut_units(line, DESCRIPTION_UNITS))
}

/// One discovery under way.
#[derive(Default)]
struct Search {
    found: Found,
    by_name: BTreeMap<String, String>,
    real_files: BTreeSet<PathBuf>,
}

impl Search {
    fn warn(&mut self, path: &Path, message: impl Into<String>) {
        self.found.warnings.push(Warning { path: shown(path), message: message.into() });
    }

    fn listed(&mut self, selection: &Selection, base: &Path, origin: Origin) {
        for fault in &selection.faults {
            let text = format!("The entry \"{fault}\" of the setting \"prompts\" is no pattern.");
            self.warn(base, text);
        }
        for root in &selection.roots {
            self.path(root, origin, selection);
        }
    }

    /// A path that somebody named: a file or a folder, which should exist.
    fn path(&mut self, path: &Path, origin: Origin, selection: &Selection) {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.folder(path, origin, selection),
            Ok(_) => self.file(path, origin, selection),
            Err(error) => {
                let text = format!("No prompt template can be loaded from here: {error}.");
                self.warn(path, text);
            }
        }
    }

    fn folder(&mut self, folder: &Path, origin: Origin, selection: &Selection) {
        for path in sorted_entries(folder) {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.ends_with(b".md") && path.is_file() {
                self.file(&path, origin, selection);
            }
        }
    }

    fn file(&mut self, file: &Path, origin: Origin, selection: &Selection) {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        if !selection.keeps(file) || !self.real_files.insert(real) {
            return;
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let parsed = text_file::read(file)
            .map_err(|error| format!("The prompt template cannot be read: {error}."))
            .and_then(|text| parse(&name, &text));
        match parsed {
            Ok(template) => self.add(Template { path: shown(file), origin, ..template }),
            Err(reason) => self.warn(file, reason),
        }
    }

    fn bundled(&mut self) {
        for file in bundled::prompts() {
            // A bundled text that cannot be read is found by the tests.
            if let Ok(template) = parse(file.name, file.text) {
                let path = bundled::path_of(file);
                self.add(Template { path, ..template });
            }
        }
    }

    fn add(&mut self, template: Template) {
        match self.by_name.get(&template.name) {
            None => {
                let (name, path) = (template.name.clone(), template.path.clone());
                self.by_name.insert(name, path);
                self.found.templates.push(template);
            }
            // What ships with the product may be replaced without a word.
            Some(_) if template.origin == Origin::Bundled => {}
            Some(winner) => {
                let name = &template.name;
                let text = format!(
                    "The command \"/{name}\" is already loaded from {winner}; this one is skipped."
                );
                self.warn(Path::new(&template.path), text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct World {
        root: tempfile::TempDir,
        sources: Sources,
    }

    impl World {
        fn new() -> World {
            let root = tempfile::tempdir().unwrap();
            let at = |name: &str| root.path().join(name);
            let sources = Sources {
                cwd: at("work"),
                project_dir: at("work/.pi"),
                agent_dir: at("agent"),
                trusted: true,
                discover: true,
                ..Sources::default()
            };
            World { root, sources }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn names(&self) -> Vec<String> {
            let found = discover(&self.sources);
            found.templates.into_iter().map(|t| t.name).collect()
        }
    }

    #[test]
    fn sources_come_in_their_order_and_the_bundled_ones_last() {
        // 5.4.1, 5.6.5, CMD-1.
        let mut world = World::new();
        world.write("work/.pi/prompts/p.md", "x");
        world.write("work/.pi/prompts/sub/deep.md", "x");
        world.write("work/.pi/prompts/note.txt", "x");
        world.write("agent/prompts/u.md", "x");
        world.write("agent/prompts/drop.md", "x");
        world.write("agent/more/m.md", "x");
        world.write("work/flags/f.md", "x");
        world.sources.user_list = vec!["more/*.md".into(), "!drop.md".into()];
        world.sources.paths = vec!["flags".into()];
        let bundled = ["pi-crew-plan", "pi-crew-review"];
        assert_eq!(world.names(), [&["p", "m", "u", "f"][..], &bundled].concat());
        world.sources.trusted = false;
        assert_eq!(world.names(), [&["m", "u", "f"][..], &bundled].concat());
        world.sources.discover = false;
        assert_eq!(world.names(), ["f"]);
    }

    #[test]
    fn the_first_file_of_a_name_wins() {
        let world = World::new();
        world.write("work/.pi/prompts/t.md", "project");
        world.write("agent/prompts/t.md", "user");
        world.write("agent/prompts/pi-crew-plan.md", "mine");
        world.write("agent/prompts/broken.md", "---\na: [\n---\n");
        let found = discover(&world.sources);
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
        let expand = |input: &str| expand(&found.templates, input).unwrap();
        assert_eq!(expand("/t"), "project");
        assert_eq!(expand("/pi-crew-plan"), "mine");
    }

    #[test]
    fn a_template_describes_itself() {
        // 5.4.1.
        let check = |text: &str, description: &str, hint: Option<&str>| {
            let template = parse("a.b.md", text).unwrap();
            let got = (template.description.as_str(), template.argument_hint.as_deref());
            assert_eq!(got, (description, hint), "{text}");
            assert_eq!(template.name, "a.b");
        };
        check("---\ndescription: d\nargument-hint: <x>\n---\nbody", "d", Some("<x>"));
        check("---\nargument-hint: 012\n---\n\n  first  \nsecond", "first", Some("012"));
        check("\n\nplain\n", "plain", None);
        check("", "", None);
        let exact = "y".repeat(60);
        check(&exact, &exact, None);
        check(&format!("{exact}z"), &format!("{exact}..."), None);
        check(&format!("{}😀", "y".repeat(59)), &format!("{}...", "y".repeat(59)), None);
    }

    #[test]
    fn a_command_stands_at_the_very_start() {
        // 5.4.2.
        let template = Template { origin: Origin::UserFolder, ..parse("t.md", "<$1|$@>").unwrap() };
        let check = |input: &str, expected: Option<&str>| {
            let got = expand(std::slice::from_ref(&template), input);
            assert_eq!(got.as_deref(), expected, "{input}");
        };
        check("/t", Some("<|>"));
        check("/t a b", Some("<a|a b>"));
        check("/t\na\tb", Some("<a|a b>"));
        check(" /t a", None);
        check("/tt a", None);
        check("t a", None);
        check("/ t", None);
        check("/t $@", Some("<$@|$@>"));
    }
}
