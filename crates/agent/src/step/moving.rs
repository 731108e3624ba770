//! Moves in the session tree (`host.md` 2.8.2, 2.8.3): both branches are read,
//! what is left is summarised if that is wanted, then the leaf moves.
//!
//! Nothing of the session changes before all of it is there, so a move that
//! fails or is cancelled leaves the leaf where it was. What is summarised is
//! said in `crate::branch`.

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, RunId};
use crew_base::session::RunEnd;

use super::{Agent, Step};
use crate::branch::{self, Branch, BranchWish};
use crate::compaction::summary::{self, Files, Part};
use crate::effect::{Effect, MoveEnd, Moved, Update};
use crate::phase::{Asked, MoveStage, Moving, Phase};

/// Stands for the leaf of a session that had none (`host.md` 2.4).
const ROOT: &str = "root";

/// The summary of a branch, ready to be stored.
struct Summary {
    part: Part,
    answer: String,
    files: Files,
    asked: Box<Asked>,
}

impl Agent {
    /// Whether the session is on its way to another place in its tree.
    pub fn is_moving(&self) -> bool {
        matches!(self.phase, Phase::Moving(_))
    }

    /// Sets out for an entry; only while idle.
    pub(super) fn navigate(
        &mut self,
        step: &mut Step<'_>,
        target: EntryId,
        wish: Option<BranchWish>,
        label: Option<String>,
    ) {
        if !crew_base::invariant!(self.is_idle(), "a move begins only while idle") {
            tell(step, MoveEnd::Failed("the session is busy".to_owned()));
            return;
        }
        if self.record.leaf() == Some(&target) {
            let moved = Moved { leaf: Some(target.clone()), draft: None, summary: None };
            self.label(step, target, label);
            self.end_move(step, MoveEnd::Moved(Box::new(moved)));
            return;
        }
        let run = step.ids.run();
        let from = self.record.leaf().cloned();
        step.out.push(Effect::ReadBranch { run, from, to: target.clone() });
        let stage = MoveStage::Reading { run };
        self.phase = Phase::Moving(Box::new(Moving { target, wish, label, stage }));
    }

    /// Both branches were read.
    pub(super) fn branch_read(
        &mut self,
        step: &mut Step<'_>,
        from: RunId,
        result: Result<Box<Branch>, String>,
    ) {
        let Some(moving) = self.take_move() else { return };
        if !matches!(moving.stage, MoveStage::Reading { run } if run == from) {
            self.phase = Phase::Moving(Box::new(moving));
            return;
        }
        let branch = match result {
            Ok(branch) => branch,
            Err(error) => return self.end_move(step, MoveEnd::Failed(error)),
        };
        if moving.wish.is_none() {
            return self.arrive(step, (moving.target, moving.label), *branch, None);
        }
        let window = self.model.as_ref().map_or(0, |model| model.context_window);
        let budget = branch::budget(window, self.settings.branch_reserve_tokens);
        match (branch::plan(&branch.left, budget), self.model.clone()) {
            (Ok(None), _) => self.arrive(step, (moving.target, moving.label), *branch, None),
            (Err(branch::TooLarge), _) => {
                let error = "the newest message of the branch is too large for the model; \
                             move without a summary";
                self.end_move(step, MoveEnd::Failed(error.to_owned()));
            }
            (Ok(Some(_)), None) => {
                self.end_move(step, MoveEnd::Failed("no model is selected".to_owned()));
            }
            (Ok(Some((part, files))), Some(model)) => {
                step.update(Update::BranchSummaryStart);
                let asked = Box::new(Asked::new(model));
                let stage = MoveStage::Summarising { branch, part, files, asked };
                self.ask_about_branch(step, Moving { stage, ..moving });
            }
        }
    }

    /// Asks for the summary of what is left.
    pub(super) fn ask_about_branch(&mut self, step: &mut Step<'_>, mut moving: Moving) {
        if let MoveStage::Summarising { part, asked, .. } = &mut moving.stage {
            let focus = moving.wish.as_ref().and_then(|wish| wish.instructions.as_deref());
            let text = summary::request(part, None, focus);
            self.ask_for_summary(step, asked, text);
        }
        self.phase = Phase::Moving(Box::new(moving));
    }

    /// The summary is there, or failed for good.
    pub(super) fn branch_summarised(
        &mut self,
        step: &mut Step<'_>,
        moving: Moving,
        result: Result<String, String>,
    ) {
        let Moving { target, label, stage, .. } = moving;
        let MoveStage::Summarising { branch, part, files, mut asked } = stage else { return };
        asked.forget_retries(step);
        match result {
            Err(error) => self.end_move(step, MoveEnd::Failed(error)),
            Ok(answer) => {
                let summary = Summary { part, answer, files, asked };
                self.arrive(step, (target, label), *branch, Some(summary));
            }
        }
    }

    /// The leaf moves; then the summary and the label are recorded (2.8.3).
    fn arrive(
        &mut self,
        step: &mut Step<'_>,
        (target, label): (EntryId, Option<String>),
        branch: Branch,
        summary: Option<Summary>,
    ) {
        let from = self.record.leaf().cloned();
        self.record.go_to(branch.leaf, branch.context);
        self.branch_level = Some(branch.thinking);
        self.recovered = false;
        self.gave_up = false;
        let summary = summary.map(|summary| self.store_branch(step, from, summary));
        let labelled = summary.as_ref().map_or(target, |entry| entry.id.clone());
        self.label(step, labelled, label);
        let leaf = self.record.leaf().cloned();
        let moved = Moved { leaf, draft: branch.draft, summary };
        self.end_move(step, MoveEnd::Moved(Box::new(moved)));
    }

    fn store_branch(
        &mut self,
        step: &mut Step<'_>,
        from: Option<EntryId>,
        summary: Summary,
    ) -> Entry {
        let Summary { part, answer, files, asked } = summary;
        let text = summary::assemble(&[part], &[answer], None, &files);
        let body = EntryBody::BranchSummary {
            from_id: from.map_or_else(|| ROOT.to_owned(), |leaf| leaf.to_string()),
            summary: text,
            details: Some(files.details()),
            usage: asked.cost(),
            from_hook: Some(false),
        };
        let entry = self.record.append_branch_summary(step.now, step.ids, body);
        step.out.push(Effect::Append(entry.clone()));
        entry
    }

    /// Labels an entry; an empty label removes the one in force (2.4.5).
    pub(super) fn label(&mut self, step: &mut Step<'_>, target_id: EntryId, label: Option<String>) {
        if let Some(label) = label {
            let label = Some(label).filter(|label| !label.is_empty());
            self.note(step, EntryBody::Label { target_id, label }, None);
        }
    }

    /// Records the level in force if the branch that was gone to implies
    /// another one (2.4.3).
    pub(super) fn note_level(&mut self, step: &mut Step<'_>) {
        let implied = self.branch_level.take();
        if implied.is_some_and(|level| level != self.thinking) {
            let thinking_level = self.thinking.word().to_owned();
            self.note(step, EntryBody::ThinkingLevelChange { thinking_level }, None);
        }
    }

    /// Cancels a move (3.5.1).
    pub(super) fn abort_move(&mut self, step: &mut Step<'_>, mut moving: Moving) {
        stop_asking(step, &mut moving);
        self.end_move(step, MoveEnd::Cancelled);
    }

    /// A failure of the host ends a move.
    pub(super) fn break_move(&mut self, step: &mut Step<'_>, mut moving: Moving, error: String) {
        stop_asking(step, &mut moving);
        self.phase = Phase::Idle;
        tell(step, MoveEnd::Failed(error.clone()));
        self.rest(step, RunEnd::Failed(error));
    }

    fn end_move(&mut self, step: &mut Step<'_>, end: MoveEnd) {
        self.phase = Phase::Idle;
        let rest = match end {
            MoveEnd::Moved(_) | MoveEnd::Failed(_) => RunEnd::Ended,
            MoveEnd::Cancelled => RunEnd::Aborted,
        };
        tell(step, end);
        self.rest(step, rest);
    }

    fn take_move(&mut self) -> Option<Moving> {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        let Phase::Moving(moving) = phase else {
            self.phase = phase;
            return None;
        };
        Some(*moving)
    }
}

fn stop_asking(step: &mut Step<'_>, moving: &mut Moving) {
    if let MoveStage::Summarising { asked, .. } = &mut moving.stage {
        asked.cancel(step);
        asked.forget_retries(step);
    }
}

fn tell(step: &mut Step<'_>, end: MoveEnd) {
    step.update(Update::MoveEnd(end.clone()));
    step.out.push(Effect::MoveEnded(end));
}
