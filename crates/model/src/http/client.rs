//! Connections: one client for plain targets, one for TLS, one for plain
//! targets behind a proxy, each built when it is first needed.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crew_base::model::{ModelError, ModelErrorKind};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioExecutor;
use reqwest::header::HeaderMap;
use reqwest::{Body, Client, ClientBuilder, NoProxy, Proxy, Response, Url};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

use super::{HttpConfig, ProxyConfig};
use crate::error::Error;

/// Plain HTTP through the CONNECT method of a proxy (`host.md` 1.2.4); the
/// ordinary client would forward such requests.
type TunnelClient = legacy::Client<Tunnel<HttpConnector>, Body>;

/// The clients of the process. All of them keep connections for later use.
pub(super) struct Clients {
    connect_timeout: Option<Duration>,
    proxy: ProxyConfig,
    plain: OnceLock<Result<Client, ModelError>>,
    tls: OnceLock<Result<Client, ModelError>>,
    tunnel: OnceLock<TunnelClient>,
}

impl Clients {
    pub(super) fn new(config: &HttpConfig) -> Clients {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Clients {
            connect_timeout: (config.connect_timeout_ms > 0)
                .then(|| Duration::from_millis(config.connect_timeout_ms)),
            proxy: ProxyConfig {
                http: given(&config.proxy.http),
                https: given(&config.proxy.https),
                no_proxy: given(&config.proxy.no_proxy),
            },
            plain: OnceLock::new(),
            tls: OnceLock::new(),
            tunnel: OnceLock::new(),
        }
    }

    /// Sends a request and waits for the headers of its response.
    pub(super) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: String,
    ) -> Result<Response, ModelError> {
        let url = usable(url)?;
        if url.scheme() == "https" {
            let client = self.tls.get_or_init(|| Ok(self.build_tls()?)).clone()?;
            return send(client.post(url).headers(headers).body(body)).await;
        }
        let client = self.plain.get_or_init(|| Ok(self.build_plain()?)).clone()?;
        let Some(proxy) = self.intercept(&url) else {
            return send(client.post(url).headers(headers).body(body)).await;
        };
        let request = client.post(url).headers(headers).body(body).build();
        let request = request.map_err(|error| unreachable(&error.without_url()))?;
        self.through(&proxy, request).await
    }

    fn build_plain(&self) -> Result<Client, Error> {
        // Without roots there is nothing to load; TLS targets never come here.
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let builder = self.builder().http1_only();
        builder.tls_backend_preconfigured(tls).build().map_err(Error::Client)
    }

    fn build_tls(&self) -> Result<Client, Error> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_platform_verifier()
            .map_err(Error::Tls)?
            .with_no_client_auth();
        let mut builder = self.builder().tls_backend_preconfigured(tls);
        if let Some(address) = &self.proxy.https {
            let proxy =
                Proxy::https(address).map_err(|_| Error::Proxy { address: shown(address) })?;
            let except = self.proxy.no_proxy.as_deref().unwrap_or_default();
            builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(except)));
        }
        builder.build().map_err(Error::Client)
    }

    fn builder(&self) -> ClientBuilder {
        let builder = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        match self.connect_timeout {
            Some(limit) => builder.connect_timeout(limit),
            None => builder,
        }
    }

    /// The proxy a plain target goes through, if any.
    fn intercept(&self, url: &Url) -> Option<Intercept> {
        let address = self.proxy.http.as_deref()?;
        let except = self.proxy.no_proxy.as_deref().unwrap_or_default();
        let matcher = Matcher::builder().http(address).no(except).build();
        matcher.intercept(&url.as_str().parse().ok()?)
    }

    async fn through(
        &self,
        proxy: &Intercept,
        request: reqwest::Request,
    ) -> Result<Response, ModelError> {
        if proxy.uri().scheme_str() != Some("http") {
            let address = shown(&proxy.uri().to_string());
            return Err(Error::Proxy { address }.into());
        }
        let client = self.tunnel.get_or_init(|| {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            connector.set_connect_timeout(self.connect_timeout);
            let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            legacy::Client::builder(TokioExecutor::new()).build(tunnel)
        });
        let response = client.request(with_port(request)?).await;
        let response = response.map_err(|error| unreachable(&error))?;
        Ok(response.map(Body::wrap).into())
    }
}

/// The request with the port of its target spelled out: without one a tunnel
/// takes that of TLS.
fn with_port(request: reqwest::Request) -> Result<http::Request<Body>, ModelError> {
    let url = request.url();
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let target = format!("http://{host}:{port}{}{query}", url.path());
    let mut request: http::Request<Body> =
        request.try_into().map_err(|error: reqwest::Error| unreachable(&error.without_url()))?;
    *request.uri_mut() = target.parse().map_err(|error| unreachable(&error))?;
    Ok(request)
}

async fn send(request: reqwest::RequestBuilder) -> Result<Response, ModelError> {
    let response = request.send().await;
    response.map_err(|error| unreachable(&error.without_url()))
}

fn usable(url: &str) -> Result<Url, ModelError> {
    let parsed = Url::parse(url).ok();
    let usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    parsed.filter(usable).ok_or_else(|| {
        let message = format!("base URL cannot be used: `{}`", shown(url));
        ModelError::new(ModelErrorKind::Configuration, message)
    })
}

/// Why no response came: no connection, or it broke before the headers.
fn unreachable(error: &(dyn std::error::Error + 'static)) -> ModelError {
    let cause = deepest_cause(error);
    if cause.contains("certificate") {
        let message = format!("the server's certificate is not accepted: {cause}");
        return ModelError::new(ModelErrorKind::Configuration, message);
    }
    let message = format!("connection error: {cause}");
    ModelError::new(ModelErrorKind::Connection, message)
}

/// The text of the innermost cause (`host.md` 9.1.9).
pub(super) fn deepest_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

/// An address without user, password, query and fragment.
fn shown(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return "(unreadable)".to_owned();
    };
    // Refused only by URLs that cannot hold them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}
