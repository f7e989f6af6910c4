//! `prow resolve`: settle a Task whose outcome is not known.

use crate::{cli::Global, outcome::Outcome, session::Session, terminal};
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::json;

/// Settle a Task whose outcome is not known: say what you found on the host.
#[derive(Args, Debug)]
pub struct Resolve {
    /// The Task, as `prow get tasks` shows it
    #[arg(value_name = "TASK")]
    task: String,
    /// What it counts as
    #[arg(long = "as", value_name = "OUTCOME")]
    as_: Answer,
    /// How you know
    #[arg(long)]
    reason: String,
}

/// What a Task counts as.
#[derive(ValueEnum, Debug, Clone, Copy)]
#[value(rename_all = "PascalCase")]
enum Answer {
    /// It did its work.
    Succeeded,
    /// It did not.
    Failed,
}

impl Resolve {
    /// Writes it down.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let name = self.task.rsplit('/').next().unwrap_or(&self.task);
        let path = format!(
            "/apis/prow.windows/v1/namespaces/{}/tasks/{name}",
            session.namespace
        );
        let resolution = json!({"as": format!("{:?}", self.as_), "reason": self.reason});
        session
            .merge(&path, &json!({"spec": {"resolution": resolution}}))
            .await?;
        terminal::line(format!("task.prow.windows/{name} resolved as {:?}", self.as_))?;
        Ok(Outcome::Done)
    }
}
