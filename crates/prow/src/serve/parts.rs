//! The parts beside the API server: they speak to it as clients of their own, in this process, and share one watch a kind.

use super::{Options, control};
use anyhow::{Context, Result, anyhow};
use api::identity::Identity;
use gateway::Gateway;
use informer::Shared;
use logs::Logs;
use std::sync::Arc;
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};

/// Parts that run.
pub struct Parts {
    logs: Arc<logs::Sqlite>,
    work: Mutex<JoinSet<&'static str>>,
    stop: watch::Sender<bool>,
}

impl Parts {
    /// Starts them.
    pub fn start(api: &apiserver::Server, options: &Options) -> Result<Self> {
        let data = &options.data_dir;
        let logs = Arc::new(
            logs::Sqlite::open(data, logs::Options::default()).context("the logs cannot be opened")?,
        );
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

        if options.controllers {
            let identity = control::identity(data).context("the server's identity cannot be kept")?;
            let (api, tuning) = (api.clone(), options.tuning.clone());
            work.spawn(async move {
                let client = |name: &str| api.client(Identity::part(name));
                let stopped = super::stopped(stopping);
                if let Err(error) = control::run(client, shared, identity, &tuning, stopped).await {
                    tracing::error!(%error, "scheduler and controllers cannot be run");
                }
                "control"
            });
        }
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
