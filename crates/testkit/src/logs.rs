//! Logs of steps, as the server has them.

use anyhow::{Context, Result};
use futures::AsyncReadExt;
use kube::Client;

/// All bytes of an ended step's log, in CRI format; waits for those that its agent has still to send.
pub async fn log(client: &Client, namespace: &str, task: &str, step: &str) -> Result<Vec<u8>> {
    let path = format!("/logs/v1/namespaces/{namespace}/tasks/{task}/steps/{step}?follow=true");
    let request = http::Request::get(&path).body(Vec::new())?;
    let mut stream = client
        .request_stream(request)
        .await
        .with_context(|| format!("no log at {path}"))?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    Ok(bytes)
}
