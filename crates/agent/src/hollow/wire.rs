//! HTTP/1.1 as cheap as it gets: a connection for each who needs one, bodies written by hand, answers read no further than needed.

use crate::service::connection::BadUrl;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use serde::Deserialize;
use std::{borrow::Cow, io, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A Task's place in the API.
const TASKS: &str = "/apis/prow.windows/v1";
/// What has not ended, as real agents ask for it.
const OPEN: &str = "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed%2Cstatus.phase%21%3DCancelled%2C\
                    status.phase%21%3DSkipped%2Cstatus.phase%21%3DRejected%2Cstatus.phase%21%3DUnknown";

/// Why a request failed; a retry on a new connection may help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// A request could not be put together.
    #[error("not a request: {0}")]
    Request(#[from] http::Error),
    /// The server refused.
    #[error("the server answered {0}")]
    Refused(StatusCode),
    /// The server sent what is no watch event.
    #[error("not a watch event: {0}")]
    Event(#[from] serde_json::Error),
    /// The server ended the watch for good: it must begin anew.
    #[error("the watch was cut off")]
    CutOff,
}

/// A server and how to reach it.
#[derive(Clone)]
pub struct Target(Arc<Place>);

struct Place {
    host: String,
    port: u16,
    name: ServerName<'static>,
    authority: HeaderValue,
    tls: TlsConnector,
}

impl Target {
    pub fn new(url: &str, tls: Arc<ClientConfig>) -> Result<Self, BadUrl> {
        let bad = |why: &str| BadUrl::new(url, why);
        let uri: http::Uri = url.parse().map_err(|_| bad("it is no URL"))?;
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self(Arc::new(Place {
            name: ServerName::try_from(host.clone()).map_err(|_| bad("its host is no name"))?,
            port: authority.port_u16().unwrap_or(443),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| bad("its host is no name"))?,
            tls: TlsConnector::from(tls),
            host,
        })))
    }

    pub async fn connect(&self) -> Result<Connection, Error> {
        let place = &self.0;
        let tcp = TcpStream::connect((place.host.as_str(), place.port)).await?;
        tcp.set_nodelay(true)?;
        let tls = place.tls.connect(place.name.clone(), tcp).await?;
        let (send, connection) = http1::handshake(TokioIo::new(tls)).await?;
        tokio::spawn(connection);
        Ok(Connection {
            send,
            authority: place.authority.clone(),
        })
    }

    /// Watches Tasks that have not ended: from the beginning with those there are, or from `version` on. `node`: of one node only.
    pub async fn watch(&self, node: Option<&str>, version: Option<&str>) -> Result<Watch, Error> {
        let mut path =
            format!("{TASKS}/tasks?watch=true&allowWatchBookmarks=true&timeoutSeconds=30&fieldSelector=");
        if let Some(node) = node {
            path.push_str(&format!("spec.nodeName%3D{node}%2C"));
        }
        path.push_str(OPEN);
        match version {
            Some(version) => path.push_str(&format!("&resourceVersion={version}")),
            None => path.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
        let mut connection = self.connect().await?;
        let body = connection.send(Method::GET, &path, "", Bytes::new()).await?;
        Ok(Watch {
            body,
            buffer: BytesMut::new(),
            _connection: connection,
        })
    }
}

/// A connection with one request at a time.
pub struct Connection {
    send: SendRequest<Full<Bytes>>,
    authority: HeaderValue,
}

impl Connection {
    /// Sends a JSON merge patch.
    pub async fn patch(&mut self, path: &str, body: String) -> Result<(), Error> {
        self.done(Method::PATCH, path, "application/merge-patch+json", body)
            .await
    }

    /// Posts an object.
    pub async fn post(&mut self, path: &str, body: String) -> Result<(), Error> {
        self.done(Method::POST, path, "application/json", body).await
    }

    async fn done(
        &mut self,
        method: Method,
        path: &str,
        media: &'static str,
        body: String,
    ) -> Result<(), Error> {
        let mut answer = self.send(method, path, media, body.into()).await?;
        while let Some(frame) = answer.frame().await {
            frame?; // to its end, so that the connection is free again
        }
        Ok(())
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        media: &'static str,
        body: Bytes,
    ) -> Result<Incoming, Error> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(http::Error::from)?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.authority.clone());
        if !media.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        }
        self.send.ready().await?;
        let answer = self.send.send_request(request).await?;
        let status = answer.status();
        let mut body = answer.into_body();
        if !status.is_success() {
            while let Some(frame) = body.frame().await {
                frame?;
            }
            return Err(Error::Refused(status));
        }
        Ok(body)
    }
}

/// Where a Task's status is written.
pub fn status_path(namespace: &str, name: &str) -> String {
    format!("{TASKS}/namespaces/{namespace}/tasks/{name}/status")
}

/// A running watch.
pub struct Watch {
    body: Incoming,
    buffer: BytesMut,
    _connection: Connection,
}

/// What a watch tells.
#[derive(Debug)]
pub enum Event {
    /// A Task that is there.
    Task(Seen),
    /// How far the watch is.
    Mark(String),
}

/// What is needed of a Task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub version: String,
    pub node: String,
    /// Empty: nobody has claimed it.
    pub phase: String,
    /// Whether it is not to be claimed.
    pub withdrawn: bool,
}

impl Watch {
    /// The next event; `None` at the end of the watch.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                if let Some(event) = parse(&line)? {
                    return Ok(Some(event));
                }
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Spec<'a>,
    #[serde(borrow, default)]
    status: Option<PhaseOr<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    deletion_timestamp: Option<&'a str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec<'a> {
    node_name: Cow<'a, str>,
    stop: Option<serde::de::IgnoredAny>,
}

/// A Task's status is an object, that of a Status object ("Failure") a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum PhaseOr<'a> {
    Task {
        #[serde(borrow, default)]
        phase: Cow<'a, str>,
    },
    #[allow(dead_code)] // only told apart
    Failure(Cow<'a, str>),
}

fn parse(line: &[u8]) -> Result<Option<Event>, Error> {
    if line.is_empty() {
        return Ok(None);
    }
    let line: Line<'_> = serde_json::from_slice(line)?;
    let meta = &line.object.metadata;
    Ok(match line.kind {
        "ADDED" | "MODIFIED" => Some(Event::Task(Seen {
            namespace: meta.namespace.to_owned(),
            name: meta.name.to_owned(),
            uid: meta.uid.to_owned(),
            version: meta.resource_version.to_owned(),
            node: line.object.spec.node_name.into_owned(),
            withdrawn: line.object.spec.stop.is_some() || meta.deletion_timestamp.is_some(),
            phase: match line.object.status {
                Some(PhaseOr::Task { phase }) => phase.into_owned(),
                _ => String::new(),
            },
        })),
        "BOOKMARK" | "DELETED" => Some(Event::Mark(meta.resource_version.to_owned())),
        _ => return Err(Error::CutOff),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_the_end_of_a_watch_is_known() {
        let task = br#"{"type":"ADDED","object":{"apiVersion":"prow.windows/v1","kind":"Task","metadata":{"name":"t","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{"nodeName":"web1","work":"{\"steps\":[]}"},"status":{}}}"#;
        let Ok(Some(Event::Task(seen))) = parse(task) else {
            panic!()
        };
        assert_eq!(
            (seen.node.as_str(), seen.version.as_str(), seen.phase.as_str()),
            ("web1", "7", "")
        );
        assert!(!seen.withdrawn);
        let mark = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert!(matches!(parse(mark), Ok(Some(Event::Mark(version))) if version == "9"));
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}"#;
        assert!(matches!(parse(gone), Err(Error::CutOff)));
    }
}
