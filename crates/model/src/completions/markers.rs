//! Cache markers in Anthropic's form, for relays that pass them on
//! (`host.md` 3.10.4).

use crew_base::model::CacheRetention;

use super::compat::Compat;
use super::messages::{CacheControl, Content, Message, Part, Tool};

/// Marks the instructions, the last tool and the last text of the
/// conversation: three markers, one below what the API takes.
pub(super) fn mark(
    messages: &mut [Message],
    tools: &mut [Tool],
    retention: CacheRetention,
    compat: &Compat,
) {
    let ttl = match retention {
        CacheRetention::None => return,
        CacheRetention::Short => None,
        CacheRetention::Long => compat.long_cache.then_some("1h"),
    };
    let marker = CacheControl { kind: "ephemeral", ttl };
    let instructs = |message: &&mut Message| matches!(message.role, "system" | "developer");
    let mut head = messages.iter_mut();
    if let Some(first) = head.find(instructs) {
        mark_message(first, marker);
    }
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(marker);
    }
    let mut tail = messages.iter_mut().rev().filter(|message| !instructs(message));
    tail.any(|message| mark_message(message, marker));
}

/// Marks the last text of a message; false if it has none.
fn mark_message(message: &mut Message, marker: CacheControl) -> bool {
    if let Content::Text(text) = &mut message.content
        && !text.is_empty()
    {
        let part = Part::text(std::mem::take(text));
        message.content = Content::Parts(vec![part]);
    }
    let Content::Parts(parts) = &mut message.content else {
        return false;
    };
    for part in parts.iter_mut().rev() {
        if let Part::Text { cache_control, .. } = part {
            *cache_control = Some(marker);
            return true;
        }
    }
    false
}
