//! What follows from a node's silence and from its return, as a list of acts; doing them is another matter.

use crate::{context::Context, error::Error, events::Type, patch, tasks};
use api::{Node, Task, step::RebootPolicy, task::TaskPhase, wanted::reason};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Api;
use serde_json::{Map, json};
use std::{sync::Arc, time::Duration};

/// The reason of a condition Ready that this controller wrote.
const SILENT: &str = "NoHeartbeat";
/// How long a host that restarts may take, where its Job does not say.
const REBOOT_SECONDS: i64 = 3600;

/// Conditions to set: type, status, reason, message.
pub(super) type Conditions = Vec<(&'static str, &'static str, &'static str, String)>;

pub(super) enum Act<'a> {
    Conditions(&'a Node, Conditions),
    Tell(&'a Node, Type, &'static str, String),
    End(&'a Task, TaskPhase, &'static str, String),
    Mark(&'a Task, bool),
}

/// What follows for a node that has been silent for so long. While the fleet is disconnected no Task is touched.
pub(super) fn lost<'a>(
    context: &Context,
    node: Option<&'a Node>,
    on_it: &'a [Arc<Task>],
    silence: Duration,
    braked: bool,
) -> Vec<Act<'a>> {
    let mut acts = Vec::new();
    if let Some(node) = node {
        let mut conditions = Conditions::new();
        let lost_after = context.options.node_lost.as_secs_f64();
        let restarts = on_it.iter().any(|task| is_expected(context, task, silence));
        let message = match restarts {
            true => format!("the host restarts: no heartbeat was seen for {lost_after} s"),
            false => format!("no heartbeat was seen for {lost_after} s"),
        };
        let ready = node.condition("Ready").map(|c| c.status.as_str());
        if ready != Some("Unknown") {
            conditions.push(("Ready", "Unknown", SILENT, message.clone()));
            if !braked && !restarts {
                acts.push(Act::Tell(node, Type::Warning, "NodeLost", message));
            }
        }
        let disconnected = node
            .condition("FleetDisconnected")
            .is_some_and(|c| c.status == "True");
        if braked && !disconnected {
            let message = "many nodes are silent at once; no Task is ended".to_owned();
            conditions.push(("FleetDisconnected", "True", "ManyNodesSilent", message));
        } else if disconnected && !braked {
            conditions.push(("FleetDisconnected", "False", "FewNodesSilent", String::new()));
        }
        if !conditions.is_empty() {
            acts.push(Act::Conditions(node, conditions));
        }
    }
    if !braked {
        let open = on_it.iter().filter(|t| tasks::is_open(t));
        acts.extend(open.filter_map(|task| lost_task(context, task, silence)));
    }
    acts
}

/// What follows for a Task on a lost node: unclaimed ones provably never started; Rerun work ends once its fence has surely passed;
/// other work waits for its node until it must have ended, whatever became of it.
fn lost_task<'a>(context: &Context, task: &'a Task, silence: Duration) -> Option<Act<'a>> {
    if tasks::is_unclaimed(task) {
        let ended_elsewhere = task.spec.stop.is_some() || tasks::is_deleting(task);
        let message = "the node was lost before its agent took the Task";
        return (!ended_elsewhere)
            .then(|| Act::End(task, TaskPhase::Rejected, reason::NODE_LOST, message.to_owned()));
    }
    if task.phase() == TaskPhase::Rebooting {
        let seconds = reboot_seconds(context, task);
        let message = format!(
            "nothing was heard of the host for {seconds} s (reboot.timeoutSeconds) while its restart was waited for: it did not come back"
        );
        return (!is_expected(context, task, silence)).then_some(Act::End(
            task,
            TaskPhase::Failed,
            "RebootTimeout",
            message,
        ));
    }
    if !task.is_node_lost() {
        return Some(Act::Mark(task, true));
    }
    if let Some(fence) = task.spec.fence_seconds {
        let fence = fence.max(own_restart(context, task));
        let fence = Duration::from_secs(u64::try_from(fence).unwrap_or(0));
        let passed = silence >= fence + fence / 10 + context.options.fence_slack;
        let message = "the node was lost for longer than the Task's fence; its runner has ended the work";
        return passed.then(|| Act::End(task, TaskPhase::Failed, reason::FENCED, message.to_owned()));
    }
    let job = context.shared.jobs.by_uid(&task.spec.job_ref.uid)?;
    let claimed = task.status.as_ref()?.claim.as_ref()?.time.0;
    let seconds = job.spec.task_timeout_seconds;
    let grace = SignedDuration::from_secs(job.spec.termination_grace_period_seconds);
    let slack = SignedDuration::try_from(context.options.unknown_slack).unwrap_or(SignedDuration::MAX);
    let longest = SignedDuration::from_secs(seconds)
        .saturating_add(grace)
        .saturating_add(slack);
    let over = context.now().duration_since(claimed) > longest;
    let message =
        format!("timed out after {seconds} s on a node that is lost: whether it did its work is not known");
    over.then_some(Act::End(task, TaskPhase::Unknown, reason::NODE_LOST, message))
}

/// Whether the silence of a Task's node is that of a restart which may still come to its end.
pub(super) fn is_expected(context: &Context, task: &Task, silence: Duration) -> bool {
    let limit = Duration::from_secs(reboot_seconds(context, task).unsigned_abs());
    task.phase() == TaskPhase::Rebooting && silence < limit + context.options.fence_slack
}

/// How long the host may take to restart: the longest that a step of the Job allows.
fn reboot_seconds(context: &Context, task: &Task) -> i64 {
    restart_limit(context, task, |policy| policy != RebootPolicy::Never).unwrap_or(REBOOT_SECONDS)
}

/// The same where a step may restart the host before its agent can tell; else nothing.
fn own_restart(context: &Context, task: &Task) -> i64 {
    restart_limit(context, task, |policy| policy == RebootPolicy::SelfInitiated).unwrap_or(0)
}

fn restart_limit(context: &Context, task: &Task, counts: impl Fn(RebootPolicy) -> bool) -> Option<i64> {
    let job = context.shared.jobs.by_uid(&task.spec.job_ref.uid)?;
    let reboots = job
        .spec
        .all_steps()
        .filter_map(|(_, _, step)| step.reboot.as_ref());
    reboots
        .filter(|reboot| counts(reboot.policy))
        .map(|reboot| reboot.timeout_seconds)
        .max()
}

/// Whether this controller found the node lost and nobody took that back.
pub(super) fn is_given_up(node: &Node) -> bool {
    let ready = node.condition("Ready");
    ready.is_some_and(|c| c.status == "Unknown" && c.reason == SILENT)
}

/// What follows for a node that was heard of: marks of its loss go. An agent that is back may have set Ready itself;
/// `given_up` says that its loss was told.
pub(super) fn back<'a>(node: Option<&'a Node>, on_it: &'a [Arc<Task>], given_up: bool) -> Vec<Act<'a>> {
    let mut acts = Vec::new();
    if let Some(node) = node {
        let mut conditions = Conditions::new();
        let message = "the agent is heard of again";
        if is_given_up(node) {
            conditions.push(("Ready", "True", "HeartbeatSeen", message.into()));
        }
        if given_up {
            acts.push(Act::Tell(node, Type::Normal, "NodeBack", message.into()));
        }
        if node
            .condition("FleetDisconnected")
            .is_some_and(|c| c.status == "True")
        {
            conditions.push(("FleetDisconnected", "False", "HeartbeatSeen", String::new()));
        }
        if !conditions.is_empty() {
            acts.push(Act::Conditions(node, conditions));
        }
    }
    let marked = on_it.iter().filter(|t| tasks::is_open(t) && t.is_node_lost());
    acts.extend(marked.map(|task| Act::Mark(task, false)));
    acts
}

pub(super) async fn write(context: &Context, node: &Node, set: Conditions) -> Result<(), Error> {
    let mut conditions = node
        .status
        .as_ref()
        .map(|s| s.conditions.clone())
        .unwrap_or_default();
    for (type_, status, reason, message) in set {
        tracing::info!(node = node.name(), type_, status, reason, "condition");
        conditions.retain(|c| c.type_ != type_);
        conditions.push(Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message,
            last_transition_time: Time(context.now()),
            observed_generation: None,
        });
    }
    let mut status = Map::new();
    status.insert("conditions".into(), json!(conditions));
    let api: Api<Node> = Api::all(context.client.clone());
    patch::status(&api, node, &status).await.map(drop)
}
