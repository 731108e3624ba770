//! The `google-generative-ai` wire format (`host.md` 9.5).
//!
//! Owns its request body and its stream. Must never do IO. Read
//! `google::models` for how models differ, then `google::encode` and
//! `google::decode`.

mod contents;
mod decode;
mod encode;
mod models;
mod schema;
mod thinking;

use crew_base::id::CallId;
use crew_base::model::ModelRequest;

use crate::assembly::sanitised;

pub(crate) use decode::GoogleDecoder;
pub(crate) use encode::encode;

/// The id under which a call and its result are sent: foreign ones hold only
/// `[A-Za-z0-9_-]` and at most 64 characters (`host.md` 9.5.3).
pub(crate) fn rewrite_id(_request: &ModelRequest, id: &CallId, same_model: bool) -> CallId {
    const ID_CHARS_MAX: usize = 64;
    if same_model {
        return id.clone();
    }
    let clean = sanitised(id.as_str());
    CallId::new(&clean[..clean.len().min(ID_CHARS_MAX)])
}

#[cfg(test)]
mod tests;
