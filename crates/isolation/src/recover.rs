//! Cleans up after hosts that died (ISO-19): ends changes that were under way,
//! removes copies, keeps those with work that is nowhere else.
//!
//! A slot with a living owner is never touched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bytes::shown_path;
use crate::capture;
use crate::git::Git;
use crate::lock;
use crate::slot::Slot;
use crate::swap;

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Copies that were removed.
    pub removed: usize,
    /// Copies that hold changes of a child which were not captured, at the place
    /// they were moved to.
    pub kept: Vec<PathBuf>,
    /// Merges that a death had interrupted and that were taken back.
    pub undone: usize,
    /// Merges that had come to their end.
    pub finished: usize,
    /// What a person should look at.
    pub warnings: Vec<String>,
}

/// Goes through all slots of a base.
pub(crate) fn run(git: &Git<'_>, base: &Path) -> Recovered {
    let mut recovered = Recovered::default();
    for dir in Slot::list(base) {
        if git.is_cancelled() {
            break;
        }
        let Some(slot) = Slot::take_over(&dir) else { continue };
        if !end_changes(git, base, &slot, &mut recovered) || holds_work(git, &slot) {
            recovered.kept.push(slot.keep().join("tree"));
            continue;
        }
        match slot.remove() {
            Ok(()) => recovered.removed += 1,
            Err(error) => recovered.warnings.push(error.to_string()),
        }
    }
    recovered
}

/// Ends the changes of the person's tree that were under way; false when
/// something could not be put back and the kept files are still needed.
fn end_changes(git: &Git<'_>, base: &Path, slot: &Slot, recovered: &mut Recovered) -> bool {
    let Ok(entries) = fs::read_dir(&slot.dir) else { return true };
    let mut is_clean = true;
    for entry in entries.flatten() {
        let folder = entry.path();
        let Some(journal) = swap::read(&folder) else { continue };
        let Ok(_lock) = lock::take(git, base, &journal.common_dir) else {
            is_clean = false;
            continue;
        };
        let undone = swap::recover(git, &folder, &journal);
        if undone.is_finished {
            recovered.finished += 1;
        } else {
            recovered.undone += 1;
        }
        is_clean &= undone.warnings.is_empty();
        let place = shown_path(&slot.dir);
        recovered
            .warnings
            .extend(undone.warnings.iter().map(|warning| format!("{place}: {warning}")));
    }
    is_clean
}

/// Whether a child changed something here that was never captured. What cannot
/// be looked at counts as changed.
fn holds_work(git: &Git<'_>, slot: &Slot) -> bool {
    let Some(contents) = slot.read_contents() else {
        // No child ever ran in a copy that was not finished.
        return false;
    };
    if contents.is_settled {
        return false;
    }
    let mut ignored = Vec::new();
    capture::deltas(git, slot, &contents, &mut ignored).map_or(true, |deltas| !deltas.is_empty())
}
