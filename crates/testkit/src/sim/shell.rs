//! What effects do: the fake shell and its faults.

use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{RunId, SessionId};
use crew_base::message::{Content, Message, ToolResultMessage};
use crew_base::model::{ModelRequest, ThinkingLevel};
use crew_base::tool::{ToolDefinition, ToolOutcome, ToolProgress};
use crew_engine::api::task::{Phase, TASK_TOOL};
use crew_engine::api::{CrewUpdate, MoveEnd, SessionUpdate, Update, UpdateKind};
use crew_engine::{Effect, Event, OpenPlan, Opened};

use serde_json::Value;

use super::compaction;
use super::reference::field;
use super::script::unwritten;
use super::world::{Origin, World};
use crate::fixtures;

impl World {
    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), String> {
        if self.exited {
            return Err("an effect after the exit".to_owned());
        }
        match effect {
            Effect::OpenSession(plan) => self.open_session(plan)?,
            Effect::Append { session, entry } => self.append(session, entry)?,
            Effect::StartModel { session, run, request } => {
                self.may_start(&session)?;
                if self.owners.contains(&session) && self.engine.attached() != Some(&session) {
                    return Err(format!("a run started in the detached owner {session}"));
                }
                if request.session != session {
                    // For a commit message: it belongs to no conversation.
                    wording(&request)?;
                } else if compaction::is_summary(&request) {
                    compaction::check(&request).map_err(|error| format!("{session}: {error}"))?;
                } else if !self.broken.contains_key(&session) {
                    self.checks.request(&session, &request)?;
                }
                self.stream(&session, run, &request);
            }
            Effect::RunTool { session, run, call } => {
                self.may_start(&session)?;
                self.runs_outside(&session, &call)?;
                self.tool(session, run);
            }
            Effect::Discover { run, session } => {
                self.may_start(&session)?;
                let origin = self.other();
                let discovery = Arc::new(fixtures::discovery(&["scout"]));
                self.push(origin, Event::Discovered { run, discovery });
            }
            Effect::ReadBranch { session, run, from, to } => {
                let origin = self.other();
                // What stands behind a failed entry ends as failed.
                let result = if self.broken.contains_key(&session) {
                    Err("scripted: the session could not be written".to_owned())
                } else {
                    self.disk.branch(&session, from.as_ref(), &to).map(Box::new)
                };
                self.push(origin, Event::BranchRead { session, run, result });
            }
            Effect::Cancel { session, run } => self.cancel(session, run),
            Effect::Task(work) => self.task_work(work)?,
            Effect::CloseSession { session } => {
                if !self.open.remove(&session) {
                    return Err(format!("{session} was closed twice, or never opened"));
                }
                self.hung.retain(|_, owner| *owner != session);
                self.closes(&session);
                self.broken.remove(&session);
                if let Some(at) = self.owners.iter().position(|owner| *owner == session) {
                    self.left.push(self.owners.remove(at));
                }
            }
            Effect::Update(update) => self.update(&update)?,
            Effect::Exit => self.exited = true,
        }
        Ok(())
    }

    pub(super) fn may_start(&self, session: &SessionId) -> Result<(), String> {
        if !self.open.contains(session) {
            return Err(format!("work starts in {session}, which is not open"));
        }
        if self.quitting { Err(format!("work starts in {session} after quit")) } else { Ok(()) }
    }

    fn open_session(&mut self, plan: OpenPlan) -> Result<(), String> {
        let (session, tools, odds) = match plan {
            OpenPlan::Owner { session, .. } => (session, fixtures::owner_tools(), 12),
            OpenPlan::Child(open) => (open.session, fixtures::child_tools(), 15),
            OpenPlan::Task(open) => {
                self.kids.opens(self.now, &open)?;
                (open.session.clone(), fixtures::task_tools(&open), 15)
            }
        };
        if self.quitting || !self.open.insert(session.clone()) {
            return Err(format!("{session} is opened twice, or after quit"));
        }
        let is_first = self.owners.len() == 1;
        let result = if !self.calm && !is_first && self.rng.below(odds) == 0 {
            self.summary.faults += 1;
            Err("scripted: no credential".to_owned())
        } else {
            Ok(Box::new(self.prepare(&session, tools)))
        };
        let origin = self.other();
        self.push(origin, Event::SessionOpened { session, result });
        Ok(())
    }

    fn prepare(&mut self, session: &SessionId, tools: Vec<ToolDefinition>) -> Opened {
        let opened = fixtures::opened(&format!("/sessions/{session}.jsonl"), tools);
        if let Some(loaded) = self.disk.load(session) {
            self.checks.reopened(session);
            return Opened { loaded, is_new: false, ..opened };
        }
        let is_stored = self.disk.has(session) || self.rng.below(5) > 0;
        if is_stored && self.owners.contains(session) {
            self.disk.create(session);
        }
        let others = if self.kids.contains(session) { self.rng.below(3) } else { 0 };
        let other = |_| (fixtures::model("other"), ThinkingLevel::Low);
        let fallbacks = (0..others).map(other).collect();
        Opened { file: opened.file.clone().filter(|_| is_stored), fallbacks, ..opened }
    }

    /// Writes an entry, or fails and breaks what follows in that session.
    fn append(&mut self, session: SessionId, entry: Entry) -> Result<(), String> {
        if !self.open.contains(&session) {
            return Err(format!("an entry for {session}, which is not open"));
        }
        let is_owner = self.owners.contains(&session);
        if let EntryBody::Message { message } = &entry.body
            && !is_owner
            && !self.kids.contains(&session)
        {
            self.reference.child_message(&session, message)?;
        }
        if is_message(&entry.body) && self.engine.attached() == Some(&session) {
            self.grammar.appended();
        }
        if self.broken.contains_key(&session) {
            self.reference.not_recorded(self.now, &session, &entry.body);
            return Ok(());
        }
        let is_delivery = matches!(&entry.body,
            EntryBody::Custom { custom_type, .. } | EntryBody::CustomMessage { custom_type, .. }
                if custom_type != "crew-status");
        let odds = if is_delivery { 40 } else { 400 };
        if !self.calm && self.rng.below(odds) == 0 {
            self.summary.faults += 1;
            self.checks.torn(&session);
            self.reference.not_recorded(self.now, &session, &entry.body);
            self.broken.insert(session.clone(), entry.id.clone());
            let error = "scripted: disk full".to_owned();
            let origin = self.other();
            self.push(origin, Event::AppendFailed { session, entry: entry.id, error });
            return Ok(());
        }
        self.checks.written(&session, &entry)?;
        self.disk.write(self.now, &session, &entry);
        self.recorded(&session, &entry.body)
    }

    fn recorded(&mut self, session: &SessionId, body: &EntryBody) -> Result<(), String> {
        match body {
            EntryBody::CustomMessage { custom_type, content: Content::Text(text), .. }
                if custom_type == "crew-result" =>
            {
                self.may_deliver(session)?;
                self.reference.result_recorded(self.now, session, text)
            }
            EntryBody::Custom { custom_type, data: Some(data) } if custom_type == "crew-abort" => {
                self.may_deliver(session)?;
                let subagent = field(data.text(), "subagentId");
                self.reference.abort_recorded(self.now, session, &subagent)
            }
            EntryBody::Compaction { .. } => {
                self.summary.compactions += 1;
                Ok(())
            }
            EntryBody::Message { message: Message::ToolResult(result) } => {
                self.call_recorded(session, result)
            }
            _ => Ok(()),
        }
    }

    fn may_deliver(&self, session: &SessionId) -> Result<(), String> {
        if self.quitting || self.engine.attached() != Some(session) {
            return Err(format!("{session} was written to while it is not attached"));
        }
        Ok(())
    }

    /// Only an owner spawns for itself and acts on its own subagents.
    fn call_recorded(
        &mut self,
        session: &SessionId,
        result: &ToolResultMessage,
    ) -> Result<(), String> {
        if result.tool_name == TASK_TOOL {
            self.summary.task_results += 1;
            return self.kids.call_ended(self.now, session, result);
        }
        if result.is_error {
            return Ok(());
        }
        let text: String = result.content.iter().filter_map(|block| block.as_text()).collect();
        match result.tool_name.as_str() {
            "crew_spawn" => self.reference.spawned(session, &field(&text, "subagent_id")),
            "crew_respond" | "crew_done" => {
                self.reference.acted(session, &field(&text, "subagent_id"))
            }
            "crew_abort" => {
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                let ids = value["aborted_ids"].as_array().into_iter().flatten();
                ids.filter_map(Value::as_str).try_for_each(|id| self.reference.acted(session, id))
            }
            _ => Ok(()),
        }
    }

    fn stream(&mut self, session: &SessionId, run: RunId, request: &ModelRequest) {
        if self.broken.contains_key(session) {
            let events = vec![unwritten()];
            self.push(Origin::Run(run), Event::Model { session: session.clone(), run, events });
            return;
        }
        let reply = if compaction::is_summary(request) {
            compaction::reply(&mut self.rng, self.calm)
        } else if self.owners.contains(session) {
            let uses = self.kids.is_used;
            self.script.owner(&mut self.rng, &self.engine, session, self.calm, uses)
        } else if self.kids.contains(session) {
            self.script.kid(&mut self.rng, self.calm)
        } else {
            self.script.child(&mut self.rng, self.calm, self.kids.is_used)
        };
        for events in reply {
            self.push(Origin::Run(run), Event::Model { session: session.clone(), run, events });
        }
    }

    fn tool(&mut self, session: SessionId, run: RunId) {
        if self.broken.contains_key(&session) {
            let outcome = ToolOutcome::error("scripted: the record is not written");
            self.push(Origin::Run(run), Event::ToolEnded { session, run, outcome });
            return;
        }
        if !self.calm && self.rng.below(12) == 0 {
            self.summary.faults += 1;
            self.hung.insert(run, session);
            return;
        }
        if self.rng.below(4) == 0 {
            let progress = ToolProgress { content: Vec::new(), details: None };
            self.push(
                Origin::Run(run),
                Event::ToolProgress { session: session.clone(), run, progress },
            );
        }
        let outcome = if self.rng.below(6) == 0 {
            ToolOutcome::error("scripted failure")
        } else {
            ToolOutcome::text("ok")
        };
        self.push(Origin::Run(run), Event::ToolEnded { session, run, outcome });
    }

    /// A stream goes silent, or says something late; a tool ends as aborted,
    /// unless it hangs in a host that ends.
    fn cancel(&mut self, session: SessionId, run: RunId) {
        if self.quitting && self.hung.contains_key(&run) && self.rng.below(2) == 0 {
            return;
        }
        let is_tool = self.hung.remove(&run).is_some()
            || self.flights.get(&Origin::Run(run)).is_some_and(|queue| {
                queue.iter().any(|event| matches!(event, Event::ToolEnded { .. }))
            });
        if is_tool {
            self.flights.remove(&Origin::Run(run));
            let outcome = ToolOutcome::error("the operation was aborted");
            self.push(Origin::Run(run), Event::ToolEnded { session, run, outcome });
        } else if self.rng.below(2) == 0 {
            self.flights.remove(&Origin::Run(run));
        }
    }

    fn update(&mut self, update: &Update) -> Result<(), String> {
        match update {
            Update::Crew(crew) => self.crew_update(crew),
            Update::Task(update) => {
                self.summary.task_children += u64::from(update.phase == Phase::Started);
                self.kids.told(update)
            }
            Update::AtRest(session) => {
                self.rested = Some(session.clone());
                self.reference.rests(self.now, session)
            }
            Update::Answered { command, .. } => self.checks.answered(*command),
            Update::Session { session, update } => {
                if let SessionUpdate::MoveEnd(end) = update {
                    let is_broken = self.broken.contains_key(session);
                    self.checks.moved(session, end, is_broken);
                    self.summary.moves += u64::from(matches!(end, MoveEnd::Moved(_)));
                }
                self.grammar.take(update).map_err(|error| format!("{session}: {error}"))
            }
            _ => Ok(()),
        }
    }

    fn crew_update(&mut self, update: &CrewUpdate) -> Result<(), String> {
        self.checks.crew(update)?;
        let torn = self.checks.is_torn(&update.session);
        self.reference.crew(self.now, update, torn)?;
        if update.kind == UpdateKind::Spawned {
            self.summary.spawned += 1;
        }
        if update.kind == UpdateKind::Closed {
            self.script.gone.push(update.subagent.to_string());
        }
        Ok(())
    }
}

fn is_message(body: &EntryBody) -> bool {
    matches!(body, EntryBody::Message { .. } | EntryBody::CustomMessage { .. })
}

/// What asks for a commit message offers nothing to call (`task.md` ISO-9).
fn wording(request: &ModelRequest) -> Result<(), String> {
    let calls = request.messages.iter().any(
        |message| matches!(&**message, Message::System(system) if !system.tools_added.is_empty()),
    );
    if calls { Err("a request for a commit message offers tools".to_owned()) } else { Ok(()) }
}
