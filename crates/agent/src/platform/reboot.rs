//! Restarting the host: which boot this is, whether it ends, and the order for the next.
//!
//! Builds with debug assertions can be told to play another host: `PROW_SIMULATED_HOST` names a folder with its boot id in `boot`;
//! `stopping` is there while it goes down; an order to restart is a line in `ordered`, or refused by what stands in `theirs`; its clock
//! is wrong by the seconds in `clock`.

use super::imp;
use api::clock::{Clock, SystemClock};
use std::{io, sync::Arc};

/// What became of an order to restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// The host goes down for it.
    Ours,
    /// Somebody else had ordered a shutdown, which goes on; in words, who or what.
    Theirs(String),
}

/// The id of this boot of the host: the same until it restarts.
pub fn boot_id() -> io::Result<String> {
    #[cfg(debug_assertions)]
    if let Some(host) = simulated::host() {
        return host.boot_id();
    }
    imp::boot_id()
}

/// Whether the host is going down.
pub fn is_shutting_down() -> bool {
    #[cfg(debug_assertions)]
    if let Some(host) = simulated::host() {
        return host.is_shutting_down();
    }
    imp::is_shutting_down()
}

/// Orders a restart of the host, or says that one is under way. `why` is shown to whoever is logged on.
pub fn order_reboot(why: &str) -> io::Result<Ordered> {
    #[cfg(debug_assertions)]
    if let Some(host) = simulated::host() {
        return host.order_reboot(why);
    }
    imp::order_reboot(why)
}

/// The host's clock.
pub fn clock() -> Arc<dyn Clock> {
    #[cfg(debug_assertions)]
    if let Some(host) = simulated::host() {
        return Arc::new(host);
    }
    Arc::new(SystemClock)
}

#[cfg(debug_assertions)]
mod simulated {
    use super::{Clock, Ordered, SystemClock};
    use jiff::{SignedDuration, Timestamp};
    use std::{fs, io, io::Write, path::PathBuf};

    impl Clock for Host {
        fn now(&self) -> Timestamp {
            let wrong = fs::read_to_string(self.0.join("clock")).unwrap_or_default();
            SystemClock.now() + SignedDuration::from_secs(wrong.trim().parse().unwrap_or_default())
        }
    }

    pub struct Host(PathBuf);

    pub fn host() -> Option<Host> {
        std::env::var_os("PROW_SIMULATED_HOST").map(|folder| Host(folder.into()))
    }

    impl Host {
        pub fn boot_id(&self) -> io::Result<String> {
            Ok(fs::read_to_string(self.0.join("boot"))?.trim().to_owned())
        }

        pub fn is_shutting_down(&self) -> bool {
            self.0.join("stopping").exists()
        }

        pub fn order_reboot(&self, why: &str) -> io::Result<Ordered> {
            if let Ok(theirs) = fs::read_to_string(self.0.join("theirs")) {
                return Ok(Ordered::Theirs(theirs.trim().to_owned()));
            }
            let mut options = fs::File::options();
            let mut file = options.append(true).create(true).open(self.0.join("ordered"))?;
            writeln!(file, "{why}")?;
            Ok(Ordered::Ours)
        }
    }
}
