//! One prompt cycle of a child under its completion contract.
//!
//! Owns what decides whether a cycle is accepted, gets its one follow-up, or
//! fails. Must never know owners, deliveries or sessions. The contract of the
//! crew is in `report`; read `step` for the judgement.

pub mod report;
mod step;

pub use step::{Cycle, Facts, Verdict};
