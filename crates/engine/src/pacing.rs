//! Request control for the whole crew (`product.md` P-13, `host.md` 3.6.10).
//!
//! One lane for each provider: a cool-down after the provider asked to wait, a
//! bound that adapts from then on, and a queue, first come first served. The
//! number of subagents is never bounded, only that of requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crew_agent::{RetrySettings, is_spent_quota};
use crew_base::id::{Ids, RunId, SessionId};
use crew_base::model::{ModelError, ModelErrorKind, ModelRequest};
use crew_base::time::Time;

/// A request that waits for its turn at the provider.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) request: ModelRequest,
}

/// All lanes.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    lanes: BTreeMap<String, Lane>,
    runs: BTreeMap<RunId, String>,
    /// `crew.maxConcurrentRequests`.
    hard_bound: Option<usize>,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Held>,
    under_way: BTreeSet<RunId>,
    /// No request starts before this moment.
    until: Time,
    /// At most this many at once; none before the provider first complained.
    bound: Option<usize>,
    /// Complaints since the last good answer.
    complaints: u32,
}

impl Pacing {
    /// Sets the bound of the settings (`crew.maxConcurrentRequests`).
    pub(crate) fn set_bound(&mut self, bound: Option<usize>) {
        self.hard_bound = bound.map(|bound| bound.max(1));
    }

    /// Takes a request: it may start now, or waits.
    pub(crate) fn admit(&mut self, now: Time, held: Held) -> Option<Held> {
        let provider = held.request.model.provider.clone();
        let hard_bound = self.hard_bound;
        let lane = self.lanes.entry(provider.clone()).or_default();
        self.runs.insert(held.run, provider);
        if lane.waiting.is_empty() && lane.is_free(now, hard_bound) {
            lane.under_way.insert(held.run);
            return Some(held);
        }
        lane.waiting.push_back(held);
        None
    }

    /// A request was cancelled; tells whether it had only waited.
    pub(crate) fn cancel(&mut self, run: RunId) -> bool {
        let Some(provider) = self.runs.remove(&run) else { return false };
        let Some(lane) = self.lanes.get_mut(&provider) else { return false };
        lane.under_way.remove(&run);
        let waiting = lane.waiting.len();
        lane.waiting.retain(|held| held.run != run);
        lane.waiting.len() < waiting
    }

    /// A request ended: well (`None`) or with an error.
    pub(crate) fn ended(
        &mut self,
        now: Time,
        ids: &mut Ids,
        run: RunId,
        error: Option<&ModelError>,
        retry: &RetrySettings,
    ) {
        let Some(provider) = self.runs.remove(&run) else { return };
        let Some(lane) = self.lanes.get_mut(&provider) else { return };
        let together = lane.under_way.len();
        lane.under_way.remove(&run);
        match error {
            Some(error) if asks_to_wait(error) => {
                lane.complaints += 1;
                lane.bound = Some((lane.bound.unwrap_or(together).min(together) / 2).max(1));
                let delay = crew_agent::jittered(retry.delay_ms(lane.complaints, error), ids);
                lane.until = lane.until.max(now + delay);
            }
            Some(_) => {}
            None => {
                lane.complaints = 0;
                lane.bound = lane.bound.map(|bound| bound + 1);
            }
        }
    }

    /// The requests whose turn has come.
    pub(crate) fn release(&mut self, now: Time) -> Vec<Held> {
        let mut released = Vec::new();
        for lane in self.lanes.values_mut() {
            while lane.is_free(now, self.hard_bound)
                && let Some(held) = lane.waiting.pop_front()
            {
                lane.under_way.insert(held.run);
                released.push(held);
            }
        }
        released
    }

    /// For a request that is held back: when its provider's pause is over.
    pub(crate) fn held_until(&self, run: RunId) -> Option<Time> {
        let lane = self.lanes.get(self.runs.get(&run)?)?;
        lane.waiting.iter().any(|held| held.run == run).then_some(lane.until)
    }

    /// When a waiting request may start at the earliest.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let hard_bound = self.hard_bound;
        let due = |lane: &&Lane| !lane.waiting.is_empty() && lane.has_room(hard_bound);
        self.lanes.values().filter(due).map(|lane| lane.until).min()
    }
}

impl Lane {
    fn is_free(&self, now: Time, hard_bound: Option<usize>) -> bool {
        now >= self.until && self.has_room(hard_bound)
    }

    fn has_room(&self, hard_bound: Option<usize>) -> bool {
        let bound = [self.bound, hard_bound].into_iter().flatten().min();
        bound.is_none_or(|bound| self.under_way.len() < bound)
    }
}

/// Whether an error makes the other sessions wait too.
fn asks_to_wait(error: &ModelError) -> bool {
    let told = matches!(error.status, Some(429 | 529))
        || error.retry_after_ms.is_some()
        || matches!(error.kind, ModelErrorKind::RateLimit | ModelErrorKind::Overloaded);
    told && !is_spent_quota(&error.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::json::Raw;
    use crew_base::model::{Api, CacheRetention, ModelSpec, Rates, ThinkingLevel, ToolChoice};
    use std::sync::Arc;

    fn held(run: u64) -> Held {
        let model = ModelSpec {
            provider: "p".into(),
            id: "m".into(),
            name: "m".into(),
            api: Api::Demo,
            api_word: "crew-demo".into(),
            base_url: String::new(),
            reasoning: false,
            thinking_levels: BTreeMap::new(),
            images: false,
            rates: Rates::default(),
            context_window: 1,
            max_tokens: 1,
            sampling_params: None::<Raw>,
            headers: Vec::new(),
            auth_header: false,
            compat: None,
        };
        let session = SessionId::new("s");
        let request = ModelRequest {
            model: Arc::new(model),
            session: session.clone(),
            messages: Vec::new(),
            thinking: ThinkingLevel::Off,
            cache: CacheRetention::Short,
            tool_choice: ToolChoice::Auto,
        };
        Held { session, run: RunId(run), request }
    }

    fn overloaded() -> ModelError {
        ModelError { status: Some(529), ..ModelError::new(ModelErrorKind::Overloaded, "busy") }
    }

    struct Play {
        pacing: Pacing,
        ids: Ids,
    }

    impl Play {
        fn new() -> Play {
            Play { pacing: Pacing::default(), ids: Ids::new(1) }
        }

        fn end(&mut self, now: u64, run: u64, error: Option<&ModelError>) {
            let retry = RetrySettings { base_delay_ms: 1000, ..RetrySettings::default() };
            self.pacing.ended(Time(now), &mut self.ids, RunId(run), error, &retry);
        }

        fn released(&mut self, now: u64) -> Vec<u64> {
            self.pacing.release(Time(now)).iter().map(|held| held.run.0).collect()
        }
    }

    // product.md P-13.
    #[test]
    fn nothing_is_bounded_before_the_provider_complains() {
        let mut play = Play::new();
        for run in 1..=500 {
            assert!(play.pacing.admit(Time(0), held(run)).is_some());
        }
    }

    #[test]
    fn after_a_complaint_the_others_wait_and_the_bound_halves_and_grows_again() {
        let mut play = Play::new();
        for run in 1..=8 {
            assert!(play.pacing.admit(Time(0), held(run)).is_some());
        }
        play.end(10, 1, Some(&overloaded()));
        (2..=8).for_each(|run| play.end(11, run, None));
        for run in 11..=30 {
            assert!(play.pacing.admit(Time(20), held(run)).is_none());
        }
        let until = play.pacing.deadline().expect("a cool-down");
        assert!((1010..=1210).contains(&until.0), "{until:?}");
        assert!(play.released(until.0 - 1).is_empty());
        // Halved to four, grown by seven good answers: eleven.
        assert_eq!(play.released(until.0), (11..=21).collect::<Vec<_>>());
        play.end(until.0 + 1, 11, None);
        assert_eq!(play.released(until.0 + 1), [22, 23]);
    }

    #[test]
    fn a_named_delay_counts_and_a_spent_quota_does_not() {
        let mut play = Play::new();
        assert!(play.pacing.admit(Time(0), held(1)).is_some());
        let quota = ModelError {
            status: Some(429),
            ..ModelError::new(ModelErrorKind::RateLimit, "insufficient_quota")
        };
        play.end(0, 1, Some(&quota));
        assert!(play.pacing.admit(Time(0), held(2)).is_some());
        let named = ModelError { retry_after_ms: Some(30_000), ..overloaded() };
        play.end(0, 2, Some(&named));
        assert!(play.pacing.admit(Time(29_000), held(3)).is_none());
        assert!(play.pacing.cancel(RunId(3)));
        assert_eq!(play.pacing.deadline(), None);
    }

    #[test]
    fn the_bound_of_the_settings_is_hard() {
        let mut play = Play::new();
        play.pacing.set_bound(Some(2));
        let started =
            (1..=5).filter(|run| play.pacing.admit(Time(0), held(*run)).is_some()).count();
        assert_eq!(started, 2);
        play.end(1, 1, None);
        assert_eq!(play.released(1), [3]);
    }
}
