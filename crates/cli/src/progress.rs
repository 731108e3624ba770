//! What print and JSON mode tell on standard error while they run: warnings
//! always, what is cut short always, subagents for a person at a terminal,
//! tools and requests with `--verbose`.

use crew_base::text::{excerpt, sanitise_inline};
use crew_crew::activity::target;
use crew_engine::api::task::Update as TaskUpdate;
use crew_engine::api::{CrewUpdate, SessionUpdate, Update, UpdateKind};
use crew_runtime::Notice;

use crate::config::models;
use crate::drive::{Cut, CutCause};
use crate::output;

/// Characters of a note.
const NOTE_CHARS_MAX: usize = 160;

/// Tells what goes on.
pub(crate) struct Progress {
    crew: bool,
    tools: bool,
}

impl Progress {
    /// `crew` for notes about subagents, `tools` for all else.
    pub(crate) fn new(crew: bool, tools: bool) -> Progress {
        Progress { crew, tools }
    }

    /// Tells of one notice what is worth telling.
    pub(crate) fn show(&self, notice: &Notice) {
        match notice {
            Notice::Warning(text) => output::warning(text),
            Notice::Opened { session, model, thinking, .. } if self.tools => {
                let model = model.as_ref().map(|model| models::shown(&model.reference()));
                let model = model.unwrap_or_else(|| "no model".to_owned());
                self.note(&format!("session {session}, {model}, thinking {}", thinking.word()));
            }
            Notice::Opened { .. } | Notice::Question(_) | Notice::QuestionOver(_) => {}
            Notice::Update(Update::Crew(update)) => self.crew(update),
            Notice::Update(Update::Task(update)) => self.task(update),
            Notice::Update(Update::Session { update, .. }) if self.tools => self.session(update),
            Notice::Update(
                Update::Session { .. }
                | Update::Answered { .. }
                | Update::RunFailed { .. }
                | Update::AtRest(_),
            ) => {}
        }
    }

    /// Tells what is cut short (`product.md` P-7, P-8).
    pub(crate) fn cut(&self, cut: &Cut) {
        let lead = match cut.cause {
            CutCause::Signal(_) => "stopping",
            CutCause::WaitBound => "the time for waiting is over",
            CutCause::Output => return,
        };
        let owner = if cut.owner_runs { "the owner's run" } else { "" };
        let count = cut.children.len();
        let crew = match count {
            0 => String::new(),
            1 => "1 subagent".to_owned(),
            _ => format!("{count} subagents"),
        };
        let what: Vec<&str> = [owner, &crew].into_iter().filter(|part| !part.is_empty()).collect();
        match what.is_empty() {
            true => output::note(lead),
            false => output::note(&format!("{lead}; cut short: {}", what.join(" and "))),
        }
        for child in &cut.children {
            let (id, status, brief) = (&child.id, child.status.word(), &child.brief);
            output::note(&excerpt(&format!("  {id} ({status}): {brief}"), NOTE_CHARS_MAX));
        }
    }

    fn crew(&self, update: &CrewUpdate) {
        if !self.crew {
            return;
        }
        let id = &update.subagent;
        let text = match &update.kind {
            UpdateKind::Spawned => {
                let model = update.model.as_deref().map(models::shown);
                let model = model.map_or_else(String::new, |model| format!(" on {model}"));
                format!("{id} started{model}: {}", update.brief)
            }
            UpdateKind::Responded => format!("{id} goes on"),
            UpdateKind::Settled { text, .. } => format!("{id} {}: {text}", update.status.word()),
            UpdateKind::Delivered => format!("{id}: the owner has its result"),
            UpdateKind::Activity { tool, target } if self.tools => format!("{id} {tool} {target}"),
            UpdateKind::Closed if self.tools => format!("{id} closed"),
            UpdateKind::Activity { .. } | UpdateKind::Closed => return,
        };
        self.note(&text);
    }

    /// A child of a `task` call began or ended.
    fn task(&self, update: &TaskUpdate) {
        if self.crew {
            let (id, agent, phase) = (&update.id, &update.agent, update.phase.word());
            self.note(&format!("{id} ({agent}) {phase}"));
        }
    }

    fn session(&self, update: &SessionUpdate) {
        match update {
            SessionUpdate::ToolStart { name, arguments, .. } => {
                let (tool, target) = target(name, arguments, None);
                self.note(&format!("{tool} {target}"));
            }
            SessionUpdate::RetryStart { attempt, attempts_max, delay_ms, error } => {
                self.note(&format!(
                    "try {attempt} of {attempts_max} in {delay_ms} ms after: {error}"
                ));
            }
            SessionUpdate::AgentStart
            | SessionUpdate::TurnStart
            | SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::MessageEnd(_)
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. }
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::AgentEnd { .. }
            | SessionUpdate::AgentSettled { .. }
            | SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::RetryEnd { .. }
            | SessionUpdate::CompactionStart { .. }
            | SessionUpdate::CompactionEnd { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::BranchSummaryStart
            | SessionUpdate::MoveEnd(_)
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_)
            | SessionUpdate::EntryAppended(_) => {}
        }
    }

    fn note(&self, text: &str) {
        output::note(&excerpt(&sanitise_inline(text), NOTE_CHARS_MAX));
    }
}
