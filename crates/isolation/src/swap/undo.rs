//! Takes a change back that was not finished, at once or after a restart.
//!
//! Every file is looked at: what is as planned is put back as it was, what
//! somebody changed meanwhile stays and is named.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{
    JOURNAL, Journal, Shape, Step, exchange, is_behind_link, is_exactly, is_same, shape,
    write_shape,
};
use crate::bytes::{self, shown_path};
use crate::git::Git;

/// What taking back came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Undone {
    /// What could not be put back.
    pub(crate) warnings: Vec<String>,
    /// The change had been finished; it stands.
    pub(crate) is_finished: bool,
}

/// Ends a change that a dead process left: it is taken back unless it was
/// complete.
pub(crate) fn recover(git: &Git<'_>, folder: &Path, journal: &Journal) -> Undone {
    let change = Change { folder, journal, done: None };
    let is_done = match &journal.head {
        Some(head) => head.is_done(git, folder),
        None => journal
            .steps
            .iter()
            .all(|step| is_exactly(&step.new, &change.new_content(step), &change.at(step))),
    };
    if !is_done {
        return undo(git, folder, journal, None);
    }
    let mut warnings = Vec::new();
    for step in &journal.steps {
        change.clear(step, &mut warnings);
    }
    // What is left of the journal would only be read again.
    let _ = fs::remove_file(folder.join(JOURNAL));
    Undone { warnings, is_finished: true }
}

/// The journal of a change under way.
pub(crate) fn read(folder: &Path) -> Option<Journal> {
    serde_json::from_slice(&fs::read(folder.join(JOURNAL)).ok()?).ok()
}

/// Whether a slot holds a change that was neither made nor taken back whole.
pub(crate) fn is_under_way(slot: &Path) -> bool {
    let Ok(entries) = fs::read_dir(slot) else { return false };
    entries.flatten().any(|entry| entry.path().join(JOURNAL).exists())
}

/// Takes a change back. Where it is known which steps were `done`, what somebody
/// changed before their step came is no trouble.
pub(crate) fn undo(
    git: &Git<'_>,
    folder: &Path,
    journal: &Journal,
    done: Option<&BTreeSet<usize>>,
) -> Undone {
    let change = Change { folder, journal, done };
    let mut warnings = Vec::new();
    let (made, had): (Vec<_>, Vec<_>) =
        journal.steps.iter().partition(|step| step.old == Shape::Absent);
    for step in &journal.steps {
        change.save_strangers(step);
    }
    // First what may be in the way of a file or folder that was there.
    for step in made.into_iter().rev() {
        change.put_back(step, &mut warnings);
        change.clear(step, &mut warnings);
    }
    let mut folders = Vec::new();
    for (place, mode) in &journal.folders {
        let dir = journal.root.join(bytes::path(place));
        if fs::create_dir(&dir).is_ok() {
            folders.push((dir, *mode));
        }
    }
    for step in had {
        change.put_back(step, &mut warnings);
        change.clear(step, &mut warnings);
    }
    for (dir, mode) in folders.into_iter().rev() {
        // Last, since a folder may forbid to write in it.
        let _ = fs::set_permissions(&dir, Permissions::from_mode(mode));
    }
    warnings.extend(journal.head.as_ref().and_then(|head| head.undo(git, folder)));
    if warnings.is_empty() {
        let _ = fs::remove_file(folder.join(JOURNAL));
    }
    Undone { warnings, is_finished: false }
}

struct Change<'a> {
    folder: &'a Path,
    journal: &'a Journal,
    done: Option<&'a BTreeSet<usize>>,
}

impl Change<'_> {
    fn at(&self, step: &Step) -> PathBuf {
        self.journal.root.join(&step.path)
    }

    fn aside(&self, step: &Step) -> PathBuf {
        self.journal.root.join(&step.temporary)
    }

    fn old_content(&self, step: &Step) -> PathBuf {
        self.folder.join("old").join(step.number.to_string())
    }

    fn new_content(&self, step: &Step) -> PathBuf {
        self.folder.join("new").join(&step.path)
    }

    /// Whether what has the temporary name was put there by us.
    fn is_ours(&self, step: &Step) -> bool {
        let (aside, new) = (self.aside(step), self.new_content(step));
        is_same(&step.new, &new, &aside)
            || is_same(&step.old, &self.old_content(step), &aside)
            || is_partial(&step.new, &new, &aside)
    }

    fn has_aside(&self, step: &Step) -> bool {
        matches!(shape(&self.aside(step)), Ok(Shape::File(_) | Shape::Link(_)))
    }

    /// A file that is neither old nor new under the temporary name was
    /// somebody's own in the moment of the exchange: it goes back to its place.
    fn save_strangers(&self, step: &Step) {
        let is_hidden = is_behind_link(&self.journal.root, &step.path);
        if is_hidden || !self.has_aside(step) || self.is_ours(step) {
            return;
        }
        let (at, aside) = (self.at(step), self.aside(step));
        // Where this fails the file stays under the name it has, and is told.
        let _ = match is_same(&step.new, &self.new_content(step), &at) {
            true if step.new != Shape::Absent => {
                exchange::exchange(&aside, &at, |_| true).map(drop)
            }
            _ => exchange::place(&aside, &at),
        };
    }

    fn put_back(&self, step: &Step, warnings: &mut Vec<String>) {
        let (at, aside, old) = (self.at(step), self.aside(step), self.old_content(step));
        let is_hidden = is_behind_link(&self.journal.root, &step.path);
        if is_hidden && step.old == Shape::Absent {
            return;
        }
        if !is_hidden && is_same(&step.old, &old, &at) {
            if let (Shape::File(mode), true) =
                (&step.old, is_exactly(&step.new, &self.new_content(step), &at))
            {
                // Only the mode had changed.
                let _ = fs::set_permissions(&at, Permissions::from_mode(*mode));
            }
            return;
        }
        if step.old == Shape::Absent && at.is_dir() {
            // A folder that was to make room.
            return;
        }
        let said = |what: &str| format!("`{}` {what}", shown_path(&step.path));
        if is_hidden || !is_same(&step.new, &self.new_content(step), &at) {
            if self.done.is_none_or(|done| done.contains(&step.number)) {
                warnings.push(said("was changed meanwhile and left as it is"));
            }
            return;
        }
        if self.has_aside(step) && self.is_ours(step) {
            let _ = fs::remove_file(&aside);
        }
        let put = || -> io::Result<()> {
            match (&step.old, &step.new) {
                (Shape::Absent, _) => fs::remove_file(&at),
                (_, Shape::Absent) => {
                    write_shape(&step.old, &old, &aside)?;
                    exchange::place(&aside, &at)
                }
                _ => {
                    write_shape(&step.old, &old, &aside)?;
                    fs::rename(&aside, &at)
                }
            }
        };
        if let Err(error) = put() {
            let kept = old.strip_prefix(self.folder).unwrap_or(&old).display();
            warnings.push(said(&format!(
                "could not be put back ({error}); the copy keeps it as {kept}"
            )));
        }
    }

    /// Removes the temporary file, and folders that were made for nothing.
    fn clear(&self, step: &Step, warnings: &mut Vec<String>) {
        if self.has_aside(step) {
            if self.is_ours(step) {
                let _ = fs::remove_file(self.aside(step));
            } else {
                let (aside, path) = (shown_path(&step.temporary), shown_path(&step.path));
                warnings.push(format!("what stood in `{path}` for a moment is now in `{aside}`"));
            }
        }
        let is_hidden = is_behind_link(&self.journal.root, &step.path);
        if is_hidden
            || step.old != Shape::Absent
            || !matches!(shape(&self.at(step)), Ok(Shape::Absent))
        {
            return;
        }
        let nearest = step.temporary.parent().unwrap_or(Path::new(""));
        for above in step.path.ancestors().skip(1).take_while(|above| *above != nearest) {
            if fs::remove_dir(self.journal.root.join(above)).is_err() {
                break;
            }
        }
    }
}

/// Whether a file is the beginning of what was being written.
fn is_partial(new: &Shape, content: &Path, at: &Path) -> bool {
    let (Shape::File(_), Ok(whole), Ok(part)) = (new, fs::read(content), fs::read(at)) else {
        return false;
    };
    whole.starts_with(&part)
}
