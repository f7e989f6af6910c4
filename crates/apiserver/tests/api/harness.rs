//! A real server over the in-memory store, with TLS on a local port, and users with certificates.

use api::clock::SystemClock;
use api::identity::{MASTERS, NODES};
use apiserver::{Options, Server};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::SignedDuration;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use store::Memory;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, oneshot};

/// A running server.
pub struct Api {
    pub server: Server,
    pub store: Arc<Memory>,
    pub authority: Arc<pki::Authority>,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Api {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::over(Arc::new(Memory::new()), change).await
    }

    pub async fn over(store: Arc<Memory>, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Arc::new(pki::Authority::open(folder.path(), Arc::new(SystemClock)).unwrap());
        let mut options = Options {
            authority: Some(authority.clone()),
            ..Options::default()
        };
        change(&mut options);
        let mut kinds = machinery::core_kinds::all();
        kinds.push(machinery::typed::kind::<api::Job>());
        kinds.push(machinery::typed::kind::<api::Task>());
        kinds.push(machinery::typed::kind::<api::Node>());
        kinds.push(machinery::typed::kind::<api::Queue>());
        kinds.push(machinery::typed::kind::<api::Target>());
        let server = Server::start(store.clone(), kinds, options).await.unwrap();
        let credentials = authority
            .server(folder.path(), &["localhost".into(), "127.0.0.1".into()])
            .unwrap();
        let tls = pki::tls::server(&credentials, authority.certificate(), &["h2", "http/1.1"]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = server.clone();
        let served = tokio::spawn(async move {
            serving
                .serve(listener, Some(tls), async { stopped.await.unwrap_or(()) })
                .await;
        });
        Self {
            server,
            store,
            authority,
            address,
            stop: Some(stop),
            served: Some(served),
            _folder: folder,
        }
    }

    /// Stops the server as a signal would; returns when it has ended.
    pub async fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.served.take().unwrap().await.unwrap();
    }

    pub fn admin(&self) -> User {
        self.user("admin", &[MASTERS])
    }

    pub fn node(&self, name: &str) -> User {
        self.user(&format!("system:node:{name}"), &[NODES])
    }

    pub fn user(&self, name: &str, groups: &[&str]) -> User {
        let groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        let credentials = self
            .authority
            .user(name, &groups, SignedDuration::from_hours(1))
            .unwrap();
        self.with_credentials(Some(&credentials))
    }

    pub fn anonymous(&self) -> User {
        self.with_credentials(None)
    }

    pub fn bearer(&self, token: &str) -> User {
        self.anonymous()
            .header("authorization", &format!("Bearer {token}"))
    }

    pub fn with_credentials(&self, credentials: Option<&pki::Credentials>) -> User {
        let tls = pki::tls::client(self.authority.certificate(), credentials, &["http/1.1"]).unwrap();
        User {
            address: self.address,
            tls,
            headers: HeaderMap::new(),
            connection: Arc::default(),
        }
    }
}

type Connection = http1::SendRequest<Full<Bytes>>;

/// Somebody who sends requests, one at a time over one connection.
#[derive(Clone)]
pub struct User {
    address: SocketAddr,
    tls: Arc<rustls::ClientConfig>,
    headers: HeaderMap,
    connection: Arc<Mutex<Option<Connection>>>,
}

/// An answer read to its end.
#[derive(Debug)]
pub struct Answer {
    pub code: StatusCode,
    pub headers: HeaderMap,
    pub text: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.text)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.text)))
    }

    /// The object, if the request went well.
    pub fn ok(self) -> Value {
        assert!(
            self.code.is_success(),
            "{}: {}",
            self.code,
            String::from_utf8_lossy(&self.text)
        );
        self.json()
    }

    /// Code, reason and message of a failure.
    pub fn failure(self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], self.code.as_u16());
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        (self.code.as_u16(), text("reason"), text("message"))
    }

    /// Fails with this code, and a message that has this in it.
    #[track_caller]
    pub fn fails(self, code: u16, part: &str) {
        let (found, reason, message) = self.failure();
        assert_eq!(found, code, "{reason}: {message}");
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }

    pub fn warnings(&self) -> Vec<String> {
        self.headers
            .get_all("warning")
            .iter()
            .map(|w| w.to_str().unwrap().to_owned())
            .collect()
    }
}

impl User {
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self.connection = Arc::default();
        self
    }

    async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let stream = tokio_rustls::TlsConnector::from(self.tls.clone())
            .connect(name, stream)
            .await
            .unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    fn request(&self, method: &str, path: &str, media: &str, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
        *request.uri_mut() = path.parse().unwrap();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert("host", "localhost".parse().unwrap());
        if !media.is_empty() {
            request
                .headers_mut()
                .insert("content-type", media.parse().unwrap());
        }
        request
    }

    pub async fn send(&self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => self.connect().await,
        };
        let request = self.request(method, path, media, body.into());
        connection.ready().await.unwrap();
        let response = connection.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = body.collect().await.unwrap().to_bytes();
        *slot = Some(connection);
        Answer {
            code: parts.status,
            headers: parts.headers,
            text,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", Bytes::new()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "", Bytes::new()).await
    }

    pub async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send("POST", path, "application/json", object.to_string())
            .await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send("PUT", path, "application/json", object.to_string())
            .await
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> Answer {
        self.send("PATCH", path, "application/merge-patch+json", patch.to_string())
            .await
    }

    /// A watch, or any other answer read line by line, on a connection of its own.
    pub async fn watch(&self, path: &str) -> Watch {
        let mut connection = self.connect().await;
        connection.ready().await.unwrap();
        let response = connection
            .send_request(self.request("GET", path, "", Bytes::new()))
            .await
            .unwrap();
        let code = response.status();
        Watch {
            code,
            body: response.into_body(),
            read: Vec::new(),
            _connection: connection,
        }
    }
}

/// A running watch.
pub struct Watch {
    pub code: StatusCode,
    body: Incoming,
    read: Vec<u8>,
    _connection: Connection,
}

impl Watch {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }

    /// Type and name of the next event.
    pub async fn told(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch ended");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}
