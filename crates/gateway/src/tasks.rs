//! What the gateway knows of Tasks: the shared watch cache, and the API for what that has not seen yet.

use crate::refusal::Refusal;
use api::task::Task;
use informer::{Change, Informer};
use kube::{Api, Client};
use logs::Logs;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;

pub(crate) struct Tasks {
    seen: Informer<Task>,
    client: Client,
    /// Moves whenever a Task has ended or gone.
    endings: watch::Sender<()>,
}

impl Tasks {
    pub(crate) fn new(seen: Informer<Task>, client: Client) -> Self {
        Self {
            seen,
            client,
            endings: watch::Sender::new(()),
        }
    }

    /// The Task of this name; with `uid`, only that one. Agents put ranges often, so what was seen is believed; before
    /// a Task is said to be gone, the API is asked.
    pub(crate) async fn find(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Option<Arc<Task>>, Refusal> {
        let wanted = |task: &Task| uid.is_none() || task.metadata.uid.as_deref() == uid;
        if let Some(task) = self.seen.get(namespace, name)
            && wanted(&task)
        {
            return Ok(Some(task));
        }
        let task = Api::<Task>::namespaced(self.client.clone(), namespace)
            .get_opt(name)
            .await?;
        Ok(task.filter(wanted).map(Arc::new))
    }

    /// Hears of all endings from now on.
    pub(crate) fn endings(&self) -> watch::Receiver<()> {
        self.endings.subscribe()
    }
}

/// What of a step's log is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// The Task is not at its end, or ranges are still on their way.
    More,
    /// The log ends at this offset.
    Until(u64),
    /// The Task is at its end and names no size: what there is is all.
    Over,
}

/// What is still to come of the log of `step`.
pub(crate) fn outlook(task: &Task, step: &str) -> Outlook {
    let Some(status) = task.status.as_ref().filter(|status| status.phase.is_terminal()) else {
        return Outlook::More;
    };
    let size = status
        .steps
        .iter()
        .find(|s| s.name == step)
        .and_then(|s| s.log_bytes);
    match size {
        Some(size) => Outlook::Until(size.max(0).cast_unsigned()),
        None if status.logs_pending => Outlook::More,
        None => Outlook::Over,
    }
}

/// See [`crate::Gateway::run`].
pub(crate) async fn run(tasks: &Tasks, logs: &dyn Logs) {
    sweep(tasks, logs).await;
    let mut changes = tasks.seen.subscribe();
    loop {
        let mut ended = false;
        for change in changes.next().await {
            match change {
                Change::Applied(task) => {
                    ended |= task
                        .status
                        .as_ref()
                        .is_some_and(|status| status.phase.is_terminal());
                }
                Change::Deleted(task) => {
                    ended = true;
                    if let Some(uid) = &task.metadata.uid {
                        remove(logs, uid).await;
                    }
                }
            }
        }
        if ended {
            tasks.endings.send_replace(());
        }
    }
}

/// Removes the logs of Tasks that went while nobody looked.
async fn sweep(tasks: &Tasks, logs: &dyn Logs) {
    // Listed first: a Task that has logs by now is older than the list of Tasks waited for next.
    let with_logs = match logs.tasks().await {
        Ok(with_logs) => with_logs,
        Err(error) => {
            return tracing::warn!(%error, "logs of Tasks that are gone are kept until the next start");
        }
    };
    tasks.seen.synced().await;
    let living: HashSet<_> = tasks
        .seen
        .all()
        .iter()
        .filter_map(|task| task.metadata.uid.clone())
        .collect();
    for uid in with_logs.iter().filter(|uid| !living.contains(&***uid)) {
        remove(logs, uid).await;
    }
}

async fn remove(logs: &dyn Logs, uid: &str) {
    if let Err(error) = logs.remove(uid).await {
        tracing::warn!(task_uid = uid, %error, "the logs of a Task that is gone are kept until the next start");
    }
}
