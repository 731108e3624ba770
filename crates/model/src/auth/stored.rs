//! The content of `auth.json` (`host.md` 1.4.1): one credential per provider.
//!
//! Must never put a part of the file into a warning.

use std::collections::BTreeMap;

use crew_base::json::from_text;
use crew_base::time::Time;
use serde_json::{Map, Value};

/// What could not be read of `auth.json`. Holds nothing of its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthWarning {
    /// No strict JSON; the file counts as it last was, at first as empty.
    #[error("{path} is not valid JSON (line {line}, column {column}) and is not used")]
    Syntax {
        /// The file.
        path: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// JSON, but no object of credentials by provider.
    #[error("{path} is not an object of credentials by provider and is not used")]
    NoObject {
        /// The file.
        path: String,
    },
    /// One entry is no credential; the others count.
    #[error("{path}: the credential of `{provider}` is not used: {problem}")]
    Entry {
        /// The file.
        path: String,
        /// Its key.
        provider: String,
        /// What is wrong with it.
        problem: EntryProblem,
    },
}

/// What is wrong with one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// Not an object.
    #[error("it is not an object")]
    NoObject,
    /// `type` is none of the two we know.
    #[error("its `type` is neither \"api_key\" nor \"oauth\"")]
    UnknownType,
    /// `key` is no text.
    #[error("its `key` is not a string")]
    BadKey,
    /// An OAuth entry without a token.
    #[error("it has no `access` token")]
    NoToken,
    /// `env` is no object of texts.
    #[error("its `env` is not an object of strings")]
    BadEnv,
}

/// One provider's entry. Has no `Debug`.
pub(super) struct Stored {
    pub(super) key: StoredKey,
    /// Variables of this provider's requests (1.4.5).
    pub(super) env: BTreeMap<String, String>,
}

/// What authorises.
pub(super) enum StoredKey {
    /// In the syntax of `host.md` 1.6.
    Key(String),
    /// A bearer token; without `expires` it does not expire.
    Token { access: String, expires: Option<Time> },
    /// An entry that only sets variables.
    None,
}

/// Reads the file; `None` when it is of no use as a whole.
pub(super) fn read(path: &str, text: &str) -> (Option<BTreeMap<String, Stored>>, Vec<AuthWarning>) {
    let path = path.to_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = match from_text::<Value>(text) {
        Ok(root) => root,
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            return (None, vec![AuthWarning::Syntax { path, line, column }]);
        }
    };
    let Some(entries) = root.as_object() else {
        return (None, vec![AuthWarning::NoObject { path }]);
    };
    let mut stored = BTreeMap::new();
    let mut warnings = Vec::new();
    for (provider, value) in entries {
        match entry(value) {
            Ok(credential) => {
                stored.insert(provider.clone(), credential);
            }
            Err(problem) => warnings.push(AuthWarning::Entry {
                path: path.clone(),
                provider: provider.clone(),
                problem,
            }),
        }
    }
    (Some(stored), warnings)
}

fn entry(value: &Value) -> Result<Stored, EntryProblem> {
    let object = value.as_object().ok_or(EntryProblem::NoObject)?;
    let key = match object.get("type").and_then(Value::as_str) {
        Some("api_key") => api_key(object)?,
        Some("oauth") => token(object)?,
        _ => return Err(EntryProblem::UnknownType),
    };
    let env = variables(object.get("env"))?;
    Ok(Stored { key, env })
}

fn api_key(object: &Map<String, Value>) -> Result<StoredKey, EntryProblem> {
    match object.get("key").filter(|key| !key.is_null()) {
        None => Ok(StoredKey::None),
        Some(key) => match key.as_str().ok_or(EntryProblem::BadKey)? {
            "" => Ok(StoredKey::None),
            key => Ok(StoredKey::Key(key.to_owned())),
        },
    }
}

fn token(object: &Map<String, Value>) -> Result<StoredKey, EntryProblem> {
    let access = object.get("access").and_then(Value::as_str);
    let access = access.filter(|access| !access.is_empty());
    let expires = object.get("expires").and_then(Value::as_f64);
    Ok(StoredKey::Token {
        access: access.ok_or(EntryProblem::NoToken)?.to_owned(),
        expires: expires.map(|ms| Time(ms.max(0.0) as u64)),
    })
}

fn variables(value: Option<&Value>) -> Result<BTreeMap<String, String>, EntryProblem> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let object = value.as_object().ok_or(EntryProblem::BadEnv)?;
    let variable = |(name, value): (&String, &Value)| {
        let value = value.as_str().ok_or(EntryProblem::BadEnv)?;
        Ok((name.clone(), value.to_owned()))
    };
    object.iter().map(variable).collect()
}
