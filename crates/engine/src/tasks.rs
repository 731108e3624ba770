//! Where effects of the `task` tool go, and what its children tell it.
//!
//! Owns the way between sessions and [`crew_task::Tasks`]. Must never judge a
//! call or a result itself. Read `route` for agents and the crew, `work` for
//! what the shell does.

use std::sync::Arc;

use crew_agent::{Effect as AgentEffect, Input, Update as SessionUpdate};
use crew_base::entry::EntryBody;
use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::json::Raw;
use crew_base::message::{Message, ToolCall};
use crew_cycle::barrier::WAIT_TOOL;
use crew_cycle::budget::NOTICE_TYPE;
use crew_cycle::yielded::YIELD_TOOL;
use crew_task::approval::Approval;
use crew_task::child::{Made, RECORD_TYPE};
use crew_task::settings::Spawns;
use crew_task::tool::TASK_TOOL;
use crew_task::{Caller, Effect as TaskEffect, OpenedTask, Setup, jobs};

use crate::api::Update;
use crate::effect::{Effect, OpenPlan};
use crate::event::Opened;
use crate::step::{Discovering, Engine, Role, Session, aborted_outcome};
use crate::work::TaskWork;

impl Engine {
    /// Takes a call of `task`: settings and agents of this moment are read
    /// first. Calls of one batch share what is read.
    pub(crate) fn call_task(&mut self, id: &SessionId, run: RunId, call: ToolCall) {
        let shared = self.joinable_setup.and_then(|joinable| self.setups.get_mut(&joinable));
        if let Some(waiting) = shared.filter(|waiting| waiting.session == *id) {
            waiting.calls.push((run, call));
            return;
        }
        let reading = self.ids.run();
        let waiting = Discovering { session: id.clone(), calls: vec![(run, call)] };
        self.setups.insert(reading, waiting);
        self.joinable_setup = Some(reading);
        let work = TaskWork::ReadSetup { run: reading, session: id.clone() };
        self.out.push(Effect::Task(work));
    }

    /// The setup of this moment is there; the calls that waited for it go on.
    pub(crate) fn task_setup(&mut self, run: RunId, setup: &Arc<Setup>) {
        let Some(waiting) = self.setups.remove(&run) else { return };
        let Some((caller, setup)) = self.task_caller(&waiting.session, setup) else { return };
        for (run, call) in waiting.calls {
            self.tasks.call(self.now, caller.clone(), run, &call, Arc::clone(&setup));
        }
    }

    /// The session as a caller. A child of either kind has nobody to ask; to
    /// one of the crew its owner's policy applies (OBS-3, `crew.md` OP-19), one
    /// of a call was approved with it (SESS-3).
    fn task_caller(&self, id: &SessionId, setup: &Arc<Setup>) -> Option<(Caller, Arc<Setup>)> {
        let session = self.sessions.get(id)?;
        let model = session.agent.model().cloned();
        let with = |approval| Arc::new(Setup { approval, ..Setup::clone(setup) });
        let caller = |depth, spawns| Caller {
            session: id.clone(),
            file: session.file.clone(),
            depth,
            spawns,
            id: None,
            model: model.clone(),
        };
        Some(match session.role {
            Role::Owner => (caller(self.config.depth, None), Arc::clone(setup)),
            Role::Child => {
                let approval = Approval { can_ask: false, ..setup.approval.clone() };
                (caller(self.config.depth + 1, Some(self.crew_spawns(id, setup))), with(approval))
            }
            Role::Task => (self.tasks.caller(id, model.clone())?, with(setup.approval.for_child())),
        })
    }

    /// What a crew child may spawn: its definition only narrows (OBS-2).
    fn crew_spawns(&self, id: &SessionId, setup: &Setup) -> Spawns {
        let name = self.crew.of_session(id).map(|subagent| subagent.definition.name.as_str());
        let agent = setup.agents.iter().find(|agent| Some(agent.name()) == name);
        agent.and_then(|agent| agent.spawns.clone()).unwrap_or(Spawns::All)
    }

    /// A tool of a `task` child. What `task` itself answers waits until all
    /// effects of this step are out, so that a stop finds them started
    /// (YIELD-15).
    pub(crate) fn run_task_tool(&mut self, id: &SessionId, run: RunId, call: ToolCall) {
        match call.name.as_str() {
            TASK_TOOL => self.call_task(id, run, call),
            YIELD_TOOL | WAIT_TOOL => self.child_calls.push_back((id.clone(), run, call)),
            _ if jobs::background(&call).is_some() => {
                self.child_calls.push_back((id.clone(), run, call));
            }
            _ => self.run_outside(id, run, jobs::foreground(&call)),
        }
    }

    fn run_outside(&mut self, id: &SessionId, run: RunId, call: ToolCall) {
        self.out.push(Effect::RunTool { session: id.clone(), run, call });
    }

    /// Cancels a call that `task` answers, or that waits to be given to it;
    /// tells whether it was one.
    pub(crate) fn cancel_task(&mut self, id: &SessionId, run: RunId) -> bool {
        let waiting = self.setups.values_mut().find_map(|waiting| waiting.take(run));
        let deferred = self.child_calls.iter().position(|(_, known, _)| *known == run);
        let deferred = deferred.and_then(|at| self.child_calls.remove(at));
        if waiting.is_some() || deferred.is_some() {
            self.feed(id, Input::ToolEnded { run, outcome: aborted_outcome() });
            return true;
        }
        if self.tasks.is_asking(run) {
            // The question is withdrawn.
            self.out.push(Effect::Cancel { session: id.clone(), run });
        }
        self.tasks.cancel(self.now, run)
    }

    /// A session is gone, and what it waited for.
    pub(crate) fn forget_calls(&mut self, id: &SessionId) {
        self.setups.retain(|_, waiting| waiting.session != *id);
        self.asked.retain(|_, (session, _)| session != id);
        self.child_calls.retain(|(session, _, _)| session != id);
        if !self.tasks.is_child(id) {
            self.tasks.forget(id);
        }
    }

    /// Carries out what `task` asked for, then gives it the calls of its
    /// children, one after the other.
    pub(crate) fn route_tasks(&mut self) {
        loop {
            let effects = self.tasks.take_effects();
            let is_over = effects.is_empty();
            for effect in effects {
                self.task_effect(effect);
            }
            if !is_over {
                continue;
            }
            let Some((id, run, call)) = self.child_calls.pop_front() else { return };
            if !self.tasks.child_called(self.now, &id, run, &call) {
                self.run_outside(&id, run, jobs::foreground(&call));
            }
        }
    }

    fn task_effect(&mut self, effect: TaskEffect) {
        let work = match effect {
            TaskEffect::Ask { session, run, view } => {
                TaskWork::Ask { session, run, tool: TASK_TOOL.to_owned(), view }
            }
            TaskEffect::Lease { session, run, folder } => TaskWork::Lease { session, run, folder },
            TaskEffect::Isolate(plan) => TaskWork::Isolate(plan),
            TaskEffect::StartJob { session, job, command } => {
                TaskWork::StartJob { session, job, command }
            }
            TaskEffect::WriteArtifact { session, write } => {
                TaskWork::WriteArtifact { session, write }
            }
            TaskEffect::Describe { session, handle } => TaskWork::Describe { session, handle },
            TaskEffect::Word { session, parent, messages } => {
                return self.start_wording(session, parent, messages);
            }
            TaskEffect::StopWording { session } => return self.stop_wording(&session),
            TaskEffect::Integrate { session, capture } => TaskWork::Integrate { session, capture },
            TaskEffect::Discard { handle } => TaskWork::Discard { handle },
            TaskEffect::EndLease { folder } => TaskWork::EndLease { folder },
            TaskEffect::Open(open) => {
                let settings = self.config.settings.clone();
                let session = Session::child(&open.session, Role::Task, settings);
                self.sessions.insert(open.session.clone(), Box::new(session));
                self.out.push(Effect::OpenSession(OpenPlan::Task(open)));
                return;
            }
            TaskEffect::Prompt { session, messages, forced_tool } => {
                self.prompt_child(&session, messages, forced_tool);
                return;
            }
            TaskEffect::Stop { session } => return self.feed(&session, Input::Abort),
            TaskEffect::Close { session } => return self.close(&session, None),
            TaskEffect::ToolEnded { session, run, mut outcome, usage } => {
                outcome.usage = usage;
                return self.feed(&session, Input::ToolEnded { run, outcome });
            }
            TaskEffect::Progress { session, run, progress } => {
                return self.feed(&session, Input::ToolProgress { run, progress });
            }
            TaskEffect::Update(update) => {
                return self.out.push(Effect::Update(Update::Task(update)));
            }
        };
        self.out.push(Effect::Task(work));
    }

    fn prompt_child(&mut self, id: &SessionId, messages: Vec<Message>, forced_tool: Option<&str>) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_open()) else {
            return;
        };
        if session.agent.is_idle() {
            session.agent.force_tool(forced_tool);
            self.feed(id, Input::Prompt(messages));
        } else {
            self.tasks.child_dropped(self.now, id, false);
        }
    }

    /// The session of a child was prepared: its first record is written, then
    /// it is prompted (OBS-4).
    pub(crate) fn task_opened(&mut self, id: &SessionId, opened: Opened) {
        let model = opened.model.clone();
        let is_fallback = opened.is_fallback;
        let prompt = crate::opening::prompt_of(Role::Task, opened.prompt.clone());
        let sections: Vec<_> = prompt.sections.iter().map(|(_, text)| text.as_str()).collect();
        let made = Made {
            system: sections.join("\n\n"),
            tools: prompt.tools.iter().map(|tool| tool.name.clone()).collect(),
            model: model.as_ref().map(|model| model.reference()).unwrap_or_default(),
        };
        let first = self.tasks.first_record(id, &made).map(|data| EntryBody::Custom {
            custom_type: RECORD_TYPE.to_owned(),
            data: Some(Raw::of(&data)),
        });
        self.install(id, opened, first);
        let thinking = self.agent(id).map(|agent| agent.thinking().word().to_owned());
        let window = model.as_ref().map(|model| model.context_window);
        let opened = OpenedTask {
            model: model.map(|model| model.reference()),
            is_fallback,
            thinking,
            context_window: window.filter(|window| *window > 0),
        };
        self.tasks.opened(self.now, id, opened);
    }

    /// A child is at a boundary. It is told of everything before, then says
    /// what is recorded there and whether the run goes on.
    pub(crate) fn task_boundary(&mut self, id: &SessionId, before: Vec<AgentEffect>) -> Input {
        self.route_agent(id, before);
        let boundary = self.tasks.boundary(self.now, id).unwrap_or_default();
        if boundary.stops
            && let Some(session) = self.sessions.get_mut(id)
        {
            let stopped = session.agent.step(self.now, &mut self.ids, Input::Abort);
            debug_assert!(stopped.is_empty(), "an abort at a boundary says nothing");
        }
        Input::Proceed(boundary.messages)
    }

    /// Whether an entry is a budget notice that nothing follows: a child goes on
    /// without it (EXEC-15, EXEC-27).
    pub(crate) fn is_lost_notice(&self, id: &SessionId, entry: &EntryId) -> bool {
        let session = self.sessions.get(id).filter(|session| session.role == Role::Task);
        session.and_then(|session| session.agent.record().newest()).is_some_and(
            |(newest, message)| {
                newest == entry
                    && matches!(message, Message::Custom(custom) if custom.custom_type == NOTICE_TYPE)
            },
        )
    }

    /// Tells `task` what one of its children does. None of it is for faces
    /// (OBS-6).
    pub(crate) fn task_child_update(&mut self, id: &SessionId, update: &SessionUpdate) {
        match update {
            SessionUpdate::MessageEnd(message) => self.tasks.child_message(self.now, id, message),
            SessionUpdate::ToolStart { call, name, .. } => {
                self.tasks.child_tool_started(self.now, id, call.as_str(), name);
            }
            SessionUpdate::ToolEnd { call, .. } => {
                self.tasks.child_tool_ended(self.now, id, call.as_str())
            }
            SessionUpdate::RetryEnd { success, attempt, final_error } => {
                if !success {
                    let error = final_error.as_deref().unwrap_or_default();
                    self.tasks.child_gave_up(id, *attempt, error);
                }
            }
            SessionUpdate::CompactionEnd { result, .. } => {
                if let Some(usage) = result.as_ref().and_then(|result| result.usage.as_ref()) {
                    self.tasks.child_usage(id, usage);
                }
            }
            SessionUpdate::AgentStart
            | SessionUpdate::TurnStart
            | SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::AgentEnd { .. }
            | SessionUpdate::AgentSettled { .. }
            | SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::RetryStart { .. }
            | SessionUpdate::CompactionStart { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::BranchSummaryStart
            | SessionUpdate::MoveEnd(_)
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_)
            | SessionUpdate::EntryAppended(_) => {}
        }
    }
}

impl Discovering {
    /// Takes a call out again that is cancelled.
    pub(crate) fn take(&mut self, run: RunId) -> Option<(RunId, ToolCall)> {
        let at = self.calls.iter().position(|(known, _)| *known == run)?;
        Some(self.calls.remove(at))
    }
}
