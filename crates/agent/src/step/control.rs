//! What the person sets: model, level, modes, name.

use std::sync::Arc;

use crew_base::entry::EntryBody;
use crew_base::id::{EntryId, Ids};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_base::session::RunEnd;
use crew_base::time::Time;

use super::{Agent, Step};
use crate::effect::{Effect, Update};
use crate::phase::Phase;
use crate::queue::QueueMode;

/// A change the person makes to a session.
#[derive(Clone, Debug)]
pub enum Control {
    /// Another model and the level that goes with it; counts from the next
    /// request (`host.md` 2.4.3, 3.9.3).
    Model(Arc<ModelSpec>, ThinkingLevel),
    /// Another thinking level, clamped to the model.
    Thinking(ThinkingLevel),
    /// How many steering messages enter at once.
    Steering(QueueMode),
    /// How many follow-ups enter at once.
    FollowUp(QueueMode),
    /// Whether failed requests are tried again.
    Retry(bool),
    /// Whether contexts are compacted by themselves.
    Compaction(bool),
    /// Gives up the wait for a retry; what is queued goes on (`host.md` 12.5).
    AbortRetry,
    /// A name for the session; `None` clears it.
    Name(Option<String>),
    /// A label for an entry that exists; an empty one removes it
    /// (`host.md` 2.4.5).
    Label(EntryId, String),
}

impl Agent {
    /// The queue modes in force: steering, follow-up.
    pub fn queue_modes(&self) -> (QueueMode, QueueMode) {
        (self.settings.steering, self.settings.follow_up)
    }

    /// Texts of the typed messages that wait: steering, follow-up.
    pub fn queued_texts(&self) -> (Vec<String>, Vec<String>) {
        self.queue.texts()
    }

    /// Makes a change the person asked for.
    #[must_use]
    pub fn control(&mut self, now: Time, ids: &mut Ids, control: Control) -> Vec<Effect> {
        let mut step = Step { now, ids, out: Vec::new() };
        match control {
            Control::Model(model, level) => self.change_model(&mut step, model, level),
            Control::Thinking(level) => {
                let clamped = self.model.as_ref().map_or(ThinkingLevel::Off, |m| m.clamp(level));
                self.set_level(&mut step, clamped);
            }
            Control::Steering(mode) => self.settings.steering = mode,
            Control::FollowUp(mode) => self.settings.follow_up = mode,
            Control::Retry(enabled) => self.settings.retry.enabled = enabled,
            Control::Compaction(enabled) => self.settings.compaction.enabled = enabled,
            Control::AbortRetry => self.abort_retry(&mut step),
            Control::Label(entry, label) => self.label(&mut step, entry, Some(label)),
            Control::Name(name) => {
                self.note(&mut step, EntryBody::SessionInfo { name: name.clone() }, None);
                step.update(Update::SessionInfoChanged(name));
            }
        }
        step.out
    }

    /// Uses another model from the next request on, and records it.
    pub(super) fn change_model(
        &mut self,
        step: &mut Step<'_>,
        model: Arc<ModelSpec>,
        level: ThinkingLevel,
    ) {
        let (provider, model_id) = (model.provider.clone(), model.id.clone());
        let level = model.clamp(level);
        self.model = Some(model);
        self.note(step, EntryBody::ModelChange { provider, model_id }, None);
        self.set_level(step, level);
    }

    fn set_level(&mut self, step: &mut Step<'_>, level: ThinkingLevel) {
        if level == self.thinking {
            return;
        }
        self.thinking = level;
        self.branch_level = None;
        let thinking_level = level.word().to_owned();
        self.note(step, EntryBody::ThinkingLevelChange { thinking_level }, None);
        step.update(Update::ThinkingLevelChanged(level));
    }

    fn abort_retry(&mut self, step: &mut Step<'_>) {
        let Phase::Backoff(_) = self.phase else { return };
        let (attempt, final_error) = (self.attempt, Some("the retry was cancelled".to_owned()));
        step.update(Update::RetryEnd { success: false, attempt, final_error });
        self.attempt = 0;
        if self.queue.is_empty() {
            self.settle(step, RunEnd::Ended);
        } else {
            self.restart(step);
        }
    }
}
