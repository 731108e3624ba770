//! JSON objects as ordered lists of fields, so that opaque values are sent in
//! the text they came in (`host.md` 0.1, 0.6).

use std::fmt;

use crew_base::json::{Raw, from_text};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::arguments::repair;

/// A JSON object whose values keep their text. Comes from JSON text only.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields {
    /// In order, each name once.
    pub(crate) list: Vec<(String, Raw)>,
    /// Which of them is only a place for a value that is written later.
    held: Option<usize>,
}

impl Fields {
    /// Reads an object; anything else gives no fields.
    pub(crate) fn of(raw: &Raw) -> Fields {
        from_text(raw.text()).unwrap_or_default()
    }

    /// The value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&Raw> {
        let found = self.list.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Sets a field; a new one goes to the end.
    pub(crate) fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let raw = Raw::serialised(value).expect("wire values hold nothing JSON refuses");
        self.put(name.to_owned(), raw);
    }

    /// Keeps a place for what [`Fields::text_with`] writes; a field of this name
    /// that is set later takes it.
    pub(crate) fn hold(&mut self, name: &str) {
        self.held = Some(self.list.len());
        self.list.push((name.to_owned(), Raw::empty_object()));
    }

    /// Takes all fields of another object, replacing those of the same name.
    pub(crate) fn merge(&mut self, other: Fields) {
        for (name, value) in other.list {
            self.put(name, value);
        }
    }

    /// The JSON text of the object.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("fields hold JSON already")
    }

    /// The JSON text of the object with a value in the place held for it. The
    /// value may be long: it is written once, straight into text that is made
    /// for `bytes` bytes.
    pub(crate) fn text_with(&self, value: &impl Serialize, bytes: usize) -> String {
        let known: usize = self.list.iter().map(|(name, raw)| name.len() + raw.text().len()).sum();
        let mut text = Vec::with_capacity(known + bytes + bytes / 16);
        let mut serializer = serde_json::Serializer::new(&mut text);
        let written = serializer.serialize_map(Some(self.list.len())).and_then(|mut map| {
            for (at, (name, raw)) in self.list.iter().enumerate() {
                if self.held == Some(at) {
                    map.serialize_entry(name, value)?;
                } else {
                    map.serialize_entry(name, raw)?;
                }
            }
            map.end()
        });
        written.expect("wire values hold nothing JSON refuses");
        String::from_utf8(text).expect("JSON is text")
    }

    fn put(&mut self, name: String, value: Raw) {
        match self.list.iter().position(|(known, _)| *known == name) {
            Some(at) => {
                self.list[at].1 = value;
                self.held = self.held.filter(|held| *held != at);
            }
            None => self.list.push((name, value)),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.list.len()))?;
        for (name, value) in &self.list {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, value)) = map.next_entry::<String, Raw>()? {
                    fields.put(name, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Parses the JSON of an event, repairing raw control characters and lone
/// surrogates if it must (`host.md` 9.2.8, 0.2).
pub(crate) fn parse_json(data: &str) -> Option<Value> {
    from_text(data).ok().or_else(|| from_text(&repair(data)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_number_texts() {
        let text = r#"{"z":1.0,"a":{"n":1e5},"m":12345678901234567890}"#;
        let mut fields = Fields::of(&Raw::parse(text).unwrap());
        assert_eq!(fields.text(), text);
        fields.set("a", &true);
        fields.merge(Fields::of(&Raw::parse(r#"{"new":null,"z":2}"#).unwrap()));
        assert_eq!(fields.text(), r#"{"z":2,"a":true,"m":12345678901234567890,"new":null}"#);
        assert_eq!(Fields::of(&Raw::parse("[1]").unwrap()), Fields::default());
    }

    #[test]
    fn a_held_place_is_filled_unless_configuration_took_it() {
        let mut fields = Fields::default();
        fields.set("a", &1);
        fields.hold("long");
        fields.set("z", &2);
        assert_eq!(fields.text_with(&["x"], 0), r#"{"a":1,"long":["x"],"z":2}"#);
        fields.merge(Fields::of(&Raw::parse(r#"{"long":{},"a":3}"#).unwrap()));
        assert_eq!(fields.text_with(&["x"], 0), r#"{"a":3,"long":{},"z":2}"#);
    }

    #[test]
    fn raw_control_characters_inside_strings_are_repaired() {
        let value = parse_json("{\"a\":\"x\ty\u{1}\"}").unwrap();
        assert_eq!(value["a"], "x\ty\u{1}");
        assert_eq!(parse_json("{\"a\":"), None);
    }
}
