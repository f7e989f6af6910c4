//! The server under load: a `prow dev` of its own on a free port, and cheap ways to talk to it.

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, Stream, TryStreamExt};
use kube::Client;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Where all Jobs of a bench are made.
pub const JOBS: &str = "/apis/prow.windows/v1/namespaces/default/jobs";

/// A Job whose only step does nothing.
pub fn job(name: &str, spec: &Value) -> Result<http::Request<Vec<u8>>> {
    let mut spec = spec.clone();
    spec["steps"] = json!([{"name": "run", "command": ["true"]}]);
    post(
        JOBS,
        &json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}),
    )
}

/// A create.
pub fn post(path: &str, object: &Value) -> Result<http::Request<Vec<u8>>> {
    Ok(http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(object)?)?)
}

/// What a bench wants to know of an object that changed.
#[derive(Debug, Deserialize)]
pub struct Event<K> {
    /// The object.
    pub object: K,
}

/// The part of a Job that tells whether it has ended.
#[derive(Debug, Deserialize)]
pub struct JobEnd {
    metadata: Named,
    #[serde(default)]
    status: Option<Phase>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Phase {
    #[serde(default)]
    phase: api::job::JobPhase,
}

impl JobEnd {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.phase.is_terminal())
    }
}

/// Watches from now on; only the part of objects that `K` names is decoded.
pub async fn watch<K: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &str,
) -> Result<impl Stream<Item = Result<Event<K>>> + Unpin + use<K>> {
    let list: Value = client
        .request(http::Request::get(format!("{path}?limit=1&{query}")).body(Vec::new())?)
        .await?;
    let revision = list["metadata"]["resourceVersion"]
        .as_str()
        .context("the list has no revision")?;
    let request = http::Request::get(format!("{path}?watch=true&resourceVersion={revision}&{query}"))
        .body(Vec::new())?;
    let lines = client
        .request_stream(request)
        .await?
        .lines()
        .map_err(anyhow::Error::from);
    Ok(Box::pin(lines.and_then(|line| async move {
        Ok(serde_json::from_str(&line)?)
    })))
}
