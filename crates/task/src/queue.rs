//! The one fair queue of a parent session (TASK-SPAWN-14).

use std::collections::{BTreeSet, VecDeque};

/// An item of a call.
pub(crate) type Place = (crew_base::id::RunId, usize);

/// Who runs and who waits. The limit comes with each question, so that a
/// changed setting counts at once.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    running: BTreeSet<Place>,
    waiting: VecDeque<Place>,
}

impl Queue {
    pub(crate) fn wait(&mut self, place: Place) {
        self.waiting.push_back(place);
    }

    /// A waiter leaves and never takes a slot; tells whether it was one.
    pub(crate) fn leave(&mut self, place: Place) -> bool {
        let known = self.waiting.len();
        self.waiting.retain(|waiting| *waiting != place);
        self.waiting.len() < known
    }

    pub(crate) fn release(&mut self, place: Place) {
        self.running.remove(&place);
    }

    /// The next waiter that may start, first come first served.
    pub(crate) fn admit(&mut self, limit: Option<usize>) -> Option<Place> {
        if limit.is_some_and(|limit| self.running.len() >= limit) {
            return None;
        }
        let place = self.waiting.pop_front()?;
        self.running.insert(place);
        Some(place)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::id::RunId;

    // TASK-SPAWN-14; task.md 12 row 21.
    #[test]
    fn a_waiter_that_leaves_never_takes_a_slot() {
        let place = |n| (RunId(n), 0);
        let mut queue = Queue::default();
        (1..=4).for_each(|n| queue.wait(place(n)));
        assert_eq!(queue.admit(Some(1)), Some(place(1)));
        assert_eq!(queue.admit(Some(1)), None);
        assert!(queue.leave(place(2)) && !queue.leave(place(1)));
        queue.release(place(1));
        assert_eq!(queue.admit(Some(1)), Some(place(3)));
        // A raise admits at once, a cut lets runners drain.
        assert_eq!(queue.admit(None), Some(place(4)));
        queue.wait(place(5));
        queue.release(place(3));
        assert_eq!(queue.admit(Some(1)), None);
        queue.release(place(4));
        assert_eq!(queue.admit(Some(1)), Some(place(5)));
    }
}
