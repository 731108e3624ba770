//! The way of a child from its slot to the end of its run.

use std::sync::Arc;

use serde_json::json;

use crew_base::id::{Ids, RunId, SessionId};
use crew_base::limits::{ACTIVITY_CHARS_MAX, TASK_CLEANUP_MS_MAX};
use crew_base::message::{AssistantMessage, Message, StopReason, ToolCall, Usage};
use crew_base::session::RunEnd;
use crew_base::text::{excerpt, sanitise_inline};
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_cycle::barrier::WAIT_TOOL;
use crew_cycle::budget::{Budget, effective};
use crew_cycle::yielded::{YIELD_TOOL, Yields, definition};
use crew_cycle::{Act, Driver, Limits};

use super::{Boundary, Call, Child, OpenedTask, SlotState, Stage, Tasks};
use crate::approval::{Decision, Tier};
use crate::batch::Settled;
use crate::dispatch::Resolved;
use crate::effect::{Effect, OpenTask, Phase, Update};
use crate::isolation::{Plan, Prepared};
use crate::progress::{Progress, Stage as Shown};
use crate::queue::Place;
use crate::settings::Spawns;
use crate::{artifact, child, jobs};

impl Tasks {
    /// An item got its slot.
    pub(super) fn start(&mut self, now: Time, ids: &mut Ids, place: Place) {
        let (run, index) = place;
        let Some(call) = self.calls.get_mut(&run) else { return };
        let (Some(lease), Some(slot)) = (&call.lease, call.slots.get_mut(index)) else { return };
        let Some(id) = slot.id.clone() else { return };
        let session = ids.session(now);
        slot.state = SlotState::Running(session.clone());
        let file = artifact::transcript(&lease.folder, &id);
        let is_isolated = slot.resolved.is_isolated;
        let plan = Plan {
            child: session.clone(),
            id: id.clone(),
            parent: call.caller.session.clone(),
            backend: call.setup.settings.isolation.backend,
        };
        let started = Child {
            place,
            id,
            file,
            driver: call.driver(now, index),
            stage: if is_isolated {
                Stage::Isolating { is_cancelled: false }
            } else {
                Stage::Opening
            },
            progress: Progress::default(),
            retry_failure: None,
            prepared: None,
            opened: None,
            is_closed: false,
            outcome: None,
            began: now,
            jobs: 0,
            depth: call.caller.depth + 1,
            spawns: Spawns::Off,
        };
        self.children.insert(session.clone(), started);
        if is_isolated {
            self.out.push(Effect::Isolate(plan));
        } else {
            self.open(&session);
        }
    }

    /// The copy of a child is there, or could not be made: then no child runs
    /// (ISO-2).
    pub fn isolated(
        &mut self,
        now: Time,
        ids: &mut Ids,
        session: &SessionId,
        result: Result<Prepared, String>,
    ) {
        let Some(child) = self.children.get_mut(session) else { return };
        let Stage::Isolating { is_cancelled } = child.stage else { return };
        match result {
            Ok(prepared) if is_cancelled => {
                self.out.push(Effect::Discard { handle: prepared.handle });
                self.settle_early(now, ids, session);
            }
            Err(_) if is_cancelled => self.settle_early(now, ids, session),
            Ok(prepared) => {
                child.prepared = Some(prepared);
                child.stage = Stage::Opening;
                // The runtime limit does not count the copying (EXEC-2).
                let (run, index) = child.place;
                if let Some(call) = self.calls.get(&run) {
                    child.driver = call.driver(now, index);
                }
                self.open(session);
            }
            Err(error) => {
                let error = format!("`{}` could not be isolated: {error}", child.id);
                self.settle(now, ids, session, Settled::Broken { error, record: None });
            }
        }
    }

    fn open(&mut self, session: &SessionId) {
        let Some(child) = self.children.get_mut(session) else { return };
        let (run, index) = child.place;
        let Some(call) = self.calls.get(&run) else { return };
        let resolved = &call.slots[index].resolved;
        let settings = &call.setup.settings;
        let spawns = resolved.agent.spawns.clone().unwrap_or(Spawns::Off);
        let may_delegate = spawns.is_on() && settings.depth_allows(child.depth);
        child.spawns = if may_delegate { spawns } else { Spawns::Off };
        let cwd = child.prepared.as_ref().map(|prepared| prepared.cwd.clone());
        let plan = OpenTask {
            session: session.clone(),
            id: child.id.clone(),
            file: child.file.clone(),
            parent: call.caller.session.clone(),
            parent_file: call.caller.file.clone(),
            definition: Arc::clone(&resolved.agent.definition),
            models: resolved.models.clone(),
            parent_model: call.caller.model.clone(),
            effort: resolved.item.effort,
            max_effort: settings.max_effort,
            tools: child::tools(&resolved.agent, may_delegate, &call.setup.excluded_tools),
            yield_tool: definition(&resolved.schema),
            prompt_part: child::part(
                &resolved.agent,
                call.context.as_deref(),
                cwd.as_deref(),
                &resolved.schema,
            ),
            cwd,
            may_delegate,
        };
        self.out.push(Effect::Open(Box::new(plan)));
    }

    /// The session of a child exists; it is prompted.
    pub fn opened(&mut self, now: Time, session: &SessionId, opened: OpenedTask) {
        let Some(child) = self.children.get_mut(session) else { return };
        let Stage::Opening = child.stage else { return };
        child.stage = Stage::Running;
        child.opened = Some(opened);
        child.progress.stage = Shown::Running;
        let (run, index) = child.place;
        if let Some(call) = self.calls.get(&run) {
            child.driver.begin(child::prompt(&call.slots[index].resolved.item.task));
        }
        self.tell(session, Phase::Started);
        self.touch(now, run, true);
        self.drain(now, session);
    }

    /// The session of a child could not be made (DELIV-11).
    pub fn open_failed(&mut self, now: Time, ids: &mut Ids, session: &SessionId, error: &str) {
        let Some(child) = self.children.get_mut(session) else { return };
        match child.stage {
            Stage::Opening => {
                let error = format!("`{}` could not be started: {error}", child.id);
                if let Some(prepared) = child.prepared.take() {
                    self.out.push(Effect::Discard { handle: prepared.handle });
                }
                self.settle(now, ids, session, Settled::Broken { error, record: None });
            }
            // It was cancelled meanwhile; nothing of it is left.
            Stage::Cleaning { .. } => self.closed(now, ids, session),
            Stage::Isolating { .. }
            | Stage::Running
            | Stage::Writing { .. }
            | Stage::AwaitingClose { .. }
            | Stage::Wording { .. }
            | Stage::Integrating { .. } => {}
        }
    }

    /// What the first record of a child holds (SESS-2); for the shell, when
    /// the session is made.
    pub fn first_record(
        &self,
        session: &SessionId,
        made: &child::Made,
    ) -> Option<serde_json::Value> {
        let resolved = self.resolved(session)?;
        let prompt = child::prompt(&resolved.item.task);
        let origin = child::Origin {
            prompt: &prompt,
            agent: &resolved.agent,
            schema: &resolved.schema,
            is_isolated: resolved.is_isolated,
        };
        Some(child::record(made, &origin))
    }

    pub(super) fn resolved(&self, session: &SessionId) -> Option<&Resolved> {
        let (run, index) = self.children.get(session)?.place;
        Some(&self.calls.get(&run)?.slots.get(index)?.resolved)
    }

    /// A child recorded a message.
    pub fn child_message(&mut self, now: Time, session: &SessionId, message: &Message) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.driver.message(message);
        let run = child.place.0;
        match message {
            Message::Assistant(answer) => {
                child.answered(answer);
                self.touch(now, run, false);
            }
            // What its own children cost (OBS-5).
            Message::ToolResult(result) => {
                result.usage.iter().for_each(|usage| child.progress.spent(usage));
            }
            Message::System(_)
            | Message::User(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => {}
        }
        self.drain(now, session);
    }

    /// A child gave up the retries of a request (1.2 `retryFailure`).
    pub fn child_gave_up(&mut self, session: &SessionId, attempt: u32, error: &str) {
        if let Some(child) = self.children.get_mut(session) {
            child.retry_failure = Some((attempt, error.to_owned()));
        }
    }

    /// A child spent something beside its answers, on a compaction.
    pub fn child_usage(&mut self, session: &SessionId, usage: &Usage) {
        if let Some(child) = self.children.get_mut(session) {
            child.progress.spent(usage);
        }
    }

    /// A child is at a safe boundary; `None` for other sessions. To be asked
    /// before the boundary is answered.
    pub fn boundary(&mut self, now: Time, session: &SessionId) -> Option<Boundary> {
        let child = self.children.get_mut(session)?;
        let crew_cycle::Boundary { stops, messages } = child.driver.boundary();
        let messages = messages.iter().filter_map(|message| message.custom(now)).collect();
        self.drain(now, session);
        Some(Boundary { stops, messages })
    }

    /// The run of a child ended.
    pub fn child_settled(&mut self, now: Time, session: &SessionId, end: &RunEnd) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.driver.settled(now, end);
        self.drain(now, session);
    }

    /// A child session discarded a prompt before any request (EXEC-3).
    pub fn child_dropped(&mut self, now: Time, session: &SessionId, is_idle: bool) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.driver.dropped(now, is_idle);
        self.drain(now, session);
    }

    /// Takes a call of a child, if it is one that this tool answers: `yield`,
    /// `wait`, `bash` in the background. To be asked once all effects of the
    /// agent's step are out, so that a stop finds them started (YIELD-15).
    pub fn child_called(
        &mut self,
        now: Time,
        session: &SessionId,
        run: RunId,
        call: &ToolCall,
    ) -> bool {
        let Some(child) = self.children.get_mut(session) else { return false };
        if call.name == YIELD_TOOL {
            let outcome = child.driver.call(call);
            self.drain(now, session);
            self.ended(session, run, outcome);
            return true;
        }
        if call.name == WAIT_TOOL {
            if let Some(outcome) = child.driver.wait(run, &call.arguments) {
                self.ended(session, run, outcome);
            }
            return true;
        }
        let Some(command) = jobs::background(call) else { return false };
        if !matches!(child.stage, Stage::Running) {
            self.ended(session, run, ToolOutcome::error("cancelled: this run is over"));
            return true;
        }
        let setup = self.calls.get(&child.place.0).map(|call| Arc::clone(&call.setup));
        let approval = setup.map(|setup| setup.approval.for_child()).unwrap_or_default();
        if let Decision::Refuse(text) = approval.decide(jobs::BASH_TOOL, Tier::Exec) {
            self.ended(session, run, ToolOutcome::error(text));
            return true;
        }
        child.jobs += 1;
        let job = format!("job-{}", child.jobs);
        let label = excerpt(&sanitise_inline(&command), ACTIVITY_CHARS_MAX);
        child.driver.job_started(&job, &label);
        let session = session.clone();
        self.out.push(Effect::StartJob { session: session.clone(), job: job.clone(), command });
        self.ended(&session, run, ToolOutcome::text(json!({ "job_id": job }).to_string()));
        true
    }

    /// A background command ended; without an exit code it was killed.
    pub fn job_ended(
        &mut self,
        now: Time,
        session: &SessionId,
        job: &str,
        exit_code: Option<i64>,
        output: &str,
    ) {
        let Some(child) = self.children.get_mut(session) else { return };
        for (run, outcome) in child.driver.job_ended(job, exit_code, output) {
            self.ended(session, run, outcome);
        }
        self.drain(now, session);
    }

    /// A tool started in a child.
    pub fn child_tool_started(&mut self, now: Time, session: &SessionId, call: &str, tool: &str) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.progress.tool_started(call, tool);
        let run = child.place.0;
        self.touch(now, run, true);
    }

    /// A tool ended in a child.
    pub fn child_tool_ended(&mut self, now: Time, session: &SessionId, call: &str) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.progress.tool_ended(call);
        let run = child.place.0;
        self.touch(now, run, true);
    }

    /// Carries on what the driver of a child wants.
    pub(super) fn drain(&mut self, now: Time, session: &SessionId) {
        let Some(child) = self.children.get_mut(session) else { return };
        for act in child.driver.take_acts() {
            let session = session.clone();
            match act {
                Act::Submit(submission) => {
                    let messages = submission.messages.iter().map(|m| m.message(now)).collect();
                    let forced_tool = submission.forced_tool;
                    self.out.push(Effect::Prompt { session, messages, forced_tool });
                }
                Act::StopTurn => self.out.push(Effect::Stop { session }),
                // Sessions of this host are never busy with a foreign turn.
                Act::Recover => {}
                Act::Ended(outcome) => {
                    child.outcome = Some(outcome);
                    child.stage = Stage::Cleaning { until: now + TASK_CLEANUP_MS_MAX };
                    self.out.push(Effect::Close { session });
                }
            }
        }
    }

    pub(super) fn tell(&mut self, session: &SessionId, phase: Phase) {
        let Some(child) = self.children.get(session) else { return };
        let (run, index) = child.place;
        let Some(call) = self.calls.get(&run) else { return };
        self.out.push(Effect::Update(Update {
            parent: call.caller.session.clone(),
            session: session.clone(),
            phase,
            id: child.id.clone(),
            agent: call.slots[index].resolved.agent.name().to_owned(),
            call: call.call.clone(),
            index,
            file: child.file.clone(),
        }));
    }
}

impl Child {
    fn answered(&mut self, answer: &AssistantMessage) {
        self.progress.answer(answer);
        if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            return;
        }
        self.retry_failure = None;
        // A fallback may have taken over (TASK-SPAWN-13).
        if let Some(opened) = &mut self.opened
            && !answer.model.is_empty()
        {
            opened.model = Some(format!("{}/{}", answer.provider, answer.model));
        }
    }
}

impl Call {
    /// The driver of an item; its clock starts now.
    fn driver(&self, now: Time, index: usize) -> Driver<Yields> {
        let resolved = &self.slots[index].resolved;
        let settings = &self.setup.settings;
        let budget = effective(settings.soft_request_budget, resolved.agent.budget_ceiling());
        let limits = Limits {
            budget: Budget::new(budget, settings.soft_request_budget_notice),
            runtime_ms: Some(settings.max_runtime_ms).filter(|ms| *ms > 0),
            recovers_busy: false,
        };
        Driver::new(now, Yields::new(resolved.schema.clone()), limits)
    }
}
