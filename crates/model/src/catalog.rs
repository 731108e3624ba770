//! The model catalogue: our own dated table, changed and extended by the
//! user's `models.json` (`host.md` 1.5).
//!
//! Pure: text comes in, a [`Catalog`] comes out. Must never resolve a
//! configured value, and never put one into an error. Read `file` for the
//! schema, `draft` for the merge rules, `auth` for what credentials need.

mod draft;
mod error;
mod file;
mod json;

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_base::json::Raw;
use crew_base::model::{Api, ModelSpec, ThinkingLevel};
use serde_json::{Map, Value};

pub use error::{CatalogError, Problem};
pub use json::model_json;

use draft::Drafts;
use file::Owner;

/// Our table, in the shape of `models.json` with three more provider fields:
/// `env`, `bearerEnv` and `default`.
const BUILTIN: &str = include_str!("catalog/builtin.json");

/// Provider id of the scripted model (`product.md` P-3).
pub const DEMO_PROVIDER: &str = "demo";
/// Model id of the scripted model.
pub const DEMO_MODEL: &str = "crew";

/// All known providers and models; immutable, rebuilt on reload.
pub struct Catalog {
    providers: Vec<Provider>,
    models: Vec<Arc<ModelSpec>>,
    extras: BTreeMap<String, Extras>,
}

/// A provider as credentials and faces need it. Has no `Debug`: key and
/// headers may be secrets as configured.
#[derive(Clone)]
pub struct Provider {
    /// Its id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Wire format of models that name none.
    pub api: Option<String>,
    /// Where its requests go, without a trailing slash.
    pub base_url: Option<String>,
    /// The `apiKey` of `models.json`, unresolved (1.6).
    pub api_key: Option<String>,
    /// Whether the key also goes into an `Authorization: Bearer` header.
    pub auth_header: bool,
    /// Extra headers, unresolved (1.6).
    pub headers: Vec<(String, String)>,
    /// Environment variables that may hold its key; the first set one counts.
    pub env: Vec<String>,
    /// Those of `env` whose value is sent as a bearer token.
    pub bearer_env: Vec<String>,
    /// Id of the model to take when none is named.
    pub default_model: Option<String>,
}

/// Model fields that no request uses as they stand.
#[derive(Clone, Debug, Default, PartialEq)]
struct Extras {
    input_limits: Option<Map<String, Value>>,
    prompt_cache: Option<Map<String, Value>>,
    sampling_by_level: Option<Map<String, Value>>,
}

impl Catalog {
    /// Builds the catalogue from our table and `models.json`, given as its
    /// path (for messages) and its text. A violation disables the whole file
    /// and is told beside the catalogue of our table (`host.md` 1.5.2).
    pub fn build(models_json: Option<(&str, &str)>) -> (Catalog, Option<CatalogError>) {
        let Some((path, text)) = models_json else {
            return (builtin().finish(), None);
        };
        let mut drafts = builtin();
        let applied = file::read(Owner::User, path, text).and_then(|file| drafts.apply(path, file));
        match applied {
            Ok(()) => (drafts.finish(), None),
            Err(error) => (builtin().finish(), Some(error)),
        }
    }

    /// The model of exactly this provider and id.
    pub fn get(&self, provider: &str, id: &str) -> Option<Arc<ModelSpec>> {
        let mut models = self.models.iter();
        let found = models.find(|model| model.provider == provider && model.id == id);
        found.cloned()
    }

    /// All models: providers in table order, then in file order; within a
    /// provider the best first; the scripted one last.
    pub fn models(&self) -> &[Arc<ModelSpec>] {
        &self.models
    }

    /// The models of one provider, in catalogue order.
    pub fn models_of(&self, provider: &str) -> impl Iterator<Item = &Arc<ModelSpec>> {
        self.models.iter().filter(move |model| model.provider == provider)
    }

    /// All providers, in table order, then in file order; `demo` last.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// The provider of exactly this id.
    pub fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The default model of a provider: the one our table names, else its
    /// first.
    pub fn provider_default(&self, provider: &str) -> Option<Arc<ModelSpec>> {
        let named = self.provider(provider)?.default_model.as_deref();
        named
            .and_then(|id| self.get(provider, id))
            .or_else(|| self.models_of(provider).next().cloned())
    }

    /// A model the catalogue does not hold, of a known provider: the
    /// provider's default under another id (`host.md` 1.7.5), else the
    /// defaults of 1.5.6; `None` when there is no wire format or no address.
    pub fn unknown_model(&self, provider: &str, id: &str) -> Option<ModelSpec> {
        let known = self.provider(provider)?;
        if let Some(like) = self.provider_default(provider) {
            let api = like.api != Api::Demo;
            return api.then(|| ModelSpec {
                id: id.to_owned(),
                name: id.to_owned(),
                ..ModelSpec::clone(&like)
            });
        }
        draft::bare(known, id)
    }

    /// The model with the sampling parameters of one thinking level merged
    /// into its own (`samplingParamsByThinkingLevel`, `host.md` 1.5.6).
    pub fn for_level(&self, model: &Arc<ModelSpec>, level: ThinkingLevel) -> Arc<ModelSpec> {
        let extras = self.extras.get(&model.reference());
        let by_level = extras.and_then(|extras| extras.sampling_by_level.as_ref());
        let Some(Value::Object(wanted)) = by_level.and_then(|map| map.get(level.word())) else {
            return Arc::clone(model);
        };
        let own = model.sampling_params.as_ref().map(Raw::value);
        let mut merged = match own {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        merged.extend(wanted.clone());
        Arc::new(ModelSpec {
            sampling_params: Some(Raw::of(&Value::Object(merged))),
            ..ModelSpec::clone(model)
        })
    }

    /// The model object of `host.md` 7.3.10 with all fields of 1.5.6.
    pub fn model_json(&self, model: &ModelSpec) -> Value {
        let mut object = model_json(model);
        if let (Some(extras), Some(fields)) =
            (self.extras.get(&model.reference()), object.as_object_mut())
        {
            let named = [
                ("inputLimits", &extras.input_limits),
                ("promptCache", &extras.prompt_cache),
                ("samplingParamsByThinkingLevel", &extras.sampling_by_level),
            ];
            for (name, map) in named {
                if let Some(map) = map {
                    fields.insert(name.to_owned(), Value::Object(map.clone()));
                }
            }
        }
        object
    }
}

/// Whether this is the scripted model, to be marked as such wherever its name
/// is shown (`product.md` P-3).
pub fn is_scripted(model: &ModelSpec) -> bool {
    model.api == Api::Demo
}

fn builtin() -> Drafts {
    let file =
        file::read(Owner::Ours, "builtin.json", BUILTIN).expect("a test reads our own table");
    let mut drafts = Drafts::default();
    drafts.apply("builtin.json", file).expect("a test reads our own table");
    drafts
}

fn demo() -> (Provider, ModelSpec) {
    let provider = Provider {
        id: DEMO_PROVIDER.to_owned(),
        name: "Demo (scripted)".to_owned(),
        api: None,
        base_url: None,
        api_key: None,
        auth_header: false,
        headers: Vec::new(),
        env: Vec::new(),
        bearer_env: Vec::new(),
        default_model: Some(DEMO_MODEL.to_owned()),
    };
    let model = ModelSpec {
        provider: DEMO_PROVIDER.to_owned(),
        id: DEMO_MODEL.to_owned(),
        name: "scripted demo".to_owned(),
        api: Api::Demo,
        api_word: Api::Demo.word().to_owned(),
        base_url: String::new(),
        reasoning: false,
        thinking_levels: BTreeMap::new(),
        images: true,
        rates: Default::default(),
        context_window: 200_000,
        max_tokens: 16_384,
        sampling_params: None,
        headers: Vec::new(),
        auth_header: false,
        compat: None,
    };
    (provider, model)
}

#[cfg(test)]
mod tests;
