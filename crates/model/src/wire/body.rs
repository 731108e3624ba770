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
pub(crate) struct Fields(pub(crate) Vec<(String, Raw)>);

impl Fields {
    /// Reads an object; anything else gives no fields.
    pub(crate) fn of(raw: &Raw) -> Fields {
        from_text(raw.text()).unwrap_or_default()
    }

    /// The value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&Raw> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Sets a field; a new one goes to the end.
    pub(crate) fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let text = serde_json::to_string(value).expect("wire values hold nothing JSON refuses");
        let raw = Raw::parse(&text).expect("serialised text is JSON");
        self.put(name.to_owned(), raw);
    }

    /// Takes all fields of another object, replacing those of the same name.
    pub(crate) fn merge(&mut self, other: Fields) {
        for (name, value) in other.0 {
            self.put(name, value);
        }
    }

    /// The JSON text of the object.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("fields hold JSON already")
    }

    fn put(&mut self, name: String, value: Raw) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
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
    fn raw_control_characters_inside_strings_are_repaired() {
        let value = parse_json("{\"a\":\"x\ty\u{1}\"}").unwrap();
        assert_eq!(value["a"], "x\ty\u{1}");
        assert_eq!(parse_json("{\"a\":"), None);
    }
}
