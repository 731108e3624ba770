//! The request of `anthropic-messages` (`host.md` 9.2.1 to 9.2.7, 3.10.2).

use std::borrow::Cow;
use std::fmt;

use crew_base::json::Raw;
use crew_base::model::{CacheRetention, ModelError, ModelRequest, ToolChoice};
use crew_base::text::is_blank;
use crew_base::tool::ToolDefinition;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::compat::Compat;
use super::content::{CacheControl, Messages, Part};
use super::thinking::Thinking;
use crate::prepare::{Prepared, max_tokens};
use crate::wire::{EncodeOptions, Encoded, Fields};

/// Writes the request.
pub(crate) fn encode(
    request: &ModelRequest,
    prepared: &Prepared<'_>,
    options: &EncodeOptions,
) -> Result<Encoded, ModelError> {
    let compat = Compat::of(&request.model);
    let limit = max_tokens(request, prepared);
    let thinking = Thinking::of(&request.model, request.thinking, limit, options, compat);
    let cache = cache_control(request.cache, compat);
    let mut body = Fields::default();
    body.set("model", &request.model.id);
    body.set("max_tokens", &limit);
    body.set("stream", &true);
    if !is_blank(&prepared.prompt) {
        body.set("system", &[Part::text(&prepared.prompt).marked(cache)]);
    }
    if !prepared.tools.is_empty() {
        body.set("tools", &tools(&prepared.tools, cache, compat));
    }
    if let Some(choice) = tool_choice(request, prepared, &thinking, compat) {
        body.set("tool_choice", &choice);
    }
    if let Some(field) = thinking.field() {
        body.set("thinking", &field);
    }
    if let Thinking::Adaptive { effort } = &thinking {
        body.set("output_config", &json!({ "effort": effort }));
    }
    body.hold("messages");
    if let Some(sampling) = &request.model.sampling_params {
        let mut sampling = Fields::of(sampling);
        if thinking.is_on() || !compat.temperature {
            sampling.list.retain(|(name, _)| name != "temperature");
        }
        body.merge(sampling);
    }
    let conversation = Messages { turns: &prepared.turns, cache, compat };
    Ok(Encoded {
        url: format!("{}/v1/messages", request.model.base_url),
        headers: headers(&thinking, !prepared.tools.is_empty(), compat),
        body: body.text_with(&conversation, prepared.bytes()),
    })
}

fn headers(thinking: &Thinking, has_tools: bool, compat: Compat) -> Vec<(String, String)> {
    let mut headers = vec![
        ("accept".to_owned(), "application/json".to_owned()),
        ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
    ];
    let mut betas = Vec::new();
    if matches!(thinking, Thinking::Budget(_)) {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if has_tools && !compat.eager_tool_input {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    if !betas.is_empty() {
        headers.push(("anthropic-beta".to_owned(), betas.join(",")));
    }
    headers
}

fn cache_control(wish: CacheRetention, compat: Compat) -> Option<CacheControl> {
    match wish {
        CacheRetention::None => None,
        CacheRetention::Short => Some(CacheControl::new(None)),
        CacheRetention::Long => Some(CacheControl::new(compat.long_cache.then_some("1h"))),
    }
}

/// A forced tool, where the API takes one: it refuses it while the model
/// thinks, and a tool that is not offered.
fn tool_choice(
    request: &ModelRequest,
    prepared: &Prepared<'_>,
    thinking: &Thinking,
    compat: Compat,
) -> Option<serde_json::Value> {
    let ToolChoice::Named(name) = &request.tool_choice else {
        return None;
    };
    let offered = prepared.tools.iter().any(|tool| tool.name == *name);
    let possible = compat.forced_tool && offered && !thinking.is_on();
    possible.then(|| json!({"type": "tool", "name": name}))
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Schema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eager_input_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

fn tools(tools: &[ToolDefinition], cache: Option<CacheControl>, compat: Compat) -> Vec<Tool<'_>> {
    let last = tools.len() - 1;
    let marked = |at: usize| at == last && compat.cache_on_tools;
    tools
        .iter()
        .enumerate()
        .map(|(at, tool)| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: schema(&tool.parameters),
            eager_input_streaming: compat.eager_tool_input.then_some(true),
            cache_control: cache.filter(|_| marked(at)),
        })
        .collect()
}

/// The root keywords the API takes (`host.md` 9.2.6).
fn schema(parameters: &Raw) -> Schema<'_> {
    let Members(given) = serde_json::from_str(parameters.text()).unwrap_or_default();
    let member = |wanted: &str| {
        // Of several the last one counts.
        given.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| *value)
    };
    Schema {
        kind: "object",
        properties: Known::or_empty(member("properties"), Known::Object {}),
        required: Known::or_empty(member("required"), Known::List([])),
        additional_properties: member("additionalProperties"),
        defs: member("$defs"),
        definitions: member("definitions"),
    }
}

/// A schema as it is sent; borrowed, since every request sends all of them.
#[derive(Serialize)]
struct Schema<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Known<'a>,
    required: Known<'a>,
    #[serde(rename = "additionalProperties", skip_serializing_if = "Option::is_none")]
    additional_properties: Option<&'a RawValue>,
    #[serde(rename = "$defs", skip_serializing_if = "Option::is_none")]
    defs: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definitions: Option<&'a RawValue>,
}

/// A member that is sent in any case.
#[derive(Serialize)]
#[serde(untagged)]
enum Known<'a> {
    Given(&'a RawValue),
    Object {},
    List([(); 0]),
}

impl<'a> Known<'a> {
    fn or_empty(given: Option<&'a RawValue>, empty: Known<'a>) -> Known<'a> {
        given.map_or(empty, Known::Given)
    }
}

/// The members of an object in the text they came in.
#[derive(Default)]
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
