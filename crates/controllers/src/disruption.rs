//! Nodes that disruptive work takes out of service: cordoned before, drained, restarted with nobody else on them, and given back.
//!
//! A Task that says `drain: Wanted` is claimed by no agent. Its node is cordoned in its Job's name ([`CORDONED_FOR`]); once nothing
//! else runs there the Task gets `drain: Done`. The same rule, nobody else at work, allows a restart of the host. Of several such
//! Tasks on a node the oldest goes first. The node is given back when the work succeeded or had changed nothing; a host that was left
//! half done stays out of service, and so does one that somebody else had cordoned.

use crate::{
    context::Context,
    error::Error,
    events::Type,
    keyed::{self, Outcome},
    patch, tasks,
};
use api::{
    Node, Task,
    node::CORDONED_FOR,
    task::{Drain, TaskPhase},
};
use futures::StreamExt;
use informer::on_node;
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// How many nodes are worked on at once.
const AT_ONCE: usize = 32;
/// How long the node's other Tasks are waited for, where the Job does not say.
const DRAIN_SECONDS: i64 = 3600;
/// How many Tasks a message names.
const NAMED: usize = 3;

pub(crate) async fn run(context: &Context) {
    let tasks = keyed::feed(context.shared.tasks.subscribe(), |change| {
        vec![(change.object().spec.node_name.clone(), Duration::ZERO)]
    });
    let nodes = keyed::feed(context.shared.nodes.subscribe(), |change| {
        vec![(change.object().name().to_owned(), Duration::ZERO)]
    });
    let feed = futures::stream::select(tasks, nodes).boxed();
    keyed::work("disruption", feed, AT_ONCE, |name| look(context, name)).await;
}

async fn look(context: &Context, name: String) -> Outcome {
    let on_it = context.shared.tasks.indexed(&on_node(&name));
    let node = context.shared.nodes.get("", &name);
    let cordoned_for = node.as_deref().and_then(cordoned_for);
    let concerned = |task: &Arc<Task>| task.spec.drain.is_some() || waits_for_restart(task);
    if cordoned_for.is_none() && !on_it.iter().any(|task| tasks::is_open(task) && concerned(task)) {
        return Ok(None);
    }
    let open: Vec<&Arc<Task>> = on_it.iter().filter(|task| tasks::is_open(task)).collect();
    let mut next = None;
    for task in open.iter().filter(|task| waits_for_restart(task)) {
        allow_restart(context, task, &open).await?;
    }
    let mut draining: Vec<_> = open.iter().filter(|task| waits_for_drain(task)).collect();
    draining.sort_by_key(|task| age(task));
    if let (Some(node), Some(task)) = (&node, draining.first()) {
        next = drain(context, node, task, &open).await?;
    }
    if let (Some(node), Some(job)) = (&node, cordoned_for)
        && !open
            .iter()
            .any(|task| task.spec.drain.is_some() && task.spec.job_ref.uid == job)
    {
        give_back(context, node, job, &on_it).await?;
    }
    Ok(next)
}

/// The uid of the Job in whose name a node is cordoned.
fn cordoned_for(node: &Node) -> Option<&str> {
    let annotations = node.metadata.annotations.as_ref()?;
    annotations.get(CORDONED_FOR).map(String::as_str)
}

/// The oldest goes first.
fn age(task: &Task) -> (Option<Timestamp>, &str) {
    let created = task.metadata.creation_timestamp.as_ref();
    (created.map(|at| at.0), task.uid())
}

fn waits_for_drain(task: &Task) -> bool {
    let leaves = task.spec.stop.is_some() || tasks::is_deleting(task);
    task.spec.drain == Some(Drain::Wanted) && tasks::is_unclaimed(task) && !leaves
}

fn waits_for_restart(task: &Task) -> bool {
    task.phase() == TaskPhase::Rebooting && !task.spec.reboot_allowed
}

/// Those of a node's open Tasks that a restart of it would hit: all but those that wait for the same.
fn in_the_way<'a>(task: &Task, open: &[&'a Arc<Task>]) -> Vec<&'a str> {
    open.iter()
        .filter(|other| other.uid() != task.uid())
        .filter(|other| !waits_for_drain(other) && other.phase() != TaskPhase::Rebooting)
        .map(|other| other.name())
        .collect()
}

async fn allow_restart(context: &Context, task: &Task, open: &[&Arc<Task>]) -> Result<(), Error> {
    let others = in_the_way(task, open);
    if !others.is_empty() {
        let message = format!("a restart of {} waits for {}", task.spec.node_name, list(&others));
        context.events.tell(task, Type::Normal, "RebootWaits", message);
        return Ok(());
    }
    tracing::info!(task = task.name(), node = task.spec.node_name, "restart allowed");
    let body = json!({"spec": {"rebootAllowed": true}});
    patch::main(&tasks::api(context, task), task, body).await?;
    let message = format!("{} may be restarted", task.spec.node_name);
    context.events.tell(task, Type::Normal, "RebootAllowed", message);
    Ok(())
}

/// Brings a node as far as to let a Task start, or ends the Task when that takes too long. Answers when to look again.
async fn drain(context: &Context, node: &Node, task: &Task, open: &[&Arc<Task>]) -> Outcome {
    let others = in_the_way(task, open);
    let rebooting = open
        .iter()
        .any(|other| other.uid() != task.uid() && other.phase() == TaskPhase::Rebooting);
    if !node.spec.unschedulable {
        cordon(context, node, task).await?;
        let mut message = format!("{} is cordoned", node.name());
        if !others.is_empty() {
            message += &format!("; waiting for {}", list(&others));
        }
        context.events.tell(task, Type::Normal, "Draining", message);
        return Ok(None); // the change of the node brings us back
    }
    if others.is_empty() && !rebooting {
        let body = json!({"spec": {"drain": Drain::Done}});
        patch::main(&tasks::api(context, task), task, body).await?;
        return Ok(None);
    }
    let job = context.shared.jobs.by_uid(&task.spec.job_ref.uid);
    let seconds = job
        .and_then(|job| job.spec.drain_timeout_seconds)
        .unwrap_or(DRAIN_SECONDS);
    let created = task
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or_else(|| context.now(), |at| at.0);
    let end = created
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    if end > context.now() {
        return Ok(Some(context.until(end)));
    }
    let message = format!(
        "{} still has {} after {seconds} s (drainTimeoutSeconds); nothing was started",
        node.name(),
        list(&others)
    );
    tasks::end(context, task, TaskPhase::Failed, "DrainTimeout", &message).await?;
    Ok(None)
}

async fn cordon(context: &Context, node: &Node, task: &Task) -> Result<(), Error> {
    tracing::info!(node = node.name(), task = task.name(), "cordoning");
    let body = json!({
        "metadata": {"annotations": {CORDONED_FOR: task.spec.job_ref.uid}},
        "spec": {"unschedulable": true},
    });
    let api: Api<Node> = Api::all(context.client.clone());
    patch::main(&api, node, body).await.map(drop)
}

/// Uncordons a node that the last of a Job's Tasks left as it should be.
async fn give_back(context: &Context, node: &Node, job: &str, on_it: &[Arc<Task>]) -> Result<(), Error> {
    let api: Api<Node> = Api::all(context.client.clone());
    if !node.spec.unschedulable {
        // somebody has done it: a later cordon is not ours
        let body = json!({"metadata": {"annotations": {CORDONED_FOR: null}}});
        return patch::main(&api, node, body).await.map(drop);
    }
    let of_job = on_it
        .iter()
        .filter(|task| task.spec.job_ref.uid == job && task.spec.drain.is_some());
    let Some(last) = of_job.max_by_key(|task| task.spec.attempt) else {
        return Ok(()); // how it ended is not known any more
    };
    let started = last.status.as_ref().is_some_and(|status| status.started_steps);
    if started && !matches!(last.phase(), TaskPhase::Succeeded | TaskPhase::Skipped) {
        return Ok(());
    }
    tracing::info!(node = node.name(), task = last.name(), "uncordoning");
    let body = json!({
        "metadata": {"annotations": {CORDONED_FOR: null}},
        "spec": {"unschedulable": false},
    });
    patch::main(&api, node, body).await?;
    let message = format!("{} is back in service", node.name());
    context.events.tell(&**last, Type::Normal, "Uncordoned", message);
    Ok(())
}

fn list(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "a Task that waits for a restart".to_owned(),
        1 => format!("Task {shown}"),
        n if n <= NAMED => format!("Tasks {shown}"),
        n => format!("Tasks {shown} and {} more", n - NAMED),
    }
}
