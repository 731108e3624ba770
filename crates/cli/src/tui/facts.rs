//! Figures of the shown session and its subagents, as the face names them.

use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::message::Usage;
use crew_base::model::ModelSpec;
use crew_base::time::Time;
use crew_engine::api::{ActivityRow, RowStatus, SubagentView, Wait};
use crew_model::catalog::is_scripted;
use crew_runtime::{Answer, Handle, Query};
use crew_tui::request::{Activity, ActivityState, Facts, ModelFacts, SubagentFacts};
use tokio::time::{Duration, Instant};

use super::start::now;
use crate::config::Config;

/// Sums over a whole file are asked for no more often than this,
const TOTALS_EVERY: Duration = Duration::from_millis(250);
/// and take at most one part in so many of the host's time: those of a long
/// session take longer.
const TOTALS_SHARE: u32 = 20;

/// Tokens and cost as last read.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) own: Usage,
    pub(super) crew: Usage,
    /// Whether something happened since.
    pub(super) is_old: bool,
    read: Option<Instant>,
    cost: Duration,
}

impl Totals {
    /// Takes newer sums; what happened meanwhile still counts as news.
    pub(super) fn took(&mut self, newer: Totals) {
        let is_old = self.is_old && newer.is_old;
        *self = Totals { is_old, ..newer };
    }

    /// When they are to be read again, if something happened since.
    pub(super) fn due(&self) -> Option<Instant> {
        let read = self.read.filter(|_| self.is_old)?;
        Some(read + TOTALS_EVERY.max(self.cost * TOTALS_SHARE))
    }

    fn is_due(&self) -> bool {
        self.read.is_none() || self.due().is_some_and(|due| Instant::now() >= due)
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
        facts.results_waiting = state.results_waiting;
        facts.waits = state.waits.and_then(|wait| held_back(wait, now()));
    }
    if let Ok(Answer::Subagents(views)) = handle.ask(&session, Query::Subagents).await {
        facts.subagents = views.into_iter().map(subagent).collect();
    }
    if totals.is_due() {
        // What happens from here on makes them old again.
        totals.is_old = false;
        let begun = Instant::now();
        if let Ok(Answer::Totals(read)) = handle.ask(&session, Query::Totals).await {
            totals.own = read.own.usage;
            totals.crew = read.crew;
        }
        totals.cost = begun.elapsed();
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
        session: Some(view.session),
        definition: view.definition,
        brief: view.brief,
        model: view.model,
        thinking: view.thinking,
        status: view.status,
        worked_ms: view.worked_ms,
        tool_calls: view.tool_calls,
        failures: view.failures,
        usage: Some(view.usage),
        rows: Some(view.rows.into_iter().map(activity).collect()),
        waits: view.waits.map(|wait| words(wait, now())),
        settled: view.settled,
        last_text: view.last_text,
    }
}

fn activity(row: ActivityRow) -> Activity {
    let state = match row.status {
        RowStatus::Running => ActivityState::Running,
        RowStatus::Done => ActivityState::Done,
        RowStatus::Error => ActivityState::Failed,
    };
    Activity { name: row.name, target: row.target, state, summary: row.summary }
}

/// What a subagent waits for, in words (TERM-40).
fn words(wait: Wait, now: Time) -> String {
    let seconds = |until: Time| until.since(now).div_ceil(1_000);
    match wait {
        Wait::Opening => "starts".to_owned(),
        Wait::Model => "waits for the model".to_owned(),
        Wait::Turn => "waits for its turn at the model".to_owned(),
        Wait::CoolDown(until) => {
            format!("waits for the model (rate limit, {}s)", seconds(until))
        }
        Wait::Retry(until) => format!("tries again in {}s", seconds(until)),
        Wait::Compaction => "compacts its context".to_owned(),
    }
}

/// The same for the owner: only what the status line does not know by itself.
fn held_back(wait: Wait, now: Time) -> Option<String> {
    match wait {
        Wait::Turn | Wait::CoolDown(_) => Some(words(wait, now)),
        Wait::Opening | Wait::Model | Wait::Retry(_) | Wait::Compaction => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // TERM-40.
    #[test]
    fn a_wait_says_for_what_and_how_long() {
        let check = |wait, expected: &str| assert_eq!(words(wait, Time(1_000)), expected);
        check(Wait::Opening, "starts");
        check(Wait::Model, "waits for the model");
        check(Wait::Turn, "waits for its turn at the model");
        check(Wait::CoolDown(Time(8_500)), "waits for the model (rate limit, 8s)");
        check(Wait::Retry(Time(2_001)), "tries again in 2s");
        check(Wait::Retry(Time(0)), "tries again in 0s");
        check(Wait::Compaction, "compacts its context");
        assert_eq!(held_back(Wait::Model, Time(0)), None);
        let held = held_back(Wait::Turn, Time(0));
        assert_eq!(held.as_deref(), Some("waits for its turn at the model"));
    }

    // TERM-12: what happened last is in the sums once the reading has become
    // cheap enough, and nothing is read without news.
    #[tokio::test(start_paused = true)]
    async fn sums_are_read_again_after_news_only() {
        let read = Some(Instant::now());
        let mut totals = Totals { read, cost: Duration::from_millis(100), ..Totals::default() };
        assert_eq!(totals.due(), None);
        totals.is_old = true;
        assert!(!totals.is_due());
        tokio::time::advance(Duration::from_millis(1_999)).await;
        assert!(!totals.is_due());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(totals.is_due());
        totals.cost = Duration::ZERO;
        assert_eq!(totals.due(), read.map(|read| read + TOTALS_EVERY));
    }
}
