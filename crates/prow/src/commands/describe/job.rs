//! A Job: how far it is, how its Tasks went, where a failed one failed, and what to do next.

use super::{
    object::field,
    task::{failure, steps},
};
use crate::{
    follow,
    output::Table,
    session::Session,
    summary,
    terminal::{self, Tone, paint},
};
use anyhow::Result;
use api::{Job, Task, job::JobPhase, task::TaskPhase};

/// Failed Tasks shown in full; the others are counted.
const SHOWN_FAILURES: usize = 3;
/// Tasks listed; the others are counted.
const SHOWN_TASKS: usize = 20;

/// Prints everything after the head.
pub async fn body(session: &Session, job: Job) -> Result<()> {
    let status = job.status.clone().unwrap_or_default();
    let phase = format!("{:?}", status.phase);
    field("Phase", &paint(Tone::of(&phase), &phase))?;
    if !status.message.is_empty() {
        field("Message", &status.message)?;
    }
    if let Some(by) = &job.spec.requested_by {
        field("Requested by", &format!("{} via {}", by.user, by.via))?;
    }
    field("Runs", &runs(&job))?;
    field("Queue", &job.spec.queue_name)?;
    let counts = [
        (status.pending, "pending"),
        (status.active, "active"),
        (status.succeeded, "succeeded"),
        (status.failed, "failed"),
        (status.unknown, "unknown"),
        (status.cancelled, "cancelled"),
        (status.skipped, "skipped"),
        (status.retries, "retries"),
        (status.warnings, "warnings"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    field(
        "Counts",
        &format!("{} desired: {}", status.desired, counts.join(", ")),
    )?;
    if let Some(start) = &status.start_time {
        let end = status.completion_time.as_ref();
        let took = end
            .and_then(|end| end.0.duration_since(start.0).try_into().ok())
            .map(api::duration::format);
        field(
            "Started",
            &format!(
                "{}{}",
                start.0,
                took.map(|t| format!(", took {t}")).unwrap_or_default()
            ),
        )?;
    }
    for waiting in &status.waiting {
        field(
            "Waiting",
            &format!(
                "{} {}: {}",
                waiting.count,
                paint(Tone::Wait, &waiting.reason),
                waiting.message
            ),
        )?;
    }
    for (name, value) in &status.outputs {
        field("Output", &format!("{name}={value}"))?;
    }
    for condition in &status.conditions {
        let reason = if condition.reason.is_empty() {
            String::new()
        } else {
            format!(" ({})", condition.reason)
        };
        // the Job's own message stands above
        let message = match condition.message != status.message && !condition.message.is_empty() {
            true => format!(" {}", condition.message),
            false => String::new(),
        };
        field(
            "Condition",
            &format!("{}={}{reason}{message}", condition.type_, condition.status),
        )?;
    }
    let namespace = job.namespace().to_owned();
    let (tasks, _) = follow::tasks(session, &namespace, job.name(), job.uid()).await?;
    list(&tasks)?;
    let failed: Vec<&Task> = tasks.iter().filter(|task| is_failure(task)).collect();
    for task in failed.iter().rev().take(SHOWN_FAILURES) {
        terminal::line("")?;
        failure(session, task).await?;
    }
    if failed.len() > SHOWN_FAILURES {
        terminal::line(format!(
            "\n… and {} more failed Tasks: `prow logs {} --failed`",
            failed.len() - SHOWN_FAILURES,
            job.name()
        ))?;
    }
    if let [only] = tasks.as_slice()
        && !is_failure(only)
    {
        steps(only)?;
    }
    for hint in next(&job, &tasks) {
        terminal::line(format!("{} {hint}", paint(Tone::Strong, "Next:")))?;
    }
    terminal::line("")?;
    Ok(())
}

fn runs(job: &Job) -> String {
    let at_once = job
        .spec
        .parallelism
        .as_ref()
        .map_or("1".into(), ToString::to_string);
    let place = job
        .spec
        .target_ref
        .as_ref()
        .map(|target| format!(" of Target {}", target.name))
        .unwrap_or_default();
    if job.spec.is_per_node() {
        format!("once on every chosen node{place}, {at_once} at a time")
    } else {
        format!(
            "{} times on any node{place}, {at_once} at a time",
            job.spec.completions.unwrap_or(1)
        )
    }
}

fn is_failure(task: &Task) -> bool {
    task.status
        .as_ref()
        .is_some_and(|s| matches!(s.phase, TaskPhase::Failed | TaskPhase::Unknown))
}

fn list(tasks: &[Task]) -> Result<()> {
    if tasks.is_empty() {
        field("Tasks", "<none>")?;
        return Ok(());
    }
    terminal::line("Tasks:")?;
    let mut table = Table::new(["  NAME", "NODE", "ATTEMPT", "PHASE", "REASON", "TIME"]);
    let hidden = tasks.len().saturating_sub(SHOWN_TASKS);
    for task in &tasks[hidden..] {
        let status = task.status.clone().unwrap_or_default();
        table.row([
            format!("  {}", task.metadata.name.as_deref().unwrap_or_default()),
            task.spec.node_name.clone(),
            (task.spec.attempt + 1).to_string(),
            format!("{:?}", status.phase),
            status.reason,
            summary::took(task).map(api::duration::format).unwrap_or_default(),
        ]);
    }
    table.print(true)?;
    if hidden > 0 {
        terminal::line(format!("  … and {hidden} before these"))?;
    }
    Ok(())
}

/// What an operator would do now.
fn next(job: &Job, tasks: &[Task]) -> Vec<String> {
    let name = job.name();
    let mut hints = Vec::new();
    match job.phase() {
        JobPhase::Pending => hints.push(format!("`prow why {name}` says node by node what it waits for.")),
        JobPhase::Running => hints.push(format!("`prow logs -f {name}` follows what it prints.")),
        JobPhase::Suspended => hints.push("set spec.suspend to false to go on.".into()),
        JobPhase::Failed | JobPhase::Unknown => {
            if tasks.iter().any(is_failure) {
                hints.push(format!(
                    "`prow logs {name} --failed` shows all that the failed steps printed."
                ));
            }
            let unknown = tasks.iter().find(|task| {
                task.spec.resolution.is_none()
                    && task
                        .status
                        .as_ref()
                        .is_some_and(|s| s.phase == TaskPhase::Unknown)
            });
            if let Some(task) = unknown {
                let task = task.metadata.name.as_deref().unwrap_or_default();
                hints.push(format!(
                    "look at the host, then `prow resolve {task} --as Succeeded|Failed --reason WHAT-YOU-FOUND`."
                ));
            }
            hints.push("a Job's steps cannot be changed: correct the manifest, then apply it under another name, or delete this Job first.".into());
        }
        JobPhase::Paused | JobPhase::Succeeded | JobPhase::Cancelled => {}
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unknown_task_comes_with_the_way_to_settle_it() {
        let job: Job = serde_json::from_value(
            json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": "patch"},
            "spec": {}, "status": {"phase": "Unknown"}}),
        )
        .unwrap();
        let task: Task = serde_json::from_value(json!({"apiVersion": "prow.windows/v1", "kind": "Task", "metadata": {"name": "patch-ab-0-0"},
            "spec": {"jobRef": {"name": "patch", "uid": "u", "workHash": "h"}, "nodeName": "n"}, "status": {"phase": "Unknown"}}))
        .unwrap();
        let hints = next(&job, &[task]).join("\n");
        assert!(
            hints.contains("prow resolve patch-ab-0-0 --as Succeeded|Failed"),
            "{hints}"
        );
        assert!(hints.contains("prow logs patch --failed"), "{hints}");
    }
}
