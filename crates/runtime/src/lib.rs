//! Performs the engine's effects and feeds events back.
//!
//! Owns every task, the clock, child processes and shutdown. Must never decide
//! what happens next: that is the engine's. Read `run` for the loop, `perform`
//! for one arm per effect, `tasks` for how each ends in one event, `gate` for
//! back-pressure, `workspace` for how sessions are prepared, `guard` for what
//! happens when the host dies.

mod approvals;
mod causes;
pub mod clock;
mod gate;
pub mod guard;
mod perform;
mod preparer;
mod query;
mod reading;
mod run;
mod tasks;
mod work;
mod workspace;

pub use approvals::Question;
pub use gate::Place;
pub use query::{Answer, Query, QueryError, SessionTotals, State};
pub use run::{Handle, Notice, Parts, Renewed, Updates, start};
pub use workspace::{
    DEPTH_VARIABLE, ModelWish, PromptWish, SessionPlace, TaskOutput, ToolWish, Workspace,
    WorkspaceConfig,
};
