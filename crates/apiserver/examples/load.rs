//! What a run costs the API server alone, over memory and without sockets: the five writes of a single Job.
//! `cargo run --release -p apiserver --example load -- RUNS WORKERS NODES`. Prints requests a second and microseconds each.

use api::identity::Identity;
use apiserver::{Options, Server};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

#[derive(Clone)]
struct User(Server);

impl User {
    async fn send(&self, method: &str, path: &str, media: &str, body: &Value) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(Body::from(body.to_string()))
            .unwrap_or_default();
        let response = self.0.handle(request, Identity::part("load")).await;
        let code = response.status();
        let bytes = response
            .into_body()
            .collect()
            .await
            .map(|b| b.to_bytes())
            .unwrap_or_default();
        assert!(
            code.is_success(),
            "{method} {path}: {}",
            String::from_utf8_lossy(&bytes)
        );
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const JOBS: &str = "/apis/prow.windows/v1/namespaces/default/jobs";
const TASKS: &str = "/apis/prow.windows/v1/namespaces/default/tasks";
const MERGE: &str = "application/merge-patch+json";

async fn run(user: &User, i: usize, nodes: usize, took: &[AtomicUsize; 5]) {
    let mut step = 0;
    let mut at = Instant::now();
    let mut lap = || {
        took[step].fetch_add(at.elapsed().as_nanos() as usize, Ordering::Relaxed);
        step += 1;
        at = Instant::now();
    };
    let job = json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": format!("j{i}")},
        "spec": {"steps": [{"name": "hello", "command": ["true"]}]}});
    let job = user.send("POST", JOBS, "application/json", &job).await;
    lap();
    let task = json!({"apiVersion": "prow.windows/v1", "kind": "Task",
        "metadata": {"name": format!("j{i}-0-0"), "finalizers": ["prow.windows/tracking"], "ownerReferences": [
            {"apiVersion": "prow.windows/v1", "kind": "Job", "name": format!("j{i}"), "uid": job["metadata"]["uid"], "controller": true}]},
        "spec": {"jobRef": {"name": format!("j{i}"), "uid": job["metadata"]["uid"], "workHash": "0".repeat(64)},
            "nodeName": format!("n{}", i % nodes), "index": 0, "count": 1, "attempt": 0, "work": job["spec"].to_string()}});
    user.send("POST", TASKS, "application/json", &task).await;
    lap();
    let status = format!("{TASKS}/j{i}-0-0/status");
    let claim = json!({"status": {"phase": "Claimed", "claim": {"agentInstance": "i", "bootID": "b", "nonce": "n", "time": "2026-01-01T00:00:00.000000Z"}}});
    user.send("PATCH", &status, MERGE, &claim).await;
    lap();
    let end = json!({"status": {"phase": "Succeeded", "startedSteps": true, "steps": [{"name": "hello", "phase": "Succeeded", "exitCode": 0, "logBytes": 0}]}});
    user.send("PATCH", &status, MERGE, &end).await;
    lap();
    let done = json!({"status": {"phase": "Succeeded", "desired": 1, "succeeded": 1}});
    user.send("PATCH", &format!("{JOBS}/j{i}/status"), MERGE, &done)
        .await;
    lap();
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|n| n.parse().unwrap_or(1000));
    let (runs, workers, nodes) = (
        arguments.next().unwrap_or(20_000),
        arguments.next().unwrap_or(64),
        arguments.next().unwrap_or(1_000),
    );
    let mut kinds = machinery::core_kinds::all();
    kinds.push(machinery::typed::kind::<api::Job>());
    kinds.push(machinery::typed::kind::<api::Task>());
    let begun = Instant::now();
    let server = Server::start(Arc::new(store::Memory::new()), kinds, Options::default()).await?;
    println!("started in {:?}", begun.elapsed());
    let seen = Arc::new(AtomicUsize::new(0));
    for node in 0..nodes {
        let request = Request::get(format!(
            "/apis/prow.windows/v1/tasks?watch=1&fieldSelector=spec.nodeName%3Dn{node}"
        ))
        .body(Body::empty())?;
        let mut body = server.handle(request, Identity::part("load")).await.into_body();
        let seen = seen.clone();
        tokio::spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                seen.fetch_add(
                    frame
                        .data_ref()
                        .map_or(0, |d| d.iter().filter(|b| **b == b'\n').count()),
                    Ordering::Relaxed,
                );
            }
        });
    }
    let took: Arc<[AtomicUsize; 5]> = Arc::default();
    let begun = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let (user, next, took) = (User(server.clone()), next.clone(), took.clone());
            tokio::spawn(async move {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= runs {
                        return;
                    }
                    run(&user, i, nodes, &took).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await?;
    }
    let elapsed = begun.elapsed();
    println!(
        "{runs} runs in {elapsed:?}: {:.0} runs/s, {:.1} us a write on two threads, {} watch events",
        runs as f64 / elapsed.as_secs_f64(),
        elapsed.as_micros() as f64 * 2.0 / (runs * 5) as f64,
        seen.load(Ordering::Relaxed)
    );
    let names = ["create Job", "create Task", "claim", "end", "Job status"];
    for (name, nanos) in names.iter().zip(took.iter()) {
        println!(
            "{name:12} {:6.1} us latency",
            nanos.load(Ordering::Relaxed) as f64 / 1000.0 / runs as f64
        );
    }
    Ok(())
}
