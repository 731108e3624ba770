//! Joins the pieces of tool calls (`host.md` 9.3.9).
//!
//! Servers disagree about what names a call: `index` may be missing, always
//! zero, or start anywhere; `id` and `name` may come late, be repeated or be
//! empty later on (C097, C098).

use crew_base::model::ModelEvent;
use serde_json::Value;

use crate::assembly::Assembly;
use crate::frame::{raw_at, text};

/// The calls of one answer, in order of their start.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

struct Call {
    /// Position in the content.
    block: usize,
    /// The server's index, if it sends any.
    index: Option<u64>,
}

impl Calls {
    /// Takes one entry of `tool_calls`, which stands at `position` of the list
    /// in the chunk `data`.
    pub(super) fn piece(
        &mut self,
        data: &str,
        position: usize,
        piece: &Value,
        answer: &mut Assembly,
        out: &mut Vec<ModelEvent>,
    ) {
        if !piece.is_object() {
            return;
        }
        let function = piece.get("function").unwrap_or(&Value::Null);
        let (id, name) = (text(piece, "id"), text(function, "name"));
        let index = piece.get("index").and_then(Value::as_u64);
        let arguments = function.get("arguments").unwrap_or(&Value::Null);
        let block = match self.find(index, id, name, answer) {
            Some(block) => block,
            None if id.is_empty() && name.is_empty() && arguments.is_null() => return,
            None => {
                let block = answer.open_call(id, name, out);
                self.0.push(Call { block, index });
                block
            }
        };
        answer.name_call(block, id, name);
        if let Some(more) = arguments.as_str() {
            answer.append(block, more, out);
        } else if arguments.is_object() {
            let position = position.to_string();
            let at = |container| {
                ["choices", "0", container, "tool_calls", &position, "function", "arguments"]
            };
            let whole = raw_at(data, &at("delta")).or_else(|| raw_at(data, &at("message")));
            if let Some(whole) = whole {
                answer.settle(block, whole.text(), out);
            }
        }
    }

    /// The call that a piece continues.
    fn find(&self, index: Option<u64>, id: &str, name: &str, answer: &Assembly) -> Option<usize> {
        let known = |call: &&Call| !id.is_empty() && answer.call_id(call.block) == id;
        let same_index =
            |call: &&Call| index.is_none() || call.index.is_none() || call.index == index;
        let mut newest_first = self.0.iter().rev();
        if let Some(call) = newest_first.clone().find(|call| known(call) && same_index(call)) {
            return Some(call.block);
        }
        let block = match index {
            Some(_) => newest_first.find(|call| call.index == index)?.block,
            None if id.is_empty() => newest_first.next()?.block,
            None => return None,
        };
        let other_id = !id.is_empty() && !answer.call_id(block).is_empty();
        let whole = || is_object(answer.text(block));
        let begins = match index {
            // A fresh id alone proves nothing: some servers make one up for
            // every piece. With a name or behind whole arguments it does.
            Some(_) => other_id && (!name.is_empty() || whole()),
            None => !name.is_empty() && whole(),
        };
        (!begins).then_some(block)
    }
}

fn is_object(text: &str) -> bool {
    // The cheap test first: pieces are many, whole objects are few.
    text.trim_end().ends_with('}') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
