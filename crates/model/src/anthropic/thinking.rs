//! How a thinking level is asked for (`host.md` 3.9, 3.9.4).

use crew_base::model::{ModelSpec, ThinkingLevel};
use serde_json::{Value, json};

use super::compat::Compat;
use crate::wire::EncodeOptions;

/// The least budget the API takes, and the least room left for the answer.
const TOKENS_MIN: u64 = 1024;

/// What goes into the request about thinking.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Thinking {
    /// No field at all.
    Absent,
    /// Switched off.
    Disabled,
    /// The model decides, guided by an effort.
    Adaptive {
        /// Word of `output_config.effort`.
        effort: String,
    },
    /// At most this many tokens.
    Budget(u64),
}

impl Thinking {
    /// The form for a level; a budget that does not fit switches off.
    pub(super) fn of(
        model: &ModelSpec,
        level: ThinkingLevel,
        max_tokens: u64,
        options: &EncodeOptions,
        compat: Compat,
    ) -> Thinking {
        let mapped = model.thinking_levels.get(level.word());
        let off = || match model.thinking_levels.get(ThinkingLevel::Off.word()) {
            Some(None) => Thinking::Absent,
            Some(Some(_)) | None => Thinking::Disabled,
        };
        if !model.reasoning {
            return Thinking::Absent;
        }
        if level == ThinkingLevel::Off {
            return off();
        }
        if compat.adaptive_thinking {
            let effort = mapped.cloned().flatten();
            let effort = effort.unwrap_or_else(|| effort_word(level).to_owned());
            return Thinking::Adaptive { effort };
        }
        let budget = budget(level, options).max(TOKENS_MIN);
        let room = max_tokens.saturating_sub(TOKENS_MIN);
        match budget.min(room) {
            0..TOKENS_MIN => off(),
            fitting => Thinking::Budget(fitting),
        }
    }

    /// Whether the model thinks.
    pub(super) fn is_on(&self) -> bool {
        match self {
            Thinking::Absent | Thinking::Disabled => false,
            Thinking::Adaptive { .. } | Thinking::Budget(_) => true,
        }
    }

    /// The value of `thinking`.
    pub(super) fn field(&self) -> Option<Value> {
        match self {
            Thinking::Absent => None,
            Thinking::Disabled => Some(json!({"type": "disabled"})),
            Thinking::Adaptive { .. } => Some(json!({"type": "adaptive", "display": "summarized"})),
            Thinking::Budget(tokens) => {
                Some(json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"}))
            }
        }
    }
}

fn effort_word(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
    }
}

/// Tokens of a level; levels above high count as high.
fn budget(level: ThinkingLevel, options: &EncodeOptions) -> u64 {
    let (word, default) = match level {
        ThinkingLevel::Off => ("off", 0),
        ThinkingLevel::Minimal => ("minimal", 1024),
        ThinkingLevel::Low => ("low", 2048),
        ThinkingLevel::Medium => ("medium", 8192),
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => ("high", 16_384),
    };
    let own = options.thinking_budgets.get(word);
    own.copied().unwrap_or(default)
}
