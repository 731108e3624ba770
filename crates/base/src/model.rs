//! What a model is, what it is asked and what it answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::id::SessionId;
use crate::json::Raw;
use crate::message::{Block, SharedMessage, StopReason, Usage};

/// How much a model is to think (`host.md` 3.9), in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThinkingLevel {
    /// Not at all.
    Off,
    /// The least.
    Minimal,
    /// A little.
    Low,
    /// The default.
    Medium,
    /// Much.
    High,
    /// More, where the model maps it.
    Xhigh,
    /// The most, where the model maps it.
    Max,
}

impl ThinkingLevel {
    /// All levels in rising order.
    pub const ALL: [ThinkingLevel; 7] = [
        ThinkingLevel::Off,
        ThinkingLevel::Minimal,
        ThinkingLevel::Low,
        ThinkingLevel::Medium,
        ThinkingLevel::High,
        ThinkingLevel::Xhigh,
        ThinkingLevel::Max,
    ];

    /// The name in files and options.
    pub fn word(self) -> &'static str {
        match self {
            ThinkingLevel::Off => "off",
            ThinkingLevel::Minimal => "minimal",
            ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            ThinkingLevel::High => "high",
            ThinkingLevel::Xhigh => "xhigh",
            ThinkingLevel::Max => "max",
        }
    }

    /// The level of a name; exact and case-sensitive.
    pub fn parse(word: &str) -> Option<ThinkingLevel> {
        ThinkingLevel::ALL.into_iter().find(|level| level.word() == word)
    }
}

/// Wire formats (`host.md` 1.5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// `anthropic-messages`.
    AnthropicMessages,
    /// `openai-completions`.
    OpenaiCompletions,
    /// `openai-responses`.
    OpenaiResponses,
    /// `google-generative-ai`.
    GoogleGenerativeAi,
    /// The built-in scripted model.
    Demo,
    /// Another kind: loads, and says "unsupported API" when used.
    Unsupported,
}

impl Api {
    /// The name in files.
    pub fn word(self) -> &'static str {
        match self {
            Api::AnthropicMessages => "anthropic-messages",
            Api::OpenaiCompletions => "openai-completions",
            Api::OpenaiResponses => "openai-responses",
            Api::GoogleGenerativeAi => "google-generative-ai",
            Api::Demo => "crew-demo",
            Api::Unsupported => "unsupported",
        }
    }

    /// The format of a name; unknown names give [`Api::Unsupported`].
    pub fn parse(word: &str) -> Api {
        const KNOWN: [Api; 5] = [
            Api::AnthropicMessages,
            Api::OpenaiCompletions,
            Api::OpenaiResponses,
            Api::GoogleGenerativeAi,
            Api::Demo,
        ];
        KNOWN.into_iter().find(|api| api.word() == word).unwrap_or(Api::Unsupported)
    }
}

/// A model as the catalogue describes it (`host.md` 1.5.6).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Provider id.
    pub provider: String,
    /// Model id, may hold slashes.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Wire format.
    pub api: Api,
    /// The name of the wire format as configured.
    pub api_word: String,
    /// Where requests go, without a trailing slash.
    pub base_url: String,
    /// Whether it can think.
    pub reasoning: bool,
    /// Level to the provider's word; `None` means unsupported (1.5.12).
    pub thinking_levels: BTreeMap<String, Option<String>>,
    /// Whether it takes images.
    pub images: bool,
    /// USD per million tokens.
    pub rates: Rates,
    /// Size of its window in tokens.
    pub context_window: u64,
    /// Most tokens of one answer.
    pub max_tokens: u64,
    /// Merged last into the request body; an object or nothing.
    pub sampling_params: Option<Raw>,
    /// Extra headers with unresolved values (1.6), provider ones first.
    pub headers: Vec<(String, String)>,
    /// Whether the key also goes into an `Authorization: Bearer` header.
    pub auth_header: bool,
    /// Compatibility switches, merged (1.5.8); an object or nothing.
    pub compat: Option<Raw>,
}

/// USD per million tokens of each bucket (`host.md` 1.5.11).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Uncached prompt.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Read from cache.
    pub cache_read: f64,
    /// Written to cache.
    pub cache_write: f64,
    /// Other rates above a size of the prompt: `(input tokens above, rates)`.
    pub tiers: Vec<(u64, Rates)>,
}

impl ModelSpec {
    /// `provider/id`.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// The levels it supports, in rising order (`host.md` 3.9.1).
    pub fn supported_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        let supported = |level: &ThinkingLevel| match self.thinking_levels.get(level.word()) {
            Some(mapped) => mapped.is_some(),
            None => *level <= ThinkingLevel::High,
        };
        ThinkingLevel::ALL.into_iter().filter(supported).collect()
    }

    /// The level itself, else the next higher one, else the next lower one
    /// (`host.md` 3.9.2).
    pub fn clamp(&self, level: ThinkingLevel) -> ThinkingLevel {
        let levels = self.supported_levels();
        let higher = levels.iter().copied().find(|l| *l >= level);
        higher.or(levels.last().copied()).unwrap_or(ThinkingLevel::Off)
    }

    /// Fills in the cost of a usage (`host.md` 2.7.8); a total billed by the
    /// provider stays.
    pub fn price(&self, usage: &mut Usage) {
        const PER: f64 = 1e6;
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        let tier = self
            .rates
            .tiers
            .iter()
            .filter(|(above, _)| prompt > *above)
            .max_by_key(|(above, _)| *above);
        let rates = tier.map_or(&self.rates, |(_, rates)| rates);
        let hour = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let cost = &mut usage.cost;
        cost.input = rates.input * usage.input as f64 / PER;
        cost.output = rates.output * usage.output as f64 / PER;
        cost.cache_read = rates.cache_read * usage.cache_read as f64 / PER;
        cost.cache_write = (rates.cache_write * (usage.cache_write - hour) as f64
            + 2.0 * rates.input * hour as f64)
            / PER;
        if cost.total_from_provider != Some(true) {
            cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        }
    }
}

/// How long a provider may keep the prompt (`host.md` 3.10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheRetention {
    /// Not at all.
    None,
    /// Minutes.
    Short,
    /// An hour or more.
    Long,
}

/// Which tool the model must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// This one.
    Named(String),
}

/// One request to a model. Tools and prompt stand in the system messages.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Who is asked.
    pub model: Arc<ModelSpec>,
    /// The session that asks; routes prompt caches.
    pub session: SessionId,
    /// The projected context, oldest first (`host.md` 2.6.4).
    pub messages: Vec<SharedMessage>,
    /// Already clamped.
    pub thinking: ThinkingLevel,
    /// Prompt cache wish.
    pub cache: CacheRetention,
    /// Forced tool, if any.
    pub tool_choice: ToolChoice,
}

/// What a stream says, in order. One stream ends with exactly one
/// [`ModelEvent::Finished`] or [`ModelEvent::Failed`].
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Response headers arrived with a good status (`host.md` 3.1.4).
    Started,
    /// A block began; `index` counts blocks from 0 in this order. Text and
    /// thinking are empty, a call has its id and name as far as known.
    BlockStart {
        /// Position in the content.
        index: usize,
        /// What is known of it.
        block: Block,
    },
    /// More text, thinking, or JSON text of arguments.
    BlockDelta {
        /// Position in the content.
        index: usize,
        /// What was added.
        delta: String,
    },
    /// A block is complete; authoritative.
    BlockEnd {
        /// Position in the content.
        index: usize,
        /// The whole block.
        block: Block,
    },
    /// Cumulative usage so far, without cost.
    Usage(Usage),
    /// Ids of the response, as soon as they are known.
    Identity {
        /// The provider's id of the response.
        response_id: Option<String>,
        /// The model the provider names.
        response_model: Option<String>,
    },
    /// The protocol's own end was seen.
    Finished {
        /// `Stop`, `Length` or `ToolUse`.
        stop_reason: StopReason,
        /// The provider's own word.
        raw_stop_reason: Option<String>,
    },
    /// It went wrong; blocks seen so far are kept, none of its calls run.
    Failed(ModelError),
}

/// Why a request or a stream failed. An adapter makes one attempt and tells;
/// retries are decided by the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    /// The cause, as precisely as known.
    pub kind: ModelErrorKind,
    /// HTTP status, when there was a response.
    pub status: Option<u16>,
    /// For people and for list R of `host.md` 3.6; holds no secret.
    pub message: String,
    /// What the server asked for (`Retry-After`, `retry-after-ms`).
    pub retry_after_ms: Option<u64>,
    /// The provider's own word for the stop reason, when that was the cause.
    pub raw_stop_reason: Option<String>,
}

/// Causes of a [`ModelError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The provider has too much to do (529, `overloaded_error`).
    Overloaded,
    /// Too many requests.
    RateLimit,
    /// The provider failed inside (`api_error`, 5xx).
    Server,
    /// The stream ended without its protocol's end.
    Truncated,
    /// Nothing came for too long.
    Idle,
    /// No connection, or it broke.
    Connection,
    /// The provider says that the model made a malformed call.
    MalformedCall,
    /// An answer with neither text nor call.
    Empty,
    /// The model refused.
    Refusal,
    /// A filter stopped the answer.
    ContentFilter,
    /// Key missing or not accepted.
    Credential,
    /// Configuration does not work (unsupported API, bad URL).
    Configuration,
    /// What was received is no valid stream of this protocol.
    InvalidStream,
    /// Any other refusal of the provider.
    Provider,
}

impl ModelError {
    /// An error without status.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError {
            kind,
            status: None,
            message: message.into(),
            retry_after_ms: None,
            raw_stop_reason: None,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(reasoning: bool, map: &[(&str, Option<&str>)]) -> ModelSpec {
        ModelSpec {
            provider: "p".into(),
            id: "m".into(),
            name: "m".into(),
            api: Api::AnthropicMessages,
            api_word: "anthropic-messages".into(),
            base_url: String::new(),
            reasoning,
            thinking_levels: map.iter().map(|(k, v)| ((*k).into(), v.map(Into::into))).collect(),
            images: false,
            rates: Rates {
                input: 3.0,
                output: 15.0,
                cache_read: 0.3,
                cache_write: 3.75,
                tiers: Vec::new(),
            },
            context_window: 1,
            max_tokens: 1,
            sampling_params: None,
            headers: Vec::new(),
            auth_header: false,
            compat: None,
        }
    }

    #[test]
    fn levels_are_clamped_upwards_first() {
        let plain = spec(false, &[]);
        assert_eq!(plain.clamp(ThinkingLevel::High), ThinkingLevel::Off);
        let mapped = spec(true, &[("minimal", None), ("low", None), ("max", Some("max"))]);
        assert_eq!(mapped.clamp(ThinkingLevel::Minimal), ThinkingLevel::Medium);
        assert_eq!(mapped.clamp(ThinkingLevel::Xhigh), ThinkingLevel::Max);
        assert_eq!(spec(true, &[]).clamp(ThinkingLevel::Max), ThinkingLevel::High);
    }

    #[test]
    fn an_hour_of_cache_costs_twice_the_input_rate() {
        let mut usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cache_write: 200_000,
            cache_write_1h: Some(100_000),
            ..Usage::default()
        };
        spec(false, &[]).price(&mut usage);
        assert!((usage.cost.cache_write - (0.375 + 0.6)).abs() < 1e-9);
        assert!((usage.cost.total - (3.0 + 1.5 + 0.975)).abs() < 1e-9);
    }
}
