//! Isolated children: plans and outcomes as data (`task.md` 10).
//!
//! Owns names, conditions and texts. Must never run git: a [`Plan`] goes out,
//! a [`Prepared`] or an [`Integration`] comes back.

use crew_base::id::SessionId;

use crate::record::Record;
use crate::settings::{Backend, Isolation, Merge};

/// A copy that is to be made (ISO-2 to ISO-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The child that will work in it.
    pub child: SessionId,
    /// Id of the child, part of the slot's name and of the owner mark.
    pub id: String,
    /// Session whose working directory is copied.
    pub parent: SessionId,
    /// Preferred way; others are tried when it does not work.
    pub backend: Backend,
}

/// A copy that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Working directory of the child in the copy.
    pub cwd: String,
    /// Names the copy and its baseline for capture and removal.
    pub handle: u64,
}

/// What is to be captured and brought back (ISO-6 to ISO-16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The copy.
    pub handle: u64,
    /// Id of the child.
    pub id: String,
    /// Where patch files go.
    pub folder: String,
    /// As a patch or as commits.
    pub merge: Merge,
    /// Bring it back at all.
    pub apply: bool,
    /// Commit message (ISO-9).
    pub message: String,
    /// A message is to be generated from the diff before (branch mode).
    pub generated_message: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integration {
    /// The copy differs from its baseline outside nested repositories.
    pub has_root_changes: bool,
    /// Root patch file (ISO-8).
    pub patch: Option<String>,
    /// Branch with the commits, and the commit it starts at (ISO-9).
    pub branch: Option<Branch>,
    /// Patch files of nested repositories.
    pub nested: Vec<String>,
    /// How bringing back ended.
    pub merged: Merged,
    /// Problems that lost nothing, for instance a stash that was not restored.
    pub warnings: Vec<String>,
    /// Capturing failed; says where the work is kept (ISO-11, ISO-12).
    pub error: Option<String>,
}

/// A branch of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// `crew/task/<id>`.
    pub name: String,
    /// Commit it starts at.
    pub base: String,
    /// It still exists.
    pub is_kept: bool,
}

/// How bringing back ended (ISO-13 to ISO-18).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Merged {
    /// It was not tried.
    #[default]
    Skipped,
    /// There was nothing to bring back.
    Nothing,
    /// It stands in the parent's tree.
    Applied,
    /// The parent had it already (ISO-14).
    AlreadyThere,
    /// It does not fit; nothing was changed.
    Conflict(String),
}

impl Integration {
    /// `changesApplied`: in the tree, tried and failed, or not tried (ISO-17).
    pub fn changes_applied(&self) -> Option<bool> {
        match self.merged {
            Merged::Skipped => None,
            Merged::Nothing | Merged::Applied | Merged::AlreadyThere => Some(true),
            Merged::Conflict(_) => Some(false),
        }
    }

    /// Whether files must survive the call (ART-10).
    pub fn needs_files(&self) -> bool {
        self.error.is_some() || self.changes_applied() != Some(true) || !self.warnings.is_empty()
    }

    /// The merge summary; names everything that is kept (ISO-17, ISO-18).
    pub fn summary(&self) -> String {
        let mut lines = vec![match &self.merged {
            Merged::Skipped if self.error.is_some() => {
                "The changes were not brought back.".to_owned()
            }
            Merged::Skipped => "Nothing was applied: applying is switched off.".to_owned(),
            Merged::Nothing => "The child changed nothing that is to be applied.".to_owned(),
            Merged::Applied => "The changes were applied.".to_owned(),
            Merged::AlreadyThere => "The changes were there already; nothing to do.".to_owned(),
            Merged::Conflict(why) => {
                format!("The changes do not fit and nothing was applied: {why}")
            }
        }];
        lines.extend(self.error.clone());
        let is_done = self.changes_applied() == Some(true);
        if !is_done {
            lines.extend(self.patch.iter().map(|path| format!("Patch: {path}")));
        }
        let kept = self.branch.iter().filter(|branch| branch.is_kept);
        lines.extend(kept.map(|branch| format!("Branch: {}", branch.name)));
        if !is_done || !self.warnings.is_empty() {
            lines.extend(self.nested.iter().map(|path| format!("Nested patch: {path}")));
        }
        lines.extend(self.warnings.iter().map(|warning| format!("Warning: {warning}")));
        lines.join("\n")
    }
}

/// Whether changes are captured at all (ISO-6).
pub fn is_captured(record: &Record) -> bool {
    record.exit_code == 0 && !record.aborted
}

/// The plan for bringing a finished child's changes back. A name is no label
/// (1.2, TASK-SPAWN-22), and nothing else gives one, so the id is the message.
pub fn capture(settings: &Isolation, prepared: &Prepared, folder: &str, id: &str) -> Capture {
    Capture {
        handle: prepared.handle,
        id: id.to_owned(),
        folder: folder.to_owned(),
        merge: settings.merge,
        apply: settings.apply,
        message: id.to_owned(),
        generated_message: settings.generated_messages,
    }
}

/// Name of the root patch file (ISO-8).
pub fn patch_name(id: &str) -> String {
    format!("{id}.patch")
}

/// Name of the patch file of the `number`th nested repository, from 1.
pub fn nested_patch_name(id: &str, number: usize, path: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let path: String = path.chars().map(|c| if is_good(c) { c } else { '-' }).collect();
    format!("{id}.nested-{number}-{path}.patch")
}

/// Name of the branch (OBS-13).
pub fn branch_name(id: &str) -> String {
    format!("crew/task/{id}")
}

/// What the child is told about its place (SESS-7 item 4).
pub fn boundary(cwd: &str) -> String {
    format!(
        "You work in your own copy of the repository: {cwd}. Touch nothing outside of it; what you \
         change there is brought back when you are done."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(merged: Merged) -> Integration {
        let patch = Some("/s/X/kid.patch".to_owned());
        Integration { has_root_changes: true, patch, merged, ..Integration::default() }
    }

    // ISO-14, ISO-17, ISO-18, OP-7; task.md 12 rows 78, 79.
    #[test]
    fn every_outcome_says_what_was_done_and_what_is_kept() {
        let check =
            |integration: Integration, applied: Option<bool>, words: &[&str], kept: bool| {
                let summary = integration.summary();
                assert_eq!(integration.changes_applied(), applied);
                for word in words {
                    assert!(summary.contains(word), "{summary} lacks {word}");
                }
                assert_eq!(integration.needs_files(), kept, "{summary}");
                assert_eq!(summary.contains("kid.patch"), kept, "{summary}");
            };
        check(with(Merged::Applied), Some(true), &["applied"], false);
        check(with(Merged::Nothing), Some(true), &["nothing"], false);
        check(with(Merged::AlreadyThere), Some(true), &["already"], false);
        check(with(Merged::Conflict("a.txt".into())), Some(false), &["a.txt"], true);
        check(with(Merged::Skipped), None, &["switched off"], true);
    }

    #[test]
    fn kept_branches_and_nested_patches_are_named() {
        let branch = Branch { name: branch_name("kid"), base: "0".into(), is_kept: true };
        let integration = Integration {
            branch: Some(branch),
            nested: vec![nested_patch_name("kid", 1, "vendor/lib")],
            warnings: vec!["the stash stayed".into()],
            ..with(Merged::Applied)
        };
        let summary = integration.summary();
        for word in ["crew/task/kid", "kid.nested-1-vendor-lib.patch", "the stash stayed"] {
            assert!(summary.contains(word), "{summary} lacks {word}");
        }
        assert!(integration.needs_files());
    }
}
