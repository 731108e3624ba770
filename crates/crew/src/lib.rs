//! The crew: who exists, who owns whom, what becomes of results.
//!
//! Owns subagents, their lifecycle, ownership, deliveries, the status context
//! and the six owner tools. Must never run anything itself: it answers calls
//! and returns [`Effect`]s. All changes of crew state pass [`Crew`]
//! (`product.md` P-15). Read `roster` for the state, `lifecycle` for its
//! transitions, `delivery` for the way of a result.

pub mod activity;
pub mod assignment;
mod delivery;
mod effect;
mod lifecycle;
pub mod mention;
mod roster;
pub mod status_context;
pub mod tools;

pub use delivery::Delivery;
pub use effect::{Effect, Ending, OpenChild, Update, UpdateKind};
pub use lifecycle::AbortOrigin;
pub use roster::{Crew, Owner, Refusal, Status, Subagent};
