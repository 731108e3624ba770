//! Transitions of a subagent (`crew.md` LIFE; table in `style.md` 4).

use std::sync::Arc;

use serde_json::{Value, json};

use crew_base::definition::Discovery;
use crew_base::id::{Ids, SessionId, SubagentId};
use crew_base::json::Raw;
use crew_base::message::{Message, Usage};
use crew_base::session::{DeliveryId, RunEnd};
use crew_base::time::Time;
use crew_cycle::report::{FOLLOW_UP, Report};
use crew_cycle::{Cycle, Verdict};

use crate::activity::Activity;
use crate::assignment::{self, Assignment};
use crate::delivery::{Delivery, Payload};
use crate::effect::{Effect, Ending, OpenChild, UpdateKind};
use crate::roster::{Crew, Key, Owner, Refusal, Status, Subagent};

/// Where an abort comes from; each has its own text (RUN-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortOrigin {
    /// `crew_abort`.
    Tool,
    /// The person.
    Person,
    /// The host ends.
    Shutdown,
    /// The bound of `--crew-wait` was hit (`product.md` P-7).
    WaitBound,
}

impl AbortOrigin {
    /// The reason on the card.
    pub fn reason(self) -> &'static str {
        match self {
            AbortOrigin::Tool => "aborted by its owner session",
            AbortOrigin::Person => "aborted by the user",
            AbortOrigin::Shutdown => "aborted because the host ended",
            AbortOrigin::WaitBound => "aborted because the time for waiting was over",
        }
    }
}

/// What `crew_spawn` asks for, checked but for the name.
pub(crate) struct Order<'a> {
    pub(crate) name: &'a str,
    pub(crate) brief: &'a str,
    pub(crate) task: &'a Assignment,
}

/// The classes of `crew_abort` (TOOL-33).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub(crate) aborted: Vec<SubagentId>,
    pub(crate) missing: Vec<SubagentId>,
    pub(crate) foreign: Vec<SubagentId>,
}

impl Crew {
    /// Creates a subagent; checks in the order of TOOL-20. Never waits.
    pub(crate) fn spawn(
        &mut self,
        now: Time,
        ids: &mut Ids,
        owner: &Owner,
        order: &Order<'_>,
        discovery: &Discovery,
    ) -> Result<SubagentId, Refusal> {
        let Order { name, brief, task } = *order;
        let found = discovery.definitions.iter().find(|definition| definition.name == name);
        let Some(definition) = found else {
            let available = discovery.definitions.iter().map(|known| known.name.clone()).collect();
            return Err(Refusal::UnknownDefinition { name: name.to_owned(), available });
        };
        let id = self.fresh_id(ids, name);
        let session = ids.session(now);
        let brief = brief.trim().to_owned();
        let open = OpenChild {
            session: session.clone(),
            subagent: id.clone(),
            owner: owner.session.clone(),
            definition: Arc::clone(definition),
            title: assignment::title(name, &brief, id.as_str()),
            owner_model: owner.model.clone(),
        };
        let key = self.subagents.add(Subagent {
            id: id.clone(),
            owner: owner.session.clone(),
            owner_file: owner.file.clone(),
            definition: Arc::clone(definition),
            brief,
            session,
            status: Status::Running,
            model: None,
            usage: Usage::default(),
            activity: Activity::default(),
            settled: None,
            is_open: false,
            assignment: Some(task.prompt()),
            cycle: Cycle::default(),
            cycle_began: now,
            worked_ms: 0,
        });
        self.out.push(Effect::Open(Box::new(open)));
        self.tell(key, UpdateKind::Spawned);
        Ok(id)
    }

    /// The child session exists; its first prompt is the assignment.
    pub fn opened(&mut self, session: &SessionId, model: &str) {
        let Some(at) = self.at(session) else { return };
        let subagent = &mut self.subagents[at];
        subagent.is_open = true;
        subagent.model = Some(model.to_owned());
        if let Some(text) = subagent.assignment.take() {
            self.out.push(Effect::Prompt { session: session.clone(), text });
        }
    }

    /// Preparation failed (TOOL-25, MOD-2, MOD-11).
    pub fn open_failed(&mut self, now: Time, session: &SessionId, error: &str) {
        if let Some(at) = self.at(session) {
            self.settle_error(now, at, error.to_owned());
        }
    }

    /// A child recorded a message.
    pub fn child_message(&mut self, session: &SessionId, message: &Message) {
        let Some(at) = self.at(session) else { return };
        let subagent = &mut self.subagents[at];
        subagent.cycle.message(message);
        match message {
            Message::Assistant(answer) => {
                subagent.usage.add(&answer.usage);
                subagent.model = Some(format!("{}/{}", answer.provider, answer.model));
            }
            // What its `task` children cost (`task.md` OBS-5).
            Message::ToolResult(result) => {
                result.usage.iter().for_each(|usage| subagent.usage.add(usage));
            }
            Message::System(_)
            | Message::User(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => {}
        }
    }

    /// A child spent tokens outside its answers, on a summary (ACT-6).
    pub fn child_usage(&mut self, session: &SessionId, usage: &Usage) {
        if let Some(at) = self.at(session) {
            self.subagents[at].usage.add(usage);
        }
    }

    /// A tool started in a child (ACT-3).
    pub fn child_tool_started(
        &mut self,
        session: &SessionId,
        call: &crew_base::id::CallId,
        tool: &str,
        arguments: &Raw,
        home: Option<&str>,
    ) {
        let Some(at) = self.at(session) else { return };
        self.subagents[at].activity.start(call, tool, arguments, home);
        if tool == crew_cycle::report::REPORT_TOOL {
            return;
        }
        let (tool, target) = crate::activity::target(tool, arguments, home);
        self.tell(at, UpdateKind::Activity { tool, target });
    }

    /// A tool ended in a child (ACT-4).
    pub fn child_tool_ended(
        &mut self,
        session: &SessionId,
        call: &crew_base::id::CallId,
        outcome: &crew_base::tool::ToolOutcome,
    ) {
        let Some(at) = self.at(session) else { return };
        self.subagents[at].activity.end(call, outcome.is_error, &outcome.content);
    }

    /// A child's prompt call ended: its cycle is judged (RES-12 to RES-18).
    pub fn child_settled(&mut self, now: Time, session: &SessionId, end: &RunEnd) {
        let Some(at) = self.at(session) else { return };
        if self.subagents[at].status != Status::Running {
            return;
        }
        match self.subagents[at].cycle.judge(end) {
            Verdict::Accepted(report) => self.settle_report(now, at, report),
            Verdict::FollowUp => {
                let text = FOLLOW_UP.to_owned();
                self.out.push(Effect::Prompt { session: session.clone(), text });
            }
            Verdict::Failed(error) => self.settle_error(now, at, error),
            Verdict::Aborted(reason) => self.settle_abort(now, at, reason),
        }
    }

    /// Starts a new cycle with exactly this message (TOOL-26 to TOOL-28).
    pub fn respond(
        &mut self,
        now: Time,
        owner: &SessionId,
        id: &SubagentId,
        message: &str,
    ) -> Result<(), Refusal> {
        let at = self.awaiting(owner, id)?;
        let subagent = &mut self.subagents[at];
        subagent.status = Status::Running;
        subagent.cycle = Cycle::default();
        subagent.cycle_began = now;
        let session = subagent.session.clone();
        let is_open = subagent.is_open;
        self.tell(at, UpdateKind::Responded);
        if is_open {
            self.out.push(Effect::Prompt { session, text: message.to_owned() });
        } else {
            self.settle_error(now, at, "its session is no longer there".to_owned());
        }
        Ok(())
    }

    /// Closes a subagent that awaits its owner; delivers nothing (TOOL-30).
    pub fn done(&mut self, owner: &SessionId, id: &SubagentId) -> Result<(), Refusal> {
        let at = self.awaiting(owner, id)?;
        self.remove(at, None);
        Ok(())
    }

    /// Aborts the named ones that are open and owned (TOOL-32, TOOL-33).
    pub(crate) fn abort_ids(&mut self, now: Time, owner: &SessionId, ids: &[String]) -> Aborted {
        let mut classes = Aborted::default();
        let mut seen: Vec<&str> = Vec::new();
        for id in ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty()) {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let id = SubagentId::new(id);
            match self.owned(owner, &id) {
                Ok(at) => {
                    self.settle_abort(now, at, AbortOrigin::Tool.reason().to_owned());
                    classes.aborted.push(id);
                }
                Err(Refusal::ForeignSubagent(_)) => classes.foreign.push(id),
                Err(_) => classes.missing.push(id),
            }
        }
        classes
    }

    /// Aborts one open subagent of an owner (`terminal.md` TERM-44).
    pub fn abort_one(
        &mut self,
        now: Time,
        owner: &SessionId,
        id: &SubagentId,
        origin: AbortOrigin,
    ) -> Result<(), Refusal> {
        let at = self.owned(owner, id)?;
        self.settle_abort(now, at, origin.reason().to_owned());
        Ok(())
    }

    /// Aborts every open subagent of an owner.
    pub fn abort_all(
        &mut self,
        now: Time,
        owner: &SessionId,
        origin: AbortOrigin,
    ) -> Vec<SubagentId> {
        let ids: Vec<_> = self.open_of(owner).map(|subagent| subagent.id.clone()).collect();
        for id in &ids {
            if let Ok(at) = self.owned(owner, id) {
                self.settle_abort(now, at, origin.reason().to_owned());
            }
        }
        ids
    }

    /// Ends everything at quit: nothing is written to any owner (RUN-5).
    pub fn quit(&mut self, now: Time) {
        self.attached = None;
        self.flush_pending = false;
        while let Some(at) = self.subagents.find(|_| true) {
            let running = self.subagents[at].status == Status::Running;
            let ending = running.then(|| {
                let reason = AbortOrigin::Shutdown.reason().to_owned();
                self.ending(now, at, Status::Aborted, reason)
            });
            self.remove(at, ending);
        }
        self.queues.clear();
        self.handed.clear();
    }

    /// Closes what awaits an owner, as at the end of print mode (RUN-12).
    pub fn close_awaiting(&mut self, owner: &SessionId) {
        let awaiting =
            |subagent: &Subagent| subagent.owner == *owner && subagent.status.awaits_owner();
        while let Some(at) = self.subagents.find(awaiting) {
            self.remove(at, None);
        }
    }

    /// A child session was lost while its subagent waited.
    pub fn session_lost(&mut self, session: &SessionId) {
        if let Some(at) = self.at(session) {
            self.subagents[at].is_open = false;
        }
    }

    fn at(&self, session: &SessionId) -> Option<Key> {
        self.subagents.of_session(session)
    }

    fn settle_report(&mut self, now: Time, at: Key, report: Report) {
        let (status, text) = match &report {
            Report::Completed { report } => (Status::Completed, report.clone()),
            Report::NeedsInput { needs, .. } => (Status::NeedsInput, needs.clone()),
        };
        self.finish_cycle(now, at, status, text);
        let subagent = &self.subagents[at];
        let result = serde_json::to_value(&report).unwrap_or(Value::Null);
        let content = json!({
            "subagent_id": subagent.id, "brief": subagent.brief, "result": result,
        });
        let details = json!({
            "subagentId": subagent.id, "subagent": subagent.definition.name,
            "brief": subagent.brief, "status": status.word(), "result": result,
        });
        self.deliver(
            now,
            at,
            Payload::Result { content: content.to_string(), details: Raw::of(&details) },
        );
    }

    fn settle_error(&mut self, now: Time, at: Key, error: String) {
        let ending = self.ending(now, at, Status::Error, error.clone());
        self.finish_cycle(now, at, Status::Error, error.clone());
        let subagent = &self.subagents[at];
        let content = json!({
            "subagent_id": subagent.id, "brief": subagent.brief, "status": "error", "error": error,
        });
        let details = card(subagent, &ending);
        self.deliver(now, at, Payload::Result { content: content.to_string(), details });
        self.remove(at, Some(ending));
    }

    fn settle_abort(&mut self, now: Time, at: Key, reason: String) {
        let ending = self.ending(now, at, Status::Aborted, reason.clone());
        self.finish_cycle(now, at, Status::Aborted, reason);
        let data = card(&self.subagents[at], &ending);
        self.deliver(now, at, Payload::Abort { data });
        self.remove(at, Some(ending));
    }

    fn ending(&self, now: Time, at: Key, status: Status, text: String) -> Ending {
        let subagent = &self.subagents[at];
        let facts = subagent.cycle.facts().clone();
        Ending { status, text, facts, worked_ms: subagent.worked_ms(now) }
    }

    fn finish_cycle(&mut self, now: Time, at: Key, status: Status, text: String) {
        let subagent = &mut self.subagents[at];
        subagent.worked_ms = subagent.worked_ms(now);
        subagent.status = status;
        subagent.settled = Some(text.clone());
        let usage = subagent.usage.clone();
        self.tell(at, UpdateKind::Settled { text, usage });
    }

    fn deliver(&mut self, now: Time, at: Key, payload: Payload) {
        let subagent = &self.subagents[at];
        let has_usage = subagent.usage != Usage::default();
        let usage = has_usage.then(|| {
            let usage = serde_json::to_value(&subagent.usage).unwrap_or(Value::Null);
            Raw::of(&json!({"subagentId": subagent.id, "usage": usage}))
        });
        let delivery = Delivery {
            id: DeliveryId(0),
            owner: subagent.owner.clone(),
            subagent: subagent.id.clone(),
            queued: now,
            payload,
            usage,
            told: self.update(at, UpdateKind::Delivered),
        };
        self.route(delivery);
    }

    fn remove(&mut self, at: Key, ending: Option<Ending>) {
        self.tell(at, UpdateKind::Closed);
        let Some(subagent) = self.subagents.remove(at) else { return };
        self.out.push(Effect::Close { session: subagent.session, ending });
    }
}

/// Data of an error or abort card (DEL-4, DEL-6).
fn card(subagent: &Subagent, ending: &Ending) -> Raw {
    let mut data = json!({
        "subagentId": subagent.id, "subagent": subagent.definition.name, "brief": subagent.brief,
    });
    if let (Value::Object(data), Value::Object(ending)) = (&mut data, ending.json()) {
        data.extend(ending);
    }
    Raw::of(&data)
}
