//! What tests share: the seeded simulation of the whole engine, plays that
//! drive one session or the engine by hand, and fixtures.
//!
//! Development only; no product crate may depend on it. Read `play` for small
//! tests, `sim` for the simulation.

pub mod fixtures;
pub mod play;
pub mod session_play;
pub mod sim;
pub mod trace;
