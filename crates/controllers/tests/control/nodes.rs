//! PerNode Jobs, and Jobs and nodes.

use crate::{
    agent::{Plan, succeed},
    world::*,
};
use api::{
    amount::Amount,
    job::{CompletionMode, JobPhase, OnUnavailable},
    placement::{Toleration, TolerationOperator},
    task::TaskPhase,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::Patch};
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};

fn per_node(s: &mut api::JobSpec) {
    s.completion_mode = Some(CompletionMode::PerNode);
    s.node_selector = [("role".into(), "web".into())].into();
    s.parallelism = Some(Amount::Percent("50%".into()));
}

async fn patch_node(world: &World, name: &str, body: serde_json::Value) {
    world
        .nodes()
        .patch(name, &Default::default(), &Patch::Merge(body))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn once_on_every_chosen_node_from_a_snapshot() {
    let mut world = World::start(6, |_| Plan::Succeed(Duration::from_secs(5))).await;
    patch_node(&world, "n5", json!({"metadata": {"labels": {"role": "db"}}})).await;
    world.job("j", per_node).await;
    world.until("j", |s| s.active > 0).await;
    let late = crate::agent::Agent::join(&world, "n9", std::sync::Arc::new(|_| succeed())).await;
    world.agents.push(late);
    let status = world.finished("j").await;
    assert_eq!(
        (status.phase, status.desired, status.succeeded),
        (JobPhase::Succeeded, 5, 5),
        "{status:?}"
    );
    assert_eq!(status.snapshot.as_ref().unwrap().count, 5);
    let nodes: BTreeSet<_> = world
        .all_tasks()
        .await
        .iter()
        .map(|t| t.spec.node_name.clone())
        .collect();
    assert_eq!(nodes, ["n0", "n1", "n2", "n3", "n4"].map(String::from).into());
    let job = world.jobs().get("j").await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), NS);
    let name = api::names::snapshot("j", job.uid(), 0);
    let map = maps.get(&name).await.unwrap();
    assert_eq!(
        (map.immutable, map.data.unwrap()["nodes"].as_str()),
        (Some(true), "n0\nn1\nn2\nn3\nn4")
    );
}

#[tokio::test(start_paused = true)]
async fn a_crash_midway_changes_no_member() {
    let mut world = World::start(8, |_| Plan::Succeed(Duration::from_secs(2))).await;
    world
        .job("j", |s| {
            per_node(s);
            s.parallelism = Some(Amount::Count(2));
        })
        .await;
    world.until("j", |s| s.succeeded >= 2).await;
    world.crash();
    let late = crate::agent::Agent::join(&world, "a-first", std::sync::Arc::new(|_| succeed())).await;
    world.agents.push(late);
    patch_node(&world, "n7", json!({"metadata": {"labels": {"role": "db"}}})).await;
    world.restart().await;
    let status = world.finished("j").await;
    assert_eq!((status.desired, status.succeeded), (8, 8), "{status:?}");
    let tasks = world.all_tasks().await;
    let nodes: BTreeSet<_> = tasks.iter().map(|t| t.spec.node_name.clone()).collect();
    assert_eq!(
        (tasks.len(), nodes),
        (8, (0..8).map(|n| format!("n{n}")).collect())
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_for_no_node_at_all_is_done() {
    let world = World::start(1, |_| succeed()).await;
    world
        .job("j", |s| {
            per_node(s);
            s.node_selector = [("role".into(), "none".into())].into();
        })
        .await;
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.desired), (JobPhase::Succeeded, 0));
}

#[tokio::test(start_paused = true)]
async fn cordoned_nodes_are_waited_for_skipped_or_failed() {
    for (policy, phase, skipped, failed) in [
        (OnUnavailable::Wait, JobPhase::Succeeded, 1, 0),
        (OnUnavailable::Skip, JobPhase::Succeeded, 1, 0),
        (OnUnavailable::Fail, JobPhase::Failed, 0, 1),
    ] {
        let world = World::start(3, |_| succeed()).await;
        patch_node(&world, "n1", json!({"spec": {"unschedulable": true}})).await;
        world
            .job("j", |s| {
                per_node(s);
                s.on_unavailable = policy;
                s.starting_deadline_seconds = Some(600);
                s.parallelism = Some(Amount::Count(3));
            })
            .await;
        let status = world.finished("j").await;
        assert_eq!(status.phase, phase, "{policy:?}");
        assert_eq!(
            (status.succeeded, status.skipped, status.failed),
            (2, skipped, failed),
            "{policy:?}"
        );
        let record = world.until_task(|t| t.spec.node_name == "n1").await;
        assert_eq!(record.status.unwrap().reason, "NodeUnavailable", "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_was_changed_fails_the_job() {
    let mut world = World::start(3, |_| Plan::Run).await;
    world.job("j", per_node).await;
    world.until("j", |s| s.active > 0).await;
    world.crash();
    let job = world.jobs().get("j").await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), NS);
    let name = api::names::snapshot("j", job.uid(), 0);
    maps.delete(&name, &Default::default()).await.unwrap();
    world.restart().await;
    let status = world.finished("j").await;
    assert_eq!(status.phase, JobPhase::Failed);
    assert!(status.message.starts_with("SnapshotLost"), "{}", status.message);
    world.until_task(|t| t.phase() == TaskPhase::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn facts_become_labels() {
    let world = World::start(1, |_| succeed()).await;
    world
        .job("j", |s| {
            s.node_selector = [("prow.windows/os".into(), "linux".into())].into()
        })
        .await;
    assert_eq!(world.finished("j").await.phase, JobPhase::Succeeded);
}

/// CP-13 for work that may not be repeated: what was stopped half-way is no success.
#[tokio::test(start_paused = true)]
async fn a_no_execute_taint_stops_what_does_not_tolerate_it() {
    let world = World::start(2, |_| Plan::Run).await;
    world.job("k", |s| s.completions = Some(1)).await;
    let task = world.until_task(|t| t.phase() == TaskPhase::Running).await;
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    patch_node(&world, &task.spec.node_name, taint).await;
    let ended = world
        .until_task(|t| t.name() == task.name() && t.phase().is_terminal())
        .await;
    assert_eq!(ended.status.unwrap().reason, "Evicted");
    let status = world.finished("k").await;
    assert_eq!(
        status.phase,
        JobPhase::Failed,
        "a step had started, and Hold repeats nothing"
    );
}

/// CP-13 for work that may be repeated.
#[tokio::test(start_paused = true)]
async fn evicted_work_takes_no_retry_away_and_starts_again_when_the_node_is_back() {
    let world = World::start(1, |t| match t.spec.attempt {
        0 => Plan::Run,
        _ => crate::agent::succeed(),
    })
    .await;
    world
        .job("k", |s| s.on_unknown = api::job::OnUnknown::Rerun)
        .await;
    let first = world.until_task(|t| t.phase() == TaskPhase::Running).await;
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    patch_node(&world, "n0", taint).await;
    let ended = world
        .until_task(|t| t.name() == first.name() && t.phase().is_terminal())
        .await;
    assert_eq!(ended.status.unwrap().reason, "Evicted");
    let waits = world.until("k", |s| !s.waiting.is_empty()).await;
    assert_eq!((waits.succeeded, waits.failed), (0, 0));
    patch_node(&world, "n0", json!({"spec": {"taints": []}})).await;
    // without a retryStrategy a failure would have been the end
    assert_eq!(world.finished("k").await.phase, JobPhase::Succeeded);
}

/// Counted from when the taint came, also by a leader that came after it.
#[tokio::test(start_paused = true)]
async fn a_no_execute_taint_is_tolerated_for_toleration_seconds() {
    let mut world = World::start(1, |_| Plan::Run).await;
    world
        .job("k", |s| {
            s.tolerations = vec![Toleration {
                key: "broken".into(),
                operator: TolerationOperator::Exists,
                toleration_seconds: Some(60),
                ..Default::default()
            }]
        })
        .await;
    let task = world.until_task(|t| t.phase() == TaskPhase::Running).await;
    let before = tokio::time::Instant::now();
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    patch_node(&world, &task.spec.node_name, taint).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    world.crash();
    world.restart().await;
    let ended = world
        .until_task(|t| t.name() == task.name() && t.phase().is_terminal())
        .await;
    assert_eq!(ended.status.unwrap().reason, "Evicted");
    let after = before.elapsed().as_secs();
    assert!((60..100).contains(&after), "after {after} s");
}

#[tokio::test(start_paused = true)]
async fn targets_and_queues_are_counted() {
    let world = World::start(3, |_| Plan::Run).await;
    world
        .job("j", |s| {
            s.completions = Some(5);
            s.parallelism = Some(Amount::Count(2));
        })
        .await;
    let targets = || {
        world
            .shared
            .targets
            .get("", "all")
            .and_then(|t| t.status.clone())
            .map(|s| s.nodes)
    };
    let queue = || {
        let status = world
            .shared
            .queues
            .get("", "default")
            .and_then(|q| q.status.clone());
        status.map(|s| (s.running, s.pending))
    };
    world
        .gone("a wrong count", async || {
            targets() != Some(3) || queue() != Some((2, 3))
        })
        .await;
}
