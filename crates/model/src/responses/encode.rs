//! The body and headers of a Responses request (`host.md` 9.4.1, 9.4.6, 3.9,
//! 3.10.3).

use crew_base::json::Raw;
use crew_base::model::{CacheRetention, ModelError, ModelRequest, ThinkingLevel};
use crew_base::text::is_blank;
use serde_json::json;

use super::ID_CHARS_MAX;
use super::input::items;
use crate::prepare::{Prepared, max_tokens};
use crate::switches::{Affinity, CacheKeyMode, Switches, cut_chars, forced_tool};
use crate::wire::{EncodeOptions, Encoded, Fields};

/// Writes the request.
pub(crate) fn encode(
    request: &ModelRequest,
    prepared: &Prepared<'_>,
    _options: &EncodeOptions,
) -> Result<Encoded, ModelError> {
    /// The API refuses less.
    const OUTPUT_TOKENS_MIN: u64 = 16;
    let switches = Switches::of(&request.model);
    let mut input = instructions(request, prepared, &switches);
    input.extend(items(request, &prepared.turns));
    let mut body = Fields::default();
    body.set("model", &request.model.id);
    body.hold("input");
    body.set("stream", &true);
    body.set("store", &false);
    if switches.flag("supportsMaxOutputTokens", true) {
        let tokens = max_tokens(request, prepared).max(OUTPUT_TOKENS_MIN);
        body.set("max_output_tokens", &tokens);
    }
    if !prepared.tools.is_empty() {
        body.set("tools", &tools(prepared, &switches));
    }
    let is_offered = |name: &&str| prepared.tools.iter().any(|tool| tool.name == *name);
    if let Some(name) = forced_tool(request).filter(is_offered) {
        body.set("tool_choice", &json!({ "type": "function", "name": name }));
    }
    add_thinking(&mut body, request);
    add_cache(&mut body, request, &switches);
    if let Some(parameters) = &request.model.sampling_params {
        body.merge(Fields::of(parameters));
    }
    Ok(Encoded {
        url: format!("{}/responses", request.model.base_url),
        headers: headers(request, &switches),
        body: body.text_with(&input, prepared.bytes()),
    })
}

fn instructions(request: &ModelRequest, prepared: &Prepared<'_>, switches: &Switches) -> Vec<Raw> {
    if is_blank(&prepared.prompt) {
        return Vec::new();
    }
    let developer = request.model.reasoning && switches.flag("supportsDeveloperRole", true);
    let role = if developer { "developer" } else { "system" };
    vec![Raw::of(&json!({ "role": role, "content": prepared.prompt }))]
}

fn tools(prepared: &Prepared<'_>, switches: &Switches) -> Vec<Fields> {
    let strict = switches.flag("supportsStrictMode", false);
    let mut tools = Vec::new();
    for tool in &prepared.tools {
        let mut fields = Fields::default();
        fields.set("type", "function");
        fields.set("name", &tool.name);
        fields.set("description", &tool.description);
        fields.set("parameters", &tool.parameters);
        if strict {
            fields.set("strict", &false);
        }
        tools.push(fields);
    }
    tools
}

/// Effort and, when the model thinks, the wish for its encrypted reasoning.
fn add_thinking(body: &mut Fields, request: &ModelRequest) {
    if !request.model.reasoning {
        return;
    }
    let level = request.thinking;
    let mapping = request.model.thinking_levels.get(level.word());
    let mapped = mapping.and_then(Option::as_deref);
    if level != ThinkingLevel::Off {
        let effort = mapped.unwrap_or(level.word());
        body.set("reasoning", &json!({ "effort": effort, "summary": "auto" }));
        body.set("include", &["reasoning.encrypted_content"]);
    } else if mapping != Some(&None) {
        body.set("reasoning", &json!({ "effort": mapped.unwrap_or("none") }));
    }
}

fn add_cache(body: &mut Fields, request: &ModelRequest, switches: &Switches) {
    let explicit = switches.flag("supportsExplicitPromptCacheMode", false);
    let named = switches.cache_key_mode() != CacheKeyMode::Disabled;
    if named && request.cache != CacheRetention::None {
        let key = cut_chars(request.session.as_str(), ID_CHARS_MAX);
        body.set("prompt_cache_key", key);
    }
    match request.cache {
        CacheRetention::None if explicit => {
            body.set("prompt_cache_options", &json!({ "mode": "explicit" }));
        }
        CacheRetention::Long if explicit => {
            body.set("prompt_cache_options", &json!({ "ttl": "30m" }));
        }
        CacheRetention::Long if switches.flag("supportsLongCacheRetention", true) => {
            body.set("prompt_cache_retention", "24h");
        }
        CacheRetention::None | CacheRetention::Short | CacheRetention::Long => {}
    }
}

fn headers(request: &ModelRequest, switches: &Switches) -> Vec<(String, String)> {
    let names: &[&str] = match (request.cache, switches.affinity(Affinity::Full)) {
        (CacheRetention::None, _) => &[],
        (_, Affinity::Full) => &["session-id", "x-client-request-id"],
        (_, Affinity::NoSession) => &["x-client-request-id"],
        (_, Affinity::Router) => &["x-session-id"],
    };
    let session = names.iter().map(|name| ((*name).to_owned(), request.session.to_string()));
    let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
    headers.extend(session);
    headers
}
