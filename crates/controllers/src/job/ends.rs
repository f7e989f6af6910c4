//! Ending Tasks: those of a Job that is over are stopped, and those no agent will ever end are ended here.

use crate::{context::Context, error::Error, tasks};
use api::{
    Job, Task,
    job::OnUnavailable,
    task::{ResolvedAs, Stop, TaskPhase},
    wanted::{Outlook, reason},
};
use std::sync::Arc;

/// Does what is to be done to a Job's open Tasks. One that changed meanwhile does not keep the others waiting.
pub(super) async fn work(
    context: &Context,
    job: &Job,
    outlook: &Outlook,
    all: &[Arc<Task>],
) -> Result<(), Error> {
    let over = outlook
        .stop()
        .or(job.phase().is_terminal().then_some(reason::CANCELLED));
    let mut failed = Ok(());
    for task in all.iter().filter(|t| tasks::is_open(t)) {
        let done = match over {
            Some(reason) => stop(context, job, task, reason).await,
            None => settle(context, job, task).await,
        };
        if let Err(error) = done {
            failed = Err(error);
        }
    }
    failed
}

/// Stops all open Tasks.
pub(super) async fn stop_all(
    context: &Context,
    job: &Job,
    all: &[Arc<Task>],
    reason: &str,
) -> Result<(), Error> {
    for task in all.iter().filter(|t| tasks::is_open(t)) {
        stop(context, job, task, reason).await?;
    }
    Ok(())
}

async fn stop(context: &Context, job: &Job, task: &Task, reason: &str) -> Result<(), Error> {
    settle(context, job, task).await?;
    let cancel = job.spec.cancel.as_ref();
    let message = match (cancel, reason) {
        (Some(cancel), reason::CANCELLED) => cancel.reason.clone(),
        (None, reason::CANCELLED) => "the Job was deleted or had ended".to_owned(),
        (_, reason::DEADLINE) => "the Job's activeDeadlineSeconds passed".to_owned(),
        _ => String::new(),
    };
    if tasks::is_unclaimed(task) {
        if task.spec.stop.is_some() && task.spec.stop.as_ref().is_some_and(|s| is_record(&s.reason)) {
            return Ok(()); // a record, settled above
        }
        let phase = if reason == reason::DEADLINE {
            TaskPhase::Failed
        } else {
            TaskPhase::Cancelled
        };
        return tasks::end(context, task, phase, reason, &message).await;
    }
    let stop = Stop {
        reason: reason.to_owned(),
        message,
        grace_seconds: job.spec.termination_grace_period_seconds,
        force: cancel.is_some_and(|c| c.force),
    };
    tasks::stop(context, task, stop).await
}

/// Ends what no agent will: records of work that never started, Tasks stopped before their claim, outcomes a user settled.
async fn settle(context: &Context, job: &Job, task: &Task) -> Result<(), Error> {
    if let (true, Some(resolution)) = (task.is_node_lost(), &task.spec.resolution) {
        let phase = match resolution.as_ {
            ResolvedAs::Succeeded => TaskPhase::Succeeded,
            ResolvedAs::Failed => TaskPhase::Failed,
        };
        if !tasks::is_unclaimed(task) {
            let message = format!(
                "settled by {}: {}",
                or(&resolution.by, "a user"),
                resolution.reason
            );
            return tasks::end(context, task, phase, reason::RESOLVED, &message).await;
        }
    }
    let Some(stop) = task.spec.stop.as_ref().filter(|_| tasks::is_unclaimed(task)) else {
        if tasks::is_deleting(task) && tasks::is_unclaimed(task) {
            let message = "the Task was deleted before it started";
            return tasks::end(context, task, TaskPhase::Cancelled, reason::CANCELLED, message).await;
        }
        return Ok(());
    };
    let phase = phase_of_record(job, &stop.reason);
    tasks::end(context, task, phase, &stop.reason, &stop.message).await
}

fn is_record(reason: &str) -> bool {
    [
        reason::NODE_UNAVAILABLE,
        reason::NODE_GONE,
        reason::NOT_STARTED,
        reason::TASK_GONE,
    ]
    .contains(&reason)
}

/// How a Task ends that was stopped before any agent took it.
fn phase_of_record(job: &Job, reason: &str) -> TaskPhase {
    match reason {
        reason::NODE_UNAVAILABLE if job.spec.on_unavailable == OnUnavailable::Fail => TaskPhase::Failed,
        reason::NODE_UNAVAILABLE | reason::NODE_GONE => TaskPhase::Skipped,
        reason::NOT_STARTED | reason::TASK_GONE | reason::DEADLINE => TaskPhase::Failed,
        // it never started, so another node may have it
        reason::EVICTED | reason::PREEMPTED => TaskPhase::Rejected,
        _ => TaskPhase::Cancelled,
    }
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}
