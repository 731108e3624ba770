//! Shared nouns of every crate: ids, messages, tool calls, model requests and
//! events, session entries, definitions, time and limits.
//!
//! Owns the log format (`message`, `entry`) and nothing that acts. Must never
//! do IO, read a clock or draw randomness of its own. Read `message` first.

pub mod definition;
pub mod entry;
pub mod id;
pub mod invariant;
pub mod json;
pub mod limits;
pub mod message;
pub mod model;
pub mod session;
pub mod text;
pub mod time;
pub mod tool;
