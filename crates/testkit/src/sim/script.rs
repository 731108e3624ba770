//! What the simulated models say.

use crew_base::id::{CallId, Ids, SessionId};
use crew_base::json::Raw;
use crew_base::message::{Block, StopReason, ToolCall, Usage};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent};
use crew_engine::Engine;
use serde_json::{Value, json};

/// Draws replies; markers make every report unique.
pub(super) struct Script {
    calls: u64,
    reports: u64,
}

/// One reply: batches of events, in order.
pub(super) type Reply = Vec<Vec<ModelEvent>>;

impl Script {
    pub(super) fn new() -> Script {
        Script { calls: 0, reports: 0 }
    }

    /// A reply for an owner: crew tools on real, wrong and foreign ids.
    pub(super) fn owner(
        &mut self,
        rng: &mut Ids,
        engine: &Engine,
        id: &SessionId,
        calm: bool,
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
        if calls.is_empty() { self.text("done for now") } else { self.reply(rng, calls) }
    }

    fn owner_call(
        &mut self,
        rng: &mut Ids,
        engine: &Engine,
        id: &SessionId,
    ) -> (&'static str, Value) {
        let known: Vec<_> = if rng.below(8) == 0 {
            engine.crew().all().map(|subagent| subagent.id.to_string()).collect()
        } else {
            engine.subagents(id).into_iter().map(|view| view.subagent).collect()
        };
        let any = |rng: &mut Ids| match known.len() {
            0 => "scout-00000000".to_owned(),
            count => known[rng.below(count as u64) as usize].clone(),
        };
        let task = json!({"goal": "g", "context": [], "instructions": ["i"]});
        match rng.below(12) {
            0..=3 => {
                let name = if rng.below(10) == 0 { "nobody" } else { "scout" };
                ("crew_spawn", json!({"subagent": name, "brief": "b", "task": task}))
            }
            4 => ("crew_list", json!({})),
            5 => ("crew_status", json!({})),
            6 | 7 => ("crew_respond", json!({"subagent_id": any(rng), "message": "go on"})),
            8 => ("crew_done", json!({"subagent_id": any(rng)})),
            9 if rng.below(3) == 0 => ("crew_abort", json!({"all": true})),
            9 => ("crew_abort", json!({"subagent_ids": [any(rng), any(rng)]})),
            10 => ("missing_tool", json!({})),
            _ => ("bash", json!({"command": "true"})),
        }
    }

    /// A reply for a child: work, good and bad reports, silence.
    pub(super) fn child(&mut self, rng: &mut Ids, calm: bool) -> Reply {
        if !calm && let Some(reply) = fault(rng) {
            return reply;
        }
        let choice = if calm { 0 } else { rng.below(12) };
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
            _ => {
                let first = self.report(rng);
                let second = self.report(rng);
                self.reply(rng, vec![first, second])
            }
        }
    }

    fn report(&mut self, rng: &mut Ids) -> (&'static str, Value) {
        self.reports += 1;
        let report = format!("REPORT-{}", self.reports);
        if rng.below(3) == 0 {
            ("crew_report", json!({"outcome": "needs_input", "report": report, "needs": "?"}))
        } else {
            ("crew_report", json!({"outcome": "completed", "report": report}))
        }
    }

    fn text(&mut self, text: &str) -> Reply {
        vec![
            vec![ModelEvent::Started],
            block(0, &Block::text(text)),
            vec![usage(), finished(StopReason::Stop)],
        ]
    }

    fn reply(&mut self, rng: &mut Ids, calls: Vec<(&'static str, Value)>) -> Reply {
        let mut batches = vec![vec![ModelEvent::Started]];
        for (index, (name, arguments)) in calls.into_iter().enumerate() {
            self.calls += 1;
            let call = ToolCall {
                id: CallId::new(format!("call-{}", self.calls)),
                name: name.to_owned(),
                arguments: Raw::of(&arguments),
                thought_signature: None,
                namespace: None,
                arguments_error: None,
            };
            batches.push(block(index, &Block::ToolCall(call)));
        }
        let cut = rng.below(30) == 0;
        let reason = if cut { StopReason::Length } else { StopReason::ToolUse };
        batches.push(vec![usage(), finished(reason)]);
        if rng.below(20) == 0 {
            batches.truncate(1 + rng.below(batches.len() as u64) as usize);
            batches.push(vec![failed(ModelErrorKind::Truncated, None)]);
        }
        batches
    }
}

fn fault(rng: &mut Ids) -> Option<Reply> {
    let error = match rng.below(40) {
        0 => failed(ModelErrorKind::Overloaded, Some(529)),
        1 => failed(ModelErrorKind::RateLimit, Some(429)),
        2 => failed(ModelErrorKind::Idle, None),
        3 => failed(ModelErrorKind::Provider, Some(400)),
        4 => return Some(vec![vec![ModelEvent::Started], vec![finished(StopReason::Stop)]]),
        _ => return None,
    };
    Some(vec![vec![error]])
}

fn block(index: usize, block: &Block) -> Vec<ModelEvent> {
    vec![
        ModelEvent::BlockStart { index, block: block.clone() },
        ModelEvent::BlockEnd { index, block: block.clone() },
    ]
}

fn usage() -> ModelEvent {
    ModelEvent::Usage(Usage { input: 10, output: 1, total_tokens: 11, ..Usage::default() })
}

fn finished(stop_reason: StopReason) -> ModelEvent {
    ModelEvent::Finished { stop_reason, raw_stop_reason: None }
}

pub(super) fn failed(kind: ModelErrorKind, status: Option<u16>) -> ModelEvent {
    ModelEvent::Failed(ModelError { status, ..ModelError::new(kind, "scripted failure") })
}
