//! What a dead runner's steps have left behind: found by their cgroup and by `PROW_TASK_UID` in the environment they were started with.

use super::{cgroup, proc};
use crate::platform::Process;
use rustix::process::{Pid, Signal, kill_process};
use std::{collections::BTreeMap, time::Duration};

/// The living processes of a task whose runner is gone. `containment` is what the runner's journal recorded.
pub fn survivors(uid: &str, containment: Option<&str>) -> Vec<Process> {
    let variable = format!("PROW_TASK_UID={uid}");
    let me = std::process::id();
    let mut found: BTreeMap<u32, Process> = proc::all()
        .into_values()
        .filter(|s| !s.is_zombie() && s.pid != me && proc::has_variable(s.pid, &variable))
        .map(|s| {
            (
                s.pid,
                Process {
                    pid: s.pid,
                    name: s.name,
                },
            )
        })
        .collect();
    for pid in containment.map(cgroup::members).unwrap_or_default() {
        if let Some(stat) = proc::stat(pid).filter(|s| !s.is_zombie()) {
            found.entry(pid).or_insert(Process { pid, name: stat.name });
        }
    }
    found.into_values().collect()
}

/// Whether nothing of a task lives any more. Only then may RunnerLost be reported.
pub fn tree_gone(uid: &str, containment: Option<&str>) -> bool {
    survivors(uid, containment).is_empty()
}

/// Ends what is left of a task whose runner is gone, and waits up to `limit` until it is. Returns what still lives then, which is
/// empty but for processes the kernel cannot end.
pub async fn end_survivors(uid: &str, containment: Option<&str>, limit: Duration) -> Vec<Process> {
    let end = tokio::time::Instant::now() + limit;
    loop {
        if let Some(group) = containment {
            cgroup::kill(group);
        }
        let left = survivors(uid, containment);
        for process in &left {
            kill(process.pid, Signal::KILL);
        }
        if left.is_empty() || tokio::time::Instant::now() >= end {
            if let Some(group) = containment.filter(|_| left.is_empty()) {
                cgroup::remove(group);
            }
            return left;
        }
        // these are no children of ours: nobody tells us of their end
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a signal; a process already gone is fine.
pub(super) fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
