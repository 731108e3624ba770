//! Requests for summaries, of compactions and of branches that are left: one
//! attempt after the other within one budget (`host.md` 3.8.10, 3.6.8).
//!
//! Must never store a summary: `step::compacting` and `step::moving` do.

use std::sync::Arc;

use crew_base::id::RunId;
use crew_base::message::{AssistantMessage, Content, Message, StopReason, SystemMessage, Usage};
use crew_base::model::{CacheRetention, ModelError, ModelEvent, ModelRequest, ToolChoice};
use crew_base::text::is_blank;

use super::{Agent, Step};
use crate::answer::Answer;
use crate::compaction::summary;
use crate::effect::{Effect, Update};
use crate::phase::{Asked, Phase, Stage};
use crate::retry;

impl Agent {
    /// Whether a summary is being made.
    pub(super) fn is_summarising(&self) -> bool {
        self.is_compacting() || self.is_moving()
    }

    /// Asks for a summary with this text.
    pub(super) fn ask_for_summary(&self, step: &mut Step<'_>, asked: &mut Asked, text: String) {
        let instruction = SystemMessage {
            content: Content::Text(summary::SYSTEM.to_owned()),
            timestamp: step.now,
            ..SystemMessage::default()
        };
        let run = step.ids.run();
        let request = ModelRequest {
            session: self.session.clone(),
            messages: vec![
                Arc::new(Message::System(instruction)),
                Arc::new(Message::user_text(text, step.now)),
            ],
            thinking: asked.model.clamp(self.thinking),
            cache: CacheRetention::None,
            tool_choice: ToolChoice::Auto,
            model: Arc::clone(&asked.model),
        };
        step.out.push(Effect::StartModel { run, request });
        let answer = Answer::new(&asked.model, self.thinking, step.now);
        let written = self.record.unconfirmed();
        asked.stage = Stage::Asking { run, answer: Box::new(answer), written };
    }

    /// Takes what a summary request brings.
    pub(super) fn summary_events(
        &mut self,
        step: &mut Step<'_>,
        from: RunId,
        events: Vec<ModelEvent>,
    ) {
        for event in events {
            let Some(asked) = self.phase.asked() else { return };
            let Stage::Asking { run, answer, written } = &mut asked.stage else { return };
            if *run != from {
                return;
            }
            if *written > 0 && !matches!(event, ModelEvent::Failed(_)) {
                self.record.confirm(std::mem::take(written));
            }
            match event {
                ModelEvent::Finished { stop_reason, raw_stop_reason } => {
                    self.summary_finished(step, stop_reason, raw_stop_reason);
                    return;
                }
                ModelEvent::Failed(error) => {
                    self.summary_failed(step, &error);
                    return;
                }
                ModelEvent::Started
                | ModelEvent::BlockStart { .. }
                | ModelEvent::BlockDelta { .. }
                | ModelEvent::BlockEnd { .. }
                | ModelEvent::Usage(_)
                | ModelEvent::Identity { .. } => answer.take(&asked.model, &event),
            }
        }
    }

    fn summary_finished(&mut self, step: &mut Step<'_>, reason: StopReason, raw: Option<String>) {
        let Some(asked) = self.phase.asked() else { return };
        let stage = std::mem::replace(&mut asked.stage, Stage::Planned);
        let Stage::Asking { answer, .. } = stage else {
            asked.stage = stage;
            return;
        };
        let (message, error) = answer.finish(step.now, reason, raw, false);
        if let Some(error) = error {
            self.summary_failed(step, &error);
            return;
        }
        let text = message.text();
        if let Some(error) = flaw(&message, &text) {
            self.summary_ended(step, Err(error));
            return;
        }
        asked.usage.add(&message.usage);
        asked.forget_retries(step);
        self.summary_ended(step, Ok(text));
    }

    /// Summaries have the budget and the waits of all requests (3.6.8).
    fn summary_failed(&mut self, step: &mut Step<'_>, error: &ModelError) {
        let settings = self.settings.retry;
        let Some(asked) = self.phase.asked() else { return };
        let retries = settings.enabled && retry::is_transient(error);
        if !retries || asked.attempt >= settings.retries_max {
            self.summary_ended(step, Err(error.message.clone()));
            return;
        }
        asked.attempt += 1;
        let delay_ms = settings.delay_ms(asked.attempt, error);
        step.update(Update::SummaryRetryScheduled {
            attempt: asked.attempt,
            attempts_max: settings.retries_max,
            delay_ms,
            error: error.message.clone(),
        });
        let until = step.now + retry::jittered(delay_ms, step.ids);
        asked.stage = Stage::Waiting(until);
    }

    fn summary_ended(&mut self, step: &mut Step<'_>, result: Result<String, String>) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Compacting(compacting) => self.part_ended(step, *compacting, result),
            Phase::Moving(moving) => self.branch_summarised(step, *moving, result),
            other @ (Phase::Idle
            | Phase::Boundary(_)
            | Phase::Streaming(_)
            | Phase::Tools(_)
            | Phase::Backoff(_)) => self.phase = other,
        }
    }

    /// The wait before another try at a summary is over.
    pub(super) fn summary_tick(&mut self, step: &mut Step<'_>) {
        if self.phase.summary_due().is_none_or(|until| step.now < until) {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Compacting(compacting) => {
                step.update(Update::SummaryRetryStart { reason: Some(compacting.reason) });
                self.ask_for_part(step, *compacting);
            }
            Phase::Moving(moving) => {
                step.update(Update::SummaryRetryStart { reason: None });
                self.ask_about_branch(step, *moving);
            }
            other @ (Phase::Idle
            | Phase::Boundary(_)
            | Phase::Streaming(_)
            | Phase::Tools(_)
            | Phase::Backoff(_)) => self.phase = other,
        }
    }
}

impl Asked {
    pub(super) fn cancel(&self, step: &mut Step<'_>) {
        if let Stage::Asking { run, .. } = &self.stage {
            step.out.push(Effect::Cancel { run: *run });
        }
    }

    pub(super) fn forget_retries(&mut self, step: &mut Step<'_>) {
        if std::mem::take(&mut self.attempt) > 0 {
            step.update(Update::SummaryRetryFinished);
        }
    }

    /// What the requests cost, if a provider said so.
    pub(super) fn cost(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then(|| self.usage.clone())
    }
}

/// Why an answer is no summary (3.8.10).
fn flaw(message: &AssistantMessage, text: &str) -> Option<String> {
    let why = if message.stop_reason == StopReason::Length {
        "the summary hit the output limit"
    } else if message.tool_calls().next().is_some() {
        "the model called a tool instead of writing a summary"
    } else if is_blank(text) {
        "the model gave no summary"
    } else {
        return None;
    };
    Some(why.to_owned())
}
