//! `prow dev`: run server and agents on this machine, for development.

use crate::{
    dev,
    outcome::Outcome,
    serve::{self, Options, Tuning},
};
use anyhow::Result;
use clap::Args;
use std::{net::SocketAddr, path::PathBuf};

/// Run server and agents on this machine, for development: every namespace may run on every node. One line on stdout,
/// `ready URL kubeconfig=FILE`, says when requests are answered; everything else goes to stderr. Ctrl-C stops agents and server; steps
/// that run go on, and the next `prow dev` on the same folder takes them over.
#[derive(Args, Debug)]
pub struct Dev {
    /// Folder for everything it keeps [default: ~/.local/share/prow, on Windows %LOCALAPPDATA%\Prow]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Address and port; port 0 picks one and keeps it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// How many agents
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    agents: u32,
    /// Leave scheduling and controlling to `prow controllers` elsewhere
    #[arg(long, hide = true)]
    no_controllers: bool,
    #[command(flatten)]
    tuning: Tuning,
}

impl Dev {
    /// Runs until it is told to stop.
    pub async fn run(self) -> Result<Outcome> {
        let options = Options {
            data_dir: serve::data_dir(self.data_dir.as_deref())?,
            listen: self.listen,
            names: Vec::new(),
            open_access: true,
            controllers: !self.no_controllers,
            tuning: self.tuning,
        };
        dev::run(options, self.agents).await
    }
}
