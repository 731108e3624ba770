//! The fake provider of the interop checks: answers `openai-completions`
//! requests (`host.md` 9.3) from a queue and keeps every request.
//!
//! Must never depend on which program asks. A child session is told by its
//! tools and always reports at once, so that the queue is the owner's alone.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{HttpRequest, Listener, chunk};
use crate::run::Outcome;

/// What the provider answers.
#[derive(Clone)]
pub(crate) enum Reply {
    Text(String),
    /// A call of this tool with these arguments.
    Call(&'static str, Value),
    /// An HTTP error.
    Status(u16),
    /// This text word by word, slowly, for longer than any check waits.
    Slow(&'static str),
}

/// A request as it came.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) body: Value,
    pub(crate) authorization: String,
}

impl Seen {
    /// Returns the conversation without instructions (`system`, `developer`).
    pub(crate) fn messages(&self) -> Vec<Value> {
        let messages = self.body["messages"].as_array().cloned().unwrap_or_default();
        let is_instruction =
            |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
        messages.into_iter().filter(|message| !is_instruction(message)).collect()
    }

    /// Says whether the conversation holds this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        let quoted = Value::from(text).to_string();
        Value::from(self.messages()).to_string().contains(quoted.trim_matches('"'))
    }
}

/// A running server; it stops when dropped.
pub(crate) struct Server {
    listener: Listener,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    seen: Vec<Seen>,
}

impl Server {
    pub(crate) fn start() -> Outcome<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let serving = Arc::clone(&state);
        let listener = Listener::start(move |stream| {
            // A connection that ends in the middle is the client's business.
            let _ = serve(stream, &serving);
        })?;
        Ok(Self { listener, state })
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.listener.url())
    }

    /// Queues answers; with an empty queue the answer is [`usual_text`].
    pub(crate) fn answer(&self, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.state).replies.extend(replies);
    }

    /// Takes all requests so far, in order of arrival.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut lock(&self.state).seen)
    }
}

/// Returns the text of the usual answer to the last message of a request.
pub(crate) fn usual_text(asked: &str) -> String {
    format!("you said: {asked}")
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = HttpRequest::read(&mut reader)? {
        if !request.line.starts_with("POST /v1/chat/completions ") {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let body: Value = serde_json::from_slice(&request.body)?;
        let authorization = request.header("authorization").unwrap_or_default().to_owned();
        let reply = {
            let mut state = lock(state);
            state.seen.push(Seen { body: body.clone(), authorization });
            if is_child(&body) {
                report()
            } else {
                let queued = state.replies.pop_front();
                queued.unwrap_or_else(|| Reply::Text(usual_text(&last_text(&body))))
            }
        };
        send(&mut stream, &reply)?;
    }
    Ok(())
}

fn is_child(body: &Value) -> bool {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let has = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
    has("crew_report") && !has("crew_spawn")
}

fn report() -> Reply {
    Reply::Call("crew_report", json!({"outcome": "completed", "report": "all was read"}))
}

fn last_text(body: &Value) -> String {
    let content = &body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .map_or(Value::Null, |message| message["content"].clone());
    let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
    text.chars().take(ECHO_CHARS_MAX).collect()
}

fn send(stream: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    if let Reply::Status(status) = reply {
        let body = json!({"error": {"message": "overloaded, try again"}}).to_string();
        let head = format!("HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\n");
        return stream
            .write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    let finish = match reply {
        Reply::Text(text) => {
            delta(stream, &json!({"role": "assistant", "content": text}))?;
            "stop"
        }
        Reply::Call(name, arguments) => {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            let call =
                json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            delta(stream, &json!({"role": "assistant", "tool_calls": [call]}))?;
            "tool_calls"
        }
        Reply::Slow(text) => {
            for _ in 0..SLOW_WORDS {
                delta(stream, &json!({"role": "assistant", "content": format!("{text} ")}))?;
                thread::sleep(SLOW_PAUSE);
            }
            "stop"
        }
        // Answered above: an error has no stream.
        Reply::Status(_) => return Ok(()),
    };
    let choice = json!({"index": 0, "delta": {}, "finish_reason": finish});
    event(stream, &json!([choice]), Value::Null)?;
    let details = json!({"cached_tokens": 20});
    event(
        stream,
        &json!([]),
        json!({"prompt_tokens": 60, "completion_tokens": 5, "total_tokens": 65,
               "prompt_tokens_details": details}),
    )?;
    stream.write_all(&chunk("data: [DONE]\n\n"))?;
    stream.write_all(&chunk(""))
}

fn delta(stream: &mut TcpStream, delta: &Value) -> io::Result<()> {
    event(stream, &json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null)
}

fn event(stream: &mut TcpStream, choices: &Value, usage: Value) -> io::Result<()> {
    let mut data = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                          "model": "m1", "choices": choices});
    if !usage.is_null() {
        data["usage"] = usage;
    }
    stream.write_all(&chunk(&format!("data: {data}\n\n")))
}

const ECHO_CHARS_MAX: usize = 40;
const SLOW_WORDS: usize = 400;
const SLOW_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn exchange(server: &Server, body: &Value) -> String {
        let mut stream = TcpStream::connect(server.listener.address()).unwrap();
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn queued_answers_come_first_and_requests_are_kept() {
        let server = Server::start().unwrap();
        server.answer([Reply::Status(503), Reply::Call("read", json!({"path": "a"}))]);
        let ask = json!({"messages": [{"role": "system", "content": "s"},
                                      {"role": "user", "content": "hi \u{2028}"}]});
        assert!(exchange(&server, &ask).starts_with("HTTP/1.1 503"));
        assert!(exchange(&server, &ask).contains("\"name\":\"read\""));
        assert!(exchange(&server, &ask).contains("you said: hi"));
        let seen = server.take();
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[0].authorization, "Bearer k");
        assert_eq!(seen[0].messages().len(), 1);
        assert!(seen[0].has("hi \u{2028}") && !seen[0].has("ho"));
        assert!(server.take().is_empty());
    }

    #[test]
    fn a_child_reports_whatever_is_queued() {
        let server = Server::start().unwrap();
        server.answer([Reply::Status(503)]);
        let tools = json!([{"function": {"name": "crew_report"}}]);
        let answer = exchange(&server, &json!({"messages": [], "tools": tools}));
        assert!(answer.contains("crew_report") && answer.contains("completed"), "{answer}");
    }
}
