//! The model a session starts with (`host.md` 1.7.1).

use std::sync::Arc;

use crew_base::model::{ModelSpec, ThinkingLevel};

use super::{Query, Scoped, SelectError, SelectWarning, Usable, resolve_model};
use crate::catalog::{Catalog, is_scripted};

/// What decides about the first model.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartupInputs<'a> {
    /// `--model` with what belongs to it.
    pub query: Option<Query<'a>>,
    /// The resolved `--models` or `enabledModels`.
    pub scope: &'a [Scoped],
    /// Provider and model id of a session that has messages.
    pub session: Option<(&'a str, &'a str)>,
    /// `defaultProvider` and `defaultModel`.
    pub saved: Option<(&'a str, &'a str)>,
}

/// The first model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Startup {
    /// `None` when nothing is usable.
    pub model: Option<Arc<ModelSpec>>,
    /// The level of a suffix of `--model` or of the scope's pattern.
    pub thinking: Option<ThinkingLevel>,
    /// What the person should know, in every mode.
    pub warnings: Vec<SelectWarning>,
}

/// Chooses the first model: `--model`; for a new session the saved default
/// inside the scope, else the first of the scope; for one with messages its
/// own model; then the saved default, the providers' defaults and any model
/// with credentials. The scripted model comes only by name or session. An
/// error only when `--model` names no model.
pub fn startup_model(
    inputs: StartupInputs<'_>,
    catalog: &Catalog,
    usable: Usable<'_>,
) -> Result<Startup, SelectError> {
    if let Some(query) = inputs.query {
        let selected = resolve_model(query, catalog, usable)?;
        return Ok(Startup {
            model: Some(selected.model),
            thinking: selected.thinking,
            warnings: selected.warnings,
        });
    }
    Ok(match inputs.session {
        Some(session) => of_session(session, inputs.saved, catalog, usable),
        None => of_scope(inputs, usable).unwrap_or_else(|| Startup {
            model: fallback(inputs.saved, catalog, usable),
            ..Startup::default()
        }),
    })
}

fn of_session(
    (provider, id): (&str, &str),
    saved: Option<(&str, &str)>,
    catalog: &Catalog,
    usable: Usable<'_>,
) -> Startup {
    let own = catalog.get(provider, id);
    if let Some(model) = own.filter(|model| is_scripted(model) || usable(provider)) {
        return Startup { model: Some(model), ..Startup::default() };
    }
    let model = fallback(saved, catalog, usable);
    let warning = SelectWarning::SessionModelReplaced {
        wanted: format!("{provider}/{id}"),
        used: model.as_deref().map(ModelSpec::reference),
    };
    Startup { model, thinking: None, warnings: vec![warning] }
}

fn of_scope(inputs: StartupInputs<'_>, usable: Usable<'_>) -> Option<Startup> {
    let ready = || {
        let scoped = inputs.scope.iter();
        scoped.filter(|scoped| is_scripted(&scoped.model) || usable(&scoped.model.provider))
    };
    let saved = inputs.saved.and_then(|(provider, id)| {
        let is_saved = |model: &ModelSpec| model.provider == provider && model.id == id;
        ready().find(|scoped| is_saved(&scoped.model))
    });
    let scoped = saved.or_else(|| ready().next())?;
    Some(Startup {
        model: Some(Arc::clone(&scoped.model)),
        thinking: scoped.thinking,
        warnings: Vec::new(),
    })
}

fn fallback(
    saved: Option<(&str, &str)>,
    catalog: &Catalog,
    usable: Usable<'_>,
) -> Option<Arc<ModelSpec>> {
    let fits = |model: &Arc<ModelSpec>| !is_scripted(model) && usable(&model.provider);
    let saved = saved.and_then(|(provider, id)| catalog.get(provider, id));
    let ids = catalog.providers().iter().map(|provider| &provider.id);
    let mut defaults = ids.filter_map(|id| catalog.provider_default(id));
    saved
        .filter(fits)
        .or_else(|| defaults.find(fits))
        .or_else(|| catalog.models().iter().find(|model| fits(model)).cloned())
}
