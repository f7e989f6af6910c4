//! `prow-agent status`: what the service manager and the data folder tell of the agent on this host.

use crate::service::{self, Manager};
use clap::Args;
use std::path::PathBuf;

/// Flags of `status`.
#[derive(Args)]
pub struct Status {
    /// The agent's data folder
    #[arg(long, env = "PROW_AGENT_DATA_DIR", default_value_os_t = agent::platform::default_data_dir())]
    data_dir: PathBuf,
}

impl Status {
    /// Prints it.
    pub fn run(self) -> anyhow::Result<()> {
        #[cfg(unix)]
        let manager = Manager::new(None);
        #[cfg(windows)]
        let manager = Manager::new();
        match manager.state() {
            Ok(Some(state)) => println!("service      {}, {}", service::NAME, state.words),
            Ok(None) => println!("service      not installed"),
            Err(error) => println!("service      unknown: {error:#}"),
        }
        #[cfg(windows)]
        if let Some(upgrade) = crate::upgrade::last(&self.data_dir) {
            println!("upgrade      {upgrade}");
        }
        print!("{}", agent::service::state::read(&self.data_dir)?);
        Ok(())
    }
}
