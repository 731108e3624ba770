//! Files of the product: session logs, settings, trust, context files, agent
//! definitions, skills and prompt templates.
//!
//! Owns every format below the agent directory and `.pi` that is not about
//! credentials or models. Must never print, read the environment, retry, or
//! decide what a session does: values come in, data and typed errors go out.
//! Read `session` first, then `settings`.

pub mod artifacts;
pub mod auth_file;
pub mod bundled;
pub mod context_files;
pub mod definitions;
pub mod error;
pub mod export;
pub mod files;
pub mod frontmatter;
mod json_text;
pub mod keybindings;
pub mod listing;
pub mod lock;
pub mod paths;
pub mod prompts;
pub mod resources;
pub mod session;
pub mod settings;
pub mod skills;
pub mod system_prompt;
mod text_file;
pub mod trust;
