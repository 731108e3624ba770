//! Runs the program under measurement: wall time, CPU time, peak memory.
//!
//! Must never leave the program running. CPU time is the kernel's count of
//! ended children, in hundredths of a second, so it counts what the program
//! started too.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::run::Outcome;

/// What one run of the program took.
pub(crate) struct Ran {
    pub(crate) started: Instant,
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// 0 unless memory was watched.
    pub(crate) peak_kb: u64,
    pub(crate) stdout: String,
}

/// Runs a command to its end; `watch_memory` polls its peak, which costs wall
/// time. `pid` holds the process id meanwhile. Errors when it fails or takes
/// longer than two minutes.
pub(crate) fn measure(command: &mut Command, watch_memory: bool, pid: &AtomicU32) -> Outcome<Ran> {
    let cpu_before = children_cpu()?;
    let out = tempfile("out")?;
    let err = tempfile("err")?;
    command.stdin(Stdio::null()).stdout(out.1).stderr(err.1);
    let started = Instant::now();
    let mut child =
        command.spawn().map_err(|error| format!("cannot start the program: {error}"))?;
    pid.store(child.id(), Ordering::Relaxed);
    let pause = Duration::from_micros(if watch_memory { 1000 } else { 200 });
    let mut peak_kb = 0;
    let status = loop {
        if watch_memory {
            peak_kb = peak_kb.max(status_kb(child.id(), "VmHWM:").unwrap_or(0));
        }
        let ended =
            child.try_wait().map_err(|error| format!("cannot wait for the program: {error}"))?;
        if let Some(status) = ended {
            break status;
        }
        if started.elapsed() > LIMIT {
            // Both fail only when it has just ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("still running after {} s", LIMIT.as_secs()));
        }
        std::thread::sleep(pause);
    };
    let wall = started.elapsed();
    let cpu = children_cpu()?.saturating_sub(cpu_before);
    let stdout = fs::read_to_string(&out.0).unwrap_or_default();
    let stderr = fs::read_to_string(&err.0).unwrap_or_default();
    let _ = fs::remove_file(&out.0);
    let _ = fs::remove_file(&err.0);
    if !status.success() {
        let tail: String = stderr.chars().take(600).collect();
        return Err(format!("the program failed ({status}): {tail}"));
    }
    Ok(Ran { started, wall, cpu, peak_kb, stdout })
}

/// Reads one `kB` line of a process's status.
pub(crate) fn status_kb(pid: u32, field: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The CPU time of a process that runs, its threads included.
pub(crate) fn own_cpu(pid: u32) -> Outcome<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))
        .map_err(|error| format!("cannot read the times of the program: {error}"))?;
    Ok(cpu_of(&text, 11))
}

/// Returns the CPU time of all children that have ended.
fn children_cpu() -> Outcome<Duration> {
    let text = fs::read_to_string("/proc/self/stat")
        .map_err(|error| format!("cannot read the process's own times: {error}"))?;
    Ok(ended_children_cpu(&text))
}

/// Reads fields 16 and 17 of `/proc/PID/stat`, counted behind the name.
fn ended_children_cpu(stat: &str) -> Duration {
    cpu_of(stat, 13)
}

/// Reads two neighbouring counts of ticks, the first by its place behind the
/// name.
fn cpu_of(stat: &str, first: usize) -> Duration {
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let ticks = |index: usize| -> u64 {
        let field = fields.get(index).copied().unwrap_or("0");
        field.parse().unwrap_or(0)
    };
    Duration::from_millis((ticks(first) + ticks(first + 1)) * TICK_MS)
}

fn tempfile(kind: &str) -> Outcome<(std::path::PathBuf, fs::File)> {
    let name = format!("crew-bench-{}.{kind}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = fs::File::create(&path)
        .map_err(|error| format!("cannot make a temporary file: {error}"))?;
    Ok((path, file))
}

const LIMIT: Duration = Duration::from_secs(120);
/// Linux counts user-visible CPU time in hundredths of a second.
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_ended_children_is_read_behind_the_name() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1";
        assert_eq!(ended_children_cpu(stat), Duration::from_millis(70));
        assert_eq!(cpu_of(stat, 11), Duration::from_millis(30));
    }

    #[test]
    fn a_run_is_measured_and_a_failure_says_why() {
        let pid = AtomicU32::new(0);
        let mut good = Command::new("sh");
        good.args(["-c", "echo hi"]);
        let ran = measure(&mut good, false, &pid).unwrap();
        assert_eq!(ran.stdout, "hi\n");
        assert!(pid.load(Ordering::Relaxed) > 0);
        let mut bad = Command::new("sh");
        bad.args(["-c", "echo no >&2; exit 1"]);
        let error = measure(&mut bad, true, &pid).err().unwrap();
        assert!(error.contains("no"), "{error}");
    }
}
