//! Thinking levels of a session: at start, on a change of model, cycling
//! (`host.md` 1.7.2, 3.9.2, 3.9.3).

use std::collections::BTreeMap;

use crew_base::model::{ModelSpec, ThinkingLevel};

/// What decides about a thinking level.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThinkingInputs<'a> {
    /// `--thinking`; counts at start only.
    pub flag: Option<ThinkingLevel>,
    /// The suffix of `--model` or of a scope pattern.
    pub pattern: Option<ThinkingLevel>,
    /// At start: the stored level of a session that has a level entry. On a
    /// change of model: the level in force.
    pub session: Option<ThinkingLevel>,
    /// `modelThinkingLevels`, by `provider/id`.
    pub per_model: Option<&'a BTreeMap<String, ThinkingLevel>>,
    /// `defaultThinkingLevel`.
    pub saved: Option<ThinkingLevel>,
}

/// The level a session starts with, clamped to the model; `off` without one.
pub fn startup_thinking(model: Option<&ModelSpec>, inputs: ThinkingInputs<'_>) -> ThinkingLevel {
    let Some(model) = model else {
        return ThinkingLevel::Off;
    };
    let level = inputs
        .flag
        .or(inputs.pattern)
        .or(inputs.session)
        .or_else(|| of_model(model, &inputs))
        .or(inputs.saved)
        .unwrap_or(ThinkingLevel::Medium);
    model.clamp(level)
}

/// The level after a change to this model: the pattern's, else the model's
/// own, else the saved default, else the one in force; clamped.
pub fn switch_thinking(model: &ModelSpec, inputs: ThinkingInputs<'_>) -> ThinkingLevel {
    let level = inputs
        .pattern
        .or_else(|| of_model(model, &inputs))
        .or(inputs.saved)
        .or(inputs.session)
        .unwrap_or(ThinkingLevel::Medium);
    model.clamp(level)
}

fn of_model(model: &ModelSpec, inputs: &ThinkingInputs<'_>) -> Option<ThinkingLevel> {
    inputs.per_model?.get(&model.reference()).copied()
}

/// The next level the model supports, wrapping; `None` when it has only one.
pub fn cycle_level(model: &ModelSpec, current: ThinkingLevel) -> Option<ThinkingLevel> {
    let levels = model.supported_levels();
    if levels.len() < 2 {
        return None;
    }
    let at = levels.iter().position(|level| *level == current);
    Some(at.map_or(levels[0], |at| levels[(at + 1) % levels.len()]))
}
