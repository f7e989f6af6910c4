//! NoExecute taints: Tasks whose Job does not tolerate them are stopped.

use super::changed_nodes;
use crate::{
    context::Context,
    keyed::{self, Outcome},
    patch, tasks,
};
use api::{
    Job, Node,
    placement::{Effect, Taint},
    task::Stop,
    wanted::reason,
};
use futures::StreamExt;
use informer::on_node;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use serde_json::json;
use std::time::Duration;

/// How many nodes are worked on at once.
const AT_ONCE: usize = 8;

pub(super) async fn run(context: &Context) {
    let tasks = keyed::feed(context.shared.tasks.subscribe(), |change| {
        let task = change.object();
        let open = tasks::is_open(task) && task.spec.stop.is_none();
        open.then(|| (task.spec.node_name.clone(), Duration::ZERO))
            .into_iter()
            .collect()
    });
    let feed = futures::stream::select(changed_nodes(context), tasks).boxed();
    keyed::work("evictions", feed, AT_ONCE, |name| look(context, name)).await;
}

async fn look(context: &Context, name: String) -> Outcome {
    let Some(node) = context.shared.nodes.get("", &name) else {
        return Ok(None);
    };
    let taints: Vec<&Taint> = node
        .spec
        .taints
        .iter()
        .filter(|t| t.effect == Effect::NoExecute)
        .collect();
    if taints.is_empty() {
        return Ok(None);
    }
    let now = context.now();
    if taints.iter().any(|taint| taint.time_added.is_none()) {
        return stamp(context, &node).await; // the change brings the node back here
    }
    let mut next: Option<Timestamp> = None;
    for task in context.shared.tasks.indexed(&on_node(&name)) {
        if !tasks::is_open(&task) || task.spec.stop.is_some() {
            continue;
        }
        let Some(job) = context.shared.jobs.by_uid(&task.spec.job_ref.uid) else {
            continue;
        };
        let leaves = taints
            .iter()
            .filter_map(|taint| Some((leaves_at(&job, taint, now)?, *taint)));
        let Some((at, taint)) = leaves.min_by_key(|(at, _)| *at) else {
            continue;
        };
        if at > now {
            next = Some(next.map_or(at, |n| n.min(at)));
            continue;
        }
        let stop = Stop {
            reason: reason::EVICTED.into(),
            message: format!("node {name} got the taint {}", taint.key),
            grace_seconds: job.spec.termination_grace_period_seconds,
            force: false,
        };
        tasks::stop(context, &task, stop).await?;
    }
    Ok(next.map(|at| context.until(at)))
}

/// Notes when NoExecute taints came: tolerationSeconds count from then, whoever leads.
async fn stamp(context: &Context, node: &Node) -> Outcome {
    let mut taints = node.spec.taints.clone();
    for taint in taints.iter_mut().filter(|t| t.effect == Effect::NoExecute) {
        taint.time_added.get_or_insert(Time(context.now()));
    }
    let api: Api<Node> = Api::all(context.client.clone());
    patch::main(&api, node, json!({"spec": {"taints": taints}})).await?;
    Ok(None)
}

/// When work must leave because of a taint; `None` if never.
fn leaves_at(job: &Job, taint: &Taint, now: Timestamp) -> Option<Timestamp> {
    let tolerations: Vec<_> = job
        .spec
        .tolerations
        .iter()
        .filter(|t| t.tolerates(taint))
        .collect();
    if tolerations.is_empty() {
        return Some(now);
    }
    let shortest = tolerations.iter().filter_map(|t| t.toleration_seconds).min()?;
    let came = taint.time_added.as_ref().map_or(now, |t| t.0);
    Some(
        came.saturating_add(SignedDuration::from_secs(shortest))
            .unwrap_or(Timestamp::MAX),
    )
}
