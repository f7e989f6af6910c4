//! Processes that even termination could not end: their Task is over (Failed/Abandoned), but the node is `Degraded` until they are gone.

use super::recovery::Local;
use crate::{journal::RunRecord, platform};
use parking_lot::Mutex;
use std::{collections::BTreeMap, time::Duration};
use tokio::sync::{Notify, watch};

/// The reason of a Task that left such behind.
const REASON: &str = "Abandoned";
/// Between looks whether they are gone.
const EVERY: Duration = Duration::from_secs(10);

/// Tasks that left processes behind, by uid, with what holds them together.
pub struct Abandoned {
    tasks: Mutex<BTreeMap<String, Option<String>>>,
    added: Notify,
    left: watch::Sender<Vec<String>>,
}

impl Default for Abandoned {
    fn default() -> Self {
        Self {
            tasks: Mutex::default(),
            added: Notify::new(),
            left: watch::Sender::new(Vec::new()),
        }
    }
}

impl Abandoned {
    /// Looks at a task that has ended here: remembers it if it left processes behind.
    pub fn consider(&self, uid: &str, local: &Local) {
        let abandoned =
            |record: &RunRecord| matches!(record, RunRecord::Finished { reason, .. } if reason == REASON);
        if local.run.iter().any(|entry| abandoned(&entry.record)) {
            let containment = local.containment().map(str::to_owned);
            self.tasks.lock().insert(uid.to_owned(), containment);
            self.added.notify_one();
        }
    }

    /// What is left, as `name (pid)`.
    pub fn left(&self) -> watch::Receiver<Vec<String>> {
        self.left.subscribe()
    }

    /// Keeps looking. Never returns.
    pub async fn run(&self) {
        loop {
            self.look();
            if self.tasks.lock().is_empty() {
                self.added.notified().await;
            } else {
                tokio::time::sleep(EVERY).await;
            }
        }
    }

    fn look(&self) {
        let mut left = Vec::new();
        self.tasks.lock().retain(|uid, containment| {
            let living = platform::survivors(uid, containment.as_deref());
            left.extend(living.iter().map(|p| format!("{} ({})", p.name, p.pid)));
            !living.is_empty()
        });
        self.left.send_if_modified(|known| {
            let changed = *known != left;
            if changed {
                *known = left;
            }
            changed
        });
    }
}

// by the variable, as Unix finds them; on Windows the job of the task tells, see `platform::windows::survivors`
#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test, though of Unix alone
    use super::*;
    use crate::journal::{Entry, VERSION};
    use api::task::TaskPhase;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use std::process::Command;

    fn ended(reason: &str) -> Local {
        let record = RunRecord::Finished {
            phase: TaskPhase::Failed,
            reason: reason.into(),
            message: String::new(),
            fatal: false,
            retry_code: false,
            outputs: BTreeMap::new(),
        };
        Local {
            run: vec![Entry {
                v: VERSION,
                at: MicroTime("2026-01-01T00:00:00Z".parse().unwrap()),
                record,
            }],
            ..Local::default()
        }
    }

    #[test]
    fn what_was_left_behind_is_named_until_it_is_gone() {
        let uid = super::super::retry::random_id().unwrap();
        let mut child = Command::new("sleep")
            .arg("1000")
            .env("PROW_TASK_UID", &uid)
            .spawn()
            .unwrap();
        while platform::survivors(&uid, None).is_empty() {
            std::thread::yield_now(); // for a moment after its start a process has no environment yet
        }
        let abandoned = Abandoned::default();
        let left = abandoned.left();
        abandoned.consider(&uid, &ended("Timeout"));
        abandoned.look();
        assert!(left.borrow().is_empty());
        abandoned.consider(&uid, &ended(REASON));
        abandoned.look();
        assert_eq!(*left.borrow(), [format!("sleep ({})", child.id())]);
        child.kill().unwrap();
        child.wait().unwrap();
        abandoned.look();
        assert!(left.borrow().is_empty() && abandoned.tasks.lock().is_empty());
    }
}
