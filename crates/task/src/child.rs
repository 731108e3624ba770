//! What a child is given: prompts, tools, its first record (SESS-1 to SESS-7).
//!
//! Owns words and lists. Must never read a file; the shell puts the child part
//! before the last section of the host's prompt.

use serde_json::{Value, json};

use crew_cycle::barrier::WAIT_TOOL;
use crew_cycle::schema::{OutputSchema, SchemaSource};
use crew_cycle::yielded::{YIELD_TOOL, guideline};

use crate::agents::Agent;
use crate::isolation;
use crate::settings::Spawns;
use crate::tool::TASK_TOOL;

/// Entry type of the first record (OBS-4).
pub const RECORD_TYPE: &str = "task-child";

/// The first user prompt: one line, a blank line, the assignment (SESS-6).
pub fn prompt(assignment: &str) -> String {
    format!(
        "Carry out the following assignment completely, then hand in the result.\n\n{}",
        assignment.trim()
    )
}

/// The child part of the system prompt, in the order of SESS-7.
pub fn part(
    agent: &Agent,
    context: Option<&str>,
    copy: Option<&str>,
    schema: &OutputSchema,
) -> String {
    let mut parts = vec![agent.definition.prompt.trim().to_owned()];
    parts.extend(context.map(|context| {
        format!("What the one who gave the assignment wants every child of this call to know:\n\n{context}")
    }));
    parts.push("You do one piece of a larger job, and others may work beside you.".to_owned());
    parts.push(match copy {
        None => "Run no formatter, linter, build or test over the whole project unless the \
                 assignment asks for it; checks of what you touched are fine."
            .to_owned(),
        Some(cwd) => isolation::boundary(cwd),
    });
    parts.push(guideline(schema));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Names of the tools of a child, in order (SESS-4, MEET-1, P-14g).
pub fn tools(agent: &Agent, may_delegate: bool, excluded: &[String]) -> Vec<String> {
    let is_own = |tool: &str| {
        !tool.starts_with("crew_") && ![TASK_TOOL, WAIT_TOOL, YIELD_TOOL, "todo"].contains(&tool)
    };
    let mut tools: Vec<String> = Vec::new();
    let listed = agent.definition.tools.iter().filter(|tool| is_own(tool));
    for tool in listed.cloned().chain(may_delegate.then(|| TASK_TOOL.to_owned())) {
        if !excluded.contains(&tool) && !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    if tools.iter().any(|tool| tool == TASK_TOOL || tool == "bash") {
        tools.push(WAIT_TOOL.to_owned());
    }
    tools.push(YIELD_TOOL.to_owned());
    tools
}

/// Whether a context file of the parent is handed on (TASK-SPAWN-4).
pub fn forwards(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    !name.eq_ignore_ascii_case("agents.md")
}

/// What the shell knows once the session is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The whole system prompt.
    pub system: String,
    /// Names of the granted tools.
    pub tools: Vec<String>,
    /// `provider/model-id`.
    pub model: String,
}

/// What else is needed to rebuild a child.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Its first user prompt.
    pub prompt: &'a str,
    /// Its agent.
    pub agent: &'a Agent,
    /// The schema that applies.
    pub schema: &'a OutputSchema,
    /// It works in a copy.
    pub is_isolated: bool,
}

/// The first record of the transcript (SESS-2, OBS-4).
pub fn record(made: &Made, origin: &Origin<'_>) -> Value {
    let spawns = match &origin.agent.spawns {
        None | Some(Spawns::Off) => json!(false),
        Some(Spawns::All) => json!("*"),
        Some(Spawns::Only(names)) => json!(names),
    };
    let has_schema = origin.schema.source != SchemaSource::None;
    json!({
        "system": made.system,
        "prompt": origin.prompt,
        "tools": made.tools,
        "agent": origin.agent.name(),
        "model": made.model,
        "modelRole": null,
        "spawns": spawns,
        "schema": origin.schema.schema(),
        "schemaMode": has_schema.then(|| origin.schema.mode.word()),
        "readOnly": false,
        "restricted": false,
        "isolated": origin.is_isolated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::general;
    use crew_base::definition::Definition;
    use crew_cycle::schema::SchemaMode;
    use std::sync::Arc;

    fn agent(tools: &[&str]) -> Agent {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let prompt = "ROLE".to_owned();
        let definition = Definition { tools, prompt, ..(*general().definition).clone() };
        Agent::plain(Arc::new(definition))
    }

    // SESS-6; task.md 12 row 95.
    #[test]
    fn the_prompt_is_a_line_and_the_assignment() {
        let text = prompt("  \n/clear everything\n\n  indented \n ");
        let (head, rest) = text.split_once("\n\n").unwrap();
        assert!(!head.is_empty() && !head.contains('\n'));
        assert_eq!(rest, "/clear everything\n\n  indented");
    }

    // SESS-7.
    #[test]
    fn the_parts_stand_in_their_order() {
        let value = json!({"type": "object", "properties": {"alpha_field": {}}});
        let schema = OutputSchema::new(SchemaSource::Caller, SchemaMode::Permissive, &value);
        let text = part(&agent(&[]), Some("SHARED"), None, &schema);
        let places: Vec<_> =
            ["ROLE", "SHARED", "larger job", "whole project", "`yield`", "alpha_field"]
                .iter()
                .map(|word| text.find(word).expect(word))
                .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("SHARED").count(), 1);
        let isolated = part(&agent(&[]), None, Some("/copy/x"), &OutputSchema::none());
        assert!(isolated.contains("/copy/x") && !isolated.contains("whole project"));
    }

    // SESS-4, MEET-1; task.md 12 row 14.
    #[test]
    fn tools_follow_the_list() {
        let check = |listed: &[&str], delegates: bool, expected: &[&str]| {
            assert_eq!(tools(&agent(listed), delegates, &[]), expected);
        };
        check(&["read", "bash"], false, &["read", "bash", "wait", "yield"]);
        check(&["read", "ls", "crew_spawn", "crew_report"], false, &["read", "ls", "yield"]);
        check(&[], false, &["yield"]);
        check(&["read", "task", "todo"], false, &["read", "yield"]);
        check(&["read"], true, &["read", "task", "wait", "yield"]);
        let excluded = ["bash".to_owned()];
        assert_eq!(tools(&agent(&["read", "bash"]), false, &excluded), ["read", "yield"]);
    }

    // TASK-SPAWN-4; task.md 12 row 13.
    #[test]
    fn instructions_of_the_parent_are_not_handed_on() {
        for (path, expected) in [
            ("x/AGENTS.md", false),
            ("agents.MD", false),
            ("y/notes.md", true),
            ("x/MYAGENTS.md", true),
        ] {
            assert_eq!(forwards(path), expected, "{path}");
        }
    }

    // SESS-2, OBS-4.
    #[test]
    fn the_first_record_has_every_key() {
        let made =
            Made { system: "S".into(), tools: vec!["yield".into()], model: "fake/m1".into() };
        let agent = Agent { spawns: Some(Spawns::All), ..agent(&[]) };
        let schema =
            OutputSchema::new(SchemaSource::Caller, SchemaMode::Strict, &json!({"type": "object"}));
        let origin = Origin { prompt: "P", agent: &agent, schema: &schema, is_isolated: false };
        let data = record(&made, &origin);
        let keys: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "system",
            "prompt",
            "tools",
            "agent",
            "model",
            "modelRole",
            "spawns",
            "schema",
            "schemaMode",
            "readOnly",
            "restricted",
            "isolated",
        ];
        assert_eq!(keys, expected);
        assert_eq!((&data["spawns"], &data["schemaMode"]), (&json!("*"), &json!("strict")));
    }
}
