//! Jobs that run: counts, retries, limits, deadlines, cancel.

use crate::{
    agent::{Plan, succeed},
    world::*,
};
use api::{
    amount::Amount,
    job::JobPhase,
    retry::{Backoff, RetryStrategy},
    task::TaskPhase,
};
use serde_json::json;
use std::{collections::HashSet, time::Duration};

fn retries(limit: i32) -> Option<RetryStrategy> {
    Some(RetryStrategy {
        limit,
        backoff: Backoff {
            duration: "1s".into(),
            ..Default::default()
        },
        ..Default::default()
    })
}

#[tokio::test(start_paused = true)]
async fn a_no_op_job_costs_five_writes_and_one_event() {
    let world = World::start(1, |_| succeed()).await;
    tokio::time::sleep(Duration::from_secs(63)).await; // all is counted, no heartbeat is near
    let before = world.head().await;
    world.job("one", |_| {}).await;
    let status = world.finished("one").await;
    assert_eq!((status.phase, status.succeeded), (JobPhase::Succeeded, 1));
    while !world.events().await.contains(&"Completed one".to_owned()) {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        world.written(before).await,
        ["jobs", "tasks", "tasks", "tasks", "jobs", "events"],
        "Job, Task, claim, end, Job status; and the Event, which is lazy"
    );
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_says_so_in_every_way() {
    let world = World::start(1, |_| Plan::Output("build", "42")).await;
    world.job("one", |_| {}).await;
    let status = world.finished("one").await;
    let holds = |type_: &str| {
        status
            .conditions
            .iter()
            .any(|c| c.type_ == type_ && c.status == "True")
    };
    assert!(holds("Finished") && holds("Complete") && holds("Ready"));
    assert!(!holds("Failed") && !holds("Reconciling") && !holds("Stalled"));
    assert!(status.start_time.is_some() && status.completion_time.is_some());
    assert_eq!(status.outputs["build"], "42");
    assert_eq!(status.observed_generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn every_index_runs_once_and_never_more_at_a_time_than_allowed() {
    let world = World::start(4, |_| Plan::Succeed(Duration::from_secs(3))).await;
    world
        .job("many", |s| {
            s.completions = Some(100);
            s.parallelism = Some(Amount::Count(7));
        })
        .await;
    let mut most = 0;
    let status = world
        .until("many", |s| {
            add_up(s);
            assert!(s.active <= 7, "{s:?}");
            s.phase.is_terminal()
        })
        .await;
    for task in world.all_tasks().await {
        most = most.max(task.spec.index);
    }
    assert_eq!((status.succeeded, status.retries, most), (100, 0, 99));
    let indexes: HashSet<_> = world.all_tasks().await.iter().map(|t| t.spec.index).collect();
    assert_eq!((indexes.len(), world.all_tasks().await.len()), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_and_then_fail_the_job_with_a_reason() {
    let world = World::start(2, |t| match t.spec.attempt {
        0 | 1 => Plan::Fail("ExitCode", true),
        _ => succeed(),
    })
    .await;
    world.job("good", |s| s.retry_strategy = retries(2)).await;
    let good = world.finished("good").await;
    assert_eq!((good.phase, good.retries), (JobPhase::Succeeded, 2));
    world.job("bad", |s| s.retry_strategy = retries(1)).await;
    let bad = world.finished("bad").await;
    assert_eq!((bad.phase, bad.failed, bad.retries), (JobPhase::Failed, 1, 1));
    assert!(
        bad.message.contains("ExitCode") && bad.message.contains("Task bad-"),
        "{}",
        bad.message
    );
}

#[tokio::test(start_paused = true)]
async fn rejections_and_lost_runners_cost_no_attempt() {
    let world = World::start(2, |t| match t.spec.attempt {
        0 => Plan::Reject,
        1 => Plan::Fail("RunnerLost", false),
        _ => succeed(),
    })
    .await;
    world.job("j", |_| {}).await;
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.retries), (JobPhase::Succeeded, 1));
}

#[tokio::test(start_paused = true)]
async fn too_many_failures_stop_new_starts() {
    let world = World::start(1, |t| match t.spec.index {
        0..=2 => Plan::Fail("ExitCode", true),
        _ => succeed(),
    })
    .await;
    world
        .job("j", |s| {
            s.completions = Some(50);
            s.max_failures = Some(Amount::Percent("4%".into()));
        })
        .await;
    let status = world.finished("j").await;
    assert_eq!(status.phase, JobPhase::Failed);
    assert_eq!(
        (status.failed, status.succeeded, status.cancelled),
        (3, 0, 47),
        "{status:?}"
    );
    assert!(status.message.contains("maxFailures"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_what_runs_and_counts_what_never_started() {
    let world = World::start(1, |_| Plan::Run).await;
    world
        .job("j", |s| {
            s.completions = Some(5);
            s.parallelism = Some(Amount::Count(2));
        })
        .await;
    world.until("j", |s| s.active == 2).await;
    world.edit_job("j", cancel()).await;
    let status = world.finished("j").await;
    assert_eq!(
        (status.phase, status.cancelled),
        (JobPhase::Cancelled, 5),
        "{status:?}"
    );
    assert_eq!(count(&world.all_tasks().await, TaskPhase::Cancelled), 2);
    assert!(status.message.contains("not needed"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_tasks_no_agent_has_taken() {
    let world = World::start(1, |_| Plan::Ignore).await;
    world.job("j", |_| {}).await;
    world.until_task(|t| t.phase() == TaskPhase::Bound).await;
    world.edit_job("j", cancel()).await;
    assert_eq!(world.finished("j").await.phase, JobPhase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_goes_on_where_it_was() {
    let world = World::start(1, |_| Plan::Succeed(Duration::from_secs(10))).await;
    world.job("j", |s| s.completions = Some(3)).await;
    world.until("j", |s| s.active == 1).await;
    world.edit_job("j", json!({"spec": {"suspend": true}})).await;
    let status = world.until("j", |s| s.phase == JobPhase::Suspended).await;
    assert_eq!((status.succeeded, status.pending), (1, 2));
    world.edit_job("j", json!({"spec": {"suspend": false}})).await;
    assert_eq!(world.finished("j").await.succeeded, 3);
}

#[tokio::test(start_paused = true)]
async fn an_active_deadline_fails_the_job() {
    let world = World::start(1, |_| Plan::Run).await;
    world
        .job("j", |s| {
            s.completions = Some(2);
            s.active_deadline_seconds = Some(60);
        })
        .await;
    let status = world.finished("j").await;
    assert_eq!(
        (status.phase, status.failed, status.cancelled),
        (JobPhase::Failed, 1, 1),
        "{status:?}"
    );
    assert!(
        status.message.contains("activeDeadlineSeconds"),
        "{}",
        status.message
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_placed_says_why_on_the_job() {
    let world = World::start(3, |_| succeed()).await;
    world
        .job("j", |s| s.node_selector = [("role".into(), "db".into())].into())
        .await;
    let status = world.until("j", |s| !s.waiting.is_empty()).await;
    assert_eq!(status.waiting[0].reason, "NoNodeFits");
    assert_eq!(status.waiting[0].message, "0/3 nodes: 3 do not match role=db");
    let node = json!({"metadata": {"labels": {"role": "db"}}});
    let patch = kube::api::Patch::Merge(node);
    world
        .nodes()
        .patch("n1", &Default::default(), &patch)
        .await
        .unwrap();
    let status = world.finished("j").await;
    assert!(status.waiting.is_empty(), "nothing waits any more");
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_that_fits_nowhere_in_time_fails() {
    let world = World::start(1, |_| succeed()).await;
    world
        .job("j", |s| {
            s.node_selector = [("role".into(), "none".into())].into();
            s.starting_deadline_seconds = Some(120);
        })
        .await;
    let status = world.finished("j").await;
    assert_eq!((status.phase, status.failed), (JobPhase::Failed, 1));
    assert!(status.message.contains("nothing fitted"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_scheduler_and_controllers_runs_nothing_twice() {
    let mut world = World::start(4, |_| Plan::Succeed(Duration::from_secs(2))).await;
    world
        .job("j", |s| {
            s.completions = Some(60);
            s.parallelism = Some(Amount::Count(9));
        })
        .await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(1700)).await;
        world.crash();
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.restart().await;
    }
    let status = world.finished("j").await;
    let tasks = world.all_tasks().await;
    assert_eq!(
        (status.succeeded, status.retries, tasks.len()),
        (60, 0, 60),
        "{status:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn two_leaders_at_once_start_no_index_twice_and_count_right() {
    let mut world = World::with(6, options(), 2, |_| Plan::Succeed(Duration::from_millis(200))).await;
    world.control(options());
    world
        .job("j", |s| {
            s.completions = Some(200);
            s.parallelism = Some(Amount::Count(30));
        })
        .await;
    let status = world.finished("j").await;
    let tasks = world.all_tasks().await;
    let indexes: HashSet<_> = tasks.iter().map(|t| t.spec.index).collect();
    assert_eq!(
        (status.succeeded, indexes.len(), tasks.len()),
        (200, 200, 200),
        "{status:?}"
    );
}
