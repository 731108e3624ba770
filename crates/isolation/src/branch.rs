//! The branch of a child (ISO-9 to ISO-11): its own commits as they are, or
//! written anew without what the person had not committed.
//!
//! All commits are made in our git directory; the person's repository gets the
//! objects and one new ref, in this order.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crew_task::isolation::{Branch, branch_name};

use crate::bytes;
use crate::commits::{self, Person, Words};
use crate::detached;
use crate::error::{Error, Result, io_error};
use crate::patch::Target;
use crate::trees::{Entry, Trees};

/// Branches of earlier children with the same id.
const SAME_NAME_MAX: u32 = 100;

/// A branch that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) branch: Branch,
    /// Its last commit.
    pub(crate) tip: String,
}

/// Makes the branch; `None` when nothing is left of the changes as commits.
pub(crate) fn make(
    target: &Target<'_>,
    base: &str,
    id: &str,
    message: &str,
) -> Result<Option<Made>> {
    let folder = fresh_folder(target)?;
    let git_dir = target.git_dir();
    let (trees, source) = (trees(target, &git_dir, &folder), &target.repository.source);
    let person = commits::person(&trees, source)?;
    let Line { mut tip, tree, left_over } = Line::of(target, &trees, base, &person)?;
    if left_over != tree {
        let message = bytes::shown(message.as_bytes()).into_bytes();
        let words = Words { author: None, message };
        tip = commits::make(&trees, &person, &left_over, &tip, &words)?;
    }
    if tip == base {
        return Ok(None);
    }
    commits::carry(&trees, source, base, &tip)?;
    let name = publish(target, id, &tip)?;
    let branch = Branch { name, base: base.to_owned(), is_kept: true };
    Ok(Some(Made { branch, tip }))
}

/// The start, at most `bytes_max` long, of the difference that [`make`] would
/// commit itself; `None` when the child committed everything. Changes nothing
/// of the person's.
pub(crate) fn describe(
    target: &Target<'_>,
    base: &str,
    bytes_max: usize,
) -> Result<Option<String>> {
    let folder = fresh_folder(target)?;
    let git_dir = target.git_dir();
    let trees = trees(target, &git_dir, &folder);
    let person = commits::person(&trees, &target.repository.source)?;
    let Line { tree, left_over, .. } = Line::of(target, &trees, base, &person)?;
    if left_over == tree {
        return Ok(None);
    }
    let path = folder.join("description");
    let (mut text, mut file) = (Vec::new(), trees.write_diff(&tree, &left_over, &path)?);
    let read = file.by_ref().take(bytes_max as u64).read_to_end(&mut text);
    read.map_err(io_error("read", &path))?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn fresh_folder(target: &Target<'_>) -> Result<PathBuf> {
    let folder = target.slot.dir.join("branch");
    crate::slot::remove_all(&folder).map_err(io_error("remove", &folder))?;
    std::fs::create_dir_all(&folder).map_err(io_error("create", &folder))?;
    Ok(folder)
}

fn trees<'a>(target: &Target<'a>, git_dir: &'a Path, folder: &'a Path) -> Trees<'a> {
    Trees { git: target.git, git_dir, folder, digits: target.repository.source.digits() }
}

/// The commits of a child as they will stand on the branch.
struct Line {
    /// The last of them, or the base.
    tip: String,
    /// Its tree.
    tree: String,
    /// The tree with everything the child changed.
    left_over: String,
}

impl Line {
    fn of(target: &Target<'_>, trees: &Trees<'_>, base: &str, person: &Person) -> Result<Line> {
        let base_tree = trees.of_commit(base)?;
        let baseline = target.repository.baseline.as_str();
        let anew = |tree: &str| -> Result<String> {
            let laid = trees.lay(baseline, tree, &base_tree, true)?;
            // With the permission to replace it always fits.
            Ok(laid.unwrap_or_else(|| tree.to_owned()))
        };
        let mut tip = base.to_owned();
        let mut tip_tree = base_tree.clone();
        let history = History::of(target, trees, base)?;
        if history.is_plain && baseline == base_tree {
            if let Some(last) = history.commits.last() {
                tip.clone_from(last);
                tip_tree = trees.of_commit(last)?;
            }
        } else {
            for commit in &history.commits {
                let tree = anew(&trees.of_commit(commit)?)?;
                if tree != tip_tree {
                    let words = commits::words(trees, commit)?;
                    tip = commits::make(trees, person, &tree, &tip, &words)?;
                    tip_tree = tree;
                }
            }
        }
        let left_over = with_links(trees, &anew(target.tree)?, &tip_tree)?;
        Ok(Line { tip, tree: tip_tree, left_over })
    }
}

/// Submodules stay where the child's commits put them: our trees know only the
/// start.
fn with_links(trees: &Trees<'_>, tree: &str, like: &str) -> Result<String> {
    let links = trees.links(like)?;
    if links == trees.links(tree)? {
        return Ok(tree.to_owned());
    }
    let there: BTreeMap<_, Option<Entry>> =
        links.into_iter().map(|(path, entry)| (path, Some(entry))).collect();
    trees.with(tree, there)
}

/// What the child committed on top of the base.
struct History {
    /// Oldest first, along the first parents.
    commits: Vec<String>,
    /// One line without merges.
    is_plain: bool,
}

impl History {
    fn of(target: &Target<'_>, trees: &Trees<'_>, base: &str) -> Result<History> {
        let none = History { commits: Vec::new(), is_plain: true };
        let place = target.slot.tree().join(&target.repository.place);
        let child = place.join(".git");
        if !child.join("objects").is_dir() {
            return Ok(none);
        }
        let objects = child.join("objects");
        detached::borrow(trees.git_dir, &[&target.repository.source.objects, &objects])?;
        let asked = target.git.call("read the commits", &place).git_dir(&child);
        let head = asked.args(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).end()?;
        let head = head.status.success().then(|| head.line());
        let Some(head) = head.filter(|head| head != base) else { return Ok(none) };
        let call = trees.call("read the commits");
        let grown = call.args(&["merge-base", "--is-ancestor", base, &head]).end()?;
        if !grown.status.success() {
            return Ok(none);
        }
        let range = format!("{base}..{head}");
        let list = |args: &[&str]| -> Result<Vec<String>> {
            let call = trees.call("read the commits").arg("rev-list").args(args).arg(&range);
            let listed = call.run()?;
            Ok(String::from_utf8_lossy(&listed.out).lines().map(str::to_owned).collect())
        };
        let commits = list(&["--reverse", "--first-parent"])?;
        let is_plain = list(&["--min-parents=2"])?.is_empty();
        Ok(History { commits, is_plain })
    }
}

/// Makes the ref; a name that is taken gets a number.
fn publish(target: &Target<'_>, id: &str, tip: &str) -> Result<String> {
    let source = &target.repository.source;
    let zero = "0".repeat(source.digits());
    let mut last = None;
    for number in 1..=SAME_NAME_MAX {
        let stem = branch_name(id);
        let name = if number == 1 { stem } else { format!("{stem}-{number}") };
        let full = format!("refs/heads/{name}");
        let call = source.call(&target.git, "look for the branch");
        let there = call.args(&["show-ref", "--verify", "--quiet", &full]).end()?;
        if there.status.success() {
            continue;
        }
        let call = source.call(&target.git.certain(), "make the branch");
        match call.args(&["update-ref", &full, tip, &zero]).run() {
            Ok(_) => return Ok(name),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    let said = "there are too many branches of that name".to_owned();
    Err(last.unwrap_or(Error::Git { action: "make the branch", said }))
}

/// Deletes the branch if it still is what was made.
pub(crate) fn delete(target: &Target<'_>, made: &Made) -> Result<()> {
    let full = format!("refs/heads/{}", made.branch.name);
    let call = target.repository.source.call(&target.git.certain(), "delete the branch");
    call.args(&["update-ref", "-d", &full, &made.tip]).run().map(drop)
}
