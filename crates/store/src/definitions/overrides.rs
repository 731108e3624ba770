//! The configuration file `pi-crew.json` (`crew.md` 10.4): its text, and its
//! effect on a definition.
//!
//! Pure; a fault drops only the part that has it (CFG-8).

use crew_base::definition::Definition;
use crew_base::json::from_text;
use crew_base::text::is_blank;
use serde_json::Value as Json;

use super::fields::{self, Fields, shown};
use super::file::apply_tools;
use crate::frontmatter::Value;

/// What one configuration file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Overrides {
    /// By subagent name, in file order.
    pub(super) agents: Vec<(String, Fields)>,
    /// `widget.showToolCalls`, when it is set well (CFG-9).
    pub(super) show_tool_calls: Option<bool>,
    /// What is wrong in the file.
    pub(super) warnings: Vec<String>,
}

/// Reads the text of a configuration file (`crew.md` CFG-2 to CFG-4, CFG-6,
/// CFG-8, CFG-9).
pub(super) fn parse(text: &str) -> Overrides {
    let mut found = Overrides::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root: Json = match from_text(text) {
        Ok(root) => root,
        Err(error) => return only(format!("The file is not JSON and is ignored: {error}.")),
    };
    let Some(root) = root.as_object() else {
        return only("The file must hold one JSON object; it is ignored.".to_owned());
    };
    if let Some(agents) = root.get("agents") {
        match agents.as_object() {
            Some(agents) => {
                agents.iter().for_each(|(name, value)| read_override(&mut found, name, value))
            }
            None => found.warnings.push("\"agents\" must be an object; it is ignored.".to_owned()),
        }
    }
    if let Some(widget) = root.get("widget") {
        read_widget(&mut found, widget);
    }
    found
}

/// Sets what an override sets and keeps the rest (`crew.md` CFG-5, CAT-26).
pub(super) fn apply(definition: &mut Definition, set: &Fields, warnings: &mut Vec<String>) {
    if let Some(model) = &set.model {
        definition.model = Some(model.clone());
    }
    if let Some(level) = set.thinking {
        definition.thinking = Some(level);
    }
    if let Some(list) = &set.tools {
        definition.tools = apply_tools(&definition.name, &definition.tools, list, warnings);
    }
    if let Some(skills) = &set.skills {
        definition.skills = Some(skills.clone());
    }
    if let Some(compaction) = set.compaction {
        definition.compaction = compaction;
    }
}

fn only(warning: String) -> Overrides {
    Overrides { warnings: vec![warning], ..Overrides::default() }
}

fn read_override(found: &mut Overrides, name: &str, value: &Json) {
    if is_blank(name) {
        let warning = "An override under \"agents\" has a blank name; it is ignored.";
        found.warnings.push(warning.to_owned());
        return;
    }
    let Value::Map(entries) = Value::from_json(value) else {
        found
            .warnings
            .push(format!("Subagent \"{name}\": an override must be an object; it is ignored."));
        return;
    };
    for (key, _) in entries.iter().filter(|(key, _)| !fields::is_known(key)) {
        let fault = match key.as_str() {
            "name" | "description" => "is not overridable",
            _ => "is an unknown field",
        };
        let key = shown(key);
        found.warnings.push(format!("Subagent \"{name}\": \"{key}\" {fault}; it is ignored."));
    }
    let set = fields::read(name, &entries, &mut found.warnings);
    found.agents.push((name.to_owned(), set));
}

fn read_widget(found: &mut Overrides, widget: &Json) {
    let Some(widget) = widget.as_object() else {
        let warning = "\"widget\" must be an object; it is ignored.";
        found.warnings.push(warning.to_owned());
        return;
    };
    if let Some(value) = widget.get("showToolCalls") {
        found.show_tool_calls = value.as_bool();
        if found.show_tool_calls.is_none() {
            let warning = "\"widget.showToolCalls\" must be true or false; it is ignored.";
            found.warnings.push(warning.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::model::ThinkingLevel;

    #[test]
    fn each_fault_drops_its_own_part_and_is_told() {
        // CFG-4, CFG-8, CFG-9, row 68.
        let check = |text: &str, agents: usize, words: &[&str]| {
            let found = parse(text);
            assert_eq!(found.agents.len(), agents, "{text}");
            assert_eq!(found.warnings.len(), words.len(), "{:?}", found.warnings);
            for (warning, word) in found.warnings.iter().zip(words) {
                assert!(warning.contains(word), "{word} in {warning}");
            }
        };
        check("{}", 0, &[]);
        check("\u{feff}{\"other\": 1}", 0, &[]);
        check("{not json", 0, &["JSON"]);
        check("", 0, &["JSON"]);
        check("[1]", 0, &["object"]);
        check(r#"{"agents": [], "widget": {}}"#, 0, &["agents"]);
        check(r#"{"agents": {"b": 7, "a": {}}}"#, 1, &["\"b\""]);
        check(r#"{"agents": {" ": {}, "a": {}}}"#, 1, &["blank"]);
        check(
            r#"{"agents": {"a": {"interactive": true, "name": "x", "thinking": "low"}}}"#,
            1,
            &["unknown field", "not overridable"],
        );
        check(
            r#"{"agents": {"a": {"description": "x"}}, "widget": 1}"#,
            1,
            &["description", "widget"],
        );
        check(r#"{"widget": {"showToolCalls": "yes", "x": 1}}"#, 0, &["showToolCalls"]);
    }

    #[test]
    fn the_rest_of_a_faulty_override_still_counts() {
        // CFG-4, CFG-6, CAT-16.
        let text = r#"{"agents": {"a": {"name": "x", "thinking": "low", "tools": 5,
            "skills": null, "model": "/m2"}}, "widget": {"showToolCalls": false}}"#;
        let found = parse(text);
        assert_eq!(found.show_tool_calls, Some(false));
        let expected = Fields {
            model: Some("/m2".into()),
            thinking: Some(ThinkingLevel::Low),
            skills: Some(Vec::new()),
            ..Fields::default()
        };
        assert_eq!(found.agents, [("a".to_owned(), expected)]);
        assert_eq!(found.warnings.len(), 3, "{:?}", found.warnings);
    }
}
