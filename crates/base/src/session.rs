//! What passes between a session and those who wait for it.

use crate::message::CustomMessage;

/// Names one delivery of the crew until it stands in the owner's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryId(pub u64);

/// A result of the crew on its way into a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultMessage {
    /// Which delivery this is.
    pub delivery: DeliveryId,
    /// The message of type `crew-result`.
    pub message: CustomMessage,
}

/// How a session run ended (`host.md` 3.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The model stopped by itself, maybe with an error of the provider.
    Ended,
    /// It was aborted.
    Aborted,
    /// The host failed, for instance because the record could not be written.
    Failed(String),
}
