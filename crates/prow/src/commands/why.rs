//! `prow why`: say why a Job waits.

use crate::{
    cli::Global,
    events,
    fleet::{Fleet, Standing, list},
    follow,
    outcome::{Error, Outcome},
    output::Table,
    session::Session,
    terminal::{self, Tone, paint},
};
use anyhow::Result;
use api::{
    Job, Task,
    job::JobPhase,
    task::{Drain, TaskPhase},
};
use clap::Args;
use std::{cmp::Reverse, collections::BTreeMap};

/// Say why a Job waits.
#[derive(Args, Debug)]
pub struct Why {
    /// The Job
    #[arg(value_name = "JOB")]
    job: String,
    /// Show every node, not only those the Job chooses
    #[arg(long)]
    all_nodes: bool,
}

impl Why {
    /// Says it: the scheduler's reasons, node by node, and what happened.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let name = self.job.rsplit('/').next().unwrap_or(&self.job);
        let object = job(&session, name).await?;
        let job: Job = serde_json::from_value(object.clone())?;
        let status = job.status.clone().unwrap_or_default();
        let phase = format!("{:?}", status.phase);
        terminal::line(format!(
            "{} is {}: {} of {} ended, {} running, {} waiting",
            job.name(),
            paint(Tone::of(&phase), &phase),
            status.desired - status.pending - status.active,
            status.desired,
            status.active,
            status.pending
        ))?;
        if !status.message.is_empty() {
            terminal::line(&status.message)?;
        }
        if status.phase.is_terminal() {
            terminal::line(format!(
                "It waits for nothing; `prow describe job {name}` says how it ended."
            ))?;
            return Ok(Outcome::Done);
        }
        if job.spec.suspend {
            terminal::line("It is suspended: nothing new starts until spec.suspend is false.")?;
        }
        for waiting in &status.waiting {
            terminal::line(format!(
                "{} waiting: {} ({})",
                waiting.count,
                paint(Tone::Wait, &waiting.reason),
                waiting.message
            ))?;
        }
        if status.waiting.is_empty() && status.phase == JobPhase::Pending {
            terminal::line("The scheduler has not looked at it yet.")?;
        }
        if status.pending > 0 {
            let jobs = list::<Job>(&session, "/apis/prow.windows/v1/jobs").await?;
            terminal::line(place(&job, &jobs))?;
        }
        let fleet = Fleet::load(&session, &session.namespace).await?;
        let (tasks, _) = follow::tasks(&session, &session.namespace, job.name(), job.uid()).await?;
        for task in &tasks {
            if let Some(held) = held_up(task) {
                terminal::line(format!("Task {} on {}: {held}", task.name(), task.spec.node_name))?;
            }
        }
        let last: BTreeMap<&str, String> = tasks
            .iter()
            .map(|task| {
                let status = task.status.clone().unwrap_or_default();
                (
                    task.spec.node_name.as_str(),
                    format!(
                        "attempt {} {:?} {}",
                        task.spec.attempt + 1,
                        status.phase,
                        status.reason
                    ),
                )
            })
            .collect();
        let mut table = Table::new(["NODE", "STANDING", "WHY", "LAST TASK"]);
        for (node, standing) in fleet.judge(&job.spec) {
            if self.all_nodes || !matches!(standing, Standing::NotChosen(_)) {
                let (word, why) = standing.describe();
                let task = last.get(node.name()).cloned().unwrap_or_default();
                table.row([node.name().to_owned(), word.to_owned(), why.to_owned(), task]);
            }
        }
        if table.is_empty() {
            terminal::line("No node is chosen: --all-nodes says why.")?;
        } else {
            table.print(true)?;
        }
        for stranger in fleet.strangers(&job.spec) {
            terminal::line(format!("{stranger} is no node"))?;
        }
        events::print(&events::about(&session, &object).await?)?;
        Ok(Outcome::Done)
    }
}

/// What a Task waits for that takes its node out of service; events name the Tasks in its way.
fn held_up(task: &Task) -> Option<String> {
    let status = task.status.clone().unwrap_or_default();
    match status.phase {
        TaskPhase::Bound if task.spec.drain == Some(Drain::Wanted) => {
            Some("waiting until nothing else runs there (spec.drain)".to_owned())
        }
        TaskPhase::Rebooting if status.message.is_empty() => {
            Some("waiting for a restart of the host".to_owned())
        }
        TaskPhase::Rebooting => Some(status.message),
        _ => None,
    }
}

/// Where a Job stands in its queue: how much goes before it.
fn place(job: &Job, jobs: &[Job]) -> String {
    let order = |job: &Job| {
        let created = job.metadata.creation_timestamp.as_ref().map(|t| t.0);
        (Reverse(job.spec.rank()), created, job.uid().to_owned())
    };
    let before: Vec<i32> = jobs
        .iter()
        .filter(|other| other.spec.queue_name == job.spec.queue_name && order(other) < order(job))
        .filter(|other| !other.phase().is_terminal() && !other.spec.suspend)
        .filter_map(|other| other.status.as_ref().map(|s| s.pending))
        .filter(|pending| *pending > 0)
        .collect();
    let queue = &job.spec.queue_name;
    match before.len() {
        0 => format!("It is the first in Queue {queue}."),
        jobs => format!(
            "Before it in Queue {queue}: {} runs of {jobs} {}.",
            before.iter().sum::<i32>(),
            if jobs == 1 { "Job" } else { "Jobs" }
        ),
    }
}

/// A Job by name.
pub async fn job(session: &Session, name: &str) -> Result<serde_json::Value> {
    follow::find(session, "jobs", name).await?.ok_or_else(|| {
        let message = format!(
            "jobs.prow.windows \"{name}\" not found in namespace {}",
            session.namespace
        );
        Error::Refused(Box::new(
            kube::core::Status::failure(&message, "NotFound").with_code(404),
        ))
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{TaskSpec, TaskStatus};
    use serde_json::json;

    #[test]
    fn a_task_says_what_holds_it_up() {
        let mut task = Task::new("t", TaskSpec::default());
        assert_eq!(held_up(&task), None);
        task.spec.drain = Some(Drain::Wanted);
        assert!(held_up(&task).unwrap().contains("nothing else runs"));
        task.spec.drain = Some(Drain::Done);
        assert_eq!(held_up(&task), None);
        task.status = Some(TaskStatus {
            phase: TaskPhase::Rebooting,
            message: "waiting for the permission".into(),
            ..TaskStatus::default()
        });
        assert_eq!(held_up(&task).unwrap(), "waiting for the permission");
    }

    #[test]
    fn its_place_counts_what_waits_before_it_in_its_queue() {
        let job = |name: &str, queue: &str, priority: i32, pending: i32| -> Job {
            serde_json::from_value(json!({
                "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"queueName": queue, "priority": priority, "steps": []},
                "status": {"phase": "Pending", "pending": pending},
            }))
            .unwrap()
        };
        let jobs = [
            job("a", "default", 0, 2),
            job("b", "default", 0, 1),
            job("c", "default", 5, 3),
            job("d", "other", 9, 4),
            job("e", "default", 9, 0),
        ];
        assert_eq!(place(&jobs[2], &jobs), "It is the first in Queue default.");
        assert_eq!(
            place(&jobs[0], &jobs),
            "Before it in Queue default: 3 runs of 1 Job."
        );
        assert_eq!(
            place(&jobs[1], &jobs),
            "Before it in Queue default: 5 runs of 2 Jobs."
        );
    }
}
