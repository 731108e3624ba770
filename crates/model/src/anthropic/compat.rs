//! Compatibility switches of `anthropic-messages` (`host.md` 1.5).

use crew_base::model::ModelSpec;
use serde_json::Value;

/// What the server behind a model can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compat {
    pub(super) eager_tool_input: bool,
    pub(super) cache_on_tools: bool,
    pub(super) long_cache: bool,
    pub(super) temperature: bool,
    pub(super) adaptive_thinking: bool,
    pub(super) empty_signature: bool,
    pub(super) forced_tool: bool,
}

impl Compat {
    /// Reads the switches of a model over the defaults.
    pub(super) fn of(model: &ModelSpec) -> Compat {
        let given = model.compat.as_ref().map_or(Value::Null, |raw| raw.value());
        let switch = |name: &str, default: bool| {
            let value = given.get(name).and_then(Value::as_bool);
            value.unwrap_or(default)
        };
        Compat {
            eager_tool_input: switch("supportsEagerToolInputStreaming", true),
            cache_on_tools: switch("supportsCacheControlOnTools", true),
            long_cache: switch("supportsLongCacheRetention", true),
            temperature: switch("supportsTemperature", true),
            adaptive_thinking: switch("forceAdaptiveThinking", false),
            empty_signature: switch("allowEmptySignature", false),
            forced_tool: switch("supportsForcedToolChoice", true),
        }
    }
}
