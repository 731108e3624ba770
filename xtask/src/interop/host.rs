//! Starts either program in the surroundings of a check and waits for it with
//! a limit.
//!
//! Must never leave a program running.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::world::World;
use crate::run::Outcome;

/// One of the two programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    Crew,
    Pi,
}

impl Host {
    pub(crate) const BOTH: [Self; 2] = [Self::Crew, Self::Pi];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crew => "crew",
            Self::Pi => "pi",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Crew => Self::Pi,
            Self::Pi => Self::Crew,
        }
    }

    /// Runs the program with these arguments to its end and returns its
    /// stdout; errors unless it exits with 0.
    pub(crate) fn run(self, world: &World, args: &[&str]) -> Outcome<String> {
        let mut command = world.command(self)?;
        command.args(args);
        finish(world, command)
            .map_err(|error| format!("{} {}: {error}", self.name(), args.join(" ")))
    }
}

/// Runs a command to its end and returns its stdout; errors unless it exits
/// with 0 in time.
pub(crate) fn finish(world: &World, mut command: Command) -> Outcome<String> {
    let (out, err) = (world.path("stdout"), world.path("stderr"));
    let create = |path| File::create(path).map_err(|error| format!("no file for output: {error}"));
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?);
    let mut child = command.spawn().map_err(|error| format!("does not start: {error}"))?;
    let status = ended(&mut child)?;
    let stdout = std::fs::read_to_string(&out).map_err(|error| format!("its output: {error}"))?;
    if status.success() {
        return Ok(stdout);
    }
    let stderr = std::fs::read_to_string(&err).unwrap_or_default();
    let tail: String = stderr.chars().take(STDERR_CHARS_MAX).collect();
    Err(format!("{status}: {tail}"))
}

/// Waits for the end of a program; ends it and errors when it takes too long.
pub(crate) fn ended(child: &mut Child) -> Outcome<ExitStatus> {
    let start = Instant::now();
    loop {
        let status = child.try_wait().map_err(|error| format!("cannot be waited for: {error}"))?;
        if let Some(status) = status {
            return Ok(status);
        }
        if start.elapsed() > LIMIT {
            // Both fail only when it has just ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("still running after {} s", LIMIT.as_secs()));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How long one step of a check may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
const STDERR_CHARS_MAX: usize = 600;
