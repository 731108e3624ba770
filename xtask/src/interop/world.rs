//! The surroundings of one check: a temporary agent folder, home and project,
//! and a fake provider that both programs know (`host.md` 10).
//!
//! Must never touch the real home of the person who checks.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::Setup;
use super::host::{Host, finish};
use super::log::Log;
use super::server::Server;
use crate::run::Outcome;

/// Folders, a provider and the way to start both programs with them.
pub(crate) struct World<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) server: Server,
    folder: PathBuf,
}

impl<'a> World<'a> {
    pub(crate) fn new(setup: &'a Setup) -> Outcome<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("crew-interop-{}-{number}", std::process::id());
        let world =
            Self { setup, server: Server::start()?, folder: std::env::temp_dir().join(name) };
        for folder in ["agent", "home", "project"] {
            fs::create_dir_all(world.folder.join(folder))
                .map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        }
        let models = json!([
            {"id": "m1", "reasoning": true, "input": ["text", "image"]},
            {"id": "m2"},
        ]);
        let provider = json!({
            "baseUrl": world.server.url(), "api": "openai-completions", "apiKey": "$FAKE_KEY",
            "models": models,
        });
        world.write_json("agent/models.json", &json!({"providers": {"fake": provider}}))?;
        // A short history is worth compacting, and a retry comes at once.
        let settings = json!({
            "compaction": {"keepRecentTokens": 3},
            "retry": {"baseDelayMs": 10},
        });
        world.write_json("agent/settings.json", &settings)?;
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

    pub(crate) fn write_json(&self, name: &str, value: &Value) -> Outcome {
        self.write(name, &value.to_string())
    }

    /// Reads a JSON file of this world.
    pub(crate) fn read_json(&self, name: &str) -> Outcome<Value> {
        let text = fs::read_to_string(self.path(name))
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name} is no JSON: {error}"))
    }

    /// Returns a command that starts a program in the project.
    pub(crate) fn command(&self, host: Host) -> Outcome<Command> {
        match host {
            Host::Crew => self.command_of(&self.setup.crew),
            Host::Pi => self.command_of(&self.setup.pi.program()),
        }
    }

    /// Runs a script with Node and returns what it prints as JSON; it stands
    /// where it finds Pi's library.
    pub(crate) fn script(&self, name: &str, text: &str, args: &[&OsStr]) -> Outcome<Value> {
        let path = self.setup.pi.folder().join(name);
        fs::write(&path, text).map_err(|error| format!("cannot write {name}: {error}"))?;
        let mut command = self.command_of(&self.setup.pi.node())?;
        command.arg(&path).args(args);
        let printed = finish(self, command).map_err(|error| format!("{name}: {error}"))?;
        serde_json::from_str(&printed).map_err(|error| format!("{name} printed {printed}: {error}"))
    }

    fn command_of(&self, program: &Path) -> Outcome<Command> {
        let mut command = Command::new(program);
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", self.setup.pi.search_path()?)
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .env("PI_CODING_AGENT_DIR", self.path("agent"))
            .env("PI_OFFLINE", "1")
            .env("FAKE_KEY", "k")
            .env("NO_PROXY", "127.0.0.1");
        Ok(command)
    }

    /// Returns the only session file of this world's project.
    pub(crate) fn only_log(&self) -> Outcome<Log> {
        let mut paths = session_files(&self.path("agent/sessions"));
        match (paths.pop(), paths.is_empty()) {
            (Some(path), true) => Log::read(&path),
            (Some(_), false) => Err(format!("{} session files instead of one", paths.len() + 1)),
            (None, _) => Err("no session file was written".to_owned()),
        }
    }

    /// Copies a session file to a name of its own beside it.
    pub(crate) fn copy(&self, log: &Log, name: &str) -> Outcome<PathBuf> {
        let path = self.path(name);
        fs::copy(&log.path, &path).map_err(|error| format!("cannot copy the session: {error}"))?;
        Ok(path)
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        // Left-over files in the temporary folder harm nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the session files of all projects, those of children left out.
fn session_files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(folder).into_iter().flatten().flatten();
        read.map(|entry| entry.path()).collect()
    };
    let files = entries(folder).into_iter().flat_map(|project| entries(&project));
    files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
}
