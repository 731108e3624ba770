//! Providers: request encoding, stream decoding, the HTTP exchange, the model
//! catalogue, credentials and the scripted demo model.
//!
//! One request is one attempt: every outcome is a [`ModelEvent`], retries and
//! waits are decided in the pure crates. Must never print, retry or read the
//! environment. Read [`wire`] first, then one module per wire format.

pub mod arguments;
pub mod auth;
pub mod catalog;
pub mod demo;
pub mod error;
pub mod http;
pub mod prepare;
pub mod provider;
pub mod select;
pub mod sse;
pub mod value;
pub mod wire;

mod anthropic;
mod assembly;
mod completions;
mod frame;
mod google;
mod responses;
mod switches;

use std::future::Future;
use std::pin::Pin;

use crew_base::model::{ModelEvent, ModelRequest};

/// Takes events as they come, in order.
pub type ModelSink = Box<dyn FnMut(Vec<ModelEvent>) + Send>;

/// Something that answers requests: a real provider or a script.
pub trait Model: Send + Sync {
    /// Makes one attempt. The sink gets all events, the last of them
    /// `Finished` or `Failed`; dropping the future ends the exchange.
    fn stream(
        &self,
        request: ModelRequest,
        sink: ModelSink,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
