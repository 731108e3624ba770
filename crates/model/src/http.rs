//! The HTTP exchange of one request: sends, reads, and tells every outcome as
//! an event.
//!
//! Makes one attempt. Must never retry, follow a redirect, read the
//! environment or let a secret out. Dropping the future closes the exchange.
//! Read `http::client` for connections and proxies, `http::headers` for
//! authorisation.

mod client;
mod headers;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use reqwest::Response;
use tokio::time::timeout;

use crate::wire::{
    Credential, EncodeOptions, Encoded, ResponseReader, encode, http_error, retry_after_ms,
};
use client::Clients;

/// What the process fixes once about its HTTP traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpConfig {
    /// `crew/<version> (<os>; <arch>)` (`host.md` 9.1.12).
    pub user_agent: String,
    /// Limit for setting up a connection; zero means none.
    pub connect_timeout_ms: u64,
    /// Proxies for model traffic (`host.md` 1.2.4).
    pub proxy: ProxyConfig,
    /// Sent to OpenRouter only; `None` without telemetry.
    pub attribution: Option<Attribution>,
}

/// Values of the proxy variables; blank ones count as absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyConfig {
    /// `HTTP_PROXY`: for plain targets, which are tunnelled too.
    pub http: Option<String>,
    /// `HTTPS_PROXY`.
    pub https: Option<String>,
    /// `NO_PROXY`.
    pub no_proxy: Option<String>,
}

/// How the product names itself to OpenRouter.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// `HTTP-Referer`.
    pub referer: String,
    /// `X-OpenRouter-Title`.
    pub title: String,
}

/// Settings of one exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamOptions {
    /// Longest silence, before the headers and within the body; zero means no
    /// limit (`host.md` 9.1.11).
    pub idle_ms: u64,
    /// For the encoders.
    pub encode: EncodeOptions,
}

/// The HTTP side of the process. Clients and TLS roots are set up with the
/// first request that needs them, so building one costs nothing.
pub struct Http {
    config: HttpConfig,
    clients: Clients,
}

impl Http {
    /// Takes the settings; opens nothing.
    pub fn new(config: HttpConfig) -> Http {
        Http { clients: Clients::new(&config), config }
    }

    /// Makes one attempt. The sink gets the events of all network chunks that
    /// are there in one call; the last event is `Finished` or `Failed`. Secrets of the
    /// credential are removed from every failure (C113).
    pub async fn stream(
        &self,
        request: ModelRequest,
        credential: Credential,
        options: &StreamOptions,
        sink: &mut (dyn FnMut(Vec<ModelEvent>) + Send),
    ) {
        let mut deliver = |mut events: Vec<ModelEvent>| {
            for event in &mut events {
                if let ModelEvent::Failed(error) = event {
                    error.message = credential.redact(&error.message);
                }
            }
            if !events.is_empty() {
                sink(events);
            }
        };
        let done = self.exchange(&request, &credential, options, &mut deliver);
        if let Err(error) = done.await {
            deliver(vec![ModelEvent::Failed(error)]);
        }
    }

    async fn exchange(
        &self,
        request: &ModelRequest,
        credential: &Credential,
        options: &StreamOptions,
        deliver: &mut (dyn FnMut(Vec<ModelEvent>) + Send),
    ) -> Result<(), ModelError> {
        let encoded = encode(request, &options.encode)?;
        if !credential.authorises() {
            return Err(ModelError::new(
                ModelErrorKind::Credential,
                format!("no API key for provider {}", request.model.provider),
            ));
        }
        let silence = Silence { idle_ms: options.idle_ms, provider: &request.model.provider };
        let sent = self.send(request, credential, encoded);
        let mut response = silence.limit(sent).await??;
        if response.status().as_u16() >= 300 {
            return Err(refusal(request, response, &silence).await?);
        }
        deliver(vec![ModelEvent::Started]);
        let mut reader = ResponseReader::new(request);
        while !reader.is_done() {
            let mut chunk = Some(silence.limit(response.chunk()).await?);
            let mut events = Vec::new();
            let mut broke = None;
            while let Some(read) = chunk.take() {
                match read {
                    Ok(Some(bytes)) => reader.feed(&bytes, &mut events),
                    Ok(None) => reader.end(&mut events),
                    Err(error) => broke = Some(broken(error)),
                }
                let goes_on = broke.is_none() && !reader.is_done();
                if goes_on && events.len() < BATCH_EVENTS_MAX {
                    chunk = at_once(response.chunk()).await;
                }
            }
            deliver(events);
            broke.map_or(Ok(()), Err)?;
        }
        drain(&mut response).await;
        Ok(())
    }

    async fn send(
        &self,
        request: &ModelRequest,
        credential: &Credential,
        encoded: Encoded,
    ) -> Result<Response, ModelError> {
        let headers = headers::all(&self.config, &request.model, credential, &encoded.headers)?;
        self.clients.post(&encoded.url, headers, encoded.body).await
    }
}

/// Events told at once: fast streams of small chunks cost less so.
const BATCH_EVENTS_MAX: usize = 64;

/// What comes without waiting, but for a turn of the task that reads the
/// connection: that one hands on only one chunk at a time.
async fn at_once<T>(next: impl Future<Output = T>) -> Option<T> {
    let mut next = pin!(next);
    let mut had_turn = false;
    poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending if had_turn => Poll::Ready(None),
        Poll::Pending => {
            had_turn = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// The limit on silence.
struct Silence<'a> {
    idle_ms: u64,
    provider: &'a str,
}

impl Silence<'_> {
    async fn limit<T>(&self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        if self.idle_ms == 0 {
            return Ok(work.await);
        }
        let limit = Duration::from_millis(self.idle_ms);
        timeout(limit, work).await.map_err(|_| {
            let message = format!(
                "nothing came from provider {} for {} ms (idle timeout)",
                self.provider, self.idle_ms
            );
            ModelError::new(ModelErrorKind::Idle, message)
        })
    }
}

/// Reads the body of an error response, as far as it is worth it.
async fn refusal(
    request: &ModelRequest,
    mut response: Response,
    silence: &Silence<'_>,
) -> Result<ModelError, ModelError> {
    const BODY_BYTES_MAX: usize = 64 * 1024;
    let mut body = Vec::new();
    while body.len() < BODY_BYTES_MAX {
        // A body that breaks off must not hide the status.
        let Ok(Some(bytes)) = silence.limit(response.chunk()).await? else {
            break;
        };
        body.extend_from_slice(&bytes);
    }
    body.truncate(BODY_BYTES_MAX);
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        Some(value.to_str().ok()?.to_owned())
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.ok().map(|since| since.as_secs());
    let status = response.status().as_u16();
    let body = String::from_utf8_lossy(&body);
    Ok(ModelError {
        retry_after_ms: retry_after_ms(&header, now),
        ..http_error(&request.model, status, &header, &body)
    })
}

/// Reads what follows the protocol's end, so that the connection can serve the
/// next request; gives up soon, as some servers hold it open.
async fn drain(response: &mut Response) {
    const DRAIN_MS_MAX: u64 = 20;
    const CHUNKS_MAX: usize = 16;
    // With HTTP/2 a stream is simply reset.
    if response.version() > reqwest::Version::HTTP_11 {
        return;
    }
    let rest = async {
        for _ in 0..CHUNKS_MAX {
            if !matches!(response.chunk().await, Ok(Some(_))) {
                return;
            }
        }
    };
    // Either way the answer is complete.
    let _ = timeout(Duration::from_millis(DRAIN_MS_MAX), rest).await;
}

fn broken(error: reqwest::Error) -> ModelError {
    let cause = client::deepest_cause(&error.without_url());
    ModelError::new(
        ModelErrorKind::Connection,
        format!("the response ended without its end: connection lost ({cause})"),
    )
}
