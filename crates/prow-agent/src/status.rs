//! `prow-agent status`: what the data folder of an agent on this host tells.

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
        print!("{}", agent::service::state::read(&self.data_dir)?);
        Ok(())
    }
}
