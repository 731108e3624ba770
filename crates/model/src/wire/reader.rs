//! Joins the event decoder with the decoder of a wire format.

use crew_base::limits::SSE_EVENT_BYTES_MAX;
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};

use super::{Decoder, cut_message, decoder, error_member, parse_json};
use crate::sse::{EventTooLong, SseDecoder};

/// Reads the body of one response: bytes in, model events out. What HTTP,
/// tests, benches and fuzz targets drive.
pub struct ResponseReader {
    body: Body,
    decoder: Box<dyn Decoder>,
    /// The reader itself gave up.
    failed: bool,
}

/// How the body looks so far.
enum Body {
    /// Only white space was seen.
    Blank,
    /// A stream of events.
    Events(SseDecoder),
    /// One JSON text in place of a stream, as some servers answer errors.
    Json(Vec<u8>),
}

impl ResponseReader {
    /// A reader for the answer to this request.
    pub fn new(request: &ModelRequest) -> ResponseReader {
        ResponseReader { body: Body::Blank, decoder: decoder(request), failed: false }
    }

    /// Takes the next bytes of the body. White space before all else is dropped,
    /// also in a piece that goes on with something, so that cuts do not matter.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) {
        if self.is_done() {
            return;
        }
        let mut bytes = bytes;
        if matches!(self.body, Body::Blank) {
            bytes = bytes.trim_ascii_start();
            let Some(first) = bytes.first() else { return };
            self.body = if *first == b'{' {
                Body::Json(Vec::new())
            } else {
                Body::Events(SseDecoder::default())
            };
        }
        let decoder = &mut self.decoder;
        let fed = match &mut self.body {
            Body::Blank => Ok(()),
            Body::Events(events) => events.feed(bytes, &mut |event, data| {
                if !decoder.is_done() {
                    decoder.event(event, data, out);
                }
            }),
            Body::Json(text) if text.len() + bytes.len() > SSE_EVENT_BYTES_MAX => Err(EventTooLong),
            Body::Json(text) => {
                text.extend_from_slice(bytes);
                Ok(())
            }
        };
        if fed == Err(EventTooLong) && !self.decoder.is_done() {
            let message = format!("the response holds an event above {SSE_EVENT_BYTES_MAX} bytes");
            self.fail(ModelErrorKind::InvalidStream, message, out);
        }
    }

    /// The body ended cleanly.
    pub fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if self.is_done() {
            return;
        }
        match std::mem::replace(&mut self.body, Body::Blank) {
            Body::Blank => {}
            Body::Events(mut events) => events.end(&mut |event, data| {
                // A tail that does not parse is the first half of an event.
                let whole = data.trim() == "[DONE]" || parse_json(data).is_some();
                if whole && !self.decoder.is_done() {
                    self.decoder.event(event, data, out);
                }
            }),
            Body::Json(text) => return self.json(&String::from_utf8_lossy(&text), out),
        }
        if !self.is_done() {
            self.decoder.end(out);
        }
    }

    /// Whether `Finished` or `Failed` was emitted.
    pub fn is_done(&self) -> bool {
        self.failed || self.decoder.is_done()
    }

    fn json(&mut self, text: &str, out: &mut Vec<ModelEvent>) {
        if let Some(error) = parse_json(text).as_ref().and_then(error_member) {
            self.failed = true;
            out.push(ModelEvent::Failed(error));
            return;
        }
        let message = format!("the answer is no event stream: {}", cut_message(text));
        self.fail(ModelErrorKind::InvalidStream, message, out);
    }

    fn fail(&mut self, kind: ModelErrorKind, message: String, out: &mut Vec<ModelEvent>) {
        self.failed = true;
        out.push(ModelEvent::Failed(ModelError::new(kind, message)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::tests::request;
    use crew_base::model::Api;

    fn failure(body: &str) -> ModelError {
        let mut out = Vec::new();
        let mut reader = ResponseReader::new(&request(Api::AnthropicMessages, Vec::new()));
        reader.feed(body.as_bytes(), &mut out);
        reader.end(&mut out);
        assert!(reader.is_done());
        let [ModelEvent::Failed(error)] = &out[..] else { panic!("{out:?}") };
        error.clone()
    }

    #[test]
    fn a_json_answer_in_place_of_a_stream_is_its_error() {
        let error = failure("\n {\"error\":{\"type\":\"overloaded_error\",\"message\":\"full\"}}");
        assert_eq!(error.kind, ModelErrorKind::Overloaded);
        assert_eq!(error.message, "overloaded_error: full");
        assert_eq!(failure("{\"ok\":1}").kind, ModelErrorKind::InvalidStream);
        assert_eq!(failure("<html>").kind, ModelErrorKind::Truncated);
        assert_eq!(failure("").kind, ModelErrorKind::Truncated);
    }

    #[test]
    fn white_space_before_all_else_counts_the_same_at_every_cut() {
        let check = |body: &str| {
            let read = |step: usize| {
                let mut out = Vec::new();
                let mut reader = ResponseReader::new(&request(Api::AnthropicMessages, Vec::new()));
                body.as_bytes().chunks(step).for_each(|piece| reader.feed(piece, &mut out));
                reader.end(&mut out);
                out
            };
            assert_eq!(read(1), read(body.len()), "{body:?}");
        };
        check(" \n{\"ok\":1}");
        check("  data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n");
        check("\r\n \u{feff}data: {\"type\":\"ping\"}\n\n");
    }

    #[test]
    fn half_an_event_at_the_end_is_a_cut_stream() {
        // dependencies.md 1; host.md 9.1.10.
        let error = failure("event: error\ndata: {\"type\":\"error\",\"err");
        assert_eq!(error.kind, ModelErrorKind::Truncated);
        assert!(error.message.contains("ended without"), "{error}");
    }
}
