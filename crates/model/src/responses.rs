//! The `openai-responses` wire format (`host.md` 9.4).
//!
//! Owns its request body and its stream. Must never do IO. Read
//! `responses::encode`, then `responses::decode`.

mod decode;
mod encode;
mod input;

use crew_base::id::CallId;
use crew_base::model::ModelRequest;

use crate::assembly::{sanitised, short_digest};

pub(crate) use decode::ResponsesDecoder;
pub(crate) use encode::encode;

/// Characters of an id that the API takes.
const ID_CHARS_MAX: usize = 64;

/// The id under which a call and its result are kept for sending: `call` or
/// `call|item` (`host.md` 9.4.4). Parts of foreign ids are cleaned, the item
/// part is made one that the API takes.
pub(crate) fn rewrite_id(_request: &ModelRequest, id: &CallId, same_model: bool) -> CallId {
    if same_model {
        return id.clone();
    }
    let (call, item) = split_id(id.as_str());
    let clean = sanitised(call);
    let clean = clean[..clean.len().min(ID_CHARS_MAX)].trim_end_matches('_');
    let clean = if clean.is_empty() { "call" } else { clean };
    CallId::new(match item {
        Some(item) => format!("{clean}|fc_{}", short_digest(item)),
        None => clean.to_owned(),
    })
}

/// The call part and the item part of an id.
fn split_id(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}

#[cfg(test)]
mod tests;
