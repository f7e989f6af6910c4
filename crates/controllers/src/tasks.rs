//! What controllers do to Tasks: end those no agent will end, ask for a stop, mark them as on a lost node, let them go.

use crate::{context::Context, error::Error, patch};
use api::{
    TRACKING_FINALIZER, Task,
    task::{Stop, TaskPhase},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::Api;
use serde_json::{Map, json};

pub(crate) fn api(context: &Context, task: &Task) -> Api<Task> {
    Api::namespaced(context.client.clone(), task.namespace())
}

/// Ends a Task by compare-and-swap: an agent that writes at the same time wins or loses, but never both.
pub(crate) async fn end(
    context: &Context,
    task: &Task,
    phase: TaskPhase,
    reason: &str,
    message: &str,
) -> Result<(), Error> {
    tracing::info!(
        task = task.name(),
        node = task.spec.node_name,
        ?phase,
        reason,
        "ending Task"
    );
    let mut status = Map::new();
    status.insert("phase".into(), json!(phase));
    status.insert("reason".into(), json!(reason));
    status.insert("message".into(), json!(message));
    status.insert("finishedAt".into(), json!(MicroTime(context.now())));
    patch::status(&api(context, task), task, &status).await.map(drop)
}

/// Asks the agent to stop, unless it was asked already. A force that comes later hardens the stop.
pub(crate) async fn stop(context: &Context, task: &Task, wanted: Stop) -> Result<(), Error> {
    let body = match &task.spec.stop {
        None => json!({"spec": {"stop": wanted}}),
        Some(asked) if wanted.force && !asked.force => json!({"spec": {"stop": {"force": true}}}),
        Some(_) => return Ok(()),
    };
    tracing::info!(
        task = task.name(),
        node = task.spec.node_name,
        reason = wanted.reason,
        "stopping Task"
    );
    patch::main(&api(context, task), task, body).await.map(drop)
}

/// Sets or clears the condition NodeLost.
pub(crate) async fn set_node_lost(
    context: &Context,
    task: &Task,
    lost: bool,
    message: &str,
) -> Result<(), Error> {
    if task.is_node_lost() == lost {
        return Ok(());
    }
    let mut conditions = task
        .status
        .as_ref()
        .map(|s| s.conditions.clone())
        .unwrap_or_default();
    conditions.retain(|c| c.type_ != "NodeLost");
    conditions.push(Condition {
        type_: "NodeLost".into(),
        status: if lost { "True" } else { "False" }.into(),
        reason: if lost { "NoHeartbeat" } else { "NodeBack" }.into(),
        message: message.into(),
        last_transition_time: Time(context.now()),
        observed_generation: None,
    });
    let mut status = Map::new();
    status.insert("conditions".into(), json!(conditions));
    patch::status(&api(context, task), task, &status).await.map(drop)
}

/// Lets a Task that is being deleted go.
pub(crate) async fn release(context: &Context, task: &Task) -> Result<(), Error> {
    patch::release(&api(context, task), task, TRACKING_FINALIZER).await
}

/// Whether no agent has taken it.
pub(crate) fn is_unclaimed(task: &Task) -> bool {
    task.phase() == TaskPhase::Bound
}

/// Whether it has not ended.
pub(crate) fn is_open(task: &Task) -> bool {
    !task.phase().is_terminal()
}

/// Whether it is being deleted.
pub(crate) fn is_deleting(task: &Task) -> bool {
    task.metadata.deletion_timestamp.is_some()
}
