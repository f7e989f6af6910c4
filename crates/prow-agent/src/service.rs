//! The agent as a service of this host: what the commands need of the service manager, whichever it is.
//!
//! `imp` is `windows` or `systemd`, which offer the same names.

#[cfg(windows)]
pub mod events;
#[cfg(windows)]
pub mod process;
#[cfg(unix)]
mod systemd;
#[cfg(unix)]
use systemd as imp;
#[cfg(windows)]
pub mod windows;
#[cfg(windows)]
use windows as imp;

use std::{path::PathBuf, time::Duration};

/// The service's name, for the service manager.
pub const NAME: &str = "prow-agent";
/// What it does, in a sentence.
const DESCRIPTION: &str =
    "Runs the tasks of Prow that are bound to this host. Running tasks go on while this service is stopped.";
/// How long a host that goes down waits for the agent.
pub const HOST_WAITS: Duration = Duration::from_secs(120);

/// The service as it is to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The installed program.
    pub program: PathBuf,
    /// The data folder.
    pub data_dir: PathBuf,
    /// Its account; the system's own if none.
    pub account: Option<String>,
}

/// How the service is doing, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether it runs, or is on its way there.
    pub runs: bool,
    /// Such as `running, pid 5`.
    pub words: String,
}

pub use imp::{
    Manager, check_account, check_administrator, check_supported, default_programs, prepare_data_folder,
};
