//! What must hold after a round.

use crate::{AGENTS, jobs::LINES};
use anyhow::{Context, Result, bail, ensure};
use api::{
    Job, Task,
    task::{StepPhase, StepStatus, TaskPhase},
};
use kube::{Api, Client, api::ListParams};
use std::{collections::BTreeMap, fmt, fs, path::Path};
use testkit::{System, wait};

/// What happened, in numbers.
#[derive(Default)]
pub struct Tally {
    tasks: usize,
    succeeded: usize,
    lost: usize,
    unknown: usize,
    rejected: usize,
    log_bytes: usize,
}

impl Tally {
    /// Adds another round's.
    pub fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.succeeded += other.succeeded;
        self.lost += other.lost;
        self.unknown += other.unknown;
        self.rejected += other.rejected;
        self.log_bytes += other.log_bytes;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tasks, {} succeeded, {} RunnerLost, {} unknown, {} rejected, {} log bytes compared",
            self.tasks, self.succeeded, self.lost, self.unknown, self.rejected, self.log_bytes
        )
    }
}

/// Judges a round once all its Jobs have ended.
pub async fn of(system: &System, namespace: &str, accepted: &[Job], ids: &Path) -> Result<Tally> {
    let client = system.client().await?;
    let mut tally = Tally::default();
    for job in accepted {
        let name = job.name();
        let ended = wait::finished(&client, namespace, name).await?;
        ensure!(
            ended.uid() == job.uid(),
            "Job {name} was accepted and is another one now"
        );
        counts_add_up(&ended)?;
        let tasks = tasks(&client, namespace, name).await?;
        let indexes = ended.spec.completions.unwrap_or(1);
        for index in 0..indexes {
            let attempts: Vec<&Task> = tasks.iter().filter(|task| task.spec.index == index).collect();
            let last = attempts
                .last()
                .with_context(|| format!("index {index} of {name} has no Task"))?;
            every_step_ran_once(&ended, index, last, &occurrences(ids)?)?;
        }
        for task in &tasks {
            tally.tasks += 1;
            let status = task.status.as_ref().context("a Task without status")?;
            match status.phase {
                TaskPhase::Succeeded => tally.succeeded += 1,
                TaskPhase::Unknown => tally.unknown += 1,
                TaskPhase::Rejected => tally.rejected += 1,
                TaskPhase::Failed if status.reason == "RunnerLost" => tally.lost += 1,
                phase => bail!(
                    "Task {} ended {phase:?} {}: {}",
                    name_of(task),
                    status.reason,
                    status.message
                ),
            }
            for step in &status.steps {
                tally.log_bytes += log_is_complete(system, &client, namespace, task, step).await?;
            }
        }
    }
    Ok(tally)
}

fn name_of(task: &Task) -> &str {
    task.metadata.name.as_deref().unwrap_or_default()
}

fn counts_add_up(job: &Job) -> Result<()> {
    let status = job.status.clone().unwrap_or_default();
    let sum = status.pending
        + status.active
        + status.succeeded
        + status.failed
        + status.unknown
        + status.cancelled
        + status.skipped;
    ensure!(
        status.desired == job.spec.completions.unwrap_or(1) && sum == status.desired,
        "counts of {}: {status:#?}",
        job.name()
    );
    ensure!(
        status.pending == 0 && status.active == 0,
        "{} has ended and something still runs: {status:#?}",
        job.name()
    );
    Ok(())
}

/// How often each id is in the file.
fn occurrences(ids: &Path) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    let text = match fs::read(ids) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(), // no step has begun
        other => other.with_context(|| ids.display().to_string())?,
    };
    for line in String::from_utf8_lossy(&text).lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

fn every_step_ran_once(job: &Job, index: i32, last: &Task, written: &BTreeMap<String, usize>) -> Result<()> {
    let status = last.status.as_ref().context("a Task without status")?;
    let may_be_missing = status.phase == TaskPhase::Unknown || status.reason == "RunnerLost";
    for step in &job.spec.steps {
        let id = format!("{}/{index}/{}", job.name(), step.name);
        match written.get(&id).copied().unwrap_or(0) {
            1 => {}
            0 if may_be_missing => {}
            0 => bail!(
                "{id} did not run, and its Task {} says {:?} {}: {status:#?}",
                name_of(last),
                status.phase,
                status.reason
            ),
            times => bail!(
                "{id} ran {times} times; its last Task is {} {:?} {}",
                name_of(last),
                status.phase,
                status.reason
            ),
        }
    }
    Ok(())
}

/// The server's log is the agent's, to the last line the agent's disk holds; of a step that succeeded, it is all the step printed.
async fn log_is_complete(
    system: &System,
    client: &Client,
    namespace: &str,
    task: &Task,
    step: &StepStatus,
) -> Result<usize> {
    let name = name_of(task);
    let there = testkit::log(client, namespace, name, &step.name).await?;
    let uid = task.metadata.uid.as_deref().unwrap_or_default();
    if let Some(here) = local_log(system, uid, &step.name) {
        let whole = here
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        ensure!(
            there.len() >= whole && here.starts_with(&there[..whole]),
            "the server has {} bytes of the log of {name}/{}, the agent {whole}; {:#?}",
            there.len(),
            step.name,
            task.status
        );
    }
    if step.phase == StepPhase::Succeeded {
        let text = String::from_utf8_lossy(&there);
        let lines: Vec<&str> = text
            .lines()
            .filter_map(|line| line.splitn(4, ' ').nth(3))
            .collect();
        let mut wanted: Vec<String> = (1..=LINES).map(|n| format!("line {n}")).collect();
        wanted.push("last".into());
        ensure!(lines == wanted, "the log of {name}/{} is {lines:?}", step.name);
        ensure!(
            step.log_bytes == Some(i64::try_from(there.len())?),
            "logBytes of {name}/{} is {:?}",
            step.name,
            step.log_bytes
        );
    }
    Ok(there.len())
}

fn local_log(system: &System, uid: &str, step: &str) -> Option<Vec<u8>> {
    (1..=AGENTS).find_map(|number| {
        let steps = system.agent_folder(number).join("tasks").join(uid).join("steps");
        let folder = fs::read_dir(steps).ok()?.flatten().find(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .split_once('-')
                .is_some_and(|(_, name)| name == step)
        })?;
        fs::read(folder.path().join("log.cri")).ok()
    })
}

/// The Tasks of a Job by index and attempt.
async fn tasks(client: &Client, namespace: &str, job: &str) -> Result<Vec<Task>> {
    let api: Api<Task> = Api::namespaced(client.clone(), namespace);
    let mut tasks = api
        .list(&ListParams::default().fields(&format!("spec.jobRef.name={job}")))
        .await?
        .items;
    tasks.sort_by_key(|task| (task.spec.index, task.spec.attempt));
    Ok(tasks)
}
