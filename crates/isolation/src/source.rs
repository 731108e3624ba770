//! The repositories of a person: where they are and where they stand.
//!
//! Only reads. A nested repository is one that is neither tracked nor a
//! submodule; submodules that are checked out are found too, since a child can
//! change files there as well. Read `snapshot` for what is taken from them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bytes;
use crate::error::{Error, Result, io_error};
use crate::git::{Call, Git};

/// Repositories of one copy; what lies in further ones is not taken along.
const REPOSITORIES_MAX: usize = 100;
/// Ignored folders that are looked into for repositories.
const FOLDERS_MAX: usize = 100_000;
/// Installed packages; a repository in there is nobody's work.
const NOT_SEARCHED: &str = "node_modules";

/// A repository of the person and where it stood when it was copied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Top folder of the working tree.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) root: PathBuf,
    /// Its own git directory.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) git_dir: PathBuf,
    /// The git directory that all its work trees share; names the repository.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) common_dir: PathBuf,
    /// Where its objects are.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) objects: PathBuf,
    /// `sha1` or `sha256`.
    pub(crate) format: String,
    /// The commit of HEAD; `None` before the first commit.
    pub(crate) head: Option<String>,
    /// The branch that HEAD names; `None` when it is detached.
    pub(crate) branch: Option<String>,
}

/// A repository of a copy: the working tree that was asked for, or one in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Repository {
    /// Its folder in the copy, relative to the top; empty for the first.
    #[serde(with = "bytes::as_numbers")]
    pub(crate) place: PathBuf,
    pub(crate) source: Source,
    pub(crate) kind: Kind,
    /// The synthetic tree of the start (ISO-7); empty until it is taken.
    pub(crate) baseline: String,
}

/// How a repository belongs to the working tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// It is the working tree.
    Root,
    /// Neither tracked nor a submodule.
    Nested,
    /// Tracked by the one around it.
    Submodule,
}

impl Source {
    /// The repository that holds `dir` (ISO-2).
    pub(crate) fn find(git: &Git<'_>, dir: &Path) -> Result<Source> {
        let ask = |args: &[&str]| git.call("find the repository", dir).args(args).end();
        let top = ask(&["rev-parse", "--show-toplevel"])?;
        if !top.status.success() || top.out.is_empty() {
            let path = dir.to_owned();
            return match top.said.contains("not a git repository") || top.said.contains("work tree")
            {
                true => Err(Error::NotARepository { path }),
                false => Err(Error::Git { action: "find the repository", said: top.said }),
            };
        }
        let root = bytes::path(bytes::line(&top.out));
        let [git_dir, common_dir, objects, format] = places(git, &root)?;
        let mut source = Source {
            git_dir: root.join(git_dir),
            common_dir: root.join(common_dir),
            objects: root.join(objects),
            root,
            format: bytes::shown(bytes::of(&format)),
            head: None,
            branch: None,
        };
        source.head = source.current_head(git)?;
        let branch =
            source.call(git, "read HEAD").args(&["symbolic-ref", "--quiet", "HEAD"]).end()?;
        source.branch = branch.status.success().then(|| branch.line());
        Ok(source)
    }

    /// A call in the working tree, on the person's own git directory.
    pub(crate) fn call<'a>(&self, git: &Git<'a>, action: &'static str) -> Call<'a> {
        git.call(action, &self.root).git_dir(&self.git_dir).work_tree(&self.root)
    }

    /// The commit of HEAD now.
    pub(crate) fn current_head(&self, git: &Git<'_>) -> Result<Option<String>> {
        let call = self.call(git, "read HEAD");
        let head = call.args(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).end()?;
        Ok(head.status.success().then(|| head.line()))
    }

    /// Digits of an object's name.
    pub(crate) fn digits(&self) -> usize {
        if self.format == "sha256" { 64 } else { 40 }
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }
}

/// Asks for the git directory, the shared one, the objects and the format.
fn places(git: &Git<'_>, root: &Path) -> Result<[PathBuf; 4]> {
    const ASKED: [&[&str]; 4] = [
        &["--absolute-git-dir"],
        &["--git-common-dir"],
        &["--git-path", "objects"],
        &["--show-object-format"],
    ];
    let ask =
        |args: &[&str]| git.call("find the repository", root).arg("rev-parse").args(args).run();
    let all = ask(&ASKED.concat())?;
    let lines: Vec<PathBuf> =
        bytes::line(&all.out).split(|byte| *byte == b'\n').map(bytes::path).collect();
    match <[PathBuf; 4]>::try_from(lines) {
        Ok(places) => Ok(places),
        // A line feed in one of them: each is asked for alone.
        Err(_) => {
            let mut places = <[PathBuf; 4]>::default();
            for (place, args) in places.iter_mut().zip(ASKED) {
                *place = bytes::path(bytes::line(&ask(args)?.out));
            }
            Ok(places)
        }
    }
}

/// All repositories of a working tree, outer ones first, and the places of
/// those that are left out. Nothing at or below `apart` is looked at.
pub(crate) fn all(
    git: &Git<'_>,
    root: Source,
    apart: &Path,
    warnings: &mut Vec<String>,
) -> Result<(Vec<Repository>, Vec<PathBuf>)> {
    let mut left_out = Vec::new();
    let first = Repository {
        place: PathBuf::new(),
        source: root,
        kind: Kind::Root,
        baseline: String::new(),
    };
    let mut found = vec![first];
    let mut at = 0;
    while at < found.len() {
        let (place, root) = (found[at].place.clone(), found[at].source.root.clone());
        for (inner, kind) in inside(git, &found[at].source)? {
            let dir = root.join(&inner);
            if dir.starts_with(apart) {
                continue;
            }
            let inner = place.join(inner);
            let why = match Source::find(git, &dir) {
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                // A folder that only looks like one is a folder like others.
                Err(Error::NotARepository { .. }) => continue,
                Ok(source) if !is_root(&source, &dir) => continue,
                Ok(source) if found.len() < REPOSITORIES_MAX => {
                    let source = Source { root: dir, ..source };
                    found.push(Repository { place: inner, source, kind, baseline: String::new() });
                    continue;
                }
                Ok(_) => "there are too many".to_owned(),
                Err(error) => error.to_string(),
            };
            let shown = bytes::shown_path(&inner);
            warnings.push(format!("the repository `{shown}` was not taken along: {why}"));
            left_out.push(inner);
        }
        at += 1;
    }
    Ok((found, left_out))
}

/// Whether a folder is the top of the working tree that was found from it.
fn is_root(source: &Source, dir: &Path) -> bool {
    fs::canonicalize(dir).ok() == fs::canonicalize(&source.root).ok()
}

/// Repositories directly in a repository, relative to its root.
fn inside(git: &Git<'_>, source: &Source) -> Result<Vec<(PathBuf, Kind)>> {
    let list = |args: &[&str]| source.call(git, "list the files").args(args).run();
    let mut found = Vec::new();
    let tracked = list(&["ls-files", "-z", "--stage"])?;
    for place in links(&tracked.out) {
        if fs::symlink_metadata(source.root.join(&place).join(".git")).is_ok() {
            found.push((place, Kind::Submodule));
        }
    }
    let others = list(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    let folder = |record: &[u8]| record.strip_suffix(b"/").map(bytes::path);
    found.extend(bytes::records(&others.out).filter_map(folder).map(|at| (at, Kind::Nested)));
    let ignored =
        list(&["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"])?;
    let mut folders: Vec<PathBuf> = bytes::records(&ignored.out).filter_map(folder).collect();
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        let dir = source.root.join(&folder);
        if fs::symlink_metadata(dir.join(".git")).is_ok() {
            found.push((folder, Kind::Nested));
            continue;
        }
        looked_at += 1;
        let is_left_out = folder.file_name().is_some_and(|name| name == NOT_SEARCHED);
        if is_left_out || looked_at > FOLDERS_MAX {
            continue;
        }
        git.check()?;
        // What cannot be read holds no repository that could be copied.
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let folders_in = entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        folders.extend(folders_in.map(|entry| folder.join(entry.file_name())));
    }
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    Ok(found)
}

/// Paths of the submodules in the output of `ls-files --stage -z`.
pub(crate) fn links(stage: &[u8]) -> BTreeSet<PathBuf> {
    let link = |record: &[u8]| {
        let at = record.iter().position(|byte| *byte == b'\t')?;
        record.starts_with(b"160000 ").then(|| bytes::path(&record[at + 1..]))
    };
    bytes::records(stage).filter_map(link).collect()
}

/// Makes a folder that only its owner may enter, ancestors included
/// (`product.md` P-14a).
pub(crate) fn make_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(io_error("create", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io_error("create", path))
}
