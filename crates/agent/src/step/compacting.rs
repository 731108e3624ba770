//! Compactions: when one starts, its requests, its end (`host.md` 3.8).
//!
//! Nothing of a compaction stands in the record before all of its summary is
//! there. What is to be summarised is planned in `crate::compaction`.

use std::sync::Arc;

use crew_base::entry::EntryBody;
use crew_base::message::{AssistantMessage, Message};
use crew_base::model::ModelSpec;
use crew_base::session::RunEnd;

use super::{Agent, Step};
use crate::compaction::{
    CompactionOverrides, CompactionReason, CompactionResult, CompactionSettings, CompactionSizes,
    Plan, summary,
};
use crate::effect::{Effect, Update};
use crate::overflow::{Shortage, shortage};
use crate::phase::{After, Asked, Compacting, Phase, Then, TurnEnd};
use crate::queue::Queued;

/// A compaction that is to begin.
pub(super) struct Due {
    pub(super) reason: CompactionReason,
    pub(super) plan: Plan,
    pub(super) model: Arc<ModelSpec>,
}

/// A compaction that the person asked for while something ran.
#[derive(Clone, Debug)]
pub(super) struct Manual {
    focus: Option<String>,
}

/// How a compaction ended.
pub(super) enum End {
    Done { result: Box<CompactionResult> },
    Failed { error: String },
    Aborted,
}

impl Agent {
    /// Whether a compaction runs (`host.md` 7.3.1 `isCompacting`).
    pub fn is_compacting(&self) -> bool {
        matches!(self.phase, Phase::Compacting(_))
    }

    /// Makes this the session of a subagent: whether it compacts by itself is
    /// said by its definition (`crew.md` CAT-18), and what would be compacted
    /// after its last answer is compacted before its next prompt (`product.md`
    /// P-14h).
    pub fn become_child(&mut self, compaction: bool) {
        self.settings.compaction.enabled = compaction;
        self.compacts_after_runs = false;
    }

    /// Tokens of the context as the provider counted them, with an estimate of
    /// what came after; `None` after a compaction until the next usable answer
    /// (`host.md` 7.3.2).
    pub fn context_tokens(&self) -> Option<u64> {
        self.record.is_measured().then(|| self.record.context_tokens())
    }

    /// The compaction that the threshold asks for now, if any (3.8.1, 3.8.3);
    /// having nothing to compact is no error.
    pub(super) fn due_by_threshold(&self) -> Option<Due> {
        let is_due = self.may_compact() && self.is_past_threshold();
        if is_due { self.due(CompactionReason::Threshold) } else { None }
    }

    /// As [`Agent::due_by_threshold`], after a loop run: a whole answer to a
    /// prompt that was larger than the window counts as an overflow (3.8.5).
    pub(super) fn due_after_loop(&self) -> Option<Due> {
        if !self.compacts_after_runs || !self.may_compact() {
            return None;
        }
        let newest = self.record.newest_answer().and_then(|message| message.as_assistant());
        let is_silent = newest.zip(self.model.as_deref()).is_some_and(|(answer, model)| {
            is_of(answer, model) && shortage(answer, model) == Some(Shortage::Silent)
        });
        if is_silent { self.due(CompactionReason::Overflow) } else { self.due_by_threshold() }
    }

    fn may_compact(&self) -> bool {
        self.settings.compaction.enabled && !self.gave_up && self.record.has_fresh_answer()
    }

    fn is_past_threshold(&self) -> bool {
        let window = self.model.as_ref().map_or(0, |model| model.context_window);
        // Sizes that are no numbers are told when somebody asks (1.3.8).
        let Ok(sizes) = self.compaction_sizes() else { return false };
        let room = window.saturating_sub(sizes.reserve_tokens);
        window > 0 && self.record.context_tokens() > room
    }

    /// The sizes for the model in use, or why they cannot be used (1.3.8).
    pub(super) fn compaction_sizes(&self) -> Result<CompactionSizes, String> {
        let CompactionOverrides { models, error } = &self.settings.compaction_overrides;
        let model = self.model.as_ref().filter(|_| !models.is_empty());
        if let Some(sizes) = model.and_then(|model| models.get(&model.reference())) {
            return sizes.clone();
        }
        let CompactionSettings { reserve_tokens, keep_recent_tokens, .. } =
            self.settings.compaction;
        match error {
            Some(error) => Err(error.clone()),
            None => Ok(CompactionSizes { reserve_tokens, keep_recent_tokens }),
        }
    }

    fn due(&self, reason: CompactionReason) -> Option<Due> {
        let keep = self.compaction_sizes().ok()?.keep_recent_tokens;
        let plan = self.record.plan(keep, &[]).ok()?;
        Some(Due { reason, plan, model: self.model.clone()? })
    }

    /// Aborts what runs and compacts then (3.8.16).
    pub(super) fn compact(&mut self, step: &mut Step<'_>, focus: Option<String>) {
        self.drop_manual(step);
        if self.is_idle() {
            self.compact_manually(step, focus);
        } else {
            self.manual = Some(Manual { focus });
            self.abort(step);
        }
    }

    /// Starts a compaction that the person asked for, or says why not.
    fn compact_manually(&mut self, step: &mut Step<'_>, focus: Option<String>) {
        let reason = CompactionReason::Manual;
        let planned = self.compaction_sizes().and_then(|sizes| {
            let plan = self.record.plan(sizes.keep_recent_tokens, &[]);
            plan.map_err(|nothing| nothing.text().to_owned())
        });
        let error = match (planned, self.model.clone()) {
            (Ok(plan), Some(model)) => {
                self.begin_compaction(step, Due { reason, plan, model }, After::Manual, focus);
                return;
            }
            (Err(error), _) => error,
            (Ok(_), None) => "no model is selected".to_owned(),
        };
        step.update(Update::CompactionStart { reason });
        tell_end(step, reason, &End::Failed { error }, false);
        self.rest(step, RunEnd::Ended);
    }

    pub(super) fn begin_compaction(
        &mut self,
        step: &mut Step<'_>,
        due: Due,
        after: After,
        focus: Option<String>,
    ) {
        step.update(Update::CompactionStart { reason: due.reason });
        let compacting = Compacting {
            reason: due.reason,
            plan: due.plan,
            after,
            focus,
            answers: Vec::new(),
            asked: Asked::new(due.model),
        };
        self.ask_for_part(step, compacting);
    }

    /// Asks for the next part of the summary (3.8.10).
    pub(super) fn ask_for_part(&mut self, step: &mut Step<'_>, mut compacting: Compacting) {
        let plan = &compacting.plan;
        let Some(part) = plan.parts.get(compacting.answers.len()) else {
            self.store_compaction(step, compacting);
            return;
        };
        let focus = compacting.focus.as_deref();
        let text = summary::request(part, plan.previous.as_deref(), focus);
        self.ask_for_summary(step, &mut compacting.asked, text);
        self.phase = Phase::Compacting(Box::new(compacting));
    }

    /// A part of the summary is there, or failed for good.
    pub(super) fn part_ended(
        &mut self,
        step: &mut Step<'_>,
        mut compacting: Compacting,
        result: Result<String, String>,
    ) {
        match result {
            Ok(text) => {
                compacting.answers.push(text);
                self.ask_for_part(step, compacting);
            }
            Err(error) => self.end_compaction(step, compacting, End::Failed { error }),
        }
    }

    /// Records the compaction, after dropping the attempt it recovers from
    /// (3.8.5, 3.8.14).
    fn store_compaction(&mut self, step: &mut Step<'_>, compacting: Compacting) {
        let Compacting { plan, answers, asked, after, .. } = &compacting;
        if let After::Retry(omitted) = after {
            for target_id in omitted.clone() {
                self.note(step, EntryBody::ContextEdit { target_id, replacement: None }, None);
            }
        }
        let Plan { parts, previous, files, .. } = plan;
        let text = summary::assemble(parts, answers, previous.as_deref(), files);
        let usage = asked.cost();
        let (entry, result) = self.record.compact(step.now, step.ids, plan, text, usage);
        step.out.push(Effect::Append(entry));
        self.end_compaction(step, compacting, End::Done { result: Box::new(result) });
    }

    /// Cancels a compaction (3.5.1, `crew.md` CTX-32).
    pub(super) fn abort_compaction(&mut self, step: &mut Step<'_>, compacting: Compacting) {
        compacting.asked.cancel(step);
        self.end_compaction(step, compacting, End::Aborted);
    }

    /// A failure of the host ends a compaction; gives what it was made for.
    pub(super) fn break_compaction(
        &mut self,
        step: &mut Step<'_>,
        mut compacting: Compacting,
        error: &str,
    ) -> After {
        compacting.asked.cancel(step);
        compacting.asked.forget_retries(step);
        let error = error.to_owned();
        tell_end(step, compacting.reason, &End::Failed { error }, false);
        compacting.after
    }

    fn end_compaction(&mut self, step: &mut Step<'_>, mut compacting: Compacting, end: End) {
        compacting.asked.forget_retries(step);
        let is_done = matches!(end, End::Done { .. });
        let will_retry = is_done && matches!(compacting.after, After::Retry(_));
        tell_end(step, compacting.reason, &end, will_retry);
        self.gave_up = !is_done && compacting.reason != CompactionReason::Manual;
        self.phase = Phase::Idle;
        for held in std::mem::take(&mut self.held) {
            self.add(step, Queued::Typed(Message::Custom(held)));
        }
        let is_aborted = matches!(end, End::Aborted);
        match compacting.after {
            After::Manual if is_aborted => self.rest(step, RunEnd::Aborted),
            After::Manual => self.rest(step, RunEnd::Ended),
            After::Start(starting) => self.start_after(step, starting, is_aborted),
            After::Turn(_) if is_aborted => self.boundary(step, Then::TurnEnded(TurnEnd::Aborted)),
            After::Turn(turn) => self.boundary(step, Then::TurnEnded(turn)),
            After::Retry(_) if is_done => self.begin_loop(step, Vec::new()),
            After::Retry(_) | After::Loop if is_aborted => {
                self.give_up_retries(step, "the compaction was cancelled");
                self.settle(step, RunEnd::Aborted);
            }
            After::Retry(_) | After::Loop => {
                self.give_up_retries(step, "the compaction failed");
                self.go_on(step);
            }
        }
    }

    /// Starts the run that a compaction came before. Results of the crew wait
    /// in the queue meanwhile, so that a detach can take them (P-14c). A prompt
    /// that was aborted before its request is recorded like one aborted at it.
    fn start_after(&mut self, step: &mut Step<'_>, starting: Vec<Queued>, is_aborted: bool) {
        if starting.is_empty() && is_aborted {
            self.settle(step, RunEnd::Aborted);
            return;
        }
        if starting.is_empty() && !self.queue.has_results() {
            self.settle(step, RunEnd::Ended);
            return;
        }
        self.aborted_early = is_aborted;
        self.begin_loop(step, starting);
    }

    pub(super) fn give_up_retries(&mut self, step: &mut Step<'_>, error: &str) {
        if self.attempt > 0 {
            let attempt = std::mem::take(&mut self.attempt);
            let final_error = Some(error.to_owned());
            step.update(Update::RetryEnd { success: false, attempt, final_error });
        }
    }

    /// Forgets a compaction that was asked for and has not begun.
    pub(super) fn drop_manual(&mut self, step: &mut Step<'_>) {
        if self.manual.take().is_some() {
            tell_end(step, CompactionReason::Manual, &End::Aborted, false);
        }
    }

    /// What comes after a run or a manual compaction: a compaction that was
    /// asked for meanwhile (3.8.16), else rest.
    pub(super) fn rest(&mut self, step: &mut Step<'_>, end: RunEnd) {
        self.phase = Phase::Idle;
        self.add_held(step);
        match (self.manual.take(), &end) {
            (None, _) => step.out.push(Effect::Settled(end)),
            (Some(_), RunEnd::Failed(error)) => {
                let failed = End::Failed { error: error.clone() };
                tell_end(step, CompactionReason::Manual, &failed, false);
                step.out.push(Effect::Settled(end));
            }
            (Some(manual), RunEnd::Ended | RunEnd::Aborted) => {
                self.compact_manually(step, manual.focus);
            }
        }
    }
}

/// Whether an answer was made by this model (3.8.5, 11.58).
pub(super) fn is_of(answer: &AssistantMessage, model: &ModelSpec) -> bool {
    answer.provider == model.provider && answer.model == model.id
}

pub(super) fn tell_end(step: &mut Step<'_>, reason: CompactionReason, end: &End, will_retry: bool) {
    let (result, error) = match end {
        End::Done { result } => (Some(result.as_ref().clone()), None),
        End::Failed { error } => (None, Some(error.clone())),
        End::Aborted => (None, None),
    };
    let aborted = matches!(end, End::Aborted);
    step.update(Update::CompactionEnd { reason, result, aborted, will_retry, error });
}
