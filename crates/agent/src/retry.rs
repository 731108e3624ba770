//! Which failures are tried again, and when (`host.md` 3.6).

use crew_base::id::Ids;
use crew_base::model::{ModelError, ModelErrorKind};

/// The `retry` settings (`host.md` 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Whether anything is tried again.
    pub enabled: bool,
    /// Retries after the first attempt.
    pub retries_max: u32,
    /// First wait.
    pub base_delay_ms: u64,
    /// Longest wait.
    pub delay_ms_max: u64,
    /// How often one request is sent again before its failure counts
    /// (`retry.provider`, 3.6.9).
    pub resends_max: u32,
    /// Longest wait a server may ask for before such a resend; none for any.
    pub resend_delay_ms_max: Option<u64>,
}

impl Default for RetrySettings {
    fn default() -> RetrySettings {
        RetrySettings {
            enabled: true,
            retries_max: 3,
            base_delay_ms: 2000,
            delay_ms_max: 60_000,
            resends_max: 0,
            resend_delay_ms_max: Some(60_000),
        }
    }
}

/// What becomes of a request that failed before its answer began (3.6.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    /// It is sent again after this wait.
    After(u64),
    /// The server asks for more patience than the settings allow; the text
    /// names both.
    TooLong(String),
    /// Its failure counts.
    No,
}

impl RetrySettings {
    /// The announced wait before retry `attempt`, counted from 1 (3.6.2).
    pub fn delay_ms(&self, attempt: u32, error: &ModelError) -> u64 {
        let doubled = 1u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
        let backoff = self.base_delay_ms.saturating_mul(doubled);
        backoff.max(error.retry_after_ms.unwrap_or(0)).min(self.delay_ms_max)
    }

    /// Decides about resend number `sent`, counted from 0 (3.6.9).
    pub(crate) fn resend(&self, sent: u32, error: &ModelError, ids: &mut Ids) -> Resend {
        const FIRST_DELAY_MS: u64 = 500;
        const DELAY_MS_MAX: u64 = 8000;
        let passing = match error.status {
            Some(status) => matches!(status, 408 | 409 | 429) || status >= 500,
            None => error.kind == ModelErrorKind::Connection,
        };
        if sent >= self.resends_max || !passing || is_spent_quota(&error.message) {
            return Resend::No;
        }
        let Some(asked) = error.retry_after_ms else {
            let doubled = 1u64.checked_shl(sent).unwrap_or(u64::MAX);
            let delay = FIRST_DELAY_MS.saturating_mul(doubled).min(DELAY_MS_MAX);
            return Resend::After(delay - ids.below(delay / 4 + 1));
        };
        match self.resend_delay_ms_max.filter(|most| asked > *most) {
            None => Resend::After(jittered(asked, ids)),
            Some(most) => Resend::TooLong(format!(
                "{} (the server asks for a retry delay of {} s, more than the {} s of \
                 retry.provider.maxRetryDelayMs)",
                error.message,
                asked.div_ceil(1000),
                most.div_ceil(1000)
            )),
        }
    }
}

/// A wait, longer by a random part of up to a fifth (`product.md` P-14e).
pub fn jittered(delay_ms: u64, ids: &mut Ids) -> u64 {
    delay_ms + ids.below(delay_ms / 5 + 1)
}

/// Whether the same request may succeed later (3.6.1).
pub(crate) fn is_transient(error: &ModelError) -> bool {
    let text = error.message.to_lowercase();
    if is_spent_quota(&text) || crate::overflow::is_overflow("", error) {
        return false;
    }
    match error.kind {
        ModelErrorKind::Overloaded
        | ModelErrorKind::RateLimit
        | ModelErrorKind::Server
        | ModelErrorKind::Truncated
        | ModelErrorKind::Idle
        | ModelErrorKind::Connection
        | ModelErrorKind::MalformedCall
        | ModelErrorKind::Empty
            if error.status.is_none_or(|status| status < 400) =>
        {
            // Inside a stream the kind decides, whatever its status was.
            true
        }
        ModelErrorKind::Refusal
        | ModelErrorKind::ContentFilter
        | ModelErrorKind::Credential
        | ModelErrorKind::Configuration => false,
        ModelErrorKind::Overloaded
        | ModelErrorKind::RateLimit
        | ModelErrorKind::Server
        | ModelErrorKind::Truncated
        | ModelErrorKind::Idle
        | ModelErrorKind::Connection
        | ModelErrorKind::MalformedCall
        | ModelErrorKind::Empty
        | ModelErrorKind::InvalidStream
        | ModelErrorKind::Provider => match error.status {
            Some(408 | 409 | 425 | 429) => true,
            Some(status) if status >= 500 => true,
            Some(_) | None => is_transient_text(&text),
        },
    }
}

/// Whether a text tells of quota or billing (3.6.6): waiting does not help.
pub fn is_spent_quota(text: &str) -> bool {
    let text = text.to_lowercase();
    const SPENT: [&str; 8] = [
        "insufficient_quota",
        "quota exceeded",
        "out of budget",
        "billing",
        "monthly usage limit reached",
        "available balance",
        "\"code\":1308",
        "usage_limit_reached",
    ];
    SPENT.iter().any(|word| text.contains(word))
}

/// Texts of list R (3.6.5) that may stand anywhere.
const ANYWHERE: [&str; 58] = [
    "eai_again",
    "enotfound",
    "getaddrinfo",
    "overloaded",
    "server_busy",
    "servers are currently busy",
    "currently experiencing high demand",
    "model is at capacity",
    "too many requests",
    "resourceexhausted",
    "upstream_stream_read_error",
    "unable to forward upstream",
    "exceeded request buffer limit while retrying upstream",
    "connection reset by peer",
    "other side closed",
    "fetch failed",
    "socket hang up",
    "socket connection was closed",
    "reset before headers",
    "timeout",
    "time out",
    "timed out",
    "terminated",
    "ended without",
    "stream was interrupted",
    "stream ended before message_stop",
    "stream ended before a terminal response event",
    "stream disconnected before completion",
    "cut short after the reply had begun",
    "http2 request did not get a response",
    "http2 stream failed",
    "http/2 stream failed",
    "pending stream has been canceled",
    "retry delay",
    "you can retry your request",
    "try your request again",
    "please retry your request",
    "subscription_sharing_usage_unavailable",
    "subscription_sharing_user_unavailable",
    "service unavailable",
    "service is unavailable",
    "service temporarily unavailable",
    "service is temporarily unavailable",
    "service_unavailable",
    "provider returned error",
    "provider returned an error",
    "provider_returned_error",
    "upstream request failed",
    "upstream_request_failed",
    "websocket closed",
    "websocket.closed",
    "websocket error",
    "websocket.error",
    "websocket connection limit reached",
    "websocket.connection.limit.reached",
    "upstream connect",
    "upstream_connect",
    "upstreamconnect",
];

/// List R (3.6.5), on lower-case text.
fn is_transient_text(text: &str) -> bool {
    const JOINED: [(&str, &str); 9] = [
        ("rate", "limit"),
        ("server", "error"),
        ("internal", "error"),
        ("network", "error"),
        ("connection", "error"),
        ("connection", "lost"),
        ("connection", "closed"),
        ("connection", "refused"),
        ("service", "unavailable"),
    ];
    const ALONE: [&str; 12] = [
        "429",
        "500",
        "502",
        "503",
        "504",
        "520",
        "524",
        "epipe",
        "etimedout",
        "econnaborted",
        "econnrefused",
        "econnreset",
    ];
    ANYWHERE.iter().any(|word| text.contains(word))
        || JOINED.iter().any(|(first, second)| contains_joined(text, first, second))
        || ALONE.iter().any(|word| contains_alone(text, word))
        || (text.contains("request to ") && text.contains("failed, reason:"))
}

/// `first`, at most one character, `second`.
pub(crate) fn contains_joined(text: &str, first: &str, second: &str) -> bool {
    text.match_indices(first).any(|(at, _)| {
        let rest = &text[at + first.len()..];
        let after_one = rest.chars().next().map_or(rest, |c| &rest[c.len_utf8()..]);
        rest.starts_with(second) || after_one.starts_with(second)
    })
}

/// Not inside a longer word, number or identifier (`host.md` 11.45).
fn contains_alone(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(status: Option<u16>, message: &str) -> ModelError {
        ModelError { status, ..ModelError::new(ModelErrorKind::Provider, message) }
    }

    #[test]
    fn status_then_kind_then_text_decide() {
        let check = |error: ModelError, expected: bool| {
            assert_eq!(is_transient(&error), expected, "{error:?}");
        };
        check(provider(Some(503), "x"), true);
        check(provider(Some(425), "x"), true);
        check(provider(Some(400), "x"), false);
        check(provider(None, "socket hang up"), true);
        check(provider(None, "Rate-Limit hit"), true);
        // host.md 11.45: digits inside an identifier are no status.
        check(provider(None, "see req_5031 for more"), false);
        check(provider(None, "HTTP 503."), true);
        // host.md 11.46 and 11.47.
        check(provider(Some(429), "You exceeded your current quota: insufficient_quota"), false);
        check(provider(Some(429), "too many tokens, rate limit"), true);
        check(ModelError::new(ModelErrorKind::Truncated, "the stream ended without its end"), true);
        check(ModelError::new(ModelErrorKind::Refusal, "server error"), false);
        // host.md 3.6.1: the kind counts inside a stream, the status before one.
        let server = |status| ModelError {
            status,
            ..ModelError::new(ModelErrorKind::Server, "{\"type\":\"api_error\"}")
        };
        check(server(None), true);
        check(server(Some(200)), true);
        check(server(Some(400)), false);
        check(server(Some(503)), true);
        check(provider(Some(500), "prompt is too long"), false);
    }

    #[test]
    fn waits_double_up_to_the_bound_and_honour_the_server() {
        let settings = RetrySettings::default();
        let mut error = provider(Some(500), "x");
        let delays: Vec<_> = (1..=7).map(|n| settings.delay_ms(n, &error)).collect();
        assert_eq!(delays, [2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        error.retry_after_ms = Some(5000);
        assert_eq!(settings.delay_ms(1, &error), 5000);
        assert_eq!(settings.delay_ms(3, &error), 8000);
        let mut ids = Ids::new(1);
        for _ in 0..100 {
            let waited = jittered(1000, &mut ids);
            assert!((1000..=1200).contains(&waited));
        }
    }
}
