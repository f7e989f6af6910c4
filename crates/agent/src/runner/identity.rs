//! Which process a runner is.

use crate::platform;
use serde::{Deserialize, Serialize};
use std::io;

/// Four facts that together identify a process: a pid alone is used again, and so is a creation time in another boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Creation time in the system's own unit.
    pub created: u64,
    /// Boot of the host.
    pub boot_id: String,
    /// Path of its program.
    pub image: String,
}

impl Identity {
    /// The facts of a living process.
    pub fn of(pid: u32) -> io::Result<Self> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("there is no process {pid}"));
        Ok(Self {
            pid,
            created: platform::created(pid).ok_or_else(gone)?,
            boot_id: platform::boot_id()?,
            image: platform::image(pid)?,
        })
    }

    /// A child that ended before its facts could be read: no living process is ever taken for it.
    pub(super) fn ended(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            created: 0,
            boot_id: platform::boot_id()?,
            image: String::new(),
        })
    }

    /// Whether this very process lives; a zombie does not.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_facts_must_match() {
        let me = Identity::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        let others = [
            Identity {
                created: me.created + 1,
                ..me.clone()
            },
            Identity {
                boot_id: "another".into(),
                ..me.clone()
            },
            Identity {
                image: "/bin/other".into(),
                ..me.clone()
            },
            Identity { pid: 1, ..me },
        ];
        assert!(others.iter().all(|other| !other.is_alive()));
        assert!(!Identity::ended(std::process::id()).unwrap().is_alive());
    }
}
