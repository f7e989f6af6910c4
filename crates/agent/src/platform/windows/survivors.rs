//! What a dead runner's steps have left behind: found by the name of the task's job, which the runner's journal recorded.
//!
//! The job ends its processes when the runner's handle of it is closed, which its death does too, so this is about those that take their
//! time.

use super::process::{ENDED, living};
use crate::platform::Process;
use std::time::Duration;
use win32::job::Job;

/// What is told of a process.
pub(super) fn process(process: &win32::process::Process) -> Process {
    let image = process.image().unwrap_or_default();
    let image = image.to_string_lossy();
    Process {
        pid: process.pid(),
        name: image.rsplit('\\').next().unwrap_or_default().to_owned(),
    }
}

/// The living processes of a job. What is listed and has no thread any more has ended: some systems list it for good.
pub(super) fn members(job: &Job) -> Vec<win32::process::Process> {
    let pids = job.pids().unwrap_or_else(|error| {
        tracing::warn!(%error, "the processes of a job cannot be listed");
        Vec::new()
    });
    pids.into_iter().filter_map(living).collect()
}

fn open(containment: Option<&str>) -> Option<Job> {
    let name = containment?;
    Job::open(name).unwrap_or_else(|error| {
        tracing::warn!(%error, name, "the job of a task cannot be opened");
        None
    })
}

/// The living processes of a task whose runner is gone. `containment` is what the runner's journal recorded.
pub fn survivors(_uid: &str, containment: Option<&str>) -> Vec<Process> {
    let job = open(containment);
    job.iter().flat_map(members).map(|p| process(&p)).collect()
}

/// Whether nothing of a task lives any more. Only then may RunnerLost be reported.
pub fn tree_gone(uid: &str, containment: Option<&str>) -> bool {
    survivors(uid, containment).is_empty()
}

/// Ends what is left of a task whose runner is gone, and waits up to `limit` until it is. Returns what still lives then, which is
/// empty but for processes the system cannot end.
pub async fn end_survivors(uid: &str, containment: Option<&str>, limit: Duration) -> Vec<Process> {
    let end = tokio::time::Instant::now() + limit;
    loop {
        if let Some(job) = open(containment)
            && let Err(error) = job.terminate(ENDED)
        {
            tracing::warn!(%error, "the job of a task cannot be ended");
        }
        let left = survivors(uid, containment);
        if left.is_empty() || tokio::time::Instant::now() >= end {
            return left;
        }
        // these are no children of ours: nobody tells us of their end
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
