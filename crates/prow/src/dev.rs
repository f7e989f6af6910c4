//! `prow dev`: a server and its agents on one machine.
//!
//! Each agent is a process of its own, in a session of its own, with its log in a file: it outlives a `prow dev` that is killed, and
//! the next one on the same folder takes it over. What is remembered of an agent is its pid and start time ([`process`]); a second
//! agent is started on a folder only once the first is known to be gone.

mod agent;
mod process;

use crate::{
    outcome::Outcome,
    serve::{self, Options, Running},
    terminal::{self, Tone},
};
use agent::Agent;
use anyhow::{Context, Result};
use api::{Task, task::TaskPhase};
use kube::{Api, api::ListParams};
use std::path::PathBuf;
use tokio::{sync::watch, task::JoinSet};

/// Runs server and agents until told to stop.
pub async fn run(options: Options, agents: u32) -> Result<Outcome> {
    let program = agent_program()?;
    let running = Running::start(&options).await?;
    let (stop, stopping) = watch::channel(false);
    let mut supervised = JoinSet::new();
    for number in 1..=agents {
        let name = format!("agent-{number}");
        let agent = Agent {
            folder: options.data_dir.join("agents").join(&name),
            name,
            program: program.clone(),
            server: running.url.clone(),
            authority_hash: running.authority.hash(),
            renew_seconds: options.tuning.renew_seconds,
            client: running.admin(),
        };
        supervised.spawn(agent.supervise(stopping.clone()));
    }
    terminal::line(running.ready_line())?;
    let failure = tokio::select! {
        () = terminal::interrupted() => None,
        error = running.failed() => Some(error),
    };
    terminal::note(Tone::Dim, "stopping agents, then the server");
    stop.send_replace(true);
    supervised.join_all().await;
    if failure.is_none() {
        tell_what_goes_on(&running).await;
    }
    if tokio::time::timeout(serve::FAREWELL, running.stop())
        .await
        .is_err()
    {
        tracing::warn!("the end took too long and is cut short; nothing accepted is lost");
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Outcome::Done),
    }
}

/// Steps outlive their agent; whoever stops the agents should know which still run.
async fn tell_what_goes_on(running: &Running) {
    let tasks: Api<Task> = Api::all(running.admin());
    let list = match tasks.list(&ListParams::default()).await {
        Ok(list) => list,
        Err(error) => {
            tracing::warn!(%error, "which tasks still run cannot be told");
            return;
        }
    };
    for task in list {
        let phase = task
            .status
            .as_ref()
            .map(|status| status.phase)
            .unwrap_or_default();
        if matches!(phase, TaskPhase::Claimed | TaskPhase::Running) {
            terminal::note(
                Tone::Wait,
                format!(
                    "task {}/{} goes on running on {}; the next `prow dev` on this folder takes it over",
                    task.metadata.namespace.as_deref().unwrap_or_default(),
                    task.metadata.name.as_deref().unwrap_or_default(),
                    task.spec.node_name
                ),
            );
        }
    }
}

/// `prow-agent` beside this program.
fn agent_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program's own path is not known")?;
    let program = own.with_file_name(format!("prow-agent{}", std::env::consts::EXE_SUFFIX));
    anyhow::ensure!(
        program.exists(),
        "{} is missing: it belongs beside prow",
        program.display()
    );
    Ok(program)
}
