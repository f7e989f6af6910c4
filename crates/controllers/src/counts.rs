//! The numbers in the status of Targets (nodes held) and Queues (Tasks running, runs waiting). They are for people: a few seconds old
//! is fine, so many changes cost one write.

use crate::{context::Context, error::Error, patch, tasks};
use api::{Queue, QueueStatus, Target, TargetStatus, placement::Labels, wanted::Holder};
use kube::Api;
use std::{collections::HashMap, time::Duration};

/// How long changes are gathered.
const GATHER: Duration = Duration::from_secs(5);

pub(crate) async fn run(context: &Context) {
    tokio::join!(targets(context), queues(context));
}

async fn targets(context: &Context) {
    let mut nodes = context.shared.nodes.subscribe();
    let mut targets = context.shared.targets.subscribe();
    loop {
        tokio::select! {
            _ = nodes.next() => {}
            _ = targets.next() => {}
        }
        tokio::time::sleep(GATHER).await;
        if let Err(error) = count_targets(context).await {
            tracing::warn!(%error, "Targets not counted");
        }
        nodes.drain();
        targets.drain();
    }
}

async fn count_targets(context: &Context) -> Result<(), Error> {
    let nodes = context.shared.nodes.all();
    let none = Labels::new();
    let api: Api<Target> = Api::all(context.client.clone());
    for target in context.shared.targets.all() {
        let holder = Holder::of(&target.spec);
        let held = nodes
            .iter()
            .filter(|n| holder.holds(n.name(), n.metadata.labels.as_ref().unwrap_or(&none)))
            .count();
        let new = TargetStatus {
            nodes: i32::try_from(held).unwrap_or(i32::MAX),
        };
        let old = target.status.clone().unwrap_or_default();
        if let Some(change) = patch::difference(&old, &new) {
            ignore_races(patch::status(&api, &target, &change).await)?;
        }
    }
    Ok(())
}

async fn queues(context: &Context) {
    let mut jobs = context.shared.jobs.subscribe();
    let mut all_tasks = context.shared.tasks.subscribe();
    let mut queues = context.shared.queues.subscribe();
    loop {
        tokio::select! {
            _ = jobs.next() => {}
            _ = all_tasks.next() => {}
            _ = queues.next() => {}
        }
        tokio::time::sleep(GATHER).await;
        jobs.drain();
        all_tasks.drain();
        queues.drain();
        if let Err(error) = count_queues(context).await {
            tracing::warn!(%error, "Queues not counted");
        }
    }
}

async fn count_queues(context: &Context) -> Result<(), Error> {
    let mut counts: HashMap<String, QueueStatus> = HashMap::new();
    let mut queue_of: HashMap<String, String> = HashMap::new();
    for job in context.shared.jobs.all() {
        let queue = job.spec.queue_name.clone();
        let pending = job.status.as_ref().map_or(0, |s| s.pending);
        let count = counts.entry(queue.clone()).or_default();
        count.pending = count.pending.saturating_add(pending);
        queue_of.insert(job.uid().to_owned(), queue);
    }
    for task in context.shared.tasks.all().iter().filter(|t| tasks::is_open(t)) {
        if let Some(queue) = queue_of.get(&task.spec.job_ref.uid) {
            counts.entry(queue.clone()).or_default().running += 1;
        }
    }
    let api: Api<Queue> = Api::all(context.client.clone());
    for queue in context.shared.queues.all() {
        let name = queue.metadata.name.clone().unwrap_or_default();
        let new = counts.remove(&name).unwrap_or_default();
        let old = queue.status.clone().unwrap_or_default();
        if let Some(change) = patch::difference(&old, &new) {
            ignore_races(patch::status(&api, &queue, &change).await)?;
        }
    }
    Ok(())
}

/// What changed meanwhile is counted again because of that.
fn ignore_races<T>(written: Result<T, Error>) -> Result<(), Error> {
    match written {
        Ok(_) | Err(Error::Conflict | Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}
