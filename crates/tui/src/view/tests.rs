//! The face driven by updates and keys, judged by what is drawn. Numbers are
//! those of the edge cases of `terminal.md` 11.

mod approvals;
mod bindings;
mod cases;
mod colours;
mod crew;
mod keys;
mod plain;
mod screens;
mod settings;
mod tree;
mod world;
