//! The body of a Gemini request (`host.md` 9.5.1).

use crew_base::model::{ModelError, ModelRequest};
use crew_base::text::is_blank;
use serde_json::{Value, json};

use super::contents::contents;
use super::models::traits;
use super::schema::without_const;
use super::thinking;
use crate::prepare::{Prepared, max_tokens};
use crate::switches::forced_tool;
use crate::wire::{EncodeOptions, Encoded, Fields};

/// Members of the body; configured sampling parameters of other names belong
/// into `generationConfig`.
const ROOT_MEMBERS: [&str; 6] =
    ["generationConfig", "safetySettings", "toolConfig", "cachedContent", "labels", "serviceTier"];

/// Writes the request.
pub(crate) fn encode(
    request: &ModelRequest,
    prepared: &Prepared<'_>,
    options: &EncodeOptions,
) -> Result<Encoded, ModelError> {
    let model = &request.model;
    let traits = traits(&model.id);
    let mut body = Fields::default();
    body.hold("contents");
    if !is_blank(&prepared.prompt) {
        let parts = json!({ "parts": [{ "text": prepared.prompt }] });
        body.set("systemInstruction", &parts);
    }
    if !prepared.tools.is_empty() {
        let tools = json!([{ "functionDeclarations": declarations(prepared) }]);
        body.set("tools", &tools);
    }
    let is_offered = |name: &&str| prepared.tools.iter().any(|tool| tool.name == *name);
    if let Some(name) = forced_tool(request).filter(is_offered) {
        let calling = json!({ "mode": "ANY", "allowedFunctionNames": [name] });
        body.set("toolConfig", &json!({ "functionCallingConfig": calling }));
    }
    let mut generation = Fields::default();
    generation.set("maxOutputTokens", &max_tokens(request, prepared));
    if let Some(thinking) = thinking::config(request, traits, options) {
        generation.set("thinkingConfig", &thinking);
    }
    let sampling = model.sampling_params.as_ref().map(Fields::of);
    for (name, value) in sampling.unwrap_or_default().list {
        if name == "generationConfig" {
            generation.merge(Fields::of(&value));
        } else if ROOT_MEMBERS.contains(&name.as_str()) {
            body.set(&name, &value);
        } else {
            generation.set(&name, &value);
        }
    }
    body.set("generationConfig", &generation);
    let id = model.id.strip_prefix("models/").unwrap_or(&model.id);
    Ok(Encoded {
        url: format!("{}/models/{id}:streamGenerateContent?alt=sse", model.base_url),
        headers: vec![("accept".to_owned(), "text/event-stream".to_owned())],
        body: body.text_with(&contents(&prepared.turns, traits), prepared.bytes()),
    })
}

fn declarations(prepared: &Prepared<'_>) -> Vec<Value> {
    let declare = |tool: &crew_base::tool::ToolDefinition| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": without_const(tool.parameters.value()),
        })
    };
    prepared.tools.iter().map(declare).collect()
}
