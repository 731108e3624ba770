//! Ends the commands of a host that died (`product.md` P-14b, `host.md` 4.3.8).
//!
//! A helper process, this program started again with [`ARGUMENT`], holds the
//! reading end of a pipe. When the host is gone, in whatever way, the pipe
//! closes and the helper ends every process that carries the host's marker.
//! The helper must outlive the signals that end the host, must hold none of the
//! host's streams open and must be gone with the host when that ends in order.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use crew_base::limits::GUARD_STARTS_MAX;
use crew_tools::{GroupGuard, Host, Target, kill_marked};
use tokio::signal::unix::{SignalKind, signal};

/// The argument that makes this program the helper.
pub const ARGUMENT: &str = "__guard";

/// Variable by which commands are found; the helper is none.
const MARKER_VARIABLE: &str = "CREW_COMMAND";

/// A guard whose helper is this program with [`ARGUMENT`].
pub fn start() -> Arc<Guard> {
    let program = std::env::current_exe().unwrap_or_default();
    let mut helper = Command::new(program);
    helper.arg(ARGUMENT);
    start_with(helper)
}

/// A guard whose helper is started by `helper`, a command that ends up in
/// [`run`]: at [`Guard::arm`], at the latest with the first command.
pub fn start_with(helper: Command) -> Arc<Guard> {
    let state = State { helper, starts_left: GUARD_STARTS_MAX, running: None, told: Vec::new() };
    Arc::new(Guard { state: Mutex::new(state) })
}

/// The helper's main: reads marks until the pipe closes, then ends what the
/// host left.
pub fn run() -> ExitCode {
    let _ignoring = ignore_signals();
    // A folder in use could not be unmounted or removed everywhere.
    let _ = std::env::set_current_dir("/");
    let mut targets: Vec<Target> = Vec::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let mut words = line.split(' ');
        let (Some(sign), Some(marker)) = (words.next(), words.next()) else { continue };
        let group = words.next().and_then(|word| word.parse::<i32>().ok());
        match sign {
            "+" => targets.push(Target { group, ..Target::marked(marker) }),
            _ => targets.retain(|target| target.marker != marker),
        }
    }
    if !targets.is_empty() {
        kill_marked(&targets);
    }
    ExitCode::SUCCESS
}

/// Signals meant for the host reach the helper when they are sent by name or
/// to all. A handler that does nothing stays for the life of the process.
fn ignore_signals() -> Option<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    let entered = runtime.enter();
    let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()];
    for kind in kinds.into_iter().chain([SignalKind::terminate()]) {
        // Without the handler the helper only dies more easily.
        drop(signal(kind));
    }
    drop(entered);
    Some(runtime)
}

/// Tells the helper which commands live.
pub struct Guard {
    state: Mutex<State>,
}

struct State {
    helper: Command,
    /// It may be started again when somebody ended it.
    starts_left: usize,
    running: Option<(Child, ChildStdin)>,
    /// Lines that a new helper needs: the host's marker, living groups.
    told: Vec<Told>,
}

struct Told {
    marker: String,
    group: Option<i32>,
}

impl Told {
    fn line(&self) -> String {
        let group = self.group.map_or_else(String::new, |group| format!(" {group}"));
        format!("+ {}{group}\n", self.marker)
    }
}

impl Guard {
    /// Starts the helper in the background before any command is, so that not
    /// even the first one escapes a death of the host at its start.
    pub fn arm(self: &Arc<Self>, host: &Host) {
        let (guard, marker) = (Arc::clone(self), host.marker().to_owned());
        let arm = move || guard.change(|state| state.know(&marker));
        // Without a thread the first command starts the helper.
        let _ = std::thread::Builder::new().name("guard".to_owned()).spawn(arm);
    }

    fn change(&self, apply: impl FnOnce(&mut State)) {
        if let Ok(mut state) = self.state.lock() {
            apply(&mut state);
        }
    }
}

impl GroupGuard for Guard {
    fn started(&self, group: i32, marker: &str) {
        self.change(|state| {
            // What all commands of a host share finds also those that were
            // started and not yet told of.
            let shared = marker.split_once('.').map_or(marker, |(host, _)| host);
            state.know(shared);
            state.tell(Told { marker: marker.to_owned(), group: Some(group) });
        });
    }

    fn ended(&self, _group: i32, marker: &str) {
        self.change(|state| {
            state.told.retain(|told| told.marker != marker);
            state.write(&format!("- {marker}\n"));
        });
    }

    fn finish(&self) {
        self.change(State::finish);
    }
}

impl State {
    fn know(&mut self, marker: &str) {
        if !self.told.iter().any(|told| told.marker == marker) {
            self.tell(Told { marker: marker.to_owned(), group: None });
        }
    }

    fn tell(&mut self, told: Told) {
        let line = told.line();
        self.told.push(told);
        self.write(&line);
    }

    fn write(&mut self, line: &str) {
        let written = self.running.as_mut().map(|(_, pipe)| pipe.write_all(line.as_bytes()));
        if let Some(Ok(())) = written {
            return;
        }
        if let Some((mut gone, _)) = self.running.take() {
            let _ = gone.wait();
        }
        while self.running.is_none() && self.starts_left > 0 {
            self.starts_left -= 1;
            self.running = self.spawn();
        }
    }

    /// The helper is gone when this returns.
    fn finish(&mut self) {
        self.starts_left = 0;
        let Some((mut child, mut pipe)) = self.running.take() else { return };
        // What all commands share is only looked for when the host died.
        let shared = self.told.iter().filter(|told| told.group.is_none());
        let text: String = shared.map(|told| format!("- {}\n", told.marker)).collect();
        let _ = pipe.write_all(text.as_bytes());
        drop(pipe);
        let _ = child.wait();
    }

    /// A new helper that was told everything; `None` when it could not be
    /// started, and commands run without it.
    fn spawn(&mut self) -> Option<(Child, ChildStdin)> {
        let mut child = self
            .helper
            .env_remove(MARKER_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of reach of what the terminal sends to its foreground group.
            .process_group(0)
            .spawn()
            .ok()?;
        let mut pipe = child.stdin.take()?;
        let text: String = self.told.iter().map(Told::line).collect();
        if pipe.write_all(text.as_bytes()).is_err() {
            let _ = child.wait();
            return None;
        }
        Some((child, pipe))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.finish();
    }
}
