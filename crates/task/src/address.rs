//! Addresses of results: `agent://<id>` and values below (ART-8).
//!
//! Owns parsing and extraction. Must never look for a file: who reads one asks
//! in the order of ART-9 and hands the text in.

use serde_json::Value;

use crew_base::json::from_text;

use crate::finalise::pretty;

/// What an address begins with.
pub const SCHEME: &str = "agent://";

/// An address that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Child id.
    pub id: String,
    /// Keys and indexes into its data; empty for the whole text.
    pub path: Vec<String>,
}

/// Why an address gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no id in it, or one that is never readable.
    NoId,
    /// Nobody has that id.
    UnknownId {
        /// As given.
        id: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The session has no folder with results.
    NoFolder,
    /// Its text is no JSON, so nothing in it can be addressed.
    NotJson(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NoId => write!(f, "the address names no child: give {SCHEME}<id>"),
            Refusal::UnknownId { id, known } if known.is_empty() => {
                write!(f, "no result of `{id}` can be read; there are none")
            }
            Refusal::UnknownId { id, known } => {
                write!(f, "no result of `{id}` can be read; there are: {}", known.join(", "))
            }
            Refusal::NoFolder => f.write_str("this session has no results of children"),
            Refusal::NotJson(id) => {
                write!(f, "the result of `{id}` is no JSON: read {SCHEME}{id} as a whole")
            }
        }
    }
}

/// Reads an address; `None` when it is none of this scheme.
pub fn parse(text: &str) -> Option<Result<Address, Refusal>> {
    let rest = text.strip_prefix(SCHEME)?;
    let mut segments = rest.split('/').map(decode);
    let id = segments.next().unwrap_or_default();
    // A slash or a dot segment would leave the folder of results.
    let is_id = !id.is_empty()
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && !id.starts_with('.');
    if id.is_empty() || id == "all" {
        return Some(Err(Refusal::NoId));
    }
    if !is_id {
        return Some(Err(Refusal::UnknownId { id, known: Vec::new() }));
    }
    let path = segments.filter(|segment| !segment.is_empty()).collect();
    Some(Ok(Address { id, path }))
}

fn decode(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte =
            hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The text an address gives, from the text file and the sidecar beside it. A
/// sidecar that is missing or broken is replaced by the text read as JSON.
pub fn extract(address: &Address, text: &str, sidecar: Option<&str>) -> Result<String, Refusal> {
    if address.path.is_empty() {
        return Ok(text.to_owned());
    }
    let data = sidecar.and_then(|sidecar| from_text::<Value>(sidecar).ok());
    let (data, source) = match data {
        Some(data) => (data, "its data"),
        None => {
            let parsed = from_text::<Value>(text).ok();
            (parsed.ok_or_else(|| Refusal::NotJson(address.id.clone()))?, "its text read as JSON")
        }
    };
    let found = address.path.iter().try_fold(&data, |value, segment| match value {
        Value::Array(items) => {
            let is_index = segment.bytes().all(|b| b.is_ascii_digit());
            items.get(segment.parse::<usize>().ok().filter(|_| is_index)?)
        }
        Value::Object(fields) => fields.get(segment),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    });
    let shown = match found {
        Some(Value::String(text)) => text.clone(),
        Some(value) => pretty(value),
        None => "null".to_owned(),
    };
    let path = address.path.join("/");
    Ok(format!("{shown}\n\n[`{path}` of `{}`, from {source}]", address.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    // ART-8.
    #[test]
    fn addresses_are_an_id_and_a_path() {
        let check = |text: &str, id: &str, path: &[&str]| {
            let address = parse(text).unwrap().unwrap();
            assert_eq!(
                (address.id.as_str(), address.path),
                (id, path.iter().map(|p| (*p).to_owned()).collect())
            );
        };
        check("agent://Ann", "Ann", &[]);
        check("agent://kid.Low/", "kid.Low", &[]);
        check("agent://Ann/list/1/k%20v", "Ann", &["list", "1", "k v"]);
        check("agent://Ann/100%", "Ann", &["100%"]);
        assert_eq!(parse("/etc/passwd"), None);
        for bad in ["agent://", "agent://all", "agent:///x"] {
            assert_eq!(parse(bad), Some(Err(Refusal::NoId)), "{bad}");
        }
        for bad in ["agent://..", "agent://a%2Fb", "agent://.hidden"] {
            assert!(matches!(parse(bad), Some(Err(Refusal::UnknownId { .. }))), "{bad}");
        }
    }

    // ART-8; task.md 12 row 75.
    #[test]
    fn values_come_from_the_sidecar_or_from_the_text() {
        let data = r#"{"list":["zero",{"k v":5}],"s":"str"}"#;
        let check = |path: &str, sidecar: Option<&str>, expected: &str| {
            let address = parse(&format!("agent://Ann/{path}")).unwrap().unwrap();
            let shown = extract(&address, data, sidecar).unwrap();
            assert!(shown.starts_with(&format!("{expected}\n\n[")), "{shown}");
        };
        check("list/0", Some(data), "zero");
        check("list/1/k%20v", Some(data), "5");
        check("list/1", Some(data), "{\n  \"k v\": 5\n}");
        check("none", Some(data), "null");
        check("list/7", Some(data), "null");
        check("list/-1", Some(data), "null");
        check("s/deeper", Some(data), "null");
        check("list/0", Some("{broken"), "zero");
        check("list/0", None, "zero");
        let whole = Address { id: "Ann".into(), path: Vec::new() };
        assert_eq!(extract(&whole, "prose", None).as_deref(), Ok("prose"));
        let inner = Address { path: vec!["x".into()], ..whole };
        assert_eq!(extract(&inner, "prose", None), Err(Refusal::NotJson("Ann".into())));
    }

    #[test]
    fn refusals_name_what_there_is() {
        let known = vec!["Ann".to_owned(), "Bob".to_owned()];
        let text = Refusal::UnknownId { id: "Nobody".into(), known }.to_string();
        assert!(text.contains("`Nobody`") && text.contains("Ann, Bob"), "{text}");
    }
}
