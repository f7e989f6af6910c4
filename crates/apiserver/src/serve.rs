//! Connections: TLS with an optional client certificate, HTTP/1.1 and HTTP/2, a graceful end.

use crate::authn::Peer;
use crate::handle::handle;
use crate::inner::Inner;
use api::identity::Identity;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// For the TLS handshake.
const PATIENCE: Duration = Duration::from_secs(15);
/// For the head of the next request on an HTTP/1.1 connection. Longer than clients keep idle connections, so that it is
/// they who close them: a request sent into a closing connection is lost.
const IDLE: Duration = Duration::from_secs(180);
/// Between HTTP/2 pings, and for their answer: a peer that is gone is noticed after both.
const PING: Duration = Duration::from_secs(30);
/// What running requests get at the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// Requests an HTTP/2 client may have open at once; informers hold one watch a kind.
const STREAMS: u32 = 1_000;

/// See [`crate::Server::serve`].
pub(crate) async fn serve(
    inner: &Arc<Inner>,
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    shutdown: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let acceptor = tls.map(TlsAcceptor::from);
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                tracing::trace!(%peer, "a connection");
                tokio::spawn(connection(
                    inner.clone(),
                    stream,
                    acceptor.clone(),
                    graceful.watcher(),
                ));
            }
            Err(error) => {
                // Out of file descriptors, most likely: others must be closed first.
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    inner.stop.send_replace(true);
    if tokio::time::timeout(FAREWELL, graceful.shutdown()).await.is_err() {
        tracing::info!("requests that were still running are cut off");
    }
}

async fn connection(inner: Arc<Inner>, stream: TcpStream, tls: Option<TlsAcceptor>, watcher: Watcher) {
    let _ = stream.set_nodelay(true); // only a matter of speed
    let Some(tls) = tls else {
        return http(inner, stream, Peer(None), watcher).await;
    };
    match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let peer = Peer(identity(stream.get_ref().1));
            http(inner, stream, peer, watcher).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// The user of the client certificate, whose chain TLS has verified.
fn identity(connection: &rustls::ServerConnection) -> Option<Identity> {
    let certificate = connection.peer_certificates()?.first()?;
    match pki::Leaf::parse(certificate) {
        Ok(leaf) => Some(leaf.identity()),
        Err(error) => {
            tracing::warn!(%error, "a client certificate cannot be read");
            None
        }
    }
}

async fn http(
    inner: Arc<Inner>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    watcher: Watcher,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (inner, peer) = (inner.clone(), peer.clone());
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            Ok::<_, Infallible>(handle(&inner, request).await)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(error = %error, "a connection ended badly");
    }
}
