//! The `openai-completions` wire format (`host.md` 9.3): Chat Completions and
//! the many services that imitate it.
//!
//! Owns its request body and its stream. Must never do IO. Read
//! `completions::compat` for how services differ, then `completions::encode`
//! and `completions::decode`.

mod calls;
mod compat;
mod decode;
mod details;
mod encode;
mod markers;
mod messages;
mod thinking;

use crew_base::id::CallId;
use crew_base::model::ModelRequest;

use crate::assembly::{sanitised, short_digest};
use crate::switches::{cut_chars, is_service};

pub(crate) use decode::CompletionsDecoder;
pub(crate) use encode::encode;

/// The id under which a call and its result are sent (`host.md` 9.3.7): an id
/// of two parts becomes one of at most 40 characters.
pub(crate) fn rewrite_id(request: &ModelRequest, id: &CallId, same_model: bool) -> CallId {
    const ID_CHARS_MAX: usize = 40;
    const DIGEST_CHARS: usize = 8;
    let text = id.as_str();
    if same_model {
        return id.clone();
    }
    if !text.contains('|') {
        let is_openai = is_service(&request.model, &["openai"], &["api.openai.com"]);
        let cut = if is_openai { cut_chars(text, ID_CHARS_MAX) } else { text };
        return CallId::new(cut);
    }
    let whole = sanitised(text);
    if whole.len() <= ID_CHARS_MAX {
        return CallId::new(whole);
    }
    let prefix = &whole[..ID_CHARS_MAX - DIGEST_CHARS - 1];
    CallId::new(format!("{prefix}_{}", short_digest(text)))
}

#[cfg(test)]
mod tests;
