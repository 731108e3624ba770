//! Merging provider entries into models (`host.md` 1.5.5 to 1.5.12).
//!
//! A draft keeps what was set apart from the defaults until everything is
//! applied: a provider's `compat` lies below that of each of its models, and
//! overrides come last.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_base::json::Raw;
use crew_base::model::{Api, ModelSpec, Rates};
use serde_json::{Map, Value};

use super::error::{CatalogError, Problem};
use super::{Catalog, Extras, Provider, demo};

type Object = Map<String, Value>;

/// A checked provider entry of a file.
pub(super) struct ProviderEntry {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) api_key: Option<String>,
    pub(super) api: Option<String>,
    pub(super) headers: Option<Vec<(String, String)>>,
    pub(super) auth_header: Option<bool>,
    pub(super) compat: Option<Object>,
    pub(super) models: Vec<ModelEntry>,
    pub(super) overrides: Vec<(String, Fields)>,
    pub(super) env: Vec<String>,
    pub(super) bearer_env: Vec<String>,
    pub(super) default_model: Option<String>,
}

/// A checked model entry of a file.
pub(super) struct ModelEntry {
    pub(super) id: String,
    /// Its place in the file.
    pub(super) at: String,
    pub(super) api: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) fields: Fields,
}

/// The fields a model and an override share, as far as set.
#[derive(Clone, Default)]
pub(super) struct Fields {
    pub(super) name: Option<String>,
    pub(super) reasoning: Option<bool>,
    pub(super) images: Option<bool>,
    pub(super) context_window: Option<u64>,
    pub(super) max_tokens: Option<u64>,
    pub(super) headers: Option<Vec<(String, String)>>,
    pub(super) thinking: Option<Object>,
    pub(super) cost: Option<Object>,
    pub(super) sampling: Option<Object>,
    pub(super) compat: Option<Object>,
    pub(super) input_limits: Option<Object>,
    pub(super) prompt_cache: Option<Object>,
    pub(super) sampling_by_level: Option<Object>,
}

/// All providers and models before the defaults are filled in.
#[derive(Default)]
pub(super) struct Drafts {
    providers: Vec<ProviderDraft>,
}

struct ProviderDraft {
    provider: Provider,
    compat: Object,
    models: Vec<ModelDraft>,
}

struct ModelDraft {
    id: String,
    api: String,
    base_url: String,
    fields: Fields,
}

impl Drafts {
    /// Applies the entries of one file in order.
    pub(super) fn apply(
        &mut self,
        file: &str,
        entries: Vec<ProviderEntry>,
    ) -> Result<(), CatalogError> {
        for entry in entries {
            let known = self.providers.iter_mut().find(|p| p.provider.id == entry.id);
            let known = match known {
                Some(known) => known,
                None => {
                    self.providers.push(ProviderDraft::new(&entry.id));
                    self.providers.last_mut().expect("one was just added")
                }
            };
            known.apply(entry).map_err(|(at, problem)| CatalogError {
                file: file.to_owned(),
                at,
                problem,
            })?;
        }
        Ok(())
    }

    /// Fills in all defaults and adds the scripted provider.
    pub(super) fn finish(self) -> Catalog {
        let mut catalog =
            Catalog { providers: Vec::new(), models: Vec::new(), extras: BTreeMap::new() };
        for draft in self.providers {
            for model in draft.models {
                let (spec, extras) = finish_model(&draft.provider, &draft.compat, model);
                if extras != Extras::default() {
                    catalog.extras.insert(spec.reference(), extras);
                }
                catalog.models.push(Arc::new(spec));
            }
            catalog.providers.push(draft.provider);
        }
        let (provider, model) = demo();
        // A user's own provider of that name keeps its other models.
        if catalog.provider(&provider.id).is_none() {
            catalog.providers.push(provider);
        }
        catalog.models.retain(|m| m.reference() != model.reference());
        catalog.models.push(Arc::new(model));
        catalog
    }
}

impl ProviderDraft {
    fn new(id: &str) -> ProviderDraft {
        let (demo, _) = demo();
        ProviderDraft {
            provider: Provider {
                id: id.to_owned(),
                name: id.to_owned(),
                default_model: None,
                ..demo
            },
            compat: Object::new(),
            models: Vec::new(),
        }
    }

    fn apply(&mut self, entry: ProviderEntry) -> Result<(), (String, Problem)> {
        let provider = &mut self.provider;
        replace(&mut provider.name, entry.name);
        if let Some(url) = entry.base_url {
            let url = without_slash(&url);
            for model in &mut self.models {
                model.base_url.clone_from(&url);
            }
            provider.base_url = Some(url);
        }
        provider.api = entry.api.or(provider.api.take());
        provider.api_key = entry.api_key.or(provider.api_key.take());
        replace(&mut provider.auth_header, entry.auth_header);
        replace(&mut provider.headers, entry.headers);
        provider.default_model = entry.default_model.or(provider.default_model.take());
        provider.env.extend(entry.env);
        provider.bearer_env.extend(entry.bearer_env);
        merge_compat(&mut self.compat, entry.compat.unwrap_or_default());
        for model in entry.models {
            self.add(model)?;
        }
        for (id, fields) in entry.overrides {
            // Unknown ids are ignored (1.5.7).
            if let Some(model) = self.models.iter_mut().find(|model| model.id == id) {
                model.fields.override_with(fields);
            }
        }
        Ok(())
    }

    /// Adds a model or replaces the one of the same id (1.5.6).
    fn add(&mut self, entry: ModelEntry) -> Result<(), (String, Problem)> {
        let same = self.models.iter().position(|model| model.id == entry.id);
        let old = same.map(|at| &self.models[at]);
        let api = entry
            .api
            .or_else(|| self.provider.api.clone())
            .or_else(|| old.map(|model| model.api.clone()));
        let Some(api) = api else {
            return Err((entry.at, Problem::NoApi));
        };
        let of_api = || self.models.iter().find(|model| model.api == api);
        let base_url = entry
            .base_url
            .map(|url| without_slash(&url))
            .or_else(|| self.provider.base_url.clone())
            .or_else(|| old.or_else(of_api).map(|model| model.base_url.clone()));
        let Some(base_url) = base_url else {
            return Err((entry.at, Problem::NoBaseUrl));
        };
        let model = ModelDraft { id: entry.id, api, base_url, fields: entry.fields };
        match same {
            Some(at) => self.models[at] = model,
            None => self.models.push(model),
        }
        Ok(())
    }
}

impl Fields {
    /// Objects merge per key, all else replaces (1.5.7).
    fn override_with(&mut self, other: Fields) {
        fn put<T>(slot: &mut Option<T>, value: Option<T>) {
            if value.is_some() {
                *slot = value;
            }
        }
        put(&mut self.name, other.name);
        put(&mut self.reasoning, other.reasoning);
        put(&mut self.images, other.images);
        put(&mut self.context_window, other.context_window);
        put(&mut self.max_tokens, other.max_tokens);
        put(&mut self.headers, other.headers);
        put(&mut self.sampling_by_level, other.sampling_by_level);
        let flat: fn(&mut Object, Object) = |into, from| into.extend(from);
        let merges = [
            (&mut self.thinking, other.thinking, flat),
            (&mut self.cost, other.cost, flat),
            (&mut self.sampling, other.sampling, flat),
            (&mut self.prompt_cache, other.prompt_cache, flat),
            (&mut self.compat, other.compat, merge_compat as _),
            (&mut self.input_limits, other.input_limits, merge_deep as _),
        ];
        for (slot, value, merge) in merges {
            if let Some(value) = value {
                merge(slot.get_or_insert_default(), value);
            }
        }
    }
}

fn replace<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn without_slash(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

/// Per key; the routing and template keys one level deeper (1.5.8).
fn merge_compat(into: &mut Object, from: Object) {
    const DEEPER: [&str; 4] =
        ["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs"];
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if DEEPER.contains(&key.as_str()) => {
                old.extend(new);
            }
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn merge_deep(into: &mut Object, from: Object) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_deep(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// A model of a provider that has none to copy, with the defaults of 1.5.6.
pub(super) fn bare(provider: &Provider, id: &str) -> Option<ModelSpec> {
    let draft = ModelDraft {
        id: id.to_owned(),
        api: provider.api.clone()?,
        base_url: provider.base_url.clone()?,
        fields: Fields::default(),
    };
    Some(finish_model(provider, &Object::new(), draft).0)
}

fn finish_model(provider: &Provider, compat: &Object, draft: ModelDraft) -> (ModelSpec, Extras) {
    let fields = draft.fields;
    let mut merged = compat.clone();
    merge_compat(&mut merged, fields.compat.unwrap_or_default());
    let raw = |object: Object| (!object.is_empty()).then(|| Raw::of(&Value::Object(object)));
    let mut headers = provider.headers.clone();
    headers.extend(fields.headers.unwrap_or_default());
    let levels = fields.thinking.unwrap_or_default().into_iter();
    let spec = ModelSpec {
        provider: provider.id.clone(),
        name: fields.name.unwrap_or_else(|| draft.id.clone()),
        id: draft.id,
        api: Api::parse(&draft.api),
        api_word: draft.api,
        base_url: draft.base_url,
        reasoning: fields.reasoning.unwrap_or(false),
        thinking_levels: levels
            .map(|(level, word)| (level, word.as_str().map(str::to_owned)))
            .collect(),
        images: fields.images.unwrap_or(false),
        rates: rates(&fields.cost.unwrap_or_default()),
        context_window: fields.context_window.unwrap_or(128_000),
        max_tokens: fields.max_tokens.unwrap_or(16_384),
        sampling_params: fields.sampling.and_then(raw),
        headers,
        auth_header: provider.auth_header,
        compat: raw(merged),
    };
    let extras = Extras {
        input_limits: fields.input_limits,
        prompt_cache: fields.prompt_cache,
        sampling_by_level: fields.sampling_by_level,
    };
    (spec, extras)
}

fn rates(cost: &Object) -> Rates {
    let rate = |name: &str| cost.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let tiers = cost.get("tiers").and_then(Value::as_array);
    let tier = |value: &Value| {
        let tier = value.as_object()?;
        let above = tier.get("inputTokensAbove")?.as_f64()?;
        Some((above.max(0.0) as u64, rates(tier)))
    };
    Rates {
        input: rate("input"),
        output: rate("output"),
        cache_read: rate("cacheRead"),
        cache_write: rate("cacheWrite"),
        tiers: tiers.into_iter().flatten().filter_map(tier).collect(),
    }
}
