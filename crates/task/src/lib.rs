//! The blocking `task` tool: dispatch, results, envelopes (`task.md`).
//!
//! Owns the calls of `task`, their children and what becomes of them. Must
//! never run anything itself and never name the crew: it answers calls and
//! returns [`Effect`]s, in order. All changes pass [`Tasks`]. Read `dispatch`
//! for what is refused, `tasks` for the way of a call, `finalise` for how a
//! result comes about, `envelope` for what the parent reads.

pub mod address;
pub mod agents;
pub mod approval;
pub mod arguments;
pub mod artifact;
pub mod batch;
pub mod child;
pub mod dispatch;
mod effect;
pub mod effort;
pub mod envelope;
pub mod finalise;
pub mod ids;
pub mod isolation;
pub mod jobs;
pub mod progress;
mod queue;
pub mod record;
mod repair;
pub mod settings;
mod tasks;
pub mod tool;
pub mod truncate;
mod wording;

pub use effect::{Effect, OpenTask, Phase, Update};
pub use tasks::{Boundary, Caller, Lease, OpenedTask, Setup, Tasks};
