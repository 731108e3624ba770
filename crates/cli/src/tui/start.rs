//! The start in two halves: what the first frame needs, then everything else
//! (TERM-34).

use std::path::{Path, PathBuf};

use crew_base::model::ModelSpec;
use crew_model::select::Scoped;
use crew_runtime::clock;
use crew_store::settings::file::{SettingsFiles, settings_path};
use crew_store::settings::typed::{QuietStart, Settings};
use crew_store::trust::{self, Trust, TrustInput, TrustStore};
use crew_store::{keybindings, paths};
use crew_tui::keys::Bindings;
use crew_tui::request::{AttentionForm, DoubleEscape, Found, Setup, TreeFilter, TrustFiles};
use crew_tui::theme::{Icons, Theme};

use crate::args::Options;
use crate::config::{Config, Environment, Place};
use crate::error::Error;
use crate::input::Expansion;

/// Rows of a completion menu before settings are read.
const MENU_ROWS: usize = 5;
/// Bytes of `HEAD` that are read for the branch.
const HEAD_BYTES_MAX: u64 = 4096;

/// A path with `~` for the home directory.
pub(super) fn with_home(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// How things look by the environment alone (TERM-53, TERM-55, TERM-56).
pub(super) fn theme(environment: &Environment) -> Theme {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment.get(name));
    let is_utf8 = locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    let term = environment.get("TERM").unwrap_or_default();
    Theme {
        colours: environment.get("NO_COLOR").is_none() && term != "dumb" && !term.is_empty(),
        icons: if is_utf8 { Icons::Emoji } else { Icons::Ascii },
        motion: environment.get("REDUCE_MOTION").is_none(),
    }
}

/// What the first frame needs.
pub(super) fn setup(place: &Place) -> Setup {
    Setup {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        theme: theme(&place.environment),
        cwd: with_home(&place.cwd, place.home.as_deref()),
        branch: branch(&place.cwd),
        menu_rows: MENU_ROWS,
        widget_tools: true,
        thinking: true,
        double_escape: DoubleEscape::Tree,
        tree_filter: TreeFilter::Default,
        skip_summary: false,
        attention: Vec::new(),
        attention_form: AttentionForm::Off,
        several_providers: false,
        header: true,
        keys: Bindings::default(),
    }
}

/// The setup with what the settings say.
pub(super) fn with_settings(setup: &mut Setup, config: &Config, options: &Options) {
    let settings = &config.settings;
    let terminal = &settings.terminal;
    setup.menu_rows = usize::try_from(terminal.autocomplete_max_visible).unwrap_or(MENU_ROWS);
    setup.thinking = !settings.hide_thinking_block;
    setup.tree_filter = TreeFilter::of(terminal.tree_filter_mode);
    setup.skip_summary = config.settings.branch_summary_skip_prompt;
    setup.double_escape = match terminal.double_escape_action {
        "fork" => DoubleEscape::Fork,
        "none" => DoubleEscape::Nothing,
        _ => DoubleEscape::Tree,
    };
    setup.attention.clone_from(&settings.crew.attention);
    setup.attention_form = match settings.crew.attention_form.as_str() {
        "desktop" => AttentionForm::Desktop,
        "off" => AttentionForm::Off,
        _ => AttentionForm::Bell,
    };
    setup.theme.motion &= settings.crew.motion;
    match settings.crew.icons.as_deref() {
        Some("emoji") => setup.theme.icons = Icons::Emoji,
        Some("symbols") => setup.theme.icons = Icons::Symbols,
        Some("ascii") => setup.theme.icons = Icons::Ascii,
        Some(_) | None => {}
    }
    setup.header = options.verbose || terminal.quiet_startup != QuietStart::Yes;
    setup.cwd = with_home(&config.place.cwd, config.place.home.as_deref());
    setup.branch = branch(&config.place.cwd);
    let usable = config.catalog.providers().iter();
    let usable = usable.filter(|known| config.credentials.is_configured(&known.id));
    setup.several_providers = usable.filter(|known| known.id != "demo").count() > 1;
}

/// The keys by `keybindings.json` and `crew.keys` (`host.md` 8.7, TERM-19);
/// what is wrong with them joins the warnings.
pub(super) fn keys(config: &mut Config) -> Bindings {
    let path = keybindings::keybindings_path(&config.place.agent_dir);
    let (lines, warnings) = keybindings::read(&path);
    let of_pi = config.settings.crew.keys.as_deref();
    let (bindings, problems) = Bindings::new(&lines, of_pi == Some("pi"));
    let file = path.display();
    let told = &mut config.warnings;
    told.extend(warnings.iter().map(|warning| format!("{file}: {}", warning.message)));
    told.extend(problems.iter().map(|problem| format!("{file}: {problem}")));
    if let Some(other) = of_pi.filter(|keys| *keys != "pi") {
        told.push(format!("crew.keys is \"{other}\", and only \"pi\" means something"));
    }
    bindings
}

/// The branch that is checked out, read from `HEAD` without running git.
pub(super) fn branch(cwd: &Path) -> Option<String> {
    let dot = cwd.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let folder = if dot.is_file() {
        let text = read_short(&dot)?;
        let target = text.trim().strip_prefix("gitdir:")?.trim().to_owned();
        let target = PathBuf::from(target);
        if target.is_absolute() { target } else { dot.parent()?.join(target) }
    } else {
        dot
    };
    let head = read_short(&folder.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => head.get(..7).map(str::to_owned),
    }
}

fn read_short(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(HEAD_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What the person is to be asked about the project, before any file of it is
/// used (TERM-60); nothing when the answer is known.
pub(super) fn trust_question(
    options: &Options,
    place: &Place,
) -> Result<Option<TrustFiles>, Error> {
    let (files, _) = SettingsFiles::load(&settings_path(&place.agent_dir), None);
    let (user, _): (Settings, _) = files.settings();
    let stored = match options.trust {
        Some(_) => None,
        None => TrustStore::new(&place.agent_dir).decision(&place.cwd)?,
    };
    let gated = trust::gated(&place.cwd, place.home.as_deref());
    let trust = trust::decide(TrustInput {
        option: options.trust,
        gated: !gated.is_empty(),
        stored,
        default: user.default_project_trust,
        interactive: true,
    });
    Ok((trust == Trust::Ask).then(|| trust_files(&gated, place)))
}

/// The gated files with what each holds.
pub(super) fn trust_files(gated: &[PathBuf], place: &Place) -> TrustFiles {
    let home = place.home.as_deref();
    let files = gated.iter().map(|path| (with_home(path, home), holds(path))).collect();
    let parent = place.cwd.parent().unwrap_or(&place.cwd);
    TrustFiles { files, parent: with_home(parent, home) }
}

fn holds(path: &Path) -> String {
    if path.is_dir() {
        let names = std::fs::read_dir(path).map(|entries| entries.flatten().count());
        return match names {
            Ok(1) => "1 file".to_owned(),
            Ok(count) => format!("{count} files"),
            Err(_) => "a folder".to_owned(),
        };
    }
    if path.extension().is_some_and(|extension| extension == "json") {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(object) = value.as_object() {
            let names: Vec<_> = object.keys().take(4).map(String::as_str).collect();
            let more = if object.len() > 4 { ", …" } else { "" };
            let word = if object.len() == 1 { "key" } else { "keys" };
            return format!("{} {word}: {}{more}", object.len(), names.join(", "));
        }
    }
    let lines = std::fs::read_to_string(path).map(|text| text.lines().count()).unwrap_or(0);
    format!("{lines} lines")
}

/// Everything the header and the completions name; what is wrong with templates
/// joins the warnings (`host.md` 8.21).
pub(super) fn found(config: &mut Config, options: &Options) -> Found {
    let (found, warnings) = look(config, options);
    config.warnings.extend(warnings);
    found
}

fn look(config: &Config, options: &Options) -> (Found, Vec<String>) {
    let place = &config.place;
    let expansion = Expansion { options, config, cwd: &place.cwd };
    let context_files = if options.prompt.no_context_files {
        Vec::new()
    } else {
        let (files, _) = crew_store::context_files::load(&place.agent_dir, &place.cwd);
        let name = |file: &crew_store::context_files::ContextFile| {
            let path = Path::new(&file.path);
            path.file_name()
                .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
        };
        files.iter().map(name).collect()
    };
    let skills = expansion.skills();
    let templates = expansion.templates();
    let warnings = expansion.warnings(std::iter::once("/"));
    let found = Found {
        context_files,
        skills: skills.len(),
        templates: templates
            .iter()
            .map(|template| (template.name.clone(), template.description.clone()))
            .collect(),
        skill_names: skills
            .iter()
            .map(|skill| (skill.name.clone(), skill.description.clone()))
            .collect(),
        agents: agents(config),
        looked_for: looked_for(config),
        models: models(config),
    };
    (found, warnings)
}

/// Models that can be used, for completion (`host.md` 8.11).
fn models(config: &Config) -> Vec<(String, String)> {
    let usable =
        |model: &&std::sync::Arc<ModelSpec>| config.credentials.is_configured(&model.provider);
    let all = config.catalog.models().iter().filter(usable);
    all.map(|model| (model.reference(), model.name.clone())).collect()
}

/// Models to cycle through (`host.md` 1.7).
pub(super) fn scope(config: &Config, options: &Options) -> Vec<Scoped> {
    let patterns = options.models.as_deref().or(config.settings.enabled_models.as_deref());
    let patterns = patterns.unwrap_or_default().iter().map(String::as_str);
    let usable = |provider: &str| config.credentials.is_configured(provider);
    crew_model::select::scope(patterns, &config.catalog, &usable).models
}

fn agents(config: &Config) -> Vec<(String, String)> {
    let definitions = discover(config).discovery.definitions;
    definitions.iter().map(|one| (one.name.clone(), one.description.clone())).collect()
}

fn discover(config: &Config) -> crew_store::definitions::Found {
    let place = &config.place;
    let folders = crew_store::definitions::Folders {
        project_dir: paths::project_dir(&place.cwd),
        user_dir: place.agent_dir.clone(),
    };
    let mut catalog = crew_store::definitions::Catalog::default();
    catalog.discover(&folders, config.trust.allows())
}

/// Whether tool rows are part of the widget (`crew.md` WID-14).
pub(super) fn widget_tools(config: &Config) -> bool {
    discover(config).show_tool_calls
}

/// What was looked for without a model (P-4).
fn looked_for(config: &Config) -> String {
    let providers = config.catalog.providers();
    let keys = providers.iter().filter(|provider| provider.id != "demo").count();
    let there = |name: &str| {
        if config.place.agent_dir.join(name).exists() {
            "there, without a usable key"
        } else {
            "not there"
        }
    };
    format!(
        "keys of {keys} providers in the environment (none set), auth.json ({}), models.json ({})",
        there("auth.json"),
        there("models.json")
    )
}

/// Now, as the face counts.
pub(super) fn now() -> crew_base::time::Time {
    clock::now()
}
