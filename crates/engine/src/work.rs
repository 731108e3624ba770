//! What the shell does for calls of `task` and for their children.
//!
//! Owns the shapes of that work. Must never decide anything about it: what is
//! asked for comes from `crew_task`, and each piece comes back as the event
//! that it names. Read `tasks` for how it is routed.

use crew_base::id::{RunId, SessionId};
use crew_task::{artifact, isolation};

/// One piece of work for the `task` tool.
#[derive(Clone, Debug)]
pub enum TaskWork {
    /// Read settings, approval and agents anew (`task.md` 1.5, TASK-SPAWN-5);
    /// ends in [`crate::Event::TaskSetup`].
    ReadSetup {
        /// Names the reading; none of the waiting calls.
        run: RunId,
        /// Who calls.
        session: SessionId,
    },
    /// Ask the person; ends in [`crate::Event::TaskAnswered`], or is withdrawn by
    /// an [`crate::Effect::Cancel`] of the run (DISP-3).
    Ask {
        /// Who calls.
        session: SessionId,
        /// The call.
        run: RunId,
        /// Name of the tool.
        tool: String,
        /// What is shown; untrusted text (DISP-4).
        view: String,
    },
    /// Make the artifact folder and list what is in it; ends in
    /// [`crate::Event::TaskLeased`] (TASK-SPAWN-18).
    Lease {
        /// Who calls.
        session: SessionId,
        /// The call.
        run: RunId,
        /// The folder; `None` is a fresh temporary one.
        folder: Option<String>,
    },
    /// Make a copy for a child; ends in [`crate::Event::TaskIsolated`].
    Isolate(isolation::Plan),
    /// Start a background command of a child; ends in
    /// [`crate::Event::JobEnded`], also when its session is closed (OBS-8).
    StartJob {
        /// The child.
        session: SessionId,
        /// Names the job in that child.
        job: String,
        /// The command.
        command: String,
    },
    /// Write the files of a child; ends in [`crate::Event::ArtifactWritten`].
    WriteArtifact {
        /// The child.
        session: SessionId,
        /// Names and contents.
        write: artifact::Write,
    },
    /// Read from a copy what is to be committed for its child; ends in
    /// [`crate::Event::TaskDescribed`].
    Describe {
        /// The child.
        session: SessionId,
        /// Names the copy.
        handle: u64,
    },
    /// Capture a copy and bring its changes back; ends in
    /// [`crate::Event::TaskIntegrated`].
    Integrate {
        /// The child.
        session: SessionId,
        /// What and how.
        capture: isolation::Capture,
    },
    /// Remove a copy once nothing of its child is left; nothing follows.
    Discard {
        /// Names the copy.
        handle: u64,
    },
    /// The call is over: delete a temporary folder once its children are gone
    /// (ART-10, ART-12); nothing follows.
    EndLease {
        /// The folder.
        folder: String,
    },
}
