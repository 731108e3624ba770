//! The closed task object and the prompt made from it (`crew.md` 3).

use serde_json::Value;

use crew_base::text::{is_blank, sanitise_inline};

/// A checked task (TASK-1 to TASK-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// What must be true at the end.
    pub goal: String,
    /// Facts the child cannot find out.
    pub context: Vec<String>,
    /// What to do.
    pub instructions: Vec<String>,
}

impl Assignment {
    /// Reads the value as the model sent it; the error names the first
    /// offending field (TASK-10).
    pub fn read(task: Option<&Value>) -> Result<Assignment, String> {
        let Some(Value::Object(fields)) = task else {
            return Err("`task` must be an object with goal, context and instructions".to_owned());
        };
        let known = ["goal", "context", "instructions"];
        if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("`task` has the unknown field `{unknown}`"));
        }
        let goal = fields.get("goal").and_then(Value::as_str);
        let Some(goal) = goal.filter(|goal| !is_blank(goal)) else {
            return Err("`task.goal` must be a text that is not blank".to_owned());
        };
        let context = texts(fields.get("context"));
        let Some(context) = context else {
            return Err("`task.context` must be a list of texts, none of them blank".to_owned());
        };
        let instructions = texts(fields.get("instructions")).filter(|list| !list.is_empty());
        let Some(instructions) = instructions else {
            return Err(
                "`task.instructions` must be a list of at least one text, none of them blank"
                    .to_owned(),
            );
        };
        Ok(Assignment { goal: goal.to_owned(), context, instructions })
    }

    /// The child prompt, values verbatim (TASK-6 to TASK-9, TASK-11).
    pub fn prompt(&self) -> String {
        let context = if self.context.is_empty() {
            "None.".to_owned()
        } else {
            let lines: Vec<_> = self.context.iter().map(|item| format!("- {item}")).collect();
            lines.join("\n")
        };
        let numbered = self.instructions.iter().enumerate();
        let instructions: Vec<_> =
            numbered.map(|(at, item)| format!("{}. {item}", at + 1)).collect();
        [
            "## Goal",
            "",
            &self.goal,
            "",
            "## Context",
            "",
            &context,
            "",
            "## Instructions",
            "",
            &instructions.join("\n"),
        ]
        .join("\n")
    }
}

fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    let items = value?.as_array()?;
    let text = |item: &Value| item.as_str().filter(|text| !is_blank(text)).map(str::to_owned);
    items.iter().map(text).collect()
}

/// Name of a child session (ISO-9).
pub fn title(definition: &str, brief: &str, subagent: &str) -> String {
    let part = |text: &str, fallback: &str| match sanitise_inline(text) {
        clean if clean.is_empty() => fallback.to_owned(),
        clean => clean,
    };
    format!("crew: {} · {}", part(definition, "subagent"), part(brief, subagent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // crew.md 21 rows 49, 51, 52; TASK-1 to TASK-10.
    #[test]
    fn the_first_offending_field_is_named() {
        let check = |task: Value, field: &str| {
            let error = Assignment::read(Some(&task)).unwrap_err();
            assert!(error.starts_with(field), "{error}");
        };
        check(json!("do it"), "`task` ");
        check(json!(null), "`task` ");
        check(json!({"goal": "g", "context": [], "instructions": ["i"], "x": 1}), "`task` ");
        check(json!({"goal": " ", "context": [], "instructions": ["i"]}), "`task.goal`");
        check(json!({"goal": "g", "instructions": ["i"]}), "`task.context`");
        check(json!({"goal": "g", "context": [" "], "instructions": ["i"]}), "`task.context`");
        check(json!({"goal": "g", "context": "c", "instructions": ["i"]}), "`task.context`");
        check(json!({"goal": "g", "context": [], "instructions": []}), "`task.instructions`");
        check(json!({"goal": "g", "context": [], "instructions": [1]}), "`task.instructions`");
        assert!(Assignment::read(None).is_err());
    }

    #[test]
    fn the_prompt_holds_the_values_verbatim() {
        let task = json!({"goal": " g\n", "context": [], "instructions": ["a\n  b", "c"]});
        assert_eq!(
            Assignment::read(Some(&task)).unwrap().prompt(),
            "## Goal\n\n g\n\n\n## Context\n\nNone.\n\n## Instructions\n\n1. a\n  b\n2. c"
        );
        let task = json!({"goal": "g", "context": ["x", "y"], "instructions": ["i"]});
        assert!(
            Assignment::read(Some(&task)).unwrap().prompt().contains("## Context\n\n- x\n- y\n\n")
        );
    }

    #[test]
    fn titles_are_one_clean_line() {
        assert_eq!(title("scout", "a\n\u{1b}[31mb", "scout-1"), "crew: scout · a b");
        assert_eq!(title("\u{7}", " ", "scout-1"), "crew: subagent · scout-1");
    }
}
