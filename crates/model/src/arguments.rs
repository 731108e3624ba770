//! The arguments of a tool call, from the text a model wrote (`host.md`
//! 3.3.6). Must never guess: a cut text is an error, not a shorter call.

use std::borrow::Cow;

use crew_base::json::Raw;
use crew_base::text::{is_blank, units};

/// Arguments as they go into a [`crew_base::message::ToolCall`].
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// A JSON object; `{}` when `error` is set.
    pub value: Raw,
    /// Why the text was no object, with that text.
    pub error: Option<String>,
}

/// Parses the complete text of a call's arguments strictly, after repairing
/// raw control characters and invalid escapes inside strings. Blank text means
/// `{}`; an object inside a JSON string is taken out of it.
pub fn parse(text: &str) -> Arguments {
    if is_blank(text) {
        return good(Raw::empty_object());
    }
    match object(text) {
        Ok(value) => good(value),
        Err(reason) => Arguments {
            value: Raw::empty_object(),
            error: Some(format!(
                "the arguments are no JSON object: {reason}\nreceived ({} units): {text}",
                units(text)
            )),
        },
    }
}

/// Takes arguments that came as a JSON value instead of its text (C098): an
/// object as it is, a string as its text, `null` as `{}`.
pub fn of_raw(raw: &Raw) -> Arguments {
    match raw.text().as_bytes().first() {
        Some(b'{') => good(raw.clone()),
        Some(b'"') => parse(raw.value().as_str().unwrap_or_default()),
        Some(b'n') => good(Raw::empty_object()),
        _ => parse(raw.text()),
    }
}

fn good(value: Raw) -> Arguments {
    // One line, so that a session file stays one entry a line.
    Arguments { value: value.compact(), error: None }
}

fn object(text: &str) -> Result<Raw, String> {
    let text = text.trim();
    let parsed = serde_json::from_str::<Raw>(text);
    let raw = match parsed {
        Ok(raw) => raw,
        Err(error) => serde_json::from_str(&repair(text)).map_err(|_| error.to_string())?,
    };
    if raw.text().starts_with('{') {
        return Ok(raw);
    }
    // Some servers encode the text twice.
    let inner = raw.value();
    let inner = inner.as_str().and_then(Raw::parse);
    let inner = inner.filter(|inner| inner.text().starts_with('{'));
    inner.ok_or_else(|| "another kind of JSON value".to_owned())
}

/// Escapes raw control characters and doubles the backslash of invalid escapes
/// inside strings; text outside of strings stays.
pub(crate) fn repair(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut mended: Option<Vec<u8>> = None;
    let mut in_string = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let mut take = 1;
        let replacement = match byte {
            b'"' => {
                in_string = !in_string;
                None
            }
            b'\\' if in_string && is_escape(&bytes[at..]) => {
                take = 2;
                None
            }
            b'\\' if in_string => Some(br"\\".to_vec()),
            0..0x20 if in_string => Some(format!("\\u{byte:04x}").into_bytes()),
            _ => None,
        };
        if let Some(replacement) = replacement {
            let copy = mended.get_or_insert_with(|| bytes[..at].to_vec());
            copy.extend(replacement);
        } else if let Some(copy) = &mut mended {
            copy.extend_from_slice(&bytes[at..at + take]);
        }
        at += take;
    }
    match mended {
        None => Cow::Borrowed(text),
        Some(copy) => String::from_utf8(copy).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// Whether a valid escape begins here. What follows `\u` is judged whole.
fn is_escape(bytes: &[u8]) -> bool {
    match bytes.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
        Some(b'u') => {
            bytes.get(2..6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let got = parse(text);
        assert_eq!((got.value.text(), got.error), (expected, None), "{text:?}");
    }

    #[test]
    fn good_and_mendable_texts_become_objects() {
        // host.md 3.3.6.
        check("", "{}");
        check(" \n", "{}");
        check(r#" {"b":1.0,"a":[2e3]} "#, r#"{"b":1.0,"a":[2e3]}"#);
        check("{\"a\":\"x\ny\"}", r#"{"a":"x\u000ay"}"#);
        check("{\"a\":\"x\u{0}\"}", r#"{"a":"x\u0000"}"#);
        check(r#"{"re":"\d+\.rs"}"#, r#"{"re":"\\d+\\.rs"}"#);
        check(r#"{"p":"C:\user"}"#, r#"{"p":"C:\\user"}"#);
        check(r#"{"a":"é\"🚀\\"}"#, r#"{"a":"é\"🚀\\"}"#);
        check(r#""{\"a\":1}""#, r#"{"a":1}"#);
    }

    #[test]
    fn what_is_no_object_is_kept_as_an_error_with_its_text() {
        let check = |text: &str| {
            let got = parse(text);
            assert_eq!(got.value.text(), "{}");
            let error = got.error.unwrap();
            assert!(error.ends_with(text), "{error}");
        };
        check(r#"{"command":"rm -r build"#);
        check(r#"{"a":1}{"b":2}"#);
        check("[1]");
        check("null");
        check(r#"{"a":"\"#);
    }

    #[test]
    fn an_object_in_place_of_its_text_is_taken() {
        // C098.
        let check = |text: &str, expected: &str| {
            let got = of_raw(&Raw::parse(text).unwrap());
            assert_eq!((got.value.text(), got.error), (expected, None));
        };
        check(r#"{"a":1.0}"#, r#"{"a":1.0}"#);
        check(r#""{\"a\":1}""#, r#"{"a":1}"#);
        check("null", "{}");
        assert!(of_raw(&Raw::parse("[1]").unwrap()).error.is_some());
    }
}
