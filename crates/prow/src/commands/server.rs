//! `prow server`: run the server.

use crate::{
    outcome::Outcome,
    serve::{self, Options, Tuning},
};
use anyhow::Result;
use clap::Args;
use std::{net::SocketAddr, path::PathBuf};

/// Run the server: API, logs, scheduler and controllers in one process. One line on stdout, `ready URL kubeconfig=FILE`, says when
/// requests are answered; everything else goes to stderr.
#[derive(Args, Debug)]
pub struct ServerCommand {
    /// Folder for everything it keeps
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Address and port; port 0 picks one and keeps it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// A further name or address of this server, for its certificate; may be repeated
    #[arg(long = "tls-san", value_name = "NAME")]
    tls_san: Vec<String>,
    /// Leave scheduling and controlling to `prow controllers` elsewhere
    #[arg(long)]
    no_controllers: bool,
    #[command(flatten)]
    tuning: Tuning,
}

impl ServerCommand {
    /// Runs until it is told to stop.
    pub async fn run(self) -> Result<Outcome> {
        serve::run(Options {
            data_dir: serve::data_dir(self.data_dir.as_deref())?,
            listen: self.listen,
            names: self.tls_san,
            open_access: false,
            controllers: !self.no_controllers,
            tuning: self.tuning,
        })
        .await
    }
}
