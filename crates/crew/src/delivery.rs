//! The way of a result to its owner, and only there (`crew.md` DEL).
//!
//! A settlement is queued for an owner that is not attached, else handed to
//! the owner's agent; it counts as delivered when the agent has it in its
//! record. Until then it can come back to the front of the queue
//! (`product.md` P-14c, SAFE-4).

use crew_base::entry::EntryBody;
use crew_base::id::{SessionId, SubagentId};
use crew_base::json::Raw;
use crew_base::limits::DELIVERY_AGE_MS_MAX;
use crew_base::message::{Content, CustomMessage};
use crew_base::session::{DeliveryId, ResultMessage};
use crew_base::time::Time;

use crate::effect::{Effect, Update, UpdateKind};
use crate::roster::Crew;

/// A settlement on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Names it.
    pub id: DeliveryId,
    /// Whom it is for.
    pub owner: SessionId,
    /// What it is about.
    pub subagent: SubagentId,
    /// When it settled.
    pub queued: Time,
    pub(crate) payload: Payload,
    /// Tokens and cost of the subagent so far, noted with it (P-14i).
    pub(crate) usage: Option<Raw>,
    /// What faces are told when it has entered; an error outlives its subagent.
    pub(crate) told: Update,
}

/// The two kinds (DEL-1).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Payload {
    /// `completed`, `needs_input` or `error`: enters the model context.
    Result {
        /// JSON of DEL-2 or DEL-3.
        content: String,
        /// For the card (DEL-4).
        details: Raw,
    },
    /// `aborted`: drawn, never in the context.
    Abort {
        /// For the card (DEL-6).
        data: Raw,
    },
}

impl Crew {
    /// The one routing step of every settlement (DEL-1). What could not be
    /// recorded earlier goes first, so that the order stays (DEL-7).
    pub(crate) fn route(&mut self, mut delivery: Delivery) {
        self.deliveries += 1;
        delivery.id = DeliveryId(self.deliveries);
        let owner = delivery.owner.clone();
        let is_attached = self.attached.as_ref() == Some(&owner);
        if is_attached && !self.queues.contains_key(&owner) {
            self.hand_over(&owner, vec![delivery]);
        } else {
            self.queues.entry(owner).or_default().push_back(delivery);
            self.flush_pending |= is_attached;
        }
    }

    fn hand_over(&mut self, owner: &SessionId, deliveries: Vec<Delivery>) {
        let mut results = Vec::new();
        for delivery in deliveries {
            let mut note = |custom_type: &str, data: &Raw, delivery: Option<DeliveryId>| {
                let data = Some(data.clone());
                let body = EntryBody::Custom { custom_type: custom_type.to_owned(), data };
                self.out.push(Effect::Note { owner: owner.clone(), body, delivery });
            };
            if let Some(usage) = &delivery.usage {
                note("crew.usage", usage, None);
            }
            match &delivery.payload {
                Payload::Abort { data } => note("crew-abort", data, Some(delivery.id)),
                Payload::Result { content, details } => {
                    let message = CustomMessage {
                        custom_type: "crew-result".into(),
                        content: Content::Text(content.clone()),
                        display: true,
                        details: Some(details.clone()),
                        timestamp: delivery.queued,
                    };
                    results.push(ResultMessage { delivery: delivery.id, message });
                }
            }
            self.handed.push(delivery);
        }
        if !results.is_empty() {
            self.out.push(Effect::Deliver { owner: owner.clone(), results });
        }
    }

    /// The owner's session became the one that faces show (RUN-2, DEL-8), or
    /// the person is active in it again.
    pub fn attach(&mut self, owner: &SessionId) {
        self.attached = Some(owner.clone());
        self.flush_pending = self.queues.contains_key(owner);
    }

    /// It no longer is; another one that is bound stays bound (RUN-3). What
    /// was handed over and has not entered goes back to the front, in order.
    pub fn detach(&mut self, owner: &SessionId) {
        if self.attached.as_ref() == Some(owner) {
            self.attached = None;
            self.flush_pending = false;
        }
        let back = self.take_handed(owner, None);
        self.put_back(owner, back);
    }

    fn take_handed(&mut self, owner: &SessionId, behind: Option<DeliveryId>) -> Vec<Delivery> {
        let goes = |delivery: &mut Delivery| {
            delivery.owner == *owner && behind.is_none_or(|first| delivery.id > first)
        };
        self.handed.extract_if(.., goes).collect()
    }

    /// Puts these where they were, in the order they settled. Invariant: an
    /// empty queue does not exist.
    fn put_back(&mut self, owner: &SessionId, back: Vec<Delivery>) {
        if back.is_empty() {
            return;
        }
        let queue = self.queues.entry(owner.clone()).or_default();
        queue.extend(back);
        queue.make_contiguous().sort_by_key(|delivery| delivery.id);
    }

    /// Whether [`Crew::flush`] is due on a later turn of the scheduler.
    pub fn flush_is_pending(&self) -> bool {
        self.flush_pending
    }

    /// Delivers all that waits for the attached owner, after dropping what has
    /// grown too old for anybody (DEL-9 to DEL-12).
    pub fn flush(&mut self, now: Time) {
        if !std::mem::take(&mut self.flush_pending) {
            return;
        }
        let Some(owner) = self.attached.clone() else { return };
        for queue in self.queues.values_mut() {
            queue.retain(|delivery| now.since(delivery.queued) <= DELIVERY_AGE_MS_MAX);
        }
        let waiting: Vec<_> = self.queues.remove(&owner).unwrap_or_default().into();
        self.queues.retain(|_, queue| !queue.is_empty());
        self.hand_over(&owner, waiting);
    }

    /// A result stands in its owner's record; it is never sent again (DEL-13).
    pub fn entered(&mut self, id: DeliveryId) {
        let Some(at) = self.handed.iter().position(|delivery| delivery.id == id) else { return };
        let delivery = self.handed.remove(at);
        let is_result = matches!(delivery.payload, Payload::Result { .. });
        match self.subagents.of_id(&delivery.subagent) {
            Some(at) => self.tell(at, UpdateKind::Delivered),
            None if is_result => {
                let owner = delivery.owner.clone();
                self.out.push(Effect::Update(Update { owner, ..delivery.told.clone() }));
            }
            None => {}
        }
        self.recorded.push_back(delivery);
        if self.recorded.len() > RECORDED_MAX {
            self.recorded.pop_front();
        }
    }

    /// The record of a session could not take these: back to the front of their
    /// owner's queue with all that was handed to it after them, sent at the next
    /// activation, prompt or settlement (SAFE-4, OP-29). A fork that adopted
    /// them meanwhile gets them at once.
    pub fn refused(&mut self, session: &SessionId, refused: &[DeliveryId]) {
        let mut back = Vec::new();
        for id in refused {
            if let Some(at) = self.recorded.iter().position(|delivery| delivery.id == *id) {
                back.extend(self.recorded.remove(at));
            }
        }
        let Some(owner) = back.first().map(|delivery| delivery.owner.clone()) else { return };
        if owner == *session {
            back.extend(self.take_handed(&owner, refused.iter().min().copied()));
        } else {
            self.flush_pending |= self.attached.as_ref() == Some(&owner);
        }
        self.put_back(&owner, back);
    }

    /// Settlements that have not entered their owner's record.
    pub fn undelivered(&self, owner: &SessionId) -> usize {
        let queued = self.queues.get(owner).map_or(0, |queue| queue.len());
        queued + self.handed.iter().filter(|delivery| delivery.owner == *owner).count()
    }

    /// Results among these; aborts enter no request (`terminal.md` TERM-61).
    pub fn results_waiting(&self, owner: &SessionId) -> usize {
        let is_result = |delivery: &&Delivery| matches!(delivery.payload, Payload::Result { .. });
        let queued = self.queues.get(owner).into_iter().flatten();
        let handed = self.handed.iter().filter(|delivery| delivery.owner == *owner);
        queued.chain(handed).filter(is_result).count()
    }

    /// Whether nothing is in flight and nothing on its way to the attached
    /// owner (`product.md` P-6). What its record refused is not on its way:
    /// waiting for it would never end.
    pub fn is_quiet(&self, owner: &SessionId) -> bool {
        !self.flush_pending
            && !self.handed.iter().any(|delivery| delivery.owner == *owner)
            && !self.open_of(owner).any(|subagent| subagent.status == crate::Status::Running)
    }
}

/// Deliveries remembered until their write is certain: more than one run of
/// an owner can take in before its next request.
const RECORDED_MAX: usize = 4096;
