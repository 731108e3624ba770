//! Answers: what a stream brings, how it ends, what follows.

use std::sync::Arc;

use crew_base::entry::EntryBody;
use crew_base::id::RunId;
use crew_base::message::{AssistantMessage, Message, SharedMessage, StopReason};
use crew_base::model::{ModelError, ModelEvent, ModelSpec, ThinkingLevel};

use super::recovery::Recovery;
use super::{Agent, Step};
use crate::answer::Answer;
use crate::effect::{Effect, Update};
use crate::phase::{Backoff, Phase, Stream, TurnEnd};
use crate::retry::{self, Resend};

impl Agent {
    pub(super) fn model_events(
        &mut self,
        step: &mut Step<'_>,
        run: RunId,
        events: Vec<ModelEvent>,
    ) {
        if self.is_summarising() {
            self.summary_events(step, run, events);
            return;
        }
        for event in events {
            let Phase::Streaming(stream) = &mut self.phase else {
                return;
            };
            if stream.run != run {
                return;
            }
            // A failure may mean that the request never began, for want of a
            // written record.
            if stream.written > 0 && !matches!(event, ModelEvent::Failed(_)) {
                self.record.confirm(stream.written);
                stream.written = 0;
            }
            match event {
                ModelEvent::Finished { stop_reason, raw_stop_reason } => {
                    self.finished(step, stop_reason, raw_stop_reason);
                    return;
                }
                ModelEvent::Failed(error) => {
                    self.failed(step, error);
                    return;
                }
                ModelEvent::Started => stream.announce(step),
                ModelEvent::BlockStart { .. }
                | ModelEvent::BlockDelta { .. }
                | ModelEvent::BlockEnd { .. } => {
                    stream.announce(step);
                    if let Some(model) = &self.model {
                        stream.answer.take(model, &event);
                    }
                    let usage = stream.answer.usage().clone();
                    step.update(Update::MessageUpdate { event, usage });
                }
                ModelEvent::Usage(_) | ModelEvent::Identity { .. } => {
                    if let Some(model) = &self.model {
                        stream.answer.take(model, &event);
                    }
                }
            }
        }
    }

    fn finished(&mut self, step: &mut Step<'_>, reason: StopReason, raw: Option<String>) {
        let Some(mut stream) = self.take_stream() else {
            return;
        };
        stream.announce(step);
        let (message, error) = stream.answer.finish(step.now, reason, raw, stream.after_results);
        if let Some(error) = error {
            let message = self.store(step, message);
            self.after_failure(step, message, &error);
            return;
        }
        if message.stop_reason != StopReason::Length {
            self.recovered = false;
            self.gave_up = false;
        }
        let message = self.store(step, message);
        if self.attempt > 0 {
            let attempt = std::mem::take(&mut self.attempt);
            step.update(Update::RetryEnd { success: true, attempt, final_error: None });
        }
        self.run_tools(step, message);
    }

    fn failed(&mut self, step: &mut Step<'_>, mut error: ModelError) {
        let Some(mut stream) = self.take_stream() else {
            return;
        };
        if !stream.announced {
            match self.settings.retry.resend(stream.resends, &error, step.ids) {
                Resend::No => {}
                Resend::TooLong(text) => error.message = text,
                Resend::After(delay_ms) => {
                    stream.resend_at = Some(step.now + delay_ms);
                    self.phase = Phase::Streaming(stream);
                    return;
                }
            }
        }
        stream.announce(step);
        let mut message = stream.answer.broken(step.now, StopReason::Error, error.message.clone());
        message.raw_stop_reason.clone_from(&error.raw_stop_reason);
        let message = self.store(step, message);
        self.after_failure(step, message, &error);
    }

    /// Sends the request once more (`host.md` 3.6.9).
    pub(super) fn send_again(&mut self, step: &mut Step<'_>) {
        let Some(mut stream) = self.take_stream() else {
            return;
        };
        let Some(model) = self.model.clone() else {
            self.phase = Phase::Streaming(stream);
            return;
        };
        stream.run = self.send(step, model);
        stream.resends += 1;
        stream.resend_at = None;
        self.phase = Phase::Streaming(stream);
    }

    pub(super) fn abort_stream(&mut self, step: &mut Step<'_>, mut stream: Stream) {
        step.out.push(Effect::Cancel { run: stream.run });
        stream.announce(step);
        let text = "the request was aborted".to_owned();
        let message = stream.answer.broken(step.now, StopReason::Aborted, text);
        let message = self.store(step, message);
        self.end_turn(step, message, Vec::new(), TurnEnd::Aborted);
    }

    /// Stores the answer of a request that was aborted before it was made.
    pub(super) fn abort_unasked(&mut self, step: &mut Step<'_>) {
        let answer = match &self.model {
            Some(model) => Answer::new(model, self.thinking, step.now),
            None => Answer::without_model(self.thinking, step.now),
        };
        step.update(Update::MessageStart(Arc::new(Message::Assistant(answer.pending()))));
        let text = "the run was aborted before its first request".to_owned();
        let message = answer.broken(step.now, StopReason::Aborted, text);
        let message = self.store(step, message);
        self.end_turn(step, message, Vec::new(), TurnEnd::Aborted);
    }

    fn take_stream(&mut self) -> Option<Stream> {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        let Phase::Streaming(stream) = phase else {
            self.phase = phase;
            return None;
        };
        Some(stream)
    }

    /// Records the final answer, then tells it.
    fn store(&mut self, step: &mut Step<'_>, message: AssistantMessage) -> SharedMessage {
        let message = Message::Assistant(message);
        let (entry, shared) = self.record.append_message(step.now, step.ids, message, None);
        step.out.push(Effect::Append(entry));
        step.update(Update::MessageEnd(Arc::clone(&shared)));
        self.added.push(Arc::clone(&shared));
        shared
    }

    /// Tries again if that can help, else ends the run (`host.md` 3.6).
    fn after_failure(&mut self, step: &mut Step<'_>, message: SharedMessage, error: &ModelError) {
        let recovery = self.recover_from_error(step, &message, error);
        if recovery == Recovery::Began {
            return;
        }
        let settings = self.settings.retry;
        let retries =
            settings.enabled && recovery == Recovery::NotNeeded && retry::is_transient(error);
        if !retries || self.attempt >= settings.retries_max {
            let may_change = settings.enabled && recovery == Recovery::NotNeeded;
            if may_change && let Some(other) = self.fallbacks.pop_front() {
                self.fall_back(step, message, error, other);
                return;
            }
            if self.attempt > 0 {
                let attempt = std::mem::take(&mut self.attempt);
                let final_error = Some(error.message.clone());
                step.update(Update::RetryEnd { success: false, attempt, final_error });
            }
            self.end_turn(step, message, Vec::new(), TurnEnd::Failed);
            return;
        }
        self.attempt += 1;
        let delay_ms = settings.delay_ms(self.attempt, error);
        self.try_again(step, message, error, delay_ms);
    }

    /// Ends the loop run that failed and waits for another try without it.
    fn try_again(
        &mut self,
        step: &mut Step<'_>,
        message: SharedMessage,
        error: &ModelError,
        delay_ms: u64,
    ) {
        step.update(Update::TurnEnd { message, results: Vec::new() });
        let messages = std::mem::take(&mut self.added);
        step.update(Update::AgentEnd { messages, will_retry: true });
        step.update(Update::RetryStart {
            attempt: self.attempt,
            attempts_max: self.settings.retry.retries_max,
            delay_ms,
            error: error.message.clone(),
        });
        if let Some(target_id) = self.record.newest_entry() {
            self.note(step, EntryBody::ContextEdit { target_id, replacement: None }, None);
        }
        let until = step.now + retry::jittered(delay_ms, step.ids);
        self.phase = Phase::Backoff(Backoff { until });
    }

    /// Asks another model at once; its retries are counted anew (`task.md`
    /// TASK-SPAWN-13).
    fn fall_back(
        &mut self,
        step: &mut Step<'_>,
        message: SharedMessage,
        error: &ModelError,
        (model, level): (Arc<ModelSpec>, ThinkingLevel),
    ) {
        self.give_up_retries(step, &error.message);
        self.attempt = 1;
        self.try_again(step, message, error, 0);
        self.change_model(step, model, level);
    }
}

impl Stream {
    /// Tells the answer once, empty (`host.md` 3.1.4).
    pub(super) fn announce(&mut self, step: &mut Step<'_>) {
        if !self.announced {
            self.announced = true;
            let pending = Message::Assistant(self.answer.pending());
            step.update(Update::MessageStart(Arc::new(pending)));
        }
    }
}
