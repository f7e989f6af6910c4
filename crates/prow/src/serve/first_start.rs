//! What every installation has: the queue `default` and the Target `all`. Namespaces are the API server's own.

use anyhow::Result;
use serde_json::json;

/// Makes what is missing. `open` lets every namespace run on every node; it only matters when the Target is made.
pub async fn make(api: &apiserver::Server, open: bool) -> Result<()> {
    api.ensure(&json!({
        "apiVersion": "prow.windows/v1", "kind": "Queue",
        "metadata": {"name": api::queue::DEFAULT},
        "spec": {},
    }))
    .await?;
    let access = if open {
        json!([{"namespaceSelector": {}}])
    } else {
        json!([])
    };
    api.ensure(&json!({
        "apiVersion": "prow.windows/v1", "kind": "Target",
        "metadata": {"name": api::target::ALL},
        "spec": {"selector": {}, "access": access},
    }))
    .await?;
    Ok(())
}
