//! A temporary home for the program under measurement: agent folder, project,
//! models, cleared environment.
//!
//! Must never touch the real home of the person who measures.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::process::{Ran, measure};
use super::provider::{Provider, Script};
use crate::run::{Outcome, root};

/// Folders, a provider and the way to start the program with both.
pub(crate) struct World {
    folder: PathBuf,
    pub(crate) provider: Provider,
    /// Process id of the program while it runs.
    pub(crate) pid: Arc<AtomicU32>,
}

impl World {
    /// Makes the folders and starts the provider. The script may read the
    /// process id from `pid`.
    pub(crate) fn new(pid: Arc<AtomicU32>, script: Box<Script>) -> Outcome<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("crew-bench-{}-{number}", std::process::id());
        let provider = Provider::start(script)?;
        let world = Self { folder: std::env::temp_dir().join(name), provider, pid };
        for folder in ["agent", "home", "project"] {
            fs::create_dir_all(world.folder.join(folder))
                .map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        }
        let model = json!({"id": "m1", "contextWindow": 1_000_000_000, "maxTokens": 8192});
        let models = json!({"providers": {"bench": {
            "baseUrl": world.provider.url(), "api": "anthropic-messages", "apiKey": "key",
            "models": [model],
        }}});
        let settings = json!({
            "defaultThinkingLevel": "off",
            "compaction": {"enabled": false},
            "retry": {"enabled": false},
        });
        world.write("agent/models.json", &models.to_string())?;
        world.write("agent/settings.json", &settings.to_string())?;
        world.write("project/notes.txt", "one line\n")?;
        Ok(world)
    }

    /// Returns the absolute path of a file of this world.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of this world.
    pub(crate) fn write(&self, name: &str, text: &str) -> Outcome {
        fs::write(self.path(name), text).map_err(|error| format!("cannot write {name}: {error}"))
    }

    /// Runs the program in the project with these arguments behind the model's
    /// and returns what it took; errors as [`measure`].
    pub(crate) fn run(&self, args: &[&str], watch_memory: bool) -> Outcome<Ran> {
        measure(&mut self.command(args), watch_memory, &self.pid)
    }

    /// The program in the project with these arguments behind the model's.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(["--model", "bench/m1"])
            .args(args)
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .env("PI_CODING_AGENT_DIR", self.path("agent"))
            .env("CREW_CODING_AGENT_DIR", self.path("agent"))
            .env("PI_OFFLINE", "1")
            .env("NO_PROXY", "127.0.0.1");
        command
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Left-over files in the temporary folder harm nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the program under measurement: the one chosen, else the release
/// build.
pub(crate) fn binary() -> PathBuf {
    let release = || root().join("target").join("release").join("crew");
    CHOSEN.get().cloned().unwrap_or_else(release)
}

/// Chooses another program than the release build; only the first choice
/// counts.
pub(crate) fn choose(program: &str) -> Outcome {
    let path = fs::canonicalize(program).map_err(|error| format!("no {program}: {error}"))?;
    CHOSEN.get_or_init(|| path);
    Ok(())
}

static CHOSEN: OnceLock<PathBuf> = OnceLock::new();
