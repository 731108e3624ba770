//! Credentials: which key a request of a model goes out with (`host.md` 1.4,
//! 1.5.9).
//!
//! Takes the text of `auth.json`, the environment and the clock as values.
//! Must never hand out the credential of another provider than the model's
//! own, and never put a secret into an error, a `Debug` or JSON. Read [`stored`]
//! for the file, `value` for the syntax of a key.

mod stored;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crew_base::model::{Api, ModelError, ModelErrorKind, ModelSpec};
use crew_base::time::Time;
use tokio::sync::OnceCell;

use crate::catalog::{Catalog, Provider};
use crate::value::{Environment, Lookup, Value, ValueError};
use crate::wire::Credential;

pub use stored::AuthWarning;
use stored::{Stored, StoredKey};

/// Tells the time; only expiry of tokens looks at it.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// What credentials are made from.
pub struct AuthConfig {
    /// The catalogue with the user's `models.json` applied.
    pub catalog: Arc<Catalog>,
    /// Path of `auth.json`, for messages.
    pub auth_path: String,
    /// Its text; `None` when there is no such file.
    pub auth_text: Option<String>,
    /// The environment of the process.
    pub environment: Lookup,
    /// The clock.
    pub clock: Clock,
}

/// All credentials of the process, shared by every session. Has no `Debug`.
pub struct Credentials {
    auth_path: String,
    environment: Lookup,
    clock: Clock,
    files: RwLock<Files>,
    /// Keys of `--api-key`, by provider; memory only.
    given: Mutex<BTreeMap<String, String>>,
    /// Outcomes of the commands of `auth.json` (1.4.4).
    commands: Mutex<BTreeMap<(String, String), Arc<Outcome>>>,
}

/// What a command yielded, once it has.
type Outcome = OnceCell<Result<String, ValueError>>;

/// What a reload replaces.
struct Files {
    catalog: Arc<Catalog>,
    stored: BTreeMap<String, Stored>,
}

/// Where the key of a provider comes from, before it is resolved.
enum Source {
    /// `--api-key`.
    Given(String),
    /// A key in `auth.json`.
    StoredKey(Value),
    /// A token in `auth.json`.
    StoredToken { access: String, expires: Option<Time> },
    /// `apiKey` of `models.json`.
    Configured(Value),
    /// An environment variable's value.
    Variable { key: String, bearer: bool },
    /// Nowhere.
    Missing,
}

impl Credentials {
    /// Reads `auth.json`. What cannot be read is told and left out; nothing
    /// else stops working.
    pub fn new(config: AuthConfig) -> (Credentials, Vec<AuthWarning>) {
        let text = config.auth_text.as_deref();
        let (stored, warnings) = stored::read(&config.auth_path, text.unwrap_or("{}"));
        let credentials = Credentials {
            auth_path: config.auth_path,
            environment: config.environment,
            clock: config.clock,
            files: RwLock::new(Files {
                catalog: config.catalog,
                stored: stored.unwrap_or_default(),
            }),
            given: Mutex::default(),
            commands: Mutex::default(),
        };
        (credentials, warnings)
    }

    /// Takes newly read files. An `auth.json` that does not parse leaves the
    /// last good one in force (`host.md` 1.4.3); command outcomes stay.
    pub fn reload(&self, catalog: Arc<Catalog>, auth_text: Option<&str>) -> Vec<AuthWarning> {
        let (stored, warnings) = stored::read(&self.auth_path, auth_text.unwrap_or("{}"));
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.catalog = catalog;
        if let Some(stored) = stored {
            files.stored = stored;
        }
        warnings
    }

    /// Lays a key over all other sources of one provider (`--api-key`); taken
    /// literally, kept in memory only.
    pub fn give_key(&self, provider: &str, key: &str) {
        let mut given = lock(&self.given);
        given.insert(provider.to_owned(), key.to_owned());
    }

    /// Whether requests of a provider would find a credential, as far as can
    /// be told without running a command. True for the scripted provider.
    pub fn is_configured(&self, provider: &str) -> bool {
        self.configured(provider, true)
    }

    /// The same without regard to `auth.json`: what counts for the choice of
    /// a model under `--api-key` (`host.md` 1.7.4).
    pub fn is_configured_without_stored(&self, provider: &str) -> bool {
        self.configured(provider, false)
    }

    fn configured(&self, provider: &str, with_stored: bool) -> bool {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = files.catalog.provider(provider) else {
            return false;
        };
        let stored = files.stored.get(provider).filter(|_| with_stored);
        let environment = self.environment_of(stored);
        let by_key = match self.source(known, stored, &environment) {
            Source::Given(_) | Source::Variable { .. } => true,
            Source::StoredKey(value) | Source::Configured(value) => {
                value.is_resolvable(&environment)
            }
            Source::StoredToken { expires, .. } => !self.is_past(expires),
            Source::Missing => false,
        };
        let mut models = files.catalog.models_of(provider);
        // The scripted model answers without any.
        by_key || models.any(|m| m.api == Api::Demo || has_auth_header(m, &environment))
    }

    /// The credential for one request of a model, of its own provider alone:
    /// `--api-key`, else `auth.json`, else `models.json`, else the environment
    /// (`host.md` 1.4.7), with the configured headers. Commands of
    /// `models.json` run each time, those of `auth.json` once per process.
    /// Errors are of kind `Credential` and say what to do.
    pub async fn resolve(&self, model: &ModelSpec) -> Result<Credential, ModelError> {
        if model.api == Api::Demo {
            return Ok(Credential::default());
        }
        let (source, environment, variables) = {
            let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
            let stored = files.stored.get(&model.provider);
            let environment = self.environment_of(stored);
            match files.catalog.provider(&model.provider) {
                Some(known) => {
                    let source = self.source(known, stored, &environment);
                    (source, environment, known.env.clone())
                }
                None => (Source::Missing, environment, Vec::new()),
            }
        };
        let (key, bearer) = self.key(model, source, &environment).await?;
        let mut headers = Vec::new();
        if let Some(key) = key.as_deref().filter(|_| model.auth_header) {
            headers.push(("Authorization".to_owned(), format!("Bearer {key}")));
        }
        for (name, value) in &model.headers {
            let resolved = Value::parse(value).resolve(&environment).await;
            let what = format!("header `{name}` of provider {}", model.provider);
            headers.push((name.clone(), resolved.map_err(|e| unresolved(&what, &e))?));
        }
        let credential = Credential::new(key, bearer, headers);
        if credential.authorises() {
            return Ok(credential);
        }
        Err(self.missing(model, &variables))
    }

    async fn key(
        &self,
        model: &ModelSpec,
        source: Source,
        environment: &Environment,
    ) -> Result<(Option<String>, bool), ModelError> {
        let provider = &model.provider;
        match source {
            Source::Given(key) => Ok((Some(key), false)),
            Source::Variable { key, bearer } => Ok((Some(key), bearer)),
            Source::Missing => Ok((None, false)),
            Source::StoredKey(value) => {
                let key = self.resolve_once(provider, &value, environment).await;
                let what = format!("key of provider {provider} in {}", self.auth_path);
                Ok((Some(key.map_err(|e| unresolved(&what, &e))?), false))
            }
            Source::Configured(value) => {
                let key = value.resolve(environment).await;
                let what = format!("`apiKey` of provider {provider} in models.json");
                Ok((Some(key.map_err(|e| unresolved(&what, &e))?), false))
            }
            Source::StoredToken { expires, .. } if self.is_past(expires) => {
                Err(credential_error(format!(
                    "the stored token of provider {provider} has expired: sign in again with the \
                     program that stored it, or put an API key for `{provider}` into {}",
                    self.auth_path
                )))
            }
            Source::StoredToken { access, .. } => Ok((Some(access), true)),
        }
    }

    /// Resolves a value of `auth.json`; a command runs once per process, its
    /// failure is kept too (1.4.4). Callers that come meanwhile wait for the
    /// same run (C107). A run that is cancelled has no outcome to keep.
    async fn resolve_once(
        &self,
        provider: &str,
        value: &Value,
        environment: &Environment,
    ) -> Result<String, ValueError> {
        let command = match value {
            Value::Template(_) => return value.resolve(environment).await,
            Value::Command(command) => command.clone(),
        };
        let cell = {
            let mut commands = lock(&self.commands);
            let cell = commands.entry((provider.to_owned(), command));
            Arc::clone(cell.or_default())
        };
        cell.get_or_init(|| value.resolve(environment)).await.clone()
    }

    fn source(
        &self,
        provider: &Provider,
        stored: Option<&Stored>,
        environment: &Environment,
    ) -> Source {
        if let Some(key) = lock(&self.given).get(&provider.id) {
            return Source::Given(key.clone());
        }
        match stored.map(|stored| &stored.key) {
            Some(StoredKey::Key(key)) => return Source::StoredKey(Value::parse(key)),
            Some(StoredKey::Token { access, expires }) => {
                return Source::StoredToken { access: access.clone(), expires: *expires };
            }
            Some(StoredKey::None) | None => {}
        }
        if let Some(key) = &provider.api_key {
            return Source::Configured(Value::parse(key));
        }
        let variable = |name: &String| {
            Some(Source::Variable {
                key: environment.get(name)?,
                bearer: provider.bearer_env.contains(name),
            })
        };
        let set = provider.env.iter().find_map(variable);
        set.unwrap_or(Source::Missing)
    }

    fn environment_of(&self, stored: Option<&Stored>) -> Environment {
        let own = stored.map(|stored| stored.env.clone()).unwrap_or_default();
        Environment::new(Arc::clone(&self.environment), own)
    }

    fn is_past(&self, expires: Option<Time>) -> bool {
        expires.is_some_and(|expires| (self.clock)() >= expires)
    }

    fn missing(&self, model: &ModelSpec, variables: &[String]) -> ModelError {
        let provider = &model.provider;
        let set = if variables.is_empty() {
            format!("give provider {provider} an `apiKey` in models.json")
        } else {
            format!("set {} in the environment", variables.join(" or "))
        };
        credential_error(format!(
            "No API key for {}: {set}, or put a key for `{provider}` into {}",
            model.reference(),
            self.auth_path
        ))
    }
}

/// Whether a configured header authorises requests of the model without a key.
fn has_auth_header(model: &ModelSpec, environment: &Environment) -> bool {
    model.headers.iter().any(|(name, value)| {
        let header = vec![(name.clone(), "set".to_owned())];
        Credential::new(None, false, header).authorises()
            && Value::parse(value).is_resolvable(environment)
    })
}

fn unresolved(what: &str, error: &ValueError) -> ModelError {
    credential_error(format!("the {what} has no value: {error}"))
}

fn credential_error(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Credential, message)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
