//! Reads the `compat` switches of a model (`host.md` 1.5) and where its
//! requests go. Values of the wrong kind count as not set.
//!
//! Pure. What the switches mean stands with the wire formats.

use crew_base::json::Raw;
use crew_base::model::{ModelRequest, ModelSpec, ToolChoice};

use crate::wire::Fields;

/// The configured switches of one model.
pub(crate) struct Switches(Fields);

/// `promptCacheKeyMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheKeyMode {
    /// Where the service is known to take it.
    Auto,
    /// Always.
    Enabled,
    /// Never.
    Disabled,
}

/// `sessionAffinityFormat`: which headers keep a session on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affinity {
    /// `openrouter`.
    Router,
    /// `openai`.
    Full,
    /// `openai-nosession`.
    NoSession,
}

impl Switches {
    /// The switches of a model, maybe none.
    pub(crate) fn of(model: &ModelSpec) -> Switches {
        Switches(model.compat.as_ref().map(Fields::of).unwrap_or_default())
    }

    /// A boolean switch.
    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        let value = self.raw(name).map(Raw::value);
        value.and_then(|value| value.as_bool()).unwrap_or(default)
    }

    /// A textual switch, if it is set.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        self.raw(name)?.value().as_str().map(str::to_owned)
    }

    /// Any switch, if it is set and not null.
    pub(crate) fn raw(&self, name: &str) -> Option<&Raw> {
        self.0.get(name).filter(|raw| raw.text() != "null")
    }

    /// `promptCacheKeyMode`, `auto` by default.
    pub(crate) fn cache_key_mode(&self) -> CacheKeyMode {
        match self.word("promptCacheKeyMode").as_deref() {
            Some("enabled") => CacheKeyMode::Enabled,
            Some("disabled") => CacheKeyMode::Disabled,
            Some(_) | None => CacheKeyMode::Auto,
        }
    }

    /// `sessionAffinityFormat`.
    pub(crate) fn affinity(&self, default: Affinity) -> Affinity {
        match self.word("sessionAffinityFormat").as_deref() {
            Some("openrouter") => Affinity::Router,
            Some("openai") => Affinity::Full,
            Some("openai-nosession") => Affinity::NoSession,
            Some(_) | None => default,
        }
    }
}

/// The tool the model is forced to call; `None` also where the model cannot be
/// forced (`task.md` OBS-9).
pub(crate) fn forced_tool(request: &ModelRequest) -> Option<&str> {
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Named(name) => {
            let can = Switches::of(&request.model).flag("supportsForcedToolChoice", true);
            can.then_some(name.as_str())
        }
    }
}

/// Whether a model belongs to a service: by provider id, or by the host of its
/// base URL, which may be a domain below one of `domains`.
pub(crate) fn is_service(model: &ModelSpec, providers: &[&str], domains: &[&str]) -> bool {
    let url = model.base_url.as_str();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    let host = host.split(':').next().unwrap_or("").to_ascii_lowercase();
    let below = |domain: &&str| {
        host.strip_suffix(*domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    providers.contains(&model.provider.as_str()) || domains.iter().any(below)
}

/// The first `count` characters.
pub(crate) fn cut_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::tests::spec;
    use crew_base::model::Api;

    #[test]
    fn a_service_is_known_by_its_id_or_its_host() {
        let check = |provider: &str, url: &str, expected: bool| {
            let mut model = spec(Api::OpenaiCompletions);
            model.provider = provider.into();
            model.base_url = url.into();
            let got = is_service(&model, &["zai"], &["z.ai"]);
            assert_eq!(got, expected, "{provider} {url}");
        };
        check("zai", "http://localhost", true);
        check("x", "https://api.z.ai/v1", true);
        check("x", "https://user@API.Z.ai:8443/v1", true);
        check("x", "https://z.ai", true);
        check("x", "https://buzz.ai/v1", false);
        check("x", "https://example.com/z.ai", false);
        check("x", "", false);
    }

    #[test]
    fn switches_of_the_wrong_kind_count_as_not_set() {
        let mut model = spec(Api::OpenaiCompletions);
        let text = r#"{"a":false,"b":"no","c":null,"promptCacheKeyMode":"enabled"}"#;
        model.compat = Raw::parse(text);
        let switches = Switches::of(&model);
        assert!(!switches.flag("a", true));
        assert!(switches.flag("b", true));
        assert!(switches.flag("c", true));
        assert_eq!(switches.raw("c"), None);
        assert_eq!(switches.word("b"), Some("no".into()));
        assert_eq!(switches.cache_key_mode(), CacheKeyMode::Enabled);
        assert_eq!(switches.affinity(Affinity::NoSession), Affinity::NoSession);
    }
}
