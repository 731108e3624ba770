//! Builds a [`Value`] from YAML events, so that quoting and the written text
//! are known for each scalar.
//!
//! Must never hold more than `FRONT_MATTER_NODES_MAX` nodes, aliases counted
//! at their full weight.

use std::collections::{BTreeMap, BTreeSet};

use crew_base::limits::FRONT_MATTER_NODES_MAX;
use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, Tag, options};

use super::{Kind, Scalar, Value, YamlError};

/// Reads one YAML document; `None` when it holds no node (`crew.md` CAT-11).
pub(super) fn parse(yaml: &str) -> Result<Option<Value>, YamlError> {
    let options = options! { emit_comments: false };
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(yaml, options) {
        let (event, span) = next.map_err(|error| {
            let reason = match error.info() {
                info if info.is_empty() => "the YAML is malformed".to_owned(),
                info => info,
            };
            fail(*error.marker(), reason)
        })?;
        builder.event(event).map_err(|reason| fail(span.start, reason))?;
    }
    Ok(builder.root)
}

fn fail(at: Marker, reason: impl Into<String>) -> YamlError {
    YamlError { reason: reason.into(), line: at.line(), column: at.col() + 1 }
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Value>,
    weight: usize,
    root: Option<Value>,
}

struct Open {
    anchor: usize,
    shape: Shape,
}

enum Shape {
    List(Vec<Value>),
    Map { entries: Vec<(String, Value)>, keys: BTreeSet<String>, key: Option<String> },
}

impl Builder {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the foreign enum is open; what is no node says nothing here"
    )]
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.grow(1)?;
                let kind = kind_of(&text, style, tag.as_deref());
                // The parser gives `~` for nothing too.
                let text = match kind {
                    Kind::Null => String::new(),
                    Kind::Text | Kind::Number | Kind::Bool(_) => text.into_owned(),
                };
                self.place(Value::Scalar(Scalar { text, kind }), anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(anchor, Shape::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                let (entries, keys, key) = (Vec::new(), BTreeSet::new(), None);
                self.begin(anchor, Shape::Map { entries, keys, key })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return Err("an alias stands inside what it refers to".to_owned());
                };
                // Weighed before it is copied, so that nested aliases are
                // refused instead of unfolded.
                let copied = weight(value);
                self.grow(copied)?;
                let value = self.anchors[&anchor].clone();
                self.place(value, 0)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, anchor: usize, shape: Shape) -> Result<(), String> {
        self.grow(1)?;
        self.open.push(Open { anchor, shape });
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(Open { anchor, shape }) = self.open.pop() else {
            return Ok(());
        };
        let value = match shape {
            Shape::List(items) => Value::List(items),
            Shape::Map { entries, .. } => Value::Map(entries),
        };
        self.place(value, anchor)
    }

    fn grow(&mut self, nodes: usize) -> Result<(), String> {
        self.weight = self.weight.saturating_add(nodes);
        if self.weight > FRONT_MATTER_NODES_MAX {
            return Err(format!("more than {FRONT_MATTER_NODES_MAX} values"));
        }
        Ok(())
    }

    fn place(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            self.grow(weight(&value))?;
            self.anchors.insert(anchor, value.clone());
        }
        let Some(open) = self.open.last_mut() else {
            if self.root.is_some() {
                return Err("more than one document".to_owned());
            }
            self.root = Some(value);
            return Ok(());
        };
        match &mut open.shape {
            Shape::List(items) => items.push(value),
            Shape::Map { entries, keys, key } => match key.take() {
                Some(name) => entries.push((name, value)),
                None => {
                    let Value::Scalar(scalar) = value else {
                        return Err("a key is no plain text".to_owned());
                    };
                    if !keys.insert(scalar.text.clone()) {
                        return Err(format!("the key \"{}\" stands twice", scalar.text));
                    }
                    *key = Some(scalar.text);
                }
            },
        }
        Ok(())
    }
}

/// Nodes below and at a value; long texts count more, as copies cost memory.
fn weight(value: &Value) -> usize {
    match value {
        Value::Scalar(scalar) => 1 + scalar.text.len() / 64,
        Value::List(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Map(entries) => {
            let of = |(key, value): &(String, Value)| 1 + key.len() / 64 + weight(value);
            1 + entries.iter().map(of).sum::<usize>()
        }
    }
}

fn kind_of(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Kind {
    match tag.map(Tag::core_suffix) {
        Some(Some("str")) => Kind::Text,
        Some(Some(_)) => plain_kind(text),
        Some(None) | None if style == ScalarStyle::Plain => plain_kind(text),
        Some(None) | None => Kind::Text,
    }
}

fn plain_kind(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        _ if is_number(text) => Kind::Number,
        _ => Kind::Text,
    }
}

fn is_number(text: &str) -> bool {
    let of_radix = |prefix: &str, radix: u32| {
        text.strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
    };
    if of_radix("0x", 16) || of_radix("0o", 8) || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|part| {
        let part = part.strip_prefix(['-', '+']).unwrap_or(part);
        !part.is_empty() && digits(part)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent_fits && digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(yaml: &str) -> YamlError {
        parse(yaml).unwrap_err()
    }

    #[test]
    fn nested_aliases_are_refused_before_they_unfold() {
        // dependencies.md 3: a small node budget.
        let mut yaml = String::from("\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let below = level - 1;
            let items = vec![format!("*a{below}"); 10].join(", ");
            yaml.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(reason(&yaml).reason.contains("values"));
        let long = "y".repeat(10_000);
        let copies = "  - *big\n".repeat(1000);
        let yaml = format!("\nbig: &big \"{long}\"\nall:\n{copies}");
        assert!(reason(&yaml).reason.contains("values"));
    }

    #[test]
    fn an_alias_stands_for_its_value() {
        let value = parse("\na: &x [1, two]\nb: *x\n").unwrap().unwrap();
        let Value::Map(fields) = value else {
            panic!("a mapping");
        };
        assert_eq!(fields[0].1, fields[1].1);
    }

    #[test]
    fn reasons_say_what_and_where() {
        let check = |yaml: &str, word: &str, line: usize| {
            let error = reason(yaml);
            assert!(error.reason.contains(word), "{error}");
            assert_eq!(error.line, line, "{error}");
        };
        check("\na: 1\nb: 2\na: 3", "twice", 4);
        check("\na: &x [*x]", "inside", 2);
        check("\n? [a]\n: b", "key", 2);
        check("\na: *none", "anchor", 2);
        assert!(!reason("\nname: [\ndescription: d").reason.is_empty());
    }

    #[test]
    fn deep_nesting_ends_as_an_error() {
        let yaml = format!("\na: {}", "[".repeat(50_000));
        assert!(!reason(&yaml).reason.is_empty());
    }
}
