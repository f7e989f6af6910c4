//! What a dead runner's steps have left behind: found by the name of the task's job, which the runner's journal recorded.
//!
//! The job ends its processes when the runner's handle of it is closed, which its death does too, so this is about those that take their
//! time.

use super::process::ENDED;
use crate::platform::Process;
use std::{path::Path, sync::LazyLock, time::Duration};
use win32::job::Job;

/// What hosts a console: it comes and goes with the programs in it, and is none of theirs.
static CONSOLE_HOST: LazyLock<Option<String>> = LazyLock::new(|| {
    let folder = win32::system::system_folder().ok()?;
    Some(folder.join("conhost.exe").to_string_lossy().into_owned())
});

/// The living processes of a job, but for consoles. What is listed and has no thread any more has ended: some systems list it for good.
pub(super) fn members(job: &Job) -> win32::Result<Vec<Process>> {
    Ok(job.pids()?.into_iter().filter_map(member).collect())
}

fn member(pid: u32) -> Option<Process> {
    let image = match win32::process::Process::open(pid) {
        Ok(Some(process)) if !process.has_ended() => process.image().unwrap_or_default(),
        Ok(_) => return None,
        Err(_) => Default::default(), // it lives, and lets nobody look
    };
    let image = image.to_string_lossy();
    if CONSOLE_HOST
        .as_ref()
        .is_some_and(|host| image.eq_ignore_ascii_case(host))
    {
        return None;
    }
    let name = Path::new(&*image).file_name().unwrap_or_default();
    Some(Process {
        pid,
        name: name.to_string_lossy().into_owned(),
    })
}

/// The processes of the job of that name; none where there is no such job, which is gone with the last handle and process.
fn left(containment: Option<&str>) -> win32::Result<Vec<Process>> {
    match containment.map(Job::open).transpose()?.flatten() {
        Some(job) => members(&job),
        None => Ok(Vec::new()),
    }
}

fn end(containment: Option<&str>) -> win32::Result<()> {
    match containment.map(Job::open).transpose()?.flatten() {
        Some(job) => job.terminate(ENDED),
        None => Ok(()),
    }
}

/// The living processes of a task whose runner is gone. `containment` is what the runner's journal recorded. A job that cannot be looked
/// into is taken for one that lives: its error stands for the name, with pid 0.
pub fn survivors(_uid: &str, containment: Option<&str>) -> Vec<Process> {
    left(containment).unwrap_or_else(|error| {
        let name = error.to_string();
        vec![Process { pid: 0, name }]
    })
}

/// Whether nothing of a task lives any more. Only then may RunnerLost be reported.
pub fn tree_gone(uid: &str, containment: Option<&str>) -> bool {
    survivors(uid, containment).is_empty()
}

/// Ends what is left of a task whose runner is gone, and waits up to `limit` until it is. Returns what still lives then, which is
/// empty but for processes the system cannot end.
pub async fn end_survivors(uid: &str, containment: Option<&str>, limit: Duration) -> Vec<Process> {
    let over = tokio::time::Instant::now() + limit;
    loop {
        if let Err(error) = end(containment) {
            tracing::warn!(%error, containment, "the job of a task cannot be ended");
        }
        let left = survivors(uid, containment);
        if left.is_empty() || tokio::time::Instant::now() >= over {
            return left;
        }
        // these are no children of ours: nobody tells us of their end
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
