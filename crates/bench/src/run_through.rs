//! `run-through`: how much no-op work gets through server, scheduler and controllers, with hollow agents over real HTTP.

use crate::{
    machine,
    report::{Meter, Report},
    server::{self, JOBS, JobEnd},
};
use agent::hollow::{self, Counters, Identities};
use anyhow::{Context, Result};
use api::clock::SystemClock;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{StreamExt, TryStreamExt, stream};
use hdrhistogram::Histogram;
use kube::{Client, config::Kubeconfig};
use pki::Credentials;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use testkit::{Options as Run, System};
use tokio::sync::{Semaphore, oneshot};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Hollow agents.
    #[arg(long, default_value_t = 1000)]
    agents: usize,
    /// Runs: single Jobs, or the indexes of the one Job with --indexed.
    #[arg(long, default_value_t = 10_000)]
    runs: u64,
    /// One Indexed Job in place of single ones; its latency is that of the whole Job.
    #[arg(long)]
    indexed: bool,
    /// Single Jobs that are on their way at the same time.
    #[arg(long, default_value_t = 500)]
    in_flight: usize,
}

/// Tasks a hollow agent takes at once.
const SLOTS: u32 = 8;
/// Connections the hollow agents share for writing: so many writes can wait for one fsync.
const CONNECTIONS: usize = 128;
/// Requests that make Jobs at the same time.
const SUBMITTERS: usize = 16;

pub async fn run(options: &Options) -> Result<Report> {
    let mut system = System::start(Run::agents(0).flag("--max-finished", 1_000_000)).await?;
    let fsync = machine::fsync_time(system.folder())?;
    let client = system.client().await?;
    let nodes: Vec<String> = (0..options.agents)
        .map(|number| format!("hollow-{number}"))
        .collect();
    stream::iter(&nodes)
        .map(|name| hollow::register(&client, name, SLOTS, &SystemClock))
        .buffer_unordered(SUBMITTERS)
        .try_collect::<()>()
        .await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let counters = Arc::new(Counters::default());
    let fleet = hollow::run(fleet(&system, nodes)?, counters, async {
        let _ = stopped.await; // a sender that is gone means the same
    });
    let fleet = tokio::spawn(fleet);
    let process = system.server().context("the server is gone")?.0;
    let report = if options.indexed {
        indexed(&client, options, process, fsync).await?
    } else {
        single(&client, options, process, fsync).await?
    };
    let _ = stop.send(()); // a fleet that ended has said why below
    fleet.await??;
    system.stop().await?;
    Ok(report)
}

fn fleet(system: &System, nodes: Vec<String>) -> Result<hollow::Options> {
    let config = serde_json::to_value(Kubeconfig::read_from(system.kubeconfig())?)?;
    let pem = |value: &Value| -> Result<String> {
        Ok(String::from_utf8(STANDARD.decode(
            value.as_str().context("the kubeconfig lacks certificates")?,
        )?)?)
    };
    let user = &config["users"][0]["user"];
    Ok(hollow::Options {
        server: system.url().to_owned(),
        authority: pki::tls::certificate_from_pem(&pem(
            &config["clusters"][0]["cluster"]["certificate-authority-data"],
        )?)?,
        identities: Identities::Shared {
            credentials: Credentials::from_pem(
                &pem(&user["client-certificate-data"])?,
                &pem(&user["client-key-data"])?,
            )?,
            nodes,
            connections: CONNECTIONS,
        },
        renew: Duration::from_secs(10),
        clock: Arc::new(SystemClock),
    })
}

/// One Job of many indexes.
async fn indexed(client: &Client, options: &Options, process: u32, fsync: Duration) -> Result<Report> {
    let mut ends = server::watch::<JobEnd>(client, JOBS, "").await?;
    let mut latencies = Histogram::<u64>::new(3)?;
    let request = server::job(
        "indexed",
        &json!({"completions": options.runs, "parallelism": options.runs}),
    )?;
    let meter = Meter::of_server(process);
    let sent = Instant::now();
    client.request::<Value>(request).await?;
    while let Some(event) = ends.try_next().await? {
        if event.object.is_over() {
            break;
        }
    }
    latencies.record(u64::try_from(sent.elapsed().as_nanos())?)?;
    Ok(meter.report_many(
        "run-through-1",
        "one index of a Job",
        options.runs,
        &latencies,
        fsync,
    ))
}

/// Many Jobs of one index, so many on their way at once.
async fn single(client: &Client, options: &Options, process: u32, fsync: Duration) -> Result<Report> {
    let mut ends = server::watch::<JobEnd>(client, JOBS, "").await?;
    let room = Arc::new(Semaphore::new(options.in_flight));
    let sent: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
    let meter = Meter::of_server(process);
    let submit = stream::iter(0..options.runs)
        .map(Ok::<_, anyhow::Error>)
        .try_for_each_concurrent(SUBMITTERS, |number| {
            let (room, sent) = (room.clone(), sent.clone());
            async move {
                room.acquire().await?.forget();
                let name = format!("job-{number}");
                let request = server::job(&name, &json!({}))?;
                sent.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(name, Instant::now());
                client.request_text(request).await?;
                Ok(())
            }
        });
    let count = async {
        let mut latencies = Histogram::<u64>::new(3)?;
        while latencies.len() < options.runs {
            let event = ends.try_next().await?.context("the watch ended")?;
            if !event.object.is_over() {
                continue;
            }
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = sent.remove(event.object.name()) {
                latencies.record(u64::try_from(at.elapsed().as_nanos())?)?;
                room.add_permits(1);
            }
        }
        anyhow::Ok(latencies)
    };
    let ((), latencies) = tokio::try_join!(submit, count)?;
    Ok(meter.report("run-through", "one single Job", &latencies, fsync))
}
