//! Isolated copies on throw-away repositories with the real git (`task.md` 10;
//! rows are those of its section 12). One program for all, since it is linked
//! once and starts itself again for the deaths.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod branches;
mod making;
mod nested;
mod patches;
mod random;
mod recovery;
mod world;
