//! Tools that wait for the person's word (`task.md` OBS-3).
//!
//! They come at any time, so they take no key that means something else: what
//! is typed stays what it is, and only the named keys and commands answer
//! (TERM-36). Each is shown until it is answered or needs no answer any more,
//! the oldest first.

use super::View;
use crate::cells::Row;
use crate::request::{Approval, Request};
use crate::theme::{MUTED, TEXT, WARNING};

/// Rows of what a tool is to do, and on a small screen.
const VIEW_ROWS_MAX: usize = 6;
const FEW_ROWS_MAX: usize = 2;

impl View {
    /// One more tool waits.
    pub(super) fn approval(&mut self, approval: Approval) {
        let text = format!("{} waits for your word", approval.tool);
        self.approvals.push_back(approval);
        self.call_attention("needs_input", &text);
    }

    /// A tool waits no more.
    pub(super) fn approval_over(&mut self, id: u64) {
        self.approvals.retain(|approval| approval.id != id);
    }

    /// Answers the oldest; the person is told when there is none.
    pub(super) fn answer_approval(&mut self, is_allowed: bool) {
        match self.approvals.pop_front() {
            Some(Approval { id, .. }) => self.ask(Request::Approve { id, is_allowed }),
            None => self.live.print("no tool waits for your word", MUTED),
        }
    }
}

/// The oldest question as rows; none without one.
pub(crate) fn rows(view: &View, columns: usize) -> Vec<Row> {
    let Some(approval) = view.approvals.front() else { return Vec::new() };
    let count = view.approvals.len();
    let more = if count > 1 { format!(" (1 of {count})") } else { String::new() };
    let mut head = Row::of(&format!("Run {}?{more}", approval.tool), WARNING.bold());
    if columns >= 60 {
        head.push(" · no, unless you allow it", MUTED);
    }
    let mut rows = vec![head.cut(columns)];
    let lines: Vec<&str> = approval.view.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = if view.size.rows < 20 { FEW_ROWS_MAX } else { VIEW_ROWS_MAX };
    for line in lines.iter().take(shown) {
        let mut row = Row::new();
        row.space(2);
        row.push(line, TEXT);
        rows.push(row.cut(columns));
    }
    if lines.len() > shown {
        rows.push(Row::of(&format!("  … and {} more lines", lines.len() - shown), MUTED));
    }
    let hint = if columns >= 60 {
        "Ctrl+X o or /allow runs it · Ctrl+X r or /refuse does not"
    } else {
        "Ctrl+X o runs it · r does not"
    };
    rows.push(Row::of(hint, MUTED).cut(columns));
    rows
}
