//! An API that serves Tasks from memory: get one, watch all.

use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get};
use futures::channel::mpsc;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// Clones are of the same API.
#[derive(Clone, Default)]
pub struct FakeApi(Arc<Mutex<Objects>>);

#[derive(Default)]
struct Objects {
    tasks: BTreeMap<String, Value>,
    version: u64,
    watches: Vec<mpsc::UnboundedSender<Result<Bytes, Infallible>>>,
    gets: Vec<String>,
}

impl FakeApi {
    pub fn client(&self) -> Client {
        let router = Router::new()
            .route("/apis/prow.windows/v1/tasks", get(list_or_watch))
            .route(
                "/apis/prow.windows/v1/namespaces/{namespace}/tasks/{name}",
                get(read),
            )
            .with_state(self.clone());
        Client::new(router, "default")
    }

    /// Makes or changes a Task; watches are told. Its resource version.
    pub fn apply(&self, task: Value) -> String {
        let mut objects = self.0.lock();
        let known = objects.tasks.contains_key(&key(&task));
        let task = objects.keep(task);
        objects.tell(if known { "MODIFIED" } else { "ADDED" }, &task);
        objects.version.to_string()
    }

    /// Makes a Task that no watch has shown yet.
    pub fn apply_unseen(&self, task: Value) {
        self.0.lock().keep(task);
    }

    pub fn delete(&self, namespace: &str, name: &str) {
        let mut objects = self.0.lock();
        if let Some(mut task) = objects.tasks.remove(&format!("{namespace}/{name}")) {
            objects.version += 1;
            task["metadata"]["resourceVersion"] = json!(objects.version.to_string());
            objects.tell("DELETED", &task);
        }
    }

    /// The paths of single Tasks that were asked for.
    pub fn gets(&self) -> Vec<String> {
        self.0.lock().gets.clone()
    }
}

impl Objects {
    fn keep(&mut self, mut task: Value) -> Value {
        self.version += 1;
        task["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tasks.insert(key(&task), task.clone());
        task
    }

    fn tell(&mut self, kind: &str, task: &Value) {
        let line = line(kind, task);
        self.watches
            .retain(|watch| watch.unbounded_send(Ok(line.clone())).is_ok());
    }
}

fn key(task: &Value) -> String {
    let text = |field: &str| task["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": kind, "object": object})))
}

async fn list_or_watch(State(api): State<FakeApi>, OriginalUri(uri): OriginalUri) -> Response {
    let query = uri.query().unwrap_or_default();
    if query.contains("watch=true") {
        watch(&api)
    } else {
        list(&api, query)
    }
}

/// One Task a page, whatever limit is asked for.
fn list(api: &FakeApi, query: &str) -> Response {
    let objects = api.0.lock();
    let skip = query
        .split_once("continue=")
        .and_then(|(_, token)| token.split('&').next()?.parse().ok())
        .unwrap_or(0usize);
    let items: Vec<_> = objects.tasks.values().skip(skip).take(1).collect();
    let more = skip + 1 < objects.tasks.len();
    let meta = json!({"resourceVersion": objects.version.to_string(), "continue": if more { (skip + 1).to_string() } else { String::new() }});
    let list = json!({"kind": "TaskList", "apiVersion": "prow.windows/v1", "metadata": meta, "items": items});
    ([("content-type", "application/json")], list.to_string()).into_response()
}

fn watch(api: &FakeApi) -> Response {
    let (lines, told) = mpsc::unbounded();
    let mut objects = api.0.lock();
    let send = |line| drop(lines.unbounded_send(Ok::<_, Infallible>(line)));
    objects.tasks.values().for_each(|task| send(line("ADDED", task)));
    let meta = json!({
        "resourceVersion": objects.version.max(1).to_string(),
        "annotations": {"k8s.io/initial-events-end": "true"},
    });
    send(line(
        "BOOKMARK",
        &json!({"kind": "Task", "apiVersion": "prow.windows/v1", "metadata": meta}),
    ));
    objects.watches.push(lines);
    Body::from_stream(told).into_response()
}

async fn read(
    State(api): State<FakeApi>,
    OriginalUri(uri): OriginalUri,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let mut objects = api.0.lock();
    objects.gets.push(uri.path().to_owned());
    let (code, body) = match objects.tasks.get(&format!("{namespace}/{name}")) {
        Some(task) => (200, task.clone()),
        None => {
            let message = format!("tasks.prow.windows \"{name}\" not found");
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                                "code": 404, "message": message});
            (404, status)
        }
    };
    let code = http::StatusCode::from_u16(code).unwrap_or_default();
    (code, [("content-type", "application/json")], body.to_string()).into_response()
}
