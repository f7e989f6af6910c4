//! `prow cancel`: stop a Job.

use crate::{cli::Global, outcome::Outcome, session::Session, terminal};
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Stop Jobs: nothing new starts, running steps are asked to end, `finally` steps run. Cannot be taken back.
#[derive(Args, Debug)]
pub struct Cancel {
    /// The Jobs
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
    /// Why; shown to whoever looks at the Job
    #[arg(long, default_value = "cancelled with prow cancel")]
    reason: String,
    /// Kill steps at once; `finally` steps do not run
    #[arg(long)]
    force: bool,
}

impl Cancel {
    /// Asks for it; the Job ends a little later.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        for job in &self.jobs {
            let name = job.rsplit('/').next().unwrap_or(job);
            let path = format!(
                "/apis/prow.windows/v1/namespaces/{}/jobs/{name}",
                session.namespace
            );
            let live = session.get(&path).await?;
            // the first reason stays: only force may be added later
            let reason = live["spec"]["cancel"]["reason"].as_str().unwrap_or(&self.reason);
            let force = self.force || live["spec"]["cancel"]["force"] == true;
            let mut cancel = json!({"reason": reason});
            if force {
                cancel["force"] = true.into();
            }
            session.merge(&path, &json!({"spec": {"cancel": cancel}})).await?;
            terminal::line(format!(
                "job.prow.windows/{name} cancel requested{}",
                if force { " (force)" } else { "" }
            ))?;
        }
        Ok(Outcome::Done)
    }
}
