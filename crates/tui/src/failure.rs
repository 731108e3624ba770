//! What a failed request is called (`terminal.md` TERM-51): who, the status and
//! the provider's own words. Causes are never guessed; raw JSON is not shown.

use serde_json::Value;

/// Characters of a provider's own words.
const WORDS_MAX: usize = 200;

/// A failure in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// `overloaded (529)`, without who.
    pub short: String,
    /// A sentence that begins with who.
    pub what: String,
    /// What can be done.
    pub next: Option<String>,
}

/// Words for the error text of an answer.
pub fn words(provider: &str, message: &str) -> Words {
    let who = if provider.is_empty() { "the provider" } else { provider };
    let (status, rest) = status(message);
    let said = said(rest);
    let code = status.map(|status| status.to_string());
    let told = |word: &str| match &code {
        Some(code) => format!("{word} ({code})"),
        None => word.to_owned(),
    };
    let with_words = |code: &Option<String>| match (code, said.is_empty()) {
        (Some(code), false) => format!(" ({code}, {said})"),
        (Some(code), true) => format!(" ({code})"),
        (None, false) => format!(" ({said})"),
        (None, true) => String::new(),
    };
    match status {
        Some(401 | 403) => Words {
            short: told("key refused"),
            what: format!("{who} refused the key{}. Nothing was sent again.", with_words(&code)),
            next: Some(
                "/model picks another model · auth.json is read again on /reload, \
                 the environment only at start"
                    .to_owned(),
            ),
        },
        Some(429) => Words {
            short: told("rate limit"),
            what: format!("{who} limits requests{}.", with_words(&code)),
            next: Some("try again later, or /model picks another model".to_owned()),
        },
        Some(503 | 529) => Words {
            short: told("overloaded"),
            what: format!("{who} is overloaded{}.", with_words(&code)),
            next: Some("try again later, or /model picks another model".to_owned()),
        },
        Some(500..) => Words {
            short: told("failed inside"),
            what: format!("{who} failed inside{}.", with_words(&code)),
            next: Some("try again, or /model picks another model".to_owned()),
        },
        Some(_) => Words {
            short: told("refused"),
            what: format!("{who} refused the request{}.", with_words(&code)),
            next: None,
        },
        None => {
            let said = if said.is_empty() { "failed without a word".to_owned() } else { said };
            Words { short: said.clone(), what: format!("{who}: {said}"), next: None }
        }
    }
}

/// The text of a subagent's error in words: a provider's answer at its start
/// without its JSON, the rest as it is.
pub fn in_words(error: &str) -> String {
    let (first, rest) = error.split_once('\n').unwrap_or((error, ""));
    if status(first).0.is_none() {
        return error.to_owned();
    }
    let what = words("", first).what;
    if rest.is_empty() { what } else { format!("{what}\n{rest}") }
}

/// The HTTP status that a message begins with, and the rest.
fn status(message: &str) -> (Option<u16>, &str) {
    if let Some((head, rest)) = message.split_once(':')
        && head.len() == 3
        && let Ok(status) = head.parse()
    {
        return (Some(status), rest.trim());
    }
    if let Some((head, rest)) = message.split_once("API error (")
        && head.len() < 60
        && let Some((code, rest)) = rest.split_once(')')
        && let Ok(status) = code.parse()
    {
        return (Some(status), rest.trim_start_matches(':').trim());
    }
    (None, message.trim())
}

/// The message inside a JSON body, else the text itself.
fn said(text: &str) -> String {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let message = value.as_ref().and_then(|value| {
        let error = value.get("error").unwrap_or(value);
        let message = error.get("message").or_else(|| error.get("detail"));
        message.and_then(Value::as_str).or_else(|| error.as_str())
    });
    let text = match (&value, message) {
        (_, Some(message)) => message,
        (Some(Value::Object(_) | Value::Array(_)), None) => "",
        (_, None) if text == "no body" => "",
        (_, None) => text,
    };
    let clean = crew_base::text::sanitise_inline(text);
    crew_base::text::excerpt(&clean, WORDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    // TERM-51: raw JSON stays in the transcript view.
    #[test]
    fn errors_of_subagents_are_told_in_words() {
        let check = |error: &str, expected: &str| assert_eq!(in_words(error), expected);
        check(
            "401: {\"error\":{\"message\":\"bad key\"}}\nIts last text was: x",
            "the provider refused the key (401, bad key). Nothing was sent again.\nIts last text was: x",
        );
        check("its session is no longer there", "its session is no longer there");
        check("first\nsecond", "first\nsecond");
    }

    #[test]
    fn failures_name_who_status_and_words() {
        let check = |message: &str, short: &str, what: &str| {
            let words = words("fake", message);
            assert_eq!((words.short.as_str(), words.what.as_str()), (short, what));
        };
        check("529: no body", "overloaded (529)", "fake is overloaded (529).");
        check(
            r#"401: {"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            "key refused (401)",
            "fake refused the key (401, invalid x-api-key). Nothing was sent again.",
        );
        check("429: slow", "rate limit (429)", "fake limits requests (429, slow).");
        check(
            "fake API error (500): boom",
            "failed inside (500)",
            "fake failed inside (500, boom).",
        );
        check("400: {\"x\":1}", "refused (400)", "fake refused the request (400).");
        check("connection reset", "connection reset", "fake: connection reset");
        check(
            "The response ended without x.",
            "The response ended without x.",
            "fake: The response ended without x.",
        );
    }
}
