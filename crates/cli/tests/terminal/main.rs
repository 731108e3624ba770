//! The interactive mode: the real program in a pseudo terminal with an emulator
//! that judges what is seen, and in tmux where reflow matters. Numbers are edge
//! cases of `terminal.md` 11.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod colours;
mod crew;
mod face;
mod keys;
mod login;
mod pty;
mod sessions;
mod settings;
mod task;
mod tmux;
mod tree;
