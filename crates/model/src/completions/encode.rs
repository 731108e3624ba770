//! The body and headers of a Chat Completions request (`host.md` 9.3.1).

use crew_base::model::{CacheRetention, ModelError, ModelRequest};
use crew_base::text::is_blank;
use serde_json::json;

use super::compat::Compat;
use super::markers::mark;
use super::messages::{Content, Message, messages, tools};
use super::thinking;
use crate::prepare::{Prepared, Turn, max_tokens};
use crate::switches::{Affinity, CacheKeyMode, cut_chars, forced_tool};
use crate::wire::{EncodeOptions, Encoded, Fields};

/// Writes the request.
pub(crate) fn encode(
    request: &ModelRequest,
    prepared: &Prepared<'_>,
    options: &EncodeOptions,
) -> Result<Encoded, ModelError> {
    let compat = Compat::of(&request.model);
    let mut conversation = instructions(request, prepared, &compat);
    conversation.extend(messages(&prepared.turns, &compat));
    let mut offered = tools(&prepared.tools, &compat);
    if compat.cache_markers {
        mark(&mut conversation, &mut offered, request.cache, &compat);
    }
    let mut body = Fields::default();
    body.set("model", &request.model.id);
    body.hold("messages");
    body.set("stream", &true);
    if compat.usage_in_streaming {
        body.set("stream_options", &json!({ "include_usage": true }));
    }
    if compat.store {
        body.set("store", &false);
    }
    body.set(&compat.max_tokens_field, &max_tokens(request, prepared));
    if !offered.is_empty() || compat.tools_with_tool_history && has_tool_history(prepared) {
        body.set("tools", &offered);
    }
    let is_offered = |name: &&str| prepared.tools.iter().any(|tool| tool.name == *name);
    if let Some(name) = forced_tool(request).filter(is_offered) {
        let choice = json!({ "type": "function", "function": { "name": name } });
        body.set("tool_choice", &choice);
    }
    thinking::add(&mut body, request, &compat, options);
    add_cache_key(&mut body, request, &compat);
    pass_through(&mut body, &compat, !offered.is_empty());
    if let Some(parameters) = &request.model.sampling_params {
        body.merge(Fields::of(parameters));
    }
    Ok(Encoded {
        url: format!("{}/chat/completions", request.model.base_url),
        headers: headers(request, &compat),
        body: body.text_with(&conversation, prepared.bytes()),
    })
}

fn instructions(request: &ModelRequest, prepared: &Prepared<'_>, compat: &Compat) -> Vec<Message> {
    if is_blank(&prepared.prompt) {
        return Vec::new();
    }
    let developer = request.model.reasoning && compat.developer_role;
    let role = if developer { "developer" } else { "system" };
    vec![Message::new(role, Content::Text(prepared.prompt.clone()))]
}

fn has_tool_history(prepared: &Prepared<'_>) -> bool {
    let mut turns = prepared.turns.iter();
    turns.any(|turn| matches!(turn, Turn::ToolResults(results) if !results.is_empty()))
}

/// Names the prompt cache of the session (3.10.4).
fn add_cache_key(body: &mut Fields, request: &ModelRequest, compat: &Compat) {
    let long = match request.cache {
        CacheRetention::None => return,
        CacheRetention::Short => false,
        CacheRetention::Long => compat.long_cache,
    };
    let wanted = match compat.cache_key_mode {
        CacheKeyMode::Auto => compat.cache_key || long,
        CacheKeyMode::Enabled => true,
        CacheKeyMode::Disabled => false,
    };
    if wanted {
        body.set("prompt_cache_key", cut_chars(request.session.as_str(), 64));
    }
    // With markers the retention stands in them.
    if long && !compat.cache_markers {
        body.set("prompt_cache_retention", "24h");
    }
}

/// Members that configuration hands through to one service.
fn pass_through(body: &mut Fields, compat: &Compat, has_tools: bool) {
    let switches = &compat.switches;
    if has_tools && switches.flag("zaiToolStream", false) {
        body.set("tool_stream", &true);
    }
    if let Some(priority) = switches.raw("vllmPriority") {
        body.set("priority", priority);
    }
    if let Some(routing) = switches.raw("openRouterRouting") {
        body.set("provider", routing);
    }
    if let Some(routing) = switches.raw("vercelGatewayRouting") {
        let mut gateway = Fields::default();
        gateway.set("gateway", routing);
        body.set("providerOptions", &gateway);
    }
}

/// Session affinity, with caching only (9.3.13).
fn headers(request: &ModelRequest, compat: &Compat) -> Vec<(String, String)> {
    let names: &[&str] = match (request.cache, compat.affinity) {
        (CacheRetention::None, _) | (_, None) => &[],
        (_, Some(Affinity::Router)) => &["x-session-id"],
        (_, Some(Affinity::Full)) => &["session_id", "x-client-request-id", "x-session-affinity"],
        (_, Some(Affinity::NoSession)) => &["x-client-request-id", "x-session-affinity"],
    };
    let session = names.iter().map(|name| ((*name).to_owned(), request.session.to_string()));
    let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
    headers.extend(session);
    headers
}
