//! State machine of one session: prompt, model turns, tools, queues, retry,
//! compaction.
//!
//! Owns the context of a session and decides what happens next in it. Must
//! never do IO, await, read a clock or know of the crew: everything enters as
//! an [`Input`] and leaves as an [`Effect`]. Read `phase` for the states, then
//! `step` for the transitions.

mod answer;
mod branch;
mod compaction;
mod effect;
mod input;
mod overflow;
mod phase;
mod prompt;
mod queue;
mod record;
mod retry;
mod step;

pub use branch::{Branch, BranchWish, Left};
pub use compaction::{
    CompactionOverrides, CompactionReason, CompactionResult, CompactionSettings, CompactionSizes,
};
pub use effect::{Effect, MoveEnd, Moved, Update};
pub use input::{Input, Loaded};
pub use phase::Waiting;
pub use prompt::Prompt;
pub use queue::{QueueMode, Queued};
pub use record::Record;
pub use retry::{RetrySettings, is_spent_quota, jittered};
pub use step::{Agent, Control, Settings};
