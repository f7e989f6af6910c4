//! The Jobs of a round, and putting them in while the server dies and comes back.

use crate::dice::Dice;
use anyhow::{Context, Result};
use api::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use std::{path::Path, time::Duration};
use testkit::System;

/// Lines each step prints.
pub const LINES: usize = 20;

/// The namespace of a round.
pub async fn namespace(system: &System, name: &str) -> Result<()> {
    let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::all(system.client().await?)
        .create(&PostParams::default(), &object)
        .await?;
    Ok(())
}

/// Jobs of one to three indexes and one to three steps; each step writes its id, works a moment, and prints.
pub fn plan(dice: &mut Dice, count: usize, ids: &Path) -> Result<Vec<Job>> {
    (0..count)
        .map(|number| {
            let name = format!("job-{number}");
            let steps: Vec<_> = (0..=dice.below(3))
                .map(|step| {
                    let work = dice.below(300);
                    // one write of one short line: the kernel does not mix it with others
                    let script = format!(
                        "echo \"$PROW_JOB/$PROW_TASK_INDEX/$PROW_STEP\" >> '{}'\n\
                         i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo \"line $i\"; done\n\
                         sleep 0.{work:03}\n\
                         echo last",
                        ids.display()
                    );
                    json!({"name": format!("step-{step}"), "script": script})
                })
                .collect();
            let indexes = 1 + dice.below(3);
            let spec = json!({"completions": indexes, "parallelism": indexes, "maxFailures": "100%", "steps": steps});
            let job = json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
            Ok(serde_json::from_value(job)?)
        })
        .collect()
}

/// Creates all Jobs, each until the server says that it has it.
pub async fn submit(client: Client, namespace: String, jobs: Vec<Job>) -> Result<Vec<Job>> {
    let api: Api<Job> = Api::namespaced(client, &namespace);
    let mut accepted = Vec::new();
    for job in jobs {
        let name = job.name().to_owned();
        loop {
            match api.create(&PostParams::default(), &job).await {
                Ok(created) => {
                    accepted.push(created);
                    break;
                }
                // the answer of an earlier try was lost
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    let Ok(created) = api.get(&name).await else {
                        continue;
                    };
                    accepted.push(created);
                    break;
                }
                Err(kube::Error::Api(status)) if !matches!(status.code, 429 | 500..) => {
                    return Err(kube::Error::Api(status)).with_context(|| format!("Job {name} was refused"));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await, // the server is away
            }
        }
    }
    Ok(accepted)
}
