//! The end of a child: cleaning up, shaping the result, files, changes
//! (FINAL-19, SESS-11, SESS-12).

use crew_base::id::{Ids, SessionId};
use crew_base::limits::TASK_CLEANUP_MS_MAX;
use crew_base::time::Time;
use crew_cycle::{AbortKind, Outcome};

use super::{Child, SlotState, Stage, Tasks};
use crate::artifact::{self, Meta};
use crate::batch::Settled;
use crate::child;
use crate::effect::{Effect, Phase};
use crate::finalise::{CANCELLED_EARLY, Driven, Final, Left, finalise};
use crate::isolation::{self, Integration};
use crate::progress::Stage as Shown;
use crate::record::{Record, Status};
use crate::truncate::tail;

impl Tasks {
    /// Nothing of a child session is left.
    pub fn closed(&mut self, now: Time, ids: &mut Ids, session: &SessionId) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.is_closed = true;
        match &child.stage {
            Stage::Cleaning { .. } => self.finish(now, ids, session, false),
            Stage::AwaitingClose { .. } => self.integrate(now, ids, session),
            Stage::Opening | Stage::Running => {
                // Closed by somebody else; that ends the run, too.
                let text = "the child session was closed".to_owned();
                child.driver.abort(AbortKind::Terminate, text);
                self.drain(now, session);
                if let Some(child) = self.children.get_mut(session)
                    && child.outcome.is_none()
                {
                    child.driver.settled(now, &crew_base::session::RunEnd::Aborted);
                    self.drain(now, session);
                }
                self.finish(now, ids, session, false);
            }
            Stage::Isolating { .. }
            | Stage::Writing { .. }
            | Stage::Wording { .. }
            | Stage::Integrating { .. } => {}
        }
    }

    /// Shapes the result; `is_late` when something of the child still lives.
    pub(super) fn finish(&mut self, now: Time, ids: &mut Ids, session: &SessionId, is_late: bool) {
        let Some(child) = self.children.get(session) else { return };
        let Some(outcome) = child.outcome.clone() else { return };
        let (run, index) = child.place;
        let Some(call) = self.calls.get(&run) else { return };
        let settings = &call.setup.settings;
        let schema = &call.slots[index].resolved.schema;
        let (mut result, mut record) = (shape(child, &outcome, schema), self.bare(session, now));
        if is_late && matches!(outcome, Outcome::Aborted { .. }) {
            overdue(&mut result, child.prepared.is_some());
        }
        let kept = tail(&result.output, settings.output_bytes_max, settings.output_lines_max);
        record.output = kept.text;
        record.truncated = kept.is_cut;
        take(&mut record, &result);
        let folder = call.lease.as_ref().map(|lease| lease.folder.clone());
        let was_made = child.opened.is_some();
        match folder.filter(|_| was_made) {
            Some(folder) => {
                let write = artifact::write(&folder, &child.id, &result);
                let meta = Meta::of(&write.text);
                self.set_stage(session, Stage::Writing { record: Box::new(record), meta });
                self.out.push(Effect::WriteArtifact { session: session.clone(), write });
            }
            None => {
                self.discard(session);
                self.settle(now, ids, session, Settled::Ran(Box::new(record)));
            }
        }
    }

    fn set_stage(&mut self, session: &SessionId, stage: Stage) {
        if let Some(child) = self.children.get_mut(session) {
            child.stage = stage;
        }
    }

    /// The record with everything that does not depend on the result.
    fn bare(&self, session: &SessionId, now: Time) -> Record {
        let (Some(child), Some(resolved)) = (self.children.get(session), self.resolved(session))
        else {
            return Record::default();
        };
        let opened = child.opened.clone().unwrap_or_default();
        let items = child.driver.contract().items();
        Record {
            index: child.place.1,
            id: child.id.clone(),
            agent: resolved.agent.name().to_owned(),
            agent_source: resolved.agent.definition.source.word().to_owned(),
            task: child::prompt(&resolved.item.task),
            assignment: resolved.item.task.clone(),
            duration_ms: now.since(child.began),
            tokens: child.progress.tokens(),
            requests: child.progress.requests,
            context_tokens: child.progress.context_tokens,
            context_window: opened.context_window,
            resolved_model: opened.model,
            model_is_fallback: opened.is_fallback,
            thinking: opened.thinking,
            usage: child.progress.has_usage.then(|| child.progress.usage.clone()),
            isolated: resolved.is_isolated,
            retry_failure: child.retry_failure.clone(),
            yields: items.iter().map(crew_cycle::yielded::Item::json).collect(),
            ..Record::default()
        }
    }

    /// The files of a child were written, or not (ART-2, ART-6).
    pub fn written(
        &mut self,
        now: Time,
        ids: &mut Ids,
        session: &SessionId,
        path: Result<String, String>,
    ) {
        let Some(child) = self.children.get_mut(session) else { return };
        let Stage::Writing { record, meta } = &child.stage else { return };
        let (mut record, meta) = (record.clone(), *meta);
        if let Ok(path) = path {
            record.output_path = Some(path);
            record.output_meta = Some(meta);
        }
        if child.prepared.is_none() {
            self.settle(now, ids, session, Settled::Ran(record));
        } else if !isolation::is_captured(&record) {
            self.discard(session);
            self.settle(now, ids, session, Settled::Ran(record));
        } else {
            let is_closed = child.is_closed;
            child.stage = Stage::AwaitingClose { record };
            if is_closed {
                self.integrate(now, ids, session);
            }
        }
    }

    fn integrate(&mut self, now: Time, ids: &mut Ids, session: &SessionId) {
        let Some(child) = self.children.get_mut(session) else { return };
        let Stage::AwaitingClose { record } = &child.stage else { return };
        let record = record.clone();
        let call = self.calls.get(&child.place.0);
        let lease = call.and_then(|call| call.lease.as_ref());
        let (Some(prepared), Some(call), Some(lease)) = (&child.prepared, call, lease) else {
            self.settle(now, ids, session, Settled::Ran(record));
            return;
        };
        let settings = &call.setup.settings.isolation;
        let capture = isolation::capture(settings, prepared, &lease.folder, &child.id);
        self.word(session, record, capture);
    }

    /// The changes of a child were brought back, or kept, or lost in a failure
    /// of the host (DELIV-10).
    pub fn integrated(
        &mut self,
        now: Time,
        ids: &mut Ids,
        session: &SessionId,
        result: Result<Integration, String>,
    ) {
        let Some(child) = self.children.get(session) else { return };
        let Stage::Integrating { record } = &child.stage else { return };
        let mut record = record.clone();
        let settled = match result {
            Ok(integration) => {
                record.error.clone_from(&integration.error);
                record.integration = Some(integration);
                Settled::Ran(record)
            }
            Err(text) => {
                let error =
                    format!("the changes of `{}` could not be brought back: {text}", child.id);
                record.error = Some(error.clone());
                Settled::Broken { error, record: Some(record) }
            }
        };
        self.discard(session);
        self.settle(now, ids, session, settled);
    }

    fn discard(&mut self, session: &SessionId) {
        let prepared = self.children.get_mut(session).and_then(|child| child.prepared.take());
        self.out.extend(prepared.map(|prepared| Effect::Discard { handle: prepared.handle }));
    }

    /// A child that was cancelled before its run began (EXEC-1): no session,
    /// no file.
    pub(super) fn settle_early(&mut self, now: Time, ids: &mut Ids, session: &SessionId) {
        let text = CANCELLED_EARLY.to_owned();
        let record = Record {
            exit_code: 1,
            stderr: text.clone(),
            error: Some(text.clone()),
            aborted: true,
            abort_reason: Some(text),
            ..self.bare(session, now)
        };
        self.settle(now, ids, session, Settled::Ran(Box::new(record)));
    }

    /// An item is over: its slot is free, and the call may be, too.
    pub(super) fn settle(
        &mut self,
        now: Time,
        ids: &mut Ids,
        session: &SessionId,
        settled: Settled,
    ) {
        let phase = match &settled {
            Settled::Ran(record) | Settled::Broken { record: Some(record), .. } => {
                match record.status() {
                    Status::Completed | Status::MergeFailed => Phase::Completed,
                    Status::Cancelled => Phase::Aborted,
                    Status::Failed(_) => Phase::Failed,
                }
            }
            Settled::NeverStarted(_) | Settled::Broken { record: None, .. } => Phase::Failed,
        };
        if self.children.get(session).is_some_and(|child| child.opened.is_some()) {
            self.tell(session, phase);
        }
        let Some(mut child) = self.children.remove(session) else { return };
        self.names.remove(session);
        let (run, index) = child.place;
        let Some(call) = self.calls.get_mut(&run) else { return };
        child.progress.stage = match phase {
            Phase::Started => Shown::Running,
            Phase::Completed => Shown::Completed,
            Phase::Failed => Shown::Failed,
            Phase::Aborted => Shown::Aborted,
        };
        let parent = call.caller.session.clone();
        let slot = &mut call.slots[index];
        let agent = slot.resolved.agent.name();
        slot.last = Some(child.progress.json(index, Some(&child.id), agent));
        slot.state = SlotState::Done(Box::new(settled));
        if let Some(waiting) = self.queues.get_mut(&parent) {
            waiting.queue.release((run, index));
        }
        self.touch(now, run, true);
        self.finish_call(now, run);
        self.admit(now, ids, &parent);
    }
}

fn shape(child: &Child, outcome: &Outcome, schema: &crew_cycle::schema::OutputSchema) -> Final {
    let yields = child.driver.contract();
    let left = Left {
        items: yields.items(),
        raw_text: yields.raw_text(),
        last_words: yields.last_words(),
        requests: child.progress.requests,
        tokens: child.progress.tokens(),
    };
    finalise(&Driven::of(outcome), &left, schema)
}

/// A-CLEANUP (SESS-12).
fn overdue(result: &mut Final, is_isolated: bool) {
    let reason = format!("cleanup took longer than {TASK_CLEANUP_MS_MAX} ms");
    let tail = if is_isolated {
        "none of its changes were applied"
    } else {
        "changes in the working directory may remain or still be made"
    };
    result.exit = 1;
    result.aborted = true;
    result.stderr = format!("{reason}; {tail}");
    result.abort_reason = Some(reason);
}

fn take(record: &mut Record, result: &Final) {
    record.exit_code = result.exit;
    record.stderr.clone_from(&result.stderr);
    record.aborted = result.aborted;
    record.abort_reason.clone_from(&result.abort_reason);
    record.structured.clone_from(&result.structured);
    let has_reason = result.exit != 0 && !result.stderr.is_empty();
    record.error = has_reason.then(|| result.stderr.clone());
    if result.aborted {
        // A wait for a retry that was cut short gave up nothing.
        record.retry_failure = None;
    }
}
