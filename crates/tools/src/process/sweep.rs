//! Finds and ends every process of a command, also those that left its group.
//!
//! On Linux a process belongs to a command when its environment carries the
//! command's marker, when it descends from such a process, or when it is in a
//! process group that such a process holds. Invariant: a process is only
//! killed after its identity (id and start time) was checked through a handle,
//! never by a number that may have been given to somebody else.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Variable that marks the processes of a command. Its value is the chain of
/// markers of the commands it runs in, outermost first, joined by `:`.
pub(crate) const MARKER_VARIABLE: &str = "CREW_COMMAND";

/// A sweep gives up after this time; what still lives then cannot be killed.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(2);
/// Looks in a row that must find nothing: a process that is just starting its
/// program shows no environment for a moment.
const EMPTY_LOOKS: u32 = 2;

/// One command whose processes are to end.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its marker, or the part before the dot to mean all of one host.
    pub marker: String,
    /// Its process group.
    pub group: Option<i32>,
    /// The shell was not waited for yet, so the group's number is still ours.
    pub leader_held: bool,
    /// Processes seen in the group while the number was ours.
    pub known: Vec<Known>,
}

/// A process beyond doubt: its number and its start time in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Process id.
    pub pid: i32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub started: u64,
}

impl Target {
    /// All commands whose marker starts with `prefix`, groups unknown.
    pub fn marked(prefix: impl Into<String>) -> Target {
        Target { marker: prefix.into(), group: None, leader_held: false, known: Vec::new() }
    }

    fn holds_marker(&self, chain: &str) -> bool {
        chain.split(':').any(|marker| {
            marker
                .strip_prefix(self.marker.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

/// Ends all processes of the targets with SIGKILL, again and again until none
/// is left or two seconds have passed (`host.md` 4.3.3, `product.md` P-14b).
/// Blocks; never touches the calling process.
pub fn kill_marked(targets: &[Target]) {
    for target in targets.iter().filter(|target| target.leader_held) {
        kill_group(target.group);
    }
    let deadline = Instant::now() + SWEEP_TIME_MAX;
    let mut pause = Duration::from_millis(1);
    let mut empty_looks = 0;
    loop {
        empty_looks = if system::kill_found(targets) == 0 { empty_looks + 1 } else { 0 };
        if empty_looks == EMPTY_LOOKS || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Kills a group whose number is certainly ours.
fn kill_group(group: Option<i32>) {
    if let Some(group) = group.and_then(Pid::from_raw) {
        // A stopped group cannot start more processes while it is being ended.
        #[cfg(target_os = "macos")]
        let _ = kill_process_group(group, Signal::STOP);
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Whether any process is left in a group.
pub(crate) fn group_lives(group: i32) -> bool {
    Pid::from_raw(group).is_some_and(|group| test_kill_process_group(group).is_ok())
}

/// The processes of a group now; empty where the system cannot tell.
pub(crate) fn members(group: i32) -> Vec<Known> {
    system::members(group)
}

/// Which targets still have a living process, by index.
pub(crate) fn living(targets: &[Target]) -> Vec<bool> {
    system::living(targets)
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::HashSet;
    use std::fs;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Known, MARKER_VARIABLE, Target};

    /// One process of the system.
    struct Process {
        pid: i32,
        parent: i32,
        group: i32,
        started: u64,
        chain: Option<String>,
    }

    pub(super) fn kill_found(targets: &[Target]) -> usize {
        let processes = list();
        let mut found = HashSet::new();
        for target in targets {
            found.extend(select(&processes, target));
        }
        found.into_iter().filter(|at| kill(&processes[*at])).count()
    }

    pub(super) fn living(targets: &[Target]) -> Vec<bool> {
        let processes = list();
        let lives = |target| !select(&processes, target).is_empty();
        targets.iter().map(lives).collect()
    }

    pub(super) fn members(group: i32) -> Vec<Known> {
        let of_group = |process: &Process| {
            (process.group == group).then_some(Known { pid: process.pid, started: process.started })
        };
        list().iter().filter_map(of_group).collect()
    }

    /// Indices of the processes that belong to a target.
    fn select(processes: &[Process], target: &Target) -> HashSet<usize> {
        let certain = |process: &Process| {
            let marked = process.chain.as_ref().is_some_and(|c| target.holds_marker(c));
            let known =
                target.known.iter().any(|k| k.pid == process.pid && k.started == process.started);
            let led = target.leader_held && target.group == Some(process.group);
            marked || known || led
        };
        let indices = 0..processes.len();
        let mut found: HashSet<usize> =
            indices.clone().filter(|at| certain(&processes[*at])).collect();
        loop {
            let pids: HashSet<i32> = found.iter().map(|at| processes[*at].pid).collect();
            let group_held = found.iter().any(|at| Some(processes[*at].group) == target.group);
            let before = found.len();
            found.extend(indices.clone().filter(|at| {
                let process = &processes[*at];
                pids.contains(&process.parent)
                    || (group_held && target.group == Some(process.group))
            }));
            if found.len() == before {
                return found;
            }
        }
    }

    fn kill(process: &Process) -> bool {
        let Some(pid) = Pid::from_raw(process.pid) else {
            return false;
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        let same = stat(process.pid).is_some_and(|now| now.started == process.started);
        same && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }

    /// All living processes but our own and the first.
    fn list() -> Vec<Process> {
        let own = std::process::id() as i32;
        let Ok(folder) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        folder
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| *pid > 1 && *pid != own)
            .filter_map(stat)
            .map(|process| Process { chain: chain(process.pid), ..process })
            .collect()
    }

    /// Reads `/proc/<pid>/stat`; `None` for what is gone or only a zombie.
    fn stat(pid: i32) -> Option<Process> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets included.
        let close = bytes.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(&bytes[close + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        Some(Process {
            pid,
            parent: number(1)?,
            group: number(2)?,
            started: fields.get(19)?.parse().ok()?,
            chain: None,
        })
    }

    fn chain(pid: i32) -> Option<String> {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|b| *b == 0).find_map(|entry| {
            let value = entry.strip_prefix(MARKER_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
            String::from_utf8(value.to_vec()).ok()
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Without `/proc` only the group is known; it is killed while it exists.

    use super::{Known, Target, group_lives, kill_group};

    pub(super) fn kill_found(targets: &[Target]) -> usize {
        let living = targets.iter().filter(|t| t.group.is_some_and(group_lives));
        living.map(|target| kill_group(target.group)).count()
    }

    pub(super) fn living(targets: &[Target]) -> Vec<bool> {
        let lives = |target: &Target| target.group.is_some_and(group_lives);
        targets.iter().map(lives).collect()
    }

    pub(super) fn members(_group: i32) -> Vec<Known> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_found_as_a_whole_link_of_the_chain() {
        let check = |marker: &str, chain: &str, expected: bool| {
            assert_eq!(Target::marked(marker).holds_marker(chain), expected, "{chain}");
        };
        check("ab.1", "ab.1", true);
        check("ab.1", "zz.9:ab.1:cc.2", true);
        check("ab.1", "ab.12", false);
        check("ab", "ab.12", true);
        check("ab", "abc.1", false);
    }
}
