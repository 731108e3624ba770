//! The judgement of one cycle (`crew.md` RES-7 to RES-20).

use std::collections::BTreeMap;

use crew_base::id::CallId;
use crew_base::limits::EXCERPT_CHARS_MAX;
use crew_base::message::{AssistantMessage, Message, StopReason};
use crew_base::session::RunEnd;
use crew_base::text::{excerpt, is_blank};

use crate::report::{REPORT_TOOL, Report};

/// One prompt cycle. It begins with a prompt and is fed every message the
/// child records; compaction cannot disturb it, because it looks at events and
/// never at the history (RES-11).
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    last: Option<Ending>,
    followed_up: bool,
    facts: Facts,
}

/// What is left of a cycle that ended without a result (`product.md` P-11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The last text the child wrote, if any.
    pub last_text: Option<String>,
    /// Tools that ran.
    pub tools_run: u32,
}

/// The last assistant message and the results that answer it.
#[derive(Clone, Debug)]
struct Ending {
    stop_reason: StopReason,
    error: Option<String>,
    calls: Vec<(CallId, String)>,
    report: Option<Report>,
    results: BTreeMap<CallId, bool>,
}

/// What follows when the prompt call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The report stands.
    Accepted(Report),
    /// The child is asked once more; the same cycle goes on.
    FollowUp,
    /// The subagent ends as `error` with this text.
    Failed(String),
    /// The child's run was aborted elsewhere, with this reason.
    Aborted(String),
}

impl Cycle {
    /// Takes a message that the child recorded in this cycle.
    pub fn message(&mut self, message: &Message) {
        match message {
            Message::Assistant(answer) => self.answer(answer),
            Message::ToolResult(result) => {
                self.facts.tools_run += u32::from(result.tool_name != REPORT_TOOL);
                if let Some(last) = &mut self.last {
                    last.results.insert(result.tool_call_id.clone(), result.is_error);
                }
            }
            Message::System(_)
            | Message::User(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => {}
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) {
        let text = answer.text();
        if !is_blank(&text) {
            self.facts.last_text = Some(text);
        }
        let report = answer.tool_calls().find(|call| call.name == REPORT_TOOL);
        self.last = Some(Ending {
            stop_reason: answer.stop_reason,
            error: answer.error_message.clone(),
            calls: answer.tool_calls().map(|call| (call.id.clone(), call.name.clone())).collect(),
            report: report.and_then(|call| Report::read(&call.arguments).ok()),
            results: BTreeMap::new(),
        });
    }

    /// What was done so far.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Judges the state at the end of the prompt call, which ended so. An
    /// abort between two answers leaves none that says so (RUN-11).
    pub fn judge(&mut self, end: &RunEnd) -> Verdict {
        let last_error = self.last.as_ref().and_then(|last| last.error.as_deref());
        let stop_reason = self.last.as_ref().map(|last| last.stop_reason);
        match (end, stop_reason) {
            (RunEnd::Failed(error), _) => return Verdict::Failed(self.told(error)),
            (RunEnd::Aborted, _) | (RunEnd::Ended, Some(StopReason::Aborted)) => {
                let was_cut = stop_reason == Some(StopReason::Aborted);
                let reason = last_error.filter(|_| was_cut).unwrap_or("the run was aborted");
                return Verdict::Aborted(reason.to_owned());
            }
            (RunEnd::Ended, Some(StopReason::Error)) => {
                let error = last_error.unwrap_or("the model request failed");
                return Verdict::Failed(self.told(error));
            }
            (
                RunEnd::Ended,
                None
                | Some(
                    StopReason::Stop
                    | StopReason::Length
                    | StopReason::ToolUse
                    | StopReason::Pending
                    | StopReason::Deferred,
                ),
            ) => {}
        }
        if let Some(report) = self.last.as_ref().and_then(Ending::accepted) {
            return Verdict::Accepted(report);
        }
        if std::mem::replace(&mut self.followed_up, true) {
            return Verdict::Failed(self.told(
                "the subagent ended twice without a valid `crew_report` call: its result \
                 contract was not met",
            ));
        }
        Verdict::FollowUp
    }

    /// The error text with how far the child came (RES-13).
    pub fn told(&self, error: &str) -> String {
        match &self.facts.last_text {
            None => error.to_owned(),
            Some(text) => {
                format!("{error}\nIts last text was: {}", excerpt(text, EXCERPT_CHARS_MAX))
            }
        }
    }
}

impl Ending {
    /// The report of a message that holds exactly one call, to `crew_report`,
    /// with a good result (RES-8, RES-10).
    fn accepted(&self) -> Option<Report> {
        let [(id, name)] = self.calls.as_slice() else {
            return None;
        };
        let is_good = name == REPORT_TOOL && self.results.get(id) == Some(&false);
        if is_good { self.report.clone() } else { None }
    }
}
