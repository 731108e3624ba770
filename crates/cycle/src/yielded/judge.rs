//! The verdict on one call of `yield` (YIELD-4 to YIELD-12, OBS-14).

use serde_json::{Map, Value};

use crew_base::json::Raw;
use crew_base::limits::{YIELD_CORRECTIONS_MAX, YIELD_EMPTIES_MAX};
use crew_base::text::is_blank;

use super::{Item, Status, Yields};
use crate::schema::{Issue, Judged, SchemaMode};

/// What becomes of a call; each carries the text for the child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not recorded; the child can correct it.
    Refused(String),
    /// A section; the child goes on.
    Part(String),
    /// The end.
    Terminal(String),
}

/// The arguments after YIELD-1.
struct Call {
    kind: Option<Value>,
    data: Option<Value>,
    error: Option<String>,
}

impl Yields {
    /// Judges a call; `is_latched` makes every accepted one terminal (EXEC-9).
    pub fn call(&mut self, arguments: &Raw, is_latched: bool) -> Verdict {
        let verdict = match read(arguments) {
            Ok(call) => self.judge(call),
            Err(text) => self.refuse(text),
        };
        match verdict {
            Verdict::Part(text) if is_latched => {
                self.is_accepted = true;
                Verdict::Terminal(text)
            }
            Verdict::Refused(_) | Verdict::Part(_) | Verdict::Terminal(_) => verdict,
        }
    }

    fn judge(&mut self, call: Call) -> Verdict {
        if call.data.is_some() && call.error.is_some() {
            return self.refuse(
                "give either `data` or `error`: a result and a reason for giving up exclude each \
                 other"
                    .to_owned(),
            );
        }
        if let Some(error) = call.error {
            return self.give_up(Some(error), call.kind);
        }
        let has_sections = self.items.iter().any(|item| item.labels().is_some());
        let labels = call.kind.as_ref().and_then(Value::as_array).map(|labels| {
            labels.iter().filter_map(|label| label.as_str().map(str::to_owned)).collect::<Vec<_>>()
        });
        if let (Some(labels), Some(known)) = (&labels, self.schema.closed_labels())
            && let Some(unknown) = labels.iter().find(|label| !known.contains(label))
        {
            let known = known.join(", ");
            return self
                .refuse(format!("there is no section `{unknown}`; the sections are: {known}"));
        }
        match (call.data, labels) {
            (Some(data), Some(labels)) => self.section(labels, data, None),
            (Some(data), None) => self.terminal(call.kind, data),
            (None, labels) => self.without_data(call.kind, labels, has_sections),
        }
    }

    fn refuse(&mut self, text: String) -> Verdict {
        self.empties = 0;
        Verdict::Refused(text)
    }

    fn give_up(&mut self, error: Option<String>, kind: Option<Value>) -> Verdict {
        self.accept(Item {
            data: None,
            status: Status::Aborted,
            error,
            kind,
            report: None,
            is_overridden: false,
        });
        self.is_accepted = true;
        Verdict::Terminal("Noted: the assignment is given up.".to_owned())
    }

    fn accept(&mut self, item: Item) {
        self.empties = 0;
        self.corrections = 0;
        self.items.push(item);
    }

    /// Data-less calls (YIELD-6 to YIELD-8).
    fn without_data(
        &mut self,
        kind: Option<Value>,
        labels: Option<Vec<String>>,
        has_sections: bool,
    ) -> Verdict {
        let closes_sections = kind.is_some() && labels.is_none() && has_sections;
        if kind.is_some() && labels.is_none() && !has_sections && self.schema.is_usable() {
            return self.refuse(
                "`data` is missing: this assignment asks for data of a given shape, and prose \
                 cannot stand for it"
                    .to_owned(),
            );
        }
        let report = self.report.clone();
        match (kind.is_some(), report) {
            (true, report) if closes_sections => self.close(kind, report),
            (true, Some(report)) => match labels {
                Some(labels) => self.section(labels, Value::String(report.clone()), Some(report)),
                None => self.close(kind, Some(report)),
            },
            (true | false, _) => self.refuse_empty(),
        }
    }

    fn close(&mut self, kind: Option<Value>, report: Option<String>) -> Verdict {
        let status = Status::Success;
        self.accept(Item { data: None, status, error: None, kind, report, is_overridden: false });
        self.is_accepted = true;
        Verdict::Terminal(DONE.to_owned())
    }

    fn refuse_empty(&mut self) -> Verdict {
        if self.empties >= YIELD_EMPTIES_MAX {
            return self.give_up(None, None);
        }
        self.empties += 1;
        let left = YIELD_EMPTIES_MAX - self.empties;
        Verdict::Refused(format!(
            "nothing was handed in: put the result into `data`, or write it as text and call \
             `yield` with a `type`; {left} further attempts"
        ))
    }

    fn section(&mut self, labels: Vec<String>, data: Value, report: Option<String>) -> Verdict {
        let mut data = data;
        let mut issues = Vec::new();
        for label in &labels {
            let judged = self.schema.judge_section(label, &data);
            if judged.issues.is_empty() {
                data = judged.data;
            } else {
                issues.extend(judged.issues);
            }
        }
        let kind = Some(Value::Array(labels.iter().cloned().map(Value::String).collect()));
        let (item, warning) = match self.checked(kind, Judged { data, issues }) {
            Ok(checked) => checked,
            Err(refused) => return refused,
        };
        self.accept(Item { report, ..item });
        let names = labels.join(", ");
        Verdict::Part(warning.unwrap_or_else(|| {
            format!(
                "Recorded under {names}. Go on, and end with a `yield` without a list in `type`."
            )
        }))
    }

    fn terminal(&mut self, kind: Option<Value>, data: Value) -> Verdict {
        let judged = self.schema.judge(&data);
        let (item, warning) = match self.checked(kind, judged) {
            Ok(checked) => checked,
            Err(refused) => return refused,
        };
        self.accept(item);
        self.is_accepted = true;
        Verdict::Terminal(warning.unwrap_or_else(|| DONE.to_owned()))
    }

    /// The item for checked data, or the refusal; the fourth failure in a row
    /// is taken with a mark (YIELD-12).
    fn checked(
        &mut self,
        kind: Option<Value>,
        judged: Judged,
    ) -> Result<(Item, Option<String>), Verdict> {
        let is_overridden = !judged.issues.is_empty();
        if is_overridden && self.corrections < YIELD_CORRECTIONS_MAX {
            self.corrections += 1;
            let left = YIELD_CORRECTIONS_MAX - self.corrections;
            return Err(self.refuse(correction(&judged.issues, left)));
        }
        let warning = is_overridden.then_some(match self.schema.mode {
            SchemaMode::Permissive => {
                "Recorded, although the schema is not satisfied: the corrections are used up."
            }
            SchemaMode::Strict => {
                "Recorded, but it does not satisfy the schema and will not be accepted: the \
                 corrections are used up."
            }
        });
        let item = Item {
            data: Some(judged.data),
            status: Status::Success,
            error: None,
            kind,
            report: None,
            is_overridden,
        };
        Ok((item, warning.map(str::to_owned)))
    }
}

const DONE: &str = "Recorded.";

fn correction(issues: &[Issue], left: u32) -> String {
    let lines: Vec<_> =
        issues.iter().map(|issue| format!("- {}: {}", issue.path, issue.message)).collect();
    format!("the data do not satisfy the schema ({left} further attempts):\n{}", lines.join("\n"))
}

/// Reads the arguments as the model sent them (YIELD-1).
fn read(arguments: &Raw) -> Result<Call, String> {
    let Value::Object(mut fields) = arguments.value() else {
        return Err("the arguments must be an object".to_owned());
    };
    fields.retain(|_, value| !value.is_null());
    if let Some(unknown) =
        fields.keys().find(|key| !["type", "data", "error"].contains(&key.as_str()))
    {
        return Err(format!(
            "unknown argument `{unknown}`: there are `type`, `data` and `error`; the result itself \
             goes into `data`"
        ));
    }
    let error = match fields.remove("error") {
        None => None,
        Some(Value::String(text)) => Some(text).filter(|text| !is_blank(text)),
        Some(_) => return Err("`error` must be a text".to_owned()),
    };
    Ok(Call { kind: kind(&mut fields)?, data: fields.remove("data"), error })
}

fn kind(fields: &mut Map<String, Value>) -> Result<Option<Value>, String> {
    let Some(kind) = fields.remove("type") else { return Ok(None) };
    let is_list = kind.as_array().is_some_and(|labels| {
        let is_label = |label: &Value| label.as_str().is_some_and(|text| !is_blank(text));
        !labels.is_empty() && labels.iter().all(is_label)
    });
    if is_list || kind.is_string() {
        return Ok(Some(kind));
    }
    Err("`type` must be a text, or a list of at least one section label".to_owned())
}

#[cfg(test)]
mod tests;
