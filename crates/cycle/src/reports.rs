//! The `crew_report` contract as [`crate::Driver`] needs it (`task.md` 15.2).
//!
//! Owns nothing of the judgement itself: that is `step`. Read `report` for the
//! tool and its words.

use crew_base::message::Message;
use crew_base::session::RunEnd;

use crate::contract::{Contract, Terms};
use crate::ladder::Reminder;
use crate::report::{FOLLOW_UP, REPORT_TOOL, Report};
use crate::step::{Cycle, Facts, Verdict};

/// One prompt cycle of a subagent.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    cycle: Cycle,
}

impl Reports {
    /// The report that stands at this moment (`crew.md` RES-8).
    pub fn report(&self) -> Option<Report> {
        match self.cycle.clone().judge(&RunEnd::Ended) {
            Verdict::Accepted(report) => Some(report),
            Verdict::FollowUp | Verdict::Failed(_) | Verdict::Aborted(_) => None,
        }
    }

    /// What was done so far.
    pub fn facts(&self) -> &Facts {
        self.cycle.facts()
    }
}

impl Contract for Reports {
    const TERMS: Terms = Terms {
        tool: REPORT_TOOL,
        reminders_max: 1,
        forces_last: false,
        has_barrier: false,
        spends_failed_reminders: false,
        reminder_type: None,
        reminder_label: "report reminder",
    };

    fn message(&mut self, message: &Message) {
        self.cycle.message(message);
    }

    fn is_accepted(&self) -> bool {
        self.report().is_some()
    }

    /// Cannot happen without a barrier; an older report never counts anyway.
    fn invalidate(&mut self) {
        self.reset();
    }

    fn reset(&mut self) {
        self.cycle = Cycle::default();
    }

    fn reminder(&self, _: Reminder) -> String {
        FOLLOW_UP.to_owned()
    }
}
