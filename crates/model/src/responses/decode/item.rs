//! Output items: what names them, and what they hold at their end.

use serde_json::{Value, json};

use crate::assembly::Kind;
use crate::frame::text;

/// An output item that became a block.
pub(super) struct Item {
    names: Names,
    pub(super) kind: Kind,
    /// Position in the content.
    pub(super) block: usize,
    /// The whole item was seen.
    pub(super) is_done: bool,
    /// Reasoning that came without its encrypted part.
    pub(super) lacks_encrypted: bool,
}

impl Item {
    pub(super) fn new(names: Names, kind: Kind, block: usize) -> Item {
        Item { names, kind, block, is_done: false, lacks_encrypted: false }
    }
}

/// What an event says about which item it means.
pub(super) struct Names {
    output_index: Option<u64>,
    id: String,
    call_id: String,
}

impl Names {
    /// The names in an event and in the item it holds, if it holds one.
    pub(super) fn of(event: &Value, item: &Value) -> Names {
        let id = [text(item, "id"), text(event, "item_id")];
        Names {
            output_index: event.get("output_index").and_then(Value::as_u64),
            id: id.into_iter().find(|id| !id.is_empty()).unwrap_or("").to_owned(),
            call_id: text(item, "call_id").to_owned(),
        }
    }

    /// Whether the event names no item.
    pub(super) fn is_empty(&self) -> bool {
        self.output_index.is_none() && self.id.is_empty() && self.call_id.is_empty()
    }

    /// The item meant: by index, since relays change ids between events; by
    /// ids where there is no index or where several items share it.
    pub(super) fn find(&self, items: &[Item]) -> Option<usize> {
        let same = |one: &str, other: &str| !one.is_empty() && one == other;
        let by_id = |at: &usize| {
            let names = &items[*at].names;
            same(&names.id, &self.id) || same(&names.call_id, &self.call_id)
        };
        let by_index = |at: &usize| items[*at].names.output_index == self.output_index;
        let all = 0..items.len();
        if self.output_index.is_none() {
            return all.clone().find(by_id);
        }
        let mut sharing = all.clone().filter(by_index);
        let Some(first) = sharing.next() else {
            let unnumbered = |at: &usize| items[*at].names.output_index.is_none();
            return all.filter(unnumbered).find(by_id);
        };
        let other_call = !self.call_id.is_empty()
            && !items[first].names.call_id.is_empty()
            && items[first].names.call_id != self.call_id;
        if sharing.next().is_none() && !other_call {
            return Some(first);
        }
        all.filter(by_index).find(by_id)
    }
}

/// The kind of block an item becomes; `None` for kinds we do not know.
pub(super) fn kind_of(item: &Value) -> Option<Kind> {
    match text(item, "type") {
        "message" => Some(Kind::Text),
        "reasoning" => Some(Kind::Thinking),
        "function_call" => Some(Kind::Call),
        _ => None,
    }
}

/// The id of a call as we keep it, `call|item`; empty while it is not known.
pub(super) fn call_name(item: &Value) -> String {
    match (text(item, "call_id"), text(item, "id")) {
        ("", _) => String::new(),
        (call, "") => call.to_owned(),
        (call, id) => format!("{call}|{id}"),
    }
}

/// The text of a message item, refusals included.
pub(super) fn written_text(item: &Value) -> String {
    let parts = item["content"].as_array().into_iter().flatten();
    let texts = parts.flat_map(|part| [text(part, "text"), text(part, "refusal")]);
    texts.collect()
}

/// The summary of a reasoning item, else its content; `None` without either.
pub(super) fn reasoning_text(item: &Value) -> Option<String> {
    let joined = |name: &str| {
        let parts = item[name].as_array().into_iter().flatten();
        let texts = parts.map(|part| text(part, "text"));
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    };
    let mut found = ["summary", "content"].into_iter().map(joined);
    found.find(|text| !text.is_empty())
}

/// What a text must bring back: `{"v":1,"id","phase"?}` (`host.md` 9.4.3).
pub(super) fn text_signature(item: &Value) -> Option<String> {
    let id = Some(text(item, "id")).filter(|id| !id.is_empty())?;
    let mut signature = json!({ "v": 1, "id": id });
    if let Some(phase) = item.get("phase").filter(|phase| phase.is_string()) {
        signature["phase"] = phase.clone();
    }
    Some(signature.to_string())
}
