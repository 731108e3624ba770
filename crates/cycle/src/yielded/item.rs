//! One accepted call of `yield` (YIELD-13).

use serde_json::{Map, Value, json};

/// An accepted call, kept for the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What was handed in, after decoding.
    pub data: Option<Value>,
    /// Whether it is a result or a give-up.
    pub status: Status,
    /// Why the child gave up, in its words.
    pub error: Option<String>,
    /// `type` as the child sent it: a text or a list of labels.
    pub kind: Option<Value>,
    /// The last report text was taken as the value (YIELD-6).
    pub report: Option<String>,
    /// Accepted although the schema is not satisfied (YIELD-12).
    pub is_overridden: bool,
}

/// Result or give-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Something was handed in.
    Success,
    /// The child gave up.
    Aborted,
}

impl Item {
    /// The labels of a section; nothing for a terminal item (YIELD-4).
    pub fn labels(&self) -> Option<Vec<&str>> {
        if self.status == Status::Aborted {
            return None;
        }
        let labels = self.kind.as_ref()?.as_array()?;
        Some(labels.iter().filter_map(Value::as_str).collect())
    }

    /// The reason of a give-up (A-YIELD).
    pub fn reason(&self) -> &str {
        self.error.as_deref().unwrap_or("the child gave up without a reason")
    }

    /// The item as records carry it.
    pub fn json(&self) -> Value {
        let mut fields = Map::new();
        if let Some(data) = &self.data {
            fields.insert("data".to_owned(), data.clone());
        }
        let status = match self.status {
            Status::Success => "success",
            Status::Aborted => "aborted",
        };
        fields.insert("status".to_owned(), json!(status));
        if let Some(error) = &self.error {
            fields.insert("error".to_owned(), json!(error));
        }
        if let Some(kind) = &self.kind {
            fields.insert("type".to_owned(), kind.clone());
        }
        if self.report.is_some() {
            fields.insert("useLastTurn".to_owned(), json!(true));
        }
        if self.is_overridden {
            fields.insert("schemaOverridden".to_owned(), json!(true));
        }
        Value::Object(fields)
    }
}
