//! The request budget of a child (`task.md` 6.3).
//!
//! Owns the count and the thresholds. Must never stop anything itself; read
//! `driver` for what follows from a [`Verdict`].

use crew_base::limits::BUDGET_GRACE_REQUESTS;

use crate::contract::Synthetic;

/// Entry type of the notice (`task.md` OBS-7).
pub const NOTICE_TYPE: &str = "task-budget";

/// Counts completed answers against a budget.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// `None` is no guard.
    limit: Option<u32>,
    gives_notice: bool,
    requests: u32,
    noticed: bool,
    stopped: bool,
}

/// What the count asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Fine,
    /// Tell the child, once (EXEC-15).
    Notice(Synthetic),
    /// Stop the free-running turn, once (EXEC-16).
    Stop,
    /// Too many requests after the stop (EXEC-17).
    Kill,
}

/// The smaller of setting and the ceiling of the agent; none when the setting
/// is 0 (EXEC-14).
pub fn effective(setting: u32, ceiling: Option<u32>) -> Option<u32> {
    if setting == 0 { None } else { Some(ceiling.map_or(setting, |ceiling| setting.min(ceiling))) }
}

impl Budget {
    /// A budget in requests; `None` switches the guard off.
    pub fn new(limit: Option<u32>, gives_notice: bool) -> Budget {
        Budget { limit: limit.filter(|limit| *limit > 0), gives_notice, ..Budget::default() }
    }

    /// One more answer was completed.
    pub fn count(&mut self) {
        self.requests = self.requests.saturating_add(1);
    }

    /// Completed answers.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether the free-running turn was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The request with which the turn is stopped: 1.5 times the budget.
    fn threshold(limit: u32) -> u32 {
        limit.saturating_add(limit.div_ceil(2))
    }

    /// Judges the count; each of notice and stop comes once.
    pub fn check(&mut self) -> Verdict {
        let Some(limit) = self.limit else { return Verdict::Fine };
        let threshold = Budget::threshold(limit);
        if self.requests >= threshold.saturating_add(BUDGET_GRACE_REQUESTS) {
            return Verdict::Kill;
        }
        if self.requests >= threshold && !self.stopped {
            self.stopped = true;
            return Verdict::Stop;
        }
        if self.requests >= limit && !self.stopped && !self.noticed {
            self.noticed = true;
            if self.gives_notice {
                return Verdict::Notice(self.notice(limit, threshold));
            }
        }
        Verdict::Fine
    }

    fn notice(&self, limit: u32, threshold: u32) -> Synthetic {
        let requests = self.requests;
        Synthetic {
            custom_type: Some(NOTICE_TYPE),
            text: format!(
                "You have made {requests} requests; the budget of this assignment is {limit}. At \
                 {threshold} requests you are stopped. Bring the work to an end now and hand in \
                 what you have with `yield`."
            ),
        }
    }

    /// A-BUDGET, or A-BUDGET-KILL after the forced reminder (`task.md` 1.7).
    pub fn reason(&self, killed: bool) -> String {
        let (requests, limit) = (self.requests, self.limit.unwrap_or(0));
        let tail = if killed { "; no yield after the forced wrap-up" } else { "" };
        format!("request budget used up ({requests} requests, budget {limit}){tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(limit: Option<u32>, notice: bool, requests: u32) -> Vec<(u32, &'static str)> {
        let mut budget = Budget::new(limit, notice);
        let mut seen = Vec::new();
        for number in 1..=requests {
            budget.count();
            match budget.check() {
                Verdict::Fine => {}
                Verdict::Notice(_) => seen.push((number, "notice")),
                Verdict::Stop => seen.push((number, "stop")),
                Verdict::Kill => seen.push((number, "kill")),
            }
        }
        seen
    }

    // task.md 12 rows 34, 35; EXEC-14 to EXEC-17.
    #[test]
    fn notice_stop_and_kill_come_at_their_counts() {
        assert_eq!(verdicts(Some(4), true, 11), [(4, "notice"), (6, "stop"), (11, "kill")]);
        assert_eq!(verdicts(Some(4), false, 10), [(6, "stop")]);
        assert_eq!(verdicts(Some(2), false, 3), [(3, "stop")]);
        assert_eq!(verdicts(Some(3), false, 10), [(5, "stop"), (10, "kill")]);
        assert_eq!(verdicts(Some(1), true, 2), [(1, "notice"), (2, "stop")]);
        assert_eq!(verdicts(None, true, 1000), []);
        assert_eq!(verdicts(Some(0), true, 1000), []);
    }

    #[test]
    fn the_smaller_of_setting_and_ceiling_counts() {
        assert_eq!(effective(200, Some(100)), Some(100));
        assert_eq!(effective(50, Some(100)), Some(50));
        assert_eq!(effective(200, None), Some(200));
        assert_eq!(effective(0, Some(100)), None);
    }

    #[test]
    fn the_notice_names_count_budget_and_threshold() {
        let mut budget = Budget::new(Some(4), true);
        (0..4).for_each(|_| budget.count());
        let Verdict::Notice(notice) = budget.check() else { panic!("a notice is due") };
        for number in ["4", "6"] {
            assert!(notice.text.contains(number), "{}", notice.text);
        }
        assert_eq!(budget.reason(false), "request budget used up (4 requests, budget 4)");
    }
}
