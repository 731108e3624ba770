//! Where effects of agents and of the crew go.

use crew_agent::{Effect as AgentEffect, Input, Update as SessionUpdate};
use crew_base::definition::Discovery;
use crew_base::id::{RunId, SessionId};
use crew_base::limits::APPROVAL_CHARS_MAX;
use crew_base::message::{Message, ToolCall};
use crew_base::model::ModelEvent;
use crew_base::session::{DeliveryId, RunEnd};
use crew_base::text::excerpt;
use crew_base::tool::ToolOutcome;
use crew_crew::Effect as CrewEffect;
use crew_cycle::report;
use crew_task::approval::{Decision, Tier};
use crew_task::tool::TASK_TOOL;

use crate::api::Update;
use crate::effect::{Effect, OpenPlan};
use crate::pacing::Held;
use crate::step::{Discovering, Engine, Role, Session, State, aborted_outcome};
use crate::work::TaskWork;

impl Engine {
    /// Gives one input to a session and routes what follows.
    pub(crate) fn feed(&mut self, id: &SessionId, input: Input) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let effects = session.agent.step(self.now, &mut self.ids, input);
        self.after_agent(id, effects);
    }

    /// Routes what an agent wants. A boundary is answered before anything else
    /// can reach the agent.
    pub(crate) fn after_agent(&mut self, id: &SessionId, mut effects: Vec<AgentEffect>) {
        let Some(mut session) = self.sessions.get_mut(id) else { return };
        while matches!(effects.last(), Some(AgentEffect::Boundary)) {
            effects.pop();
            let proceed = match session.role {
                Role::Child => Input::Proceed(Vec::new()),
                Role::Task => self.task_boundary(id, std::mem::take(&mut effects)),
                Role::Owner => {
                    let newest = session.newest_snapshot();
                    let status = self.crew.boundary(self.now, &mut self.ids, id, newest.as_deref());
                    Input::Proceed(status.into_iter().collect())
                }
            };
            let Some(asked) = self.sessions.get_mut(id) else { return };
            session = asked;
            effects.extend(session.agent.step(self.now, &mut self.ids, proceed));
        }
        let timer = session.agent.deadline();
        if timer != session.timer {
            if let Some(old) = std::mem::replace(&mut session.timer, timer) {
                self.timers.remove(&(old, id.clone()));
            }
            self.timers.extend(timer.map(|at| (at, id.clone())));
        }
        self.route_agent(id, effects);
    }

    /// Carries out what one session asked for, in its order. What the crew
    /// makes of it waits until then: it may feed this very session, whose
    /// earlier entries must be written first.
    pub(crate) fn route_agent(&mut self, id: &SessionId, effects: Vec<AgentEffect>) {
        let Some(role) = self.sessions.get(id).map(|session| session.role) else { return };
        for effect in effects {
            match effect {
                AgentEffect::Append(entry) => {
                    self.out.push(Effect::Append { session: id.clone(), entry });
                }
                AgentEffect::StartModel { run, request } => {
                    // Summaries do not count (`crew.md` CTX-17).
                    if role == Role::Owner && !self.is_compacting(id) {
                        self.crew.count_request(id);
                    }
                    let held = Held { session: id.clone(), run, request };
                    let admitted = self.pacing.admit(self.now, held);
                    self.out.extend(admitted.map(Effect::from));
                }
                AgentEffect::RunTool { run, call } => self.run_tool(id, role, run, call),
                AgentEffect::Cancel { run } => self.cancel(id, run),
                AgentEffect::ReadBranch { run, from, to } => {
                    self.out.push(Effect::ReadBranch { session: id.clone(), run, from, to });
                }
                AgentEffect::MoveEnded(end) => self.move_ended(id, end),
                AgentEffect::Boundary => {}
                AgentEffect::Entered(delivery) => self.crew.entered(delivery),
                AgentEffect::Refused(deliveries) => self.refused(id, &deliveries),
                AgentEffect::Update(update) => self.session_update(id, role, update),
                AgentEffect::Settled(end) => self.settled(id, role, &end),
            }
        }
    }

    fn is_compacting(&self, id: &SessionId) -> bool {
        self.sessions
            .get(id)
            .is_some_and(|session| session.agent.is_compacting() || session.agent.is_moving())
    }

    fn session_update(&mut self, id: &SessionId, role: Role, update: SessionUpdate) {
        match role {
            Role::Owner => {}
            Role::Child => self.child_update(id, &update),
            Role::Task => self.task_child_update(id, &update),
        }
        if self.attached.as_ref() == Some(id) {
            self.out.push(Effect::Update(Update::Session { session: id.clone(), update }));
        }
    }

    fn child_update(&mut self, id: &SessionId, update: &SessionUpdate) {
        match update {
            SessionUpdate::MessageEnd(message) => {
                self.crew.child_message(id, message);
                self.steer_recorded(id, message);
            }
            SessionUpdate::ToolStart { call, name, arguments } => {
                let home = self.config.home.as_deref();
                self.crew.child_tool_started(id, call, name, arguments, home);
            }
            SessionUpdate::ToolEnd { call, outcome, .. } => {
                self.crew.child_tool_ended(id, call, outcome);
            }
            SessionUpdate::CompactionEnd { result, .. } => {
                if let Some(usage) = result.as_ref().and_then(|result| result.usage.as_ref()) {
                    self.crew.child_usage(id, usage);
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
            | SessionUpdate::RetryEnd { .. }
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

    fn settled(&mut self, id: &SessionId, role: Role, end: &RunEnd) {
        let closing = self
            .sessions
            .get(id)
            .is_some_and(|session| matches!(session.state, State::Closing { .. }));
        if closing {
            self.finish_closing(id);
            return;
        }
        match role {
            Role::Child => self.crew.child_settled(self.now, id, end),
            Role::Task => self.tasks.child_settled(self.now, id, end),
            Role::Owner => {
                if let RunEnd::Failed(error) = end {
                    let error = error.clone();
                    self.out.push(Effect::Update(Update::RunFailed { session: id.clone(), error }));
                }
                // What waited through an abort enters as to an idle owner
                // (`crew.md` DEL-5); a detached one starts nothing.
                if self.attached.as_ref() == Some(id) {
                    self.feed(id, Input::Wake);
                }
            }
        }
    }

    /// Owner tools and the report are answered here; all others by the shell.
    fn run_tool(&mut self, id: &SessionId, role: Role, run: RunId, call: ToolCall) {
        match role {
            Role::Owner if crew_crew::tools::is_owner_tool(&call.name) => {
                if self.is_approved(id, run, &call) {
                    self.run_crew_tool(id, run, call);
                }
            }
            Role::Child if call.name == report::REPORT_TOOL => {
                let outcome = report::run(&call.arguments);
                self.feed(id, Input::ToolEnded { run, outcome });
            }
            Role::Task => self.run_task_tool(id, run, call),
            Role::Owner | Role::Child if call.name == TASK_TOOL => self.call_task(id, run, call),
            Role::Owner | Role::Child => {
                self.out.push(Effect::RunTool { session: id.clone(), run, call });
            }
        }
    }

    fn run_crew_tool(&mut self, id: &SessionId, run: RunId, call: ToolCall) {
        if crew_crew::tools::needs_discovery(&call.name) {
            self.discover(id, run, call);
        } else {
            let outcome = self.call_crew(id, &call, &Discovery::default());
            self.feed(id, Input::ToolEnded { run, outcome });
        }
    }

    /// Whether a crew tool may run now; if not, it is refused or the person is
    /// asked (`task.md` OBS-3). By itself none needs a question: what children
    /// do is judged call by call.
    fn is_approved(&mut self, id: &SessionId, run: RunId, call: &ToolCall) -> bool {
        let Some(session) = self.sessions.get(id) else { return false };
        match session.approval.decide(&call.name, Tier::Read) {
            Decision::Run => true,
            Decision::Ask => {
                self.asked.insert(run, (id.clone(), call.clone()));
                let tool = call.name.clone();
                let view = excerpt(call.arguments.text(), APPROVAL_CHARS_MAX);
                self.out.push(Effect::Task(TaskWork::Ask { session: id.clone(), run, tool, view }));
                false
            }
            Decision::Refuse(text) => {
                self.feed(id, Input::ToolEnded { run, outcome: ToolOutcome::error(text) });
                false
            }
        }
    }

    /// The person has answered about a call of a crew tool or of `task`.
    pub(crate) fn answered_by_person(&mut self, run: RunId, is_allowed: bool) {
        match self.asked.remove(&run) {
            Some((id, call)) if is_allowed => self.run_crew_tool(&id, run, call),
            Some((id, call)) => {
                let text = format!("`{}` was refused by the person", call.name);
                self.feed(&id, Input::ToolEnded { run, outcome: ToolOutcome::error(text) });
            }
            None => self.tasks.asked(self.now, run, is_allowed),
        }
    }

    fn call_crew(&mut self, id: &SessionId, call: &ToolCall, discovery: &Discovery) -> ToolOutcome {
        let Some(owner) = self.owner(id) else { return aborted_outcome() };
        self.crew.call(self.now, &mut self.ids, &owner, &call.name, &call.arguments, discovery)
    }

    fn discover(&mut self, id: &SessionId, run: RunId, call: ToolCall) {
        let shared = self.joinable.and_then(|joinable| self.discoveries.get_mut(&joinable));
        if let Some(waiting) = shared.filter(|waiting| waiting.session == *id) {
            waiting.calls.push((run, call));
            return;
        }
        let discovery = self.ids.run();
        let waiting = Discovering { session: id.clone(), calls: vec![(run, call)] };
        self.discoveries.insert(discovery, waiting);
        self.joinable = Some(discovery);
        self.out.push(Effect::Discover { run: discovery, session: id.clone() });
    }

    pub(crate) fn discovered(&mut self, run: RunId, discovery: &Discovery) {
        let Some(waiting) = self.discoveries.remove(&run) else { return };
        for (run, call) in waiting.calls {
            let outcome = self.call_crew(&waiting.session, &call, discovery);
            self.feed(&waiting.session, Input::ToolEnded { run, outcome });
        }
    }

    fn cancel(&mut self, id: &SessionId, run: RunId) {
        if self.discoveries.values_mut().any(|waiting| waiting.take(run).is_some()) {
            self.feed(id, Input::ToolEnded { run, outcome: aborted_outcome() });
            return;
        }
        if self.asked.remove(&run).is_some() {
            // The question is withdrawn.
            self.out.push(Effect::Cancel { session: id.clone(), run });
            self.feed(id, Input::ToolEnded { run, outcome: aborted_outcome() });
            return;
        }
        if !self.cancel_task(id, run) && !self.pacing.cancel(run) {
            self.out.push(Effect::Cancel { session: id.clone(), run });
        }
    }

    /// Tells the request control how requests ended, before the session hears
    /// of it and may start the next one.
    pub(crate) fn pace(&mut self, run: RunId, events: &[ModelEvent]) {
        for event in events {
            let error = match event {
                ModelEvent::Finished { .. } => None,
                ModelEvent::Failed(error) => Some(error),
                ModelEvent::Started
                | ModelEvent::BlockStart { .. }
                | ModelEvent::BlockDelta { .. }
                | ModelEvent::BlockEnd { .. }
                | ModelEvent::Usage(_)
                | ModelEvent::Identity { .. } => continue,
            };
            let retry = &self.config.settings.retry;
            self.pacing.ended(self.now, &mut self.ids, run, error, retry);
        }
    }

    /// Results that were not written go back, and those that wait behind them
    /// in the agent too, so that their order stays.
    fn refused(&mut self, id: &SessionId, deliveries: &[DeliveryId]) {
        if let Some(session) = self.sessions.get_mut(id) {
            drop(session.agent.take_results(deliveries.iter().min().copied()));
        }
        self.crew.refused(id, deliveries);
    }

    /// Carries out what the crew asked for; that may make it ask for more. It
    /// comes last in a step: the owner's next request stands before the
    /// openings of a fan-out, which delays it by nothing.
    pub(crate) fn route_crew(&mut self) {
        loop {
            let effects = self.crew.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.crew_effect(effect);
            }
        }
    }

    /// Carries out what the crew and `task` asked for, until neither asks for
    /// more: a result of either may lead to a call of the other.
    pub(crate) fn route_children(&mut self) {
        loop {
            self.route_crew();
            if self.tasks.has_effects() || !self.child_calls.is_empty() {
                self.route_tasks();
            } else {
                return;
            }
        }
    }

    fn crew_effect(&mut self, effect: CrewEffect) {
        match effect {
            CrewEffect::Open(open) => {
                let settings = self.config.settings.clone();
                let session = Session::child(&open.session, Role::Child, settings);
                self.sessions.insert(open.session.clone(), Box::new(session));
                self.out.push(Effect::OpenSession(OpenPlan::Child(open)));
            }
            CrewEffect::Prompt { session, text } => {
                let message = Message::user_text(text, self.now);
                self.feed(&session, Input::Prompt(vec![message]));
            }
            CrewEffect::Close { session, ending } => self.close(&session, ending),
            CrewEffect::Deliver { owner, results } => {
                self.feed(&owner, Input::Results(results));
            }
            CrewEffect::Note { owner, body, delivery } => {
                self.feed(&owner, Input::Note { body, delivery });
            }
            CrewEffect::Update(update) => {
                self.steers_end(&update);
                self.out.push(Effect::Update(Update::Crew(update)));
            }
        }
    }
}
