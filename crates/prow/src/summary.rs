//! How far a Job is, in one line, and how it ended, in a table.

use crate::{
    output::Table,
    terminal::{self, Tone, paint},
};
use anyhow::Result;
use api::{
    Job, Task, exit_code,
    task::{StepPhase, StepStatus, TaskPhase},
};
use std::{collections::BTreeMap, time::Duration};

/// A Job and its Tasks as last seen.
pub struct Progress {
    /// The Job.
    pub job: Job,
    /// Its Tasks by name.
    pub tasks: BTreeMap<String, Task>,
}

impl Progress {
    /// Nothing seen yet but the Job.
    pub fn new(job: Job) -> Self {
        Self {
            job,
            tasks: BTreeMap::new(),
        }
    }

    /// The live line: counts, and what runs where.
    pub fn line(&self) -> String {
        let status = self.job.status.clone().unwrap_or_default();
        let ended = status.desired - status.pending - status.active;
        let mut text = format!("{:?} {ended}/{}", status.phase, status.desired);
        for (count, word) in [
            (status.failed, "failed"),
            (status.unknown, "unknown"),
            (status.pending, "waiting"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {word}"));
            }
        }
        let running: Vec<&str> = self
            .tasks
            .values()
            .filter(|task| {
                task.status
                    .as_ref()
                    .is_some_and(|s| matches!(s.phase, TaskPhase::Claimed | TaskPhase::Running))
            })
            .map(|task| task.spec.node_name.as_str())
            .collect();
        match running.as_slice() {
            [] => {}
            nodes if nodes.len() <= 3 => text.push_str(&format!(" · on {}", nodes.join(", "))),
            nodes => text.push_str(&format!(
                " · on {}, {} and {} more",
                nodes[0],
                nodes[1],
                nodes.len() - 2
            )),
        }
        text
    }
}

/// Prints the last attempt of each index, and how the Job ended.
pub fn print(progress: &Progress) -> Result<()> {
    let mut last: BTreeMap<(i32, &str), &Task> = BTreeMap::new();
    for task in progress.tasks.values() {
        let per_node = if progress.job.spec.is_per_node() {
            task.spec.node_name.as_str()
        } else {
            ""
        };
        let index = if progress.job.spec.is_per_node() {
            0
        } else {
            task.spec.index
        };
        let slot = last.entry((index, per_node)).or_insert(task);
        if slot.spec.attempt <= task.spec.attempt {
            *slot = task;
        }
    }
    let mut table = Table::new(["NODE", "PHASE", "EXIT", "TIME", "MESSAGE"]);
    for task in last.values() {
        let status = task.status.clone().unwrap_or_default();
        let step = status.steps.iter().rev().find(|step| step.exit_code.is_some());
        table.row([
            task.spec.node_name.clone(),
            format!("{:?}", status.phase),
            step.map(exit).unwrap_or_default(),
            took(task).map(api::duration::format).unwrap_or_default(),
            if status.phase == TaskPhase::Succeeded {
                String::new()
            } else {
                first_line(&status)
            },
        ]);
    }
    if !table.is_empty() {
        table.print(true)?;
    }
    let phase = format!("{:?}", progress.job.phase());
    let status = progress.job.status.clone().unwrap_or_default();
    let message = if status.message.is_empty() {
        String::new()
    } else {
        format!(": {}", status.message)
    };
    terminal::line(format!(
        "job {} {}{message}",
        progress.job.name(),
        paint(Tone::of(&phase), &phase)
    ))?;
    Ok(())
}

fn first_line(status: &api::TaskStatus) -> String {
    let line = status.message.lines().next().unwrap_or_default();
    if line.is_empty() {
        status.reason.clone()
    } else {
        format!("{}: {line}", status.reason)
    }
}

/// A step's exit code as people read it.
pub fn exit(step: &StepStatus) -> String {
    let Some(code) = step.exit_code.and_then(|code| u32::try_from(code).ok()) else {
        return String::new();
    };
    let text = exit_code::describe(code);
    if step.exit_name.is_empty() || text.contains(&step.exit_name) {
        text
    } else {
        format!("{text} ({})", step.exit_name)
    }
}

/// How long a Task ran, to the second above a second.
pub fn took(task: &Task) -> Option<Duration> {
    let status = task.status.as_ref()?;
    let span = status
        .finished_at
        .as_ref()?
        .0
        .duration_since(status.started_at.as_ref()?.0);
    Duration::try_from(span).ok()
}

/// The step a failed Task failed at.
pub fn failed_step(task: &Task) -> Option<&StepStatus> {
    task.status
        .as_ref()?
        .steps
        .iter()
        .find(|step| step.phase == StepPhase::Failed)
}
