//! `submit-to-run`: how soon a step starts on an idle system with a real agent.

use crate::{
    machine,
    report::{Meter, Report},
    server,
};
use anyhow::{Context, Result};
use api::{
    Task,
    clock::{Clock, SystemClock},
};
use hdrhistogram::Histogram;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use testkit::{Options as Run, System, wait};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many Jobs.
    #[arg(long, default_value_t = 100)]
    jobs: u64,
}

pub async fn run(options: &Options) -> Result<Report> {
    let mut system = System::start(Run::agents(1)).await?;
    let fsync = machine::fsync_time(system.folder())?;
    let client = system.client().await?;
    wait::nodes_ready(&client, 1).await?;
    let tasks: Api<Task> = Api::namespaced(client.clone(), "default");
    let process = system.server().context("the server is gone")?.0;
    let mut latencies = Histogram::<u64>::new(3)?;
    let meter = Meter::of_server(process);
    for number in 0..options.jobs {
        let name = format!("job-{number}");
        let request = server::job(&name, &json!({}))?;
        let sent = SystemClock.now();
        client.request::<Value>(request).await?;
        wait::finished(&client, "default", &name).await?;
        let list = tasks
            .list(&ListParams::default().fields(&format!("spec.jobRef.name={name}")))
            .await?;
        let status = list
            .items
            .first()
            .and_then(|task| task.status.as_ref())
            .context("the Job has no Task")?;
        let started = status
            .steps
            .first()
            .and_then(|step| step.started_at.as_ref())
            .context("the step did not start")?;
        latencies.record(u64::try_from(started.0.duration_since(sent).as_nanos().max(0))?)?;
    }
    let report = meter.report("submit-to-run", "one Job on an idle system", &latencies, fsync);
    system.stop().await?;
    Ok(report)
}
