//! Brings commits onto the person's HEAD while their uncommitted work stays
//! (ISO-15, ISO-16).
//!
//! What `git stash`, `cherry-pick` and `stash pop` would do in the tree is
//! worked out beside it: first the commits, then for every file what the
//! person must see in the end. Only then the tree, the index and HEAD change,
//! as one (`swap`). So a conflict of any kind leaves all as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::bytes::shown_path;
use crate::commits::{self, Words};
use crate::detached;
use crate::error::Result;
use crate::patch::{Outcome, Target};
use crate::snapshot::View;
use crate::source::Source;
use crate::swap::head::{self, HeadMove};
use crate::swap::{Shape, Swap};
use crate::trees::{Entry, Trees};

/// Names in one reason.
const NAMED_MAX: usize = 5;

/// Files in a git directory that say that git is in the middle of something.
const UNDER_WAY: &[&str] =
    &["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer"];

/// What is to be brought onto HEAD.
pub(crate) enum Work<'a> {
    /// The commits after `base` up to `tip`, one by one.
    Commits { base: &'a str, tip: &'a str },
    /// The delta of the copy as one commit with this message.
    Delta { message: &'a str },
}

/// Brings it, or refuses and changes nothing.
pub(crate) fn run(
    target: &Target<'_>,
    work: &Work<'_>,
    reason: &str,
    warnings: &mut Vec<String>,
) -> Result<Outcome> {
    let folder = target.folder()?;
    let (git_dir, source) = (target.git_dir(), &target.repository.source);
    let digits = source.digits();
    let trees = Trees { git: target.git, git_dir: &git_dir, folder: &folder, digits };
    if UNDER_WAY.iter().any(|name| source.git_dir.join(name).exists()) {
        return Ok(refused("a merge or rebase is under way in the repository"));
    }
    let unmerged =
        source.call(&target.git, "read the index").args(&["ls-files", "-z", "-u"]).run()?;
    if !unmerged.out.is_empty() {
        return Ok(refused("the index has conflicts"));
    }
    let Some(head) = source.current_head(&target.git)? else {
        return Ok(refused("the repository has no commit"));
    };
    let new = match work {
        Work::Commits { base, tip } => pick(&trees, source, &head, base, tip)?,
        Work::Delta { message } => one_commit(target, &trees, &head, message)?,
    };
    let new = match new {
        Ok(new) => new,
        Err(outcome) => return Ok(outcome),
    };
    if new == head {
        return Ok(Outcome::AlreadyThere);
    }
    let advance = Advance { target, trees, source, folder: &folder, head: &head, new: &new };
    let planned = advance.plan(warnings)?;
    let steps = match planned {
        Ok(steps) => steps,
        Err(outcome) => return Ok(outcome),
    };
    commits::carry(&trees, source, &head, &new)?;
    let swap = advance.swap();
    let head_move = HeadMove {
        source: source.clone(),
        old: head.clone(),
        new: new.clone(),
        reason: reason.to_owned(),
        token: head::token(&folder),
    };
    let journal = swap.journal(&source.common_dir, target.keep(), steps, Some(head_move));
    match swap.run(&journal) {
        Ok(()) => Ok(Outcome::Applied),
        Err(refused) => {
            warnings.extend(refused.warnings);
            Ok(Outcome::Refused(refused.why))
        }
    }
}

fn refused(why: &str) -> Outcome {
    Outcome::Refused(why.to_owned())
}

/// Cherry-picks commits beside the tree; those that come to nothing are left
/// out (ISO-15).
fn pick(
    trees: &Trees<'_>,
    source: &Source,
    head: &str,
    base: &str,
    tip: &str,
) -> Result<Result<String, Outcome>> {
    let person = commits::person(trees, source)?;
    let range = format!("{base}..{tip}");
    let listed =
        trees.call("read the commits").args(&["rev-list", "--reverse"]).arg(range).run()?;
    let mut now = head.to_owned();
    let mut parent = base.to_owned();
    for commit in String::from_utf8_lossy(&listed.out).lines() {
        if parent == now {
            // Nothing came between: the commit itself fits.
            commit.clone_into(&mut now);
        } else {
            let tree = match merge(trees, &parent, &now, commit)? {
                Ok(tree) => tree,
                Err(outcome) => return Ok(Err(outcome)),
            };
            if tree != trees.of_commit(&now)? {
                now = commits::make(trees, &person, &tree, &now, &commits::words(trees, commit)?)?;
            }
        }
        commit.clone_into(&mut parent);
    }
    Ok(Ok(now))
}

/// The tree of `ours` with what `theirs` changed since `base`.
fn merge(
    trees: &Trees<'_>,
    base: &str,
    ours: &str,
    theirs: &str,
) -> Result<Result<String, Outcome>> {
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];
    let call = trees.call("merge the commits").args(&args).arg(format!("--merge-base={base}"));
    let merged = call.arg(ours).arg(theirs).end()?;
    let mut parts = crate::bytes::records(&merged.out);
    let tree = parts.next().map(|name| String::from_utf8_lossy(name).into_owned());
    match (merged.status.code(), tree) {
        (Some(0), Some(tree)) => Ok(Ok(tree)),
        (Some(1), Some(_)) => {
            let paths: BTreeSet<PathBuf> = parts.map(crate::bytes::path).collect();
            Ok(Err(Outcome::Refused(format!("conflict in {}", named(&paths)))))
        }
        // A git before 2.40 cannot do this.
        _ => {
            let (base, onto) = (trees.of_commit(base)?, trees.of_commit(ours)?);
            let laid = trees.lay(&base, &trees.of_commit(theirs)?, &onto, false)?;
            Ok(laid.ok_or_else(|| refused("the commits do not fit onto HEAD")))
        }
    }
}

/// The delta of the copy as one commit on top of HEAD (ISO-16).
fn one_commit(
    target: &Target<'_>,
    trees: &Trees<'_>,
    head: &str,
    message: &str,
) -> Result<Result<String, Outcome>> {
    let (repository, onto) = (target.repository, trees.of_commit(head)?);
    // Files may be taken whole only where the child started from this commit.
    let may_replace = repository.source.head.as_deref() == Some(head);
    let Some(tree) = trees.lay(&repository.baseline, target.tree, &onto, may_replace)? else {
        return Ok(Err(refused("the changes do not fit onto HEAD")));
    };
    if tree == onto {
        return Ok(Ok(head.to_owned()));
    }
    let person = commits::person(trees, &repository.source)?;
    let message = crate::bytes::shown(message.as_bytes()).into_bytes();
    let words = Words { author: None, message };
    commits::make(trees, &person, &tree, head, &words).map(Ok)
}

fn named(paths: &BTreeSet<PathBuf>) -> String {
    let mut names: Vec<String> =
        paths.iter().take(NAMED_MAX).map(|path| format!("`{}`", shown_path(path))).collect();
    if paths.len() > NAMED_MAX {
        names.push(format!("{} more", paths.len() - NAMED_MAX));
    }
    names.join(", ")
}

/// Paths that are to be files in a folder that is to be a file.
fn in_each_others_way(wanted: &BTreeMap<PathBuf, Option<Entry>>) -> Vec<PathBuf> {
    let is_file = |path: &Path| wanted.get(path).is_some_and(Option::is_some);
    let is_blocked = |path: &&PathBuf| is_file(path) && path.ancestors().skip(1).any(is_file);
    wanted.keys().filter(is_blocked).cloned().collect()
}

type Steps = Vec<(PathBuf, Shape, Shape)>;

struct Advance<'a> {
    target: &'a Target<'a>,
    trees: Trees<'a>,
    source: &'a Source,
    folder: &'a Path,
    head: &'a str,
    new: &'a str,
}

/// Everything that is known about the paths in question.
struct Sides {
    paths: BTreeSet<PathBuf>,
    /// HEAD now, HEAD then.
    head: BTreeMap<PathBuf, Entry>,
    new: BTreeMap<PathBuf, Entry>,
    /// The copy at its start and at its end.
    baseline: BTreeMap<PathBuf, Entry>,
    copy: BTreeMap<PathBuf, Entry>,
    /// The person's index and working tree.
    index: BTreeMap<PathBuf, Entry>,
    work: BTreeMap<PathBuf, Entry>,
    /// The working tree again, as files.
    olds: Vec<Shape>,
}

impl Advance<'_> {
    fn swap(&self) -> Swap<'_> {
        Swap { git: self.target.git, folder: self.folder, root: &self.source.root }
    }

    fn plan(&self, warnings: &mut Vec<String>) -> Result<Result<Steps, Outcome>> {
        let sides = match self.sides()? {
            Ok(sides) => sides,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let (mut wanted, mut open) = (BTreeMap::new(), BTreeSet::new());
        for path in &sides.paths {
            match self.wanted(&sides, path)? {
                Some(entry) => drop(wanted.insert(path.clone(), entry)),
                None => drop(open.insert(path.clone())),
            }
        }
        open.extend(in_each_others_way(&wanted));
        if !open.is_empty() {
            let why = format!("they meet changes in {} that are not committed", named(&open));
            return Ok(Err(Outcome::Refused(why)));
        }
        let coming = wanted.iter().map(|(path, entry)| (path.clone(), entry.clone()));
        self.trees.check_out(&self.source.root, coming, &self.folder.join("new"))?;
        self.write_index(&sides, &wanted, warnings)?;
        let swap = self.swap();
        let mut steps = Vec::new();
        for (path, old) in sides.paths.iter().zip(&sides.olds) {
            let (before, after) = (sides.work.get(path), wanted.get(path).and_then(Option::as_ref));
            let new = self.target.coming(&swap, path, old, before, after)?;
            steps.push((path.clone(), old.clone(), new));
        }
        Ok(Ok(steps))
    }

    /// Looks at all sides. The person's files are kept before they are looked
    /// at, so that an edit in between is noticed when they are changed.
    fn sides(&self) -> Result<Result<Sides, Outcome>> {
        let trees = &self.trees;
        let (head, new) = (trees.of_commit(self.head)?, trees.of_commit(self.new)?);
        let baseline = self.target.repository.baseline.as_str();
        let changes = [trees.changes(&head, &new)?, trees.changes(baseline, self.target.tree)?];
        let paths: BTreeSet<PathBuf> =
            changes.into_iter().flatten().map(|change| change.path).collect();
        let swap = self.swap();
        let mut olds = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let old = swap.keep_old(number, path, &paths)?;
            if old == Shape::Other {
                let why = format!("`{}` is a folder in the working tree", shown_path(path));
                return Ok(Err(Outcome::Refused(why)));
            }
            olds.push(old);
        }
        let seen = self.folder.join("index.seen");
        for index in [self.folder.join("index.old"), seen.clone()] {
            detached::copy_index(self.source, trees.git_dir, &index)?;
        }
        let index = trees.staged(&self.folder.join("index.old"), &paths)?;
        let list: Vec<PathBuf> = paths.iter().cloned().collect();
        let view = View {
            git: self.target.git,
            git_dir: trees.git_dir,
            index: &seen,
            tree: &self.source.root,
            apart: &[],
        };
        view.update(&list)?;
        let work = trees.staged(&seen, &paths)?;
        Ok(Ok(Sides {
            head: trees.entries(&head, &paths)?,
            new: trees.entries(&new, &paths)?,
            baseline: trees.entries(baseline, &paths)?,
            copy: trees.entries(self.target.tree, &paths)?,
            index,
            work,
            paths,
            olds,
        }))
    }

    /// What the person must have at a path in the end; `None` when that cannot
    /// be told.
    fn wanted(&self, sides: &Sides, path: &Path) -> Result<Option<Option<Entry>>> {
        let (head, new) = (sides.head.get(path), sides.new.get(path));
        let (baseline, copy) = (sides.baseline.get(path), sides.copy.get(path));
        let work = sides.work.get(path);
        // Where the commits say nothing the child undid work of the person, or
        // the person did the same.
        Ok(if head != new && work == head {
            Some(new.cloned())
        } else if head != new && work == new || work == copy || baseline == copy {
            Some(work.cloned())
        } else if work == baseline {
            Some(copy.cloned())
        } else {
            self.trees.merge_files(baseline, work, copy)?.map(Some)
        })
    }

    /// The index that the person gets: what was staged stays staged, on top of
    /// the new HEAD.
    fn write_index(
        &self,
        sides: &Sides,
        wanted: &BTreeMap<PathBuf, Option<Entry>>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let (old, index) = (self.folder.join("index.old"), self.folder.join("index.new"));
        detached::copy_if_there(&old, &index)?;
        let (mut entries, mut lost, mut made) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for path in &sides.paths {
            let (head, new) = (sides.head.get(path), sides.new.get(path));
            let staged = sides.index.get(path);
            if head == new || staged == new {
                continue;
            }
            let entry = match staged == head {
                true => new.cloned(),
                false => match self.trees.merge_files(head, staged, new)? {
                    Some(merged) => {
                        made.push(merged.object.clone());
                        Some(merged)
                    }
                    None => {
                        if wanted.get(path).and_then(Option::as_ref) != new {
                            lost.insert(path.clone());
                        }
                        new.cloned()
                    }
                },
            };
            entries.insert(path.clone(), entry);
        }
        if !lost.is_empty() {
            let names = named(&lost);
            warnings.push(format!("what was staged of {names} is in the working tree only now"));
        }
        commits::carry_objects(&self.trees, self.source, &made)?;
        if entries.is_empty() {
            return Ok(());
        }
        self.trees.set(&index, entries)
    }
}
