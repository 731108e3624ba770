//! Tool batches: every call of an answer gets exactly one result.

use crew_base::id::RunId;
use crew_base::json::Raw;
use crew_base::message::{Message, SharedMessage, StopReason, ToolCall, ToolResultMessage};
use crew_base::tool::{ToolOutcome, ToolProgress};

use super::recovery::Recovery;
use super::{Agent, Step};
use crate::effect::{Effect, Update};
use crate::phase::{Batch, Phase, Slot, SlotState, TurnEnd};
use crate::queue::Queued;

impl Agent {
    /// Prepares the calls of an answer in order, then starts those that can run
    /// (`host.md` 3.3.2); ends the turn if there are none.
    pub(super) fn run_tools(&mut self, step: &mut Step<'_>, answer: SharedMessage) {
        let Some(message) = answer.as_assistant() else {
            return;
        };
        let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
        let cut = message.stop_reason == StopReason::Length;
        if calls.is_empty() {
            if self.recover_from_cut(step, &answer, &[]) == Recovery::Began {
                return;
            }
            self.end_turn(step, answer, Vec::new(), TurnEnd::Stop);
            return;
        }
        let mut slots = Vec::with_capacity(calls.len());
        let mut starting: Vec<Effect> = Vec::with_capacity(calls.len());
        for call in calls {
            step.update(Update::ToolStart {
                call: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
            let state = match self.refusal(&call, cut) {
                Some(text) => {
                    let outcome = ToolOutcome::error(text);
                    ended(step, &call, &outcome, None);
                    SlotState::Ended { outcome, duration_ms: None }
                }
                None => {
                    let run = step.ids.run();
                    starting.push(Effect::RunTool { run, call: call.clone() });
                    SlotState::Running { run, started: step.now }
                }
            };
            slots.push(Slot { call, state });
        }
        step.out.append(&mut starting);
        let batch = Batch { answer, slots, aborted: false };
        self.finish_batch(step, batch);
    }

    /// Why a call cannot run (`host.md` 3.3.4, 3.3.6, 3.3.7).
    fn refusal(&self, call: &ToolCall, cut: bool) -> Option<String> {
        if cut {
            return Some(
                "the answer hit the output limit inside this call; nothing was run: \
                 make the call again, with less text in it"
                    .to_owned(),
            );
        }
        if !self.record.prompt().offers(&call.name) {
            let names: Vec<_> =
                self.record.prompt().tools.iter().map(|tool| tool.name.as_str()).collect();
            return Some(format!(
                "unknown tool `{}`; available: {}",
                call.name,
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            ));
        }
        let error = call.arguments_error.as_ref()?;
        Some(format!("the arguments of `{}` are not a JSON object: {error}", call.name))
    }

    pub(super) fn tool_progress(
        &mut self,
        step: &mut Step<'_>,
        run: RunId,
        progress: ToolProgress,
    ) {
        let Phase::Tools(batch) = &self.phase else {
            return;
        };
        let Some(at) = batch.running(run) else { return };
        let call = &batch.slots[at].call;
        step.update(Update::ToolProgress {
            call: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            progress,
        });
    }

    pub(super) fn tool_ended(&mut self, step: &mut Step<'_>, run: RunId, outcome: ToolOutcome) {
        let Phase::Tools(batch) = &mut self.phase else {
            return;
        };
        let Some(at) = batch.running(run) else { return };
        let slot = &mut batch.slots[at];
        let SlotState::Running { started, .. } = slot.state else {
            return;
        };
        let duration_ms = Some(step.now.since(started));
        ended(step, &slot.call, &outcome, duration_ms);
        slot.state = SlotState::Ended { outcome, duration_ms };
        if let Phase::Tools(batch) = std::mem::replace(&mut self.phase, Phase::Idle) {
            self.finish_batch(step, batch);
        }
    }

    /// Records the results in call order once all are there.
    fn finish_batch(&mut self, step: &mut Step<'_>, batch: Batch) {
        if !batch.is_done() {
            self.phase = Phase::Tools(batch);
            return;
        }
        let mut results = Vec::with_capacity(batch.slots.len());
        let mut all_terminate = true;
        for slot in batch.slots {
            let SlotState::Ended { outcome, duration_ms } = slot.state else {
                continue;
            };
            all_terminate &= outcome.terminate;
            let message = Message::ToolResult(ToolResultMessage {
                tool_call_id: slot.call.id,
                tool_name: slot.call.name,
                content: outcome.content,
                details: outcome.details.or_else(|| Some(Raw::empty_object())),
                is_error: outcome.is_error,
                usage: outcome.usage,
                duration_ms,
                timestamp: step.now,
            });
            results.push(self.add(step, Queued::Typed(message)));
        }
        let recovery = self.recover_from_cut(step, &batch.answer, &results);
        if recovery == Recovery::Began {
            return;
        }
        if recovery == Recovery::Exhausted {
            self.end_turn(step, batch.answer, results, TurnEnd::Stop);
            return;
        }
        let end = match (batch.aborted, all_terminate) {
            (true, _) => TurnEnd::Aborted,
            (false, true) => TurnEnd::Stop,
            (false, false) => TurnEnd::Tools,
        };
        self.end_turn(step, batch.answer, results, end);
    }
}

/// Cancels every call that runs; each still gives its one result.
pub(super) fn cancel(batch: &Batch, step: &mut Step<'_>) {
    for slot in &batch.slots {
        if let SlotState::Running { run, .. } = slot.state {
            step.out.push(Effect::Cancel { run });
        }
    }
}

pub(super) fn ended(
    step: &mut Step<'_>,
    call: &ToolCall,
    outcome: &ToolOutcome,
    duration_ms: Option<u64>,
) {
    step.update(Update::ToolEnd {
        call: call.id.clone(),
        name: call.name.clone(),
        outcome: outcome.clone(),
        duration_ms,
    });
}
