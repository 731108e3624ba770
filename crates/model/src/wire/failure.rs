//! Errors of providers, over HTTP and inside streams, as [`ModelError`]s.

use crew_base::limits::ERROR_BODY_UNITS_MAX;
use crew_base::model::{Api, ModelError, ModelErrorKind, ModelSpec};
use crew_base::text::{cut_units, is_blank};
use serde_json::Value;

use super::{parse_json, retry_after_ms};

/// Reads an HTTP error response (`host.md` 9.1.9). The kind comes from the
/// error type in a JSON body, else from the status; the message is
/// `<status>: <body>`, for the Responses API with the provider's name before.
pub fn http_error(
    model: &ModelSpec,
    status: u16,
    headers: &dyn Fn(&str) -> Option<String>,
    body: &str,
) -> ModelError {
    let shown = if is_blank(body) { "no body".to_owned() } else { cut_message(body.trim()) };
    let message = match model.api {
        Api::OpenaiResponses => {
            format!("{} API error ({status}): {shown}", model.provider)
        }
        Api::AnthropicMessages
        | Api::OpenaiCompletions
        | Api::GoogleGenerativeAi
        | Api::Demo
        | Api::Unsupported => format!("{status}: {shown}"),
    };
    let named = parse_json(body).and_then(|value| named_kind(&value));
    ModelError {
        status: Some(status),
        retry_after_ms: retry_after_ms(headers, None),
        ..ModelError::new(named.unwrap_or_else(|| status_kind(status)), message)
    }
}

/// The failure an event or a body tells with its `error` member, in any of the
/// shapes that providers and relays use. `None` without such a member.
pub(crate) fn error_member(value: &Value) -> Option<ModelError> {
    let error = value.get("error").filter(|error| is_telling(error))?;
    let kind = named_kind(value).unwrap_or(ModelErrorKind::Provider);
    let word = error_words(error).next();
    let said = error.get("message").and_then(Value::as_str);
    let said = said.or_else(|| error.as_str()).map(str::to_owned);
    let said = said.unwrap_or_else(|| error.to_string());
    let message = match word {
        Some(word) if !said.contains(word) => format!("{word}: {said}"),
        Some(_) | None => said,
    };
    Some(ModelError::new(kind, cut_message(&message)))
}

/// The failure of a stream that stopped before `missing`. The wording is of
/// the retryable kind (`host.md` 3.6.7, 9.1.10).
pub(crate) fn truncated(missing: &str) -> ModelError {
    let message = format!("The response ended without {missing}.");
    ModelError::new(ModelErrorKind::Truncated, message)
}

/// Cuts a provider's text to 4000 units, with a note when something is lost.
pub(crate) fn cut_message(text: &str) -> String {
    let kept = cut_units(text, ERROR_BODY_UNITS_MAX);
    if kept.len() == text.len() {
        return kept.to_owned();
    }
    format!("{kept} … (cut, {} bytes in all)", text.len())
}

fn is_telling(error: &Value) -> bool {
    let empty_object = error.as_object().is_some_and(serde_json::Map::is_empty);
    !(error.is_null() || error.as_bool().is_some() || error.as_str() == Some("") || empty_object)
}

/// The kind by the words and the code of an error body.
fn named_kind(value: &Value) -> Option<ModelErrorKind> {
    let error = value.get("error").filter(|error| is_telling(error))?;
    let code = error.get("code").or_else(|| error.get("status"));
    let code = code.and_then(Value::as_u64).and_then(|c| u16::try_from(c).ok());
    let by_word = error_words(error).find_map(word_kind);
    by_word.or_else(|| {
        let kind = status_kind(code?);
        (kind != ModelErrorKind::Provider).then_some(kind)
    })
}

/// Type, textual code and textual status of an error, in this order.
fn error_words(error: &Value) -> impl Iterator<Item = &str> {
    let names = ["type", "code", "status"].into_iter();
    names.filter_map(|name| error.get(name).and_then(Value::as_str))
}

fn word_kind(word: &str) -> Option<ModelErrorKind> {
    let word = word.to_ascii_lowercase();
    let kind = match word.as_str() {
        "overloaded_error" | "overloaded" | "server_overloaded" | "engine_overloaded"
        | "unavailable" | "server_busy" => ModelErrorKind::Overloaded,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "rate_limited"
        | "too_many_requests"
        | "resource_exhausted" => ModelErrorKind::RateLimit,
        "api_error"
        | "server_error"
        | "internal_error"
        | "internal_server_error"
        | "internal"
        | "timeout_error"
        | "deadline_exceeded"
        | "upstream_error" => ModelErrorKind::Server,
        "authentication_error"
        | "permission_error"
        | "invalid_api_key"
        | "unauthenticated"
        | "permission_denied" => ModelErrorKind::Credential,
        "content_filter" | "content_policy_violation" => ModelErrorKind::ContentFilter,
        _ => return None,
    };
    Some(kind)
}

fn status_kind(status: u16) -> ModelErrorKind {
    match status {
        300..=399 => ModelErrorKind::Configuration,
        401 | 403 => ModelErrorKind::Credential,
        429 => ModelErrorKind::RateLimit,
        503 | 529 => ModelErrorKind::Overloaded,
        500.. => ModelErrorKind::Server,
        _ => ModelErrorKind::Provider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::tests::spec;

    fn error(api: Api, status: u16, body: &str) -> ModelError {
        http_error(&spec(api), status, &|_| None, body)
    }

    #[test]
    fn the_error_type_of_the_body_wins_over_the_status() {
        // host.md 9.1.9, 3.6.1; C088, C089.
        let check = |status, body: &str, kind, message: &str| {
            let got = error(Api::AnthropicMessages, status, body);
            assert_eq!((got.kind, got.status), (kind, Some(status)), "{body}");
            assert_eq!(got.message, message);
        };
        use ModelErrorKind as K;
        check(529, "", K::Overloaded, "529: no body");
        check(429, "slow", K::RateLimit, "429: slow");
        check(401, "no", K::Credential, "401: no");
        check(302, "", K::Configuration, "302: no body");
        check(502, "<html>", K::Server, "502: <html>");
        check(400, "bad", K::Provider, "400: bad");
        let body = r#"{"error":{"type":"overloaded_error","message":"m"}}"#;
        check(500, body, K::Overloaded, &format!("500: {body}"));
        let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#;
        check(400, body, K::RateLimit, &format!("400: {body}"));
        let body = r#"{"error":{"type":"insufficient_quota"}}"#;
        check(429, body, K::RateLimit, &format!("429: {body}"));
        let got = error(Api::OpenaiResponses, 500, "boom");
        assert_eq!(got.message, "fake API error (500): boom");
    }

    #[test]
    fn a_long_body_is_cut_with_a_note() {
        let got = error(Api::OpenaiCompletions, 400, &"ä".repeat(5000));
        assert!(got.message.ends_with("… (cut, 10000 bytes in all)"));
        assert_eq!(got.message.matches('ä').count(), 4000);
    }

    #[test]
    fn an_error_member_is_found_in_every_shape() {
        let check = |text: &str, expected: Option<(ModelErrorKind, &str)>| {
            let got = error_member(&serde_json::from_str(text).unwrap());
            let got = got.map(|error| (error.kind, error.message));
            assert_eq!(got, expected.map(|(k, m)| (k, m.to_owned())), "{text}");
        };
        use ModelErrorKind as K;
        check(r#"{"error":null}"#, None);
        check(r#"{"error":{}}"#, None);
        check(r#"{"id":"x"}"#, None);
        check(r#"{"error":"plain"}"#, Some((K::Provider, "plain")));
        check(
            r#"{"error":{"type":"api_error","message":"inside"}}"#,
            Some((K::Server, "api_error: inside")),
        );
        check(r#"{"error":{"code":502,"message":"relay"}}"#, Some((K::Server, "relay")));
        check(r#"{"error":{"detail":1}}"#, Some((K::Provider, r#"{"detail":1}"#)));
    }
}
