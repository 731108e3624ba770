//! When the context was too long for the model (`host.md` 3.7).
//!
//! Judges texts and usages, and never decides what follows: that is
//! `step::recovery`.

use crew_base::message::{AssistantMessage, StopReason};
use crew_base::model::{ModelError, ModelErrorKind, ModelSpec};

/// Whether an error says that the context is too long (3.7.1, 3.7.2): trying
/// the same request again cannot help.
pub(crate) fn is_overflow(provider: &str, error: &ModelError) -> bool {
    if matches!(error.kind, ModelErrorKind::RateLimit | ModelErrorKind::Overloaded) {
        return false;
    }
    let text = error.message.to_lowercase();
    if mentions_limit(&text) || starts_as_unavailable(&text) {
        return false;
    }
    let bodyless = matches!(error.status, Some(400 | 413)) && text.contains("no body");
    starts_with_413(&text) || (provider == "cerebras" && bodyless) || matches_list(&counted(&text))
}

/// How an answer that did not fail shows that there was too little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// It is whole, but its prompt was larger than the window (3.7.3).
    Silent,
    /// The output was cut before the model's own limit, or had no room at all
    /// (3.7.3, 3.7.4).
    Cut,
}

/// The shortage an answer of this model shows, if any.
pub(crate) fn shortage(answer: &AssistantMessage, model: &ModelSpec) -> Option<Shortage> {
    let prompt = answer.usage.input.saturating_add(answer.usage.cache_read);
    let window = model.context_window;
    match answer.stop_reason {
        StopReason::Stop | StopReason::Deferred => {
            (window > 0 && prompt > window).then_some(Shortage::Silent)
        }
        StopReason::Length => {
            let filled = window > 0
                && answer.usage.output == 0
                && prompt.saturating_mul(100) >= window.saturating_mul(99);
            // A usage of nothing at all is unknown and shows nothing.
            let early = answer.usage.sum() > 0 && answer.usage.output < model.max_tokens;
            (filled || early).then_some(Shortage::Cut)
        }
        StopReason::ToolUse | StopReason::Error | StopReason::Aborted | StopReason::Pending => None,
    }
}

/// Whether a text is about too many requests rather than too many tokens.
fn mentions_limit(text: &str) -> bool {
    text.contains("too many requests") || crate::retry::contains_joined(text, "rate", "limit")
}

fn starts_as_unavailable(text: &str) -> bool {
    ["throttling", "service unavailable", "serviceunavailable"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// `413` as a whole word, or the words of an API error with that status.
fn starts_with_413(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("413") {
        return !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    }
    let named = text.split_once(" api error (413):");
    named.is_some_and(|(name, _)| {
        let is_word = |c: char| c.is_alphanumeric() || " -_.".contains(c);
        !name.is_empty() && name.chars().all(is_word)
    })
}

/// List O, on lower-case text whose numbers are `#`.
fn matches_list(text: &str) -> bool {
    const ANYWHERE: [&str; 27] = [
        "prompt too long",
        "prompt is too long",
        "prompt exceeds max length",
        "request_too_large",
        "input is too long for requested model",
        "exceeds the context window",
        "context window exceeded",
        "context window exceeds limit",
        "context_length_exceeded",
        "context length exceeded",
        "model_context_window_exceeded",
        "maximum context length is # tokens",
        "too large for model with # maximum context length",
        "exceeds the maximum allowed input length of #",
        "exceeds maximum allowed input length of #",
        "maximum prompt length is #",
        "range of input length should be",
        "input (# tokens) is longer than the model's context length (# tokens)",
        "exceeds the limit of #",
        "exceeded model token limit",
        "token limit exceeded",
        "too many tokens",
        "reduce the length of the messages",
        "exceeds the available context size",
        "greater than the context length",
        "prompt has # tokens, but the configured context size is #",
        "prompt has #, but the configured context size is #",
    ];
    ANYWHERE.iter().any(|words| text.contains(words))
        || exceeds_maximum_length(text)
        || text
            .split_once("input token count")
            .is_some_and(|(_, rest)| rest.contains("exceeds the maximum"))
}

/// `exceeds (the )(model's )maximum context length`, then ` of N` or ` (N)`.
fn exceeds_maximum_length(text: &str) -> bool {
    text.match_indices("exceeds ").any(|(at, words)| {
        let rest = &text[at + words.len()..];
        let rest = rest.strip_prefix("the ").unwrap_or(rest);
        let rest = rest.strip_prefix("model's ").unwrap_or(rest);
        let rest = rest.strip_prefix("maximum context length");
        rest.is_some_and(|rest| rest.starts_with(" of #") || rest.starts_with(" (#)"))
    })
}

/// Writes `#` for every number; commas between its digits belong to it.
fn counted(text: &str) -> String {
    let mut counted = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            counted.push(c);
            continue;
        }
        counted.push('#');
        loop {
            let mut ahead = chars.clone();
            match (ahead.next(), ahead.next()) {
                (Some(digit), _) if digit.is_ascii_digit() => {}
                (Some(','), Some(digit)) if digit.is_ascii_digit() => {}
                _ => break,
            }
            chars.next();
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{answer, model};
    use crew_base::message::Usage;

    fn error(status: Option<u16>, text: &str) -> ModelError {
        ModelError { status, ..ModelError::new(ModelErrorKind::Provider, text) }
    }

    #[test]
    fn every_text_of_the_list_is_an_overflow() {
        for text in [
            "prompt is too long: 200001 tokens > 200000 maximum",
            "Prompt too long; exceeded max context length by 3 tokens",
            "400: {\"error\":{\"code\":\"1261\",\"message\":\"Prompt exceeds max length\"}}",
            "request_too_large: Request exceeds the maximum size",
            "Input is too long for requested model.",
            "Your input exceeds the context window of this model",
            "litellm.ContextWindowExceededError: context window exceeded",
            "invalid params, context window exceeds limit (2013)",
            "context_length_exceeded",
            "The context length exceeded what is allowed",
            "model_context_window_exceeded",
            "The input exceeds the model's maximum context length of 131,072 tokens",
            "exceeds maximum context length (8192)",
            "This model's maximum context length is 8192 tokens. However",
            "request too large for model with 8192 maximum context length",
            "input length exceeds the maximum allowed input length of 32,768",
            "This model's maximum prompt length is 131072 but the request contains 5",
            "Range of input length should be [1, 30720]",
            "Input (5000 tokens) is longer than the model's context length (4096 tokens)",
            "The input token count (1196265) exceeds the maximum number of tokens allowed",
            "prompt token count of 99 exceeds the limit of 64000",
            "exceeded model token limit: 262144",
            "token limit exceeded",
            "too many tokens",
            "Please reduce the length of the messages or completion",
            "the request exceeds the available context size, try increasing it",
            "the number of tokens to keep is greater than the context length",
            "prompt has 12,000 tokens, but the configured context size is 8,192 tokens",
            "413: no body",
            "413 Request Entity Too Large",
            "openai API error (413): too big",
        ] {
            assert!(is_overflow("p", &error(None, text)), "{text}");
        }
    }

    #[test]
    fn limits_of_requests_and_other_errors_are_none() {
        // host.md 3.7.2, 11.47, 11.63.
        let check = |provider: &str, error: ModelError, expected: bool| {
            assert_eq!(is_overflow(provider, &error), expected, "{error:?}");
        };
        check("p", error(Some(429), "too many tokens, rate limit"), false);
        check("p", error(None, "too many requests: too many tokens"), false);
        check("p", error(None, "Throttling error: Too many tokens, please wait"), false);
        check("p", error(None, "Service unavailable: too many tokens"), false);
        check("p", error(None, "4130 is not a status"), false);
        check("p", error(None, "see 413 below"), false);
        check("p", error(None, "maximum context length is unknown"), false);
        check("p", error(None, "exceeds the maximum context length of your plan"), false);
        check("p", error(None, "exceeds the limit of your plan"), false);
        check("p", error(Some(400), "400: no body"), false);
        check("cerebras", error(Some(400), "400: no body"), true);
        check("cerebras", error(Some(400), "400: {\"error\":\"bad\"}"), false);
        let mut limited = error(Some(429), "too many tokens");
        limited.kind = ModelErrorKind::RateLimit;
        check("p", limited, false);
    }

    #[test]
    fn answers_show_a_shortage_by_their_usage() {
        // host.md 3.7.3, 3.7.4: a window of 1000, answers of at most 100.
        let check = |reason, input, cache_read, output, expected| {
            let mut message = answer("x", 0);
            message.stop_reason = reason;
            message.usage = Usage { input, cache_read, output, ..Usage::default() };
            let got = shortage(&message, &model(1000));
            assert_eq!(got, expected, "{reason:?} {input} {cache_read} {output}");
        };
        use StopReason as S;
        check(S::Stop, 900, 101, 5, Some(Shortage::Silent));
        check(S::Stop, 900, 100, 5, None);
        check(S::ToolUse, 2000, 0, 5, None);
        check(S::Length, 500, 0, 99, Some(Shortage::Cut));
        check(S::Length, 500, 0, 100, None);
        check(S::Length, 900, 90, 0, Some(Shortage::Cut));
        check(S::Length, 0, 0, 0, None);
        check(S::Error, 2000, 0, 0, None);
    }
}
