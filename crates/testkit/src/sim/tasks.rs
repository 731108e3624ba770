//! Calls of `task` in the simulation: what the fake shell does for them and
//! what must hold (`task.md` MEET, TASK-SPAWN-14, DELIV-9, ISO-6). What their
//! children say is drawn in `script`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crew_base::id::{CallId, Ids, SessionId};
use crew_base::limits::TASK_CLEANUP_MS_MAX;
use crew_base::message::ToolResultMessage;
use crew_base::time::Time;
use crew_engine::api::task::isolation::{Integration, Merged, Prepared};
use crew_engine::api::task::{
    Lease, Merge, Mode, OpenTask, Phase, Policy, Setup, Spawns, TASK_TOOL, Update, general,
};
use crew_engine::{Event, TaskWork};

use super::world::World;

/// What is known of the children of all calls.
pub(super) struct Kids {
    setup: Arc<Setup>,
    /// Whether sessions of this run call `task` at all.
    pub(super) is_used: bool,
    all: BTreeMap<SessionId, Kid>,
    /// Commands that never end by themselves.
    endless: BTreeSet<(SessionId, String)>,
    /// Closed sessions of which something lives on.
    lingering: BTreeSet<SessionId>,
    /// Copies that were made and not removed.
    copies: BTreeMap<u64, SessionId>,
    handles: u64,
}

struct Kid {
    parent: SessionId,
    /// Known once it started.
    call: Option<CallId>,
    is_closed: bool,
    /// When it was told to end; some time later it may outlive its call
    /// (SESS-12).
    closing: Option<Time>,
    ends: u32,
}

impl Kid {
    fn may_outlive(&self, now: Time) -> bool {
        self.closing.is_some_and(|since| now.since(since) >= TASK_CLEANUP_MS_MAX)
    }
}

impl Kids {
    pub(super) fn new(rng: &mut Ids) -> Kids {
        let mut setup = Setup::default();
        let settings = &mut setup.settings;
        settings.isolation.enabled = true;
        if rng.below(3) == 0 {
            settings.isolation.merge = Merge::Branch;
            settings.isolation.generated_messages = true;
        }
        settings.max_concurrency = rng.below(4) as i64;
        settings.soft_request_budget = [3, 6, 200][rng.below(3) as usize];
        settings.max_runtime_ms = [0, 0, 20_000][rng.below(3) as usize];
        if rng.below(5) == 0 {
            setup.approval.can_ask = true;
            setup.approval.mode = Mode::Write;
        }
        if rng.below(8) == 0 {
            setup.approval.tools.insert("bash".to_owned(), Policy::Prompt);
        }
        let mut boss = general();
        boss.spawns = Some(Spawns::All);
        setup.agents.push(boss);
        Kids {
            setup: Arc::new(setup),
            is_used: rng.below(2) == 0,
            all: BTreeMap::new(),
            endless: BTreeSet::new(),
            lingering: BTreeSet::new(),
            copies: BTreeMap::new(),
            handles: 0,
        }
    }

    pub(super) fn contains(&self, session: &SessionId) -> bool {
        self.all.contains_key(session)
    }

    /// A child is to be made: none of more than the limit, none with tools of
    /// the crew (TASK-SPAWN-14, MEET-1).
    pub(super) fn opens(&mut self, now: Time, open: &OpenTask) -> Result<(), String> {
        if let Some(tool) = open.tools.iter().find(|tool| tool.starts_with("crew_")) {
            return Err(format!("{} has the tool {tool}", open.session));
        }
        let together = self
            .all
            .values()
            .filter(|kid| kid.parent == open.parent && !kid.is_closed && !kid.may_outlive(now));
        let limit = self.setup.settings.max_concurrency;
        if limit > 0 && together.count() as i64 >= limit {
            return Err(format!("{} runs more than {limit} children at once", open.parent));
        }
        let kid = Kid {
            parent: open.parent.clone(),
            call: None,
            is_closed: false,
            closing: None,
            ends: 0,
        };
        self.all.insert(open.session.clone(), kid);
        Ok(())
    }

    /// A child starts once and ends once.
    pub(super) fn told(&mut self, update: &Update) -> Result<(), String> {
        let Some(kid) = self.all.get_mut(&update.session) else {
            return Err(format!("{} was never opened", update.session));
        };
        match update.phase {
            Phase::Started if kid.call.is_none() => kid.call = Some(update.call.clone()),
            Phase::Completed | Phase::Failed | Phase::Aborted if kid.call.is_some() => {
                kid.ends += 1;
            }
            Phase::Started | Phase::Completed | Phase::Failed | Phase::Aborted => kid.ends = 2,
        }
        if kid.ends > 1 || update.parent != kid.parent {
            return Err(format!("{} ends or starts twice, or for another", update.session));
        }
        Ok(())
    }

    /// No child outlives its call.
    pub(super) fn call_ended(
        &self,
        now: Time,
        session: &SessionId,
        result: &ToolResultMessage,
    ) -> Result<(), String> {
        let left = self.all.iter().find(|(_, kid)| {
            let is_own = kid.parent == *session && kid.call.as_ref() == Some(&result.tool_call_id);
            is_own && !kid.may_outlive(now) && (!kid.is_closed || kid.ends != 1)
        });
        match left {
            Some((kid, _)) => Err(format!("{kid} outlives its call {}", result.tool_call_id)),
            None => Ok(()),
        }
    }

    /// At rest nothing is left of any child.
    pub(super) fn at_rest(&self) -> Result<(), String> {
        if let Some((id, _)) =
            self.all.iter().find(|(_, kid)| !kid.is_closed || kid.call.is_some() && kid.ends != 1)
        {
            return Err(format!("{id} is left at rest"));
        }
        if let Some((handle, child)) = self.copies.first_key_value() {
            return Err(format!("the copy {handle} of {child} was never removed"));
        }
        Ok(())
    }
}

impl World {
    /// Does one piece of work for `task`.
    pub(super) fn task_work(&mut self, work: TaskWork) -> Result<(), String> {
        let event = match work {
            TaskWork::ReadSetup { run, session } => {
                self.may_start(&session)?;
                Event::TaskSetup { run, setup: Arc::clone(&self.kids.setup) }
            }
            TaskWork::Ask { session, run, .. } => {
                self.may_start(&session)?;
                Event::TaskAnswered { run, is_allowed: self.rng.below(4) > 0 }
            }
            TaskWork::Lease { session, run, folder } => {
                self.may_start(&session)?;
                let lease = self.lease(folder);
                Event::TaskLeased { run, lease }
            }
            TaskWork::Isolate(plan) => {
                self.may_start(&plan.parent)?;
                let result = self.copy(&plan.child);
                Event::TaskIsolated { session: plan.child, result }
            }
            TaskWork::StartJob { session, job, .. } => {
                self.may_start(&session)?;
                if !self.calm && self.rng.below(4) == 0 {
                    self.kids.endless.insert((session, job));
                    return Ok(());
                }
                job_ended(session, job, Some(self.rng.below(2) as i64))
            }
            TaskWork::WriteArtifact { session, write } => {
                let path = if self.fails(8) {
                    Err("scripted: disk full".to_owned())
                } else {
                    Ok(write.path())
                };
                Event::ArtifactWritten { session, path }
            }
            TaskWork::Describe { session, .. } => {
                let diff = match self.rng.below(3) {
                    0 => Err("scripted: git failed".to_owned()),
                    1 => Ok(None),
                    _ => Ok(Some("+ work".to_owned())),
                };
                Event::TaskDescribed { session, diff }
            }
            TaskWork::Integrate { session, .. } => {
                if self.kids.all.get(&session).is_none_or(|kid| !kid.is_closed) {
                    return Err(format!("{session} is captured while it lives (ISO-6)"));
                }
                let result = self.integration();
                Event::TaskIntegrated { session, result }
            }
            TaskWork::Discard { handle } => {
                let known = self.kids.copies.remove(&handle);
                return known.map(|_| ()).ok_or_else(|| format!("copy {handle} removed twice"));
            }
            TaskWork::EndLease { .. } => return Ok(()),
        };
        let origin = self.other();
        self.push(origin, event);
        Ok(())
    }

    fn fails(&mut self, odds: u64) -> bool {
        let fails = !self.calm && self.rng.below(odds) == 0;
        self.summary.faults += u64::from(fails);
        fails
    }

    fn lease(&mut self, folder: Option<String>) -> Result<Lease, String> {
        if self.fails(15) {
            return Err("scripted: no space".to_owned());
        }
        let is_temporary = folder.is_none();
        let folder = folder.unwrap_or_else(|| "/tmp/fresh".to_owned());
        Ok(Lease { folder, is_temporary, taken: vec!["k1".to_owned()] })
    }

    fn copy(&mut self, child: &SessionId) -> Result<Prepared, String> {
        if self.fails(8) {
            return Err("scripted: no repository".to_owned());
        }
        self.kids.handles += 1;
        let handle = self.kids.handles;
        self.kids.copies.insert(handle, child.clone());
        Ok(Prepared { cwd: format!("/copies/{handle}"), handle })
    }

    fn integration(&mut self) -> Result<Integration, String> {
        if self.fails(8) {
            return Err("scripted: git is gone".to_owned());
        }
        let merged = match self.rng.below(3) {
            0 => Merged::Conflict("a.txt".to_owned()),
            _ => Merged::Applied,
        };
        Ok(Integration { has_root_changes: true, merged, ..Integration::default() })
    }

    /// A session is closed: its commands are killed, then the shell says so;
    /// now and then something of it lives on for long.
    pub(super) fn closes(&mut self, session: &SessionId) {
        let killed: Vec<_> =
            self.kids.endless.iter().filter(|(of, _)| of == session).cloned().collect();
        for (session, job) in killed {
            self.kids.endless.remove(&(session.clone(), job.clone()));
            let origin = self.other();
            self.push(origin, job_ended(session, job, None));
        }
        if let Some(kid) = self.kids.all.get_mut(session) {
            kid.closing = Some(self.now);
            if self.fails(20) {
                self.kids.lingering.insert(session.clone());
                return;
            }
        }
        let origin = self.other();
        self.push(origin, Event::SessionClosed { session: session.clone() });
    }

    /// What hung ends now, as at a real rest.
    pub(super) fn kids_end(&mut self) {
        for (session, job) in std::mem::take(&mut self.kids.endless) {
            let origin = self.other();
            self.push(origin, job_ended(session, job, Some(0)));
        }
        for session in std::mem::take(&mut self.kids.lingering) {
            let origin = self.other();
            self.push(origin, Event::SessionClosed { session });
        }
    }

    /// Takes note of what the shell tells before the engine hears it.
    pub(super) fn kids_hear(&mut self, event: &Event) {
        let gone = match event {
            Event::SessionClosed { session } => session,
            Event::SessionOpened { session, result: Err(_) } => session,
            _ => return,
        };
        if let Some(kid) = self.kids.all.get_mut(gone) {
            kid.is_closed = true;
        }
    }

    /// A call that runs outside is none that is answered inside.
    pub(super) fn runs_outside(
        &self,
        session: &SessionId,
        call: &crew_base::message::ToolCall,
    ) -> Result<(), String> {
        let is_inner = call.name.starts_with("crew_")
            || [TASK_TOOL, "yield", "wait"].contains(&call.name.as_str())
            || self.kids.contains(session) && call.arguments.value().get("background").is_some();
        if is_inner { Err(format!("{session} runs {} outside", call.name)) } else { Ok(()) }
    }
}

fn job_ended(session: SessionId, job: String, exit_code: Option<i64>) -> Event {
    Event::JobEnded { session, job, exit_code, output: "out".to_owned() }
}
