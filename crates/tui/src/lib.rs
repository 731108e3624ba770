//! The terminal face: what a person sees and types (`terminal.md`).
//!
//! Owns view state, drawing, keys and the scrollback driver. Must never read a
//! file, a clock or the environment, never wait, and never let untrusted text
//! reach the terminal unless it went through [`cells`]. Read `view` for the
//! state, `draw` for the screen, `screen` for bytes, `request` for what the
//! program behind has to serve.

pub mod cells;
pub mod draw;
pub mod editor;
pub mod failure;
pub mod format;
pub mod highlight;
pub mod keys;
pub mod markdown;
pub mod plain;
pub mod request;
pub mod screen;
pub mod theme;
pub mod transcript;
pub mod view;
