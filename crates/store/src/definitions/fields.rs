//! The five fields that definitions and overrides share (`crew.md` 10.2,
//! CFG-3): one reader for both, so that both follow the same rules.
//!
//! Pure; a bad value costs its own field and nothing else.

use crew_base::model::ThinkingLevel;
use crew_base::text::excerpt;

use crate::frontmatter::Value;

/// Values that are set; `None` means omitted or not usable (`crew.md` CFG-6).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields {
    /// As written, malformed ones too (CAT-16).
    pub(super) model: Option<String>,
    pub(super) thinking: Option<ThinkingLevel>,
    /// Entries with their signs.
    pub(super) tools: Option<Vec<String>>,
    pub(super) skills: Option<Vec<String>>,
    pub(super) compaction: Option<bool>,
}

/// Whether a key is one of the five.
pub(super) fn is_known(key: &str) -> bool {
    ["model", "thinking", "tools", "skills", "compaction"].contains(&key)
}

/// The two parts of a `provider/model-id`, trimmed; `None` when it is malformed
/// (`crew.md` CAT-16). The id may hold further slashes.
pub fn split_model(text: &str) -> Option<(&str, &str)> {
    let (provider, id) = text.split_once('/')?;
    let (provider, id) = (provider.trim(), id.trim());
    (!provider.is_empty() && !id.is_empty()).then_some((provider, id))
}

/// Reads the known keys and tells what is wrong with them (`crew.md` CAT-15 to
/// CAT-20); other keys are the caller's.
pub(super) fn read(name: &str, entries: &[(String, Value)], warnings: &mut Vec<String>) -> Fields {
    let mut reader = Reader { name, warnings };
    let mut fields = Fields::default();
    for (key, value) in entries {
        match key.as_str() {
            "model" => fields.model = reader.model(value),
            "thinking" => fields.thinking = reader.thinking(value),
            "tools" => fields.tools = reader.list(key, value),
            "skills" => fields.skills = reader.list(key, value),
            "compaction" => {
                fields.compaction = value.as_bool();
                if fields.compaction.is_none() {
                    reader.wrong_type(key, "true or false");
                }
            }
            _ => {}
        }
    }
    fields
}

struct Reader<'a> {
    name: &'a str,
    warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn model(&mut self, value: &Value) -> Option<String> {
        // Nothing after the key is a malformed model, not the owner's model:
        // a spawn that fails is better than another model used in silence.
        let text = if value.is_null() { Some("") } else { value.as_text() };
        let Some(text) = text else {
            self.wrong_type("model", "a string \"provider/model-id\"");
            return None;
        };
        if split_model(text).is_none() {
            let shown = shown(text);
            self.say(format_args!(
                "field \"model\" is malformed: \"{shown}\" is no \"provider/model-id\"; its spawns will fail"
            ));
        }
        Some(text.to_owned())
    }

    fn thinking(&mut self, value: &Value) -> Option<ThinkingLevel> {
        let text = if value.is_null() { Some("") } else { value.as_text() };
        let Some(text) = text else {
            self.wrong_type("thinking", "the name of a level");
            return None;
        };
        let level = ThinkingLevel::parse(text);
        if level.is_none() {
            let known = ThinkingLevel::ALL.map(ThinkingLevel::word).join(", ");
            let shown = shown(text);
            self.say(format_args!(
                "field \"thinking\" has the unknown level \"{shown}\"; levels are {known}"
            ));
        }
        level
    }

    fn list(&mut self, key: &str, value: &Value) -> Option<Vec<String>> {
        let entries = value.as_entries();
        if entries.is_none() {
            self.wrong_type(key, "text with commas or a list of names");
        }
        entries
    }

    fn wrong_type(&mut self, key: &str, expected: &str) {
        self.say(format_args!(
            "field \"{key}\" has the wrong type and is ignored; expected {expected}"
        ));
    }

    fn say(&mut self, what: std::fmt::Arguments<'_>) {
        let name = self.name;
        self.warnings.push(format!("Subagent \"{name}\": {what}."));
    }
}

/// A value of a file as a warning quotes it.
pub(super) fn shown(text: &str) -> String {
    excerpt(text, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter;

    fn fields(line: &str) -> (Fields, Vec<String>) {
        let document = frontmatter::read(&format!("---\n{line}\n---\n")).unwrap();
        let mut warnings = Vec::new();
        let fields = read("rolex", &document.fields, &mut warnings);
        (fields, warnings)
    }

    /// One warning that names the subagent and holds each word, or none.
    fn warned(warnings: &[String], words: &[&str]) {
        assert_eq!(warnings.len(), usize::from(!words.is_empty()), "{warnings:?}");
        for word in words {
            assert!(warnings[0].contains(word), "{word} in {warnings:?}");
            assert!(warnings[0].contains("rolex"), "{warnings:?}");
        }
    }

    #[test]
    fn a_model_is_two_parts_and_kept_as_written() {
        // CAT-15, CAT-16, row 53.
        let check = |line: &str, expected: Option<&str>, words: &[&str]| {
            let (fields, warnings) = fields(line);
            assert_eq!(fields.model.as_deref(), expected, "{line}");
            warned(&warnings, words);
        };
        check("model: a/b", Some("a/b"), &[]);
        check("model: a/b/c:free", Some("a/b/c:free"), &[]);
        check("model: ' a / b '", Some(" a / b "), &[]);
        check("model: noslash", Some("noslash"), &["model", "noslash"]);
        check("model: /m2", Some("/m2"), &["model", "/m2"]);
        check("model: 'p/ '", Some("p/ "), &["model"]);
        check("model:", Some(""), &["model"]);
        check("model: 5", None, &["model", "type"]);
        check("model: [a/b]", None, &["model", "type"]);
        check("other: x", None, &[]);
        assert_eq!(split_model(" a / b/c "), Some(("a", "b/c")));
    }

    #[test]
    fn a_level_is_compared_exactly() {
        // CAT-17.
        let check = |line: &str, expected: Option<ThinkingLevel>, words: &[&str]| {
            let (fields, warnings) = fields(line);
            assert_eq!(fields.thinking, expected, "{line}");
            warned(&warnings, words);
        };
        check("thinking: off", Some(ThinkingLevel::Off), &[]);
        check("thinking: xhigh", Some(ThinkingLevel::Xhigh), &[]);
        check("thinking: HIGH", None, &["thinking", "HIGH"]);
        check("thinking: ' high'", None, &["thinking"]);
        check("thinking:", None, &["thinking"]);
        check("thinking: true", None, &["thinking", "type"]);
    }

    #[test]
    fn lists_and_switches_of_a_wrong_type_count_as_omitted() {
        // CAT-15, CAT-19, CAT-20, CAT-30.
        let check = |line: &str, expected: Fields, words: &[&str]| {
            let (fields, warnings) = fields(line);
            assert_eq!(fields, expected, "{line}");
            warned(&warnings, words);
        };
        let none = Fields::default;
        let tools = |list: &[&str]| Fields {
            tools: Some(list.iter().map(|s| (*s).into()).collect()),
            ..none()
        };
        check("tools: read, -bash", tools(&["read", "-bash"]), &[]);
        check("tools:", tools(&[]), &[]);
        check("tools: 5.5", none(), &["tools", "type"]);
        check("tools: [{a: 1}]", none(), &["tools", "type"]);
        check("skills: {a: 1}", none(), &["skills", "type"]);
        let skills = vec!["-x".into(), "+y".into()];
        check("skills: '-x, +y'", Fields { skills: Some(skills), ..none() }, &[]);
        check("compaction: false", Fields { compaction: Some(false), ..none() }, &[]);
        check("compaction: 'no'", none(), &["compaction", "type"]);
        check("compaction: no", none(), &["compaction", "type"]);
        check("compaction:", none(), &["compaction", "type"]);
        // CAT-21: unknown keys are silent.
        check("interactive: true\ncolour: red", none(), &[]);
    }
}
