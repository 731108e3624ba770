//! The other side of the wire: a small HTTP server on loopback that answers
//! in the `anthropic-messages` format (`host.md` 9.2) as a script says, and
//! notes when each request came and each answer was gone.
//!
//! Must stay cheap: it shares the machine with the program that is measured,
//! so bodies are searched, never parsed. One thread for each connection.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{HttpRequest, Listener, chunk};
use crate::run::Outcome;

/// A request as the script sees it.
pub(crate) struct Request {
    /// When the last byte of it was read.
    pub(crate) arrived: Instant,
    pub(crate) body: Vec<u8>,
    /// Sent by a child session: it is offered `crew_report` or `yield`.
    pub(crate) child: bool,
    /// Number of tool results in the conversation.
    pub(crate) results: usize,
}

/// What the script answers.
pub(crate) struct Reply {
    /// Passes before the first byte.
    pub(crate) wait: Duration,
    pub(crate) blocks: Vec<Block>,
    /// Passes between two deltas; without it all is written at once.
    pub(crate) gap: Option<Duration>,
}

impl Reply {
    /// An answer without a wait.
    pub(crate) fn at_once(blocks: Vec<Block>) -> Reply {
        Reply::after(Duration::ZERO, blocks)
    }

    /// An answer that comes as a whole after a wait.
    pub(crate) fn after(wait: Duration, blocks: Vec<Block>) -> Reply {
        Reply { wait, blocks, gap: None }
    }
}

/// One part of an answer.
pub(crate) enum Block {
    Text(&'static str),
    /// So many deltas of a few letters each.
    Deltas(usize),
    Call(&'static str, Value),
}

/// One exchange.
pub(crate) struct Exchange {
    pub(crate) arrived: Instant,
    /// When the last byte of the answer was written.
    pub(crate) sent: Instant,
    pub(crate) child: bool,
    /// The request; left empty for children and for very long ones.
    pub(crate) body: Vec<u8>,
    /// The numbers behind the first `goal-` of a child's request.
    pub(crate) number: Option<usize>,
}

/// Decides the answer to each request; called from many threads.
pub(crate) type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server; it stops when dropped.
pub(crate) struct Provider {
    listener: Listener,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<Script>,
    count: AtomicUsize,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Provider {
    /// Starts a server on a free port of loopback.
    pub(crate) fn start(script: Box<Script>) -> Outcome<Self> {
        let shared = Arc::new(Shared {
            script,
            count: AtomicUsize::new(0),
            exchanges: Mutex::new(Vec::new()),
        });
        let serving = Arc::clone(&shared);
        let listener = Listener::start(move |stream| {
            // A connection that ends in the middle is the client's business.
            let _ = serve(stream, &serving);
        })?;
        Ok(Self { listener, shared })
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> String {
        self.listener.url()
    }

    /// Takes all exchanges so far, in order of arrival.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        let mut taken = std::mem::take(&mut *self.shared.lock());
        taken.sort_by_key(|exchange| exchange.arrived);
        taken
    }
}

impl Shared {
    /// Notes an exchange and returns its place in the list.
    fn note(&self, request: Request) -> usize {
        let keep = !request.child && request.body.len() <= KEPT_BYTES_MAX;
        let goal = || number_behind(&request.body, b"goal-");
        let exchange = Exchange {
            arrived: request.arrived,
            sent: Instant::now(),
            child: request.child,
            number: request.child.then(goal).flatten(),
            body: if keep { request.body } else { Vec::new() },
        };
        let mut exchanges = self.lock();
        exchanges.push(exchange);
        exchanges.len() - 1
    }

    /// Notes that the answer of that exchange is written.
    fn sent(&self, index: usize) {
        let now = Instant::now();
        if let Some(exchange) = self.lock().get_mut(index) {
            exchange.sent = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Exchange>> {
        let exchanges = self.exchanges.lock();
        exchanges.unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(READ_BYTES, stream.try_clone()?);
    let mut writer = stream;
    while let Some(HttpRequest { body, .. }) = HttpRequest::read(&mut reader)? {
        let request = Request {
            arrived: Instant::now(),
            child: !has(&body, b"\"name\":\"crew_spawn\"")
                && (has(&body, b"\"name\":\"crew_report\"") || has(&body, b"\"name\":\"yield\"")),
            results: occurrences(&body, b"\"tool_result\""),
            body,
        };
        let reply = (shared.script)(&request);
        let number = shared.count.fetch_add(1, Ordering::Relaxed);
        let answer = render(number, &reply.blocks);
        thread::sleep(reply.wait);
        // Noted before the answer is written: who has the answer may ask at
        // once what was noted.
        let index = shared.note(request);
        match reply.gap {
            None => writer.write_all(&answer)?,
            Some(gap) => write_slowly(&mut writer, &answer, gap)?,
        }
        shared.sent(index);
    }
    Ok(())
}

/// Writes an answer delta by delta. Late ones are written at once, so that the
/// pace holds on the whole.
fn write_slowly(writer: &mut TcpStream, answer: &[u8], gap: Duration) -> io::Result<()> {
    const MARK: &[u8] = b"event: content_block_delta";
    let mut due = Instant::now();
    let mut rest = answer;
    while let Some(at) = rest.get(1..).and_then(|behind| find(behind, MARK)) {
        let (piece, tail) = rest.split_at(at + 1);
        writer.write_all(piece)?;
        rest = tail;
        due += gap;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    writer.write_all(rest)
}

/// Renders a whole HTTP answer, one chunk for each event.
fn render(number: usize, blocks: &[Block]) -> Vec<u8> {
    let mut out =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    event(
        &mut out,
        "message_start",
        &json!({"type": "message_start", "message": {
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m1",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
        }}),
    );
    let mut stop = "end_turn";
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = match block {
            Block::Text(text) => (
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": text})],
            ),
            Block::Deltas(count) => (
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": "delta "}); *count],
            ),
            Block::Call(name, arguments) => {
                stop = "tool_use";
                let id = format!("toolu_{number}_{index}");
                (
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    vec![
                        json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
                    ],
                )
            }
        };
        let name = "content_block_start";
        event(&mut out, name, &json!({"type": name, "index": index, "content_block": start}));
        let name = "content_block_delta";
        for delta in deltas {
            event(&mut out, name, &json!({"type": name, "index": index, "delta": delta}));
        }
        let name = "content_block_stop";
        event(&mut out, name, &json!({"type": name, "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    let name = "message_delta";
    event(&mut out, name, &json!({"type": name, "delta": delta, "usage": {"output_tokens": 5}}));
    event(&mut out, "message_stop", &json!({"type": "message_stop"}));
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

fn event(out: &mut Vec<u8>, name: &str, data: &Value) {
    out.extend_from_slice(&chunk(&format!("event: {name}\ndata: {data}\n\n")));
}

/// Says whether the bytes hold the needle.
pub(crate) fn has(bytes: &[u8], needle: &[u8]) -> bool {
    find(bytes, needle).is_some()
}

/// Counts the places of the needle.
pub(crate) fn occurrences(bytes: &[u8], needle: &[u8]) -> usize {
    let (mut rest, mut count) = (bytes, 0);
    while let Some(at) = find(rest, needle) {
        count += 1;
        rest = &rest[at + needle.len()..];
    }
    count
}

/// Returns the digits behind the first occurrence of the needle as a number.
pub(crate) fn number_behind(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let at = find(bytes, needle)? + needle.len();
    let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let text: String = digits.map(|&byte| char::from(byte)).collect();
    text.parse().ok()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let (&first, rest) = needle.split_first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == first) {
        let behind = from + at + 1;
        if bytes[behind..].starts_with(rest) {
            return Some(behind - 1);
        }
        from = behind;
    }
    None
}

const READ_BYTES: usize = 64 * 1024;
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// Sends one raw request and returns the raw answer.
    fn exchange(provider: &Provider, body: &str) -> String {
        let mut stream = TcpStream::connect(provider.listener.address()).unwrap();
        let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while !answer.ends_with(b"0\r\n\r\n") {
            let length = stream.read(&mut buffer).unwrap();
            assert!(length > 0, "the answer was cut");
            answer.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn a_child_is_told_by_its_tools_and_answered_by_the_script() {
        let script = |request: &Request| Reply {
            wait: Duration::ZERO,
            gap: (!request.child).then_some(Duration::from_millis(1)),
            blocks: if request.child {
                vec![Block::Call("crew_report", json!({"outcome": "completed"}))]
            } else {
                vec![Block::Text("hello"), Block::Deltas(2)]
            },
        };
        let provider = Provider::start(Box::new(script)).unwrap();
        let owner = exchange(&provider, r#"{"tools":[{"name":"crew_spawn"}]}"#);
        assert!(owner.contains("hello") && owner.contains("end_turn"), "{owner}");
        let child = exchange(&provider, r#"{"tools":[{"name":"crew_report"}],"x":"goal-00042"}"#);
        assert!(child.contains("tool_use") && child.contains("crew_report"), "{child}");
        let numbers: Vec<_> =
            provider.take().iter().map(|exchange| (exchange.child, exchange.number)).collect();
        assert_eq!(numbers, [(false, None), (true, Some(42))]);
        let asked = exchange(&provider, r#"{"tools":[{"name":"yield"}]}"#);
        assert!(asked.contains("tool_use"), "a child of `task` is one too: {asked}");
    }

    #[test]
    fn bytes_are_searched_without_parsing() {
        assert_eq!(occurrences(b"aXbaXb", b"aX"), 2);
        assert_eq!(number_behind(b"x goal-00042\"", b"goal-"), Some(42));
        assert_eq!(number_behind(b"x", b"goal-"), None);
        assert!(has(b"aab", b"ab") && !has(b"aab", b"bb"));
    }
}
