//! Finished Jobs go: after `ttlSecondsAfterFinished`, or oldest first when a namespace has too many. Of Jobs that somebody named only
//! the Tasks go: whoever applies manifests again and again would make the Job anew, and so run it anew.

use crate::{
    context::Context,
    error::Error,
    keyed::{self, Outcome},
    tasks,
};
use api::{Job, Task};
use futures::StreamExt;
use informer::of_job;
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};
use std::{sync::Arc, time::Duration};

/// How many Jobs are worked on at once.
const AT_ONCE: usize = 16;
/// After a Job finished its namespace is counted; not for each of many.
const COUNT_AFTER: Duration = Duration::from_secs(5);

pub(crate) async fn run(context: &Context) {
    let finished = keyed::feed(context.shared.jobs.subscribe(), |change| {
        let job = change.object();
        let over = job.phase().is_terminal();
        over.then(|| (job.uid().to_owned(), Duration::ZERO))
            .into_iter()
            .collect()
    });
    let by_namespace = keyed::feed(context.shared.jobs.subscribe(), |change| {
        let job = change.object();
        let over = job.phase().is_terminal();
        over.then(|| (job.namespace().to_owned(), COUNT_AFTER))
            .into_iter()
            .collect()
    });
    tokio::join!(
        keyed::work("ttl", finished.boxed(), AT_ONCE, |uid| expire(context, uid)),
        keyed::work("finished Jobs", by_namespace.boxed(), 1, |name| limit(
            context, name
        )),
    );
}

async fn expire(context: &Context, uid: String) -> Outcome {
    let Some(job) = context.shared.jobs.by_uid(&uid) else {
        return Ok(None);
    };
    let Some(seconds) = job.spec.ttl_seconds_after_finished else {
        return Ok(None);
    };
    if is_deleting(&job) {
        return Ok(None);
    }
    let Some(finished) = finished_at(&job) else {
        return Ok(None);
    };
    let end = finished
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    if end > context.now() {
        return Ok(Some(context.until(end)));
    }
    delete_job(context, &job).await?;
    Ok(None)
}

async fn limit(context: &Context, namespace: String) -> Outcome {
    let mut finished: Vec<Arc<Job>> = context
        .shared
        .jobs
        .all()
        .into_iter()
        .filter(|job| job.namespace() == namespace && !is_deleting(job) && finished_at(job).is_some())
        .filter(|job| !is_named(job) || has_tasks(context, job))
        .collect();
    let Some(over) = finished
        .len()
        .checked_sub(context.options.max_finished)
        .filter(|n| *n > 0)
    else {
        return Ok(None);
    };
    finished.sort_by_key(|job| (finished_at(job), job.uid().to_owned()));
    for job in &finished[..over] {
        if is_named(job) {
            delete_tasks(context, job).await?;
        } else {
            delete_job(context, job).await?;
        }
    }
    Ok(None)
}

fn has_tasks(context: &Context, job: &Job) -> bool {
    let all = context.shared.tasks.indexed(&of_job(job.uid()));
    all.iter().any(|t| !tasks::is_deleting(t))
}

/// Whether somebody chose its name and nothing owns it.
fn is_named(job: &Job) -> bool {
    job.metadata.generate_name.is_none() && job.metadata.owner_references.as_ref().is_none_or(Vec::is_empty)
}

fn is_deleting(job: &Job) -> bool {
    job.metadata.deletion_timestamp.is_some()
}

fn finished_at(job: &Job) -> Option<Timestamp> {
    let status = job.status.as_ref().filter(|s| s.phase.is_terminal())?;
    status.completion_time.as_ref().map(|t| t.0)
}

async fn delete_job(context: &Context, job: &Job) -> Result<(), Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), job.namespace());
    tracing::info!(job = job.name(), "deleting finished Job");
    gone(api.delete(job.name(), &of_uid(job.uid())).await)
}

async fn delete_tasks(context: &Context, job: &Job) -> Result<(), Error> {
    let api: Api<Task> = Api::namespaced(context.client.clone(), job.namespace());
    tracing::info!(job = job.name(), "deleting Tasks of finished Job");
    for task in context.shared.tasks.indexed(&of_job(job.uid())) {
        gone(api.delete(task.name(), &of_uid(task.uid())).await)?;
    }
    Ok(())
}

/// Only the very object, its dependents after it.
pub(crate) fn of_uid(uid: &str) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..Default::default()
    }
}

/// What is gone, or another by now, needs no delete.
pub(crate) fn gone<T>(deleted: Result<T, kube::Error>) -> Result<(), Error> {
    match deleted.map_err(Error::from) {
        Ok(_) | Err(Error::Gone | Error::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}
