//! What the tools of one subagent did: totals, failures and the latest rows.
//!
//! Owns the counting (`crew.md` ACT-1 to ACT-7). Must never keep raw arguments
//! or raw output: what a row holds went through `redaction` first. Read
//! `targets` for what a row says, `shell` for commands, `summary` for results.

mod redaction;
mod shell;
mod summary;
mod targets;

use std::collections::{BTreeMap, VecDeque};

use crew_base::id::CallId;
use crew_base::json::Raw;
use crew_base::limits::ACTIVITY_ROWS_MAX;
use crew_base::message::Block;
use crew_cycle::report::REPORT_TOOL;

pub use redaction::redact;
pub use shell::shell_summary;
pub use summary::{summary_at_end, summary_at_start};
pub use targets::target;

/// The tool activity of one subagent over all its cycles (`crew.md` ACT-1).
#[derive(Clone, Debug, Default)]
pub struct Activity {
    total: u64,
    failures: u64,
    rows: VecDeque<Row>,
    // Invariant: every started call ends exactly once (`style.md` 3), so this
    // holds no more than the calls of one running batch.
    active: BTreeMap<CallId, Active>,
}

/// One tool call as faces show it (`crew.md` ACT-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The call. Providers may use an id again once its call has ended.
    pub call: CallId,
    /// Shown name: `$` for `bash` (WID-8), `skill` for the reading of a skill,
    /// else the tool's name.
    pub name: String,
    /// What it works on, redacted, one line, maybe empty.
    pub target: String,
    /// How it stands.
    pub status: RowStatus,
    /// What came of it; only on `Done` rows (ACT-22).
    pub summary: Option<String>,
}

/// How a tool call stands; not a lifecycle status (`crew.md` ACT-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowStatus {
    /// Started, not ended.
    Running,
    /// Ended well.
    Done,
    /// Ended as an error.
    Error,
}

#[derive(Clone, Debug)]
struct Active {
    tool: String,
    summary: Option<String>,
}

impl Activity {
    /// Counts a call and appends its row; a call that is still active is only
    /// moved to the end (`crew.md` ACT-3, ACT-5). `home` is the user's home
    /// directory (ACT-14).
    pub fn start(&mut self, call: &CallId, tool: &str, arguments: &Raw, home: Option<&str>) {
        let active = Active { tool: tool.to_owned(), summary: summary_at_start(tool, arguments) };
        if self.active.insert(call.clone(), active).is_some() {
            self.rows.retain(|row| !row.is_running(call));
        } else {
            self.total += 1;
        }
        if tool == REPORT_TOOL {
            return;
        }
        let (name, target) = target(tool, arguments, home);
        self.rows.push_back(Row {
            call: call.clone(),
            name,
            target,
            status: RowStatus::Running,
            summary: None,
        });
        if self.rows.len() > ACTIVITY_ROWS_MAX {
            self.rows.pop_front();
        }
    }

    /// Ends an active call, any other is ignored; an error counts even when
    /// the row is gone (`crew.md` ACT-4).
    pub fn end(&mut self, call: &CallId, is_error: bool, result: &[Block]) {
        let Some(active) = self.active.remove(call) else {
            return;
        };
        self.failures += u64::from(is_error);
        let Some(row) = self.rows.iter_mut().find(|row| row.is_running(call)) else {
            return;
        };
        if is_error {
            row.status = RowStatus::Error;
        } else {
            row.status = RowStatus::Done;
            row.summary = active.summary.or_else(|| summary_at_end(&active.tool, result));
        }
    }

    /// The latest rows, oldest first, at most `ACTIVITY_ROWS_MAX`.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Calls started, those of `crew_report` included (`crew.md` ACT-5).
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Calls that ended as an error.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

impl Row {
    fn is_running(&self, call: &CallId) -> bool {
        self.status == RowStatus::Running && self.call == *call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(activity: &mut Activity, call: &str, tool: &str, arguments: &str) {
        let arguments = Raw::parse(arguments).unwrap();
        activity.start(&CallId::from(call), tool, &arguments, Some("/home/u"));
    }

    fn end(activity: &mut Activity, call: &str, is_error: bool, text: &str) {
        activity.end(&CallId::from(call), is_error, &[Block::text(text)]);
    }

    fn shown(activity: &Activity) -> Vec<String> {
        let row = |row: &Row| {
            let status = match row.status {
                RowStatus::Running => "running",
                RowStatus::Done => "done",
                RowStatus::Error => "error",
            };
            let summary = row.summary.as_deref().unwrap_or("-");
            format!("{} {} {} {status} {summary}", row.call, row.name, row.target)
        };
        activity.rows().map(row).collect()
    }

    // Row 83: ACT-1, ACT-3, ACT-4.
    #[test]
    fn a_failure_counts_although_its_row_was_dropped() {
        let mut activity = Activity::default();
        for n in 1..=11 {
            start(&mut activity, &format!("c{n}"), "ls", r#"{"path":"src"}"#);
        }
        end(&mut activity, "c1", true, "no");
        assert_eq!((activity.total(), activity.failures()), (11, 1));
        let rows = shown(&activity);
        assert_eq!(rows.len(), 10);
        assert_eq!(rows[0], "c2 ls src running -");
        assert_eq!(rows[9], "c11 ls src running -");
    }

    // ACT-3.
    #[test]
    fn a_repeated_start_moves_its_row_and_is_not_counted() {
        let mut activity = Activity::default();
        start(&mut activity, "a", "ls", r#"{"path":"x"}"#);
        start(&mut activity, "b", "ls", r#"{"path":"y"}"#);
        start(&mut activity, "a", "ls", r#"{"path":"x"}"#);
        assert_eq!(activity.total(), 2);
        assert_eq!(shown(&activity), ["b ls y running -", "a ls x running -"]);
    }

    // ACT-3: the id of an ended call is a new call.
    #[test]
    fn an_id_used_again_after_its_end_is_another_call() {
        let mut activity = Activity::default();
        start(&mut activity, "call_0", "ls", r#"{"path":"x"}"#);
        end(&mut activity, "call_0", false, "");
        start(&mut activity, "call_0", "ls", r#"{"path":"y"}"#);
        end(&mut activity, "call_0", true, "");
        assert_eq!((activity.total(), activity.failures()), (2, 1));
        assert_eq!(shown(&activity), ["call_0 ls x done -", "call_0 ls y error -"]);
    }

    // ACT-4.
    #[test]
    fn an_end_without_a_start_or_a_second_end_is_ignored() {
        let mut activity = Activity::default();
        end(&mut activity, "ghost", true, "x");
        start(&mut activity, "a", "ls", "{}");
        end(&mut activity, "a", false, "x");
        end(&mut activity, "a", true, "x");
        assert_eq!((activity.total(), activity.failures()), (1, 0));
        assert_eq!(shown(&activity), ["a ls  done -"]);
    }

    // Rows 26 and 88: ACT-5.
    #[test]
    fn reports_count_but_have_no_row() {
        let mut activity = Activity::default();
        for call in ["a", "b", "c"] {
            start(&mut activity, call, "ls", "{}");
        }
        start(&mut activity, "r1", "crew_report", r#"{"report":"secret"}"#);
        end(&mut activity, "r1", true, "rejected");
        assert_eq!((activity.total(), activity.failures()), (4, 1));
        assert_eq!(activity.rows().count(), 3);
        start(&mut activity, "r2", "crew_report", "{}");
        end(&mut activity, "r2", false, "");
        assert_eq!((activity.total(), activity.failures()), (5, 1));
        assert_eq!(activity.rows().count(), 3);
    }

    // ACT-20 to ACT-22.
    #[test]
    fn a_summary_appears_with_success_only() {
        let mut activity = Activity::default();
        let write = r#"{"path":"/home/u/a.txt","content":"x\ny\n"}"#;
        start(&mut activity, "w", "write", write);
        assert_eq!(shown(&activity), ["w write ~/a.txt running -"]);
        end(&mut activity, "w", false, "written");
        start(&mut activity, "v", "write", write);
        end(&mut activity, "v", true, "denied");
        start(&mut activity, "r", "read", r#"{"path":"k/SKILL.md"}"#);
        end(&mut activity, "r", false, "a\nb\nc");
        start(&mut activity, "s", "read", r#"{"path":"gone"}"#);
        end(&mut activity, "s", true, "no such file");
        let expected = [
            "w write ~/a.txt done 2 lines written",
            "v write ~/a.txt error -",
            "r skill k done 3 lines",
            "s read gone error -",
        ];
        assert_eq!(shown(&activity), expected);
    }

    // ACT-7.
    #[test]
    fn neither_raw_arguments_nor_raw_output_are_kept() {
        let mut activity = Activity::default();
        let arguments = r#"{"command":"curl -u bob:hunter2 https://u:hunter2@h/p?k=hunter2"}"#;
        start(&mut activity, "a", "bash", arguments);
        start(&mut activity, "b", "write", r#"{"path":"p","content":"hunter2"}"#);
        start(&mut activity, "c", "crew_report", r#"{"report":"hunter2"}"#);
        end(&mut activity, "a", false, "hunter2");
        assert!(!format!("{activity:?}").contains("hunter2"));
        assert_eq!(shown(&activity)[0], "a $ curl https://h/p done -");
    }
}
