//! JSON text that is carried but not understood: tool arguments, schemas,
//! details and other opaque data keep their key order and number texts
//! (`host.md` 0.1, 0.6).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One JSON value as compact text, shared and never reformatted.
#[derive(Clone)]
pub struct Raw(Arc<RawValue>);

impl Raw {
    /// Takes JSON text as it is; `None` when it is not exactly one JSON value.
    pub fn parse(text: &str) -> Option<Raw> {
        RawValue::from_string(text.trim().to_owned()).ok().map(|raw| Raw(Arc::from(raw)))
    }

    /// Writes a value compactly.
    pub fn of(value: &Value) -> Raw {
        Raw::serialised(value).expect("a value holds nothing JSON refuses")
    }

    /// Serialises a value; `None` when it holds what JSON cannot.
    pub fn serialised(value: &(impl Serialize + ?Sized)) -> Option<Raw> {
        serde_json::value::to_raw_value(value).ok().map(|raw| Raw(Arc::from(raw)))
    }

    /// The empty object `{}`.
    pub fn empty_object() -> Raw {
        Raw::of(&Value::Object(serde_json::Map::new()))
    }

    /// The same value without white space between its parts; strings and
    /// numbers keep their text (`host.md` 0.1, 0.6).
    pub fn compact(&self) -> Raw {
        let mut in_string = false;
        let mut escaped = false;
        let mut kept = String::with_capacity(self.text().len());
        for c in self.text().chars() {
            if in_string || !c.is_ascii_whitespace() {
                kept.push(c);
            }
            in_string ^= c == '"' && !escaped;
            escaped = in_string && c == '\\' && !escaped;
        }
        if kept.len() == self.text().len() {
            return self.clone();
        }
        Raw::parse(&kept).unwrap_or_else(|| self.clone())
    }

    /// The JSON text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The parsed value, lone surrogates mended (`host.md` 0.2).
    pub fn value(&self) -> Value {
        from_text(self.text()).unwrap_or(Value::Null)
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Raw) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Raw {}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        Ok(Raw(Arc::from(Box::<RawValue>::deserialize(deserializer)?)))
    }
}

/// Parses JSON text into a type, reading escapes of lone surrogates as U+FFFD
/// (`host.md` 0.2). Types that hold [`Raw`] must come from text, never from a
/// [`Value`].
pub fn from_text<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => match mend_surrogates(text) {
            Cow::Borrowed(_) => Err(error),
            Cow::Owned(mended) => serde_json::from_str(&mended),
        },
    }
}

/// Replaces `\uXXXX` escapes of unpaired surrogates by `\ufffd`.
pub fn mend_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let Some(unit) = unicode_escape(bytes, at) else {
            at += 2;
            continue;
        };
        let paired = (0xD800..0xDC00).contains(&unit)
            && unicode_escape(bytes, at + 6).is_some_and(|low| (0xDC00..0xE000).contains(&low));
        if paired {
            at += 12;
            continue;
        }
        if (0xD800..0xE000).contains(&unit) {
            let copy = mended.get_or_insert_with(|| bytes.to_vec());
            copy[at..at + 6].copy_from_slice(b"\\ufffd");
        }
        at += 6;
    }
    match mended {
        None => Cow::Borrowed(text),
        Some(copy) => String::from_utf8(copy).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

fn unicode_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if &escape[..2] != b"\\u" {
        return None;
    }
    let digits = std::str::from_utf8(&escape[2..]).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

/// Serialises a number without a fraction when it is whole (`host.md` 0.6).
pub fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_numbers_and_key_order_keep_their_text() {
        let text = r#"{"b":1.0,"a":1e5,"c":12345678901234567890123}"#;
        let raw: Raw = from_text(text).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn compacting_removes_white_space_outside_of_strings_only() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Raw::parse(text).unwrap().compact().text(), expected);
        };
        check("{\n \"a b\" : [1.0,\t\"\\\" \\\\\" , 1e5]\r\n}", r#"{"a b":[1.0,"\" \\",1e5]}"#);
        check("\" x \"", "\" x \"");
    }

    #[test]
    fn lone_surrogates_read_as_the_replacement_character() {
        let read = |text: &str| from_text::<String>(text).unwrap();
        assert_eq!(read(r#""\ud83d""#), "\u{fffd}");
        assert_eq!(read(r#""a\ude00b""#), "a\u{fffd}b");
        assert_eq!(read(r#""\ud83d\ude00""#), "😀");
        assert_eq!(read(r#""\\ud83d""#), "\\ud83d");
        assert_eq!(read(r#""\ud83d\ud83d\ude00""#), "\u{fffd}😀");
    }
}
