//! `prow-agent upgrade`: hands the service over to another version, and back if that one does not do its work.

#[cfg(any(windows, test))]
mod handover;
#[cfg(windows)]
mod windows;

use clap::Args;
use std::path::PathBuf;

#[cfg(windows)]
pub use windows::{is_under_way, last};

/// Flags of `upgrade`.
#[derive(Args)]
pub struct Upgrade {
    /// The new version's program
    #[arg(long, value_name = "PROGRAM", required_unless_present = "guard")]
    to: Option<PathBuf>,
    /// Seconds the new version may take to be at work, holding the node's Lease; after them the old one is back
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience_seconds: u64,
    /// The agent's data folder
    #[arg(long, env = "PROW_AGENT_DATA_DIR", default_value_os_t = agent::platform::default_data_dir())]
    data_dir: PathBuf,
    /// Sees an upgrade to its end whose command was cut off; a scheduled task starts this
    #[arg(long, hide = true)]
    guard: bool,
}

#[cfg(unix)]
impl Upgrade {
    /// Not on Linux.
    pub fn run(self) -> anyhow::Result<()> {
        anyhow::bail!(
            "upgrade is not supported on Linux: run the new version's `prow-agent install`, which hands over to it; running tasks go on"
        )
    }
}
