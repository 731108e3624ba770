//! One prompt cycle of a child under its completion contract.
//!
//! Owns what decides whether a cycle is accepted, gets another reminder, or
//! fails. Must never know owners, deliveries or sessions. The contract of the
//! crew is in `report` with its judgement in `step`; that of `task` in
//! `yielded`, run by `driver` with `ladder`, `budget` and `barrier`.

pub mod barrier;
pub mod budget;
mod contract;
mod driver;
mod ladder;
pub mod report;
mod reports;
pub mod schema;
mod step;
pub mod yielded;

pub use contract::{Contract, Synthetic, Terms};
pub use driver::{AbortKind, Act, Boundary, Driver, Limits, Outcome, Purpose, Submission};
pub use ladder::Reminder;
pub use reports::Reports;
pub use step::{Cycle, Facts, Verdict};
