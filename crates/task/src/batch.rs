//! Several results in one tool result (DELIV-9 to DELIV-11, OBS-5).

use serde_json::{Map, Value, json};

use crew_base::json::Raw;
use crew_base::message::Usage;
use crew_base::tool::ToolOutcome;

use crate::envelope::{envelope, pointer};
use crate::record::{Record, usage_json};

/// What became of one item.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// It ran, well or not.
    Ran(Box<Record>),
    /// It never started; the text is its line.
    NeverStarted(String),
    /// The facade failed around it. A record only if the child had settled
    /// (DELIV-10); its `error` is set.
    Broken {
        /// What failed.
        error: String,
        /// The child's record.
        record: Option<Box<Record>>,
    },
}

/// The tool result of a call and what its children used.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// For the parent's model and for faces.
    pub outcome: ToolOutcome,
    /// To stand on the tool result (OBS-5).
    pub usage: Option<Usage>,
}

/// What of the call goes into the details.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Folder of the project's agents.
    pub project_agents: Option<String>,
    /// From acceptance to the last ending.
    pub duration_ms: u64,
    /// The last progress snapshot.
    pub progress: Option<Value>,
}

/// Merges items in input order.
pub fn merge(items: &[Settled], frame: &Frame) -> Reply {
    let texts: Vec<_> = items.iter().map(text).collect();
    let records: Vec<&Record> = items.iter().filter_map(record).collect();
    let mut usage: Option<Usage> = None;
    for used in records.iter().filter_map(|record| record.usage.as_ref()) {
        usage.get_or_insert_default().add(used);
    }
    let mut details = Map::new();
    let mut add = |name: &str, value: Value| drop(details.insert(name.to_owned(), value));
    add("projectAgentsDir", json!(frame.project_agents));
    add("results", records.iter().map(|record| record.json()).collect());
    add("totalDurationMs", json!(frame.duration_ms));
    if let Some(usage) = &usage {
        add("usage", usage_json(usage));
    }
    let paths: Vec<_> = records.iter().filter_map(|record| record.output_path.as_deref()).collect();
    if !paths.is_empty() {
        add("outputPaths", json!(paths));
    }
    if let Some(progress) = &frame.progress {
        add("progress", progress.clone());
    }
    let is_error = items.iter().any(|item| matches!(item, Settled::Broken { .. }));
    let details = Some(Raw::of(&Value::Object(details)));
    let outcome = ToolOutcome { details, is_error, ..ToolOutcome::text(texts.join("\n\n")) };
    Reply { outcome, usage }
}

/// A call that was refused at dispatch (DISP-11).
pub fn refusal(text: String, project_agents: Option<&str>) -> Reply {
    let details = json!({"projectAgentsDir": project_agents, "results": [], "totalDurationMs": 0});
    let details = Some(Raw::of(&details));
    let outcome = ToolOutcome { details, ..ToolOutcome::error(text) };
    Reply { outcome, usage: None }
}

fn record(item: &Settled) -> Option<&Record> {
    match item {
        Settled::Ran(record) => Some(record),
        Settled::NeverStarted(_) => None,
        Settled::Broken { record, .. } => record.as_deref(),
    }
}

fn text(item: &Settled) -> String {
    match item {
        Settled::Ran(record) => envelope(record),
        Settled::NeverStarted(line) => line.clone(),
        Settled::Broken { error, record: None } => error.clone(),
        Settled::Broken { error, record: Some(record) } => {
            let reason = if record.stderr.is_empty() {
                String::new()
            } else {
                format!(" ({})", record.stderr)
            };
            let place = record.output_path.as_ref();
            let place = place.map(|_| format!(" Its output: {}", pointer(&record.id)));
            let exit = record.exit_code;
            format!(
                "{error}\nThe child `{}` had ended with exit {exit}{reason}.{}",
                record.id,
                place.unwrap_or_default()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(index: usize, id: &str) -> Settled {
        let usage = Usage { input: 10, output: 1, ..Usage::default() };
        Settled::Ran(Box::new(Record {
            index,
            id: id.into(),
            output: "x".into(),
            usage: Some(usage),
            output_path: Some(format!("/s/{id}.md")),
            ..Record::default()
        }))
    }

    fn details(reply: &Reply) -> Value {
        reply.outcome.details.as_ref().unwrap().value()
    }

    // DELIV-9, OBS-5; task.md 12 row 22.
    #[test]
    fn envelopes_keep_input_order_and_usage_is_summed() {
        let items = [ran(0, "a"), Settled::NeverStarted("`b` never started".into()), ran(2, "c")];
        let reply = merge(&items, &Frame::default());
        let text = reply.outcome.joined_text();
        assert_eq!(text.matches("</task-result>\n\n").count(), 1);
        assert!(text.contains("\n\n`b` never started\n\n<task-result id=\"c\""), "{text}");
        let details = details(&reply);
        assert_eq!(details["results"][1]["index"], 2);
        assert_eq!(details["usage"]["input"], 20);
        assert_eq!(details["outputPaths"], json!(["/s/a.md", "/s/c.md"]));
        assert_eq!((reply.usage.unwrap().output, reply.outcome.is_error), (2, false));
    }

    // DISP-12, DELIV-10, DELIV-11; task.md 12 rows 73, 74.
    #[test]
    fn a_facade_failure_flags_the_result_and_keeps_the_record() {
        let Settled::Ran(record) = ran(0, "kid") else { panic!() };
        let record = Box::new(Record { error: Some("merging failed".into()), ..*record });
        let broken = Settled::Broken { error: "merging failed".into(), record: Some(record) };
        let reply = merge(&[broken], &Frame::default());
        let text = reply.outcome.joined_text();
        assert!(reply.outcome.is_error);
        for part in ["merging failed", "exit 0", "agent://kid"] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert_eq!(details(&reply)["results"][0]["error"], "merging failed");
        let early = Settled::Broken { error: "no folder".into(), record: None };
        let reply = merge(&[early], &Frame::default());
        assert!(reply.outcome.is_error);
        assert_eq!(details(&reply)["results"], json!([]));
    }

    // DISP-11.
    #[test]
    fn a_refusal_has_no_records() {
        let reply = refusal("no".into(), None);
        assert!(reply.outcome.is_error);
        assert_eq!(details(&reply)["results"], json!([]));
    }
}
