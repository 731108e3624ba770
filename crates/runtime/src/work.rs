//! Work for the `task` tool: every piece ends in the event that it names, also
//! when it panics or is dropped (`style.md` 3).
//!
//! Owns the temporary artifact folders and the order in which results are
//! looked up. Must never decide what becomes of a call. Read `work::ending`
//! for how an ending is made certain.

pub(crate) mod copies;
mod ending;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::id::{RunId, SessionId};
use crew_base::message::ToolCall;
use crew_engine::api::task::{Approval, Policy, Setup, TASK_TOOL, address, artifact, isolation};
use crew_engine::{Event, TaskWork};
use crew_store::artifacts;
use crew_tools::{Background, BackgroundOutcome};

use crate::approvals::Asked;
use crate::causes::with_causes;
use crate::run::{Input, Live, Loop, Role};
use ending::Ending;

/// Why a piece of work has no result of its own.
const BROKEN: &str = "an internal failure ended it";

impl Loop {
    pub(crate) fn task_work(&mut self, work: TaskWork) {
        match work {
            TaskWork::ReadSetup { run, session } => self.read_setup(run, &session),
            TaskWork::Ask { session, run, tool, view } => {
                self.ask_person(session, run, Asked::Engine(tool), view);
            }
            TaskWork::Lease { run, folder, .. } => self.lease(run, folder),
            TaskWork::Isolate(plan) => self.isolate(plan),
            TaskWork::StartJob { session, job, command } => self.start_job(session, job, command),
            TaskWork::WriteArtifact { session, write } => self.write_artifact(session, write),
            TaskWork::Describe { session, handle } => self.describe(session, handle),
            TaskWork::Integrate { session, capture } => self.integrate(session, capture),
            TaskWork::Discard { handle } => self.discard(handle),
            TaskWork::EndLease { folder } => self.end_lease(&PathBuf::from(folder)),
        }
    }

    fn read_setup(&mut self, run: RunId, session: &SessionId) {
        let event = move |setup: Setup| Event::TaskSetup { run, setup: Arc::new(setup) };
        let mut ending = Ending::new(&self.inputs, event(refusing()));
        let live = self.sessions.get(session);
        let Some((scope, is_child)) =
            live.and_then(|live| Some((live.scope.clone()?, live.is_child())))
        else {
            return;
        };
        let workspace = Arc::clone(&self.workspace);
        self.tracker.spawn_blocking(move || {
            let (setup, warnings) = workspace.setup(&scope, is_child);
            warnings.into_iter().for_each(|warning| ending.warn(warning));
            ending.send(event(setup));
        });
    }

    fn lease(&mut self, run: RunId, folder: Option<String>) {
        let event = move |lease| Event::TaskLeased { run, lease };
        let ending = Ending::new(&self.inputs, event(Err(BROKEN.to_owned())));
        let workspace = Arc::clone(&self.workspace);
        self.tracker.spawn_blocking(move || {
            let lease = artifacts::lease(folder.as_deref().map(Path::new), workspace.tmp());
            ending.send(event(lease.map_err(|error| with_causes(&error))));
        });
    }

    /// A temporary folder counts for addresses before anything is in it.
    pub(crate) fn note_lease(&mut self, event: &Event) {
        if let Event::TaskLeased { lease: Ok(lease), .. } = event
            && lease.is_temporary
        {
            self.leases.insert(PathBuf::from(&lease.folder));
        }
    }

    /// Only a folder that this host made is deleted.
    fn end_lease(&mut self, folder: &Path) {
        if !self.leases.remove(folder) {
            return;
        }
        let (folder, inputs) = (folder.to_owned(), self.inputs.clone());
        self.tracker.spawn_blocking(move || {
            if let Err(error) = artifacts::end_lease(&folder) {
                let _ = inputs.send(Input::Warning(with_causes(&error)));
            }
        });
    }

    fn isolate(&mut self, plan: isolation::Plan) {
        let child = plan.child.clone();
        let event = move |result| Event::TaskIsolated { session: child, result };
        let mut ending = Ending::new(&self.inputs, event.clone()(Err(BROKEN.to_owned())));
        let live = self.sessions.get(&plan.parent);
        let Some((scope, cancel)) =
            live.and_then(|live| Some((live.scope.clone()?, live.cancel.clone())))
        else {
            ending.otherwise(event(Err("the calling session is no longer open".to_owned())));
            return;
        };
        let (workspace, isolated) = (Arc::clone(&self.workspace), self.isolated.clone());
        let marker = self.host.marker().to_owned();
        self.tracker.spawn_blocking(move || {
            let place = workspace.copies_place(&scope, marker);
            let result = isolated.prepare(place, &plan, &scope.cwd, &|| cancel.is_cancelled());
            let result = result.map(|(prepared, warnings)| {
                warnings.into_iter().for_each(|warning| ending.warn(warning));
                prepared
            });
            ending.send(event(result));
        });
    }

    fn describe(&mut self, session: SessionId, handle: u64) {
        let event = move |diff| Event::TaskDescribed { session, diff };
        let mut ending = Ending::new(&self.inputs, event.clone()(Err(BROKEN.to_owned())));
        let (isolated, cancel) = (self.isolated.clone(), self.cancel.clone());
        self.tracker.spawn_blocking(move || {
            let diff = isolated.describe(handle, &|| cancel.is_cancelled());
            if let Err(error) = &diff
                && !cancel.is_cancelled()
            {
                ending.warn(format!("no commit message could be generated: {error}"));
            }
            ending.send(event(diff));
        });
    }

    /// Goes on while everything else is being ended: what a child made is not
    /// to be lost by a quit.
    fn integrate(&mut self, session: SessionId, capture: isolation::Capture) {
        let event = move |result| Event::TaskIntegrated { session, result };
        let ending = Ending::new(&self.inputs, event.clone()(Err(BROKEN.to_owned())));
        let (isolated, abandon) = (self.isolated.clone(), self.abandon.clone());
        self.tracker.spawn_blocking(move || {
            let result = isolated.integrate(&capture, &|| abandon.is_cancelled());
            ending.send(event(result));
        });
    }

    fn discard(&mut self, handle: u64) {
        let (isolated, inputs) = (self.isolated.clone(), self.inputs.clone());
        self.tracker.spawn_blocking(move || {
            if let Err(error) = isolated.discard(handle) {
                let _ = inputs.send(Input::Warning(error));
            }
        });
    }

    fn start_job(&mut self, session: SessionId, job: String, command: String) {
        let event = {
            let (session, job) = (session.clone(), job.clone());
            move |outcome: BackgroundOutcome| Event::JobEnded {
                session,
                job,
                exit_code: outcome.exit_code,
                output: outcome.output,
            }
        };
        let unknown = |why: &str| BackgroundOutcome { exit_code: None, output: why.to_owned() };
        let mut ending = Ending::new(&self.inputs, event.clone()(unknown(BROKEN)));
        let live = self.sessions.get(&session).filter(|live| live.failed.is_none());
        let Some((live, scope)) = live.and_then(|live| Some((live, live.scope.clone()?))) else {
            ending.otherwise(event(unknown("the command did not run: its session is closed")));
            return;
        };
        let file = live.file();
        let background = Background {
            cwd: scope.cwd.clone(),
            env: self.command_env(&scope, &session, file.as_deref()),
            shell: self.workspace.shell(),
            cancel: live.cancel.child_token(),
            session,
            command,
        };
        let (host, working) = (Arc::clone(&self.host), live.work.token());
        self.tracker.spawn(async move {
            let _working = working;
            ending.send(event(host.run_background(background).await));
        });
    }

    fn write_artifact(&mut self, session: SessionId, write: artifact::Write) {
        let event = move |path| Event::ArtifactWritten { session, path };
        let mut ending = Ending::new(&self.inputs, event.clone()(Err(BROKEN.to_owned())));
        self.tracker.spawn_blocking(move || {
            let path = match artifacts::write(&write) {
                Ok(written) => {
                    written.problems.iter().for_each(|problem| ending.warn(with_causes(problem)));
                    Ok(written.path)
                }
                Err(error) => {
                    ending.warn(with_causes(&error));
                    Err(with_causes(&error))
                }
            };
            ending.send(event(path));
        });
    }

    /// Folders in which a call looks results up: those of its own tree from the
    /// top, those of all other sessions, temporary ones (`task.md` ART-9).
    /// None for a call that asks for no address.
    pub(crate) fn results(&self, session: &SessionId, call: &ToolCall) -> Vec<PathBuf> {
        if call.name != "read" || !call.arguments.text().contains(ADDRESS_START) {
            return Vec::new();
        }
        let mut line = Vec::new();
        let mut at = self.sessions.get(session);
        while let Some(live) = at {
            line.push(live);
            at = match &live.role {
                Role::Owner | Role::Crew => None,
                Role::Task(parent) => self.sessions.get(parent),
            };
        }
        let mut others: Vec<_> = self.sessions.iter().collect();
        others.sort_by_key(|(id, _)| *id);
        let lives = line.into_iter().rev().chain(others.into_iter().map(|(_, live)| live));
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in lives.flat_map(folders_of).chain(self.leases.iter().cloned()) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }
}

/// How an address begins, in JSON with or without escaped slashes.
const ADDRESS_START: &str = address::SCHEME.split_at("agent:".len()).0;

/// The folder that a session shares with its siblings, and its own one.
fn folders_of(live: &Live) -> impl Iterator<Item = PathBuf> {
    let file = live.file();
    let shared = match &live.role {
        Role::Owner | Role::Crew => None,
        Role::Task(_) => file.as_ref().and_then(|file| file.parent()).map(PathBuf::from),
    };
    let own = file.map(|file| PathBuf::from(artifact::folder_of(&file.to_string_lossy())));
    shared.into_iter().chain(own)
}

/// What a call gets whose settings could not be read.
fn refusing() -> Setup {
    let tools = [(TASK_TOOL.to_owned(), Policy::Deny)].into();
    Setup { approval: Approval { tools, ..Approval::default() }, ..Setup::default() }
}
