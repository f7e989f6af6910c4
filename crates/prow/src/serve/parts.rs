//! The parts beside the API server: they speak to it as clients of their own, in this process, and share one watch a kind.

use super::Tuning;
use anyhow::{Context, Result, anyhow};
use api::{clock::SystemClock, identity::Identity};
use gateway::Gateway;
use informer::Shared;
use logs::Logs;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

/// Parts that run.
pub struct Parts {
    logs: Arc<logs::Sqlite>,
    work: Mutex<JoinSet<&'static str>>,
    stop: watch::Sender<bool>,
}

impl Parts {
    /// Starts them.
    pub fn start(api: &apiserver::Server, data: &Path, tuning: &Tuning) -> Result<Self> {
        let logs = Arc::new(
            logs::Sqlite::open(data, logs::Options::default()).context("the logs cannot be opened")?,
        );
        let clock = Arc::new(SystemClock);
        let (stop, stopping) = watch::channel(false);
        let client = |name| api.client(Identity::part(name));
        let shared = Shared::start(&client("informers"));
        let mut work = JoinSet::new();

        let gateway = Gateway::new(logs.clone(), shared.tasks.clone(), client("gateway"));
        api.mount(gateway.router());
        let stopped = super::stopped(stopping.clone());
        work.spawn(async move {
            tokio::select! {
                () = gateway.run() => {}
                () = stopped => {}
            }
            "gateway"
        });

        let options = scheduler::Options {
            fence_seconds: tuning.fence_seconds.into(),
            ..Default::default()
        };
        let scheduling = scheduler::run(
            client("scheduler"),
            shared.clone(),
            options,
            clock.clone(),
            super::stopped(stopping.clone()),
        );
        work.spawn(async move {
            scheduling.await;
            "scheduler"
        });
        let options = controllers::Options {
            node_lost: seconds(tuning.node_lost_seconds),
            fence_slack: seconds(tuning.fence_slack_seconds),
            max_finished: usize::try_from(tuning.max_finished)?,
            ..Default::default()
        };
        let controlling = controllers::run(
            client("controllers"),
            shared,
            options,
            clock,
            super::stopped(stopping),
        );
        work.spawn(async move {
            controlling.await;
            "controllers"
        });
        Ok(Self {
            logs,
            work: Mutex::new(work),
            stop,
        })
    }

    /// Waits for one that ended against its will.
    pub async fn failed(&self) -> anyhow::Error {
        let mut work = self.work.lock().await;
        tokio::select! {
            error = self.logs.fatal() => anyhow!(error),
            ended = work.join_next() => match ended {
                Some(Ok(part)) => anyhow!("the {part} ended"),
                Some(Err(error)) => anyhow!("a part ended badly: {error}"),
                None => std::future::pending().await,
            },
        }
    }

    /// Ends them.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let mut work = self.work.into_inner();
        while work.join_next().await.is_some() {}
        if let Err(error) = self.logs.close().await {
            tracing::warn!(%error, "the logs did not close well");
        }
    }
}
