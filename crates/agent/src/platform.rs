//! Everything that differs between operating systems, as one set of functions and types; the rest of the crate is the same everywhere.
//!
//! `imp` is `unix` or `windows`, which offer the same names: files private to the account, the identity of processes
//! and of the boot, the local endpoint, a step's processes and their containment, the base environment, the way to a program.

#[cfg(any(windows, test))]
mod argv;
#[cfg(any(windows, test))]
mod batch;
mod launch;
mod reboot;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as imp;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as imp;

/// A sign of the system that a restart is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebootMark {
    /// Who sets it, such as `CBS RebootPending`.
    pub source: &'static str,
    /// Whether it counts where nobody chose which do. Some marks stay set for ever on healthy hosts.
    pub counts: bool,
}

pub use imp::*;
pub use launch::{Exit, Launch, Limits, Process, Usage};
pub use reboot::{Ordered, boot_id, clock, is_shutting_down, order_reboot};
