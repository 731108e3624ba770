//! The text of one definition file (`crew.md` 10.2) becomes a definition.
//!
//! Pure; knows neither other files nor overrides.

use std::sync::Arc;

use crew_base::definition::{DEFAULT_CHILD_TOOLS, Definition, Source};
use crew_base::text::is_blank;

use super::deltas;
use super::extra::Extra;
use super::fields::{self, shown};
use crate::frontmatter::{self, Document, Value};

/// What a definition file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    /// The definition before overrides; the text says why there is none.
    pub(crate) definition: Result<Arc<Definition>, String>,
    /// What is wrong with single fields.
    pub(crate) warnings: Vec<String>,
    /// The keys that only the `task` tool reads.
    pub(crate) extra: Extra,
}

/// Reads a definition (`crew.md` CAT-10 to CAT-21).
pub(crate) fn parse(text: &str, source: Source, path: &str) -> Parsed {
    let invalid = |reason: String| Parsed {
        definition: Err(reason),
        warnings: Vec::new(),
        extra: Extra::default(),
    };
    let document = match frontmatter::read(text) {
        Ok(document) => document,
        Err(error) => return invalid(format!("The front matter cannot be read: {error}.")),
    };
    let (Some(name), Some(description)) = (word(&document, "name"), word(&document, "description"))
    else {
        return invalid(
            "A definition needs front matter with a \"name\" and a \"description\" that are text and not blank."
                .to_owned(),
        );
    };
    if name.chars().any(char::is_whitespace) {
        let shown = shown(name);
        return invalid(format!("The name \"{shown}\" contains whitespace; use a hyphen."));
    }
    let mut warnings = Vec::new();
    let set = fields::read(name, &document.fields, &mut warnings);
    let default = DEFAULT_CHILD_TOOLS.map(str::to_owned);
    let tools = match &set.tools {
        None => default.to_vec(),
        Some(list) => apply_tools(name, &default, list, &mut warnings),
    };
    let extra = Extra::read(&document);
    let definition = Arc::new(Definition {
        name: name.to_owned(),
        description: description.to_owned(),
        source,
        path: path.to_owned(),
        model: set.model,
        thinking: set.thinking,
        tools,
        skills: set.skills,
        compaction: set.compaction.unwrap_or(true),
        prompt: document.body,
    });
    Parsed { definition: Ok(definition), warnings, extra }
}

/// Applies one layer of tools; warnings name the subagent (`crew.md` CAT-28).
pub(super) fn apply_tools(
    name: &str,
    inherited: &[String],
    list: &[String],
    warnings: &mut Vec<String>,
) -> Vec<String> {
    let (tools, odd) = deltas::resolve(inherited, list);
    let told =
        odd.iter().map(|warning| format!("Subagent \"{name}\": in field \"tools\", {warning}."));
    warnings.extend(told);
    tools
}

fn word<'a>(document: &'a Document, key: &str) -> Option<&'a str> {
    let text = document.get(key).and_then(Value::as_text)?;
    (!is_blank(text)).then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Parsed {
        parse(text, Source::User, "x.md")
    }

    #[test]
    fn files_without_a_usable_name_and_description_are_invalid() {
        // CAT-10 to CAT-13, row 69.
        let check = |text: &str, words: &[&str]| {
            let reason = read(text).definition.unwrap_err();
            for word in words {
                assert!(reason.contains(word), "{text:?}: {reason}");
            }
        };
        let both = ["name", "description"];
        check("", &both);
        check("---\nname: a\n---\nx", &both);
        check("---\nname: b\ndescription: d\nno end", &both);
        check("---\nname: 5\ndescription: d\n---\n", &both);
        check("---\nname: ' '\ndescription: d\n---\n", &both);
        check("---\nname: a\ndescription: [d]\n---\n", &both);
        check("---\nname: a\ndescription:\n---\n", &both);
        check("---\n- name\n---\n", &both);
        check("---\nname: 'two words'\ndescription: d\n---\n", &["two words"]);
        check("---\nname: [\ndescription: d\n---\n", &["line 2", "bracket"]);
        check("---\nname: a\nname: b\ndescription: d\n---\n", &["twice"]);
    }

    #[test]
    fn what_is_omitted_has_its_default() {
        // CAT-10, CAT-14, CAT-18, CAT-23.
        let found =
            read("\u{feff}---\r\nname: ' ok '\r\ndescription: fine\r\n---\r\n\r\nBODY\r\nx\r\n");
        let definition = found.definition.unwrap();
        assert_eq!(
            *definition,
            Definition {
                name: "ok".into(),
                description: "fine".into(),
                source: Source::User,
                path: "x.md".into(),
                model: None,
                thinking: None,
                tools: DEFAULT_CHILD_TOOLS.map(str::to_owned).to_vec(),
                skills: None,
                compaction: true,
                prompt: "BODY\nx".into(),
            }
        );
        assert!(found.warnings.is_empty());
        let empty = read("---\nname: a.b/ö\ndescription: d\n---\n").definition.unwrap();
        assert_eq!((empty.name.as_str(), empty.prompt.as_str()), ("a.b/ö", ""));
    }

    #[test]
    fn the_tools_of_a_file_build_on_the_default_set() {
        // CAT-26, CAT-28.
        let found = read("---\nname: d\ndescription: d\ntools: [-write, +web, -none]\n---\n");
        let tools = found.definition.unwrap().tools.join(" ");
        assert_eq!(tools, "read bash edit grep find ls web");
        assert_eq!(found.warnings.len(), 1);
        assert!(found.warnings[0].contains("\"d\"") && found.warnings[0].contains("none"));
    }
}
