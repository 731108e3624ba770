//! Session files: append-only JSON lines that hold a tree of entries
//! (`host.md` 2).
//!
//! [`log::SessionLog`] is one session that is written, [`snapshot::Snapshot`]
//! what it holds at a moment: an index of what stands where, and entries that
//! are read back when asked. [`open`] loads a file,
//! [`project`] rebuilds the model context, [`copy`] forks, [`tree`] lays the
//! branches out, [`totals`] adds up. Nothing here decides what is appended or
//! where the leaf is; that is the agent's business. A stored line is never
//! rewritten, except by [`migrate`].

pub mod branch;
pub mod copy;
pub mod index;
pub mod log;
pub mod migrate;
pub mod open;
pub mod project;
mod read;
pub(crate) mod scan;
pub mod snapshot;
pub mod totals;
pub mod tree;
mod write;
