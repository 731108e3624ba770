//! The shell with fake models and tools, and everything else real.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod append;
mod cancel;
#[cfg(target_os = "linux")]
mod commands;
mod faults;
mod gate;
#[path = "../support/models.rs"]
mod models;
#[cfg(target_os = "linux")]
#[path = "../support/processes.rs"]
mod processes;
#[cfg(unix)]
mod reading;
mod tasks;
mod workspace;
#[path = "../support/world.rs"]
mod world;
