//! Everything the program finds out before it starts: environment, folders,
//! settings, trust, models and keys (`host.md` 1, 5.6).
//!
//! The one place that reads the environment, once. What is wrong in a file is
//! a warning and never stops the start; what makes the start meaningless is an
//! error. Read `config::session` for which session is meant, `config::models`
//! for which model.

pub(crate) mod models;
pub(crate) mod session;

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::definition::Warning;
use crew_base::model::CacheRetention;
use crew_engine::api::{
    CompactionOverrides, CompactionSettings, CompactionSizes, QueueMode, RetrySettings,
    Settings as SessionSettings,
};
use crew_model::auth::{AuthConfig, Credentials};
use crew_model::catalog::Catalog;
use crew_model::http::ProxyConfig;
use crew_store::listing::{self, Found};
use crew_store::settings::file::{SettingsFiles, project_session_dir, settings_path};
use crew_store::settings::typed::{BadNumber, QueueMode as StoredMode, Settings};
use crew_store::trust::{self, Trust, TrustInput, TrustStore};
use crew_store::{files, paths};

use crate::args::Options;
use crate::error::Error;
use session::Start;

use crew_runtime::DEPTH_VARIABLE;

/// The environment as it was at the start.
#[derive(Clone)]
pub(crate) struct Environment(Arc<BTreeMap<String, String>>);

impl Environment {
    /// Takes a snapshot; values that are not UTF-8 are left out.
    pub(crate) fn read() -> Environment {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment(Arc::new(std::env::vars_os().filter_map(text).collect()))
    }

    /// An environment of these.
    #[cfg(test)]
    pub(crate) fn of(values: impl Iterator<Item = (String, String)>) -> Environment {
        Environment(Arc::new(values.collect()))
    }

    /// A variable's value unless unset or empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// How deep below another session of ours this program was started (C064);
    /// what cannot be read counts as deep, so that nothing can end the count.
    pub(crate) fn depth(&self) -> u32 {
        self.get(DEPTH_VARIABLE).map_or(0, |depth| depth.trim().parse().unwrap_or(u32::MAX / 2))
    }

    /// Whether `PI_OFFLINE` is set (`host.md` 1.2.2).
    pub(crate) fn is_offline(&self) -> bool {
        let value = self.get("PI_OFFLINE").unwrap_or_default().to_lowercase();
        matches!(value.as_str(), "1" | "true" | "yes")
    }
}

/// Where the program runs.
#[derive(Clone)]
pub(crate) struct Place {
    /// The environment.
    pub(crate) environment: Environment,
    /// The working directory, absolute.
    pub(crate) cwd: PathBuf,
    /// The home directory, if there is one.
    pub(crate) home: Option<PathBuf>,
    /// The agent directory (`host.md` 1.1.1).
    pub(crate) agent_dir: PathBuf,
}

impl Place {
    /// Reads the environment and the working directory (`host.md` 6.1.10).
    pub(crate) fn read() -> Result<Place, Error> {
        let environment = Environment::read();
        let cwd = std::env::current_dir().map_err(Error::NoWorkingDirectory)?;
        let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let get = |name: &str| environment.get(name);
        let agent_dir = paths::agent_dir(&get, home.as_deref(), &cwd);
        Ok(Place { environment, cwd, home, agent_dir })
    }

    /// Whether the agent directory was named, by home or variable.
    fn has_agent_dir(&self) -> bool {
        let named = ["CREW_CODING_AGENT_DIR", "PI_CODING_AGENT_DIR"];
        self.home.is_some() || named.iter().any(|name| self.environment.get(name).is_some())
    }
}

/// What was found out.
pub(crate) struct Config {
    /// Where the program runs; `cwd` is that of the session.
    pub(crate) place: Place,
    /// Where the program was started; relative words count from here.
    pub(crate) start_dir: PathBuf,
    /// Settings in force.
    pub(crate) settings: Arc<Settings>,
    /// The decision about the project.
    pub(crate) trust: Trust,
    /// All models.
    pub(crate) catalog: Arc<Catalog>,
    /// Keys of providers.
    pub(crate) credentials: Arc<Credentials>,
    /// Which session is used.
    pub(crate) start: Start,
    /// What was wrong and stopped nothing.
    pub(crate) warnings: Vec<String>,
}

/// Reads all that a run needs.
pub(crate) fn load(options: &Options) -> Result<Config, Error> {
    let mut place = Place::read()?;
    let mut warnings = options.warnings.clone();
    let user_file = settings_path(&place.agent_dir);
    let (user_files, _) = SettingsFiles::load(&user_file, None);
    let (user, _) = user_files.settings();
    let folder = session_folder(options, &place, &user);
    let start = session::choose(options, &place, folder, &mut warnings)?;
    let start_dir = std::mem::replace(&mut place.cwd, start.cwd.clone());
    let trust = decide_trust(options, &place, &user, &mut warnings)?;
    let settings = Arc::new(settings(&place, trust, &mut warnings));
    let catalog = Arc::new(catalog(&place, &mut warnings));
    if place.has_agent_dir() {
        create_auth_file(&place.agent_dir);
    }
    let credentials = Arc::new(credentials(&place, &catalog, &mut warnings));
    Ok(Config { place, start_dir, settings, trust, catalog, credentials, start, warnings })
}

/// Reads the files of a run again: settings, models, keys, and what was decided
/// about the project, unless the person `said` it (`host.md` 8.23). Keys that
/// were given stay; the session stays the one that was chosen.
pub(crate) fn reload(options: &Options, old: &Config, said: Option<bool>) -> Result<Config, Error> {
    let place = old.place.clone();
    let mut warnings = Vec::new();
    let user_file = settings_path(&place.agent_dir);
    let (user_files, _) = SettingsFiles::load(&user_file, None);
    let (user, _) = user_files.settings();
    let trust = match said {
        Some(true) => Trust::Trusted,
        Some(false) => Trust::Untrusted,
        None => decide_trust(options, &place, &user, &mut warnings)?,
    };
    let settings = Arc::new(settings(&place, trust, &mut warnings));
    let catalog = Arc::new(catalog(&place, &mut warnings));
    let text = read_optional(&place.agent_dir.join("auth.json"), &mut warnings);
    let found = old.credentials.reload(Arc::clone(&catalog), text.as_deref());
    warnings.extend(found.iter().map(ToString::to_string));
    let (credentials, start) = (Arc::clone(&old.credentials), old.start.clone());
    let start_dir = old.start_dir.clone();
    Ok(Config { place, start_dir, settings, trust, catalog, credentials, start, warnings })
}

/// The settings in force; those of the project only when it is trusted.
fn settings(place: &Place, trust: Trust, warnings: &mut Vec<String>) -> Settings {
    let user_file = settings_path(&place.agent_dir);
    let project_file = settings_path(&paths::project_dir(&place.cwd));
    let project_file = Some(project_file).filter(|path| trust.allows() && path.exists());
    let (files, found) = SettingsFiles::load(&user_file, project_file.as_deref());
    warnings.extend(found.iter().map(worded));
    let (settings, found) = files.settings();
    warnings.extend(found.iter().map(worded));
    if let Err(error) = compaction(&settings) {
        warnings.push(format!("{error}; no session is compacted unasked"));
    }
    for (model, sizes) in compaction_overrides(&settings).models {
        if let Err(error) = sizes {
            warnings.push(format!("{error}; sessions with {model} are not compacted unasked"));
        }
    }
    settings
}

/// What the demo runs with: no file of the person, no key, nothing kept
/// (`product.md` P-2).
pub(crate) fn for_demo(dir: PathBuf) -> Config {
    let environment = Environment::read();
    let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    // Never made: a folder that no file can lie in.
    let agent_dir = std::env::temp_dir().join(format!("crew-demo-{}", std::process::id()));
    let place = Place { environment, cwd: dir.clone(), home, agent_dir };
    let (settings, _) = SettingsFiles::load(&settings_path(&place.agent_dir), None).0.settings();
    let (catalog, _) = Catalog::build(None);
    let catalog = Arc::new(catalog);
    let credentials = Arc::new(credentials(&place, &catalog, &mut Vec::new()));
    Config {
        start: Start::in_memory(dir.clone()),
        start_dir: dir,
        place,
        settings: Arc::new(settings),
        trust: Trust::Untrusted,
        catalog,
        credentials,
        warnings: Vec::new(),
    }
}

/// The custom session folder or that of the project (`host.md` 1.2.1). The
/// key `sessionDir` of an untrusted project counts too (1.1.4).
/// Finds the file of a session named by path or id, of any project.
pub(crate) fn find_session(
    named: &str,
    session_dir: Option<&str>,
) -> Result<(Place, PathBuf), Error> {
    let place = Place::read()?;
    let (files, _) = SettingsFiles::load(&settings_path(&place.agent_dir), None);
    let options = Options { session_dir: session_dir.map(str::to_owned), ..Options::default() };
    let folder = session_folder(&options, &place, &files.settings().0);
    let file = match listing::find(named, &folder, &place.cwd, place.home.as_deref()) {
        Found::Path(path) | Found::Here(path) | Found::Elsewhere { path, .. } => path,
        Found::Nothing => return Err(Error::NoSuchSession(named.to_owned())),
    };
    Ok((place, file))
}

fn session_folder(options: &Options, place: &Place, user: &Settings) -> paths::SessionFolder {
    let project = settings_path(&paths::project_dir(&place.cwd));
    let setting = project_session_dir(&project).or_else(|| user.session_dir.clone());
    let get = |name: &str| place.environment.get(name);
    let custom = paths::custom_session_dir(
        options.session_dir.as_deref(),
        &get,
        setting.as_deref(),
        place.home.as_deref(),
        &place.cwd,
    );
    paths::SessionFolder::new(&place.agent_dir, &place.cwd, custom)
}

/// Nobody can be asked in these faces (`host.md` 5.6.3).
fn decide_trust(
    options: &Options,
    place: &Place,
    user: &Settings,
    warnings: &mut Vec<String>,
) -> Result<Trust, Error> {
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
        interactive: false,
    });
    if trust == Trust::Untrusted && options.trust.is_none() && stored.is_none() {
        let first = gated.first().map(|path| path.display().to_string()).unwrap_or_default();
        warnings.push(format!(
            "this directory is not trusted: {first} and the like are not used; --approve uses them"
        ));
    }
    Ok(trust)
}

fn catalog(place: &Place, warnings: &mut Vec<String>) -> Catalog {
    let path = place.agent_dir.join("models.json");
    let text = read_optional(&path, warnings);
    let path = path.to_string_lossy();
    let (catalog, error) = Catalog::build(text.as_deref().map(|text| (path.as_ref(), text)));
    warnings.extend(error.map(|error| format!("{error}; the file is not used")));
    catalog
}

fn credentials(place: &Place, catalog: &Arc<Catalog>, warnings: &mut Vec<String>) -> Credentials {
    let path = place.agent_dir.join("auth.json");
    let auth_text = read_optional(&path, warnings);
    let environment = place.environment.clone();
    let (credentials, found) = Credentials::new(AuthConfig {
        catalog: Arc::clone(catalog),
        auth_path: path.to_string_lossy().into_owned(),
        auth_text,
        environment: Arc::new(move |name| environment.get(name)),
        clock: Arc::new(crew_runtime::clock::now),
    });
    warnings.extend(found.iter().map(ToString::to_string));
    credentials
}

/// Makes `auth.json` at the first start, private (`host.md` 1.4.2). Where that
/// is not possible nothing is lost: a missing file is an empty one.
fn create_auth_file(agent_dir: &Path) {
    let path = agent_dir.join("auth.json");
    if fs::symlink_metadata(&path).is_ok() {
        return;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let made = files::create_private_dir(agent_dir).is_ok();
    if made && let Ok(mut file) = options.open(&path) {
        let _ = file.write_all(b"{}");
    }
}

/// The text of a file; `None` when it is missing or cannot be read, the latter
/// with a warning.
fn read_optional(path: &Path, warnings: &mut Vec<String>) -> Option<String> {
    match fs::read(path) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            warnings.push(format!("{} cannot be read: {error}", path.display()));
            None
        }
    }
}

fn worded(warning: &Warning) -> String {
    format!("{}: {}", warning.path, warning.message)
}

/// Proxies of the environment; the setting fills what it leaves open
/// (`host.md` 1.2.4).
pub(crate) fn proxies(environment: &Environment, settings: &Settings) -> ProxyConfig {
    let either =
        |name: &str| environment.get(name).or_else(|| environment.get(&name.to_lowercase()));
    ProxyConfig {
        http: either("HTTP_PROXY").or_else(|| settings.http_proxy.clone()),
        https: either("HTTPS_PROXY").or_else(|| settings.http_proxy.clone()),
        no_proxy: either("NO_PROXY"),
    }
}

/// What the settings say about every session.
pub(crate) fn session_settings(settings: &Settings, environment: &Environment) -> SessionSettings {
    let mode = |mode: StoredMode| match mode {
        StoredMode::All => QueueMode::All,
        StoredMode::OneAtATime => QueueMode::OneAtATime,
    };
    let is_long = environment.get("PI_CACHE_RETENTION").as_deref() == Some("long");
    SessionSettings {
        steering: mode(settings.steering_mode),
        follow_up: mode(settings.follow_up_mode),
        retry: RetrySettings {
            enabled: settings.retry.enabled,
            retries_max: u32::try_from(settings.retry.max_retries).unwrap_or(u32::MAX),
            base_delay_ms: settings.retry.base_delay_ms,
            delay_ms_max: settings.retry.max_agent_delay_ms,
            resends_max: u32::try_from(settings.retry.provider_max_retries).unwrap_or(u32::MAX),
            resend_delay_ms_max: settings.retry.provider_max_retry_delay_ms,
        },
        compaction: compaction(settings).unwrap_or_else(|_| CompactionSettings {
            enabled: settings.compaction.enabled,
            ..CompactionSettings::default()
        }),
        compaction_overrides: compaction_overrides(settings),
        branch_reserve_tokens: settings.branch_summary_reserve_tokens,
        cache: if is_long { CacheRetention::Long } else { CacheRetention::Short },
        ..SessionSettings::default()
    }
}

/// When contexts are compacted, and how much of them stays. A size that is no
/// number is an error, and then nothing is compacted unasked (`host.md` 1.3.8).
fn compaction(settings: &Settings) -> Result<CompactionSettings, BadNumber> {
    let compaction = &settings.compaction;
    Ok(CompactionSettings {
        enabled: compaction.enabled,
        reserve_tokens: compaction.reserve_tokens.clone()?,
        keep_recent_tokens: compaction.keep_recent_tokens.clone()?,
    })
}

/// Sizes that are no numbers are an error where they are used, those of a
/// model only with that model (`host.md` 1.3.8).
fn compaction_overrides(settings: &Settings) -> CompactionOverrides {
    let settings = &settings.compaction;
    let sizes = |model: &String| {
        let (reserve_tokens, keep_recent_tokens) =
            settings.tokens(model).map_err(|error| error.to_string())?;
        Ok(CompactionSizes { reserve_tokens, keep_recent_tokens })
    };
    let bad = [&settings.reserve_tokens, &settings.keep_recent_tokens];
    CompactionOverrides {
        models: settings
            .model_overrides
            .keys()
            .map(|model| (model.clone(), sizes(model)))
            .collect(),
        error: bad.into_iter().find_map(|size| size.as_ref().err()).map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_model_win_over_the_ordinary_ones_and_bad_ones_are_errors() {
        // host.md 1.3.8
        let read = |text: &str| {
            let world = tempfile::tempdir().unwrap();
            let path = world.path().join("settings.json");
            std::fs::write(&path, text).unwrap();
            let (files, _) = SettingsFiles::load(&path, None);
            let (settings, _) = files.settings();
            compaction_overrides(&settings)
        };
        let sizes = |reserve_tokens, keep_recent_tokens| {
            Ok(CompactionSizes { reserve_tokens, keep_recent_tokens })
        };
        let found = read(
            r#"{"compaction":{"keepRecentTokens":7,"modelOverrides":{"p/m":{"reserveTokens":5},"p/bad":{"reserveTokens":-1}}}}"#,
        );
        assert_eq!(found.error, None);
        assert_eq!(found.models["p/m"], sizes(5, 7));
        let error = found.models["p/bad"].as_ref().unwrap_err();
        assert!(error.contains("compaction.modelOverrides.p/bad.reserveTokens"), "{error}");
        let found = read(
            r#"{"compaction":{"reserveTokens":"x","modelOverrides":{"p/m":{"reserveTokens":5}}}}"#,
        );
        assert!(found.error.is_some_and(|error| error.contains("reserveTokens")));
        assert_eq!(found.models["p/m"], sizes(5, 20_000));
    }

    fn environment(values: &[(&str, &str)]) -> Environment {
        let pairs = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment(Arc::new(pairs.collect()))
    }

    #[test]
    fn offline_is_one_true_or_yes() {
        // host.md 1.2.2
        let check = |value: &str, expected: bool| {
            assert_eq!(environment(&[("PI_OFFLINE", value)]).is_offline(), expected, "{value}");
        };
        check("1", true);
        check("TRUE", true);
        check("yes", true);
        check("0", false);
        check("", false);
    }

    #[test]
    fn the_proxy_setting_fills_what_the_environment_leaves_open() {
        // host.md 1.2.4
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, r#"{"httpProxy":"http://set"}"#).unwrap();
        let (settings, _) = SettingsFiles::load(&path, None).0.settings();
        let got =
            proxies(&environment(&[("https_proxy", "http://env"), ("NO_PROXY", "x")]), &settings);
        assert_eq!(got.http.as_deref(), Some("http://set"));
        assert_eq!(got.https.as_deref(), Some("http://env"));
        assert_eq!(got.no_proxy.as_deref(), Some("x"));
    }

    #[test]
    fn long_cache_retention_is_one_word() {
        // host.md 1.2.3
        let (settings, _) = SettingsFiles::load(Path::new("/no/such/file"), None).0.settings();
        let check = |value: &str, expected: CacheRetention| {
            let environment = environment(&[("PI_CACHE_RETENTION", value)]);
            assert_eq!(session_settings(&settings, &environment).cache, expected);
        };
        check("long", CacheRetention::Long);
        check("Long", CacheRetention::Short);
        check("", CacheRetention::Short);
    }
}
