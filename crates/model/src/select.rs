//! Which model a text means and which one a session starts with
//! (`host.md` 1.7).
//!
//! Pure functions over the catalogue and a closure that tells whether a
//! provider has credentials. Must never read settings or the environment, and
//! never choose the scripted model unless it is named in full
//! (`product.md` P-3). Read [`resolve_model`] first, then [`startup_model`].

mod glob;
mod list;
mod matching;
mod scope;
mod startup;
mod thinking;

use std::fmt;
use std::sync::Arc;

use crew_base::model::{ModelSpec, ThinkingLevel};

use crate::catalog::Catalog;

pub use list::{ListRow, list_models};
pub use scope::{Cycled, Scope, Scoped, cycle_model, scope};
pub use startup::{Startup, StartupInputs, startup_model};
pub use thinking::{ThinkingInputs, cycle_level, startup_thinking, switch_thinking};

use matching::Found;

/// Tells whether a provider has credentials.
pub type Usable<'a> = &'a dyn Fn(&str) -> bool;

/// A model named by a person.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The text of `--model`.
    pub text: &'a str,
    /// `--provider`, if given.
    pub provider: Option<&'a str>,
    /// `--thinking`, if given; decides only whether an unknown model is taken
    /// to reason.
    pub thinking: Option<ThinkingLevel>,
}

/// The model a text means.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// The model.
    pub model: Arc<ModelSpec>,
    /// The level of a `:level` suffix.
    pub thinking: Option<ThinkingLevel>,
    /// What the person should know.
    pub warnings: Vec<SelectWarning>,
}

/// Why a text means no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// `--provider` names none we know.
    #[error("unknown provider `{provider}`")]
    UnknownProvider {
        /// As typed.
        provider: String,
    },
    /// Nothing matches.
    #[error("no model matches `{text}`{}", of_provider(.provider))]
    NotFound {
        /// As typed.
        text: String,
        /// The provider it was looked for in, when one was named.
        provider: Option<String>,
    },
    /// Several providers have a match and none stands out.
    #[error("`{text}` matches models of several providers{}: {}",
        if *.usable { " with credentials" } else { ", none of them with credentials" },
        .candidates.join(", "))]
    Ambiguous {
        /// As typed.
        text: String,
        /// The best match of each provider, as `provider/id`.
        candidates: Vec<String>,
        /// Whether these providers have credentials.
        usable: bool,
    },
}

fn of_provider(provider: &Option<String>) -> String {
    let named = provider.as_ref();
    named.map_or_else(String::new, |name| format!(" of provider {name}"))
}

/// What a person should know about a choice that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectWarning {
    /// The catalogue does not hold this model; it is used as typed (1.7.5).
    UnknownModel {
        /// `provider/id`.
        model: String,
    },
    /// A pattern matched models of several providers; all are in the scope.
    SeveralProviders {
        /// The pattern.
        pattern: String,
        /// `provider/id` of each.
        models: Vec<String>,
    },
    /// A pattern matched nothing.
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A pattern matched only models without credentials.
    NoCredentials {
        /// The pattern.
        pattern: String,
        /// `provider/id` of each.
        models: Vec<String>,
    },
    /// The session's model cannot be used any more (1.7.1).
    SessionModelReplaced {
        /// `provider/id` of the session.
        wanted: String,
        /// `provider/id` used instead, if any.
        used: Option<String>,
    },
}

impl fmt::Display for SelectWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectWarning::UnknownModel { model } => {
                write!(f, "model {model} is not in the catalogue; it is used as typed")
            }
            SelectWarning::SeveralProviders { pattern, models } => {
                let models = models.join(", ");
                write!(f, "`{pattern}` matches models of several providers: {models}")
            }
            SelectWarning::NoMatch { pattern } => write!(f, "no model matches `{pattern}`"),
            SelectWarning::NoCredentials { pattern, models } => {
                let models = models.join(", ");
                write!(f, "`{pattern}` matches only models without credentials: {models}")
            }
            SelectWarning::SessionModelReplaced { wanted, used } => {
                write!(f, "the session's model {wanted} cannot be used")?;
                match used {
                    Some(used) => write!(f, "; {used} is used instead"),
                    None => write!(f, " and there is no other"),
                }
            }
        }
    }
}

/// The model a text means (`host.md` 1.7.3 to 1.7.5): an exact id or
/// `provider/id`, else a part of an id or name, else the same without a
/// `:level` suffix, else an unknown id of a known provider.
pub fn resolve_model(
    query: Query<'_>,
    catalog: &Catalog,
    usable: Usable<'_>,
) -> Result<Selected, SelectError> {
    let text = query.text.trim();
    let provider = match query.provider {
        None => None,
        Some(name) => Some(known_provider(catalog, name.trim())?),
    };
    let (found, thinking) = find(catalog, provider, text);
    let mut warnings = Vec::new();
    let model = match found {
        Some(found) => decide(text, found, usable)?,
        None => {
            let level = thinking.or(query.thinking);
            let unknown = accept_unknown(catalog, provider, text, level);
            let (model, provider) = unknown.ok_or_else(|| SelectError::NotFound {
                text: text.to_owned(),
                provider: provider.map(str::to_owned),
            })?;
            warnings
                .push(SelectWarning::UnknownModel { model: format!("{provider}/{}", model.id) });
            model
        }
    };
    Ok(Selected { model, thinking, warnings })
}

fn known_provider<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a str, SelectError> {
    let ids = || catalog.providers().iter().map(|p| p.id.as_str());
    let exact = ids().find(|id| *id == name);
    exact
        .or_else(|| ids().find(|id| id.eq_ignore_ascii_case(name)))
        .ok_or_else(|| SelectError::UnknownProvider { provider: name.to_owned() })
}

/// The matches of a text, and the level of its suffix if that was cut off. A
/// suffix counts only when the whole text matches nothing (1.7.3); it counts
/// too when nothing matches at all.
fn find<'a>(
    catalog: &'a Catalog,
    provider: Option<&str>,
    text: &str,
) -> (Option<Found<'a>>, Option<ThinkingLevel>) {
    if let Some(found) = matching::find(catalog, provider, text) {
        return (Some(found), None);
    }
    match split_level(text) {
        Some((head, level)) => (matching::find(catalog, provider, head), Some(level)),
        None => (None, None),
    }
}

/// A text before a valid `:level` suffix, and the level.
fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (head, level) = text.rsplit_once(':')?;
    Some((head, ThinkingLevel::parse(level)?)).filter(|(head, _)| !head.is_empty())
}

/// One of the matches (`host.md` 1.7.4).
fn decide(text: &str, found: Found<'_>, usable: Usable<'_>) -> Result<Arc<ModelSpec>, SelectError> {
    let ambiguous = |models: &[&Arc<ModelSpec>], usable| SelectError::Ambiguous {
        text: text.to_owned(),
        candidates: models.iter().map(|model| model.reference()).collect(),
        usable,
    };
    let with_key = |models: &[&'_ Arc<ModelSpec>]| -> Vec<usize> {
        let indexes = 0..models.len();
        indexes.filter(|at| usable(&models[*at].provider)).collect()
    };
    if let Some(named) = found.named {
        // The named provider wins unless only another one has credentials.
        let others = with_key(&found.others);
        if usable(&named.provider) || others.len() != 1 {
            return Ok(Arc::clone(named));
        }
        return Ok(Arc::clone(found.others[others[0]]));
    }
    match found.others.as_slice() {
        [only] => Ok(Arc::clone(only)),
        several => match with_key(several).as_slice() {
            [only] => Ok(Arc::clone(several[*only])),
            [] => Err(ambiguous(several, false)),
            usable => {
                let models: Vec<_> = usable.iter().map(|at| several[*at]).collect();
                Err(ambiguous(&models, true))
            }
        },
    }
}

/// A model of a known provider that the catalogue does not hold (1.7.5), and
/// the provider's id.
fn accept_unknown<'a>(
    catalog: &'a Catalog,
    provider: Option<&'a str>,
    text: &str,
    level: Option<ThinkingLevel>,
) -> Option<(Arc<ModelSpec>, &'a str)> {
    let text = split_level(text).map_or(text, |(head, _)| head);
    let split = matching::split_provider(catalog, text);
    let (provider, id) = match provider {
        Some(provider) => match split.filter(|(named, _)| *named == provider) {
            Some((_, id)) => (provider, id),
            None => (provider, text),
        },
        None => split?,
    };
    if id.is_empty() {
        return None;
    }
    let mut model = catalog.unknown_model(provider, id)?;
    if level.is_some_and(|level| level != ThinkingLevel::Off) {
        model.reasoning = true;
    }
    Some((Arc::new(model), provider))
}

#[cfg(test)]
mod tests;
