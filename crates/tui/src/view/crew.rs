//! The subagents of the shown owner, as the face knows them.

use crew_base::id::SessionId;
use crew_base::limits::ACTIVITY_ROWS_MAX;
use crew_base::message::Usage;
use crew_base::model::ThinkingLevel;
use crew_base::text::is_blank;
use crew_base::time::Time;
use crew_engine::api::{CrewUpdate, Status, UpdateKind};

use crate::request::{Activity, ActivityState, SubagentFacts};

/// Ended subagents that the board remembers.
const ENDED_MAX: usize = 200;

/// One subagent.
#[derive(Clone, Debug, PartialEq)]
pub struct Subagent {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: Option<SessionId>,
    /// Its definition.
    pub definition: String,
    /// Its brief, or its definition when that is blank (`crew.md` WID-12).
    pub brief: String,
    /// `provider/model-id`, once known.
    pub model: Option<String>,
    /// Its thinking level, once known.
    pub thinking: Option<ThinkingLevel>,
    /// Its status.
    pub status: Status,
    /// Tokens and cost.
    pub usage: Usage,
    /// Calls started.
    pub tool_calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Latest activity, oldest first.
    pub rows: Vec<Activity>,
    /// What it asks for.
    pub needs: Option<String>,
    /// Report, error or reason of its last settlement.
    pub text: Option<String>,
    /// Its last words.
    pub last_text: Option<String>,
    /// What it waits for.
    pub waits: Option<String>,
    /// When it was answered last, and by whom.
    pub answered: Option<Time>,
    /// When it was gone.
    pub ended: Option<Time>,
    worked_ms: u64,
    running_since: Option<Time>,
}

impl Subagent {
    /// Working time (`crew.md` LIFE-13).
    pub fn worked_ms(&self, now: Time) -> u64 {
        self.worked_ms + self.running_since.map_or(0, |since| now.since(since))
    }

    /// Whether it can be answered or closed.
    pub fn awaits(&self) -> bool {
        self.status.awaits_owner() && self.ended.is_none()
    }

    /// Prompt and answer tokens together.
    pub fn tokens(&self) -> u64 {
        self.usage.input + self.usage.output
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Crew {
    /// In creation order.
    pub open: Vec<Subagent>,
    /// Gone ones of this process, newest last.
    pub ended: Vec<Subagent>,
    /// Whether there ever was one (TERM-12).
    pub had_any: bool,
}

/// How many are in which status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In flight.
    pub running: usize,
    /// Need input.
    pub waiting: usize,
    /// Completed, not closed.
    pub done: usize,
}

impl Crew {
    /// Takes an update about a subagent of this owner.
    pub fn update(&mut self, now: Time, update: &CrewUpdate) {
        let id = update.subagent.as_str();
        if !self.open.iter().any(|known| known.id == id) {
            if matches!(update.kind, UpdateKind::Closed | UpdateKind::Delivered) {
                return;
            }
            self.add(now, update);
        }
        let Some(at) = self.open.iter().position(|known| known.id == id) else { return };
        let subagent = &mut self.open[at];
        if update.model.is_some() {
            subagent.model.clone_from(&update.model);
        }
        match &update.kind {
            UpdateKind::Spawned | UpdateKind::Delivered => {}
            UpdateKind::Responded => {
                subagent.status = Status::Running;
                subagent.needs = None;
                subagent.answered = Some(now);
                subagent.running_since = Some(now);
            }
            UpdateKind::Activity { tool, target } => {
                subagent.tool_calls += 1;
                subagent.rows.push(Activity {
                    name: tool.clone(),
                    target: target.clone(),
                    state: ActivityState::Running,
                    summary: None,
                });
                let over = subagent.rows.len().saturating_sub(ACTIVITY_ROWS_MAX);
                subagent.rows.drain(..over);
            }
            UpdateKind::Settled { text, usage } => {
                subagent.worked_ms = subagent.worked_ms(now);
                subagent.running_since = None;
                subagent.status = update.status;
                subagent.usage = usage.clone();
                subagent.text = Some(text.clone());
                subagent.needs = (update.status == Status::NeedsInput).then(|| text.clone());
                subagent.waits = None;
            }
            UpdateKind::Closed => {
                let mut gone = self.open.remove(at);
                gone.ended = Some(now);
                gone.running_since = None;
                self.ended.push(gone);
                let over = self.ended.len().saturating_sub(ENDED_MAX);
                self.ended.drain(..over);
            }
        }
    }

    fn add(&mut self, now: Time, update: &CrewUpdate) {
        self.had_any = true;
        let running = update.status == Status::Running;
        self.open.push(Subagent {
            id: update.subagent.to_string(),
            session: Some(update.session.clone()),
            definition: update.definition.clone(),
            brief: brief(&update.brief, &update.definition),
            model: update.model.clone(),
            thinking: None,
            status: update.status,
            usage: Usage::default(),
            tool_calls: 0,
            failures: 0,
            rows: Vec::new(),
            needs: None,
            text: None,
            last_text: None,
            waits: None,
            answered: None,
            ended: None,
            worked_ms: 0,
            running_since: running.then_some(now),
        });
    }

    /// Takes figures that only the host has; an open subagent of which no
    /// update came yet appears (TERM-29).
    pub fn figures(&mut self, now: Time, figures: Vec<SubagentFacts>) {
        for facts in figures {
            if self.ended.iter().any(|gone| gone.id == facts.id) {
                continue;
            }
            self.had_any = true;
            let at = match self.open.iter().position(|known| known.id == facts.id) {
                Some(at) => at,
                None => {
                    self.open.push(unknown(&facts));
                    self.open.len() - 1
                }
            };
            let subagent = &mut self.open[at];
            subagent.session = facts.session.or(subagent.session.take());
            subagent.model = facts.model.or(subagent.model.take());
            subagent.thinking = facts.thinking.or(subagent.thinking);
            if let Some(usage) = facts.usage {
                subagent.usage = usage;
            }
            subagent.tool_calls = facts.tool_calls;
            subagent.failures = facts.failures;
            if let Some(rows) = facts.rows {
                subagent.rows = rows;
            }
            subagent.last_text = facts.last_text.or(subagent.last_text.take());
            subagent.waits = facts.waits;
            // The status comes with updates, in order; figures may be older.
            if subagent.status == facts.status {
                let is_waiting = facts.status == Status::NeedsInput;
                if facts.status.awaits_owner() {
                    subagent.needs = facts.settled.clone().filter(|_| is_waiting);
                    subagent.text = facts.settled.or(subagent.text.take());
                }
                subagent.worked_ms = facts.worked_ms;
                subagent.running_since = (facts.status == Status::Running).then_some(now);
            }
        }
    }

    /// Another owner is shown.
    pub fn clear(&mut self) {
        *self = Crew::default();
    }

    /// The one with an id, open or gone.
    pub fn get(&self, id: &str) -> Option<&Subagent> {
        self.open.iter().chain(&self.ended).find(|known| known.id == id)
    }

    /// Open ones whose id begins with a text; the exact one alone.
    pub fn matching(&self, text: &str) -> Vec<&Subagent> {
        if let Some(exact) = self.open.iter().find(|known| known.id == text) {
            return vec![exact];
        }
        self.open.iter().filter(|known| known.id.starts_with(text)).collect()
    }

    /// Counts by status.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for subagent in &self.open {
            match subagent.status {
                Status::Running => counts.running += 1,
                Status::NeedsInput => counts.waiting += 1,
                Status::Completed => counts.done += 1,
                Status::Error | Status::Aborted => {}
            }
        }
        counts
    }

    /// What a quit would end: running ones and those that need input (TERM-5).
    pub fn open_work(&self) -> usize {
        let counts = self.counts();
        counts.running + counts.waiting
    }

    /// The one that has needed input for the longest time.
    pub fn oldest_waiting(&self) -> Option<&Subagent> {
        self.open.iter().find(|subagent| subagent.status == Status::NeedsInput)
    }
}

fn brief(brief: &str, definition: &str) -> String {
    if is_blank(brief) { definition.to_owned() } else { brief.to_owned() }
}

fn unknown(facts: &SubagentFacts) -> Subagent {
    Subagent {
        id: facts.id.clone(),
        session: facts.session.clone(),
        definition: facts.definition.clone(),
        brief: brief(&facts.brief, &facts.definition),
        model: None,
        thinking: None,
        status: facts.status,
        usage: Usage::default(),
        tool_calls: 0,
        failures: 0,
        rows: Vec::new(),
        needs: None,
        text: None,
        last_text: None,
        waits: None,
        answered: None,
        ended: None,
        worked_ms: 0,
        running_since: None,
    }
}
