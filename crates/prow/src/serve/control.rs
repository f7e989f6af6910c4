//! Scheduler and controllers, run by whichever process leads.

use super::{Tuning, private};
use anyhow::Result;
use api::clock::SystemClock;
use informer::Shared;
use kube::Client;
use leader::{Fence, SystemBootClock};
use std::{fs, future::Future, io, path::Path, sync::Arc, time::Duration};

/// The Lease of the process that schedules and controls.
const LEASE: &str = "prow-control";

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

/// Runs for the lead, and both parts while this process leads, until `shutdown`. `client` makes the client of a part by its name.
pub async fn run(
    client: impl Fn(&str) -> Client,
    shared: Shared,
    identity: String,
    tuning: &Tuning,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let election = leader::Options {
        namespace: apiserver::SYSTEM_NAMESPACE.into(),
        name: LEASE.into(),
        identity,
        lease: seconds(tuning.leader_lease_seconds),
    };
    let scheduling = scheduler::Options {
        fence_seconds: tuning.fence_seconds.into(),
        ..Default::default()
    };
    let controlling = controllers::Options {
        node_lost: seconds(tuning.node_lost_seconds),
        fence_slack: seconds(tuning.fence_slack_seconds),
        max_finished: usize::try_from(tuning.max_finished)?,
        ..Default::default()
    };
    let clock = Arc::new(SystemClock);
    let parts = |fence: Fence| {
        let scheduler = scheduler::run(
            fence.client(client("scheduler")),
            shared.clone(),
            scheduling.clone(),
            clock.clone(),
            std::future::pending(),
        );
        let controllers = controllers::run(
            fence.client(client("controllers")),
            shared.clone(),
            controlling.clone(),
            clock.clone(),
            std::future::pending(),
        );
        async {
            tokio::join!(scheduler, controllers);
        }
    };
    let boot = Arc::new(SystemBootClock);
    leader::lead(client("leader"), election, clock.clone(), boot, parts, shutdown).await;
    Ok(())
}

/// Who the owner of a data folder is in elections: made with the folder and kept, so that after a crash the next process goes on at once.
/// The folder's lock sees to it that only one lives.
pub fn identity(data: &Path) -> io::Result<String> {
    let path = data.join("server-id");
    match fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let id = random_identity()?;
    private::file(&path, id.as_bytes()).map_err(io::Error::other)?;
    Ok(id)
}

/// Who a process without a data folder is.
pub fn random_identity() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("prow-{:016x}", u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_identity_and_has_one_of_its_own() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = identity(one.path()).unwrap();
        assert_eq!(identity(one.path()).unwrap(), first);
        assert_ne!(identity(other.path()).unwrap(), first);
        fs::write(one.path().join("server-id"), "").unwrap();
        assert_ne!(
            identity(one.path()).unwrap(),
            "",
            "a file cut short by a crash is made anew"
        );
    }
}
