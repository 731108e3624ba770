//! `thinkingConfig` (`host.md` 3.9).

use crew_base::model::{ModelRequest, ThinkingLevel};
use serde_json::{Value, json};

use super::models::Traits;
use crate::wire::EncodeOptions;

/// The member of `generationConfig`; `None` for models that cannot think.
pub(super) fn config(
    request: &ModelRequest,
    traits: Traits,
    options: &EncodeOptions,
) -> Option<Value> {
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    let level = request.thinking;
    let word = |level: ThinkingLevel| {
        let mapping = model.thinking_levels.get(level.word());
        let mapped = mapping.cloned().flatten();
        mapped.unwrap_or_else(|| level_word(level).to_owned())
    };
    if level == ThinkingLevel::Off {
        let lowest = model.supported_levels().first().copied();
        return Some(match lowest.filter(|lowest| *lowest != ThinkingLevel::Off) {
            Some(lowest) if traits.thinks_by_level => json!({ "thinkingLevel": word(lowest) }),
            Some(_) | None => json!({ "thinkingBudget": 0 }),
        });
    }
    if traits.thinks_by_level {
        return Some(json!({ "includeThoughts": true, "thinkingLevel": word(level) }));
    }
    let budget = budget(&model.id, level, options);
    Some(json!({ "includeThoughts": true, "thinkingBudget": budget }))
}

/// The API knows four levels.
fn level_word(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => "MINIMAL",
        ThinkingLevel::Low => "LOW",
        ThinkingLevel::Medium => "MEDIUM",
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "HIGH",
    }
}

/// Tokens of a level; −1 lets the model decide.
fn budget(id: &str, level: ThinkingLevel, options: &EncodeOptions) -> i64 {
    let level = level.min(ThinkingLevel::High);
    if let Some(custom) = options.thinking_budgets.get(level.word()) {
        return i64::try_from(*custom).unwrap_or(i64::MAX);
    }
    let table = if id.contains("2.5-pro") {
        [128, 2048, 8192, 32_768]
    } else if id.contains("2.5-flash-lite") {
        [512, 2048, 8192, 24_576]
    } else if id.contains("2.5-flash") {
        [128, 2048, 8192, 24_576]
    } else {
        return -1;
    };
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => table[0],
        ThinkingLevel::Low => table[1],
        ThinkingLevel::Medium => table[2],
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => table[3],
    }
}
