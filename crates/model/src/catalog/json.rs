//! The model object that faces and RPC clients see (`host.md` 7.3.10).
//!
//! Must never hold a secret: headers are left out when their value is not
//! literal or their name says that they authorise; addresses lose their user
//! part.

use crew_base::json::Raw;
use crew_base::model::{ModelSpec, Rates};
use serde_json::{Map, Number, Value, json};

/// The fields of `host.md` 1.5.6 that the model carries, plus `provider`,
/// `api` and `baseUrl`; unset optional ones are left out.
pub fn model_json(model: &ModelSpec) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("id", json!(model.id));
    put("name", json!(model.name));
    put("provider", json!(model.provider));
    put("api", json!(model.api_word));
    put("baseUrl", json!(without_user(&model.base_url)));
    put("reasoning", json!(model.reasoning));
    if !model.thinking_levels.is_empty() {
        put("thinkingLevelMap", json!(model.thinking_levels));
    }
    let images = model.images.then_some("image");
    put("input", json!(["text"].into_iter().chain(images).collect::<Vec<_>>()));
    put("cost", cost(&model.rates));
    put("contextWindow", json!(model.context_window));
    put("maxTokens", json!(model.max_tokens));
    if let Some(sampling) = &model.sampling_params {
        put("samplingParams", Raw::value(sampling));
    }
    let headers = public_headers(&model.headers);
    if !headers.is_empty() {
        put("headers", Value::Object(headers));
    }
    if let Some(compat) = &model.compat {
        put("compat", Raw::value(compat));
    }
    Value::Object(object)
}

fn cost(rates: &Rates) -> Value {
    let mut object = four(rates);
    if !rates.tiers.is_empty() {
        let tier = |(above, rates): &(u64, Rates)| {
            let mut tier = Map::new();
            tier.insert("inputTokensAbove".to_owned(), json!(above));
            tier.extend(four(rates));
            Value::Object(tier)
        };
        let tiers = rates.tiers.iter().map(tier).collect();
        object.insert("tiers".to_owned(), Value::Array(tiers));
    }
    Value::Object(object)
}

fn four(rates: &Rates) -> Map<String, Value> {
    let named = [
        ("input", rates.input),
        ("output", rates.output),
        ("cacheRead", rates.cache_read),
        ("cacheWrite", rates.cache_write),
    ];
    let entry = |(name, rate): (&str, f64)| (name.to_owned(), plain_number(rate));
    named.into_iter().map(entry).collect()
}

/// Whole numbers without a fraction (`host.md` 0.6).
fn plain_number(value: f64) -> Value {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        return json!(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn public_headers(headers: &[(String, String)]) -> Map<String, Value> {
    let public = headers.iter().filter(|(name, value)| {
        crate::value::Value::parse(value).is_literal() && !authorises(name)
    });
    public.map(|(name, value)| (name.clone(), json!(value))).collect()
}

/// Whether a header's name says that its value is a secret.
fn authorises(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["auth", "key", "token", "secret", "cookie", "password"];
    words.iter().any(|word| name.contains(word))
}

fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}
