//! Nodes that are lost, alone and many at once.

use crate::{
    agent::{Plan, succeed},
    world::*,
};
use api::{
    job::{JobPhase, OnUnknown},
    task::TaskPhase,
};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn on(node: &str) -> impl FnOnce(&mut api::JobSpec) + '_ {
    move |s| {
        s.completion_mode = Some(api::job::CompletionMode::PerNode);
        s.node_names = vec![node.into()];
    }
}

/// CP-12, Hold.
#[tokio::test(start_paused = true)]
async fn held_work_waits_for_its_node_and_takes_its_result() {
    let world = World::start(5, |_| Plan::Succeed(10 * MINUTE)).await;
    world.job("j", on("n0")).await;
    world.until_task(|t| t.phase() == TaskPhase::Claimed).await;
    world.agents[0].freeze();
    world.until_task(|t| t.is_node_lost()).await;
    let node = world.nodes().get("n0").await.unwrap();
    assert_eq!(node.condition("Ready").unwrap().status, "Unknown");
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(
        world.status("j").await.active,
        1,
        "nothing is ended, nothing repeated"
    );
    world.agents[0].thaw();
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.retries), (JobPhase::Succeeded, 0));
    world
        .gone("the mark", async || {
            !world.nodes().get("n0").await.unwrap().is_ready()
        })
        .await;
    let events = world.events().await;
    assert!(
        events.contains(&"NodeBack n0".into()) && events.contains(&"Completed j".into()),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_return_is_told_even_if_the_agent_says_it_is_ready_first() {
    let world = World::start(5, |_| Plan::Run).await;
    world.agents[0].freeze();
    tokio::time::sleep(2 * MINUTE).await;
    let mut node = world.nodes().get("n0").await.unwrap();
    assert!(!node.is_ready());
    for condition in &mut node.status.as_mut().unwrap().conditions {
        condition.status = "True".into();
        condition.reason = "AgentRunning".into();
    }
    world
        .nodes()
        .replace_status("n0", &Default::default(), &node)
        .await
        .unwrap();
    world.agents[0].thaw();
    world
        .gone("silence", async || {
            !world.events().await.contains(&"NodeBack n0".into())
        })
        .await;
    let told = world.events().await.iter().filter(|e| e.ends_with("n0")).count();
    assert_eq!(told, 2, "lost, and back");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_of_others_do_not_hide_a_silence() {
    let world = World::start(5, |_| Plan::Run).await;
    let leases: kube::Api<k8s_openapi::api::coordination::v1::Lease> =
        kube::Api::namespaced(world.client.clone(), informer::NODE_LEASES);
    let busy = tokio::spawn(async move {
        for n in 0.. {
            let beat = json!({"metadata": {"annotations": {"n": n.to_string()}}});
            let _ = leases
                .patch("n1", &PatchParams::default(), &Patch::Merge(beat))
                .await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    world.agents[0].freeze();
    tokio::time::sleep(2 * MINUTE).await;
    assert!(!world.nodes().get("n0").await.unwrap().is_ready());
    assert!(world.nodes().get("n1").await.unwrap().is_ready());
    busy.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_holds_the_index_but_no_place() {
    let world = World::start(2, |t| match t.spec.index {
        0 => Plan::Run,
        _ => succeed(),
    })
    .await;
    world
        .job("j", |s| {
            s.completions = Some(3);
            s.parallelism = Some(api::amount::Amount::Count(1));
        })
        .await;
    let task = world.until_task(|t| t.phase() == TaskPhase::Running).await;
    let agent = world
        .agents
        .iter()
        .find(|a| a.name == task.spec.node_name)
        .unwrap();
    agent.freeze();
    let status = world.until("j", |s| s.succeeded == 2).await;
    assert_eq!(status.active, 1);
}

/// CT-05.
#[tokio::test(start_paused = true)]
async fn held_work_is_unknown_only_when_it_must_have_ended() {
    let world = World::start(5, |_| Plan::Run).await;
    world
        .job("j", |s| {
            on("n0")(s);
            s.task_timeout_seconds = 60;
        })
        .await;
    let task = world.until_task(|t| t.phase() == TaskPhase::Running).await;
    let claimed = task.status.unwrap().claim.unwrap().time.0;
    world.agents[0].freeze();
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.unknown), (JobPhase::Unknown, 1));
    let waited = world.now().duration_since(claimed).as_secs();
    assert!(
        (60 + 30 + 2160..60 + 30 + 2160 + 30).contains(&waited),
        "{waited} s"
    );
    assert!(status.message.contains("lost"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_user_settles_work_on_a_lost_node() {
    let world = World::start(5, |_| Plan::Run).await;
    world.job("j", on("n0")).await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    world.agents[0].freeze();
    let task = world.until_task(|t| t.is_node_lost()).await;
    let resolution = json!({"spec": {"resolution": {"as": "Succeeded", "reason": "looked at the host"}}});
    let patch = Patch::Merge(resolution);
    world
        .tasks()
        .patch(task.name(), &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(world.finished("j").await.phase, JobPhase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_may_be_settled_after_the_end() {
    let world = World::start(5, |_| Plan::Run).await;
    world
        .job("j", |s| {
            on("n0")(s);
            s.task_timeout_seconds = 1;
        })
        .await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    world.agents[0].freeze();
    assert_eq!(world.finished("j").await.phase, JobPhase::Unknown);
    let task = world.all_tasks().await.remove(0);
    let patch = Patch::Merge(json!({"spec": {"resolution": {"as": "Succeeded", "reason": "looked"}}}));
    world
        .tasks()
        .patch(task.name(), &PatchParams::default(), &patch)
        .await
        .unwrap();
    let status = world.until("j", |s| s.phase == JobPhase::Succeeded).await;
    assert_eq!((status.succeeded, status.unknown), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn work_that_was_never_taken_goes_elsewhere_at_no_cost() {
    let world = World::start(5, |t| match t.spec.attempt {
        0 => Plan::Ignore,
        _ => succeed(),
    })
    .await;
    world.job("j", |_| {}).await;
    let task = world.until_task(|t| t.phase() == TaskPhase::Bound).await;
    world
        .agents
        .iter()
        .find(|a| a.name == task.spec.node_name)
        .unwrap()
        .freeze();
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.retries), (JobPhase::Succeeded, 0));
    let first = world.tasks().get(task.name()).await.unwrap().status.unwrap();
    assert_eq!(
        (first.phase, first.reason.as_str()),
        (TaskPhase::Rejected, "NodeLost")
    );
}

/// CP-12, Rerun.
#[tokio::test(start_paused = true)]
async fn rerun_work_is_repeated_only_after_the_fence_has_surely_passed() {
    let world = World::start(5, |t| match t.spec.attempt {
        0 => Plan::Run,
        _ => succeed(),
    })
    .await;
    world.job("j", |s| s.on_unknown = OnUnknown::Rerun).await;
    let task = world.until_task(|t| t.phase() == TaskPhase::Running).await;
    assert_eq!(task.spec.fence_seconds, Some(300));
    let cut = world.now();
    world
        .agents
        .iter()
        .find(|a| a.name == task.spec.node_name)
        .unwrap()
        .freeze();
    let again = world.until_task(|t| t.spec.attempt == 1).await;
    let waited = world.now().duration_since(cut).as_secs();
    assert!(waited >= 300 + 30 + 60 - 10, "{waited} s"); // the last renewal was up to 10 s before the cut
    assert_ne!(again.spec.node_name, task.spec.node_name);
    let first = world.tasks().get(task.name()).await.unwrap().status.unwrap();
    assert_eq!(
        (first.phase, first.reason.as_str()),
        (TaskPhase::Failed, "Fenced")
    );
    assert_eq!(world.finished("j").await.phase, JobPhase::Succeeded);
}

/// CP-11.
#[tokio::test(start_paused = true)]
async fn a_silence_shorter_than_the_limit_changes_nothing_however_long_the_work() {
    let world = World::start(5, |_| Plan::Succeed(10 * MINUTE)).await;
    world
        .job("j", |s| {
            s.on_unknown = OnUnknown::Rerun;
            on("n0")(s);
        })
        .await;
    world.until_task(|t| t.phase() == TaskPhase::Claimed).await;
    for _ in 0..6 {
        world.agents[0].freeze();
        tokio::time::sleep(Duration::from_secs(25)).await;
        world.agents[0].thaw();
        tokio::time::sleep(MINUTE).await;
    }
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.retries), (JobPhase::Succeeded, 0));
    assert_eq!(world.all_tasks().await.len(), 1);
    let events = world.events().await;
    assert!(!events.iter().any(|e| e.starts_with("Node")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn many_nodes_lost_at_once_end_nothing() {
    let world = World::start(10, |_| Plan::Ignore).await;
    world
        .job("j", |s| {
            s.completions = Some(10);
            s.parallelism = Some(api::amount::Amount::Count(10));
        })
        .await;
    world
        .gone("a missing Task", async || world.all_tasks().await.len() < 10)
        .await;
    for agent in &world.agents[..5] {
        agent.freeze();
    }
    let disconnected = async |name: &str| {
        let node = world.nodes().get(name).await.unwrap();
        node.condition("FleetDisconnected")
            .is_some_and(|c| c.status == "True")
    };
    world
        .gone("a connected fleet", async || !disconnected("n0").await)
        .await;
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(count(&world.all_tasks().await, TaskPhase::Bound), 10);
    let events = world.events().await;
    assert_eq!(
        events
            .iter()
            .filter(|e| e.starts_with("FleetDisconnected"))
            .count(),
        1,
        "{events:?}"
    );
    assert!(!events.iter().any(|e| e.starts_with("NodeLost")), "{events:?}");
    for agent in &world.agents[..3] {
        agent.thaw();
    }
    // two of ten are lost now: that is no network any more
    world
        .gone("the mark", async || {
            disconnected("n0").await || disconnected("n4").await
        })
        .await;
    world.until_task(|t| t.phase() == TaskPhase::Rejected).await;
    let events = world.events().await;
    assert!(
        !events.iter().any(|e| e.starts_with("NodeBack")),
        "no storm: {events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_is_lost_once_its_agent_is_silent() {
    let world = World::start(5, |_| Plan::Run).await;
    world.job("j", on("n0")).await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    world.nodes().delete("n0", &Default::default()).await.unwrap();
    tokio::time::sleep(5 * MINUTE).await;
    assert!(
        !world.all_tasks().await[0].is_node_lost(),
        "its agent is still heard of"
    );
    world.agents[0].freeze();
    world.until_task(|t| t.is_node_lost()).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_controllers_declares_nobody_lost() {
    let mut world = World::start(5, |_| Plan::Run).await;
    world.job("j", on("n0")).await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    world.crash();
    tokio::time::sleep(30 * MINUTE).await;
    world.restart().await;
    tokio::time::sleep(10 * MINUTE).await;
    for node in world.nodes().list(&Default::default()).await.unwrap() {
        assert!(node.is_ready(), "{}", node.name());
    }
    assert!(!world.all_tasks().await[0].is_node_lost());
}
