//! What tests share: the seeded simulation of the whole engine, plays that
//! drive one session or the engine by hand, and fixtures.
//!
//! Development only; no product crate may depend on it. Read `play` for small
//! tests, `sim` for the simulation.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks for a few kinds among all that pass; what decides is matched whole"
)]

pub mod fixtures;
pub mod play;
pub mod session_play;
pub mod sim;
pub mod trace;
