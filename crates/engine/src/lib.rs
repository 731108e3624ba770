//! Joins every session's agent, the crew and the calls of `task` into one
//! machine: one event in, a list of effects out.
//!
//! Owns all sessions, the crew and all `task` children. Must never do IO, await,
//! read a clock or know a face. Faces use `api` only, the shell `event`, `effect`
//! and `work`. Read `step` for how an event is taken, `route` for where it goes.

pub mod api;
mod closing;
mod control;
mod effect;
mod event;
mod look;
mod opening;
mod pacing;
mod person;
mod route;
mod steer;
mod step;
mod tasks;
mod wording;
mod work;

pub use effect::{Effect, OpenPlan, Source};
pub use event::{Event, Opened};
pub use step::{Engine, EngineConfig};
pub use work::TaskWork;
