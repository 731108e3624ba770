//! Seeded simulation of the real engine with a fake shell (`style.md` 9).
//!
//! A scheduler picks the next event among all in flight: stream events, tool
//! endings, openings, discoveries, commands, deadlines. Faults: failed
//! openings, broken and failing streams, hung tools, late and repeated
//! endings, aborts, detaching, forks, failed appends, artifacts and merges,
//! commands and sessions that do not end, days that pass, a quit in the middle. Invariants are checked after each step; then faults stop,
//! everything must come to rest, and a naive reference model says who must
//! have received what. Read `world` for the scheduler, `shell` for what
//! effects do, `tasks` for calls of `task`, `checks` and `reference` for what must
//! hold.

mod checks;
mod compaction;
mod disk;
mod faces;
mod reference;
mod script;
mod shell;
mod tasks;
mod world;

use std::fmt;

/// What a clean run did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Events taken.
    pub steps: u64,
    /// Subagents spawned.
    pub spawned: u64,
    /// Cycles settled.
    pub settled: u64,
    /// Results and abort entries recorded by owners.
    pub delivered: u64,
    /// Faults injected.
    pub faults: u64,
    /// Compactions that were written.
    pub compactions: u64,
    /// Moves in a session tree that arrived.
    pub moves: u64,
    /// Runs that ended by a quit in the middle.
    pub quits: u64,
    /// Children of `task` that started.
    pub task_children: u64,
    /// Calls of `task` with a recorded result.
    pub task_results: u64,
}

impl Summary {
    /// Adds another run.
    pub fn add(&mut self, other: &Summary) {
        self.steps += other.steps;
        self.spawned += other.spawned;
        self.settled += other.settled;
        self.delivered += other.delivered;
        self.faults += other.faults;
        self.compactions += other.compactions;
        self.moves += other.moves;
        self.quits += other.quits;
        self.task_children += other.task_children;
        self.task_results += other.task_results;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} steps, {} subagents, {} settlements, {} deliveries, {} faults, \
             {} compactions, {} moves, {} sudden ends, {} task children, {} task results",
            self.steps,
            self.spawned,
            self.settled,
            self.delivered,
            self.faults,
            self.compactions,
            self.moves,
            self.quits,
            self.task_children,
            self.task_results
        )
    }
}

/// Runs one seed; the error says which invariant broke.
pub fn run(seed: u64) -> Result<Summary, String> {
    world::World::new(seed, false).run().1
}

/// Runs one seed and keeps a line for each event and effect.
pub fn replay(seed: u64) -> (Vec<String>, Result<Summary, String>) {
    world::World::new(seed, true).run()
}
