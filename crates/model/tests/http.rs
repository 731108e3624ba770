//! The HTTP exchange against raw sockets on loopback.

#![expect(clippy::unwrap_used, reason = "the helpers belong to tests too")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crew_base::model::{Api, ModelErrorKind, ModelEvent, ModelRequest};
use crew_model::Model;
use crew_model::auth::{AuthConfig, Credentials};
use crew_model::catalog::Catalog;
use crew_model::http::{Http, HttpConfig, ProxyConfig, StreamOptions};
use crew_model::provider::Provider;
use crew_model::wire::Credential;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
const TEXT: &str = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
                    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}}\n\n";
const END: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                   data: {\"type\":\"message_stop\"}\n\n";

/// A request to a server on this port.
fn request_to(port: u16) -> ModelRequest {
    let mut request = common::request(Api::AnthropicMessages, "m1");
    Arc::make_mut(&mut request.model).base_url = format!("http://127.0.0.1:{port}");
    request
}

fn http() -> Http {
    Http::new(config(ProxyConfig::default()))
}

fn config(proxy: ProxyConfig) -> HttpConfig {
    HttpConfig {
        user_agent: "crew/0 (test; test)".into(),
        connect_timeout_ms: 5_000,
        proxy,
        attribution: None,
    }
}

fn key() -> Credential {
    Credential::new(Some("sk-very-secret".into()), false, Vec::new())
}

/// All events of one attempt, one list for each call of the sink.
async fn batches(http: &Http, request: ModelRequest, idle_ms: u64) -> Vec<Vec<ModelEvent>> {
    let options = StreamOptions { idle_ms, ..StreamOptions::default() };
    let mut batches = Vec::new();
    http.stream(request, key(), &options, &mut |events| batches.push(events)).await;
    batches
}

async fn events(request: ModelRequest, idle_ms: u64) -> Vec<ModelEvent> {
    batches(&http(), request, idle_ms).await.concat()
}

fn failure(events: &[ModelEvent]) -> crew_base::model::ModelError {
    let Some(ModelEvent::Failed(error)) = events.last() else { panic!("{events:?}") };
    error.clone()
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Reads one request, head and body.
async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lines = head.lines().map(str::to_ascii_lowercase);
            let length = lines
                .filter_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
                .next();
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        let read = socket.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request ended early: {text}");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

/// Serves one connection with this text and closes it; gives the request.
async fn serve(answer: String) -> (u16, JoinHandle<String>) {
    let (listener, port) = listen().await;
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.unwrap();
        request
    });
    (port, task)
}

fn with_length(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_good_answer_starts_with_its_headers_and_ends_once() {
    // host.md 3.1.4, 9.1.12, 9.2.
    let (port, server) = serve(format!("{HEAD}connection: close\r\n\r\n{TEXT}{END}")).await;
    let events = events(request_to(port), 5_000).await;
    assert_eq!(events.first(), Some(&ModelEvent::Started));
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
    let request = server.await.unwrap();
    for line in [
        "POST /v1/messages HTTP/1.1",
        "x-api-key: sk-very-secret",
        "user-agent: crew/0 (test; test)",
        "anthropic-version: 2023-06-01",
        "content-type: application/json",
    ] {
        assert!(request.lines().any(|found| found == line), "{line} in {request}");
    }
}

#[tokio::test]
async fn a_connection_cut_mid_stream_keeps_the_text_and_fails() {
    // host.md 9.1.10, C106.
    let length = TEXT.len() + 100;
    let answer = format!("{HEAD}content-length: {length}\r\n\r\n{TEXT}");
    let (port, _server) = serve(answer).await;
    let events = events(request_to(port), 5_000).await;
    let error = failure(&events);
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message.contains("ended without"), "{error}");
    assert_eq!(common::gather(&events).blocks.len(), 1);
}

#[tokio::test]
async fn a_clean_end_without_the_final_event_is_a_cut_stream() {
    // host.md 9.1.10.
    let (port, _server) = serve(format!("{HEAD}connection: close\r\n\r\n{TEXT}")).await;
    let error = failure(&events(request_to(port), 5_000).await);
    assert_eq!(error.kind, ModelErrorKind::Truncated);
}

#[tokio::test]
async fn silence_before_the_headers_and_within_the_body_is_limited() {
    // host.md 9.1.11.
    for answer in ["", HEAD, &format!("{HEAD}\r\n{TEXT}")] {
        let (listener, port) = listen().await;
        let answer = answer.to_owned();
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await;
            socket.write_all(answer.as_bytes()).await.unwrap();
            // Ends when the client lets go.
            let _ = socket.read(&mut [0; 16]).await;
        });
        let error = failure(&events(request_to(port), 80).await);
        assert_eq!(error.kind, ModelErrorKind::Idle);
        assert!(error.message.contains("timeout"), "{error}");
        server.await.unwrap();
    }
}

#[tokio::test]
async fn refusals_carry_status_kind_and_the_wish_to_wait() {
    // host.md 9.1.9, 3.6.9; C088, C089.
    let check = async |status: &str, headers: &str, kind, wait| {
        let (port, _server) = serve(with_length(status, headers, "{\"why\":1}")).await;
        let events = events(request_to(port), 5_000).await;
        assert_eq!(events.len(), 1, "{events:?}");
        let error = failure(&events);
        let code: u16 = status[..3].parse().unwrap();
        assert_eq!((error.kind, error.status), (kind, Some(code)));
        assert_eq!(error.retry_after_ms, wait);
        assert_eq!(error.message, format!("{code}: {{\"why\":1}}"));
    };
    use ModelErrorKind as K;
    check("401 Unauthorized", "", K::Credential, None).await;
    check("429 Slow", "retry-after: 7\r\n", K::RateLimit, Some(7000)).await;
    check("529 Full", "Retry-After-Ms: 40\r\n", K::Overloaded, Some(40)).await;
    let date = "date: Sun, 06 Nov 1994 08:49:30 GMT\r\n";
    let until = format!("{date}retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    check("503 Busy", &until, K::Overloaded, Some(7000)).await;
    check("302 Found", "location: /elsewhere\r\n", K::Configuration, None).await;
}

#[tokio::test]
async fn a_wait_until_a_date_counts_from_now_without_a_date_header() {
    // host.md 3.6.9: what lies in the past needs no wait.
    let headers = "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let (port, _server) = serve(with_length("429 Slow", headers, "x")).await;
    let error = failure(&events(request_to(port), 5_000).await);
    assert_eq!(error.retry_after_ms, Some(0));
}

#[tokio::test]
async fn a_body_that_repeats_the_key_is_shown_without_it() {
    // C113.
    let body = "{\"error\":{\"message\":\"bad key sk-very-secret\"}}";
    let (port, _server) = serve(with_length("400 Bad", "", body)).await;
    let error = failure(&events(request_to(port), 5_000).await);
    assert!(error.message.contains("bad key [secret]"), "{error}");
    let stream = format!("{HEAD}connection: close\r\n\r\ndata: {body}\n\n");
    let (port, _server) = serve(stream).await;
    let error = failure(&events(request_to(port), 5_000).await);
    assert_eq!(error.message, "bad key [secret]");
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    // host.md 9.1.13.
    let (listener, port) = listen().await;
    let mut events = Vec::new();
    let none = Credential::default();
    http()
        .stream(request_to(port), none, &StreamOptions::default(), &mut |batch| {
            events.extend(batch);
        })
        .await;
    let error = failure(&events);
    assert_eq!(error.kind, ModelErrorKind::Credential);
    assert!(error.message.contains("fake"), "{error}");
    let waiting = tokio::time::timeout(Duration::from_millis(20), listener.accept()).await;
    assert!(waiting.is_err(), "no connection was made");
}

#[tokio::test]
async fn dropping_the_exchange_closes_the_socket() {
    // host.md 3.5.1.
    for answer in ["", &format!("{HEAD}\r\n{TEXT}")] {
        let (listener, port) = listen().await;
        let http = http();
        let options = StreamOptions::default();
        let mut sink = |_| {};
        let mut exchange = Box::pin(http.stream(request_to(port), key(), &options, &mut sink));
        let answer = answer.to_owned();
        let mut server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await;
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket
        });
        let mut socket = tokio::select! {
            () = &mut exchange => panic!("the server never ends"),
            socket = &mut server => socket.unwrap(),
        };
        drop(exchange);
        let read = tokio::time::timeout(Duration::from_secs(5), socket.read(&mut [0; 16])).await;
        let read = read.expect("the socket closes");
        assert!(matches!(read, Ok(0) | Err(_)));
    }
}

#[tokio::test]
async fn a_refused_connection_names_its_cause() {
    // host.md 9.1.9.
    let (listener, port) = listen().await;
    drop(listener);
    let error = failure(&events(request_to(port), 5_000).await);
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message.to_lowercase().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn an_unusable_base_url_is_a_matter_of_configuration() {
    for url in ["nowhere", "file:///etc"] {
        let mut request = request_to(1);
        Arc::make_mut(&mut request.model).base_url = url.into();
        let error = failure(&events(request, 5_000).await);
        assert_eq!(error.kind, ModelErrorKind::Configuration, "{error}");
    }
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let (listener, port) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            read_request(&mut socket).await;
            let body = format!("{TEXT}{END}");
            let answer = with_length("200 OK", "content-type: text/event-stream\r\n", &body);
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let http = http();
    for _ in 0..2 {
        let batches = batches(&http, request_to(port), 5_000).await;
        // The headers, then all events of the one chunk together.
        assert_eq!(batches.len(), 2, "{batches:?}");
    }
    server.await.unwrap();
}

#[tokio::test]
async fn a_stream_held_open_after_its_end_does_not_hold_the_answer() {
    let (listener, port) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        let answer = format!("{HEAD}\r\n{TEXT}{END}");
        socket.write_all(answer.as_bytes()).await.unwrap();
        let _ = socket.read(&mut [0; 16]).await;
    });
    let events = events(request_to(port), 0).await;
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
    server.await.unwrap();
}

#[tokio::test]
async fn plain_targets_are_tunnelled_through_a_proxy() {
    // host.md 1.2.4.
    let (listener, port) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let connect = read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let request = read_request(&mut socket).await;
        let answer = format!("{HEAD}connection: close\r\n\r\n{TEXT}{END}");
        socket.write_all(answer.as_bytes()).await.unwrap();
        (connect, request)
    });
    let http = Http::new(config(ProxyConfig {
        http: Some(format!("http://user:word@127.0.0.1:{port}")),
        https: None,
        no_proxy: Some("localhost, other.example".into()),
    }));
    let mut request = request_to(1);
    Arc::make_mut(&mut request.model).base_url = "http://model.example/v9".into();
    let events = batches(&http, request, 5_000).await.concat();
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })), "{events:?}");
    let (connect, request) = server.await.unwrap();
    assert!(connect.starts_with("CONNECT model.example:80 HTTP/1.1\r\n"), "{connect}");
    assert!(connect.to_lowercase().contains("proxy-authorization: basic "), "{connect}");
    assert!(request.starts_with("POST /v9/v1/messages HTTP/1.1\r\n"), "{request}");
    assert!(request.lines().any(|line| line == "host: model.example"), "{request}");
    assert!(request.lines().any(|line| line == "x-api-key: sk-very-secret"));
    assert!(!request.contains("proxy-authorization"));
}

#[tokio::test]
async fn targets_named_in_no_proxy_are_reached_directly() {
    // host.md 1.2.4.
    let (port, server) = serve(format!("{HEAD}connection: close\r\n\r\n{TEXT}{END}")).await;
    let http = Http::new(config(ProxyConfig {
        http: Some("http://127.0.0.1:1".into()),
        https: None,
        no_proxy: Some("127.0.0.1,localhost".into()),
    }));
    let events = batches(&http, request_to(port), 5_000).await.concat();
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })), "{events:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_client_for_tls_can_be_built_and_says_why_it_failed() {
    // dependencies.md 1: a server that speaks no TLS.
    let (listener, port) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 16]).await;
        let _ = socket.write_all(b"HTTP/1.1 400 Bad\r\n\r\n").await;
    });
    let mut request = request_to(1);
    Arc::make_mut(&mut request.model).base_url = format!("https://127.0.0.1:{port}");
    let error = failure(&events(request, 5_000).await);
    assert_eq!(error.kind, ModelErrorKind::Connection, "{error}");
    server.await.unwrap();
}

/// The events of the real model for a provider whose key stands in a variable.
async fn provided(port: u16, variable: Option<&'static str>) -> Vec<ModelEvent> {
    let text = format!(
        r#"{{"providers":{{"own":{{"baseUrl":"http://127.0.0.1:{port}","api":"anthropic-messages",
            "apiKey":"$OWN_KEY","models":[{{"id":"m"}}]}}}}}}"#
    );
    let (catalog, error) = Catalog::build(Some(("models.json", &text)));
    assert!(error.is_none());
    let catalog = Arc::new(catalog);
    let mut request = request_to(port);
    request.model = catalog.get("own", "m").unwrap();
    let (credentials, _) = Credentials::new(AuthConfig {
        catalog,
        auth_path: "auth.json".into(),
        auth_text: None,
        environment: Arc::new(move |name| {
            let known = variable.filter(|_| name == "OWN_KEY");
            known.map(str::to_owned)
        }),
        clock: Arc::new(|| crew_base::time::Time(0)),
    });
    let options = StreamOptions::default();
    let provider = Provider::new(Arc::new(http()), Arc::new(credentials), options);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let take = move |events: Vec<ModelEvent>| sink.lock().unwrap().extend(events);
    provider.stream(request, Box::new(take)).await;
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[tokio::test]
async fn the_provider_resolves_the_key_of_the_model_and_streams() {
    // host.md 1.5.9, 9.1.13.
    let (port, server) = serve(format!("{HEAD}connection: close\r\n\r\n{TEXT}{END}")).await;
    let events = provided(port, Some("sk-from-variable")).await;
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
    let request = server.await.unwrap();
    let sent = request.lines().any(|line| line == "x-api-key: sk-from-variable");
    assert!(sent, "{request}");
    let error = failure(&provided(1, None).await);
    assert_eq!(error.kind, ModelErrorKind::Credential);
    assert!(error.message.contains("own"), "{error}");
}
