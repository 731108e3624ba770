//! A model server on loopback that speaks `anthropic-messages`: every request
//! is logged and answered by a script; a gate holds an answer back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::wire::{Piece, Wire};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) headers: String,
    pub(crate) body: Value,
}

/// What is answered.
#[derive(Clone, Default)]
pub(crate) struct Reply {
    blocks: Vec<Part>,
    stop: Option<&'static str>,
    status: Option<(u16, String, String)>,
    gate: Option<Gate>,
    cut: bool,
    /// The whole body of another wire format.
    raw: Option<String>,
    held: Option<Gate>,
    delay: Duration,
}

#[derive(Clone)]
enum Part {
    Text(String),
    Thinking(String),
    Call(String, Value),
    /// So many times the same text.
    Repeated(usize, String),
}

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// The server; ends with the test program.
pub(crate) struct Server {
    port: u16,
    log: Arc<Mutex<Vec<Request>>>,
}

/// Holds answers back until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        let limit = super::LIMIT;
        drop(self.0.1.wait_timeout_while(open, limit, |open| !*open).unwrap());
    }
}

impl Reply {
    pub(crate) fn text(text: &str) -> Reply {
        Reply { blocks: vec![Part::Text(text.to_owned())], ..Reply::default() }
    }

    /// Text that comes in many pieces.
    pub(crate) fn pieces(count: usize, piece: &str) -> Reply {
        Reply { blocks: vec![Part::Repeated(count, piece.to_owned())], ..Reply::default() }
    }

    pub(crate) fn thinking(text: &str) -> Reply {
        Reply { blocks: vec![Part::Thinking(text.to_owned())], ..Reply::default() }
    }

    pub(crate) fn call(name: &str, arguments: Value) -> Reply {
        Reply::default().and_call(name, arguments)
    }

    pub(crate) fn and_call(mut self, name: &str, arguments: Value) -> Reply {
        self.blocks.push(Part::Call(name.to_owned(), arguments));
        self
    }

    /// A report of a child.
    pub(crate) fn report(text: &str) -> Reply {
        Reply::call("crew_report", json!({"outcome": "completed", "report": text}))
    }

    /// A stream of another wire format, as it is sent.
    pub(crate) fn raw(body: &str) -> Reply {
        Reply { raw: Some(body.to_owned()), ..Reply::default() }
    }

    pub(crate) fn and_text(mut self, text: &str) -> Reply {
        self.blocks.push(Part::Text(text.to_owned()));
        self
    }

    /// An error instead of a stream.
    pub(crate) fn status(code: u16, headers: &str, body: &str) -> Reply {
        let status = Some((code, headers.to_owned(), body.to_owned()));
        Reply { status, ..Reply::default() }
    }

    pub(crate) fn stop(mut self, reason: &'static str) -> Reply {
        self.stop = Some(reason);
        self
    }

    /// Waits before anything is answered.
    pub(crate) fn behind(mut self, gate: &Gate) -> Reply {
        self.gate = Some(gate.clone());
        self
    }

    pub(crate) fn after(mut self, delay: Duration) -> Reply {
        self.delay = delay;
        self
    }

    /// Waits in the middle, before the last block has ended, and breaks off.
    pub(crate) fn held(mut self, gate: &Gate) -> Reply {
        self.held = Some(gate.clone());
        self.cut()
    }

    /// Breaks off in the middle.
    pub(crate) fn cut(mut self) -> Reply {
        self.cut = true;
        self
    }

    fn stream(&self) -> String {
        let mut out = String::new();
        let mut event = |value: Value| {
            let kind = value["type"].as_str().unwrap().to_owned();
            out.push_str(&format!("event: {kind}\ndata: {value}\n\n"));
        };
        event(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": [],
            "usage": {"input_tokens": 10, "output_tokens": 1}
        }}));
        for (index, part) in self.blocks.iter().enumerate() {
            let (block, delta) = match part {
                Part::Repeated(_, text) | Part::Text(text) => (
                    json!({"type": "text", "text": ""}),
                    json!({"type": "text_delta", "text": text}),
                ),
                Part::Thinking(text) => (
                    json!({"type": "thinking", "thinking": ""}),
                    json!({"type": "thinking_delta", "thinking": text}),
                ),
                Part::Call(name, arguments) => (
                    json!({"type": "tool_use", "id": format!("call_{index}"), "name": name, "input": {}}),
                    json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
                ),
            };
            event(json!({"type": "content_block_start", "index": index, "content_block": block}));
            let times = if let Part::Repeated(count, _) = part { *count } else { 1 };
            for _ in 0..times {
                event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            if !self.cut {
                event(json!({"type": "content_block_stop", "index": index}));
            }
        }
        if self.cut {
            return out;
        }
        let calls = self.blocks.iter().any(|part| matches!(part, Part::Call(..)));
        let stop = self.stop.unwrap_or(if calls { "tool_use" } else { "end_turn" });
        event(json!({"type": "message_delta", "delta": {"stop_reason": stop},
            "usage": {"output_tokens": 5}}));
        event(json!({"type": "message_stop"}));
        out
    }

    /// The blocks for a format that knows texts and calls only.
    fn pieces_of(&self) -> Vec<Piece> {
        let piece = |(index, part): (usize, &Part)| match part {
            Part::Text(text) | Part::Thinking(text) => Piece::Text(text.clone()),
            Part::Repeated(count, text) => Piece::Text(text.repeat(*count)),
            Part::Call(name, arguments) => Piece::Call {
                id: format!("call_{index}"),
                name: name.clone(),
                arguments: arguments.clone(),
            },
        };
        self.blocks.iter().enumerate().map(piece).collect()
    }

    fn send(&self, wire: Wire, mut stream: TcpStream) {
        std::thread::sleep(self.delay);
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        let answer = match &self.status {
            Some((code, headers, body)) => format!(
                "HTTP/1.1 {code} Some\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            ),
            None => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}",
                self.raw
                    .clone()
                    .or_else(|| wire.stream(&self.pieces_of()))
                    .unwrap_or_else(|| self.stream())
            ),
        };
        // The program may have gone meanwhile.
        let _ = stream.write_all(answer.as_bytes());
        if let Some(gate) = &self.held {
            gate.pass();
        }
    }
}

impl Request {
    /// Whether a child asks.
    pub(crate) fn is_child(&self) -> bool {
        self.tools().iter().any(|name| name == "crew_report")
    }

    /// Whether a child of the `task` tool asks.
    pub(crate) fn is_task_child(&self) -> bool {
        self.tools().iter().any(|name| name == "yield")
    }

    /// Answers of the model that the request shows.
    pub(crate) fn answers(&self) -> usize {
        self.wire().answers(&self.body)
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::of(&self.headers)
    }

    /// The tool that the answer must call.
    pub(crate) fn forced(&self) -> Option<&str> {
        self.wire().forced(&self.body)
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        self.wire().tools(&self.body)
    }

    /// All text of the last message.
    pub(crate) fn tail(&self) -> String {
        let messages = self.body["messages"].as_array().unwrap();
        texts(&messages.last().unwrap()["content"])
    }

    /// All text of all messages.
    pub(crate) fn all_text(&self) -> String {
        texts(&self.body["messages"])
    }

    /// Whether the last message answers calls.
    pub(crate) fn has_results(&self) -> bool {
        self.body["messages"].to_string().contains("\"tool_result\"")
    }
}

fn texts(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    if let Some(items) = value.as_array() {
        return items.iter().map(texts).collect();
    }
    ["text", "content"].iter().filter_map(|key| value.get(key)).map(texts).collect()
}

impl Server {
    pub(crate) fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (script, kept): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&log));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, log) = (Arc::clone(&script), Arc::clone(&kept));
                thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    log.lock().unwrap().push(request.clone());
                    script(&request).send(request.wire(), stream);
                });
            }
        });
        Server { port, log }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn owner_requests(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| !request.is_child()).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        if reader.read_line(&mut headers).ok()? == 0 {
            return None;
        }
    }
    let length = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { headers, body: serde_json::from_slice(&body).ok()? })
}
