//! How messages are read from their JSON text (`host.md` 2.7).
//!
//! Owns the leniency towards older and foreign files. Must never lose the text
//! of an opaque part: the tag of a message or block is looked up first, then
//! the text is read once more as that type, because an internally tagged enum
//! would buffer the fields. Read `message` for the forms.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Block, Content, Message, Sections};
use crate::json::Raw;

fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<RawValue>, D::Error> {
    Box::<RawValue>::deserialize(deserializer)
}

fn read<'a, T: Deserialize<'a>, E: serde::de::Error>(raw: &'a RawValue) -> Result<T, E> {
    serde_json::from_str(raw.get()).map_err(E::custom)
}

/// The tag of an object that begins with it, as ours do; saves one pass over the
/// whole text.
fn leading_tag<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(begin)?;
    let tag = &rest[..rest.find('"')?];
    (!tag.contains('\\')).then_some(tag)
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
        #[derive(Deserialize)]
        struct Tag {
            role: String,
        }
        let raw = raw(deserializer)?;
        let role = match leading_tag(raw.get(), r#"{"role":""#) {
            Some(role) => Cow::Borrowed(role),
            None => Cow::Owned(read::<Tag, D::Error>(&raw)?.role),
        };
        Ok(match role.as_ref() {
            "system" => Message::System(read(&raw)?),
            "user" => Message::User(read(&raw)?),
            "assistant" => Message::Assistant(read(&raw)?),
            "toolResult" => Message::ToolResult(read(&raw)?),
            "bashExecution" => Message::BashExecution(read(&raw)?),
            "custom" | "hookMessage" => Message::Custom(read(&raw)?),
            "branchSummary" => Message::BranchSummary(read(&raw)?),
            "compactionSummary" => Message::CompactionSummary(read(&raw)?),
            other => {
                return Err(serde::de::Error::custom(format!("unknown message role `{other}`")));
            }
        })
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Block, D::Error> {
        #[derive(Deserialize)]
        struct Tag {
            #[serde(rename = "type")]
            kind: Option<String>,
        }
        let raw = raw(deserializer)?;
        let other = || Raw::parse(raw.get()).unwrap_or_else(Raw::empty_object);
        let kind = match leading_tag(raw.get(), r#"{"type":""#) {
            Some(kind) => Some(Cow::Borrowed(kind)),
            None => read::<Tag, D::Error>(&raw)?.kind.map(Cow::Owned),
        };
        Ok(match kind.as_deref() {
            Some("text") => read::<_, D::Error>(&raw).map(Block::Text)?,
            Some("image") => {
                read::<_, D::Error>(&raw).map_or_else(|_| Block::Other(other()), Block::Image)
            }
            Some("thinking") => read::<_, D::Error>(&raw).map(Block::Thinking)?,
            Some("toolCall") => {
                read::<_, D::Error>(&raw).map_or_else(|_| Block::Other(other()), Block::ToolCall)
            }
            _ => Block::Other(other()),
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// Reads content in one pass over its text; large sessions are mostly content.
struct ContentVisitor;

const NO_CONTENT: Content = Content::Blocks(Vec::new());

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(NO_CONTENT)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(NO_CONTENT)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(NO_CONTENT)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(NO_CONTENT)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(NO_CONTENT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(NO_CONTENT)
    }
}

impl<'de> Deserialize<'de> for Sections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sections, D::Error> {
        let map = Option::<serde_json::Map<String, serde_json::Value>>::deserialize(deserializer)?;
        let text = |value: serde_json::Value| value.as_str().map(str::to_owned);
        Ok(Sections(map.unwrap_or_default().into_iter().map(|(name, v)| (name, text(v))).collect()))
    }
}

pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

pub(super) fn block_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Block>, D::Error> {
    Ok(Content::deserialize(deserializer)?.blocks())
}
