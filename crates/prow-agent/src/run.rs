//! `prow-agent run`: the agent in the foreground, as a service or as a child of `prow dev`.

use crate::{programs::Programs, service::HOST_WAITS};
use agent::{
    layout::DataDir,
    service::{self, Ending, Settings, Written},
};
use anyhow::Context;
use clap::Args;
#[cfg(windows)]
use std::path::Path;
use std::{path::PathBuf, time::Duration};

/// Flags of `run`; what they leave out is read from agent.yaml in the data folder.
#[derive(Args)]
pub struct Run {
    /// Folder for identity and tasks; made private to this account
    #[arg(long, env = "PROW_AGENT_DATA_DIR", default_value_os_t = agent::platform::default_data_dir())]
    data_dir: PathBuf,
    /// The server, https://HOST:PORT
    #[arg(long, env = "PROW_SERVER")]
    server: Option<String>,
    /// Join token, as `prow node token create` prints it; needed once
    #[arg(long, env = "PROW_JOIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Name of the node; the host's name if left out
    #[arg(long)]
    name: Option<String>,
    /// Seconds between renewals of the node's Lease; after four without one the node counts as lost
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    renew_seconds: u64,
    /// Tasks at once; the number of CPUs, at least 2, if left out
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
    /// How long folders of finished tasks are kept, such as 24h
    #[arg(long)]
    task_retention: Option<String>,
    /// The most a step's log may hold, such as 64Mi
    #[arg(long)]
    max_log_size: Option<String>,
    /// Below this much free disk no new task is taken, such as 1Gi
    #[arg(long)]
    min_free_disk: Option<String>,
    /// Started by the service manager, as `prow-agent install` told it
    #[arg(long, hide = true)]
    service: bool,
}

impl Run {
    /// Runs until a signal, the service manager or a foreign holder of the Lease ends it.
    pub fn run(self) -> anyhow::Result<()> {
        #[cfg(windows)]
        if self.service {
            return crate::service::process::serve(self);
        }
        let asked = async {
            match asked_to_end() {
                Ok(asked) => {
                    asked.await;
                    ending()
                }
                Err(error) => {
                    tracing::error!("cannot be asked to end, so ending: {error:#}");
                    Ending::Stop
                }
            }
        };
        self.work(|| {}, asked, std::future::pending())
    }

    /// The data folder.
    #[cfg(windows)]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Runs until `asked` resolves; `started` is called as soon as it is at work, `beside` runs along.
    pub fn work(
        self,
        started: impl FnOnce(),
        asked: impl Future<Output = Ending>,
        beside: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let data = DataDir::open(&self.data_dir)?;
        super::logging::start(data.path()).with_context(|| format!("no log in {}", data.path().display()))?;
        let settings = self.settings(&data)?;
        // One thread is enough for all an agent does, and keeps it small.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start")?;
        runtime.block_on(async {
            started();
            tokio::select! {
                ended = service::run(settings, agent::platform::clock(), asked) => Ok(ended?),
                () = beside => Ok(()),
            }
        })
    }

    fn settings(self, data: &DataDir) -> anyhow::Result<Settings> {
        let program = self.runner(data)?;
        let flags = Written {
            server: self.server,
            name: self.name,
            slots: self.slots,
            task_retention: self.task_retention,
            max_log_size: self.max_log_size.map(api::quantity::Quantity),
            min_free_disk: self.min_free_disk.map(api::quantity::Quantity),
            run_as: None,
            allow_reboot: None,
        };
        let file = Written::load(&self.data_dir)?;
        let renew = Duration::from_secs(self.renew_seconds);
        let mut written = flags.or(file);
        // one that somebody started by hand, or that `prow dev` did, leaves its host alone
        written.allow_reboot.get_or_insert(self.service);
        Ok(written.settle(self.data_dir, program, self.token, renew)?)
    }
}

impl Run {
    /// The program that runs tasks: this one, or where it is installed a copy of it that no installer touches.
    fn runner(&self, data: &DataDir) -> anyhow::Result<PathBuf> {
        let program = std::env::current_exe().context("cannot find this program")?;
        if !self.service {
            return Ok(program);
        }
        let programs = Programs::of(&program)?;
        let used = service::state::runner_programs(data)?;
        Ok(match programs.runner(&program) {
            Ok(copy) => {
                let gone = programs.clean(&used.into_iter().chain([copy.clone()]).collect::<Vec<_>>());
                tracing::debug!(?gone, "copies that no runner uses are removed");
                copy
            }
            Err(error) => {
                tracing::warn!("runners are started from the service's own program: {error:#}");
                program
            }
        })
    }
}

/// What it means to be asked to end now.
fn ending() -> Ending {
    if agent::platform::is_shutting_down() {
        return Ending::HostDown { within: HOST_WAITS };
    }
    tracing::info!("stopping; running tasks go on");
    Ending::Stop
}

/// Resolves when this process is asked to end: by systemd or `kill` (SIGTERM), by Ctrl-C.
#[cfg(unix)]
fn asked_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// Resolves when this process is asked to end by its console.
#[cfg(windows)]
fn asked_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    let mut asked = agent::platform::end_requests()?;
    Ok(async move {
        asked.recv().await;
    })
}
