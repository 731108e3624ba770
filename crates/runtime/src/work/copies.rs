//! Isolated copies for `task` children (`task.md` 10, OBS-13).
//!
//! Owns which folder a copy lies in: the setting is read anew for each, so
//! copies of several folders may exist at once. Everything here blocks for as
//! long as git needs. What a copy is and how it is merged is the adapter's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crew_base::limits::DIFF_BYTES_MAX;
use crew_engine::api::task::isolation::{Capture, Integration, Plan, Prepared};
use crew_isolation::{Copies, Recovered};

use crate::causes::with_causes;

/// Where copies are made, and by whom.
pub(crate) struct Place {
    /// `worktree.base`.
    pub(crate) base: Option<PathBuf>,
    /// The agent directory.
    pub(crate) agent_dir: PathBuf,
    /// By which processes are found when the host dies.
    pub(crate) marker: String,
}

/// All copies of the process.
#[derive(Clone, Default)]
pub(crate) struct Isolated(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last: u64,
    folders: BTreeMap<Option<PathBuf>, Arc<Copies>>,
    /// Our number for a copy: its folder, and the number there.
    handles: BTreeMap<u64, (Arc<Copies>, u64)>,
}

impl Isolated {
    /// Makes a copy of the repository around `cwd`; with it come warnings. The
    /// first one in a folder takes away what dead hosts left there.
    pub(super) fn prepare(
        &self,
        place: Place,
        plan: &Plan,
        cwd: &Path,
        cancel: &dyn Fn() -> bool,
    ) -> Result<(Prepared, Vec<String>), String> {
        let (copies, is_first) = self.folder(place);
        let mut warnings = if is_first { found(copies.recover()) } else { Vec::new() };
        let prepared = copies.prepare(plan, cwd, cancel);
        let (prepared, more) = prepared.map_err(|error| with_causes(&error))?;
        warnings.extend(more);
        let mut state = self.lock();
        state.last += 1;
        let handle = state.last;
        state.handles.insert(handle, (copies, prepared.handle));
        Ok((Prepared { handle, ..prepared }, warnings))
    }

    /// What is to be committed for the child of a copy, as a diff.
    pub(super) fn describe(
        &self,
        handle: u64,
        cancel: &dyn Fn() -> bool,
    ) -> Result<Option<String>, String> {
        let known = self.lock().handles.get(&handle).cloned();
        let (copies, handle) = known.ok_or("the copy does not exist any more")?;
        copies.describe(handle, DIFF_BYTES_MAX, cancel).map_err(|error| with_causes(&error))
    }

    /// Captures what changed in a copy, brings it back, and removes the copy:
    /// whoever reads the result finds nothing left of it (ISO-19).
    pub(super) fn integrate(
        &self,
        capture: &Capture,
        cancel: &dyn Fn() -> bool,
    ) -> Result<Integration, String> {
        let known = self.lock().handles.get(&capture.handle).cloned();
        let (copies, handle) = known.ok_or("the copy does not exist any more")?;
        let inner = Capture { handle, ..capture.clone() };
        let result = copies.integrate(&inner, cancel).map_err(|error| with_causes(&error));
        let Ok(mut integration) = result else { return result };
        if let Err(error) = self.discard(capture.handle) {
            integration.warnings.push(error);
        }
        Ok(integration)
    }

    /// Removes a copy, unless it is kept for a person.
    pub(super) fn discard(&self, handle: u64) -> Result<(), String> {
        let known = self.lock().handles.remove(&handle);
        let Some((copies, handle)) = known else { return Ok(()) };
        copies.discard(handle).map_err(|error| with_causes(&error))
    }

    /// The copies of a folder, and whether they are its first.
    fn folder(&self, place: Place) -> (Arc<Copies>, bool) {
        let mut state = self.lock();
        if let Some(copies) = state.folders.get(&place.base) {
            return (Arc::clone(copies), false);
        }
        let copies = Copies::new(place.base.clone(), place.agent_dir).with_marker(place.marker);
        let copies = Arc::new(copies);
        state.folders.insert(place.base, Arc::clone(&copies));
        (copies, true)
    }

    /// A panic elsewhere leaves whole values behind: every change is one
    /// statement.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What people should know of what dead hosts left behind.
fn found(recovered: Recovered) -> Vec<String> {
    let Recovered { kept, undone, mut warnings, .. } = recovered;
    warnings.extend(kept.iter().map(|path| {
        let path = path.display();
        format!("a host that died left changes of a child that were not captured: {path}")
    }));
    if undone > 0 {
        warnings.push("a merge that a host did not finish when it died was taken back".to_owned());
    }
    warnings
}
