//! Work that takes its node out of service and restarts the host. The hosts are simulated, and so is time.

use crate::{
    agent::{Plan, Restart, succeed},
    world::*,
};
use api::{
    Job, JobSpec, Node, Task, TaskSpec,
    job::{CompletionMode, Impact, JobPhase, OnUnknown},
    node::CORDONED_FOR,
    retry::RetryStrategy,
    step::{Reboot, RebootPolicy},
    task::{Drain, JobRef, TaskPhase},
};
use kube::api::{Patch, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Work on one node that may restart it.
fn disruptive(node: &str) -> impl FnOnce(&mut JobSpec) + '_ {
    move |s| {
        on(node)(s);
        s.impact = Impact::Disruptive;
        s.steps[0].reboot = Some(Reboot {
            policy: RebootPolicy::IfRequested,
            max_resumes: 3,
            timeout_seconds: 3600,
            ..Default::default()
        });
    }
}

fn on(node: &str) -> impl FnOnce(&mut JobSpec) + '_ {
    move |s| {
        s.completion_mode = Some(CompletionMode::PerNode);
        s.node_names = vec![node.into()];
    }
}

fn is_disruptive(task: &Task) -> bool {
    task.spec.drain.is_some()
}

/// Disruptive work restarts its host as said; other work takes a while.
fn restarts(restart: Restart) -> impl Fn(&Task) -> Plan {
    move |task| match is_disruptive(task) {
        true => Plan::Restart(restart),
        false => Plan::Succeed(10 * MINUTE),
    }
}

async fn node(world: &World, name: &str) -> Node {
    world.nodes().get(name).await.unwrap()
}

async fn set_node(world: &World, name: &str, body: Value) {
    let patch = Patch::Merge(body);
    world
        .nodes()
        .patch(name, &Default::default(), &patch)
        .await
        .unwrap();
}

async fn until_node(world: &World, name: &str, wanted: impl Fn(&Node) -> bool) {
    world
        .gone("the old state of the node", async || {
            !wanted(&node(world, name).await)
        })
        .await;
}

fn cordoned_for(node: &Node) -> Option<&str> {
    let annotations = node.metadata.annotations.as_ref()?;
    annotations.get(CORDONED_FOR).map(String::as_str)
}

#[tokio::test(start_paused = true)]
async fn a_node_is_cordoned_drained_and_given_back() {
    let world = World::start(1, |task| match is_disruptive(task) {
        true => Plan::Succeed(MINUTE),
        false => Plan::Succeed(10 * MINUTE),
    })
    .await;
    world.job("other", on("n0")).await;
    world.until("other", |s| s.active == 1).await;
    let patch = world.job("patch", disruptive("n0")).await;
    until_node(&world, "n0", |n| n.spec.unschedulable).await;
    assert_eq!(cordoned_for(&node(&world, "n0").await), Some(patch.uid()));
    world.job("late", on("n0")).await;
    world
        .until_task(|t| is_disruptive(t) && t.phase() == TaskPhase::Claimed)
        .await;
    assert_eq!(
        world.status("other").await.phase,
        JobPhase::Succeeded,
        "taken while the node was at work"
    );
    assert_eq!(world.status("late").await.active, 0, "placed on a cordoned node");

    assert_eq!(world.finished("patch").await.phase, JobPhase::Succeeded);
    until_node(&world, "n0", |n| {
        !n.spec.unschedulable && cordoned_for(n).is_none()
    })
    .await;
    assert_eq!(world.finished("late").await.phase, JobPhase::Succeeded);
    let events = world.events().await;
    assert!(events.iter().any(|e| e.starts_with("Draining ")), "{events:?}");
    assert!(events.iter().any(|e| e.starts_with("Uncordoned ")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_half_done_node_stays_out_of_service_until_a_retry_succeeds() {
    let world = World::start(1, |task| match task.spec.attempt {
        0 => Plan::Fail("ExitCode", true),
        _ => Plan::Succeed(MINUTE),
    })
    .await;
    world
        .job("patch", |s| {
            disruptive("n0")(s);
            s.retry_strategy = Some(RetryStrategy {
                limit: 1,
                ..Default::default()
            });
        })
        .await;
    world.until_task(|t| t.phase() == TaskPhase::Failed).await;
    assert!(node(&world, "n0").await.spec.unschedulable);
    let status = world.finished("patch").await;
    assert_eq!((status.phase, status.retries), (JobPhase::Succeeded, 1));
    until_node(&world, "n0", |n| !n.spec.unschedulable).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_the_cordon_only_where_something_was_changed() {
    let world = World::start(2, |task| Plan::Fail("ExitCode", task.spec.node_name == "n0")).await;
    for name in ["n0", "n1"] {
        world.job(&format!("patch-{name}"), disruptive(name)).await;
        assert_eq!(
            world.finished(&format!("patch-{name}")).await.phase,
            JobPhase::Failed
        );
    }
    until_node(&world, "n1", |n| {
        !n.spec.unschedulable && cordoned_for(n).is_none()
    })
    .await;
    tokio::time::sleep(10 * MINUTE).await;
    assert!(node(&world, "n0").await.spec.unschedulable);
}

/// A Task of a Job that makes none itself.
async fn bind(world: &World, job: &Job, name: &str) -> Task {
    let spec = TaskSpec {
        node_name: name.into(),
        count: 1,
        drain: Some(Drain::Wanted),
        job_ref: JobRef {
            name: job.metadata.name.clone().unwrap(),
            uid: job.uid().into(),
            work_hash: "0".repeat(64),
        },
        ..TaskSpec::default()
    };
    let task = Task::new("by-hand", spec);
    world.tasks().create(&PostParams::default(), &task).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cordon_of_somebody_else_is_kept() {
    let world = World::start(1, |_| succeed()).await;
    set_node(&world, "n0", json!({"spec": {"unschedulable": true}})).await;
    let job = world
        .job("patch", |s| {
            disruptive("n0")(s);
            s.suspend = true;
        })
        .await;
    bind(&world, &job, "n0").await;
    world.until_task(|t| t.phase() == TaskPhase::Succeeded).await;
    tokio::time::sleep(10 * MINUTE).await;
    let node = node(&world, "n0").await;
    assert!(node.spec.unschedulable && cordoned_for(&node).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_ends_before_anything_starts() {
    let world = World::start(1, |_| Plan::Run).await;
    world.job("other", on("n0")).await;
    world.until("other", |s| s.active == 1).await;
    world
        .job("patch", |s| {
            disruptive("n0")(s);
            s.drain_timeout_seconds = Some(300);
        })
        .await;
    assert_eq!(world.finished("patch").await.phase, JobPhase::Failed);
    let task = world.until_task(is_disruptive).await;
    let status = task.status.unwrap();
    assert_eq!(status.reason, "DrainTimeout");
    assert!(status.message.contains("Task other-"), "{}", status.message);
    assert!(status.claim.is_none(), "it was taken");
    until_node(&world, "n0", |n| !n.spec.unschedulable).await;
}

/// Of two that want the node for themselves one waits for the other.
#[tokio::test(start_paused = true)]
async fn two_disruptive_jobs_take_turns() {
    let world = World::start(1, |_| Plan::Succeed(MINUTE)).await;
    world.job("a", disruptive("n0")).await;
    world.job("b", disruptive("n0")).await;
    let (a, b) = (world.finished("a").await, world.finished("b").await);
    assert_eq!((a.phase, b.phase), (JobPhase::Succeeded, JobPhase::Succeeded));
    let apart = a
        .completion_time
        .unwrap()
        .0
        .duration_since(b.completion_time.unwrap().0);
    assert!(apart.abs().as_secs() >= 60, "{apart} apart");
    until_node(&world, "n0", |n| !n.spec.unschedulable).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_waits_for_the_other_task_on_the_node() {
    let restart = Restart {
        runs: 2 * MINUTE,
        away: MINUTE,
        unready: Duration::ZERO,
    };
    let world = World::start(1, restarts(restart)).await;
    world.job("patch", disruptive("n0")).await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    // somebody lets work in again
    set_node(&world, "n0", json!({"spec": {"unschedulable": false}})).await;
    world.job("other", on("n0")).await;
    world.until("other", |s| s.active == 1).await;
    world.until_task(|t| t.phase() == TaskPhase::Rebooting).await;
    let allowed = world.until_task(|t| t.spec.reboot_allowed).await;
    assert_eq!(allowed.phase(), TaskPhase::Rebooting);
    assert_eq!(world.finished("other").await.phase, JobPhase::Succeeded);
    assert_eq!(world.finished("patch").await.phase, JobPhase::Succeeded);
    let events = world.events().await;
    assert!(events.iter().any(|e| e.starts_with("RebootWaits ")), "{events:?}");
}

/// AL-07: back after a second, after 40 minutes, at once but not ready for 10. However long it is away within its limit, the host
/// is not lost, nothing is repeated, and no Node counts as a sign of a broken network.
#[tokio::test(start_paused = true)]
async fn the_absence_of_a_restarting_host_is_expected() {
    for (away, unready) in [
        (SECOND, Duration::ZERO),
        (40 * MINUTE, Duration::ZERO),
        (SECOND, 10 * MINUTE),
    ] {
        for on_unknown in [OnUnknown::Hold, OnUnknown::Rerun] {
            let restart = Restart {
                runs: MINUTE,
                away,
                unready,
            };
            let world = World::start(5, restarts(restart)).await;
            for n in 0..5 {
                world
                    .job(&format!("j{n}"), |s| {
                        disruptive(&format!("n{n}"))(s);
                        s.on_unknown = on_unknown;
                    })
                    .await;
            }
            let mut marked = Vec::new();
            for n in 0..5 {
                let status = world.finished(&format!("j{n}")).await;
                assert_eq!(
                    (status.phase, status.retries),
                    (JobPhase::Succeeded, 0),
                    "{away:?}"
                );
            }
            let lost = |t: &Task| {
                t.status
                    .as_ref()
                    .is_some_and(|s| s.conditions.iter().any(|c| c.type_ == "NodeLost"))
            };
            marked.extend(world.all_tasks().await.into_iter().filter(lost));
            assert!(marked.is_empty(), "{marked:?}");
            let events = world.events().await;
            let alarm =
                ["NodeLost", "FleetDisconnected"].map(|word| events.iter().any(|e| e.starts_with(word)));
            assert_eq!(alarm, [false, false], "{away:?}: {events:?}");
        }
    }
}

/// AL-07: not back within its limit, and the reason says so; EC-06: it is no loss, so nothing is repeated for it.
#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_come_back_ends_its_task() {
    for on_unknown in [OnUnknown::Hold, OnUnknown::Rerun] {
        let restart = Restart {
            runs: MINUTE,
            away: 1000 * MINUTE,
            unready: Duration::ZERO,
        };
        let world = World::start(5, restarts(restart)).await;
        world
            .job("j", |s| {
                disruptive("n0")(s);
                s.on_unknown = on_unknown;
                s.steps[0].reboot.as_mut().unwrap().timeout_seconds = 1800;
            })
            .await;
        let begun = tokio::time::Instant::now();
        let status = world.finished("j").await;
        assert_eq!((status.phase, status.retries), (JobPhase::Failed, 0));
        let after = begun.elapsed();
        assert!(after > 30 * MINUTE && after < 40 * MINUTE, "{after:?}");
        let task = world.all_tasks().await.remove(0).status.unwrap();
        assert_eq!(task.reason, "RebootTimeout");
        assert!(
            node(&world, "n0").await.spec.unschedulable,
            "a host that is gone is back in service"
        );
    }
}
