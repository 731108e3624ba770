//! A host in a folder of its own: real engine, tools and store.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crew_base::id::SessionId;
use crew_base::message::Message;
use crew_base::time::Time;
use crew_engine::api::{Command, Refusal, SessionUpdate, Settings as SessionSettings, Update};
use crew_engine::{Engine, EngineConfig, Source};
use crew_model::Model;
use crew_model::auth::{AuthConfig, Credentials};
use crew_model::catalog::Catalog;
use crew_runtime::{
    Handle, ModelWish, Notice, Parts, PromptWish, SessionPlace, TaskOutput, ToolWish, Updates,
    Workspace, WorkspaceConfig,
};
use crew_store::paths::SessionFolder;
use crew_store::settings::file::SettingsFiles;
use crew_store::trust::Trust;
use crew_tools::{GroupGuard, Host, HostConfig, Toolbox};
use tempfile::TempDir;

/// Id of every owner.
pub(crate) const OWNER: &str = "owner";
/// Nothing that happens takes this long.
pub(crate) const LONG: Duration = Duration::from_secs(20);

const MODELS: &str = r#"{"providers": {
    "fake": {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": "key",
        "models": [{"id": "one", "reasoning": true}, {"id": "deep/two", "reasoning": true}]},
    "locked": {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": "$NO_KEY",
        "models": [{"id": "three"}]}
}}"#;

/// Folders and wishes; public fields are changed before [`World::start`].
pub(crate) struct World {
    folder: TempDir,
    pub(crate) cwd: PathBuf,
    pub(crate) agent_dir: PathBuf,
    pub(crate) trust: Trust,
    pub(crate) in_memory: bool,
    pub(crate) toolbox: Toolbox,
    pub(crate) model: ModelWish,
    pub(crate) tools: ToolWish,
    pub(crate) prompt: PromptWish,
    pub(crate) guard: Option<Arc<dyn GroupGuard>>,
    pub(crate) can_ask: bool,
}

impl World {
    pub(crate) fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (cwd, agent_dir) = (root.join("project"), root.join("agent"));
        for path in [&cwd, &agent_dir, &root.join("tmp")] {
            fs::create_dir_all(path).unwrap();
        }
        let model = ModelWish { model: Some("fake/one".to_owned()), ..ModelWish::default() };
        World {
            folder,
            cwd,
            agent_dir,
            trust: Trust::Implied,
            in_memory: false,
            toolbox: Toolbox::builtin(),
            model,
            tools: ToolWish::default(),
            prompt: PromptWish::default(),
            guard: None,
            can_ask: false,
        }
    }

    /// Writes a user definition.
    pub(crate) fn define(&self, name: &str, fields: &str) {
        let folder = self.agent_dir.join("agents");
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: d\n{fields}---\nThe role of {name}.\n");
        fs::write(folder.join(format!("{name}.md")), text).unwrap();
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        SessionFolder::new(&self.agent_dir, &self.cwd, None).path
    }

    /// All files of a folder, sorted.
    pub(crate) fn files(folder: &std::path::Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
        files.sort();
        files
    }

    fn workspace(&self) -> Workspace {
        let (catalog, error) = Catalog::build(Some(("models.json", MODELS)));
        assert!(error.is_none(), "{error:?}");
        let catalog = Arc::new(catalog);
        let (credentials, _) = Credentials::new(AuthConfig {
            catalog: Arc::clone(&catalog),
            auth_path: "auth.json".to_owned(),
            auth_text: None,
            environment: Arc::new(|_| None),
            clock: Arc::new(|| Time(0)),
        });
        let (settings, _) = SettingsFiles::load(&self.agent_dir.join("settings.json"), None);
        let sessions = if self.in_memory {
            SessionPlace::Memory
        } else {
            SessionPlace::Folder(SessionFolder::new(&self.agent_dir, &self.cwd, None))
        };
        Workspace::new(WorkspaceConfig {
            cwd: self.cwd.clone(),
            home: Some(self.folder.path().to_owned()),
            agent_dir: self.agent_dir.clone(),
            trust: self.trust,
            settings: Arc::new(settings.settings().0),
            catalog,
            credentials: Arc::new(credentials),
            toolbox: Arc::new(self.toolbox.clone()),
            sessions,
            model: self.model.clone(),
            tools: self.tools.clone(),
            prompt: self.prompt.clone(),
            tmp: self.folder.path().join("tmp"),
            command_env: Vec::new(),
            can_ask: self.can_ask,
            task_output: TaskOutput::default(),
            depth: 0,
        })
    }

    pub(crate) fn start(&self, model: Arc<dyn Model>) -> Running {
        let config = EngineConfig { settings: SessionSettings::default(), home: None, depth: 0 };
        let tmp = self.folder.path().join("tmp");
        let host = Host::new(HostConfig { tmp, guard: self.guard.clone() });
        let (handle, updates) = crew_runtime::start(Parts {
            engine: Engine::new(7, config),
            model,
            workspace: Arc::new(self.workspace()),
            host: Arc::clone(&host),
        });
        Running { handle, updates, host, warnings: Vec::new() }
    }

    /// Starts and opens a new owner.
    pub(crate) async fn open(&self, model: Arc<dyn Model>) -> Running {
        let mut running = self.start(model);
        running.open(Source::New { name: None }).await.unwrap();
        running
    }
}

/// A running host and its face.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    pub(crate) updates: Updates,
    pub(crate) host: Arc<Host>,
    pub(crate) warnings: Vec<String>,
}

impl Running {
    pub(crate) fn owner() -> SessionId {
        OWNER.into()
    }

    pub(crate) async fn next(&mut self) -> Option<Notice> {
        let notice = tokio::time::timeout(LONG, self.updates.next()).await.expect("it goes on");
        if let Some(Notice::Warning(text)) = &notice {
            self.warnings.push(text.clone());
        }
        notice
    }

    /// Reads until a notice is what is looked for.
    pub(crate) async fn until<T>(&mut self, wanted: impl Fn(&Notice) -> Option<T>) -> T {
        loop {
            let notice = self.next().await.expect("the host has not ended");
            if let Some(found) = wanted(&notice) {
                return found;
            }
        }
    }

    /// Sends a command and reads until its answer.
    pub(crate) async fn command(&mut self, command: Command) -> Result<(), Refusal> {
        let sent = self.handle.send(command);
        self.until(|notice| {
            let Notice::Update(Update::Answered { command, result }) = notice else { return None };
            (*command == sent).then(|| result.clone())
        })
        .await
    }

    pub(crate) async fn open(&mut self, source: Source) -> Result<(), Refusal> {
        let session = Running::owner();
        self.command(Command::Open { session, source, adopts: None }).await
    }

    pub(crate) async fn prompt(&mut self, text: &str) {
        let message = Message::user_text(text, Time(1));
        self.command(Command::Prompt(Running::owner(), message)).await.unwrap();
    }

    pub(crate) async fn until_rest(&mut self) {
        self.until(|notice| matches!(notice, Notice::Update(Update::AtRest(_))).then_some(()))
            .await;
    }

    pub(crate) async fn until_settled(&mut self) {
        self.until_update(|update| {
            matches!(update, SessionUpdate::AgentSettled { .. }).then_some(())
        })
        .await;
    }

    /// Reads until an update of the owner is what is looked for.
    pub(crate) async fn until_update<T>(
        &mut self,
        wanted: impl Fn(&SessionUpdate) -> Option<T>,
    ) -> T {
        self.until(|notice| {
            let Notice::Update(Update::Session { update, .. }) = notice else { return None };
            wanted(update)
        })
        .await
    }

    /// Quits and reads to the end; nothing of the host runs on.
    pub(crate) async fn quit(mut self) -> Duration {
        let begun = tokio::time::Instant::now();
        self.handle.send(Command::Quit);
        while self.next().await.is_some() {}
        let took = begun.elapsed();
        let metrics = tokio::runtime::Handle::current().metrics();
        let until = std::time::Instant::now() + LONG;
        while std::time::Instant::now() < until {
            if metrics.num_alive_tasks() == 0 {
                return took;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} tasks outlived the host", metrics.num_alive_tasks());
    }
}
