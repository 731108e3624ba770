//! The models a session may cycle through: `--models`, else `enabledModels`
//! (`host.md` 1.7.6).

use std::sync::Arc;

use crew_base::model::{ModelSpec, ThinkingLevel};

use super::{SelectWarning, Usable, accept_unknown, find, glob, split_level};
use crate::catalog::{Catalog, is_scripted};

/// One model of the scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoped {
    /// The model; its provider had credentials when the scope was made.
    pub model: Arc<ModelSpec>,
    /// The level of the pattern's suffix.
    pub thinking: Option<ThinkingLevel>,
}

/// The resolved patterns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// In pattern order, each model once.
    pub models: Vec<Scoped>,
    /// What the person should know.
    pub warnings: Vec<SelectWarning>,
}

/// Resolves patterns to models with credentials. Blank patterns mean nothing;
/// a match on several providers takes them all, with a warning; what matches
/// nothing, or nothing with credentials, is a warning.
pub fn scope<'p>(
    patterns: impl IntoIterator<Item = &'p str>,
    catalog: &Catalog,
    usable: Usable<'_>,
) -> Scope {
    let mut scope = Scope::default();
    for pattern in patterns {
        let pattern = pattern.trim();
        if !pattern.is_empty() {
            add_pattern(&mut scope, pattern, catalog, usable);
        }
    }
    scope
}

fn add_pattern(scope: &mut Scope, pattern: &str, catalog: &Catalog, usable: Usable<'_>) {
    let (models, thinking, by_glob) = matches(pattern, catalog, usable, &mut scope.warnings);
    let references = |models: &[Arc<ModelSpec>]| -> Vec<String> {
        models.iter().map(|model| model.reference()).collect()
    };
    let pattern = pattern.to_owned();
    if models.is_empty() {
        scope.warnings.push(SelectWarning::NoMatch { pattern });
        return;
    }
    let (ready, others): (Vec<_>, Vec<_>) =
        models.into_iter().partition(|model| usable(&model.provider));
    if ready.is_empty() {
        let models = references(&others);
        let warning = SelectWarning::NoCredentials { pattern, models };
        scope.warnings.push(warning);
        return;
    }
    if ready.len() > 1 && !by_glob {
        let models = references(&ready);
        let warning = SelectWarning::SeveralProviders { pattern, models };
        scope.warnings.push(warning);
    }
    for model in ready {
        let reference = model.reference();
        if scope.models.iter().all(|old| old.model.reference() != reference) {
            scope.models.push(Scoped { model, thinking });
        }
    }
}

type Matches = (Vec<Arc<ModelSpec>>, Option<ThinkingLevel>, bool);

fn matches(
    pattern: &str,
    catalog: &Catalog,
    usable: Usable<'_>,
    warnings: &mut Vec<SelectWarning>,
) -> Matches {
    let exact = |text: &str| {
        let models = catalog.models().iter();
        models
            .filter(|model| model.reference() == text || (model.id == text && !is_scripted(model)))
            .cloned()
            .collect::<Vec<_>>()
    };
    // An exact id with brackets wins over its reading as a glob.
    if glob::is_glob(pattern) && exact(pattern).is_empty() {
        let whole = globbed(pattern, catalog);
        let split = split_level(pattern).filter(|_| whole.is_empty());
        return match split {
            None => (whole, None, true),
            Some((head, level)) => match exact(head) {
                none if none.is_empty() => (globbed(head, catalog), Some(level), true),
                models => (models, Some(level), false),
            },
        };
    }
    let (found, thinking) = find(catalog, None, pattern);
    let models = match found {
        Some(found) => {
            let others: Vec<_> = found.others.into_iter().cloned().collect();
            let ready = |model: &Arc<ModelSpec>| usable(&model.provider);
            match found.named {
                Some(named) if ready(named) || !others.iter().any(ready) => {
                    vec![Arc::clone(named)]
                }
                Some(_) | None => others,
            }
        }
        None => {
            let unknown = accept_unknown(catalog, None, pattern, thinking);
            let models: Vec<_> = unknown.map(|(model, _)| model).into_iter().collect();
            warnings.extend(
                models.iter().map(|model| SelectWarning::UnknownModel { model: model.reference() }),
            );
            models
        }
    };
    (models, thinking, false)
}

fn globbed(pattern: &str, catalog: &Catalog) -> Vec<Arc<ModelSpec>> {
    let covered = |model: &&Arc<ModelSpec>| {
        !is_scripted(model)
            && (glob::matches(pattern, &model.reference()) || glob::matches(pattern, &model.id))
    };
    catalog.models().iter().filter(covered).cloned().collect()
}

/// The model that cycling leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycled {
    /// The model.
    pub model: Arc<ModelSpec>,
    /// The level of its pattern's suffix.
    pub thinking: Option<ThinkingLevel>,
    /// Whether it came from the scope rather than from all usable models.
    pub is_scoped: bool,
}

/// The model after (or before) the current one: within the scope, or without
/// one among all models with credentials. Wraps, starts at the first when the
/// current one is not among them, never takes the scripted model; `None` when
/// there is no other.
pub fn cycle_model(
    current: Option<&ModelSpec>,
    scope: &[Scoped],
    catalog: &Catalog,
    usable: Usable<'_>,
    forward: bool,
) -> Option<Cycled> {
    let is_scoped = !scope.is_empty();
    let mut models: Vec<Scoped> = if is_scoped {
        scope.to_vec()
    } else {
        let all = catalog.models().iter();
        all.map(|model| Scoped { model: Arc::clone(model), thinking: None }).collect()
    };
    models.retain(|scoped| !is_scripted(&scoped.model) && usable(&scoped.model.provider));
    let is_current = |scoped: &Scoped| {
        current.is_some_and(|current| scoped.model.reference() == current.reference())
    };
    let next = match models.iter().position(is_current) {
        None => 0,
        Some(_) if models.len() < 2 => return None,
        Some(at) if forward => (at + 1) % models.len(),
        Some(at) => (at + models.len() - 1) % models.len(),
    };
    (next < models.len()).then(|| models.swap_remove(next)).map(|scoped| Cycled {
        model: scoped.model,
        thinking: scoped.thinking,
        is_scoped,
    })
}
