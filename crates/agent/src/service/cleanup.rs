//! Folders of finished tasks: kept for a while, removed when their time is up or the disk runs low, the oldest first.

use super::host::Host;
use crate::{layout::TaskDir, platform};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// The longest time between two looks.
const EVERY: Duration = Duration::from_secs(60);

/// Finished tasks whose folders are kept, by the time they ended.
#[derive(Default)]
pub struct Kept {
    folders: Mutex<Folders>,
    added: Notify,
}

#[derive(Default)]
struct Folders {
    by_end: BTreeSet<(Timestamp, String)>,
    uids: HashSet<String>,
}

impl Kept {
    /// A task has ended and nothing is left to tell.
    pub fn add(&self, dir: &TaskDir, ended: Timestamp) {
        let mut folders = self.folders.lock();
        if folders.uids.insert(dir.uid().to_owned()) {
            folders.by_end.insert((ended, dir.uid().to_owned()));
            self.added.notify_one();
        }
    }

    /// Whether it is one of them.
    pub fn has(&self, uid: &str) -> bool {
        self.folders.lock().uids.contains(uid)
    }

    fn oldest(&self) -> Option<(Timestamp, String)> {
        self.folders.lock().by_end.first().cloned()
    }

    fn forget(&self, one: &(Timestamp, String)) {
        let mut folders = self.folders.lock();
        folders.by_end.remove(one);
        folders.uids.remove(&one.1);
    }
}

/// Removes folders as they come due, and says whether the disk stays below its floor. Never returns.
pub async fn run(host: &Host, pressure: &watch::Sender<bool>) {
    let retention = host.settings.task_retention;
    let every = (retention / 4).clamp(Duration::from_secs(1), EVERY);
    loop {
        remove_old(host, retention);
        let low = remove_for_room(host);
        pressure.send_if_modified(|known| std::mem::replace(known, low) != low);
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = host.kept.added.notified() => {}
        }
    }
}

fn remove_old(host: &Host, retention: Duration) {
    let retention = SignedDuration::try_from(retention).unwrap_or(SignedDuration::MAX);
    while let Some(oldest) = host.kept.oldest() {
        if host.clock.now().duration_since(oldest.0) < retention {
            return;
        }
        remove(host, &oldest);
    }
}

/// Removes the oldest until the floor is kept; true where that is not enough.
fn remove_for_room(host: &Host) -> bool {
    loop {
        let free = match platform::disk(host.home.data.path()) {
            Ok((_, free)) => free,
            Err(error) => {
                tracing::warn!(%error, "the free space cannot be told");
                return false;
            }
        };
        if free >= host.settings.min_free_disk {
            return false;
        }
        let Some(oldest) = host.kept.oldest() else {
            return true;
        };
        tracing::info!(
            uid = oldest.1,
            free,
            "removing a finished task before its time: the disk is low"
        );
        remove(host, &oldest);
    }
}

fn remove(host: &Host, one: &(Timestamp, String)) {
    host.kept.forget(one);
    let removed = host.home.data.task(&one.1).and_then(|dir| dir.remove());
    if let Err(error) = removed {
        tracing::warn!(uid = one.1, %error, "a finished task's folder stays");
    }
}
