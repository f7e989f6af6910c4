//! Connections to the one server an agent talks to.
//!
//! Each [`Server::client`] has connections of its own, so that a slow log upload never delays a renewal. The certificate shown can be
//! exchanged while the agent runs; connections made from then on use the new one. The `Date` of every answer tells how far the host's
//! clock is off.

mod stream;

use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use kube::client::Body;
use parking_lot::RwLock;
use rustls::{ClientConfig, pki_types::ServerName};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use stream::Connector;
use tower::Service;

use api::clock::Clock;

/// The protocols an agent speaks, as ALPN names.
pub const PROTOCOLS: [&str; 1] = ["http/1.1"];

/// `Date` has whole seconds, and an answer takes a moment: less than this is no skew.
const NO_SKEW: SignedDuration = SignedDuration::from_secs(2);

/// The server's address is not usable. A retry does not help.
#[derive(Debug, thiserror::Error)]
#[error("{url:?} is not a server's address: {why}; give it as https://HOST:PORT")]
pub struct BadUrl {
    url: String,
    why: String,
}

impl BadUrl {
    pub(crate) fn new(url: &str, why: impl Into<String>) -> Self {
        Self {
            url: url.to_owned(),
            why: why.into(),
        }
    }
}

/// A server and how it is spoken to.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    base: Uri,
    name: ServerName<'static>,
    host: String,
    port: u16,
    tls: RwLock<Arc<ClientConfig>>,
    authorization: Option<HeaderValue>,
    clock: Arc<dyn Clock>,
    skew_millis: AtomicI64,
}

impl Server {
    /// A server at `https://host[:port]`. `bearer` is sent with every request, for the time before there is a certificate.
    pub fn new(
        url: &str,
        tls: Arc<ClientConfig>,
        bearer: Option<&str>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BadUrl> {
        let bad = |why: String| BadUrl::new(url, why);
        let base: Uri = url
            .trim_end_matches('/')
            .parse()
            .map_err(|e: http::uri::InvalidUri| bad(e.to_string()))?;
        if base.scheme_str() != Some("https") {
            return Err(bad("it does not begin with https://".into()));
        }
        let host = base.host().ok_or_else(|| bad("it names no host".into()))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|e| bad(e.to_string()))?;
        let authorization = bearer
            .map(|bearer| HeaderValue::from_str(&format!("Bearer {bearer}")))
            .transpose()
            .map_err(|e| bad(e.to_string()))?
            .map(|mut value| {
                value.set_sensitive(true);
                value
            });
        Ok(Self(Arc::new(Shared {
            port: base.port_u16().unwrap_or(443),
            base,
            name,
            host,
            tls: RwLock::new(tls),
            authorization,
            clock,
            skew_millis: AtomicI64::new(0),
        })))
    }

    /// A client with connections of its own.
    pub fn client(&self) -> kube::Client {
        let http = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_timer(TokioTimer::new())
            .build(Connector(self.0.clone()));
        kube::Client::new(
            Transport {
                http,
                shared: self.0.clone(),
            },
            "default",
        )
    }

    /// Uses other TLS settings, with a renewed certificate, for connections made from now on.
    pub fn exchange(&self, tls: Arc<ClientConfig>) {
        *self.0.tls.write() = tls;
    }

    /// How far the server's clock is ahead of the host's; zero while that is less than can be told.
    pub fn skew(&self) -> SignedDuration {
        let skew = SignedDuration::from_millis(self.0.skew_millis.load(Ordering::Relaxed));
        if skew.abs() < NO_SKEW {
            SignedDuration::ZERO
        } else {
            skew
        }
    }
}

impl Shared {
    fn observe<B>(&self, response: &Response<B>, sent: Timestamp) {
        static PARSER: DateTimeParser = DateTimeParser::new();
        let date = response.headers().get(header::DATE);
        let Some(date) = date
            .and_then(|d| d.to_str().ok())
            .and_then(|d| PARSER.parse_timestamp(d).ok())
        else {
            return;
        };
        let received = self.clock.now();
        let there = date + SignedDuration::from_millis(500);
        let skew = (there.duration_since(sent) + there.duration_since(received)) / 2;
        if let Ok(millis) = i64::try_from(skew.as_millis()) {
            self.skew_millis.store(millis, Ordering::Relaxed);
        }
    }
}

/// Sends requests to the server's address.
#[derive(Clone)]
struct Transport {
    http: Client<Connector, Body>,
    shared: Arc<Shared>,
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let shared = self.shared.clone();
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = shared.base.scheme().cloned();
        parts.authority = shared.base.authority().cloned();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        if let Some(authorization) = &shared.authorization {
            request
                .headers_mut()
                .insert(header::AUTHORIZATION, authorization.clone());
        }
        let sent = shared.clock.now();
        let answer = self.http.request(request);
        Box::pin(async move {
            let response = answer.await?;
            shared.observe(&response, sent);
            Ok(response)
        })
    }
}

/// The whole body of an answer, at most `limit` bytes of it.
pub async fn read(response: Response<Body>, limit: usize) -> Result<Vec<u8>, kube::Error> {
    let limited = http_body_util::Limited::new(response.into_body(), limit);
    let collected = limited.collect().await.map_err(kube::Error::Service)?;
    Ok(collected.to_bytes().to_vec())
}
