//! Joins every session's agent and the crew into one machine: one event in,
//! a list of effects out.
//!
//! Owns all sessions and the crew. Must never do IO, await, read a clock or
//! know a face. Faces use `api` only, the shell `event` and `effect`. Read
//! `step` for how an event is taken, `route` for where it goes.

pub mod api;
mod control;
mod effect;
mod event;
mod pacing;
mod person;
mod route;
mod step;

pub use effect::{Effect, OpenPlan, Source};
pub use event::{Event, Opened};
pub use step::{Engine, EngineConfig};
