//! The schema of `models.json` (`host.md` 1.5.1 to 1.5.7): text in, checked
//! providers out.
//!
//! Must never fill in defaults: `draft` needs to know what was set.

use crew_base::json::mend_surrogates;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};

use super::draft::{Fields, ModelEntry, ProviderEntry};
use super::error::{CatalogError, Problem};

const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const RATES: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Our table, with the fields `env`, `bearerEnv` and `default`.
    Ours,
    /// `models.json`; unknown fields mean nothing.
    User,
}

/// Reads and checks the whole file; the first violation ends it.
pub(super) fn read(
    owner: Owner,
    path: &str,
    text: &str,
) -> Result<Vec<ProviderEntry>, CatalogError> {
    let fail = |(at, problem)| CatalogError { file: path.to_owned(), at, problem };
    let root = parse(text).map_err(|problem| fail((String::new(), problem)))?;
    let root = Node { at: String::new(), value: &root };
    providers(owner, &root).map_err(fail)
}

fn parse(text: &str) -> Result<Value, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    parse_to_serde_value(&mend_surrogates(text), &options).map_err(|error| Problem::Syntax {
        reason: error.kind().to_string(),
        line: error.line_display(),
        column: error.column_display(),
    })
}

type Violation = (String, Problem);
type Checked<T> = Result<T, Violation>;

/// A value and its place in the file.
struct Node<'a> {
    at: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    fn wrong<T>(&self, expected: &'static str) -> Checked<T> {
        Err((self.at.clone(), Problem::Expected(expected)))
    }

    fn object(&self) -> Checked<&'a Map<String, Value>> {
        let object = self.value.as_object();
        object.map_or_else(|| self.wrong("an object"), Ok)
    }

    fn items(&self) -> Checked<Vec<Node<'a>>> {
        let Some(items) = self.value.as_array() else {
            return self.wrong("an array");
        };
        let node = |(index, value)| Node { at: format!("{}[{index}]", self.at), value };
        Ok(items.iter().enumerate().map(node).collect())
    }

    fn entries(&self) -> Checked<Vec<(&'a str, Node<'a>)>> {
        let entries = self.object()?.iter();
        Ok(entries.map(|(name, value)| (name.as_str(), self.below(name, value))).collect())
    }

    fn below(&self, name: &str, value: &'a Value) -> Node<'a> {
        let at = if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) };
        Node { at, value }
    }

    /// A field that is present and not `null`.
    fn field(&self, name: &str) -> Checked<Option<Node<'a>>> {
        let value = self.object()?.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| self.below(name, value)))
    }

    /// A field read by one of the readers below.
    fn get<T>(&self, name: &str, read: impl Fn(&Node<'a>) -> Checked<T>) -> Checked<Option<T>> {
        self.field(name)?.as_ref().map(read).transpose()
    }
}

fn text(node: &Node<'_>) -> Checked<String> {
    let text = node.value.as_str().filter(|text| !text.is_empty());
    text.map_or_else(|| node.wrong("a non-empty string"), |text| Ok(text.to_owned()))
}

fn flag(node: &Node<'_>) -> Checked<bool> {
    let flag = node.value.as_bool();
    flag.map_or_else(|| node.wrong("true or false"), Ok)
}

fn number(node: &Node<'_>) -> Checked<f64> {
    let number = node.value.as_f64();
    number.map_or_else(|| node.wrong("a number"), Ok)
}

fn count(node: &Node<'_>) -> Checked<u64> {
    let number = node.value.as_f64().filter(|number| *number > 0.0);
    number.map_or_else(|| node.wrong("a number above 0"), |number| Ok((number as u64).max(1)))
}

fn object(node: &Node<'_>) -> Checked<Map<String, Value>> {
    node.object().cloned()
}

fn texts(node: &Node<'_>) -> Checked<Vec<String>> {
    node.items()?.iter().map(text).collect()
}

fn headers(node: &Node<'_>) -> Checked<Vec<(String, String)>> {
    let entries = node.entries()?;
    let header = |(name, node): (&str, Node<'_>)| {
        let value = node.value.as_str();
        value
            .map_or_else(|| node.wrong("a string"), |value| Ok((name.to_owned(), value.to_owned())))
    };
    entries.into_iter().map(header).collect()
}

fn images(node: &Node<'_>) -> Checked<bool> {
    let mut images = false;
    for item in node.items()? {
        match item.value.as_str() {
            Some("text") => {}
            Some("image") => images = true,
            _ => return item.wrong("\"text\" or \"image\""),
        }
    }
    Ok(images)
}

fn thinking(node: &Node<'_>) -> Checked<Map<String, Value>> {
    let mut map = Map::new();
    for (level, node) in node.entries()? {
        if !node.value.is_string() && !node.value.is_null() {
            return node.wrong("a string or null");
        }
        if LEVELS.contains(&level) {
            map.insert(level.to_owned(), node.value.clone());
        }
    }
    Ok(map)
}

fn cost(node: &Node<'_>) -> Checked<Map<String, Value>> {
    for name in RATES {
        node.get(name, number)?;
    }
    let Some(tiers) = node.field("tiers")? else {
        return object(node);
    };
    for tier in tiers.items()? {
        for name in ["inputTokensAbove"].iter().chain(&RATES) {
            if tier.get(name, number)?.is_none() {
                return Err((format!("{}.{name}", tier.at), Problem::Missing));
            }
        }
    }
    object(node)
}

fn by_level(node: &Node<'_>) -> Checked<Map<String, Value>> {
    for (_, node) in node.entries()? {
        node.object()?;
    }
    object(node)
}

fn providers(owner: Owner, root: &Node<'_>) -> Checked<Vec<ProviderEntry>> {
    let Some(providers) = root.field("providers")? else {
        return Err(("providers".to_owned(), Problem::Missing));
    };
    let entries = providers.entries()?;
    entries.iter().map(|(id, node)| provider(owner, id, node)).collect()
}

fn provider(owner: Owner, id: &str, node: &Node<'_>) -> Checked<ProviderEntry> {
    const ONE_OF: &str = "baseUrl, headers, compat, modelOverrides, models, apiKey, authHeader";
    if id.is_empty() {
        return node.wrong("named by a non-empty id");
    }
    let oauth = node.field("oauth")?;
    if let Some(oauth) = oauth.filter(|oauth| oauth.value != "radius") {
        return oauth.wrong("\"radius\"");
    }
    let mut changes = false;
    for name in ONE_OF.split(", ") {
        changes |= node.field(name)?.is_some();
    }
    if !changes {
        return Err((node.at.clone(), Problem::ChangesNothing(ONE_OF)));
    }
    let overrides = |node: &Node<'_>| -> Checked<Vec<(String, Fields)>> {
        let entries = node.entries()?.into_iter();
        entries.map(|(id, node)| Ok((id.to_owned(), fields(&node)?))).collect()
    };
    let models =
        |node: &Node<'_>| -> Checked<Vec<ModelEntry>> { node.items()?.iter().map(model).collect() };
    let nothing = Value::Object(Map::new());
    let ours = match owner {
        Owner::Ours => node.below("", node.value),
        Owner::User => node.below("", &nothing),
    };
    Ok(ProviderEntry {
        id: id.to_owned(),
        name: node.get("name", text)?,
        base_url: node.get("baseUrl", text)?,
        api_key: node.get("apiKey", text)?,
        api: node.get("api", text)?,
        headers: node.get("headers", headers)?,
        auth_header: node.get("authHeader", flag)?,
        compat: node.get("compat", object)?,
        models: node.get("models", models)?.unwrap_or_default(),
        overrides: node.get("modelOverrides", overrides)?.unwrap_or_default(),
        env: ours.get("env", texts)?.unwrap_or_default(),
        bearer_env: ours.get("bearerEnv", texts)?.unwrap_or_default(),
        default_model: ours.get("default", text)?,
    })
}

fn model(node: &Node<'_>) -> Checked<ModelEntry> {
    let Some(id) = node.get("id", text)? else {
        return Err((format!("{}.id", node.at), Problem::Missing));
    };
    Ok(ModelEntry {
        id,
        at: node.at.clone(),
        api: node.get("api", text)?,
        base_url: node.get("baseUrl", text)?,
        fields: fields(node)?,
    })
}

fn fields(node: &Node<'_>) -> Checked<Fields> {
    Ok(Fields {
        name: node.get("name", text)?,
        reasoning: node.get("reasoning", flag)?,
        images: node.get("input", images)?,
        context_window: node.get("contextWindow", count)?,
        max_tokens: node.get("maxTokens", count)?,
        headers: node.get("headers", headers)?,
        thinking: node.get("thinkingLevelMap", thinking)?,
        cost: node.get("cost", cost)?,
        sampling: node.get("samplingParams", object)?,
        compat: node.get("compat", object)?,
        input_limits: node.get("inputLimits", object)?,
        prompt_cache: node.get("promptCache", object)?,
        sampling_by_level: node.get("samplingParamsByThinkingLevel", by_level)?,
    })
}
