//! Reads single settings from the layers: the project's value first, and the
//! next one when a value has the wrong type, with a warning that names file and
//! key.

use std::path::PathBuf;

use crew_base::definition::Warning;
use serde_json::{Map, Value};

use super::file::USER_ONLY;

/// The values of one file.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) values: Map<String, Value>,
}

impl Layer {
    /// Sets or removes the value at a path of keys.
    pub(crate) fn set(&mut self, path: &[&str], value: Option<&Value>) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        let mut at = &mut self.values;
        for key in above {
            let inner = at.entry(*key).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            let Some(object) = inner.as_object_mut() else {
                return;
            };
            at = object;
        }
        match value {
            Some(value) => at.insert((*last).to_owned(), value.clone()),
            None => at.remove(*last),
        };
    }
}

/// Reads typed values and gathers warnings.
pub(crate) struct Reader<'a> {
    /// Project first, if there is one.
    layers: Vec<(&'a Layer, bool)>,
    pub(crate) warnings: Vec<Warning>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(user: &'a Layer, project: Option<&'a Layer>) -> Reader<'a> {
        let project = project.map(|layer| (layer, true));
        Reader {
            layers: project.into_iter().chain([(user, false)]).collect(),
            warnings: Vec::new(),
        }
    }

    /// The values set at a dotted key, project first; `null` is not set.
    pub(crate) fn values(&mut self, key: &str) -> Vec<(&'a Layer, &'a Value)> {
        let mut found = Vec::new();
        for (layer, is_project) in self.layers.clone() {
            let mut names = key.split('.');
            let first = names.next().unwrap_or_default();
            if is_project && USER_ONLY.contains(&first) {
                continue;
            }
            let mut at = layer.values.get(first);
            let mut path = first.to_owned();
            for name in names {
                let Some(value) = at.filter(|value| !value.is_null()) else {
                    break;
                };
                let Some(object) = value.as_object() else {
                    self.warn(layer, &path, "an object");
                    at = None;
                    break;
                };
                at = object.get(name);
                path = format!("{path}.{name}");
            }
            if let Some(value) = at.filter(|value| !value.is_null()) {
                found.push((layer, value));
            }
        }
        found
    }

    /// The first value of the wanted form.
    pub(crate) fn get<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        for (layer, value) in self.values(key) {
            match read(value) {
                Some(value) => return Some(value),
                None => self.warn(layer, key, expected),
            }
        }
        None
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        self.get(key, "text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn flag(&mut self, key: &str, default: bool) -> bool {
        let value = self.get(key, "true or false", Value::as_bool);
        value.unwrap_or(default)
    }

    /// A whole number from 0.
    pub(crate) fn count(&mut self, key: &str) -> Option<u64> {
        self.get(key, "a whole number from 0", whole)
    }

    /// A number within bounds.
    pub(crate) fn bounded(&mut self, key: &str, min: u64, max: u64, default: u64) -> u64 {
        let expected = format!("a whole number from {min} to {max}");
        let read = |value: &Value| whole(value).filter(|n| (min..=max).contains(n));
        self.get(key, &expected, read).unwrap_or(default)
    }

    /// One of several words.
    pub(crate) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        self.get(key, &expected, |value| {
            let word = value.as_str()?;
            let known = words.iter().find(|(name, _)| *name == word);
            known.map(|(_, value)| *value)
        })
    }

    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.get(key, "a list of texts", list)
    }

    pub(crate) fn warn(&mut self, layer: &Layer, key: &str, expected: &str) {
        let warning = Warning {
            path: layer.path.to_string_lossy().into_owned(),
            message: format!("setting `{key}` is ignored: expected {expected}"),
        };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A whole number from 0, written in any form.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let is_whole = number.fract() == 0.0 && (0.0..WHOLE_MAX).contains(&number);
        is_whole.then_some(number as u64)
    })
}

/// A list of texts.
pub(crate) fn list(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}
