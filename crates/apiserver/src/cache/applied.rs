//! Up to which revision the cache is complete, and those who wait for it.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Revision;
use tokio::sync::oneshot;

/// See the module.
#[derive(Debug, Default)]
pub struct Applied {
    revision: AtomicU64,
    waiting: Mutex<BTreeMap<Revision, Vec<oneshot::Sender<()>>>>,
}

impl Applied {
    /// The revision up to which the cache holds everything.
    pub fn revision(&self) -> Revision {
        self.revision.load(Ordering::Acquire)
    }

    /// Says that the cache is complete up to `revision`.
    pub fn advance(&self, revision: Revision) {
        let mut waiting = self.waiting.lock();
        if self.revision.fetch_max(revision, Ordering::AcqRel) >= revision {
            return;
        }
        let later = waiting.split_off(&(revision + 1));
        let done = std::mem::replace(&mut *waiting, later);
        drop(waiting);
        for waiter in done.into_values().flatten() {
            let _ = waiter.send(()); // a waiter may have given up
        }
    }

    /// Returns once the cache is complete up to `revision`.
    pub async fn reaches(&self, revision: Revision) {
        let done = {
            let mut waiting = self.waiting.lock();
            if self.revision() >= revision {
                return;
            }
            let (tell, done) = oneshot::channel();
            waiting.entry(revision).or_default().push(tell);
            done
        };
        let _ = done.await; // an error only says that the server is gone
    }
}
