//! The `crew_report` contract: the tool, its arguments, the result value
//! (`crew.md` RES-1 to RES-6, TOOL-39 to TOOL-41).

use serde::Serialize;
use serde_json::{Map, Value, json};

use crew_base::json::Raw;
use crew_base::text::is_blank;
use crew_base::tool::{ToolDefinition, ToolOutcome};

/// Name of the tool that ends a cycle.
pub const REPORT_TOOL: &str = "crew_report";

/// An accepted result, byte for byte as the child gave it (RES-6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Report {
    /// The assignment is done.
    Completed {
        /// The whole answer.
        report: String,
    },
    /// The owner must decide or act.
    NeedsInput {
        /// The answer so far.
        report: String,
        /// What is needed.
        needs: String,
    },
}

impl Report {
    /// Reads and checks the arguments as the model sent them; the error names
    /// the field (RES-1 to RES-5).
    pub fn read(arguments: &Raw) -> Result<Report, String> {
        let Value::Object(fields) = arguments.value() else {
            return Err("the arguments must be an object".to_owned());
        };
        if let Some(unknown) =
            fields.keys().find(|key| !["outcome", "report", "needs"].contains(&key.as_str()))
        {
            return Err(format!("unknown field `{unknown}`"));
        }
        let report = required(&fields, "report")?;
        match fields.get("outcome").and_then(Value::as_str) {
            Some("completed") if fields.contains_key("needs") => {
                Err("`needs` must be left out when `outcome` is `completed`".to_owned())
            }
            Some("completed") => Ok(Report::Completed { report }),
            Some("needs_input") => {
                Ok(Report::NeedsInput { report, needs: required(&fields, "needs")? })
            }
            _ => Err("`outcome` must be `completed` or `needs_input`".to_owned()),
        }
    }
}

fn required(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    match fields.get(name).and_then(Value::as_str) {
        Some(text) if !is_blank(text) => Ok(text.to_owned()),
        _ => Err(format!("`{name}` must be a text that is not blank")),
    }
}

/// Runs the tool: an acknowledgement that ends the run, or an error that the
/// child can correct (TOOL-39, TOOL-40). It settles nothing (TOOL-41).
pub fn run(arguments: &Raw) -> ToolOutcome {
    match Report::read(arguments) {
        Ok(_) => ToolOutcome { terminate: true, ..ToolOutcome::text("{}") },
        Err(error) => ToolOutcome::error(json!({ "error": error }).to_string()),
    }
}

/// The tool as children see it. The schema is a union, so that no provider has
/// to send a null for `needs` (`crew.md` OP-4).
pub fn definition() -> ToolDefinition {
    let text =
        |description: &str| json!({"type": "string", "minLength": 1, "description": description});
    let parameters = json!({
        "type": "object",
        "properties": {
            "outcome": {"type": "string", "enum": ["completed", "needs_input"],
                "description": "`completed` when the assignment is done; `needs_input` only when a decision or an action of the owner is missing."},
            "report": text("The whole answer in the form your role asks for; Markdown is fine. Nothing outside it is passed on."),
            "needs": text("Only with `needs_input`: exactly what the owner has to decide or do. Leave it out otherwise."),
        },
        "required": ["outcome", "report"],
        "additionalProperties": false,
        "anyOf": [
            {"properties": {"outcome": {"const": "completed"}}, "required": ["outcome", "report"]},
            {"properties": {"outcome": {"const": "needs_input"}}, "required": ["outcome", "report", "needs"]},
        ],
    });
    ToolDefinition {
        name: REPORT_TOOL.to_owned(),
        description: "Hands your result to the session that gave you this assignment and ends \
                      your turn. Call it once at the end of every prompt, alone in its answer, \
                      with the complete result in `report`."
            .to_owned(),
        parameters: Raw::of(&parameters),
        constrained_sampling: None,
    }
}

/// The rule in the child's system prompt (RES-21).
pub const GUIDELINE: &str = "End every prompt with exactly one `crew_report` call and nothing \
beside it. Put the whole answer into `report`: text outside of it reaches nobody. Use \
`needs_input` only when the owner must decide or act before you can go on, and state that in \
`needs`. Do not write another summary after it.";

/// The one follow-up of a cycle that ended without a report (RES-14).
pub const FOLLOW_UP: &str = "You stopped without handing in a result. Call `crew_report` now, \
alone and with valid arguments; put everything that your assignment asks for into `report`.";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: Value, expected: Result<&str, &str>) {
        let read = Report::read(&Raw::of(&arguments));
        match expected {
            Ok(json) => assert_eq!(serde_json::to_string(&read.unwrap()).unwrap(), json),
            Err(part) => {
                let error = read.unwrap_err();
                assert!(error.contains(part), "{error}");
                assert!(run(&Raw::of(&arguments)).is_error);
            }
        }
    }

    // crew.md 21 rows 22 to 25, 35.
    #[test]
    fn a_report_is_taken_whole_or_refused_by_field() {
        check(
            json!({"outcome": "completed", "report": "  | a |\n"}),
            Ok(r#"{"outcome":"completed","report":"  | a |\n"}"#),
        );
        check(
            json!({"needs": "?", "report": "r", "outcome": "needs_input"}),
            Ok(r#"{"outcome":"needs_input","report":"r","needs":"?"}"#),
        );
        check(json!({"outcome": "completed", "report": " \n"}), Err("`report`"));
        check(json!({"outcome": "completed", "report": "r", "needs": ""}), Err("`needs`"));
        check(json!({"outcome": "completed", "report": "r", "needs": null}), Err("`needs`"));
        check(json!({"outcome": "needs_input", "report": "r"}), Err("`needs`"));
        check(json!({"outcome": "needs_input", "report": "r", "needs": "\t"}), Err("`needs`"));
        check(json!({"outcome": "done", "report": "r"}), Err("`outcome`"));
        check(json!({"outcome": "completed", "report": "r", "summary": "s"}), Err("`summary`"));
        // faults.md C025.
        check(json!({}), Err("`report`"));
        check(json!(null), Err("object"));
    }

    #[test]
    fn a_good_report_asks_to_end_the_run() {
        let outcome = run(&Raw::of(&json!({"outcome": "completed", "report": "r"})));
        assert_eq!((outcome.terminate, outcome.joined_text().as_str()), (true, "{}"));
    }
}
