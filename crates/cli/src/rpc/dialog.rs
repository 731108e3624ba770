//! Questions to the person as dialogs of the protocol (`host.md` 7.5,
//! `task.md` OBS-3).
//!
//! A question becomes one `confirm`; several may be open, and are answered in
//! any order. An answer to a dialog that is not open is ignored by the host.

use crew_runtime::Question;
use serde::Serialize;

use super::face::Face;
use super::response::json;

/// What the ids of our dialogs begin with.
const PREFIX: &str = "approval-";

#[derive(Serialize)]
struct Confirm<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    method: &'static str,
    title: String,
    message: &'a str,
}

/// The line of a question, with its line feed.
pub(super) fn line(question: &Question) -> String {
    let confirm = Confirm {
        kind: "extension_ui_request",
        id: format!("{PREFIX}{}", question.id),
        method: "confirm",
        title: format!("Run {}?", question.tool),
        message: &question.view,
    };
    format!("{}\n", json(&confirm))
}

impl Face {
    /// The client answered a dialog.
    pub(super) fn dialog_answered(&self, id: Option<&str>, confirmed: bool) {
        let number = id.and_then(|id| id.strip_prefix(PREFIX)).and_then(|id| id.parse().ok());
        if let Some(question) = number {
            self.handle.answer(question, confirmed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // host.md 7.5.1.
    #[test]
    fn a_question_is_one_line_of_a_dialog() {
        let question = Question {
            id: 7,
            session: "s".into(),
            tool: "task".into(),
            view: "Agent: scout\nTask: \u{2028}look".into(),
        };
        let expected = "{\"type\":\"extension_ui_request\",\"id\":\"approval-7\",\
            \"method\":\"confirm\",\"title\":\"Run task?\",\
            \"message\":\"Agent: scout\\nTask: \u{2028}look\"}\n";
        assert_eq!(line(&question), expected);
    }
}
