//! Keeps the documents for users in step: their examples are read by the
//! program's own readers, their table of settings is that of the reader.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::definition::Warning;
use crew_base::entry::{Header, SESSION_VERSION};
use crew_base::time::Time;
use crew_model::auth::{AuthConfig, Credentials};
use crew_model::catalog::Catalog;
use crew_model::select::{Query, resolve_model, scope};
use crew_store::definitions::{self, Folders};
use crew_store::prompts;
use crew_store::resources::{Origin, Sources};
use crew_store::settings::file::SettingsFiles;
use crew_store::settings::task::TaskSettings;
use crew_store::settings::typed::Settings;
use crew_store::skills;
use crew_store::trust::TrustStore;
use serde_json::{Map, Value, json};

const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");
const DOCUMENTS: [(&str, &str); 4] = [
    ("configuration.md", CONFIGURATION),
    ("crew.md", include_str!("../../../docs/crew.md")),
    ("sessions.md", include_str!("../../../docs/sessions.md")),
    ("README.md", include_str!("../../../README.md")),
];
const SETTINGS_READERS: [&str; 2] = [
    include_str!("../../store/src/settings/typed.rs"),
    include_str!("../../store/src/settings/task.rs"),
];

/// A block of code: its language, the file it would be, and its text.
struct Example {
    document: &'static str,
    language: &'static str,
    file: &'static str,
    text: String,
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for (document, text) in DOCUMENTS {
        let mut inside = false;
        for line in text.lines() {
            match line.strip_prefix("```") {
                Some(_) if inside => inside = false,
                Some(info) => {
                    let (language, file) = info.split_once(' ').unwrap_or((info, ""));
                    examples.push(Example { document, language, file, text: String::new() });
                    inside = true;
                }
                None if inside => {
                    let example = examples.last_mut().unwrap();
                    example.text += line;
                    example.text.push('\n');
                }
                None => {}
            }
        }
        assert!(!inside, "{document}: a block is not closed");
    }
    examples
}

/// Folders in which an example lies as the file that it is.
struct World {
    _root: tempfile::TempDir,
    agent: PathBuf,
}

impl World {
    fn new(file: &str, text: &str) -> World {
        let root = tempfile::tempdir().unwrap();
        let agent = root.path().canonicalize().unwrap();
        let path = agent.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        World { _root: root, agent }
    }

    fn settings(&self) -> (Settings, Vec<Warning>) {
        let (files, mut warnings) = SettingsFiles::load(&self.agent.join("settings.json"), None);
        let (settings, found) = files.settings();
        warnings.extend(found);
        warnings.extend(files.task().1);
        (settings, warnings)
    }

    fn task_settings(&self) -> TaskSettings {
        SettingsFiles::load(&self.agent.join("settings.json"), None).0.task().0
    }

    fn definitions(&self) -> definitions::Found {
        let folders = Folders { user_dir: self.agent.clone(), project_dir: "/nowhere/.pi".into() };
        definitions::Catalog::default().discover(&folders, false)
    }

    fn sources(&self) -> Sources {
        let (agent_dir, project_dir) = (self.agent.clone(), PathBuf::from("/nowhere/.pi"));
        Sources {
            cwd: "/nowhere".into(),
            project_dir,
            agent_dir,
            discover: true,
            ..Sources::default()
        }
    }
}

fn read(example: &Example) {
    let Example { document, file, text, .. } = example;
    let at = format!("{document}: {file}");
    let world = World::new(file, text);
    let none: &[Warning] = &[];
    match *file {
        "settings.json" => {
            let (settings, warnings) = world.settings();
            assert_eq!(warnings, none, "{at}");
            models_exist(&settings);
        }
        "models.json" => {
            let (catalog, error) = Catalog::build(Some((file, text)));
            assert!(error.is_none(), "{at}: {error:?}");
            assert!(catalog.get("local", "my-model").is_some(), "{at}");
        }
        "auth.json" => credentials(text),
        "trust.json" => {
            let store = TrustStore::new(&world.agent);
            let decision = |path: &str| store.decision(Path::new(path)).unwrap();
            assert_eq!(decision("/home/me/code/app"), Some(true));
            assert_eq!(decision("/home/me/code/downloads/x"), Some(false));
            assert_eq!(decision("/home/me"), None);
        }
        "pi-crew.json" => assert_eq!(world.definitions().discovery.warnings, none, "{at}"),
        "session.jsonl" => {
            let header: Header = serde_json::from_str(text).unwrap();
            assert_eq!(header.version, SESSION_VERSION, "{at}");
        }
        file if file.starts_with("agents/") => {
            let found = world.definitions().discovery;
            assert_eq!(found.warnings, none, "{at}");
            assert!(found.definitions.iter().any(|known| known.path.ends_with(file)), "{at}");
        }
        file if file.starts_with("skills/") => {
            let found = skills::discover(&world.sources());
            assert_eq!((found.skills.len(), found.warnings), (1, Vec::new()), "{at}");
        }
        file if file.starts_with("prompts/") => {
            let found = prompts::discover(&world.sources());
            assert_eq!(found.warnings, none, "{at}");
            let own = found.templates.iter().find(|own| own.origin == Origin::UserFolder);
            assert!(!own.unwrap().description.is_empty(), "{at}");
        }
        file => panic!("{document}: nobody reads the example `{file}`"),
    }
}

/// Every model that the settings name is one that can be chosen.
fn models_exist(settings: &Settings) {
    let (catalog, _) = Catalog::build(None);
    let usable = |provider: &str| provider == "anthropic";
    let text = settings.default_model.as_deref().unwrap();
    let query = Query { text, provider: settings.default_provider.as_deref(), thinking: None };
    assert_eq!(resolve_model(query, &catalog, &usable).unwrap().warnings, []);
    for model in settings.model_thinking_levels.keys() {
        let (provider, id) = model.split_once('/').unwrap();
        assert!(catalog.get(provider, id).is_some(), "{model}");
    }
    let patterns = settings.enabled_models.iter().flatten().map(String::as_str);
    let known = patterns.filter(|pattern| !pattern.starts_with("local/"));
    assert_eq!(scope(known, &catalog, &usable).warnings, []);
}

fn credentials(text: &str) {
    let (catalog, _) = Catalog::build(None);
    let (credentials, warnings) = Credentials::new(AuthConfig {
        catalog: Arc::new(catalog),
        auth_path: "auth.json".to_owned(),
        auth_text: Some(text.to_owned()),
        environment: Arc::new(|_| None),
        clock: Arc::new(|| Time(0)),
    });
    assert_eq!(warnings, []);
    assert!(credentials.is_configured("anthropic") && credentials.is_configured("groq"));
    // host.md 1.6.2: its variable is not set here.
    assert!(!credentials.is_configured("openai"));
}

#[test]
fn every_example_of_a_file_is_read_without_a_complaint() {
    let mut files = BTreeSet::new();
    for example in examples() {
        let is_file = ["json", "jsonc", "markdown"].contains(&example.language);
        let looks_like_one = example.text.starts_with(['{', '-']);
        assert_eq!(is_file, looks_like_one, "{}: {}", example.document, example.text);
        if is_file {
            read(&example);
            files.insert(example.file);
        }
    }
    assert!(files.len() >= 9, "{files:?}");
}

/// A row of the tables of settings.
struct Row {
    key: &'static str,
    default: Option<Value>,
}

fn section(title: &str) -> &'static str {
    let (_, rest) = CONFIGURATION.split_once(&format!("## {title}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

fn rows() -> Vec<Row> {
    let rows = section("settings.json").lines().filter(|line| line.starts_with("| `"));
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let default = Some(cells[3].trim_matches('`')).filter(|text| *text != "–");
        let default = default.map(|text| serde_json::from_str(text).unwrap());
        Row { key: cells[1].trim_matches('`'), default }
    };
    rows.map(row).collect()
}

fn nested(key: &str, value: Value) -> Value {
    key.rsplit('.').fold(value, |value, name| json!({ name: value }))
}

#[test]
fn every_setting_in_the_tables_is_read() {
    // host.md 1.3
    for Row { key, .. } in rows() {
        // No setting has this form.
        let world = World::new("settings.json", &nested(key, json!([[0]])).to_string());
        let (settings, warnings) = world.settings();
        let told = warnings.iter().any(|warning| warning.message.contains(&format!("`{key}`")));
        let at_use = settings.compaction.tokens("p/m").is_err_and(|error| error.key == key);
        assert!(told || at_use, "{key} is not read: {warnings:?}");
    }
}

#[test]
fn the_defaults_in_the_tables_are_those_in_force() {
    // host.md 1.3
    let mut file = Value::Object(Map::new());
    for Row { key, default } in rows() {
        let Some(default) = default else { continue };
        let pointer = format!("/{}", key.replace('.', "/"));
        merge(&mut file, nested(key, default));
        assert!(file.pointer(&pointer).is_some(), "{key}");
    }
    let world = World::new("settings.json", &file.to_string());
    let (mut written, warnings) = world.settings();
    assert_eq!(warnings, []);
    let bare = World::new("settings.json", "{}");
    let (empty, _) = bare.settings();
    assert_eq!(world.task_settings(), bare.task_settings());
    // `None` is the level `medium` (`host.md` 1.7.2).
    assert_eq!(written.default_thinking_level.take().unwrap().word(), "medium");
    written.crew.value.clear();
    assert_eq!(written, empty);
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[test]
fn every_setting_that_is_read_is_in_the_document() {
    let code: String = SETTINGS_READERS.concat().split_whitespace().collect();
    let calls = [
        "r.text(\"",
        "r.texts(\"",
        "r.flag(\"",
        "r.count(\"",
        "r.word(\"",
        "r.get(\"",
        "r.bounded(\"",
        "r.values(\"",
        "(r,\"",
    ];
    let mut keys = BTreeSet::new();
    for call in calls {
        let found = code.split(call).skip(1).filter_map(|rest| rest.split('"').next());
        keys.extend(found);
    }
    assert!(keys.len() > 50, "{keys:?}");
    for key in keys.into_iter().filter(|key| *key != "crew") {
        assert!(section("settings.json").contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn every_known_provider_and_its_variables_are_in_the_document() {
    // host.md 1.4
    let (catalog, _) = Catalog::build(None);
    let text = section("Providers and keys");
    for provider in catalog.providers().iter().filter(|provider| provider.id != "demo") {
        for name in provider.env.iter().chain([&provider.id]) {
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
        let has_models = catalog.models_of(&provider.id).next().is_some();
        let first = text.lines().find(|line| line.starts_with("| `")).unwrap();
        assert_eq!(first.contains(&format!("`{}`", provider.id)), has_models, "{}", provider.id);
    }
}
