//! The headers of a request, by rising precedence (`host.md` 1.5.10): who we
//! are, the wire format, the credential, configuration.

use crew_base::model::{Api, ModelError, ModelErrorKind, ModelSpec};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::HttpConfig;
use crate::wire::Credential;

/// All headers; an unusable one fails and is named, never shown.
pub(super) fn all(
    config: &HttpConfig,
    model: &ModelSpec,
    credential: &Credential,
    format: &[(String, String)],
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    set(&mut headers, "user-agent", &config.user_agent)?;
    if let Some(attribution) = config.attribution.as_ref().filter(|_| is_openrouter(model)) {
        set(&mut headers, "http-referer", &attribution.referer)?;
        set(&mut headers, "x-openrouter-title", &attribution.title)?;
    }
    set(&mut headers, "content-type", "application/json")?;
    for (name, value) in format {
        set(&mut headers, name, value)?;
    }
    if let Some(key) = credential.key() {
        authorise(&mut headers, model, credential, key)?;
    }
    for (name, value) in &credential.headers {
        set(&mut headers, name, value)?;
    }
    Ok(headers)
}

fn authorise(
    headers: &mut HeaderMap,
    model: &ModelSpec,
    credential: &Credential,
    key: &str,
) -> Result<(), ModelError> {
    let own = match model.api {
        Api::AnthropicMessages => Some("x-api-key"),
        Api::GoogleGenerativeAi => Some("x-goog-api-key"),
        Api::OpenaiCompletions | Api::OpenaiResponses | Api::Demo | Api::Unsupported => None,
    };
    let own = own.filter(|_| !credential.bearer);
    if let Some(name) = own {
        set(headers, name, key)?;
    }
    if own.is_none() || model.auth_header {
        set(headers, "authorization", &format!("Bearer {key}"))?;
    }
    Ok(())
}

fn set(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ModelError> {
    let unusable = || {
        let message = format!("header `{name}` cannot be sent: it holds invalid characters");
        ModelError::new(ModelErrorKind::Configuration, message)
    };
    let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unusable())?;
    value.set_sensitive(true);
    headers.insert(known, value);
    Ok(())
}

fn is_openrouter(model: &ModelSpec) -> bool {
    let host = model.base_url.split("://").nth(1).unwrap_or_default();
    let host = host.split(['/', ':']).next().unwrap_or_default();
    model.provider == "openrouter" || host == "openrouter.ai"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Attribution;
    use crate::prepare::tests::spec;

    fn check(model: &ModelSpec, credential: &Credential, expected: &[(&str, &str)]) {
        let config = HttpConfig {
            user_agent: "crew/1 (linux; x86_64)".into(),
            attribution: Some(Attribution {
                referer: "https://crew.example".into(),
                title: "crew".into(),
            }),
            ..HttpConfig::default()
        };
        let format = [("anthropic-beta".to_owned(), "one".to_owned())];
        let got = all(&config, model, credential, &format).unwrap();
        let got: Vec<_> = got.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        let common =
            [("user-agent", "crew/1 (linux; x86_64)"), ("content-type", "application/json")];
        let expected: Vec<_> = common.iter().chain(expected).copied().collect();
        for pair in &expected {
            assert!(got.contains(pair), "{pair:?} in {got:?}");
        }
        assert_eq!(got.len(), expected.len(), "{got:?}");
    }

    fn key(bearer: bool, headers: &[(&str, &str)]) -> Credential {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Credential::new(Some("sk".into()), bearer, headers.collect())
    }

    #[test]
    fn each_api_gets_its_key_where_it_looks_for_it() {
        // host.md 9.2, 9.3, 9.5, 1.4, 1.5.10.
        let beta = ("anthropic-beta", "one");
        let mut model = spec(Api::AnthropicMessages);
        check(&model, &key(false, &[]), &[beta, ("x-api-key", "sk")]);
        check(&model, &key(true, &[]), &[beta, ("authorization", "Bearer sk")]);
        model.auth_header = true;
        check(
            &model,
            &key(false, &[("Anthropic-Beta", "two"), ("X-Api-Key", "other")]),
            &[("anthropic-beta", "two"), ("x-api-key", "other"), ("authorization", "Bearer sk")],
        );
        let model = spec(Api::GoogleGenerativeAi);
        check(&model, &key(false, &[]), &[beta, ("x-goog-api-key", "sk")]);
        let model = spec(Api::OpenaiResponses);
        check(&model, &key(false, &[]), &[beta, ("authorization", "Bearer sk")]);
    }

    #[test]
    fn only_openrouter_learns_who_asks() {
        // host.md 9.1.12.
        let mut model = spec(Api::OpenaiCompletions);
        model.base_url = "https://openrouter.ai/api/v1".into();
        check(
            &model,
            &key(false, &[]),
            &[
                ("anthropic-beta", "one"),
                ("authorization", "Bearer sk"),
                ("http-referer", "https://crew.example"),
                ("x-openrouter-title", "crew"),
            ],
        );
    }

    #[test]
    fn an_unusable_header_is_named_but_not_shown() {
        let credential = key(false, &[("x-team", "secret\nvalue")]);
        let model = spec(Api::OpenaiCompletions);
        let error = all(&HttpConfig::default(), &model, &credential, &[]).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.message.contains("x-team") && !error.message.contains("secret"));
    }
}
