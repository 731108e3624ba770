//! Members that tell a Chat Completions service how much to think, by
//! `thinkingFormat` (`host.md` 3.9, 1.5).

use crew_base::json::Raw;
use crew_base::model::{ModelRequest, ThinkingLevel};
use serde_json::{Value, json};

use super::compat::{Compat, ThinkingFormat as F};
use crate::wire::{EncodeOptions, Fields};

/// Adds the thinking members of a request; nothing for models that cannot.
pub(super) fn add(
    body: &mut Fields,
    request: &ModelRequest,
    compat: &Compat,
    options: &EncodeOptions,
) {
    let wish = Wish::of(request, options);
    if request.model.reasoning {
        level(body, &wish, compat);
        budget(body, &wish, compat);
    }
    template(body, "chat_template_kwargs", "chatTemplateKwargs", &wish, compat);
    template(body, "chat_template_args", "chatTemplateArgs", &wish, compat);
}

/// What is asked of the model.
struct Wish {
    on: bool,
    /// The word configured for the level, if any.
    mapped: Option<String>,
    /// The level is mapped to nothing.
    refused: bool,
    /// The word of the level.
    level: &'static str,
    budget: u64,
}

impl Wish {
    fn of(request: &ModelRequest, options: &EncodeOptions) -> Wish {
        let level = request.thinking;
        let mapping = request.model.thinking_levels.get(level.word());
        Wish {
            on: request.model.reasoning && level != ThinkingLevel::Off,
            mapped: mapping.cloned().flatten(),
            refused: mapping == Some(&None),
            level: level.word(),
            budget: budget_of(level, options),
        }
    }

    /// The mapped word, else that of the level.
    fn effort(&self) -> &str {
        self.mapped.as_deref().unwrap_or(self.level)
    }

    /// The word for a model that is not to think; `None` if there is none.
    fn none(&self) -> Option<&str> {
        let word = self.mapped.as_deref().unwrap_or("none");
        (!self.refused).then_some(word)
    }
}

/// Tokens of a level (3.9.4).
fn budget_of(level: ThinkingLevel, options: &EncodeOptions) -> u64 {
    let (level, tokens) = match level {
        ThinkingLevel::Off => return 0,
        ThinkingLevel::Minimal => (level, 1024),
        ThinkingLevel::Low => (level, 2048),
        ThinkingLevel::Medium => (level, 8192),
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => {
            (ThinkingLevel::High, 16_384)
        }
    };
    let custom = options.thinking_budgets.get(level.word());
    custom.copied().unwrap_or(tokens)
}

fn level(body: &mut Fields, wish: &Wish, compat: &Compat) {
    let effort = |body: &mut Fields| {
        if wish.on && compat.reasoning_effort {
            body.set("reasoning_effort", wish.effort());
        }
    };
    let switch = |kind: &str| json!({ "type": kind });
    match compat.thinking_format {
        F::OpenAi => match &wish.mapped {
            Some(word) if !wish.on && compat.reasoning_effort => body.set("reasoning_effort", word),
            Some(_) | None => effort(body),
        },
        F::OpenRouter => {
            let word = if wish.on { Some(wish.effort()) } else { wish.none() };
            if let Some(word) = word {
                body.set("reasoning", &json!({ "effort": word }));
            }
        }
        F::DeepSeek => {
            if wish.on {
                body.set("thinking", &switch("enabled"));
                effort(body);
            } else if !wish.refused {
                body.set("thinking", &switch("disabled"));
            }
        }
        F::Zai => {
            let enabled = json!({ "type": "enabled", "clear_thinking": false });
            let disabled = switch("disabled");
            body.set("thinking", if wish.on { &enabled } else { &disabled });
            effort(body);
        }
        F::Qwen => body.set("enable_thinking", &wish.on),
        F::QwenChatTemplate => body.set(
            "chat_template_kwargs",
            &json!({ "enable_thinking": wish.on, "preserve_thinking": true }),
        ),
        F::Baseten => body.set("chat_template_args", &json!({ "enable_thinking": wish.on })),
        F::Together => {
            body.set("reasoning", &json!({ "enabled": wish.on }));
            effort(body);
        }
        F::StringThinking => {
            let word = if wish.on { Some(wish.effort()) } else { wish.none() };
            if let Some(word) = word {
                body.set("thinking", word);
            }
        }
        F::AntLing => {
            if let Some(word) = wish.mapped.as_deref().filter(|_| wish.on) {
                body.set("reasoning", &json!({ "effort": word }));
            }
        }
        F::ChatTemplate => {}
    }
}

fn budget(body: &mut Fields, wish: &Wish, compat: &Compat) {
    let field = compat.switches.word("thinkingTokenBudgetField");
    let default = field.is_some();
    if wish.on && compat.switches.flag("supportsThinkingTokenBudget", default) {
        let field = field.as_deref().unwrap_or("thinking_token_budget");
        body.set(field, &wish.budget);
    }
}

/// Adds the configured template values over those of the format.
fn template(body: &mut Fields, member: &str, switch: &str, wish: &Wish, compat: &Compat) {
    let Some(configured) = compat.switches.raw(switch) else {
        return;
    };
    let mut values = body.get(member).map(Fields::of).unwrap_or_default();
    for (name, value) in Fields::of(configured).list {
        if let Some(value) = resolve(&value, wish) {
            values.set(&name, &value);
        }
    }
    if !values.list.is_empty() {
        body.set(member, &values);
    }
}

/// A template value; `{"$var":…}` stands for what is asked of the model.
fn resolve(raw: &Raw, wish: &Wish) -> Option<Raw> {
    let value = raw.value();
    let Some(variable) = value.get("$var").and_then(Value::as_str) else {
        return Some(raw.clone());
    };
    let omit = value.get("omitWhenOff").and_then(Value::as_bool);
    if omit == Some(true) && !wish.on {
        return None;
    }
    let value = match variable {
        "thinking.enabled" => json!(wish.on),
        "thinking.effort" if wish.on => json!(wish.effort()),
        "thinking.effort" => json!(wish.none()?),
        "thinking.budget" => json!(wish.budget),
        _ => return None,
    };
    Some(Raw::of(&value))
}
