//! Brings the work of a finished child back (ISO-6 to ISO-18).
//!
//! Invariant: from the moment a copy is looked at until its changes are in a
//! patch file, on a branch or in the tree, nothing removes it; where neither
//! can be written the copy itself is kept and named.

use std::path::Path;

use crew_task::isolation::{Capture, Integration, Merged};
use crew_task::settings::Merge;

use crate::advance::{self, Work};
use crate::branch::{self, Made};
use crate::bytes::shown_path;
use crate::capture::{self, Delta, PatchSet, Patches};
use crate::error::{Error, Result};
use crate::git::Git;
use crate::lock;
use crate::patch::{self, Outcome, Target};
use crate::slot::{Contents, Slot};
use crate::source::Kind;
use crate::swap;

/// What integration works with.
pub(crate) struct Integrating<'a> {
    pub(crate) git: Git<'a>,
    pub(crate) base: &'a Path,
    pub(crate) capture: &'a Capture,
}

/// What was captured and where it is safe.
#[derive(Default)]
struct Safe {
    deltas: Vec<Delta>,
    patches: Patches,
    branch: Option<Made>,
}

impl Integrating<'_> {
    /// Captures and brings back. `None` in place of the slot: it was kept.
    pub(crate) fn run(
        &self,
        slot: Slot,
        mut contents: Contents,
    ) -> (Option<Slot>, Result<Integration>) {
        let mut out = Integration::default();
        let safe = match self.capture(&slot, &contents, &mut out) {
            Ok(safe) => safe,
            Err(Error::Cancelled) => return (Some(slot), Err(Error::Cancelled)),
            Err(error) => {
                let place = slot.keep();
                let place = shown_path(&place.join("tree"));
                out.error = Some(format!(
                    "the changes could not be captured ({error}); the copy is kept in {place}"
                ));
                return (None, Ok(out));
            }
        };
        contents.is_settled = true;
        if let Err(error) = slot.write_contents(&contents) {
            // A restart would keep the copy, which costs room only.
            out.warnings.push(error.to_string());
        }
        if self.capture.apply && out.error.is_none() {
            self.bring_back(&slot, &contents, &safe, &mut out);
        }
        if swap::is_under_way(&slot.dir) {
            // A change could not be taken back whole: the kept files are needed.
            let place = shown_path(&slot.keep());
            out.warnings.push(format!("the copy with the files as they were is kept in {place}"));
            return (None, Ok(out));
        }
        (Some(slot), Ok(out))
    }

    /// The start of what would be committed for the child (ISO-9).
    pub(crate) fn describe(
        git: Git<'_>,
        slot: &Slot,
        contents: &Contents,
        bytes_max: usize,
    ) -> Result<Option<String>> {
        let deltas = capture::deltas(&git, slot, contents, &mut Vec::new())?;
        let repository = &contents.repositories[0];
        let (Some(delta), Some(base)) =
            (deltas.iter().find(|delta| delta.number == 0), repository.source.head.as_deref())
        else {
            return Ok(None);
        };
        let cwd = &contents.cwd;
        let target = Target { git, slot, number: 0, repository, tree: &delta.tree, cwd };
        branch::describe(&target, base, bytes_max)
    }

    fn capture(&self, slot: &Slot, contents: &Contents, out: &mut Integration) -> Result<Safe> {
        let deltas = capture::deltas(&self.git, slot, contents, &mut out.warnings)?;
        let root = deltas.iter().find(|delta| delta.number == 0);
        out.has_root_changes = root.is_some();
        let mut branch = None;
        let mut wants_patch = match self.capture.merge {
            Merge::Patch => true,
            Merge::Branch => false,
        };
        let base = contents.repositories[0].source.head.clone();
        match (self.capture.merge, root, base) {
            (Merge::Branch, Some(delta), Some(base)) => {
                let target = self.target(slot, contents, delta);
                match branch::make(&target, &base, &self.capture.id, &self.capture.message) {
                    Ok(made) => {
                        wants_patch = made.is_none();
                        branch = made;
                    }
                    Err(Error::Cancelled) => return Err(Error::Cancelled),
                    Err(error) => {
                        wants_patch = true;
                        out.error = Some(format!(
                            "the branch could not be made ({error}); the changes are in a patch \
                             file instead"
                        ));
                    }
                }
            }
            (Merge::Branch, Some(_), None) => {
                wants_patch = true;
                let why = "there is no commit to start a branch at; the patch was used";
                out.warnings.push(why.to_owned());
            }
            (Merge::Branch, None, _) | (Merge::Patch, _, _) => {}
        }
        let set = PatchSet {
            git: self.git,
            slot,
            contents,
            deltas: &deltas,
            folder: Path::new(&self.capture.folder),
            id: &self.capture.id,
        };
        let patches = match (set.write(wants_patch), &branch, root) {
            (Err(Error::Cancelled), Some(made), Some(delta)) => {
                // A run that was cancelled leaves nothing behind.
                branch::delete(&self.target(slot, contents, delta), made)?;
                return Err(Error::Cancelled);
            }
            (Err(error), Some(made), _) => {
                out.branch = Some(made.branch.clone());
                return Err(error);
            }
            (patches, _, _) => patches?,
        };
        out.patch = patches.root.as_deref().map(capture::text).transpose()?;
        for (_, path) in &patches.nested {
            out.nested.push(capture::text(path)?);
        }
        out.branch = branch.as_ref().map(|made| made.branch.clone());
        Ok(Safe { deltas, patches, branch })
    }

    fn target<'b>(
        &'b self,
        slot: &'b Slot,
        contents: &'b Contents,
        delta: &'b Delta,
    ) -> Target<'b> {
        Target {
            git: self.git,
            slot,
            number: delta.number,
            repository: &contents.repositories[delta.number],
            tree: &delta.tree,
            cwd: &contents.cwd,
        }
    }

    /// The working tree first, then the repositories in it (ISO-16).
    fn bring_back(&self, slot: &Slot, contents: &Contents, safe: &Safe, out: &mut Integration) {
        let root = safe.deltas.iter().find(|delta| delta.number == 0);
        out.merged = Merged::Nothing;
        if let Some(delta) = root {
            let target = self.target(slot, contents, delta);
            match self.root(&target, safe, out) {
                Ok(Outcome::Applied) => out.merged = Merged::Applied,
                Ok(Outcome::AlreadyThere) => out.merged = Merged::AlreadyThere,
                Ok(Outcome::Refused(why)) => {
                    out.merged = Merged::Conflict(why);
                    return;
                }
                Err(error) => {
                    out.merged = Merged::Skipped;
                    out.error = Some(format!("the changes could not be applied: {error}"));
                    return;
                }
            }
        }
        for (number, patch) in &safe.patches.nested {
            let Some(delta) = safe.deltas.iter().find(|delta| delta.number == *number) else {
                continue;
            };
            let target = self.target(slot, contents, delta);
            let place = shown_path(&target.repository.place);
            match self.nested(&target, patch, &mut out.warnings) {
                Ok(Outcome::Applied | Outcome::AlreadyThere) => {
                    if out.merged == Merged::Nothing {
                        out.merged = Merged::Applied;
                    }
                }
                Ok(Outcome::Refused(why)) => {
                    let patch = shown_path(patch);
                    out.warnings.push(format!("`{place}` was not changed: {why}; see {patch}"));
                }
                Err(error) => {
                    let patch = shown_path(patch);
                    out.warnings.push(format!("`{place}` was not changed: {error}; see {patch}"));
                }
            }
        }
    }

    fn root(&self, target: &Target<'_>, safe: &Safe, out: &mut Integration) -> Result<Outcome> {
        let source = &target.repository.source;
        let _lock = lock::take(&self.git, self.base, &source.common_dir)?;
        let Some(made) = &safe.branch else {
            // Without a branch there is always a patch file.
            let Some(patch) = &safe.patches.root else { return Ok(Outcome::AlreadyThere) };
            return patch::apply(target, patch, &mut out.warnings);
        };
        let work = Work::Commits { base: &made.branch.base, tip: &made.tip };
        let reason = format!("crew: {}", made.branch.name);
        let outcome = advance::run(target, &work, &reason, &mut out.warnings)?;
        match outcome {
            Outcome::Applied | Outcome::AlreadyThere => match branch::delete(target, made) {
                Ok(()) => {
                    if let Some(branch) = &mut out.branch {
                        branch.is_kept = false;
                    }
                }
                Err(error) => out.warnings.push(error.to_string()),
            },
            Outcome::Refused(_) => {}
        }
        Ok(outcome)
    }

    fn nested(
        &self,
        target: &Target<'_>,
        patch: &Path,
        warnings: &mut Vec<String>,
    ) -> Result<Outcome> {
        let source = &target.repository.source;
        let _lock = lock::take(&self.git, self.base, &source.common_dir)?;
        let commits = match target.repository.kind {
            // The one around a submodule decides which commit it stands at.
            Kind::Submodule | Kind::Root => false,
            Kind::Nested => source.current_head(&self.git)?.is_some(),
        };
        if !commits {
            return patch::apply(target, patch, warnings);
        }
        let work = Work::Delta { message: &self.capture.message };
        let reason = format!("crew: {}", self.capture.id);
        match advance::run(target, &work, &reason, warnings)? {
            // The commits have it; the files may not.
            Outcome::AlreadyThere => patch::apply(target, patch, warnings),
            outcome @ (Outcome::Applied | Outcome::Refused(_)) => Ok(outcome),
        }
    }
}
