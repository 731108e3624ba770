//! The record of one child (`task.md` 1.2) and its one status (OP-15).

use serde_json::{Map, Value, json};

use crew_base::message::Usage;

use crate::artifact::Meta;
use crate::finalise::Structured;
use crate::isolation::Integration;

/// A child result record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Position in the call.
    pub index: usize,
    /// Child id.
    pub id: String,
    /// Agent name.
    pub agent: String,
    /// `project`, `user` or `bundled`.
    pub agent_source: String,
    /// The user prompt.
    pub task: String,
    /// The trimmed assignment.
    pub assignment: String,
    /// 0 or 1.
    pub exit_code: i32,
    /// After tail truncation.
    pub output: String,
    /// Reason or warning.
    pub stderr: String,
    /// Tail truncation happened.
    pub truncated: bool,
    /// Absent without a schema.
    pub structured: Option<Structured>,
    /// From the start of the child to its end.
    pub duration_ms: u64,
    /// Input, output and cache writes.
    pub tokens: u64,
    /// Completed answers.
    pub requests: u32,
    /// Latest context size.
    pub context_tokens: Option<u64>,
    /// The model's window.
    pub context_window: Option<u64>,
    /// `provider/model-id` that was used.
    pub resolved_model: Option<String>,
    /// The selected model was not usable (TASK-SPAWN-13).
    pub model_is_fallback: bool,
    /// Thinking level that was used.
    pub thinking: Option<String>,
    /// Set by a facade or isolation failure; with exit 1 a copy of `stderr`.
    pub error: Option<String>,
    /// FINAL-15.
    pub aborted: bool,
    /// Present when aborted.
    pub abort_reason: Option<String>,
    /// Absent if none was reported.
    pub usage: Option<Usage>,
    /// Present only when the artifact was written.
    pub output_path: Option<String>,
    /// Of the whole text; present only when the artifact was written.
    pub output_meta: Option<Meta>,
    /// It worked in a copy.
    pub isolated: bool,
    /// What came of its changes.
    pub integration: Option<Integration>,
    /// Accepted calls of `yield`, as recorded.
    pub yields: Vec<Value>,
    /// Retries of a request were given up: how many there were, and why.
    pub retry_failure: Option<(u32, String)>,
}

/// The one status of a record (DELIV-2, OP-7, OP-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// An answer of an admissible shape was delivered.
    Completed,
    /// It was ended or gave up.
    Cancelled,
    /// Its result is good, its changes were not brought back.
    MergeFailed,
    /// It failed with this exit.
    Failed(i32),
}

impl Status {
    /// The words in the envelope.
    pub fn words(self) -> String {
        match self {
            Status::Completed => "completed".to_owned(),
            Status::Cancelled => "cancelled".to_owned(),
            Status::MergeFailed => "merge failed".to_owned(),
            Status::Failed(exit) => format!("failed (exit {exit})"),
        }
    }
}

impl Record {
    /// `aborted` is looked at before the exit.
    pub fn status(&self) -> Status {
        let changes = self.integration.as_ref().map(Integration::changes_applied);
        if self.aborted {
            Status::Cancelled
        } else if self.exit_code != 0 {
            Status::Failed(self.exit_code)
        } else if self.error.is_some() || changes == Some(Some(false)) {
            Status::MergeFailed
        } else {
            Status::Completed
        }
    }

    /// As details carry it (OBS-5).
    pub fn json(&self) -> Value {
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        add("index", json!(self.index));
        add("id", json!(self.id));
        add("agent", json!(self.agent));
        add("agentSource", json!(self.agent_source));
        add("task", json!(self.task));
        add("assignment", json!(self.assignment));
        add("exitCode", json!(self.exit_code));
        add("output", json!(self.output));
        add("stderr", json!(self.stderr));
        add("truncated", json!(self.truncated));
        if let Some(structured) = &self.structured {
            add("structuredOutput", structured.json());
        }
        add("durationMs", json!(self.duration_ms));
        add("tokens", json!(self.tokens));
        add("requests", json!(self.requests));
        add_some(&mut add, "contextTokens", self.context_tokens.map(|n| json!(n)));
        add_some(&mut add, "contextWindow", self.context_window.map(|n| json!(n)));
        add_some(&mut add, "resolvedModel", self.resolved_model.as_ref().map(|m| json!(m)));
        add_some(&mut add, "resolvedThinkingLevel", self.thinking.as_ref().map(|l| json!(l)));
        add_some(&mut add, "resolvedModelIsFallback", self.model_is_fallback.then(|| json!(true)));
        add_some(&mut add, "error", self.error.as_ref().map(|error| json!(error)));
        add("aborted", json!(self.aborted));
        add_some(&mut add, "abortReason", self.abort_reason.as_ref().map(|reason| json!(reason)));
        add_some(&mut add, "usage", self.usage.as_ref().map(usage_json));
        add_some(&mut add, "outputPath", self.output_path.as_ref().map(|path| json!(path)));
        let meta = |meta: &Meta| json!({"lineCount": meta.lines, "charCount": meta.chars});
        add_some(&mut add, "outputMeta", self.output_meta.as_ref().map(meta));
        add("isolated", json!(self.isolated));
        if let Some(integration) = &self.integration {
            add_integration(&mut add, integration);
        }
        if !self.yields.is_empty() {
            add("extractedToolData", json!({"yield": self.yields}));
        }
        let retry =
            |(attempt, error): &(u32, String)| json!({"attempt": attempt, "errorMessage": error});
        add_some(&mut add, "retryFailure", self.retry_failure.as_ref().map(retry));
        Value::Object(fields)
    }
}

fn add_some(add: &mut impl FnMut(&str, Value), name: &str, value: Option<Value>) {
    if let Some(value) = value {
        add(name, value);
    }
}

fn add_integration(add: &mut impl FnMut(&str, Value), integration: &Integration) {
    add("hasRootChanges", json!(integration.has_root_changes));
    add_some(add, "patchPath", integration.patch.as_ref().map(|path| json!(path)));
    if let Some(branch) = &integration.branch {
        add("branchName", json!(branch.name));
        add("branchBaseSha", json!(branch.base));
    }
    if !integration.nested.is_empty() {
        add("nestedPatchPaths", json!(integration.nested));
    }
    add_some(add, "changesApplied", integration.changes_applied().map(|applied| json!(applied)));
}

/// Usage in the shape of `host.md` 2.7.7.
pub fn usage_json(usage: &Usage) -> Value {
    serde_json::to_value(usage).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Merged;

    // DELIV-2, OP-7, OP-15.
    #[test]
    fn an_abort_is_looked_at_before_the_exit() {
        let check = |record: Record, words: &str| assert_eq!(record.status().words(), words);
        let conflict =
            Integration { merged: Merged::Conflict("x".into()), ..Integration::default() };
        check(Record::default(), "completed");
        check(Record { aborted: true, ..Record::default() }, "cancelled");
        check(Record { aborted: true, exit_code: 1, ..Record::default() }, "cancelled");
        check(
            Record { exit_code: 1, error: Some("e".into()), ..Record::default() },
            "failed (exit 1)",
        );
        check(Record { error: Some("capture".into()), ..Record::default() }, "merge failed");
        check(Record { integration: Some(conflict), ..Record::default() }, "merge failed");
    }

    // 1.2: absent fields are absent.
    #[test]
    fn fields_that_do_not_apply_are_left_out() {
        let bare = Record { id: "kid".into(), ..Record::default() }.json();
        for name in ["structuredOutput", "error", "abortReason", "outputPath", "usage", "patchPath"]
        {
            assert!(bare.get(name).is_none(), "{name}");
        }
        let meta = Some(Meta { lines: 1, chars: 2, bytes: 3 });
        let whole = Record {
            yields: vec![json!({"data": 1})],
            output_meta: meta,
            usage: Some(Usage::default()),
            ..Record::default()
        };
        let whole = whole.json();
        assert_eq!(whole["extractedToolData"]["yield"][0]["data"], 1);
        assert_eq!(whole["outputMeta"], json!({"lineCount": 1, "charCount": 2}));
        assert_eq!(whole["usage"]["cost"]["total"], 0);
    }
}
