//! Ends from outside: an abort, and failures of the host.

use std::sync::Arc;

use crew_base::id::EntryId;
use crew_base::message::{Message, SharedMessage, StopReason};
use crew_base::session::RunEnd;
use crew_base::tool::ToolOutcome;

use super::{Agent, Step, tools};
use crate::answer::Answer;
use crate::effect::{Effect, Update};
use crate::phase::{After, Phase, SlotState, Stream, Then, TurnEnd};

impl Agent {
    /// Stops what runs (`host.md` 3.5): a request at once, tools when each has
    /// given its result, a wait without a trace, and at a boundary what would
    /// follow it.
    pub(super) fn abort(&mut self, step: &mut Step<'_>) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::Streaming(stream) => self.abort_stream(step, stream),
            Phase::Tools(mut batch) => {
                tools::cancel(&batch, step);
                batch.aborted = true;
                self.phase = Phase::Tools(batch);
            }
            Phase::Backoff(_) => {
                step.update(Update::RetryEnd {
                    success: false,
                    attempt: self.attempt,
                    final_error: Some("the retry was cancelled".to_owned()),
                });
                self.settle(step, RunEnd::Aborted);
            }
            Phase::Compacting(compacting) => self.abort_compaction(step, *compacting),
            Phase::Moving(moving) => self.abort_move(step, *moving),
            Phase::Boundary(Then::Start(starting)) => {
                self.aborted_early = true;
                self.phase = Phase::Boundary(Then::Start(starting));
            }
            Phase::Boundary(Then::TurnEnded(_)) => {
                self.phase = Phase::Boundary(Then::TurnEnded(TurnEnd::Aborted));
            }
        }
    }

    /// Takes back what was not written (`host.md` 2.2.4) and ends the run that
    /// wrote it.
    pub(super) fn append_failed(&mut self, step: &mut Step<'_>, entry: &EntryId, error: String) {
        let Some(refused) = self.record.undo(entry) else {
            return;
        };
        if !refused.is_empty() {
            step.out.push(Effect::Refused(refused));
        }
        if !self.is_idle() {
            self.fail(step, error);
        }
    }

    /// Takes back one entry and goes on without it, where only a request that
    /// said nothing yet stands behind it.
    pub(super) fn append_lost(&mut self, step: &mut Step<'_>, entry: &EntryId, error: String) {
        let is_last = self.record.leaf() == Some(entry);
        let Phase::Streaming(Stream { run, announced: false, after_results, .. }) = &self.phase
        else {
            return self.append_failed(step, entry, error);
        };
        let (run, after_results) = (*run, *after_results);
        if !is_last {
            return self.append_failed(step, entry, error);
        }
        if self.record.undo(entry).is_some() {
            self.added.pop();
            step.out.push(Effect::Cancel { run });
            self.request(step, after_results);
        }
    }

    /// A failure of the host ends the run without waiting for what it started
    /// (`host.md` 3.1.10). Its message is told and not stored, because the
    /// record may be what failed.
    pub(super) fn fail(&mut self, step: &mut Step<'_>, error: String) {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        match phase {
            Phase::Backoff(_) => {
                let (attempt, final_error) = (self.attempt, Some(error.clone()));
                step.update(Update::RetryEnd { success: false, attempt, final_error });
                self.settle(step, RunEnd::Failed(error));
                return;
            }
            Phase::Streaming(mut stream) => {
                step.out.push(Effect::Cancel { run: stream.run });
                stream.announce(step);
                self.tell_failure(step, stream.answer, &error);
            }
            Phase::Tools(batch) => {
                tools::cancel(&batch, step);
                for slot in &batch.slots {
                    if let SlotState::Running { .. } = slot.state {
                        let outcome = ToolOutcome::error("the run ended before this call");
                        tools::ended(step, &slot.call, &outcome, None);
                    }
                }
                self.tell_new_failure(step, &error);
            }
            Phase::Compacting(compacting) => {
                match self.break_compaction(step, *compacting, &error) {
                    After::Turn(_) => {
                        step.update(Update::TurnStart);
                        self.tell_new_failure(step, &error);
                    }
                    After::Manual => {
                        self.rest(step, RunEnd::Failed(error));
                        return;
                    }
                    After::Start(_) | After::Loop | After::Retry(_) => {
                        self.give_up_retries(step, &error);
                        self.settle(step, RunEnd::Failed(error));
                        return;
                    }
                }
            }
            Phase::Moving(moving) => {
                self.break_move(step, *moving, error);
                return;
            }
            Phase::Idle | Phase::Boundary(_) => self.tell_new_failure(step, &error),
        }
        let messages = std::mem::take(&mut self.added);
        step.update(Update::AgentEnd { messages, will_retry: false });
        self.settle(step, RunEnd::Failed(error));
    }

    fn tell_new_failure(&mut self, step: &mut Step<'_>, error: &str) {
        let answer = match &self.model {
            Some(model) => Answer::new(model, self.thinking, step.now),
            None => Answer::without_model(self.thinking, step.now),
        };
        let pending: SharedMessage = Arc::new(Message::Assistant(answer.pending()));
        step.update(Update::MessageStart(pending));
        self.tell_failure(step, answer, error);
    }

    fn tell_failure(&mut self, step: &mut Step<'_>, answer: Answer, error: &str) {
        let message = answer.broken(step.now, StopReason::Error, error.to_owned());
        let message: SharedMessage = Arc::new(Message::Assistant(message));
        self.added.push(Arc::clone(&message));
        step.update(Update::MessageEnd(Arc::clone(&message)));
        step.update(Update::TurnEnd { message, results: Vec::new() });
    }
}
