//! The seven built-in tools (`host.md` 4), the checks around every call, the
//! record of who wrote which file, and the commands the process started.
//!
//! One [`Host`] serves the whole process; a [`ToolContext`] says what one call
//! may use; a [`Toolbox`] looks up, checks and runs. Must never print, never
//! decide about sessions or permissions, and reads the environment in one
//! place only: the search path and the marker that a command inherits
//! (`process::environment`). Read `context`, then `toolbox`, then one tool.

mod arguments;
mod bash;
mod blocking;
mod context;
mod edit;
mod error;
mod find;
mod grep;
mod host;
mod ls;
mod path;
mod process;
mod read;
mod record;
mod slots;
mod toolbox;
mod truncate;
mod walk;
mod write;

#[cfg(test)]
mod testing;

pub use context::{ProgressSink, ShellConfig, Tool, ToolContext, ToolFuture};
pub use error::{EditError, Error};
pub use host::{GroupGuard, Host, HostConfig};
pub use path::resolve;
pub use process::background::{Background, BackgroundOutcome};
pub use process::sweep::{Target, kill_marked};
pub use process::user::{ChunkSink, UserCommand, UserCommandOutcome};
pub use toolbox::Toolbox;
pub use walk::names_below;
