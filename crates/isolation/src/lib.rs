//! Isolated copies for the `task` tool (`task.md` 10): makes them, captures what
//! a child changed in them, brings it back, removes them.
//!
//! One [`Copies`] serves the whole process. Its methods block for as long as git
//! needs, and may be called from several threads at once; merges into one
//! repository wait for each other, also between processes. Must never lose a
//! byte of a person's tree: `swap` is the only module that writes there. Must
//! never print and never read the environment. Read `prepare`, `capture`,
//! `integrate`, then `swap`.

mod advance;
mod branch;
mod bytes;
mod capture;
mod commits;
mod copying;
mod detached;
mod error;
mod git;
mod integrate;
mod lock;
mod patch;
mod prepare;
mod recover;
mod slot;
mod snapshot;
mod source;
mod swap;
mod trees;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crew_task::isolation::{Capture, Integration, Plan, Prepared};

pub use error::{Error, Result};
pub use recover::Recovered;
pub use snapshot::BASELINE_BYTES_MAX;

use git::Git;
use integrate::Integrating;
use slot::{Contents, Slot};
use source::{Source, make_private};

/// The copies of this process.
pub struct Copies {
    base: PathBuf,
    marker: Option<String>,
    copies: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    copies: BTreeMap<u64, Arc<Mutex<Option<Copy>>>>,
}

/// A copy; taken out while it is integrated, gone for good when it was kept.
struct Copy {
    slot: Slot,
    contents: Contents,
}

impl Copies {
    /// Copies below `base` (`worktree.base`), else below
    /// `<agent_dir>/crew/worktrees` (`task.md` OBS-13). Nothing is created yet.
    pub fn new(base: Option<PathBuf>, agent_dir: PathBuf) -> Copies {
        let base = base.unwrap_or_else(|| agent_dir.join("crew").join("worktrees"));
        Copies { base, marker: None, copies: Mutex::default() }
    }

    /// The same with a marker for the processes it starts, by which they are
    /// found when the host dies (`product.md` P-14b).
    pub fn with_marker(self, marker: impl Into<String>) -> Copies {
        Copies { marker: Some(marker.into()), ..self }
    }

    /// The folder that holds the copies.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Makes a copy of the repository around `cwd` (`task.md` ISO-2 to ISO-5);
    /// with it come warnings, among them that another backend was used. Fails
    /// without a trace; `cancel` is asked again and again.
    pub fn prepare(
        &self,
        plan: &Plan,
        cwd: &Path,
        cancel: &dyn Fn() -> bool,
    ) -> Result<(Prepared, Vec<String>)> {
        make_private(&self.base)?;
        let base = self.real_base()?;
        let git = self.git(&base, cancel);
        let root = Source::find(&git, cwd)?;
        let _lock = lock::share(&git, &base, &root.common_dir)?;
        let slot = Slot::create(&base, &root.root, &plan.id)?;
        let mut warnings = Vec::new();
        let filled = prepare::fill(&git, &slot, &base, root, cwd, plan.backend, &mut warnings);
        let ready = filled.and_then(|contents| {
            let cwd = capture::text(&slot.tree().join(&contents.cwd))?;
            // Joining an empty path leaves a slash at the end.
            Ok((contents, cwd.trim_end_matches('/').to_owned()))
        });
        match ready {
            Ok((contents, cwd)) => {
                let mut table = self.table();
                table.last += 1;
                let handle = table.last;
                let copy = Arc::new(Mutex::new(Some(Copy { slot, contents })));
                table.copies.insert(handle, copy);
                Ok((Prepared { cwd, handle }, warnings))
            }
            Err(error) => {
                // The first failure tells more; what stays is found by `recover`.
                let _ = slot.remove();
                Err(error)
            }
        }
    }

    /// What [`Copies::integrate`] would commit in branch mode in its own words,
    /// as a diff cut at `bytes_max`: `None` when the child committed all it
    /// changed (`task.md` ISO-9). Changes nothing.
    pub fn describe(
        &self,
        handle: u64,
        bytes_max: usize,
        cancel: &dyn Fn() -> bool,
    ) -> Result<Option<String>> {
        let unknown = Error::UnknownCopy { handle };
        let Some(held) = self.table().copies.get(&handle).cloned() else { return Err(unknown) };
        let held = lock_of(&held);
        let Some(Copy { slot, contents }) = &*held else { return Err(unknown) };
        let base = self.real_base()?;
        Integrating::describe(self.git(&base, cancel), slot, contents, bytes_max)
    }

    /// Captures what a finished child changed and brings it back as the capture
    /// says (`task.md` ISO-6 to ISO-18). An error means that nothing was
    /// captured; every other trouble is part of the integration, which then
    /// names where the work is. Blocks while another merge into the repository
    /// is under way. Messages are not generated here: `message` is used.
    pub fn integrate(&self, capture: &Capture, cancel: &dyn Fn() -> bool) -> Result<Integration> {
        let unknown = Error::UnknownCopy { handle: capture.handle };
        let Some(held) = self.table().copies.get(&capture.handle).cloned() else {
            return Err(unknown);
        };
        let base = self.real_base()?;
        let mut held = lock_of(&held);
        let Some(Copy { slot, contents }) = held.take() else { return Err(unknown) };
        let git = self.git(&base, cancel);
        let integrating = Integrating { git, base: &base, capture };
        let (slot, integration) = integrating.run(slot, contents.clone());
        *held = slot.map(|slot| Copy { slot, contents });
        integration
    }

    /// Removes a copy; one that is unknown, or was kept for a person, is no
    /// error. Waits for an integration of it that is under way.
    pub fn discard(&self, handle: u64) -> Result<()> {
        let Some(held) = self.table().copies.remove(&handle) else { return Ok(()) };
        match lock_of(&held).take() {
            Some(copy) => copy.slot.remove(),
            None => Ok(()),
        }
    }

    /// Cleans up after hosts that died (`task.md` ISO-19): merges that were
    /// under way are taken back, copies removed, those with changes that were
    /// never captured kept and named.
    pub fn recover(&self) -> Recovered {
        let Ok(base) = std::fs::canonicalize(&self.base) else { return Recovered::default() };
        recover::run(&self.git(&base, &|| false), &base)
    }

    fn git<'a>(&'a self, base: &'a Path, cancel: &'a dyn Fn() -> bool) -> Git<'a> {
        Git { scratch: base, cancel, marker: self.marker.as_deref() }
    }

    /// The base without links, as git will see paths below it.
    fn real_base(&self) -> Result<PathBuf> {
        std::fs::canonicalize(&self.base).map_err(error::io_error("open", &self.base))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock_of(&self.copies)
    }
}

/// A panic elsewhere leaves whole values behind: every change is one statement.
fn lock_of<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
