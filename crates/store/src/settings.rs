//! `settings.json`, user and project (`host.md` 1.3).
//!
//! [`file::SettingsFiles`] loads, merges and writes; [`typed::Settings`] is what
//! the rest of the program reads. Unknown keys are kept. Never decides trust:
//! whoever loads says whether there is a project file to read.

pub mod file;
mod old_keys;
mod reader;
pub mod task;
pub mod typed;
