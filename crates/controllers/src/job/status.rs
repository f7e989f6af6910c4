//! A Job's status, whole, from one snapshot of its Tasks.

use crate::{
    context::Context,
    error::Error,
    events::Type,
    patch::{self, difference},
};
use api::{
    Job, JobStatus, Task,
    job::{JobPhase, NodeSet},
    task::TaskPhase,
    wanted::{Gate, Over, Wanted},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Api;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The status a Job should have.
pub(super) fn of(job: &Job, wanted: &Wanted, tasks: &[Arc<Task>], now: Timestamp) -> JobStatus {
    let outlook = &wanted.outlook;
    let mut new = job.status.clone().unwrap_or_default();
    outlook.counts.write(&mut new);
    new.phase = outlook.phase;
    new.start_time = outlook.started.map(Time).or(new.start_time);
    new.observed_generation = job.metadata.generation;
    new.message = message(job, outlook, tasks);
    if new.phase.is_terminal() {
        new.completion_time
            .get_or_insert_with(|| Time(last_end(tasks).unwrap_or(now)));
        new.waiting.clear();
        if new.desired == 1 && new.phase == JobPhase::Succeeded {
            let mut ended = tasks.iter().filter_map(|t| t.status.as_ref());
            let last = ended.find(|s| s.phase == TaskPhase::Succeeded);
            new.outputs = last.map(|s| s.outputs.clone()).unwrap_or_default();
        }
    }
    if job.spec.is_per_node() && job.spec.node_set == NodeSet::Live {
        new.snapshot = None;
    }
    conditions(&mut new, now);
    new
}

/// The status of a Job that fails for a reason of its own.
pub(super) fn failed(job: &Job, reason: &str, why: &str, now: Timestamp) -> JobStatus {
    let mut new = job.status.clone().unwrap_or_default();
    new.phase = JobPhase::Failed;
    new.message = format!("{reason}: {why}");
    new.completion_time = Some(Time(now));
    new.cancelled += std::mem::take(&mut new.pending);
    new.waiting.clear();
    conditions(&mut new, now);
    new
}

/// What is to be written, if anything. What waits is the scheduler's to write; only an end clears it.
pub(super) fn patch(job: &Job, new: &JobStatus) -> Option<Map<String, Value>> {
    let old = job.status.clone().unwrap_or_default();
    let mut patch = difference(&old, new)?;
    if job.status.is_none() {
        // a Job without status has none of the fields that look unchanged
        patch = difference(&Map::new(), new)?;
    }
    if !new.phase.is_terminal() {
        patch.remove("waiting");
    }
    (!patch.is_empty()).then_some(patch)
}

pub(super) async fn write(context: &Context, job: &Job, patch: Map<String, Value>) -> Result<(), Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), job.namespace());
    patch::status(&api, job, &patch).await.map(drop)
}

/// One Event for an end, one for a start that lasts.
pub(super) fn tell(context: &Context, job: &Job, new: &JobStatus) {
    if job.phase() == new.phase {
        return;
    }
    let counts = format!("{} of {} succeeded", new.succeeded, new.desired);
    let with_message = match new.message.is_empty() {
        true => counts.clone(),
        false => format!("{counts}; {}", new.message),
    };
    let (type_, reason, message) = match new.phase {
        JobPhase::Running => (
            Type::Normal,
            "Started",
            match new.desired {
                1 => "1 index".to_owned(),
                n => format!("{n} indexes"),
            },
        ),
        JobPhase::Suspended => (Type::Normal, "Suspended", counts),
        JobPhase::Succeeded => (Type::Normal, "Completed", counts),
        JobPhase::Cancelled => (Type::Normal, "Cancelled", with_message),
        JobPhase::Failed => (Type::Warning, "Failed", with_message),
        JobPhase::Unknown => (Type::Warning, "Unknown", with_message),
        JobPhase::Pending | JobPhase::Paused => return,
    };
    context.events.tell(job, type_, reason, message);
}

fn last_end(tasks: &[Arc<Task>]) -> Option<Timestamp> {
    let ends = tasks
        .iter()
        .filter_map(|t| t.status.as_ref()?.finished_at.as_ref());
    ends.map(|t| t.0).max()
}

/// Why it ended so: the Job's own reason, and the first of its Tasks that went wrong.
fn message(job: &Job, outlook: &api::wanted::Outlook, tasks: &[Arc<Task>]) -> String {
    let mut parts = Vec::new();
    let own = match &job.spec.cancel {
        Some(cancel) if outlook.stop().is_some() => format!("cancelled: {}", cancel.reason),
        _ => outlook.message(),
    };
    // that nothing more starts is news only where something was left to start
    let nothing_left =
        matches!(outlook.gate, Gate::Over(Over::TooManyFailures { .. })) && outlook.counts.cancelled == 0;
    if !own.is_empty() && !nothing_left {
        parts.push(own);
    }
    let wrong = |t: &&Arc<Task>| matches!(t.phase(), TaskPhase::Failed | TaskPhase::Unknown);
    let of_interest = outlook.counts.failed + outlook.counts.unknown > 0;
    let first = tasks.iter().filter(wrong).min_by_key(|t| {
        let ended = t.status.as_ref().and_then(|s| s.finished_at.as_ref());
        (ended.map(|e| e.0), t.spec.index, t.spec.attempt)
    });
    if let Some((task, status)) = first
        .filter(|_| of_interest)
        .and_then(|t| Some((t, t.status.as_ref()?)))
    {
        let what = if status.message.is_empty() {
            &status.reason
        } else {
            &status.message
        };
        parts.push(format!("Task {} on {}: {what}", task.name(), task.spec.node_name));
    }
    let text = parts.join("; ");
    text.chars().take(1024).collect()
}

/// Conditions that hold, the two that tools wait for always, and what once held.
fn conditions(status: &mut JobStatus, now: Timestamp) {
    let phase = status.phase;
    let finished = phase.is_terminal();
    let (reason, message) = (format!("{phase:?}"), status.message.clone());
    for (type_, holds, always) in [
        ("Finished", finished, false),
        ("Complete", phase == JobPhase::Succeeded, false),
        ("Failed", phase == JobPhase::Failed, false),
        ("Suspended", phase == JobPhase::Suspended, false),
        ("Drifted", status.drifted > 0, false),
        ("Ready", phase == JobPhase::Succeeded, true),
        ("Reconciling", !finished, true),
        (
            "Stalled",
            matches!(phase, JobPhase::Failed | JobPhase::Unknown),
            false,
        ),
    ] {
        let old = status.conditions.iter_mut().find(|c| c.type_ == type_);
        let value = if holds { "True" } else { "False" };
        match old {
            Some(old) if old.status == value => {
                old.reason.clone_from(&reason);
                old.message.clone_from(&message);
            }
            None if !holds && !always => {}
            old => {
                let new = Condition {
                    type_: type_.to_owned(),
                    status: value.to_owned(),
                    reason: reason.clone(),
                    message: message.clone(),
                    last_transition_time: Time(now),
                    observed_generation: status.observed_generation,
                };
                match old {
                    Some(old) => *old = new,
                    None => status.conditions.push(new),
                }
            }
        }
    }
}
