//! A temporary home, the real binary, and a scripted model server on loopback.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

pub(crate) mod client;
pub(crate) mod golden;
pub(crate) mod server;
pub(crate) mod wire;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::Server;

/// Longest time anything in these tests may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Marks the environment of everything one world starts.
const MARK: &str = "CREW_TEST_WORLD";

/// Folders and a server of one test.
pub(crate) struct World {
    root: tempfile::TempDir,
    mark: String,
    pub(crate) server: Server,
    pub(crate) variables: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A run under way; killed when dropped.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
}

impl World {
    /// A world whose provider `local` has the models `m1` and `m2`.
    pub(crate) fn new(
        script: impl Fn(&server::Request) -> server::Reply + Send + Sync + 'static,
    ) -> World {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let root = tempfile::tempdir().unwrap();
        for name in ["home", "agent", "project"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let world = World { root, mark, server: Server::start(script), variables: Vec::new() };
        world.write_models(&world.server.url());
        world.agent_file(
            "settings.json",
            r#"{"retry":{"maxRetries":2,"baseDelayMs":5},"defaultThinkingLevel":"off"}"#,
        );
        world
    }

    /// Points the provider at another address.
    pub(crate) fn write_models(&self, url: &str) {
        let model = |id: &str| json!({"id": id, "input": ["text", "image"], "maxTokens": 8192});
        let provider = json!({
            "baseUrl": url, "api": "anthropic-messages", "apiKey": SECRET,
            "models": [model("m1"), model("m2")]
        });
        self.agent_file("models.json", &json!({"providers": {"local": provider}}).to_string());
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.at("project")
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.at("agent")
    }

    pub(crate) fn agent_file(&self, name: &str, text: &str) {
        fs::write(self.agent().join(name), text).unwrap();
    }

    pub(crate) fn project_file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The binary with a cleared environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crew"));
        command.args(args).current_dir(self.project()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.at("home")).env("CREW_CODING_AGENT_DIR", self.agent());
        command.env("NO_PROXY", "127.0.0.1").env(MARK, &self.mark);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// Runs with `--model local/m1` to the end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.spawn(args).wait()
    }

    /// `-p` with `--model local/m1`.
    pub(crate) fn print(&self, args: &[&str]) -> Run {
        self.run(&[&["-p"], args].concat())
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        let mut command = self.command(&[&["--model", "local/m1"], args].concat());
        Running::start(&mut command)
    }

    /// Starts a command made by [`World::command`] and waits for its end.
    pub(crate) fn finish(&self, command: &mut Command) -> Run {
        Running::start(command).wait()
    }

    /// All session files, owners first, in order of their names.
    pub(crate) fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.agent().join("sessions"), &mut files);
        files.sort_by_key(|path| (path.components().count(), path.clone()));
        files
    }

    /// Merges values into the settings of the user.
    pub(crate) fn settings(&self, more: &Value) {
        let path = self.agent().join("settings.json");
        let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(path, settings.to_string()).unwrap();
    }

    /// The one owner session, header first.
    pub(crate) fn session(&self) -> Vec<Value> {
        let files = self.session_files();
        let owners: Vec<_> = files.iter().filter(|path| !is_child(path)).collect();
        assert_eq!(owners.len(), 1, "{files:?}");
        lines(owners[0])
    }

    /// Processes of this world that live, with their command lines.
    pub(crate) fn living(&self) -> Vec<String> {
        let wanted = format!("{MARK}={}", self.mark);
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let alive = |folder: PathBuf| {
            let environment = fs::read(folder.join("environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables.find(|variable| *variable == wanted.as_bytes())?;
            let stat = fs::read_to_string(folder.join("stat")).ok()?;
            let state = stat.rsplit(')').next()?.trim().chars().next()?;
            let line = fs::read(folder.join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (state != 'Z').then_some(line)
        };
        processes.filter_map(|process| alive(process.path())).collect()
    }
}

/// The key of the provider; must appear nowhere but in requests.
pub(crate) const SECRET: &str = "sk-world-secret-0123456789";

pub(crate) fn is_child(path: &Path) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|name| name == "crew")
}

/// Every line of a file as JSON.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every file below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn is(&self, code: i32, out: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), out), "stderr: {}", self.err);
    }

    #[track_caller]
    pub(crate) fn tells(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "`{word}` is missing in stderr: {}", self.err);
        }
    }

    /// Standard output as JSON lines.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        // Files, not pipes: nobody has to read while the run goes on.
        let folder = tempfile::tempdir().unwrap().keep();
        let file = |name: &str| fs::File::create(folder.join(name)).unwrap();
        command.stdout(file("out")).stderr(file("err"));
        let child = command.spawn().unwrap();
        Running { child, folder }
    }

    pub(crate) fn id(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.id()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    pub(crate) fn out(&self) -> String {
        read(&self.folder.join("out"))
    }

    pub(crate) fn err(&self) -> String {
        read(&self.folder.join("err"))
    }

    /// The end, within the limit.
    pub(crate) fn wait(mut self) -> Run {
        let status = self.wait_status();
        let (out, err) = (self.out(), self.err());
        Run { code: status.code(), out, err }
    }

    fn wait_status(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < LIMIT, "still running; stderr: {}", self.err());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn read(path: &Path) -> String {
    let mut text = Vec::new();
    fs::File::open(path).unwrap().read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// Gives a command its standard input.
pub(crate) fn piped(command: &mut Command, input: &[u8]) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    command.stdin(file);
}
