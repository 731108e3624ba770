//! Puts the parts together: tools with their process markers, credentials and
//! HTTP behind the model, workspace, engine, and the async runtime they run on.
//!
//! Nothing here does work before it is needed. Must never decide about a
//! session. Read `config` for where the values come from.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crew_base::id::SessionId;
use crew_base::json::Raw;
use crew_base::limits::SHUTDOWN_GRACE_MS;
use crew_base::tool::ToolOutcome;
use crew_engine::{Engine, EngineConfig, Source};
use crew_model::http::{Attribution, Http, HttpConfig, StreamOptions};
use crew_model::provider::Provider;
use crew_model::wire::EncodeOptions;
use crew_runtime::{
    Handle, ModelWish, Parts, Renewed, SessionPlace, TaskOutput, Updates, Workspace,
    WorkspaceConfig,
};
use crew_store::bundled;
use crew_tools::{Host, HostConfig, ShellConfig, ToolContext, Toolbox};
use tokio::runtime::Runtime;

use crate::args::Options;
use crate::config::{Config, Environment, models, proxies, session_settings};
use crate::error::Error;

/// Threads that drive sessions; the rest of the work waits on others.
const WORKERS_MAX: usize = 4;
/// Threads for work that blocks on files and processes.
const BLOCKING_THREADS_MAX: usize = 64;
/// Limit for setting up a connection.
const CONNECT_TIMEOUT_MS: u64 = 30_000;

/// Whether somebody answers questions while the program runs (`task.md`
/// OBS-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// The face shows questions and takes answers.
    Present,
    /// Nobody does.
    Absent,
}

/// Everything that is ready to run.
pub(crate) struct Wired {
    /// What the tools of the process share.
    pub(crate) host: Arc<Host>,
    /// The id of the session to open.
    pub(crate) session: SessionId,
    /// Where it comes from.
    pub(crate) source: Source,
    toolbox: Arc<Toolbox>,
    cwd: PathBuf,
    home: Option<PathBuf>,
    parts: Parts,
}

/// Builds all parts (`style.md` 2); what is wrong with the model options is an
/// error, the rest adds warnings.
pub(crate) fn wire(
    config: &Config,
    options: &Options,
    person: Person,
    warnings: &mut Vec<String>,
) -> Result<Wired, Error> {
    let (place, settings) = (&config.place, &config.settings);
    let enabled = settings.enabled_models.as_deref();
    let wish = models::wish(options, enabled, &config.catalog, &config.credentials)?;
    if let SessionPlace::Folder(_) = &config.start.place
        && !options.prompt.no_skills
        && let Err(error) = bundled::materialise(&place.agent_dir)
    {
        warnings.push(format!("the bundled skill is not offered: {error}"));
    }
    let host = Host::new(HostConfig {
        tmp: std::env::temp_dir(),
        guard: Some(crew_runtime::guard::start()),
    });
    let toolbox = Arc::new(Toolbox::with_images(settings.images_auto_resize));
    let mut engine = Engine::new(
        seed(),
        EngineConfig {
            settings: session_settings(settings, &place.environment),
            home: place.home.as_ref().map(|home| home.to_string_lossy().into_owned()),
            depth: place.environment.depth(),
        },
    );
    engine.bound_requests(requests_max(config));
    let fresh = engine.fresh_session_id(crew_runtime::clock::now());
    let workspace = workspace(config, options, wish, person, Arc::clone(&toolbox));
    let parts = Parts {
        engine,
        model: Arc::new(provider(config)),
        workspace: Arc::new(workspace),
        host: Arc::clone(&host),
    };
    Ok(Wired {
        host,
        session: config.start.session.clone().unwrap_or(fresh),
        source: config.start.source.clone(),
        toolbox,
        cwd: config.start_dir.clone(),
        home: place.home.clone(),
        parts,
    })
}

/// What a running host works with after its files were read again
/// (`host.md` 8.23).
pub(crate) fn renewed(
    config: &Config,
    options: &Options,
    person: Person,
) -> Result<Renewed, Error> {
    let settings = &config.settings;
    let enabled = settings.enabled_models.as_deref();
    let wish = models::wish(options, enabled, &config.catalog, &config.credentials)?;
    let toolbox = Arc::new(Toolbox::with_images(settings.images_auto_resize));
    Ok(Renewed {
        model: Arc::new(provider(config)),
        workspace: Arc::new(workspace(config, options, wish, person, toolbox)),
        settings: session_settings(settings, &config.place.environment),
        requests_max: requests_max(config),
    })
}

fn requests_max(config: &Config) -> Option<usize> {
    let bound = config.settings.crew.max_concurrent_requests;
    bound.map(|bound| usize::try_from(bound).unwrap_or(usize::MAX))
}

fn workspace(
    config: &Config,
    options: &Options,
    wish: ModelWish,
    person: Person,
    toolbox: Arc<Toolbox>,
) -> Workspace {
    let place = &config.place;
    Workspace::new(WorkspaceConfig {
        cwd: place.cwd.clone(),
        home: place.home.clone(),
        agent_dir: place.agent_dir.clone(),
        trust: config.trust,
        settings: Arc::clone(&config.settings),
        catalog: Arc::clone(&config.catalog),
        credentials: Arc::clone(&config.credentials),
        toolbox,
        sessions: config.start.place.clone(),
        model: wish,
        tools: options.tools.clone(),
        prompt: options.prompt.clone(),
        tmp: std::env::temp_dir(),
        command_env: command_env(options.offline || place.environment.is_offline()),
        can_ask: person == Person::Present,
        task_output: task_output(&place.environment),
        depth: place.environment.depth(),
    })
}

/// The async runtime of the process.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, WORKERS_MAX))
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(Error::Runtime)
}

/// Ends the runtime after everything on it was told to end. Whoever is still
/// about to let go of the process's commands does so meanwhile; a thread that
/// blocks longer, such as in a read of a silent pipe, is left behind.
pub(crate) fn shut_down(runtime: Runtime) {
    runtime.shutdown_timeout(Duration::from_millis(SHUTDOWN_GRACE_MS));
}

impl Wired {
    /// Runs the tool `read` for an attachment.
    pub(crate) fn read_tool(&self, arguments: Raw) -> impl Future<Output = ToolOutcome> + use<> {
        let context = ToolContext {
            cwd: self.cwd.clone(),
            home: self.home.clone(),
            session: self.session.clone(),
            env: Vec::new(),
            shell: ShellConfig::default(),
            results: Vec::new(),
            images: true,
            cancel: Default::default(),
            progress: Arc::new(|_| {}),
            host: Arc::clone(&self.host),
        };
        self.toolbox.run(context, "read", &arguments)
    }

    /// Starts the loop; must be called inside the runtime.
    pub(crate) fn start(self) -> (Handle, Updates) {
        crew_runtime::start(self.parts)
    }
}

/// A seed for ids and jitter that no other use shares.
pub(crate) fn seed() -> u64 {
    static USES: AtomicU64 = AtomicU64::new(1);
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = time.map_or(0, |time| time.as_nanos() as u64);
    let number = USES.fetch_add(1, Ordering::Relaxed);
    nanos.rotate_left(20) ^ u64::from(std::process::id()) ^ number.rotate_right(8)
}

fn provider(config: &Config) -> Provider {
    let settings = &config.settings;
    let http = Http::new(HttpConfig {
        user_agent: format!(
            "crew/{} ({}; {})",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        connect_timeout_ms: CONNECT_TIMEOUT_MS,
        proxy: proxies(&config.place.environment, settings),
        attribution: Some(Attribution {
            referer: "https://crew.invalid/".to_owned(),
            title: "crew".to_owned(),
        }),
    });
    let encode = EncodeOptions {
        thinking_budgets: settings.thinking_budgets.clone(),
        block_images: settings.block_images,
    };
    let idle_ms = settings.retry.provider_timeout_ms.or(settings.http_idle_timeout_ms).unwrap_or(0);
    Provider::new(
        Arc::new(http),
        Arc::clone(&config.credentials),
        StreamOptions { idle_ms, encode },
    )
}

/// Limits of the output that `task` returns: positive numbers of the
/// environment (`task.md` 1.6).
fn task_output(environment: &Environment) -> TaskOutput {
    let number = |name: &str| {
        let value: usize = environment.get(name)?.trim().parse().ok()?;
        (value > 0).then_some(value)
    };
    TaskOutput {
        bytes_max: number("CREW_TASK_OUTPUT_BYTES"),
        lines_max: number("CREW_TASK_OUTPUT_LINES"),
    }
}

/// Variables that all commands carry (`host.md` 1.2.5, 1.2.2).
fn command_env(offline: bool) -> Vec<(String, String)> {
    let mut markers = vec![("AI_AGENT", "crew"), ("CREW_CODING_AGENT", "true")];
    if offline {
        markers.push(("PI_OFFLINE", "1"));
    }
    markers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
