//! Matching a text against the catalogue (`host.md` 1.7.3).
//!
//! Finds, never decides between providers. The scripted model is found by its
//! full name only.

use std::sync::Arc;

use crew_base::model::ModelSpec;

use crate::catalog::{Catalog, is_scripted};

/// The best matches of the first way of matching that found any: at most one
/// per provider.
pub(super) struct Found<'a> {
    /// The match of the provider that the text named.
    pub(super) named: Option<&'a Arc<ModelSpec>>,
    /// The matches of all others, in catalogue order.
    pub(super) others: Vec<&'a Arc<ModelSpec>>,
}

/// Tries the ways of matching in order: exact, exact but for case, a part of
/// id or name.
pub(super) fn find<'a>(
    catalog: &'a Catalog,
    provider: Option<&str>,
    text: &str,
) -> Option<Found<'a>> {
    if text.is_empty() {
        return None;
    }
    let split = split_provider(catalog, text);
    let exact: Compare = |model, text| model.id == text;
    let caseless: Compare = |model, text| same(&model.id, text);
    let part: Compare = |model, text| holds(&model.id, text) || holds(&model.name, text);
    let ways = [exact, caseless, part];
    ways.into_iter().find_map(|compare| find_by(catalog, provider, text, split, compare))
}

type Compare = fn(&ModelSpec, &str) -> bool;

fn find_by<'a>(
    catalog: &'a Catalog,
    provider: Option<&str>,
    text: &str,
    split: Option<(&'a str, &str)>,
    compare: Compare,
) -> Option<Found<'a>> {
    let in_provider = |provider: &str, text: &str| {
        let models = catalog.models_of(provider);
        best(models.filter(|model| !text.is_empty() && is_match(model, text, compare)))
    };
    if let Some(provider) = provider {
        let rest = split.filter(|(named, _)| *named == provider);
        let whole = in_provider(provider, text);
        let named = whole.or_else(|| in_provider(provider, rest?.1));
        return named.map(|named| Found { named: Some(named), others: Vec::new() });
    }
    let named = split.and_then(|(provider, rest)| in_provider(provider, rest));
    let skipped = named.map(|model| model.provider.as_str());
    let ids = catalog.providers().iter().map(|p| p.id.as_str());
    let others: Vec<_> = ids
        .filter(|id| Some(*id) != skipped)
        // Without its provider the scripted model is not named in full.
        .filter_map(|id| in_provider(id, text).filter(|model| !is_scripted(model)))
        .collect();
    let found = Found { named, others };
    (found.named.is_some() || !found.others.is_empty()).then_some(found)
}

fn is_match(model: &ModelSpec, text: &str, compare: Compare) -> bool {
    if is_scripted(model) { model.id == text } else { compare(model, text) }
}

/// The known provider that a text starts with, and the rest behind the slash;
/// the longest id wins, exact case first.
pub(super) fn split_provider<'a, 't>(
    catalog: &'a Catalog,
    text: &'t str,
) -> Option<(&'a str, &'t str)> {
    let slashes = text.match_indices('/').map(|(at, _)| at);
    let mut ends: Vec<usize> = slashes.collect();
    ends.reverse();
    let split = |same: fn(&str, &str) -> bool| {
        ends.iter().find_map(|end| {
            let mut ids = catalog.providers().iter().map(|p| p.id.as_str());
            let id = ids.find(|id| same(id, &text[..*end]))?;
            Some((id, &text[end + 1..]))
        })
    };
    split(|a, b| a == b).or_else(|| split(same))
}

/// The best of one provider: names without a date before dated ones, then by
/// descending id (1.7.3).
fn best<'a>(models: impl Iterator<Item = &'a Arc<ModelSpec>>) -> Option<&'a Arc<ModelSpec>> {
    models.max_by(|a, b| {
        let rank = |model: &ModelSpec| !is_dated(&model.id);
        rank(a).cmp(&rank(b)).then_with(|| a.id.cmp(&b.id))
    })
}

/// Whether an id ends in `-YYYYMMDD`.
fn is_dated(id: &str) -> bool {
    let tail = id.rsplit_once('-').map(|(_, tail)| tail);
    tail.is_some_and(|tail| tail.len() == 8 && tail.bytes().all(|byte| byte.is_ascii_digit()))
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn holds(whole: &str, part: &str) -> bool {
    whole.to_lowercase().contains(&part.to_lowercase())
}
