//! Finds the children of a session and the calls that spawned them.
//!
//! A child's file names its owner's file and nothing else; which call it belongs
//! to follows from its name, its first prompt and its time.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crew_base::time::Time;
use crew_task::artifact::folder_of;

use super::survey::{Spawn, Sum, Survey};
use super::view::Scanned;
use crate::error::Result;
use crate::session::scan::time_of;
use crate::{listing, paths};

/// The children of a session.
#[derive(Debug, Default)]
pub(super) struct Children {
    /// In the order of their creation.
    pub(super) list: Vec<Child>,
    by_call: HashMap<(usize, String), usize>,
    by_subagent: HashMap<String, usize>,
    by_task: HashMap<String, usize>,
}

/// One child.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) path: PathBuf,
    /// Its subagent id, when the spawn call is known.
    pub(super) subagent: Option<String>,
    /// Its brief, else its name, else its session id.
    pub(super) brief: String,
    /// The last status its owner was told, else the one it left itself.
    pub(super) outcome: Option<String>,
    pub(super) sum: Sum,
    created: Time,
}

impl Children {
    /// Looks for the children of a session, in `crew/` beside its file
    /// (`host.md` 12.4) and in its own folder, where those of `task` calls are
    /// (`task.md` OBS-4). Files that cannot be read are no children.
    pub(super) fn find(file: Option<&Path>, owner: &Survey) -> Result<Children> {
        let mut children = Children::default();
        let Some(file) = file else { return Ok(children) };
        let mut found: Vec<(Child, Facts)> =
            files(file).iter().filter_map(|path| child(path).ok()).collect();
        found.sort_by(|(a, _), (b, _)| (a.created, &a.path).cmp(&(b.created, &b.path)));
        let mut taken = vec![false; owner.spawns.len()];
        for (number, (mut child, facts)) in found.into_iter().enumerate() {
            if let Some(id) = task_id(&child.path, file) {
                child.brief.clone_from(&id);
                children.by_task.insert(id, number);
            } else if let Some(at) = spawn_of(&child, &facts, &owner.spawns, &taken) {
                taken[at] = true;
                let spawn = &owner.spawns[at];
                children.by_call.insert((spawn.place, spawn.call.clone()), number);
                child.brief.clone_from(&spawn.brief);
                if let Some(id) = &spawn.subagent {
                    children.by_subagent.insert(id.clone(), number);
                    child.subagent = Some(id.clone());
                    child.outcome = owner.outcomes.get(id).cloned().or(child.outcome);
                }
            }
            children.list.push(child);
        }
        Ok(children)
    }

    /// The child that a call spawned.
    pub(super) fn of_call(&self, place: usize, call: &str) -> Option<usize> {
        self.by_call.get(&(place, call.to_owned())).copied()
    }

    /// The child of a `task` call.
    pub(super) fn of_task(&self, id: &str) -> Option<usize> {
        self.by_task.get(id).copied()
    }

    /// The child that runs a subagent.
    pub(super) fn of_subagent(&self, id: &str) -> Option<usize> {
        self.by_subagent.get(id).copied()
    }
}

/// What tells a child's spawn call.
struct Facts {
    title: String,
    first_prompt: String,
}

fn files(owner: &Path) -> Vec<PathBuf> {
    let resolved = paths::resolved(owner);
    let is_owner =
        |parent: &str| Path::new(parent) == owner || paths::resolved(Path::new(parent)) == resolved;
    let folders = [paths::child_folder(Some(owner), Path::new("")), own_folder(owner)];
    let items = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    items
        .filter_map(|item| item.ok())
        .map(|item| item.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.is_file()))
        .filter(|path| {
            let header = listing::header(path);
            header.and_then(|header| header.parent_session).is_some_and(|parent| is_owner(&parent))
        })
        .collect()
}

fn own_folder(owner: &Path) -> PathBuf {
    PathBuf::from(folder_of(&owner.to_string_lossy()))
}

/// The id of a child of `task`: its file's name in its owner's own folder.
fn task_id(path: &Path, owner: &Path) -> Option<String> {
    let is_inside = path.parent() == Some(own_folder(owner).as_path());
    let stem = path.file_stem().filter(|_| is_inside)?;
    Some(stem.to_string_lossy().into_owned())
}

fn child(path: &Path) -> Result<(Child, Facts)> {
    let scanned = Scanned::open(path)?;
    let mut view = scanned.view()?;
    let all = vec![true; view.index.entries().len()];
    let survey = Survey::of(&mut view, &all)?;
    let title = view.index.name().unwrap_or_default().to_owned();
    let brief = if title.is_empty() { view.header.id.as_str() } else { &title };
    let child = Child {
        path: path.to_owned(),
        subagent: None,
        brief: brief.to_owned(),
        outcome: survey.ending,
        sum: survey.own,
        created: time_of(&view.header.timestamp),
    };
    Ok((child, Facts { title, first_prompt: survey.first_prompt.unwrap_or_default() }))
}

/// The call a child comes from: of those that fit and have no child yet, the
/// last one made before the child was. A call whose child never got a file is
/// passed over so when it was repeated.
fn spawn_of(child: &Child, facts: &Facts, spawns: &[Spawn], taken: &[bool]) -> Option<usize> {
    let fits = |at: &usize| {
        let spawn = &spawns[*at];
        !taken[*at]
            && spawn.title == facts.title
            && spawn.time <= child.created
            && facts.first_prompt.starts_with(&spawn.opening)
    };
    // Backwards, since of equal ones `max_by_key` takes the last.
    (0..spawns.len()).rev().filter(fits).max_by_key(|at| spawns[*at].time)
}
