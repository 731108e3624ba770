//! What tests share: the seeded simulation of the whole engine.
//!
//! Development only; no product crate may depend on it. Read `sim` first.

pub mod sim;
