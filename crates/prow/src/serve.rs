//! The server in one process: store, logs, API server, gateway, scheduler and controllers.
//!
//! [`Running::start`] does a start in this order: take the data folder, open the store, make or load the CA, start the API server in
//! memory, make what every installation has ([`first_start`]), start the parts that speak to it ([`parts`]), write the administrator's
//! kubeconfig, listen. [`Running::stop`] undoes it the other way round.

pub mod control;
mod first_start;
mod history;
mod kubeconfig;
mod listen;
mod parts;
mod private;

pub use private::{file as private_file, folder as private_folder};

use crate::{outcome::Outcome, state};
use anyhow::{Context, Result, anyhow};
use api::{
    clock::{Clock, SystemClock},
    identity::Identity,
};
use clap::Args;
use pki::Authority;
use std::{
    fs::File,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use store::{Sqlite, Store};
use tokio::{sync::watch, task::JoinHandle};

/// Times and bounds that tests shorten.
#[derive(Args, Debug, Clone)]
pub struct Tuning {
    /// How often agents renew their Lease
    #[arg(long, value_name = "SECONDS", default_value_t = 10, help_heading = "Tuning")]
    pub renew_seconds: u32,
    /// How long without a renewal until a node counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 40, help_heading = "Tuning")]
    pub node_lost_seconds: u32,
    /// Jobs with onUnknown Rerun: how long after the last renewal the agent ends the work itself
    #[arg(long, value_name = "SECONDS", default_value_t = 300, help_heading = "Tuning")]
    pub fence_seconds: u32,
    /// How much longer than the fence the server waits before it repeats such work
    #[arg(long, value_name = "SECONDS", default_value_t = 60, help_heading = "Tuning")]
    pub fence_slack_seconds: u32,
    /// How many finished Jobs a namespace keeps
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, help_heading = "Tuning")]
    pub max_finished: u32,
    /// How long a leader that has vanished still counts as leading
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..), help_heading = "Tuning")]
    pub leader_lease_seconds: u32,
}

/// How a server is started.
pub struct Options {
    /// Its data folder.
    pub data_dir: PathBuf,
    /// Where it listens; port 0 picks one at the first start and keeps it.
    pub listen: SocketAddr,
    /// Further names and addresses clients know it by.
    pub names: Vec<String>,
    /// Whether every namespace may run on every node.
    pub open_access: bool,
    /// Whether scheduler and controllers run here, while this process leads.
    pub controllers: bool,
    /// Times and bounds.
    pub tuning: Tuning,
}

/// A server that runs.
pub struct Running {
    /// Where clients on this machine reach it.
    pub url: String,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// Signs certificates and knows the hash join tokens carry.
    pub authority: Arc<Authority>,
    api: apiserver::Server,
    store: Arc<Sqlite>,
    parts: parts::Parts,
    shutdown: watch::Sender<bool>,
    serving: JoinHandle<()>,
    forgetting: JoinHandle<()>,
    _lock: File,
}

impl Running {
    /// Starts everything; returns when requests are answered.
    pub async fn start(options: &Options) -> Result<Self> {
        let data = &options.data_dir;
        private::folder(data)?;
        let lock = state::lock(data)
            .with_context(|| format!("{} cannot be locked", data.display()))?
            .ok_or_else(|| {
                anyhow!(
                    "another server uses {}: stop it, or choose another --data-dir",
                    data.display()
                )
            })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let listener = listen::bind(data, options.listen).await?;
        let address = listener.local_addr()?;
        let pki_folder = data.join("pki");
        let authority = Arc::new(Authority::open(&pki_folder, clock.clone())?);
        let names = listen::names(address, &options.names);
        let certificate = authority.server(&pki_folder, &names)?;
        let tls = pki::tls::server(&certificate, authority.certificate(), &["h2", "http/1.1"])?;

        let store =
            Arc::new(Sqlite::open(data, store::Options::default()).context("the store cannot be opened")?);
        let mut kinds = machinery::core_kinds::all();
        use machinery::typed::kind;
        kinds.extend([
            kind::<api::Job>(),
            kind::<api::Task>(),
            kind::<api::Node>(),
            kind::<api::Queue>(),
            kind::<api::Target>(),
        ]);
        let api_options = apiserver::Options {
            version: env!("CARGO_PKG_VERSION").into(),
            authority: Some(authority.clone()),
            clock: clock.clone(),
            ..Default::default()
        };
        let api = apiserver::Server::start(store.clone(), kinds, api_options).await?;
        first_start::make(&api, options.open_access).await?;
        let parts = parts::Parts::start(&api, options)?;

        let url = listen::url(address);
        let kubeconfig = state::kubeconfig(data);
        kubeconfig::write(&kubeconfig, &url, &authority, clock.now())?;
        let (shutdown, stop) = watch::channel(false);
        let serving = tokio::spawn({
            let api = api.clone();
            async move { api.serve(listener, Some(tls), stopped(stop)).await }
        });
        let forgetting = tokio::spawn(history::run(store.clone()));
        Ok(Self {
            url,
            kubeconfig,
            authority,
            api,
            store,
            parts,
            shutdown,
            serving,
            forgetting,
            _lock: lock,
        })
    }

    /// A client with an administrator's rights, without a socket.
    pub fn admin(&self) -> kube::Client {
        self.api.client(Identity::part("dev"))
    }

    /// The one line on stdout that says that requests are answered now.
    pub fn ready_line(&self) -> String {
        format!("ready {} kubeconfig={}", self.url, self.kubeconfig.display())
    }

    /// Waits for what ends a server against its will.
    pub async fn failed(&self) -> anyhow::Error {
        let error = tokio::select! {
            error = self.store.fatal() => anyhow!(error),
            error = self.parts.failed() => error,
        };
        error.context("the server cannot go on")
    }

    /// Ends it in order: connections, parts, store.
    pub async fn stop(self) -> Result<()> {
        self.shutdown.send_replace(true);
        let _ = self.serving.await; // a panic there was reported by the runtime
        self.parts.stop().await;
        self.forgetting.abort();
        self.store.close().await.context("the store did not close well")
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await; // a sender that is gone means the same
}

/// How long an orderly end may take before it is cut short.
pub const FAREWELL: Duration = Duration::from_secs(20);

/// Runs a server until it is told to stop, or cannot go on.
pub async fn run(options: Options) -> Result<Outcome> {
    let running = Running::start(&options).await?;
    crate::terminal::line(running.ready_line())?;
    let failure = tokio::select! {
        () = crate::terminal::interrupted() => None,
        error = running.failed() => Some(error),
    };
    if tokio::time::timeout(FAREWELL, running.stop()).await.is_err() {
        tracing::warn!("the end took too long and is cut short; nothing accepted is lost");
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Outcome::Done),
    }
}

/// The data folder to use.
pub fn data_dir(given: Option<&Path>) -> Result<PathBuf> {
    let folder = match given {
        Some(folder) => folder.to_owned(),
        None => state::default_data_dir()
            .context("there is no home folder to keep data in: name one with --data-dir")?,
    };
    std::path::absolute(&folder).with_context(|| format!("{} is no folder", folder.display()))
}
