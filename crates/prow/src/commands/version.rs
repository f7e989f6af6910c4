//! `prow version`: print the versions of this program and of the server.

use crate::{cli::Global, outcome::Outcome, session::Session, terminal};
use anyhow::Result;
use clap::Args;

/// Print the versions of this program and of the server.
#[derive(Args, Debug)]
pub struct Version {
    /// Only this program's
    #[arg(long)]
    client: bool,
}

impl Version {
    /// Prints them.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        terminal::line(format!("Client: {}", env!("CARGO_PKG_VERSION")))?;
        if !self.client {
            let version = Session::open(global).await?.get("/version").await?;
            terminal::line(format!(
                "Server: {}",
                version["gitVersion"].as_str().unwrap_or("unknown")
            ))?;
        }
        Ok(Outcome::Done)
    }
}
