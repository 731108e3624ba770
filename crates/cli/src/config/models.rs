//! The model a person named: whether it exists, which ones are close to it,
//! and whose key `--api-key` is (`host.md` 1.7, 1.4.7).
//!
//! The choice itself is `crew_model::select`'s.

use crew_model::auth::Credentials;
use crew_model::catalog::{Catalog, DEMO_MODEL, DEMO_PROVIDER};
use crew_model::select::{Query, SelectError, resolve_model, scope};
use crew_runtime::ModelWish;

use crate::args::Options;
use crate::error::Error;

/// Models named as close to one that does not exist.
const NEAR_MAX: usize = 3;

/// What the session is to be told about models. A model that does not exist is
/// told now, with those close to it.
pub(crate) fn wish(
    options: &Options,
    enabled: Option<&[String]>,
    catalog: &Catalog,
    credentials: &Credentials,
) -> Result<ModelWish, Error> {
    let patterns = options.models.as_deref().or(enabled).unwrap_or_default();
    let mut wish = ModelWish {
        model: options.model.clone(),
        provider: options.provider.clone(),
        thinking: options.thinking,
        scope: patterns.to_vec(),
    };
    let key = options.api_key.as_ref();
    // A key on the command line is for the model named beside it: what is
    // stored has no say in whose it is (1.7.4).
    let usable = |provider: &str| match key {
        Some(_) => credentials.is_configured_without_stored(provider),
        None => credentials.is_configured(provider),
    };
    if let Some(text) = &options.model {
        let query =
            Query { text, provider: options.provider.as_deref(), thinking: options.thinking };
        let selected = resolve_model(query, catalog, &usable)
            .map_err(|error| Error::Model { near: near(&error, catalog), error })?;
        if let Some(key) = key {
            credentials.give_key(&selected.model.provider, &key.0);
            wish.model = Some(selected.model.reference());
            wish.provider = None;
            wish.thinking = options.thinking.or(selected.thinking);
        }
    } else if let Some(key) = key {
        let every = |_: &str| true;
        let scoped = scope(patterns.iter().map(String::as_str), catalog, &every);
        if let Some(first) = scoped.models.first() {
            credentials.give_key(&first.model.provider, &key.0);
        }
    }
    Ok(wish)
}

/// A model's name for people; the scripted one is marked (`product.md` P-3).
pub(crate) fn shown(reference: &str) -> String {
    let scripted = reference.split_once('/') == Some((DEMO_PROVIDER, DEMO_MODEL));
    if scripted { format!("{reference} (scripted)") } else { reference.to_owned() }
}

/// Models whose reference or id looks like a text that matches none.
fn near(error: &SelectError, catalog: &Catalog) -> Vec<String> {
    let text = match error {
        SelectError::NotFound { text, .. } => text.to_lowercase(),
        SelectError::UnknownProvider { .. } | SelectError::Ambiguous { .. } => return Vec::new(),
    };
    let distance_max = (text.chars().count() / 3).max(1);
    let mut near: Vec<(usize, String)> = catalog
        .models()
        .iter()
        .filter_map(|model| {
            let names = [model.reference(), model.id.clone()];
            let distances = names.iter().map(|name| distance(&text, &name.to_lowercase()));
            let distance = distances.min().filter(|distance| *distance <= distance_max)?;
            Some((distance, model.reference()))
        })
        .collect();
    near.sort();
    near.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
}

/// Insertions, deletions and replacements between two texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_model() {
        let (catalog, _) = Catalog::build(None);
        let any = catalog.models().first().unwrap().reference();
        let typed = any.replacen('a', "b", 1);
        let error = SelectError::NotFound { text: typed, provider: None };
        assert!(near(&error, &catalog).contains(&any));
        let error = SelectError::NotFound { text: "quite another thing".into(), provider: None };
        assert_eq!(near(&error, &catalog), Vec::<String>::new());
    }

    #[test]
    fn distances_count_changes() {
        let check = |a, b, expected| assert_eq!(distance(a, b), expected);
        check("", "abc", 3);
        check("kitten", "sitting", 3);
        check("same", "same", 0);
    }

    #[test]
    fn the_scripted_model_is_marked() {
        // product.md P-3
        assert_eq!(shown("demo/crew"), "demo/crew (scripted)");
        assert_eq!(shown("a/b"), "a/b");
    }
}
