//! Front matter: the YAML between two `---` lines at the start of a Markdown
//! file (`crew.md` CAT-10, `host.md` 5.3.1), read into values that keep the
//! text as it was written.
//!
//! Must never convert a scalar (`012` stays `012`, `no` stays text) and never
//! do IO. Field rules are with their owners: `definitions::fields`, `skills`,
//! `prompts`. The YAML events are read in `frontmatter::tree`.

mod tree;

use serde_json::Value as Json;

/// The two parts of a Markdown file, line endings normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The YAML text after the opening marker; `None` without front matter.
    pub yaml: Option<String>,
    /// The rest: trimmed behind a closing marker, else the whole text.
    pub body: String,
}

/// A Markdown file whose front matter was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Top-level fields in file order; keys are unique.
    pub fields: Vec<(String, Value)>,
    /// The text below the front matter.
    pub body: String,
}

/// One YAML or JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Value>),
    /// A mapping with unique keys, in file order.
    Map(Vec<(String, Value)>),
}

/// A single value with its text as written and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The text; of quoted scalars what the quotes hold, empty for null.
    pub text: String,
    /// What it counts as.
    pub kind: Kind,
}

/// Type of a scalar by the core schema of YAML 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// An integer or a fraction.
    Number,
    /// `true` or `false`.
    Bool(bool),
    /// `null`, `~` or nothing.
    Null,
}

/// Why front matter cannot be read; lines count from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (line {line}, column {column})")]
pub struct YamlError {
    /// The parser's reason.
    pub reason: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// Separates front matter and body (`crew.md` CAT-10, `host.md` 5.3.1): drops
/// one byte order mark and makes every line ending a line feed.
pub fn split(text: &str) -> Split {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let parts = text.strip_prefix(MARKER).and_then(|inner| {
        let end = inner.find("\n---")?;
        Some((&inner[..end], &inner[end + 1 + MARKER.len()..]))
    });
    match parts {
        Some((yaml, body)) => Split { yaml: Some(yaml.to_owned()), body: body.trim().to_owned() },
        None => Split { yaml: None, body: text },
    }
}

/// Reads a whole file (`crew.md` CAT-10, CAT-11). Without front matter, or with
/// one that is no mapping, there are no fields.
pub fn read(text: &str) -> Result<Document, YamlError> {
    let Split { yaml, body } = split(text);
    let root = yaml.as_deref().map(tree::parse).transpose()?.flatten();
    let fields = match root {
        Some(Value::Map(fields)) => fields,
        Some(Value::Scalar(_) | Value::List(_)) | None => Vec::new(),
    };
    Ok(Document { fields, body })
}

impl Document {
    /// The value of a top-level field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text of a scalar field that is not blank, trimmed.
    pub fn text(&self, key: &str) -> Option<&str> {
        let scalar = self.get(key)?.as_scalar()?;
        let text = scalar.text.trim();
        (scalar.kind != Kind::Null && !text.is_empty()).then_some(text)
    }
}

impl Value {
    /// The scalar, if it is one.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match self {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The text of a string; numbers, booleans and null are no strings.
    pub fn as_text(&self) -> Option<&str> {
        let scalar = self.as_scalar()?;
        (scalar.kind == Kind::Text).then_some(scalar.text.as_str())
    }

    /// The boolean, if it is one; text such as `yes` is none.
    pub fn as_bool(&self) -> Option<bool> {
        match self.as_scalar()?.kind {
            Kind::Bool(value) => Some(value),
            Kind::Text | Kind::Number | Kind::Null => None,
        }
    }

    /// Whether the key stands there without a value.
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(|scalar| scalar.kind == Kind::Null)
    }

    /// The entries of a list field (`crew.md` CAT-19, CAT-20): text is split at
    /// commas, a sequence is taken item by item, entries are trimmed, empty
    /// ones dropped. `None` means the wrong type.
    pub fn as_entries(&self) -> Option<Vec<String>> {
        let texts: Vec<&str> = match self {
            Value::Scalar(scalar) => match scalar.kind {
                Kind::Text => scalar.text.split(',').collect(),
                Kind::Null => Vec::new(),
                Kind::Number | Kind::Bool(_) => return None,
            },
            Value::List(items) => items
                .iter()
                .map(|item| item.as_scalar().map(Scalar::as_entry))
                .collect::<Option<_>>()?,
            Value::Map(_) => return None,
        };
        let entries = texts.into_iter().map(str::trim);
        Some(entries.filter(|entry| !entry.is_empty()).map(str::to_owned).collect())
    }

    /// The same shape for a JSON value, so that the configuration file follows
    /// the rules of front matter (`crew.md` CFG-3).
    pub fn from_json(json: &Json) -> Value {
        let scalar = |text: String, kind| Value::Scalar(Scalar { text, kind });
        match json {
            Json::Null => scalar(String::new(), Kind::Null),
            Json::Bool(value) => scalar(value.to_string(), Kind::Bool(*value)),
            Json::Number(number) => scalar(number.to_string(), Kind::Number),
            Json::String(text) => scalar(text.clone(), Kind::Text),
            Json::Array(items) => Value::List(items.iter().map(Value::from_json).collect()),
            Json::Object(entries) => Value::Map(
                entries.iter().map(|(key, value)| (key.clone(), Value::from_json(value))).collect(),
            ),
        }
    }

    /// The JSON value that means the same; a number that JSON cannot write
    /// stays text.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Scalar(scalar) => match scalar.kind {
                Kind::Text => Json::String(scalar.text.clone()),
                Kind::Number => serde_json::from_str(&scalar.text)
                    .unwrap_or_else(|_| Json::String(scalar.text.clone())),
                Kind::Bool(value) => Json::Bool(value),
                Kind::Null => Json::Null,
            },
            Value::List(items) => Json::Array(items.iter().map(Value::to_json).collect()),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.clone(), value.to_json()));
                Json::Object(entries.collect())
            }
        }
    }
}

impl Scalar {
    fn as_entry(&self) -> &str {
        match self.kind {
            Kind::Null => "",
            Kind::Text | Kind::Number | Kind::Bool(_) => &self.text,
        }
    }
}

const MARKER: &str = "---";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markers_decide_what_is_front_matter() {
        // CAT-10, host.md 5.3.1, row 69.
        let check = |text: &str, yaml: Option<&str>, body: &str| {
            let found = split(text);
            assert_eq!((found.yaml.as_deref(), found.body.as_str()), (yaml, body), "{text:?}");
        };
        check("---\na: 1\n---\n\n body \n", Some("\na: 1"), "body");
        check("\u{feff}---\r\na: 1\r\n---\r\nx\r\ny", Some("\na: 1"), "x\ny");
        check("---\na: 1\rb: 2\r---\rx", Some("\na: 1\nb: 2"), "x");
        check("---\n---\nx", Some(""), "x");
        check("---\na: 1\n--- rest", Some("\na: 1"), "rest");
        check("---\na: 1\nno end\n", None, "---\na: 1\nno end\n");
        check(" ---\na: 1\n---\n", None, " ---\na: 1\n---\n");
        check("plain\r\ntext", None, "plain\ntext");
        check("", None, "");
    }

    #[test]
    fn scalars_keep_the_text_that_was_written() {
        let check = |written: &str, text: &str, kind| {
            let document = read(&format!("---\nf: {written}\n---\n")).unwrap();
            let scalar = document.get("f").and_then(Value::as_scalar).unwrap();
            assert_eq!((scalar.text.as_str(), scalar.kind), (text, kind));
        };
        check("no", "no", Kind::Text);
        check("off", "off", Kind::Text);
        check("Yes", "Yes", Kind::Text);
        check("012", "012", Kind::Number);
        check("1e3", "1e3", Kind::Number);
        check("-.5", "-.5", Kind::Number);
        check("0x1F", "0x1F", Kind::Number);
        check(".inf", ".inf", Kind::Number);
        check("1.2.3", "1.2.3", Kind::Text);
        check("2026-01-02", "2026-01-02", Kind::Text);
        check("+name", "+name", Kind::Text);
        check("'5'", "5", Kind::Text);
        check("\"true\"", "true", Kind::Text);
        check("!!str 5", "5", Kind::Text);
        check("true", "true", Kind::Bool(true));
        check("False", "False", Kind::Bool(false));
        check("~", "", Kind::Null);
        check("", "", Kind::Null);
        check("\"\"", "", Kind::Text);
        check("|\n  two\n  lines", "two\nlines\n", Kind::Text);
    }

    #[test]
    fn lists_come_from_text_sequences_and_nothing() {
        // CAT-19, CAT-20.
        let check = |written: &str, expected: Option<&[&str]>| {
            let document = read(&format!("---\nf: {written}\n---\n")).unwrap();
            let entries = document.get("f").unwrap().as_entries();
            let expected = expected.map(|e| e.iter().map(|s| (*s).to_owned()).collect());
            assert_eq!(entries, expected, "{written}");
        };
        check("read , bash,, ls", Some(&["read", "bash", "ls"]));
        check("[grep, 012, true, ' x ', null, '']", Some(&["grep", "012", "true", "x"]));
        check("\n  - a,b\n  - c", Some(&["a,b", "c"]));
        check("[]", Some(&[]));
        check("", Some(&[]));
        check("\" , \"", Some(&[]));
        check("[{x: 1}]", None);
        check("[[a]]", None);
        check("{a: 1}", None);
        check("5.5", None);
        check("true", None);
    }

    #[test]
    fn json_values_follow_the_same_rules() {
        // CFG-3.
        let json = serde_json::json!({"t": ["a", 1, null], "n": null, "b": false});
        let Value::Map(fields) = Value::from_json(&json) else {
            panic!("an object is a map");
        };
        assert_eq!(fields[0].1.as_entries(), Some(vec!["a".into(), "1".into()]));
        assert_eq!(fields[1].1.as_entries(), Some(Vec::new()));
        assert_eq!(fields[2].1.as_bool(), Some(false));
    }

    #[test]
    fn a_root_that_is_no_mapping_has_no_fields() {
        for yaml in ["- a", "text", "", "# only a comment"] {
            let document = read(&format!("---\n{yaml}\n---\nbody")).unwrap();
            assert_eq!((document.fields.len(), document.body.as_str()), (0, "body"));
        }
    }
}
