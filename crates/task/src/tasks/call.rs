//! The way of a call: approval, checks, lease, slots, one result.

use std::sync::Arc;

use crew_base::id::{Ids, RunId, SessionId};
use crew_base::message::ToolCall;
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_cycle::AbortKind;

use super::{Asking, Call, Caller, Lease, Setup, Slot, SlotState, Stage, Tasks, answered};
use crate::agents::catalogue;
use crate::approval::{self, Decision, Tier};
use crate::batch::{self, Frame, Reply, Settled};
use crate::effect::Effect;
use crate::finalise::{CANCELLED_BY_CALLER, SHUT_DOWN};
use crate::isolation::Integration;
use crate::tool::TASK_TOOL;
use crate::{arguments, artifact, dispatch};

impl Tasks {
    /// Takes a call of `task` with what was read for it. Its one result comes
    /// as [`Effect::ToolEnded`] of the same run.
    pub fn call(
        &mut self,
        now: Time,
        caller: Caller,
        run: RunId,
        call: &ToolCall,
        setup: Arc<Setup>,
    ) {
        match setup.approval.decide(TASK_TOOL, Tier::Exec) {
            Decision::Run => self.accept(now, caller, run, call, setup),
            Decision::Refuse(text) => {
                let session = caller.session.clone();
                self.reply(&session, run, batch::refusal(text, setup.project_agents.as_deref()));
            }
            Decision::Ask => {
                // What cannot be read is refused without a question.
                let settings = &setup.settings;
                let Ok(request) = arguments::read(&call.arguments, settings) else {
                    self.accept(now, caller, run, call, setup);
                    return;
                };
                let standing = caller.standing(settings);
                let view = approval::view(&request, standing.spawns.default_agent());
                self.out.push(Effect::Ask { session: caller.session.clone(), run, view });
                self.asking.insert(run, Asking { caller, call: call.clone(), setup });
            }
        }
    }

    /// The person answered.
    pub fn asked(&mut self, now: Time, run: RunId, is_allowed: bool) {
        let Some(Asking { caller, call, setup }) = self.asking.remove(&run) else { return };
        if is_allowed {
            self.accept(now, caller, run, &call, setup);
        } else {
            let text = format!("`{TASK_TOOL}` was refused by the person");
            let reply = batch::refusal(text, setup.project_agents.as_deref());
            self.reply(&caller.session, run, reply);
        }
    }

    fn accept(
        &mut self,
        now: Time,
        caller: Caller,
        run: RunId,
        call: &ToolCall,
        setup: Arc<Setup>,
    ) {
        let settings = &setup.settings;
        let agents: Vec<_> = catalogue(setup.agents.clone()).into_iter().map(Arc::new).collect();
        let judged = arguments::read(&call.arguments, settings).and_then(|request| {
            let standing = caller.standing(settings);
            let resolved = dispatch::preflight(&request, &standing, &agents, settings)?;
            Ok((request.context, resolved))
        });
        let (context, resolved) = match judged {
            Ok(judged) => judged,
            Err(text) => {
                let reply = batch::refusal(text, setup.project_agents.as_deref());
                self.reply(&caller.session, run, reply);
                return;
            }
        };
        let waiting = self.queues.entry(caller.session.clone()).or_default();
        waiting.limit = settings.concurrency();
        let slot = |resolved| Slot { id: None, resolved, last: None, state: SlotState::Waiting };
        let folder = caller.file.as_deref().map(artifact::folder_of);
        self.out.push(Effect::Lease { session: caller.session.clone(), run, folder });
        let accepted = Call {
            call: call.id.clone(),
            context,
            lease: None,
            slots: resolved.into_iter().map(slot).collect(),
            began: now,
            is_cancelled: false,
            progress_due: None,
            progress_told: None,
            caller,
            setup,
        };
        self.calls.insert(run, accepted);
    }

    fn reply(&mut self, session: &SessionId, run: RunId, reply: Reply) {
        let Reply { outcome, usage } = reply;
        let session = session.clone();
        self.out.push(Effect::ToolEnded { session, run, outcome, usage });
    }

    /// The artifact folder is there, or could not be made (DELIV-11). Ids are
    /// given out now, and the items wait for their slots.
    pub fn leased(&mut self, now: Time, ids: &mut Ids, run: RunId, lease: Result<Lease, String>) {
        let Some(call) = self.calls.get_mut(&run).filter(|call| call.lease.is_none()) else {
            return;
        };
        let session = call.caller.session.clone();
        let lease = match lease {
            Ok(lease) => lease,
            Err(error) => {
                let error = format!("the folder for results could not be made: {error}");
                let broken = [Settled::Broken { error, record: None }];
                let reply = batch::merge(&broken, &call.frame(now));
                self.calls.remove(&run);
                self.reply(&session, run, reply);
                self.drop_idle_queue(&session);
                return;
            }
        };
        let names = self.names.entry(session.clone()).or_default();
        names.take(lease.taken.iter().map(String::as_str));
        let waiting = self.queues.entry(session.clone()).or_default();
        for (index, slot) in call.slots.iter_mut().enumerate() {
            if matches!(slot.state, SlotState::Waiting) {
                let name = slot.resolved.item.name.as_deref();
                slot.id = Some(names.allocate(ids, name, call.caller.id.as_deref()));
                waiting.queue.wait((run, index));
            }
        }
        call.lease = Some(lease);
        self.admit(now, ids, &session);
        self.finish_call(now, run);
    }

    /// Starts what the limit allows.
    pub(super) fn admit(&mut self, now: Time, ids: &mut Ids, session: &SessionId) {
        while let Some(waiting) = self.queues.get_mut(session)
            && let Some(place) = waiting.queue.admit(waiting.limit)
        {
            self.start(now, ids, place);
        }
        self.drop_idle_queue(session);
    }

    fn drop_idle_queue(&mut self, session: &SessionId) {
        let is_used = self.calls.values().any(|call| call.caller.session == *session);
        let is_empty = self.queues.get(session).is_some_and(|waiting| waiting.queue.is_empty());
        if is_empty && !is_used {
            self.queues.remove(session);
        }
    }

    /// A call, or one of a child's own, is cancelled by whoever waits for it.
    /// `false`: the run is none of this tool. What runs still gets its result
    /// when it has settled (TASK-SPAWN-15, OBS-10).
    pub fn cancel(&mut self, now: Time, run: RunId) -> bool {
        if let Some(asking) = self.asking.remove(&run) {
            let outcome = ToolOutcome::error("the operation was aborted");
            self.ended(&asking.caller.session, run, outcome);
            return true;
        }
        if self.calls.contains_key(&run) {
            self.stop_call(now, run, AbortKind::Caller, CANCELLED_BY_CALLER);
            return true;
        }
        let waiting = self
            .children
            .iter_mut()
            .find_map(|(session, child)| child.driver.cancel_wait(run).then(|| session.clone()));
        if let Some(session) = waiting {
            self.ended(&session, run, ToolOutcome::error("the operation was aborted"));
            return true;
        }
        self.answered.contains(&run) || self.out.iter().any(|effect| answered(effect) == Some(run))
    }

    /// The host ends: nothing starts any more, everything that runs is ended.
    pub fn quit(&mut self, now: Time) {
        for run in self.asking.keys().copied().collect::<Vec<_>>() {
            self.cancel(now, run);
        }
        for run in self.calls.keys().copied().collect::<Vec<_>>() {
            self.stop_call(now, run, AbortKind::Shutdown, SHUT_DOWN);
        }
    }

    fn stop_call(&mut self, now: Time, run: RunId, kind: AbortKind, reason: &str) {
        let Some(call) = self.calls.get_mut(&run) else { return };
        call.is_cancelled = true;
        let session = call.caller.session.clone();
        let mut running = Vec::new();
        for (index, slot) in call.slots.iter_mut().enumerate() {
            match &slot.state {
                SlotState::Waiting => {
                    let name = slot.id.as_ref().map(|id| format!("`{id}`"));
                    let name = name.unwrap_or_else(|| slot.resolved.item.label(index));
                    let line = format!("{name} never started: {reason}");
                    slot.state = SlotState::Done(Box::new(Settled::NeverStarted(line)));
                    if let Some(waiting) = self.queues.get_mut(&session) {
                        waiting.queue.leave((run, index));
                    }
                }
                SlotState::Running(child) => running.push(child.clone()),
                SlotState::Done(_) => {}
            }
        }
        for child in running {
            self.abort_child(now, &child, kind, reason);
        }
        self.finish_call(now, run);
    }

    pub(super) fn abort_child(
        &mut self,
        now: Time,
        session: &SessionId,
        kind: AbortKind,
        reason: &str,
    ) {
        let Some(child) = self.children.get_mut(session) else { return };
        match &mut child.stage {
            Stage::Isolating { is_cancelled } => *is_cancelled = true,
            Stage::Opening | Stage::Running => {
                child.driver.abort(kind, reason.to_owned());
                self.drain(now, session);
            }
            Stage::Cleaning { .. }
            | Stage::Writing { .. }
            | Stage::AwaitingClose { .. }
            | Stage::Integrating { .. } => {}
            Stage::Wording { .. } => self.stop_wording(session),
        }
    }

    /// Gives the one result once every item has settled.
    pub(super) fn finish_call(&mut self, now: Time, run: RunId) {
        let Some(call) = self.calls.get(&run) else { return };
        let is_done = |slot: &Slot| matches!(slot.state, SlotState::Done(_));
        if call.lease.is_none() || !call.slots.iter().all(is_done) {
            return;
        }
        self.tell_progress(now, run);
        let Some(call) = self.calls.remove(&run) else { return };
        let frame = call.frame(now);
        let mut items: Vec<_> = call
            .slots
            .into_iter()
            .filter_map(|slot| match slot.state {
                SlotState::Done(settled) => Some(*settled),
                SlotState::Waiting | SlotState::Running(_) => None,
            })
            .collect();
        if let Some(lease) = call.lease.filter(|lease| lease.is_temporary)
            && !items.iter().any(needs_folder)
        {
            // No pointer into a folder that is gone (OP-4).
            items.iter_mut().for_each(drop_pointer);
            self.out.push(Effect::EndLease { folder: lease.folder });
        }
        let session = call.caller.session;
        self.reply(&session, run, batch::merge(&items, &frame));
        self.drop_idle_queue(&session);
    }
}

impl Call {
    fn frame(&self, now: Time) -> Frame {
        let progress = self.progress_told.map(|_| {
            serde_json::Value::Array(
                self.slots.iter().filter_map(|slot| slot.last.clone()).collect(),
            )
        });
        Frame {
            project_agents: self.setup.project_agents.clone(),
            duration_ms: now.since(self.began),
            progress,
        }
    }
}

/// Whether files of this item must survive a temporary folder (ART-10).
fn needs_folder(item: &Settled) -> bool {
    match item {
        Settled::Ran(record) => record.integration.as_ref().is_some_and(Integration::needs_files),
        Settled::NeverStarted(_) => false,
        Settled::Broken { record, .. } => {
            record.as_ref().is_some_and(|record| record.output_path.is_some())
        }
    }
}

fn drop_pointer(item: &mut Settled) {
    if let Settled::Ran(record) = item {
        record.output_path = None;
    }
}
