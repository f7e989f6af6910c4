//! Shipping logs: byte ranges of the files the runner writes.
//!
//! The server always answers which byte it wants next, and that alone counts: after a restart, a lost answer or a switch of servers it is
//! asked, and nothing local is trusted. The files are the spool: while the server is away they wait.

use super::{connection::read, enrol::chain, host::Host, retry::Backoff};
use crate::layout::TaskDir;
use bytes::Bytes;
use http::{Request, header};
use kube::client::Body;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// The most bytes of a log in one request.
const CHUNK: usize = 512 << 10;
/// Smaller ones are sent as they are.
const WORTH_COMPRESSING: usize = 512;
const LEVEL: i32 = 1;
const PATIENCE: Duration = Duration::from_secs(30);

/// Whose logs.
#[derive(Clone, Debug)]
pub struct Whose {
    /// The Task's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Ships the logs of one Task.
pub struct Shipper {
    shared: Arc<Shared>,
    done: watch::Receiver<bool>,
}

#[derive(Default)]
struct Shared {
    grown: Notify,
    last: std::sync::atomic::AtomicBool,
}

/// What the server said to a range.
enum Answer {
    Next(u64),
    /// It takes no more of this Task.
    Closed,
}

#[derive(Deserialize)]
struct Next {
    next: u64,
}

impl Shipper {
    /// Starts to ship. `resumed`: some of it may have been shipped by an earlier agent.
    pub fn start(host: Arc<Host>, dir: TaskDir, whose: Whose, resumed: bool) -> Self {
        let shared = Arc::new(Shared::default());
        let (done, is_done) = watch::channel(false);
        let line = Line {
            client: host.logs.clone(),
            dir,
            whose,
            resumed,
            next: BTreeMap::new(),
            shared: shared.clone(),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = line.run() => { done.send_replace(true); }
                () = done.closed() => {}
            }
        });
        Self {
            shared,
            done: is_done,
        }
    }

    /// The logs have grown.
    pub fn wake(&self) {
        self.shared.grown.notify_one();
    }

    /// Nothing is written any more; returns when all was acknowledged, or the server takes no more.
    pub async fn finish(&mut self) {
        self.shared.last.store(true, std::sync::atomic::Ordering::Release);
        self.shared.grown.notify_one();
        let _ = self.done.wait_for(|done| *done).await; // the other side lives as long as we do
    }
}

struct Line {
    client: kube::Client,
    dir: TaskDir,
    whose: Whose,
    resumed: bool,
    /// By step: the next byte the server wants.
    next: BTreeMap<String, u64>,
    shared: Arc<Shared>,
}

impl Line {
    async fn run(mut self) {
        let mut backoff = Backoff::new(Duration::from_secs(15));
        loop {
            // Read before the files: what is written afterwards wakes us again.
            let last = self.shared.last.load(std::sync::atomic::Ordering::Acquire);
            match self.round().await {
                Ok(true) => backoff.reset(),
                Ok(false) => {
                    tracing::info!(
                        task = self.whose.name,
                        "the server takes no more logs of this Task"
                    );
                    return;
                }
                Err(error) => {
                    tracing::info!(task = self.whose.name, error = %error, "logs wait on disk");
                    backoff.wait().await;
                    continue;
                }
            }
            if last {
                return;
            }
            self.shared.grown.notified().await;
        }
    }

    /// Ships what there is of all steps; false where the server takes no more.
    async fn round(&mut self) -> Result<bool, String> {
        let logs = self.dir.step_logs().map_err(|e| e.to_string())?;
        for (step, path) in logs {
            let mut from = match self.next.get(&step) {
                Some(next) => *next,
                None if self.resumed => match self.put(&step, 0, Vec::new()).await? {
                    Answer::Next(next) => next,
                    Answer::Closed => return Ok(false),
                },
                None => 0,
            };
            loop {
                let bytes = range(&path, from).map_err(|e| format!("{}: {e}", path.display()))?;
                if bytes.is_empty() {
                    break;
                }
                match self.put(&step, from, bytes).await? {
                    Answer::Next(next) => from = next,
                    Answer::Closed => return Ok(false),
                }
                self.next.insert(step.clone(), from);
            }
            self.next.insert(step, from);
        }
        Ok(true)
    }

    async fn put(&self, step: &str, start: u64, bytes: Vec<u8>) -> Result<Answer, String> {
        let Whose { namespace, name, uid } = &self.whose;
        let path = format!("/logs/v1/namespaces/{namespace}/tasks/{name}/{uid}/steps/{step}?start={start}");
        let mut request = Request::put(path).header(header::CONTENT_TYPE, "application/octet-stream");
        let body = if bytes.len() < WORTH_COMPRESSING {
            bytes
        } else {
            request = request.header(header::CONTENT_ENCODING, "zstd");
            zstd::bulk::compress(&bytes, LEVEL).map_err(|e| e.to_string())?
        };
        let request = request
            .header(header::CONTENT_LENGTH, body.len())
            .body(Body::from(Bytes::from(body)))
            .map_err(|e| e.to_string())?;
        let answer = async {
            let response = self.client.send(request).await?;
            let status = response.status();
            Ok::<_, kube::Error>((status, read(response, 64 << 10).await?))
        };
        let (status, body) = tokio::time::timeout(PATIENCE, answer)
            .await
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(|e| chain(&e))?;
        match status.as_u16() {
            200 => serde_json::from_slice::<Next>(&body)
                .map(|answer| Answer::Next(answer.next))
                .map_err(|e| format!("the answer is not understood: {e}")),
            410 => Ok(Answer::Closed),
            code => Err(format!(
                "the server answered {code}: {}",
                String::from_utf8_lossy(&body)
            )),
        }
    }
}

/// What a log holds from an offset on, at most [`CHUNK`] bytes; nothing where there is no file yet.
fn range(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(CHUNK as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
