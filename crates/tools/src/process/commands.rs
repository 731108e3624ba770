//! The commands of this process: what runs, and what may have been left behind
//! by those that ended (`host.md` 4.3.8, `product.md` P-14b, P-14f).
//!
//! Invariant: a command stays listed, and the guard stays told, until it is
//! certain that no process of it lives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crew_base::id::SessionId;

use super::sweep::{Known, Target, group_lives, kill_marked, living, members};
use crate::host::{GroupGuard, random_hex};

/// Ended commands that are listed before it is checked which of them left
/// something; one look at the process table serves them all.
const UNCHECKED_MAX: usize = 32;

/// All listed commands.
pub(crate) struct Commands {
    marker: String,
    guard: Option<Arc<dyn GroupGuard>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    listed: Vec<Listed>,
}

struct Listed {
    session: SessionId,
    marker: String,
    /// Its process group, once it has one.
    group: Option<i32>,
    phase: Phase,
}

enum Phase {
    /// The shell runs, or is being started.
    Running,
    /// The shell was waited for; `Some` when processes were left in its group,
    /// with those that could be seen.
    Ended(Option<Vec<Known>>),
}

impl Listed {
    fn target(&self) -> Target {
        let (group, leader_held, known) = match &self.phase {
            Phase::Running => (self.group, true, Vec::new()),
            Phase::Ended(Some(known)) => (self.group, false, known.clone()),
            Phase::Ended(None) => (None, false, Vec::new()),
        };
        Target { marker: self.marker.clone(), group, leader_held, known }
    }
}

impl Commands {
    /// Starts with a random marker for the whole process.
    pub(crate) fn new(guard: Option<Arc<dyn GroupGuard>>) -> Commands {
        Commands { marker: random_hex(), guard, state: Mutex::default() }
    }

    /// The part that all markers of this process share.
    pub(crate) fn marker(&self) -> &str {
        &self.marker
    }

    /// Lists a command that is about to start; `None` once the host is ending.
    pub(crate) fn begin(&self, session: &SessionId) -> Option<String> {
        let marker = format!("{}.{}", self.marker, random_hex());
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.listed.push(Listed {
            session: session.clone(),
            marker: marker.clone(),
            group: None,
            phase: Phase::Running,
        });
        Some(marker)
    }

    /// Notes the process group of a started command. `false` when everything
    /// of its session was ended meanwhile; the caller then ends this one too.
    #[must_use]
    pub(crate) fn started(&self, marker: &str, group: i32) -> bool {
        if let Some(guard) = &self.guard {
            guard.started(group, marker);
        }
        let is_listed = self.change(marker, |command| command.group = Some(group));
        if !is_listed && let Some(guard) = &self.guard {
            guard.ended(group, marker);
        }
        is_listed
    }

    /// Notes that the shell was waited for. Blocks for some milliseconds when
    /// processes are left in its group.
    pub(crate) fn ended(&self, marker: &str, group: i32) {
        let left = group_lives(group).then(|| members(group));
        self.change(marker, |command| command.phase = Phase::Ended(left));
    }

    /// Whether so many ended commands are listed that `check` is due.
    pub(crate) fn check_is_due(&self) -> bool {
        let state = self.lock();
        let ended = state.listed.iter().filter(|c| is_ended(c)).count();
        ended > UNCHECKED_MAX && ended.is_multiple_of(UNCHECKED_MAX)
    }

    /// Strikes off the ended commands of which nothing is left. Blocks.
    pub(crate) fn check(&self) {
        let targets: Vec<Target> = {
            let state = self.lock();
            let ended = state.listed.iter().filter(|c| is_ended(c));
            ended.map(Listed::target).collect()
        };
        for (target, lives) in targets.iter().zip(living(&targets)) {
            if !lives {
                self.strike(|command| command.marker == target.marker);
            }
        }
    }

    /// Ends every process of one command and strikes it off. Blocks.
    pub(crate) fn kill(&self, marker: &str) {
        self.kill_where(|command| command.marker == marker);
    }

    /// Ends every process of a session's commands. Blocks.
    pub(crate) fn kill_session(&self, session: &SessionId) {
        self.kill_where(|command| command.session == *session);
    }

    /// Ends every process of every command, for good: none starts after. Blocks.
    pub(crate) fn kill_all(&self) {
        self.lock().closed = true;
        self.kill_where(|_| true);
        if let Some(guard) = &self.guard {
            guard.finish();
        }
    }

    fn kill_where(&self, matches: impl Fn(&Listed) -> bool) {
        let targets: Vec<Target> = {
            let state = self.lock();
            let chosen = state.listed.iter().filter(|c| matches(c));
            chosen.map(Listed::target).collect()
        };
        if targets.is_empty() {
            return;
        }
        kill_marked(&targets);
        self.strike(|command| targets.iter().any(|t| t.marker == command.marker));
    }

    fn strike(&self, matches: impl Fn(&Listed) -> bool) {
        let struck: Vec<Listed> = {
            let mut state = self.lock();
            let (struck, kept) = std::mem::take(&mut state.listed).into_iter().partition(matches);
            state.listed = kept;
            struck
        };
        let Some(guard) = &self.guard else {
            return;
        };
        for command in struck {
            if let Some(group) = command.group {
                guard.ended(group, &command.marker);
            }
        }
    }

    /// Changes a command; `false` when it is not listed.
    fn change(&self, marker: &str, apply: impl FnOnce(&mut Listed)) -> bool {
        let mut state = self.lock();
        let command = state.listed.iter_mut().find(|c| c.marker == marker);
        command.map(apply).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn listed(&self) -> usize {
        self.lock().listed.len()
    }
}

fn is_ended(command: &Listed) -> bool {
    match command.phase {
        Phase::Running => false,
        Phase::Ended(..) => true,
    }
}
