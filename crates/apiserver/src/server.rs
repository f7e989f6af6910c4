//! The server as others see it: made over a store and kinds, served on a listener, used in-process.

use crate::cache::{self, Bounds, Cache, FillError, Pins};
use crate::documents::Documents;
use crate::handle::handle;
use crate::inner::Inner;
use crate::metrics::Metrics;
use crate::object::Shape;
use crate::random::Random;
use crate::serve;
use api::clock::{Clock, SystemClock};
use api::identity::Identity;
use axum::body::Body;
use http::{Request, Response};
use machinery::kind::Kind;
use serde_json::Value;
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Between looks for snapshots nobody uses.
const SWEEP: Duration = Duration::from_secs(30);

/// How a server works.
#[derive(Clone)]
pub struct Options {
    /// The program's version, shown in `/version` behind Kubernetes'.
    pub version: String,
    /// Bytes of recent events kept per kind: how far behind a watcher may fall. Default 64 MiB.
    pub history_bytes: usize,
    /// How long events are kept per kind: after how long a pause a watcher can resume. Default 15 minutes.
    pub history_age: Duration,
    /// Whether other servers write to the same store: reads then ask it how far it is. Default no.
    pub shared_store: bool,
    /// Signs the certificates of agents; without one, enrolment is refused.
    pub authority: Option<Arc<pki::Authority>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Uids and name suffixes.
    pub random: Random,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            history_bytes: 64 << 20,
            history_age: Duration::from_secs(15 * 60),
            shared_store: false,
            authority: None,
            clock: Arc::new(SystemClock),
            random: Random::system(),
        }
    }
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What is stored could not be read.
    #[error("cannot read the store: {0}")]
    Fill(#[from] FillError),
    /// A built-in object could not be made. A retry can help if the disk was full.
    #[error("cannot make the built-in {what}: {why}")]
    BuiltIn {
        /// Which one.
        what: String,
        /// The server's own answer.
        why: String,
    },
}

/// An API server. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Server")
    }
}

impl Server {
    /// Reads the store into memory and makes the built-in namespaces if they are missing. Must be called in a tokio
    /// runtime; a task that follows the store runs until the store is closed.
    pub async fn start(
        store: Arc<dyn Store>,
        kinds: Vec<Kind>,
        options: Options,
    ) -> Result<Self, StartError> {
        let documents = Documents::new(&kinds, &options.version);
        let bounds = Bounds {
            bytes: options.history_bytes,
            age: options.history_age,
        };
        let shapes = kinds.into_iter().map(|kind| Arc::new(Shape::new(kind)));
        let cache = Arc::new(Cache::new(shapes, bounds));
        cache::fill(cache.clone(), store.clone()).await?;
        let inner = Inner {
            store,
            cache,
            pins: Pins::new(options.random.number()),
            clock: options.clock.clone(),
            random: options.random.clone(),
            documents,
            metrics: Metrics::new(),
            mounted: OnceLock::new(),
            stop: watch::Sender::new(false),
            options,
        };
        let server = Self {
            inner: Arc::new(inner),
        };
        tokio::spawn(sweep(Arc::downgrade(&server.inner)));
        for namespace in ["default", crate::SYSTEM_NAMESPACE, crate::NODE_LEASES] {
            let object =
                serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.ensure(&object).await?;
        }
        Ok(server)
    }

    /// Makes a built-in object unless there is one of its name.
    pub async fn ensure(&self, object: &Value) -> Result<(), StartError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let failed = |why: String| StartError::BuiltIn {
            what: format!("{kind} {name}"),
            why,
        };
        let version = text(&object["apiVersion"]);
        let found = self
            .inner
            .cache
            .kinds()
            .find(|k| k.shape.kind.kind == kind && k.shape.kind.api_version() == version);
        let cache = found.ok_or_else(|| failed("no such kind is served".into()))?;
        let namespace = text(&object["metadata"]["namespace"]);
        if cache.get(&namespace, &name).is_some() {
            return Ok(());
        }
        let group = if cache.shape.kind.group.is_empty() {
            "/api"
        } else {
            "/apis"
        };
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!("/namespaces/{namespace}")
        };
        let mut request = Request::new(Body::from(object.to_string()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = format!("{group}/{version}{place}/{}", cache.shape.kind.plural)
            .parse()
            .map_err(|error: http::uri::InvalidUri| failed(error.to_string()))?;
        let response = self.handle(request, Identity::part("bootstrap")).await;
        if response.status().is_success() || response.status() == http::StatusCode::CONFLICT {
            return Ok(());
        }
        let body = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap_or_default();
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(failed(text(&status["message"])))
    }

    /// Answers one request as `identity`, without a socket.
    pub async fn handle(&self, mut request: Request<Body>, identity: Identity) -> Response<Body> {
        request.extensions_mut().insert(identity);
        handle(&self.inner, request).await
    }

    /// A client whose transport is this server, as `identity`; its default namespace is `default`.
    pub fn client(&self, identity: Identity) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (server, identity) = (server.clone(), identity.clone());
            async move { Ok::<_, Infallible>(server.handle(request.map(Body::new), identity).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Serves further routes behind the same authentication: requests carry an [`Identity`] extension, and everybody
    /// who proved who they are gets through, so the routes decide what each may do. Only the first call counts;
    /// answers whether this was it.
    pub fn mount(&self, router: axum::Router) -> bool {
        self.inner.mounted.set(router).is_ok()
    }

    /// The server's metrics, to add one's own.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The revision up to which everything is in memory.
    pub fn revision(&self) -> store::Revision {
        self.inner.cache.revision()
    }

    /// Serves a listener until `shutdown`, with TLS if there is a configuration ([`pki::tls::server`]). Then no
    /// connection is taken any more, watches end, and running requests get ten seconds.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        shutdown: impl Future<Output = ()>,
    ) {
        serve::serve(&self.inner, listener, tls, shutdown).await;
    }
}

/// Lets go of snapshots that lists no longer come back for, as long as the server lives.
async fn sweep(inner: Weak<Inner>) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        inner.pins.sweep(Instant::now());
    }
}
