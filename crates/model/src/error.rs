//! Why the adapter could not be set up; failed requests are
//! [`ModelError`](crew_base::model::ModelError)s.

use crew_base::model::{ModelError, ModelErrorKind};

/// Causes of a failed set-up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The proxy address of this variable is no URL we can use.
    #[error("proxy address `{address}` cannot be used")]
    Proxy {
        /// The address, without user and password.
        address: String,
    },
    /// TLS could not be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The HTTP client could not be built.
    #[error("the HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

impl From<Error> for ModelError {
    fn from(error: Error) -> ModelError {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            message = format!("{message}: {deeper}");
            cause = deeper.source();
        }
        ModelError::new(ModelErrorKind::Configuration, message)
    }
}
