//! What can be wrong with `models.json`. Never holds a value of the file:
//! values may be secrets.

/// A violation that disables the whole file (`host.md` 1.5.2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}{problem}", place(.at))]
pub struct CatalogError {
    /// Path of the file.
    pub file: String,
    /// Where in the file, as in `providers.local.models[0].id`; empty for the
    /// file as a whole.
    pub at: String,
    /// What is wrong there.
    pub problem: Problem,
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("`{at}` ") }
}

/// What is wrong at one place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No JSON with comments and trailing commas.
    #[error("is not valid: {reason} (line {line}, column {column})")]
    Syntax {
        /// What the parser misses, without any text of the file.
        reason: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// Another type or value than the schema wants.
    #[error("must be {0}")]
    Expected(&'static str),
    /// A required field is absent.
    #[error("is missing")]
    Missing,
    /// A provider entry that changes nothing (1.5.4).
    #[error("must set at least one of {0}")]
    ChangesNothing(&'static str),
    /// Neither the model nor its provider names a wire format (1.5.5).
    #[error("has no `api`; set it at the model or at its provider")]
    NoApi,
    /// Neither the model nor its provider says where requests go (1.5.5).
    #[error("has no `baseUrl`; set it at the model or at its provider")]
    NoBaseUrl,
}
