//! The reminders of one cycle (`task.md` 6.2, EXEC-16).
//!
//! Owns the count only. Must never decide whether a reminder is due; read
//! `driver` for that.

/// One reminder that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Its number, from 1.
    pub number: u32,
    /// The last number there is.
    pub number_max: u32,
    /// The request budget is used up; this is the only one.
    pub wraps_up: bool,
}

impl Reminder {
    /// Whether none follows in this ladder.
    pub fn is_last(self) -> bool {
        self.number >= self.number_max
    }
}

/// How far the reminders of one entry into the ladder are.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    number: u32,
    number_max: u32,
    wrapped_up: bool,
    sent: u32,
}

impl Ladder {
    pub(crate) fn new(number_max: u32) -> Ladder {
        Ladder { number: 0, number_max, wrapped_up: false, sent: 0 }
    }

    /// The next reminder; after a budget stop one that asks to wrap up, which
    /// counts as the last.
    pub(crate) fn next(&mut self, budget_stopped: bool) -> Option<Reminder> {
        if budget_stopped {
            if std::mem::replace(&mut self.wrapped_up, true) {
                return None;
            }
            self.number = self.number_max;
        } else if self.number >= self.number_max {
            return None;
        } else {
            self.number += 1;
        }
        self.sent += 1;
        Some(Reminder {
            number: self.number,
            number_max: self.number_max,
            wraps_up: budget_stopped,
        })
    }

    /// The ladder is entered anew (EXEC-13).
    pub(crate) fn enter(&mut self) {
        self.number = 0;
        self.wrapped_up = false;
    }

    /// Reminders of the whole run (`task.md` OP-8).
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_stop_leaves_one_reminder_that_is_the_last() {
        let mut ladder = Ladder::new(3);
        assert_eq!(ladder.next(false).map(|r| (r.number, r.is_last())), Some((1, false)));
        assert_eq!(ladder.next(true).map(|r| (r.number, r.is_last())), Some((3, true)));
        assert_eq!(ladder.next(true), None);
        assert_eq!(ladder.sent(), 2);
    }

    // EXEC-13.
    #[test]
    fn each_entry_has_all_reminders_again() {
        let mut ladder = Ladder::new(3);
        while ladder.next(false).is_some() {}
        ladder.enter();
        assert_eq!(ladder.next(false).map(|r| r.number), Some(1));
        assert_eq!(ladder.sent(), 4);
    }
}
