//! What the simulated models say.

use crew_base::id::{Ids, SessionId};
use crew_base::message::{Block, StopReason, ThinkingBlock};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent};
use crew_engine::Engine;
use serde_json::{Value, json};

use super::compaction::{overflow, used};
use crate::fixtures::{block, call, failed, finished, usage};

/// Draws replies; marks make every typed text and every report unique.
#[derive(Default)]
pub(super) struct Script {
    calls: u64,
    marks: u64,
    /// Subagents that are closed.
    pub(super) gone: Vec<String>,
}

/// One reply: batches of events, in order.
pub(super) type Reply = Vec<Vec<ModelEvent>>;

impl Script {
    /// A text nobody wrote before; `§` begins what [`super::checks`] looks for.
    pub(super) fn mark(&mut self, word: &str) -> String {
        self.marks += 1;
        format!("§{word}-{}", self.marks)
    }

    /// A reply for an owner: crew tools on real, wrong and foreign ids.
    pub(super) fn owner(
        &mut self,
        rng: &mut Ids,
        engine: &Engine,
        id: &SessionId,
        calm: bool,
        uses_task: bool,
    ) -> Reply {
        if calm {
            return self.text("settled");
        }
        if let Some(reply) = fault(rng) {
            return reply;
        }
        let mut calls = Vec::new();
        for _ in 0..rng.below(4) {
            calls.push(self.owner_call(rng, engine, id));
        }
        if uses_task && rng.below(3) == 0 {
            calls.push(self.task_call(rng));
        }
        if calls.is_empty() { done(rng) } else { self.reply(rng, calls) }
    }

    fn owner_call(
        &mut self,
        rng: &mut Ids,
        engine: &Engine,
        id: &SessionId,
    ) -> (&'static str, Value) {
        let known: Vec<_> = match rng.below(10) {
            0 => engine.crew().all().map(|subagent| subagent.id.to_string()).collect(),
            1 => self.gone.clone(),
            _ => engine.subagents(id).into_iter().map(|view| view.subagent).collect(),
        };
        let any = |rng: &mut Ids| match known.len() {
            0 => "scout-00000000".to_owned(),
            count => known[rng.below(count as u64) as usize].clone(),
        };
        match rng.below(12) {
            0..=3 => {
                let name = if rng.below(10) == 0 { "nobody" } else { "scout" };
                let task = json!({"goal": self.mark("goal"), "context": [], "instructions": ["i"]});
                ("crew_spawn", json!({"subagent": name, "brief": "b", "task": task}))
            }
            4 => ("crew_list", json!({})),
            5 => ("crew_status", json!({})),
            6 | 7 => {
                let message = self.mark("more");
                ("crew_respond", json!({"subagent_id": any(rng), "message": message}))
            }
            8 => ("crew_done", json!({"subagent_id": any(rng)})),
            9 if rng.below(3) == 0 => ("crew_abort", json!({"all": true})),
            9 => ("crew_abort", json!({"subagent_ids": [any(rng), any(rng)]})),
            10 => ("missing_tool", json!({})),
            _ => ("bash", json!({"command": "true"})),
        }
    }

    /// A reply for a child: work, good and bad reports, silence.
    pub(super) fn child(&mut self, rng: &mut Ids, calm: bool, uses_task: bool) -> Reply {
        if !calm && let Some(reply) = fault(rng) {
            return reply;
        }
        if !calm && uses_task && rng.below(6) == 0 {
            let call = self.task_call(rng);
            return self.reply(rng, vec![call]);
        }
        let choice = if calm { 0 } else { rng.below(14) };
        match choice {
            0..=4 => {
                let report = self.report(rng);
                self.reply(rng, vec![report])
            }
            5..=7 => {
                let count = 1 + rng.below(3);
                let calls = (0..count).map(|_| ("bash", json!({"command": "true"}))).collect();
                self.reply(rng, calls)
            }
            8 => self
                .reply(rng, vec![("crew_report", json!({"outcome": "completed", "report": " "}))]),
            9 => {
                let report = self.report(rng);
                self.reply(rng, vec![report, ("bash", json!({}))])
            }
            10 => self.text("I stop here."),
            11 => thoughts(),
            12 => self.reply(rng, vec![("crew_spawn", json!({"subagent": "scout"}))]),
            _ => {
                let first = self.report(rng);
                let second = self.report(rng);
                self.reply(rng, vec![first, second])
            }
        }
    }

    /// A call of `task`, now and then a malformed one.
    fn task_call(&mut self, rng: &mut Ids) -> (&'static str, Value) {
        let mut item = || {
            let name = ["k0", "k1", ""][rng.below(3) as usize];
            let mut item = json!({"name": name, "task": "look", "isolated": rng.below(6) == 0});
            match rng.below(20) {
                0..=4 => item["outputSchema"] = json!({"type": "object", "required": ["n"]}),
                5 => item["agent"] = json!("nobody"),
                _ => {}
            }
            if rng.below(3) == 0 {
                item["schemaMode"] = json!("strict");
            }
            item
        };
        let items: Vec<_> = match self.calls % 7 {
            0 => Vec::new(),
            1 | 2 => (0..2).map(|_| item()).collect(),
            _ => vec![item()],
        };
        ("task", json!({"context": "c", "tasks": items}))
    }

    /// A reply for a child of `task`: work, commands in the background, and
    /// every way to hand in or not to.
    pub(super) fn kid(&mut self, rng: &mut Ids, calm: bool) -> Reply {
        if !calm && let Some(reply) = fault(rng) {
            return reply;
        }
        let good = || ("yield", json!({"data": {"n": 1}}));
        let job = || ("bash", json!({"command": "true", "background": true}));
        let calls = match if calm { 0 } else { rng.below(16) } {
            0..=3 => vec![good()],
            4 => vec![("yield", json!({"data": {"m": 1}}))],
            5 => vec![("yield", json!({"data": 1, "error": "both"}))],
            6 => vec![("yield", json!({"type": ["n"], "data": 2}))],
            7 => vec![("yield", json!({"error": "no way"}))],
            8 => return self.text("I think I am done."),
            9 => vec![("bash", json!({"command": "true"})), ("bash", json!({"command": "true"}))],
            10 => vec![job()],
            11 => vec![job(), good()],
            12 => vec![("wait", json!({}))],
            13 => vec![self.task_call(rng)],
            14 => vec![("crew_spawn", json!({"subagent": "scout"})), good()],
            _ => vec![good(), ("bash", json!({"command": "true"})), ("wait", json!({}))],
        };
        self.reply(rng, calls)
    }

    fn report(&mut self, rng: &mut Ids) -> (&'static str, Value) {
        let report = self.mark("report");
        if rng.below(3) == 0 {
            ("crew_report", json!({"outcome": "needs_input", "report": report, "needs": "?"}))
        } else {
            ("crew_report", json!({"outcome": "completed", "report": report}))
        }
    }

    fn text(&mut self, text: &str) -> Reply {
        vec![
            vec![ModelEvent::Started],
            block(0, Block::text(text)).into(),
            vec![usage(), finished(StopReason::Stop)],
        ]
    }

    fn reply(&mut self, rng: &mut Ids, calls: Vec<(&'static str, Value)>) -> Reply {
        let mut batches = vec![vec![ModelEvent::Started]];
        for (index, (name, arguments)) in calls.into_iter().enumerate() {
            self.calls += 1;
            let mut call = call(&format!("call-{}", self.calls), name, &arguments);
            if rng.below(30) == 0 {
                call.arguments_error = Some("scripted: not closed".to_owned());
            }
            batches.push(block(index, Block::ToolCall(call)).into());
        }
        let cut = rng.below(30) == 0;
        let reason = if cut { StopReason::Length } else { StopReason::ToolUse };
        batches.push(vec![used(rng), finished(reason)]);
        if rng.below(20) == 0 {
            batches.truncate(1 + rng.below(batches.len() as u64 - 1) as usize);
            batches.push(vec![error(rng)]);
        }
        batches
    }
}

fn done(rng: &mut Ids) -> Reply {
    let text = Block::text("done for now");
    let end = vec![used(rng), finished(StopReason::Stop)];
    vec![vec![ModelEvent::Started], block(0, text).into(), end]
}

fn thoughts() -> Reply {
    let thinking = ThinkingBlock { thinking: "hm".to_owned(), ..ThinkingBlock::default() };
    let thinking = Block::Thinking(thinking);
    vec![vec![ModelEvent::Started], block(0, thinking).into(), vec![finished(StopReason::Stop)]]
}

/// A failure before any content, or an empty answer.
fn fault(rng: &mut Ids) -> Option<Reply> {
    match rng.below(40) {
        0 => Some(vec![vec![ModelEvent::Started], vec![finished(StopReason::Stop)]]),
        1..=4 => Some(vec![vec![error(rng)]]),
        _ => None,
    }
}

fn error(rng: &mut Ids) -> ModelEvent {
    let (kind, status) = match rng.below(10) {
        9 => return overflow(),
        0 => (ModelErrorKind::Overloaded, Some(529)),
        1 => (ModelErrorKind::RateLimit, Some(429)),
        2 => (ModelErrorKind::Idle, None),
        3 => (ModelErrorKind::Provider, Some(400)),
        4 => (ModelErrorKind::Truncated, None),
        5 => (ModelErrorKind::Connection, None),
        6 => (ModelErrorKind::Credential, Some(401)),
        7 => (ModelErrorKind::MalformedCall, None),
        _ => (ModelErrorKind::Refusal, None),
    };
    let retry_after_ms = (rng.below(3) == 0).then(|| 1000 * rng.below(90));
    let text = "scripted failure";
    ModelEvent::Failed(ModelError { status, retry_after_ms, ..ModelError::new(kind, text) })
}

/// What a request gets whose record was not written.
pub(super) fn unwritten() -> ModelEvent {
    failed(ModelErrorKind::Connection, None)
}
