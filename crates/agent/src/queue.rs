//! Messages that wait for a place in the running run (`host.md` 3.4).

use std::collections::VecDeque;

use crew_base::message::Message;
use crew_base::session::{DeliveryId, ResultMessage};

use crate::effect::Update;

/// How many typed messages enter at one delivery point (`host.md` 3.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueMode {
    /// Everything that waits.
    All,
    /// One.
    OneAtATime,
}

/// A message that waits.
#[expect(clippy::large_enum_variant, reason = "few wait at a time")]
#[derive(Clone, Debug, PartialEq)]
pub enum Queued {
    /// Typed by the person.
    Typed(Message),
    /// A result of the crew; outside the modes and lists of typed ones.
    Result(ResultMessage),
}

/// The two queues of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    steering: VecDeque<Queued>,
    follow_up: VecDeque<Message>,
}

impl Queue {
    pub(crate) fn steer(&mut self, queued: Queued) {
        self.steering.push_back(queued);
    }

    pub(crate) fn follow_up(&mut self, message: Message) {
        self.follow_up.push_back(message);
    }

    /// What enters before the next request, in order: all results, and typed
    /// messages as the mode says.
    pub(crate) fn take_steering(&mut self, mode: QueueMode) -> Vec<Queued> {
        let mut typed_left = match mode {
            QueueMode::All => usize::MAX,
            QueueMode::OneAtATime => 1,
        };
        let mut taken = Vec::new();
        let mut kept = VecDeque::new();
        for queued in self.steering.drain(..) {
            let enters = match &queued {
                Queued::Result(_) => true,
                Queued::Typed(_) => typed_left > 0,
            };
            if !enters {
                kept.push_back(queued);
                continue;
            }
            if matches!(queued, Queued::Typed(_)) {
                typed_left -= 1;
            }
            taken.push(queued);
        }
        self.steering = kept;
        taken
    }

    /// What enters when the run would stop.
    pub(crate) fn take_follow_up(&mut self, mode: QueueMode) -> Vec<Queued> {
        let count = match mode {
            QueueMode::All => self.follow_up.len(),
            QueueMode::OneAtATime => self.follow_up.len().min(1),
        };
        self.follow_up.drain(..count).map(Queued::Typed).collect()
    }

    /// Removes the results that a delivery precedes, in order; without one,
    /// all of them (`product.md` P-14c).
    pub(crate) fn take_results(&mut self, behind: Option<DeliveryId>) -> Vec<ResultMessage> {
        let mut results = Vec::new();
        let mut kept = VecDeque::new();
        for queued in self.steering.drain(..) {
            match queued {
                Queued::Result(result) if behind.is_none_or(|first| result.delivery > first) => {
                    results.push(result);
                }
                Queued::Result(_) | Queued::Typed(_) => kept.push_back(queued),
            }
        }
        self.steering = kept;
        results
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }

    pub(crate) fn has_results(&self) -> bool {
        self.steering.iter().any(|queued| matches!(queued, Queued::Result(_)))
    }

    /// Removes all typed messages: texts of both queues.
    pub(crate) fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let texts = self.texts();
        self.steering.retain(|queued| matches!(queued, Queued::Result(_)));
        self.follow_up.clear();
        texts
    }

    /// Texts of the typed messages of both queues.
    pub(crate) fn texts(&self) -> (Vec<String>, Vec<String>) {
        let typed = self.steering.iter().filter_map(|queued| match queued {
            Queued::Typed(message) => Some(typed_text(message)),
            Queued::Result(_) => None,
        });
        (typed.collect(), self.follow_up.iter().map(typed_text).collect())
    }

    pub(crate) fn update(&self) -> Update {
        let (steering, follow_up) = self.texts();
        Update::QueueUpdate { steering, follow_up }
    }
}

fn typed_text(message: &Message) -> String {
    if let Message::User(user) = message { user.content.text() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::message::{Content, CustomMessage};
    use crew_base::time::Time;

    fn typed(text: &str) -> Queued {
        Queued::Typed(Message::user_text(text, Time(0)))
    }

    fn result(number: u64) -> Queued {
        let message = CustomMessage {
            custom_type: "crew-result".into(),
            content: Content::default(),
            display: true,
            details: None,
            timestamp: Time(0),
        };
        Queued::Result(ResultMessage { delivery: DeliveryId(number), message })
    }

    // product.md P-9a, crew.md DEL-5, host.md 3.4.9.
    #[test]
    fn results_pass_typed_messages_that_the_mode_holds_back() {
        let mut queue = Queue::default();
        for queued in [typed("a"), typed("b"), result(1), result(2)] {
            queue.steer(queued);
        }
        assert_eq!(queue.texts().0, ["a", "b"]);
        let first = queue.take_steering(QueueMode::OneAtATime);
        assert_eq!(first, [typed("a"), result(1), result(2)]);
        assert_eq!(queue.take_steering(QueueMode::OneAtATime), [typed("b")]);
    }

    #[test]
    fn clearing_the_queue_leaves_results_in_it() {
        let mut queue = Queue::default();
        for queued in [result(1), typed("a")] {
            queue.steer(queued);
        }
        assert_eq!(queue.clear().0, ["a"]);
        assert_eq!(queue.take_results(None).len(), 1);
        assert!(!queue.has_results());
    }
}
