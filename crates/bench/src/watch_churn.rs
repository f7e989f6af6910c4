//! `watch-churn`: many watchers, each of one object, while all objects change.

use crate::{
    machine,
    report::{Meter, Report},
    server,
};
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use hdrhistogram::Histogram;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testkit::{Options as Run, System};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Watchers, each with an object and a connection of its own.
    #[arg(long, default_value_t = 500)]
    watchers: usize,
    /// Changes of each object.
    #[arg(long, default_value_t = 20)]
    changes: u64,
    /// Changes that are under way at the same time.
    #[arg(long, default_value_t = 16)]
    writers: usize,
}

const OBJECTS: &str = "/api/v1/namespaces/default/configmaps";

/// The part of an object a watcher looks at.
#[derive(Debug, Deserialize)]
struct Stamped {
    data: Stamp,
}

#[derive(Debug, Deserialize)]
struct Stamp {
    /// Nanoseconds since the bench began.
    sent: String,
}

pub async fn run(options: &Options) -> Result<Report> {
    let mut system = System::start(Run::agents(0)).await?;
    let fsync = machine::fsync_time(system.folder())?;
    let client = system.client().await?;
    let began = Instant::now();
    let names: Vec<String> = (0..options.watchers)
        .map(|number| format!("watched-{number}"))
        .collect();
    stream::iter(&names)
        .map(|name| create(&client, name))
        .buffer_unordered(options.writers)
        .try_collect::<()>()
        .await?;
    let mut watches = Vec::new();
    for name in &names {
        let query = format!("fieldSelector=metadata.name%3D{name}");
        watches.push(server::watch::<Stamped>(&client, OBJECTS, &query).await?);
    }
    let process = system.server().context("the server is gone")?.0;
    let meter = Meter::of_server(process);
    let watching = watches.into_iter().map(|mut watch| {
        let changes = options.changes;
        tokio::spawn(async move {
            let mut latencies = Histogram::<u64>::new(3)?;
            while latencies.len() < changes {
                let event = watch.try_next().await?.context("the watch ended")?;
                let sent = Duration::from_nanos(event.object.data.sent.parse()?);
                latencies.record(u64::try_from((began.elapsed().saturating_sub(sent)).as_nanos())?)?;
            }
            anyhow::Ok(latencies)
        })
    });
    let watching: Vec<_> = watching.collect();
    let changes = (0..options.changes).flat_map(|_| &names);
    let client = &client;
    stream::iter(changes)
        .map(|name| async move { change(client, name, began).await })
        .buffer_unordered(options.writers)
        .try_collect::<()>()
        .await?;
    let mut latencies = Histogram::<u64>::new(3)?;
    for watcher in futures::future::join_all(watching).await {
        latencies += watcher??;
    }
    let report = meter.report("watch-churn", "one change seen by its watcher", &latencies, fsync);
    system.stop().await?;
    Ok(report)
}

async fn create(client: &Client, name: &str) -> Result<()> {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"sent": "0"}});
    client.request::<Value>(server::post(OBJECTS, &object)?).await?;
    Ok(())
}

async fn change(client: &Client, name: &str, began: Instant) -> Result<()> {
    let patch = json!({"data": {"sent": began.elapsed().as_nanos().to_string()}});
    let request = http::Request::patch(format!("{OBJECTS}/{name}"))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(serde_json::to_vec(&patch)?)?;
    client.request_text(request).await?;
    Ok(())
}
