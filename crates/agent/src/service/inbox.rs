//! The Tasks bound to this node, as they come and change.
//!
//! One list, then watches of 30 s each, so that a dead connection is noticed soon; after a gap or an error the list again. Only Tasks that
//! have not ended are asked for: a Task that leaves the selection, or is gone, is told as [`Event::Left`], and whoever cares looks it up.

use super::{enrol::chain, retry::Backoff};
use api::Task;
use futures::{StreamExt, TryStreamExt};
use kube::{
    Api,
    api::{ListParams, WatchEvent, WatchParams},
    core::DeserializeGuard,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// How long a watch lasts, in seconds.
const WATCH_SECONDS: u32 = 30;
/// A watch from which nothing, not even its end, came for so long is dead.
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// What became of Tasks.
#[derive(Debug)]
pub enum Event {
    /// All that have not ended; those not among them have ended or are gone.
    All(Vec<Arc<Task>>),
    /// A new Task or a new state of one.
    Changed(Arc<Task>),
    /// A Task ended or is gone.
    Left {
        /// Its uid.
        uid: String,
    },
}

/// Watches for ever; ends when nobody listens any more.
pub async fn watch(client: kube::Client, node: &str, events: mpsc::Sender<Event>) {
    let tasks: Api<DeserializeGuard<Task>> = Api::all(client);
    let selector = selector(node);
    let mut backoff = Backoff::new(Duration::from_secs(10));
    let mut version: Option<String> = None;
    while !events.is_closed() {
        let result = match version.take() {
            None => list(&tasks, &selector, &events).await,
            Some(from) => follow(&tasks, &selector, from, &events).await,
        };
        match result {
            Ok(next) => {
                backoff.reset();
                version = next;
            }
            Err(error) => {
                tracing::warn!(node, error = %chain(&error), "Tasks are not watched; trying again");
                backoff.wait().await;
            }
        }
    }
}

fn selector(node: &str) -> String {
    let ended = [
        "Succeeded",
        "Failed",
        "Cancelled",
        "Skipped",
        "Rejected",
        "Unknown",
    ];
    let mut selector = format!("spec.nodeName={node}");
    for phase in ended {
        selector.push_str(",status.phase!=");
        selector.push_str(phase);
    }
    selector
}

/// Tells of all Tasks; answers the version to watch from.
async fn list(
    tasks: &Api<DeserializeGuard<Task>>,
    selector: &str,
    events: &mpsc::Sender<Event>,
) -> Result<Option<String>, kube::Error> {
    let list = tasks.list(&ListParams::default().fields(selector)).await?;
    let version = list.metadata.resource_version.clone();
    let all = list.items.into_iter().filter_map(readable).collect();
    let _ = events.send(Event::All(all)).await; // nobody listens: the caller sees it
    Ok(version)
}

/// Follows one watch to its end; answers the version to go on from, `None` where only a new list helps.
async fn follow(
    tasks: &Api<DeserializeGuard<Task>>,
    selector: &str,
    from: String,
    events: &mpsc::Sender<Event>,
) -> Result<Option<String>, kube::Error> {
    let params = WatchParams::default().fields(selector).timeout(WATCH_SECONDS);
    let mut stream = tasks.watch(&params, &from).await?.boxed();
    let mut version = from;
    loop {
        let next = match tokio::time::timeout(SILENCE, stream.try_next()).await {
            Ok(next) => next?,
            Err(_) => return Err(kube::Error::Service("the watch went silent".into())),
        };
        let event = match next {
            None => return Ok(Some(version)),
            Some(WatchEvent::Bookmark(mark)) => {
                version = mark.metadata.resource_version;
                continue;
            }
            // 410 and whatever else the server ends a watch with.
            Some(WatchEvent::Error(status)) => {
                tracing::debug!(
                    code = status.code,
                    message = status.message,
                    "the watch was cut off"
                );
                return Ok(None);
            }
            Some(WatchEvent::Added(task) | WatchEvent::Modified(task)) => {
                remember(&mut version, &task);
                readable(task).map(Event::Changed)
            }
            Some(WatchEvent::Deleted(task)) => {
                remember(&mut version, &task);
                kube::ResourceExt::uid(&task).map(|uid| Event::Left { uid })
            }
        };
        if let Some(event) = event
            && events.send(event).await.is_err()
        {
            return Ok(None);
        }
    }
}

fn remember(version: &mut String, task: &DeserializeGuard<Task>) {
    if let Some(seen) = kube::ResourceExt::resource_version(task) {
        *version = seen;
    }
}

/// One Task of a newer server that this agent cannot read must not hide the others.
fn readable(task: DeserializeGuard<Task>) -> Option<Arc<Task>> {
    match task.0 {
        Ok(task) => Some(Arc::new(task)),
        Err(invalid) => {
            tracing::error!(
                task = invalid.metadata.name.as_deref().unwrap_or_default(),
                error = %invalid.error,
                "a Task cannot be read and is left alone"
            );
            None
        }
    }
}
