//! Figures of the shown session and its subagents, as the face names them.

use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::message::Usage;
use crew_base::model::ModelSpec;
use crew_engine::api::SubagentView;
use crew_model::catalog::is_scripted;
use crew_runtime::{Answer, Handle, Query};
use crew_tui::request::{Facts, ModelFacts, SubagentFacts};
use tokio::time::{Duration, Instant};

use crate::config::Config;

/// Sums over a whole file are asked for no more often than this.
const TOTALS_EVERY: Duration = Duration::from_secs(2);

/// Tokens and cost as last read.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) own: Usage,
    pub(super) crew: Usage,
    /// Whether something happened since.
    pub(super) is_old: bool,
    read: Option<Instant>,
}

impl Totals {
    /// Takes newer sums; what happened meanwhile still counts as news.
    pub(super) fn took(&mut self, newer: Totals) {
        let is_old = self.is_old && newer.is_old;
        *self = Totals { is_old, ..newer };
    }

    fn is_due(&self) -> bool {
        match self.read {
            None => true,
            Some(read) => self.is_old && read.elapsed() >= TOTALS_EVERY,
        }
    }
}

/// Asks the host.
pub(super) async fn gather(
    handle: Handle,
    session: SessionId,
    mut totals: Totals,
    config: Arc<Config>,
) -> (Facts, Totals) {
    let mut facts =
        Facts { auto_compaction: config.settings.compaction.enabled, ..Facts::default() };
    if let Ok(Answer::State(state)) = handle.ask(&session, Query::State).await {
        facts.model = state.model.as_deref().map(model_facts);
        facts.thinking = Some(state.thinking);
        let is_empty = state.messages == 0;
        facts.context_tokens = state.context_tokens.or(is_empty.then_some(0));
    }
    if let Ok(Answer::Subagents(views)) = handle.ask(&session, Query::Subagents).await {
        facts.subagents = views.into_iter().map(subagent).collect();
    }
    if totals.is_due() {
        // What happens from here on makes them old again.
        totals.is_old = false;
        if let Ok(Answer::Totals(read)) = handle.ask(&session, Query::Totals).await {
            totals.own = read.own.usage;
            totals.crew = read.crew;
        }
        totals.read = Some(Instant::now());
    }
    facts.own = totals.own.clone();
    facts.crew = totals.crew.clone();
    (facts, totals)
}

/// A model as the footer names it.
pub(super) fn model_facts(model: &ModelSpec) -> ModelFacts {
    ModelFacts {
        provider: model.provider.clone(),
        id: model.id.clone(),
        window: model.context_window,
        levels: model.supported_levels(),
        is_scripted: is_scripted(model),
    }
}

fn subagent(view: SubagentView) -> SubagentFacts {
    SubagentFacts {
        id: view.subagent,
        session: None,
        definition: view.definition,
        brief: view.brief,
        model: view.model,
        thinking: None,
        status: view.status,
        worked_ms: view.worked_ms,
        tool_calls: view.tool_calls,
        failures: 0,
        usage: None,
        rows: None,
        waits: None,
        last_text: None,
    }
}
