//! The part of HTTP that the fake providers share: a listener on loopback and
//! the reading of requests.
//!
//! Must never know a provider's wire format; the answers are those of
//! `bench::provider` and `interop::server`.

use std::io::{self, BufRead};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::run::Outcome;

/// A listener on a free port of loopback with one thread for each connection;
/// it stops when dropped.
pub(crate) struct Listener {
    port: u16,
    stop: Arc<AtomicBool>,
}

impl Listener {
    /// Starts listening; `serve` gets each connection.
    pub(crate) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Outcome<Self> {
        let failed = |error: io::Error| format!("cannot start the fake provider: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        thread::spawn(move || accept(&listener, &stopping, &Arc::new(serve)));
        Ok(Self { port, stop })
    }

    /// Returns where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which then sees the flag; when the
        // connection fails, it has ended already.
        let _ = TcpStream::connect(self.address());
    }
}

fn accept<Serve>(listener: &TcpListener, stop: &AtomicBool, serve: &Arc<Serve>)
where
    Serve: Fn(TcpStream) + Send + Sync + 'static,
{
    for stream in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let serve = Arc::clone(serve);
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        // Without a thread the connection closes, and the client says so.
        let _ = builder.spawn(move || serve(stream));
    }
}

/// One request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    /// Method, path and version.
    pub(crate) line: String,
    /// Header lines without their line ends.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// Reads one request; `None` at the end of the stream.
    pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            if header.trim().is_empty() {
                break;
            }
            headers.push(header.trim_end().to_owned());
        }
        let mut request = Self { line: line.trim_end().to_owned(), headers, body: Vec::new() };
        request.body = request.read_body(reader)?;
        Ok(Some(request))
    }

    /// Returns the value of a header; the name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|header| {
            let (found, value) = header.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn read_body(&self, reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let encoding = self.header("transfer-encoding").unwrap_or_default();
        if encoding.to_ascii_lowercase().contains("chunked") {
            return read_chunks(reader);
        }
        let length = self.header("content-length").unwrap_or("0");
        let mut body = vec![0; length.parse().map_err(io::Error::other)?];
        reader.read_exact(&mut body)?;
        Ok(body)
    }
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let (mut body, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + length, 0);
        reader.read_exact(&mut body[start..])?;
        line.clear();
        reader.read_line(&mut line)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// Renders one chunk of a chunked answer; that of the empty text is the last.
pub(crate) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

const STACK_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read as _};

    #[test]
    fn chunked_requests_are_read_too() {
        let raw = b"POST /v1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let mut reader = BufReader::new(&raw[..]);
        let request = HttpRequest::read(&mut reader).unwrap().unwrap();
        assert_eq!(request.line, "POST /v1 HTTP/1.1");
        assert_eq!(request.body, b"abcde");
        assert_eq!(request.header("x-a"), Some("b"));
        assert_eq!(HttpRequest::read(&mut reader).unwrap(), None);
    }

    #[test]
    fn chunks_carry_their_length_and_the_empty_one_ends() {
        assert_eq!(chunk("ab"), b"2\r\nab\r\n");
        assert_eq!(chunk(""), b"0\r\n\r\n");
    }

    #[test]
    fn a_connection_reaches_the_server_until_it_is_dropped() {
        let listener = Listener::start(drop).unwrap();
        let mut text = String::new();
        TcpStream::connect(listener.address()).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
        assert!(listener.url().ends_with(&listener.address().port().to_string()));
    }
}
