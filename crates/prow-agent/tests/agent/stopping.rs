//! Stop orders, deletes, and what stopping the agent does not do.

use crate::world::{World, appears, gone, runner};
use api::task::TaskPhase;
use kube::api::DeleteParams;
use serde_json::json;

#[tokio::test]
async fn a_stop_order_ends_the_work() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let job = world.slow("stopped").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    let stop = json!({"reason": "Cancelled", "message": "enough", "graceSeconds": 1});
    world.patch(&task, json!({"spec": {"stop": stop}})).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Cancelled, "Cancelled")
    );
    gone(runner(&agent, &task)).await;
}

#[tokio::test]
async fn a_stop_order_given_while_the_agent_was_dead_is_obeyed() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("stopped").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    agent.kill();
    let stop = json!({"reason": "DeadlineExceeded", "graceSeconds": 1});
    world.patch(&task, json!({"spec": {"stop": stop}})).await;
    agent.start();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Failed, "DeadlineExceeded")
    );
}

#[tokio::test]
async fn a_task_made_with_a_stop_order_is_not_claimed() {
    let world = World::start().await;
    let _agent = world.agent("web1").await;
    let job = world.probe("withdrawn", &["exit", "0"]).await;
    let stopped = world
        .bind_with(&job, "web1", 0, |spec| {
            spec.stop = Some(api::task::Stop {
                reason: "NodeUnavailable".into(),
                ..Default::default()
            });
        })
        .await;
    // A later one goes through, so the first was seen.
    let next = world.bind(&job, "web1", 1).await;
    world.end(&next).await;
    assert!(world.tasks.by_uid(stopped.uid()).unwrap().phase().is_bound());
}

#[tokio::test]
async fn a_deleted_task_is_stopped_and_one_that_is_gone_too() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let job = world.slow("deleted").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    world
        .api()
        .delete(task.name(), &DeleteParams::default())
        .await
        .unwrap();
    let deleted = world.end(&task).await;
    assert_eq!(deleted.phase(), TaskPhase::Cancelled);
    gone(runner(&agent, &task)).await;

    std::fs::remove_file(at.join("begun")).unwrap();
    let task = world.bind(&job, "web1", 1).await;
    appears(&at.join("begun")).await;
    let runner = runner(&agent, &task);
    world
        .api()
        .delete(task.name(), &DeleteParams::default())
        .await
        .unwrap();
    // By force: nobody waits for the agent.
    world
        .patch(&task, json!({"metadata": {"finalizers": null}}))
        .await;
    gone(runner).await;
}

#[cfg(unix)] // a service is asked by its control, not by a signal
#[tokio::test]
async fn stopping_the_agent_leaves_the_work_alone() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("left").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    agent.signal(rustix::process::Signal::TERM);
    assert!(agent.ended().await.success());
    std::fs::write(at.join("go"), "").unwrap();
    agent.start();
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert_eq!(world.log(&task, "main").await, "before\nafter\n");
}
