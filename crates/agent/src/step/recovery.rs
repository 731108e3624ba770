//! Recovery from a context that was too long (`host.md` 3.7, 3.8.5).

use std::sync::Arc;

use crew_base::message::SharedMessage;
use crew_base::model::ModelError;

use super::compacting::{Due, End, is_of, tell_end};
use super::{Agent, Step};
use crate::compaction::CompactionReason;
use crate::effect::Update;
use crate::overflow::{Shortage, is_overflow, shortage};
use crate::phase::After;

/// What was done about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// A compaction began; the request is made again after it.
    Began,
    /// It was the second one for the same message: the run stops.
    Exhausted,
    /// It was no shortage, or there is nothing to compact.
    NotNeeded,
}

impl Agent {
    /// Recovers from a failed answer whose error says that the context is too
    /// long.
    pub(super) fn recover_from_error(
        &mut self,
        step: &mut Step<'_>,
        answer: &SharedMessage,
        error: &ModelError,
    ) -> Recovery {
        let provider = self.model.as_ref().map_or("", |model| model.provider.as_str());
        if is_overflow(provider, error) {
            self.recover(step, answer, &[])
        } else {
            Recovery::NotNeeded
        }
    }

    /// Recovers from an answer that was cut before the model's own limit.
    pub(super) fn recover_from_cut(
        &mut self,
        step: &mut Step<'_>,
        answer: &SharedMessage,
        results: &[SharedMessage],
    ) -> Recovery {
        let cut = answer.as_assistant().zip(self.model.as_deref());
        if cut.is_some_and(|(answer, model)| shortage(answer, model) == Some(Shortage::Cut)) {
            self.recover(step, answer, results)
        } else {
            Recovery::NotNeeded
        }
    }

    /// The answer and its results are the newest messages of the record.
    fn recover(
        &mut self,
        step: &mut Step<'_>,
        answer: &SharedMessage,
        results: &[SharedMessage],
    ) -> Recovery {
        let Some(model) = self.model.clone() else { return Recovery::NotNeeded };
        let is_own = answer.as_assistant().is_some_and(|answer| is_of(answer, &model));
        if !self.settings.compaction.enabled || !is_own {
            return Recovery::NotNeeded;
        }
        if self.recovered {
            self.gave_up = true;
            let error = "the context is still too long after it was compacted; \
                         start a new session or use a model with a larger window"
                .to_owned();
            tell_end(step, CompactionReason::Overflow, &End::Failed { error }, false);
            return Recovery::Exhausted;
        }
        let omitted = self.record.newest_entries(1 + results.len());
        let Ok(sizes) = self.compaction_sizes() else { return Recovery::NotNeeded };
        let keep = sizes.keep_recent_tokens;
        let Ok(plan) = self.record.plan(keep, &omitted) else { return Recovery::NotNeeded };
        self.recovered = true;
        let (message, results) = (Arc::clone(answer), results.to_vec());
        step.update(Update::TurnEnd { message, results });
        let messages = std::mem::take(&mut self.added);
        step.update(Update::AgentEnd { messages, will_retry: false });
        let due = Due { reason: CompactionReason::Overflow, plan, model };
        self.begin_compaction(step, due, After::Retry(omitted), None);
        Recovery::Began
    }
}
