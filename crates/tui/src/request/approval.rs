//! A tool that waits for the person's word, as data (`task.md` OBS-3).

/// A tool that runs only if the person allows it; untrusted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Names the question.
    pub id: u64,
    /// The tool.
    pub tool: String,
    /// What it is to do, on several lines.
    pub view: String,
}
