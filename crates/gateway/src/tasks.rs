//! What the gateway knows of Tasks: the shared watch cache, and the API for what that has not seen yet.

use crate::refusal::Refusal;
use api::task::Task;
use informer::{Change, Informer};
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use logs::Logs;
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;

/// Tasks asked for in one list request.
const PAGE: u32 = 500;

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

    /// The uids of all Tasks there are. Asked of the API, not of the watch cache: that leaves out Tasks it cannot decode,
    /// whose logs must stay.
    async fn living(&self) -> Result<HashSet<String>, kube::Error> {
        let mut uids = HashSet::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let request = kube::core::Request::new(Task::url_path(&(), None)).list(&page);
            let listed: Listed = self
                .client
                .request(request.map_err(kube::Error::BuildRequest)?)
                .await?;
            uids.extend(listed.items.into_iter().map(|item| item.metadata.uid));
            match listed.metadata.next {
                Some(next) if !next.is_empty() => page = page.continue_token(&next),
                _ => return Ok(uids),
            }
        }
    }

    /// Hears of all endings from now on.
    pub(crate) fn endings(&self) -> watch::Receiver<()> {
        self.endings.subscribe()
    }
}

/// A list of Tasks, of which only who they are is read.
#[derive(Deserialize)]
struct Listed {
    metadata: ListedMeta,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct ListedMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMeta,
}

#[derive(Deserialize)]
struct ItemMeta {
    uid: String,
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
    // Logs first: a Task that has logs by now is older than the list of Tasks that follows.
    let found = match logs.tasks().await {
        Ok(with_logs) if with_logs.is_empty() => return,
        Ok(with_logs) => tasks
            .living()
            .await
            .map(|living| (with_logs, living))
            .map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let (with_logs, living) = match found {
        Ok(found) => found,
        Err(error) => {
            return tracing::warn!(error, "logs of Tasks that are gone are kept until the next start");
        }
    };
    for uid in with_logs.iter().filter(|uid| !living.contains(&***uid)) {
        remove(logs, uid).await;
    }
}

async fn remove(logs: &dyn Logs, uid: &str) {
    if let Err(error) = logs.remove(uid).await {
        tracing::warn!(task_uid = uid, %error, "the logs of a Task that is gone are kept until the next start");
    }
}
