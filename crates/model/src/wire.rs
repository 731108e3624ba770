//! What all wire formats share: the decoder trait, the dispatch by API, the
//! reader that joins server-sent events with a decoder, credentials and the
//! reading of HTTP errors.
//!
//! Pure: no IO, no clock. Must never hold a credential longer than one
//! request. Read `prepare` next, then the module of a format.

mod body;
mod credential;
mod failure;
mod reader;
mod retry_after;

use std::collections::BTreeMap;

use crew_base::id::CallId;
use crew_base::model::{Api, ModelError, ModelErrorKind, ModelEvent, ModelRequest};

pub(crate) use body::{Fields, parse_json};
pub use credential::Credential;
pub use failure::http_error;
pub(crate) use failure::{cut_message, error_member, truncated};
pub use reader::ResponseReader;
pub(crate) use retry_after::retry_after_ms;

use crate::prepare::prepare;
use crate::{anthropic, completions, google, responses};

/// What goes over HTTP for one request, without credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The whole URL; holds no secret.
    pub url: String,
    /// Headers of the wire format; configured ones replace them by name.
    pub headers: Vec<(String, String)>,
    /// The JSON text.
    pub body: String,
}

/// Settings of the process that encoders need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodeOptions {
    /// Tokens of thinking by level name, over the defaults (`host.md` 3.9.4).
    pub thinking_budgets: BTreeMap<String, u64>,
    /// Sends placeholders in place of all images.
    pub block_images: bool,
}

/// Turns server-sent events of one response into model events. Pure.
pub trait Decoder: Send {
    /// Takes one complete event; `event` is its `event:` name or "".
    fn event(&mut self, event: &str, data: &str, out: &mut Vec<ModelEvent>);
    /// The body ended cleanly. Emits `Finished` or `Failed` if neither was
    /// emitted yet.
    fn end(&mut self, out: &mut Vec<ModelEvent>);
    /// Whether `Finished` or `Failed` was emitted; nothing more is read then.
    fn is_done(&self) -> bool;
}

/// Writes the request in the format of its model (`host.md` 9.2 to 9.5);
/// other APIs give an error of kind `Configuration` (1.5.13).
pub fn encode(request: &ModelRequest, options: &EncodeOptions) -> Result<Encoded, ModelError> {
    type Rewrite = fn(&ModelRequest, &CallId, bool) -> CallId;
    let (rewrite, encode): (Rewrite, _) = match request.model.api {
        Api::AnthropicMessages => (anthropic::rewrite_id, anthropic::encode as fn(&_, &_, &_) -> _),
        Api::OpenaiCompletions => (completions::rewrite_id, completions::encode as _),
        Api::OpenaiResponses => (responses::rewrite_id, responses::encode as _),
        Api::GoogleGenerativeAi => (google::rewrite_id, google::encode as _),
        Api::Demo | Api::Unsupported => return Err(unsupported(request)),
    };
    let prepared = prepare(request, options, &mut |id, same| rewrite(request, id, same));
    encode(request, &prepared, options)
}

/// A decoder for the answer to this request.
pub fn decoder(request: &ModelRequest) -> Box<dyn Decoder> {
    match request.model.api {
        Api::AnthropicMessages => Box::new(anthropic::AnthropicDecoder::new(request)),
        Api::OpenaiCompletions => Box::new(completions::CompletionsDecoder::new(request)),
        Api::OpenaiResponses => Box::new(responses::ResponsesDecoder::new(request)),
        Api::GoogleGenerativeAi => Box::new(google::GoogleDecoder::new(request)),
        Api::Demo | Api::Unsupported => {
            Box::new(UnsupportedDecoder { error: Some(unsupported(request)) })
        }
    }
}

fn unsupported(request: &ModelRequest) -> ModelError {
    ModelError::new(
        ModelErrorKind::Configuration,
        format!(
            "unsupported API `{}` of model {}",
            request.model.api_word,
            request.model.reference()
        ),
    )
}

/// Stands in where there is no wire format: fails once, at the first chance.
struct UnsupportedDecoder {
    error: Option<ModelError>,
}

impl Decoder for UnsupportedDecoder {
    fn event(&mut self, _event: &str, _data: &str, out: &mut Vec<ModelEvent>) {
        self.end(out);
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        out.extend(self.error.take().map(ModelEvent::Failed));
    }

    fn is_done(&self) -> bool {
        self.error.is_none()
    }
}
