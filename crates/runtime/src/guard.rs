//! Ends the commands of a host that died (`product.md` P-14b).
//!
//! A helper process, this program started again with [`ARGUMENT`], holds the
//! reading end of a pipe. When the host is gone, in whatever way, the pipe
//! closes and the helper ends every process that carries the host's marker.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use crew_tools::{GroupGuard, Target, kill_marked};

/// The argument that makes this program the helper.
pub const ARGUMENT: &str = "__guard";

/// The helper, started with the first command.
pub fn start() -> Arc<dyn GroupGuard> {
    Arc::new(Guard { helper: Mutex::new(Helper::NotStarted) })
}

/// The helper's main: reads marks until the pipe closes, then ends what the
/// host left.
pub fn run() -> ExitCode {
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

struct Guard {
    helper: Mutex<Helper>,
}

enum Helper {
    NotStarted,
    Running(Child, ChildStdin),
    /// It could not be started; commands run without it.
    Missing,
}

impl Guard {
    fn tell(&self, line: &str) {
        let Ok(mut helper) = self.helper.lock() else { return };
        if let Helper::NotStarted = *helper {
            *helper = spawn().unwrap_or(Helper::Missing);
        }
        let failed = match &mut *helper {
            Helper::Running(_, pipe) => pipe.write_all(line.as_bytes()).is_err(),
            Helper::NotStarted | Helper::Missing => false,
        };
        if failed {
            *helper = Helper::Missing;
        }
    }
}

impl GroupGuard for Guard {
    fn started(&self, group: i32, marker: &str) {
        self.tell(&format!("+ {marker} {group}\n"));
    }

    fn ended(&self, _group: i32, marker: &str) {
        self.tell(&format!("- {marker}\n"));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Ok(helper) = self.helper.get_mut() else { return };
        if let Helper::Running(mut child, pipe) = std::mem::replace(helper, Helper::Missing) {
            drop(pipe);
            // It ends at once when the pipe closes and nothing is left.
            let _ = child.wait();
        }
    }
}

fn spawn() -> Option<Helper> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg(ARGUMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let pipe = child.stdin.take()?;
    Some(Helper::Running(child, pipe))
}
