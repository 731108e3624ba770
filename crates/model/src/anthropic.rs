//! The `anthropic-messages` wire format (`host.md` 9.2).
//!
//! Owns its request body and its stream. Must never do IO. Read
//! `anthropic::encode`, then `anthropic::decode`.

mod compat;
mod content;
mod decode;
mod encode;
mod thinking;

use crew_base::id::CallId;
use crew_base::model::ModelRequest;

pub(crate) use decode::AnthropicDecoder;
pub(crate) use encode::encode;

/// The id under which a call and its result are sent: foreign ones hold only
/// `[A-Za-z0-9_-]` and at most 64 characters (`host.md` 9.2.5).
pub(crate) fn rewrite_id(_request: &ModelRequest, id: &CallId, same_model: bool) -> CallId {
    if same_model {
        return id.clone();
    }
    CallId::new(acceptable(id.as_str()))
}

/// An id of at most 64 characters that the API accepts.
fn acceptable(id: &str) -> String {
    const ID_CHARS_MAX: usize = 64;
    if id.is_empty() {
        return "call".to_owned();
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let chars = id.chars().take(ID_CHARS_MAX);
    chars.map(|c| if allowed(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
