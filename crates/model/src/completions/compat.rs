//! What a Chat Completions service wants and refuses: detected by provider id
//! or host, then overridden by the model's `compat` (`host.md` 1.5, 9.3.14).

use crew_base::model::ModelSpec;

use crate::switches::{Affinity, CacheKeyMode, Switches, is_service};

/// The resolved switches of one model.
pub(super) struct Compat {
    /// The service bills in USD and takes its own session header.
    pub(super) is_openrouter: bool,
    /// `supportsStore`.
    pub(super) store: bool,
    /// `supportsDeveloperRole`.
    pub(super) developer_role: bool,
    /// `supportsReasoningEffort`.
    pub(super) reasoning_effort: bool,
    /// `supportsUsageInStreaming`.
    pub(super) usage_in_streaming: bool,
    /// `supportsFinishReason`.
    pub(super) finish_reason: bool,
    /// `maxTokensField`.
    pub(super) max_tokens_field: String,
    /// `requiresToolResultName`.
    pub(super) tool_result_name: bool,
    /// `requiresAssistantAfterToolResult`.
    pub(super) assistant_after_tool_result: bool,
    /// `requiresNonNullAssistantContent`.
    pub(super) non_null_content: bool,
    /// `requiresToolsWithToolHistory`.
    pub(super) tools_with_tool_history: bool,
    /// `requiresThinkingAsText`.
    pub(super) thinking_as_text: bool,
    /// `requiresReasoningContentOnAssistantMessages`.
    pub(super) reasoning_content: bool,
    /// `thinkingFormat`.
    pub(super) thinking_format: ThinkingFormat,
    /// `cacheControlFormat` is `anthropic`.
    pub(super) cache_markers: bool,
    /// Whether requests name a prompt cache, when retention is short.
    pub(super) cache_key: bool,
    /// `promptCacheKeyMode`.
    pub(super) cache_key_mode: CacheKeyMode,
    /// `supportsLongCacheRetention`.
    pub(super) long_cache: bool,
    /// `sendSessionAffinityHeaders` with `sessionAffinityFormat`.
    pub(super) affinity: Option<Affinity>,
    /// `supportsStrictMode`.
    pub(super) strict: bool,
    /// The rest, passed through by the encoder.
    pub(super) switches: Switches,
}

/// How a service is told to think (`host.md` 3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingFormat {
    /// `openai`.
    OpenAi,
    /// `openrouter`.
    OpenRouter,
    /// `deepseek`.
    DeepSeek,
    /// `together`.
    Together,
    /// `baseten`.
    Baseten,
    /// `zai`.
    Zai,
    /// `qwen`.
    Qwen,
    /// `chat-template`.
    ChatTemplate,
    /// `qwen-chat-template`.
    QwenChatTemplate,
    /// `string-thinking`.
    StringThinking,
    /// `ant-ling`.
    AntLing,
}

impl Compat {
    /// The switches of a model.
    pub(super) fn of(model: &ModelSpec) -> Compat {
        let switches = Switches::of(model);
        let flag = |name, default| switches.flag(name, default);
        let found = Service::of(model);
        let is = |services: &[Service]| services.contains(&found);
        let affinity = if found == Service::OpenRouter { Affinity::Router } else { Affinity::Full };
        let anthropic_behind = found == Service::OpenRouter && model.id.starts_with("anthropic/");
        let cache_format = switches.word("cacheControlFormat");
        let max_tokens_field = switches.word("maxTokensField");
        let thinking_format = switches.word("thinkingFormat");
        Compat {
            is_openrouter: found == Service::OpenRouter,
            store: flag("supportsStore", !is(&NO_STORE)),
            developer_role: flag("supportsDeveloperRole", found == Service::OpenAi),
            reasoning_effort: flag("supportsReasoningEffort", !is(&NO_EFFORT)),
            usage_in_streaming: flag("supportsUsageInStreaming", true),
            finish_reason: flag("supportsFinishReason", true),
            max_tokens_field: max_tokens_field.unwrap_or_else(|| {
                let old = is(&MAX_TOKENS);
                (if old { "max_tokens" } else { "max_completion_tokens" }).to_owned()
            }),
            tool_result_name: flag("requiresToolResultName", false),
            assistant_after_tool_result: flag("requiresAssistantAfterToolResult", false),
            non_null_content: flag("requiresNonNullAssistantContent", false),
            tools_with_tool_history: flag("requiresToolsWithToolHistory", false),
            thinking_as_text: flag("requiresThinkingAsText", false),
            reasoning_content: flag(
                "requiresReasoningContentOnAssistantMessages",
                found == Service::DeepSeek,
            ),
            thinking_format: thinking_format
                .and_then(|word| ThinkingFormat::parse(&word))
                .unwrap_or(found.thinking_format()),
            cache_markers: match cache_format.as_deref() {
                Some(format) => format == "anthropic",
                None => anthropic_behind,
            },
            cache_key: found == Service::OpenAi,
            cache_key_mode: switches.cache_key_mode(),
            long_cache: flag("supportsLongCacheRetention", !is(&NO_LONG_CACHE)),
            affinity: flag("sendSessionAffinityHeaders", found == Service::OpenRouter)
                .then(|| switches.affinity(affinity)),
            strict: flag("supportsStrictMode", false),
            switches,
        }
    }
}

impl ThinkingFormat {
    fn parse(word: &str) -> Option<ThinkingFormat> {
        Some(match word {
            "openai" => ThinkingFormat::OpenAi,
            "openrouter" => ThinkingFormat::OpenRouter,
            "deepseek" => ThinkingFormat::DeepSeek,
            "together" => ThinkingFormat::Together,
            "baseten" => ThinkingFormat::Baseten,
            "zai" => ThinkingFormat::Zai,
            "qwen" => ThinkingFormat::Qwen,
            "chat-template" => ThinkingFormat::ChatTemplate,
            "qwen-chat-template" => ThinkingFormat::QwenChatTemplate,
            "string-thinking" => ThinkingFormat::StringThinking,
            "ant-ling" => ThinkingFormat::AntLing,
            _ => return None,
        })
    }
}

/// Services that differ from the common ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    OpenAi,
    OpenRouter,
    Cerebras,
    Xai,
    Together,
    Chutes,
    DeepSeek,
    Zai,
    Moonshot,
    OpenCode,
    CloudflareGateway,
    Cloudflare,
    Nvidia,
    AntLing,
    Other,
}

use Service as S;
const NO_STORE: [Service; 12] = [
    S::Cerebras,
    S::Xai,
    S::Together,
    S::Chutes,
    S::DeepSeek,
    S::Zai,
    S::Moonshot,
    S::OpenCode,
    S::CloudflareGateway,
    S::Cloudflare,
    S::Nvidia,
    S::AntLing,
];
const MAX_TOKENS: [Service; 8] = [
    S::Chutes,
    S::DeepSeek,
    S::Moonshot,
    S::CloudflareGateway,
    S::Together,
    S::Nvidia,
    S::AntLing,
    S::Zai,
];
const NO_EFFORT: [Service; 7] =
    [S::Xai, S::Zai, S::Moonshot, S::Together, S::CloudflareGateway, S::Nvidia, S::AntLing];
const NO_LONG_CACHE: [Service; 5] =
    [S::Together, S::CloudflareGateway, S::Cloudflare, S::Nvidia, S::AntLing];

impl Service {
    fn of(model: &ModelSpec) -> Service {
        // Provider ids and domains; the gateway stands before its parent.
        const KNOWN: [(Service, &[&str], &[&str]); 14] = [
            (S::OpenAi, &["openai"], &["api.openai.com"]),
            (S::OpenRouter, &["openrouter"], &["openrouter.ai"]),
            (S::Cerebras, &["cerebras"], &["cerebras.ai"]),
            (S::Xai, &["xai"], &["x.ai"]),
            (S::Together, &["together"], &["together.ai", "together.xyz"]),
            (S::Chutes, &["chutes"], &["chutes.ai"]),
            (S::DeepSeek, &["deepseek"], &["deepseek.com"]),
            (S::Zai, &["zai", "zai-coding-cn"], &["z.ai", "bigmodel.cn"]),
            (
                S::Moonshot,
                &["moonshotai", "moonshotai-cn", "moonshot"],
                &["moonshot.ai", "moonshot.cn"],
            ),
            (S::OpenCode, &["opencode", "opencode-go"], &["opencode.ai"]),
            (S::CloudflareGateway, &["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]),
            (S::Cloudflare, &["cloudflare-workers-ai"], &["cloudflare.com"]),
            (S::Nvidia, &["nvidia"], &["nvidia.com"]),
            (S::AntLing, &["ant-ling"], &["ant-ling.com"]),
        ];
        let mut known = KNOWN.iter();
        let found = known.find(|(_, providers, domains)| is_service(model, providers, domains));
        found.map_or(Service::Other, |(service, _, _)| *service)
    }

    fn thinking_format(self) -> ThinkingFormat {
        match self {
            S::DeepSeek => ThinkingFormat::DeepSeek,
            S::Zai => ThinkingFormat::Zai,
            S::Together => ThinkingFormat::Together,
            S::AntLing => ThinkingFormat::AntLing,
            S::OpenRouter => ThinkingFormat::OpenRouter,
            S::OpenAi
            | S::Cerebras
            | S::Xai
            | S::Chutes
            | S::Moonshot
            | S::OpenCode
            | S::CloudflareGateway
            | S::Cloudflare
            | S::Nvidia
            | S::Other => ThinkingFormat::OpenAi,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::tests::spec;
    use crew_base::json::Raw;
    use crew_base::model::Api;

    fn compat(provider: &str, url: &str, switches: &str) -> Compat {
        let mut model = spec(Api::OpenaiCompletions);
        model.provider = provider.into();
        model.base_url = url.into();
        model.id = "anthropic/big".into();
        model.compat = Raw::parse(switches);
        Compat::of(&model)
    }

    #[test]
    fn services_are_detected_by_id_or_host() {
        // host.md 9.3.14: store, effort, max tokens, long cache, format.
        let check = |provider: &str, url: &str, expected: (bool, bool, &str, bool)| {
            let got = compat(provider, url, "{}");
            let field = got.max_tokens_field.as_str();
            let got = (got.store, got.reasoning_effort, field, got.long_cache);
            assert_eq!(got, expected, "{provider} {url}");
        };
        let (old, new) = ("max_tokens", "max_completion_tokens");
        check("fake", "http://127.0.0.1:1/v1", (true, true, new, true));
        check("openai", "", (true, true, new, true));
        check("x", "https://api.cerebras.ai/v1", (false, true, new, true));
        check("xai", "", (false, false, new, true));
        check("x", "https://api.together.xyz/v1", (false, false, old, false));
        check("x", "https://llm.chutes.ai/v1", (false, true, old, true));
        check("deepseek", "", (false, true, old, true));
        check("x", "https://api.z.ai/api/paas/v4", (false, false, old, true));
        check("x", "https://api.moonshot.ai/v1", (false, false, old, true));
        check("opencode", "", (false, true, new, true));
        let gateway = "https://gateway.ai.cloudflare.com/v1/a";
        check("x", gateway, (false, false, old, false));
        check("x", "https://api.cloudflare.com/c", (false, true, new, false));
        check("nvidia", "", (false, false, old, false));
        check("ant-ling", "", (false, false, old, false));
    }

    #[test]
    fn configured_switches_win_over_detected_ones() {
        let got = compat("deepseek", "", "{}");
        assert!(got.reasoning_content);
        assert_eq!(got.thinking_format, ThinkingFormat::DeepSeek);
        let text = r#"{"supportsStore":true,"maxTokensField":"max_completion_tokens",
            "thinkingFormat":"qwen","requiresReasoningContentOnAssistantMessages":false}"#;
        let got = compat("deepseek", "", text);
        assert!(got.store && !got.reasoning_content);
        assert_eq!(got.max_tokens_field, "max_completion_tokens");
        assert_eq!(got.thinking_format, ThinkingFormat::Qwen);
        let unknown = compat("zai", "", r#"{"thinkingFormat":"new"}"#);
        assert_eq!(unknown.thinking_format, ThinkingFormat::Zai);
    }

    #[test]
    fn openrouter_gets_cache_markers_for_anthropic_models_and_its_session_header() {
        let got = compat("x", "https://openrouter.ai/api/v1", "{}");
        assert!(got.cache_markers && got.is_openrouter && !got.developer_role);
        assert_eq!(got.affinity, Some(Affinity::Router));
        assert_eq!(got.thinking_format, ThinkingFormat::OpenRouter);
        let off = r#"{"cacheControlFormat":"none","sendSessionAffinityHeaders":false}"#;
        let got = compat("openrouter", "", off);
        assert!(!got.cache_markers);
        assert_eq!(got.affinity, None);
        assert!(!compat("fake", "", "{}").cache_markers);
    }
}
