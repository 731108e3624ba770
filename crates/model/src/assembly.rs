//! The content blocks of one answer while they arrive: numbering, text so far,
//! unique call ids, and the events of the contract in `crew_base::model`.
//!
//! Shared by the decoders of `completions`, `responses` and `google`. Knows no
//! wire format. Appending costs the length of what is appended. Read one of
//! those decoders next.

use std::collections::BTreeSet;

use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::message::{Block, Message, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage};
use crew_base::model::{ModelError, ModelEvent, ModelRequest};

use crate::arguments;

/// What a block holds so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text.
    Text,
    /// Reasoning.
    Thinking,
    /// A tool call; its text is that of the arguments.
    Call,
}

/// One block.
struct Part {
    kind: Kind,
    /// Text, reasoning, or JSON text of arguments.
    text: String,
    /// Opaque; goes into the signature field of the block.
    signature: Option<String>,
    /// Of a call, as the provider said it, maybe empty.
    id: String,
    /// Of a call, the id it goes by, once that is settled.
    claimed: Option<CallId>,
    /// Of a call, maybe empty until it arrives.
    name: String,
    open: bool,
}

/// Blocks, identity, usage and end of one answer.
pub(crate) struct Assembly {
    parts: Vec<Part>,
    taken: BTreeSet<CallId>,
    seed: String,
    asked: String,
    response_id: Option<String>,
    response_model: Option<String>,
    usage: Option<Usage>,
    done: bool,
}

impl Assembly {
    /// Starts empty; call ids of the request count as taken.
    pub(crate) fn new(request: &ModelRequest) -> Assembly {
        let answers = request.messages.iter().map(AsRef::as_ref);
        let taken = answers
            .filter_map(Message::as_assistant)
            .flat_map(|answer| answer.tool_calls().map(|call| call.id.clone()))
            .collect();
        Assembly {
            parts: Vec::new(),
            taken,
            seed: format!("{}/{}", request.session, request.messages.len()),
            asked: request.model.id.clone(),
            response_id: None,
            response_model: None,
            usage: None,
            done: false,
        }
    }

    /// Whether the last event was sent.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the answer holds a tool call.
    pub(crate) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| part.kind == Kind::Call)
    }

    /// The newest block, if it is still open and of this kind.
    pub(crate) fn last_open(&self, kind: Kind) -> Option<usize> {
        let part = self.parts.last()?;
        (part.open && part.kind == kind).then(|| self.parts.len() - 1)
    }

    /// Begins a block of text or reasoning and gives its index.
    pub(crate) fn open(&mut self, kind: Kind, out: &mut Vec<ModelEvent>) -> usize {
        self.begin(kind, "", "", None, out)
    }

    /// Begins a call with what is known of it and gives its index. An empty id
    /// may still arrive.
    pub(crate) fn open_call(&mut self, id: &str, name: &str, out: &mut Vec<ModelEvent>) -> usize {
        let claimed = (!id.is_empty()).then(|| self.claim(self.parts.len(), id));
        self.begin(Kind::Call, id, name, claimed, out)
    }

    /// Begins a call of which no more will be known than this.
    pub(crate) fn open_whole_call(
        &mut self,
        id: &str,
        name: &str,
        out: &mut Vec<ModelEvent>,
    ) -> usize {
        let claimed = self.claim(self.parts.len(), id);
        self.begin(Kind::Call, id, name, Some(claimed), out)
    }

    /// Adds to a block that is open; nothing for an empty addition.
    pub(crate) fn append(&mut self, index: usize, delta: &str, out: &mut Vec<ModelEvent>) {
        let part = &mut self.parts[index];
        if delta.is_empty() || !part.open {
            return;
        }
        part.text.push_str(delta);
        out.push(ModelEvent::BlockDelta { index, delta: delta.to_owned() });
    }

    /// Replaces the text of an open block by a later, authoritative one, and
    /// tells the part of it that was not seen yet.
    pub(crate) fn settle(&mut self, index: usize, text: &str, out: &mut Vec<ModelEvent>) {
        let part = &mut self.parts[index];
        if let Some(rest) = text.strip_prefix(part.text.as_str()) {
            let rest = rest.to_owned();
            self.append(index, &rest, out);
        } else if part.open {
            part.text = text.to_owned();
        }
    }

    /// The text so far.
    pub(crate) fn text(&self, index: usize) -> &str {
        &self.parts[index].text
    }

    /// The id of a call as the provider said it, maybe empty.
    pub(crate) fn call_id(&self, index: usize) -> &str {
        &self.parts[index].id
    }

    /// Fills in the id and name of a call where they were missing.
    pub(crate) fn name_call(&mut self, index: usize, id: &str, name: &str) {
        let part = &mut self.parts[index];
        if part.id.is_empty() {
            id.clone_into(&mut part.id);
        }
        if part.name.is_empty() {
            name.clone_into(&mut part.name);
        }
    }

    /// Sets the signature of a block.
    pub(crate) fn sign(&mut self, index: usize, signature: impl Into<String>) {
        self.parts[index].signature = Some(signature.into());
    }

    /// The signature of a block.
    pub(crate) fn signature(&self, index: usize) -> Option<&str> {
        self.parts[index].signature.as_deref()
    }

    /// Ends a block; nothing if it has ended.
    pub(crate) fn close(&mut self, index: usize, out: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.parts[index].open, false) {
            return;
        }
        let block = match self.parts[index].kind {
            Kind::Text => Block::Text(TextBlock {
                text: self.parts[index].text.clone(),
                text_signature: self.parts[index].signature.clone(),
            }),
            Kind::Thinking => Block::Thinking(ThinkingBlock {
                thinking: self.parts[index].text.clone(),
                thinking_signature: self.parts[index].signature.clone(),
                redacted: false,
            }),
            Kind::Call => Block::ToolCall(self.finished_call(index)),
        };
        out.push(ModelEvent::BlockEnd { index, block });
    }

    /// Ends every open block, in order.
    pub(crate) fn close_all(&mut self, out: &mut Vec<ModelEvent>) {
        for index in 0..self.parts.len() {
            self.close(index, out);
        }
    }

    /// Takes the ids of a response; tells them when they are new.
    pub(crate) fn identify(
        &mut self,
        id: Option<&str>,
        model: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) {
        let asked = self.asked.as_str();
        let id = id.filter(|id| !id.is_empty() && self.response_id.is_none());
        let model = model
            .filter(|model| !model.is_empty() && *model != asked && self.response_model.is_none());
        if id.is_none() && model.is_none() {
            return;
        }
        self.response_id = self.response_id.take().or(id.map(str::to_owned));
        self.response_model = self.response_model.take().or(model.map(str::to_owned));
        out.push(ModelEvent::Identity {
            response_id: self.response_id.clone(),
            response_model: self.response_model.clone(),
        });
    }

    /// Takes the newest counters; tells them when they changed.
    pub(crate) fn count(&mut self, usage: Usage, out: &mut Vec<ModelEvent>) {
        if self.usage.as_ref() != Some(&usage) {
            out.push(ModelEvent::Usage(usage.clone()));
            self.usage = Some(usage);
        }
    }

    /// Ends the answer well: closes what is open and says why it stopped.
    pub(crate) fn finish(
        &mut self,
        stop_reason: StopReason,
        raw_stop_reason: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) {
        self.close_all(out);
        self.done = true;
        out.push(ModelEvent::Finished {
            stop_reason,
            raw_stop_reason: raw_stop_reason.map(str::to_owned),
        });
    }

    /// Ends the answer with an error; open blocks stay as they are.
    pub(crate) fn fail(&mut self, error: ModelError, out: &mut Vec<ModelEvent>) {
        self.done = true;
        out.push(ModelEvent::Failed(error));
    }

    fn begin(
        &mut self,
        kind: Kind,
        id: &str,
        name: &str,
        claimed: Option<CallId>,
        out: &mut Vec<ModelEvent>,
    ) -> usize {
        let block = match kind {
            Kind::Text => Block::text(""),
            Kind::Thinking => Block::Thinking(ThinkingBlock::default()),
            Kind::Call => {
                let id = claimed.clone().unwrap_or_else(|| CallId::new(""));
                Block::ToolCall(call(id, name.to_owned()))
            }
        };
        let index = self.parts.len();
        self.parts.push(Part {
            kind,
            text: String::new(),
            signature: None,
            id: id.to_owned(),
            claimed,
            name: name.to_owned(),
            open: true,
        });
        out.push(ModelEvent::BlockStart { index, block });
        index
    }

    fn finished_call(&mut self, index: usize) -> ToolCall {
        let part = &mut self.parts[index];
        let (claimed, id) = (part.claimed.take(), part.id.clone());
        let id = claimed.unwrap_or_else(|| self.claim(index, &id));
        let part = &self.parts[index];
        let mut call = call(id, part.name.clone());
        call.thought_signature = part.signature.clone();
        let parsed = arguments::parse(once(&part.text));
        call.arguments = parsed.value.compact();
        call.arguments_error = parsed.error;
        call
    }

    /// The id for a call: the provider's, or a generated one where it is
    /// missing or names another call of this session already (`host.md` 9.5.5).
    fn claim(&mut self, index: usize, said: &str) -> CallId {
        let mut id = CallId::new(said);
        let mut tries = 0;
        while id.as_str().is_empty() || !self.taken.insert(id.clone()) {
            let response = self.response_id.as_deref().unwrap_or("");
            let source = format!("{}/{response}/{index}/{tries}", self.seed);
            id = CallId::new(format!("call_{:016x}", digest(&source)));
            tries += 1;
        }
        id
    }
}

fn call(id: CallId, name: String) -> ToolCall {
    ToolCall {
        id,
        name,
        arguments: Raw::empty_object(),
        thought_signature: None,
        namespace: None,
        arguments_error: None,
    }
}

/// Arguments that a server sent whole more than once count once; two different
/// objects stay as they are and fail to parse.
fn once(text: &str) -> &str {
    if !text.contains("}{") {
        return text;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let Some(Ok(_)) = values.next() else {
        return text;
    };
    let (first, mut rest) = text.split_at(values.byte_offset());
    while let Some(after) = rest.strip_prefix(first) {
        rest = after;
    }
    if rest.trim().is_empty() { first } else { text }
}

/// A stable number of a text (FNV-1a, mixed), for ids that must be the same in
/// every request and on every machine.
pub(crate) fn digest(text: &str) -> u64 {
    let folded = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (folded ^ (folded >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

/// Eight hex digits of [`digest`].
pub(crate) fn short_digest(text: &str) -> String {
    format!("{:08x}", digest(text) >> 32)
}

/// Every character outside `[A-Za-z0-9_-]` as `_`.
pub(crate) fn sanitised(id: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_sent_twice_count_once_and_different_ones_stay() {
        let check = |text: &str, expected: &str| assert_eq!(once(text), expected);
        check(r#"{"a":1}{"a":1}"#, r#"{"a":1}"#);
        check(r#"{"a":1}{"a":1}{"a":1}"#, r#"{"a":1}"#);
        check(r#"{"a":1}{"a":2}"#, r#"{"a":1}{"a":2}"#);
        check(r#"{"a":"}{"}"#, r#"{"a":"}{"}"#);
        check(r#"{"a":1}{"a""#, r#"{"a":1}{"a""#);
        check("", "");
    }

    #[test]
    fn digests_are_stable_and_tell_texts_apart() {
        assert_eq!(short_digest("fc_1"), short_digest("fc_1"));
        assert_ne!(short_digest("fc_1"), short_digest("fc_2"));
        assert_eq!(short_digest("").len(), 8);
    }

    #[test]
    fn ids_keep_only_letters_digits_underscore_and_hyphen() {
        assert_eq!(sanitised("call+ä/1|fc-2_x"), "call___1_fc-2_x");
    }
}
