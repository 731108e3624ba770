//! Edits of JSON as text: single values are replaced, added or removed and all
//! other bytes stay as they are (`host.md` 0.3, 0.6).
//!
//! Works on one object at a time; never reformats what it was not asked to.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One member of an object: its key and where its value stands.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) value: Range<usize>,
}

/// Lists the members of an object in order; an error when the text is none.
pub(crate) fn fields(text: &str) -> serde_json::Result<Vec<Field>> {
    struct Members(usize);
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<Field>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Field>, A::Error> {
            let mut fields = Vec::new();
            while let Some((key, raw)) = map.next_entry::<String, &'de RawValue>()? {
                // The raw value borrows from the text, so its address gives its place.
                let start = raw.get().as_ptr().addr() - self.0;
                let value = start..start + raw.get().len();
                fields.push(Field { key, value });
            }
            Ok(fields)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fields = deserializer.deserialize_map(Members(text.as_ptr().addr()))?;
    deserializer.end()?;
    Ok(fields)
}

/// Finds the value of a key; the last one when the key repeats.
pub(crate) fn find<'a>(fields: &'a [Field], key: &str) -> Option<&'a Range<usize>> {
    let found = fields.iter().rev().find(|field| field.key == key);
    found.map(|field| &field.value)
}

/// Replaces the value of a key, or adds the member at the end.
pub(crate) fn set(text: &str, key: &str, value: &str) -> serde_json::Result<String> {
    let fields = fields(text)?;
    if let Some(range) = find(&fields, key) {
        return Ok(splice(text, range.clone(), value));
    }
    let end = text.rfind('}').unwrap_or(text.len());
    let comma = if fields.is_empty() { "" } else { "," };
    let key = serde_json::Value::from(key);
    Ok(splice(text, end..end, &format!("{comma}{key}:{value}")))
}

/// Replaces the value at a path of keys, adding objects on the way; `None`
/// removes the member. A value on the way that is no object is replaced.
pub(crate) fn set_path(
    text: &str,
    path: &[String],
    value: Option<&str>,
) -> serde_json::Result<String> {
    let Some((key, rest)) = path.split_first() else {
        return Ok(text.to_owned());
    };
    if rest.is_empty() {
        return match value {
            Some(value) => set(text, key, value),
            None => remove(text, key),
        };
    }
    let members = fields(text)?;
    let inner = match find(&members, key) {
        Some(range) if text[range.clone()].starts_with('{') => &text[range.clone()],
        _ if value.is_none() => return Ok(text.to_owned()),
        _ => "{}",
    };
    set(text, key, &set_path(inner, rest, value)?)
}

fn remove(text: &str, key: &str) -> serde_json::Result<String> {
    let kept: Vec<String> = fields(text)?
        .into_iter()
        .filter(|field| field.key != key)
        .map(|field| {
            let name = serde_json::Value::from(field.key);
            format!("{name}:{}", &text[field.value])
        })
        .collect();
    Ok(format!("{{{}}}", kept.join(",")))
}

/// Gives a member another key and another value, in its old place.
pub(crate) fn rename(text: &str, old: &str, new: &str, value: &str) -> serde_json::Result<String> {
    let members: Vec<String> = fields(text)?
        .into_iter()
        .map(|field| {
            let is_old = field.key == old;
            let key = if is_old { new } else { &field.key };
            let value = if is_old { value } else { &text[field.value] };
            format!("{}:{value}", serde_json::Value::from(key))
        })
        .collect();
    Ok(format!("{{{}}}", members.join(",")))
}

/// Replaces one range of a text.
pub(crate) fn splice(text: &str, range: Range<usize>, value: &str) -> String {
    [&text[..range.start], value, &text[range.end..]].concat()
}

/// Lays valid JSON out with two-space indentation and no final line feed
/// (`host.md` 1.3.3); texts of numbers and strings stay as they are.
pub(crate) fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let mut chars = text.char_indices().peekable();
    let mut fresh = false; // directly after an opening bracket
    while let Some((at, c)) = chars.next() {
        if c.is_ascii_whitespace() {
            continue;
        }
        if fresh && !matches!(c, '}' | ']') {
            line(&mut out, depth);
        }
        match c {
            '{' | '[' => {
                out.push(c);
                depth += 1;
                fresh = true;
                continue;
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !fresh {
                    line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                let mut end = at + 1;
                while let Some((i, c)) = chars.next() {
                    end = i + c.len_utf8();
                    if c == '\\' {
                        chars.next();
                    } else if c == '"' {
                        break;
                    }
                }
                out.push_str(&text[at..end]);
            }
            _ => out.push(c),
        }
        fresh = false;
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_value_changes() {
        let text = r#"{"a":1.50,"b" : {"c":[1e5]},"d":null}"#;
        let check = |path: &[&str], value: Option<&str>, expected: &str| {
            let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
            assert_eq!(set_path(text, &path, value).unwrap(), expected);
        };
        check(&["d"], Some("2"), r#"{"a":1.50,"b" : {"c":[1e5]},"d":2}"#);
        check(&["b", "x"], Some("2"), r#"{"a":1.50,"b" : {"c":[1e5],"x":2},"d":null}"#);
        check(&["a", "x"], Some("2"), r#"{"a":{"x":2},"b" : {"c":[1e5]},"d":null}"#);
        check(&["n", "m"], Some("true"), r#"{"a":1.50,"b" : {"c":[1e5]},"d":null,"n":{"m":true}}"#);
        check(&["b"], None, r#"{"a":1.50,"d":null}"#);
        check(&["n", "m"], None, text);
        assert_eq!(set("{}", "a\"", "1").unwrap(), r#"{"a\"":1}"#);
        assert!(set("[1]", "a", "1").is_err());
    }

    #[test]
    fn pretty_text_has_two_spaces_and_keeps_its_scalars() {
        let check = |text: &str, expected: &str| assert_eq!(pretty(text), expected);
        check("{}", "{}");
        check(
            r#"{"a":[1.50, {}],"b":{"c":"x: {\"y\",\\"}, "e":[ ]}"#,
            "{\n  \"a\": [\n    1.50,\n    {}\n  ],\n  \"b\": {\n    \"c\": \"x: {\\\"y\\\",\\\\\"\n  },\n  \"e\": []\n}",
        );
    }
}
