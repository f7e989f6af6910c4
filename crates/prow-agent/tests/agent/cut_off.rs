//! Agents cut off from the server.

use crate::world::{World, appears, gone, probe, runner};
use api::task::TaskPhase;
use serde_json::json;

#[tokio::test]
async fn work_goes_on_while_the_server_is_away_and_is_told_afterwards() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let steps = json!({"steps": [
        probe("main", &["slow", at.to_str().unwrap()]),
        probe("many", &["count", "3000", "0"]),
    ]});
    let job = world.job("away", steps).await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    world.door.shut();
    std::fs::write(at.join("go"), "").unwrap();
    gone(runner(&agent, &task)).await;
    assert!(!world.tasks.by_uid(task.uid()).unwrap().phase().is_terminal());
    world.door.open();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(status.phase, TaskPhase::Succeeded);
    // The end may be told before the last log byte, but then says so.
    world
        .until(&task, |task| {
            task.status.as_ref().is_some_and(|s| !s.logs_pending)
        })
        .await;
    assert_eq!(world.log(&task, "main").await, "before\nafter\n");
    let expected: String = (1..=3000).map(|n| format!("{n}\n")).collect();
    assert_eq!(world.log(&task, "many").await, expected);
}

#[tokio::test]
async fn an_agent_that_died_while_cut_off_ships_its_spool_when_it_is_back() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("spool").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    world.door.shut();
    std::fs::write(at.join("go"), "").unwrap();
    gone(runner(&agent, &task)).await;
    agent.kill();
    agent.start();
    world.door.open();
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert_eq!(world.log(&task, "main").await, "before\nafter\n");
}

#[cfg(unix)] // Windows has no signal that freezes
#[tokio::test]
async fn a_frozen_agent_thaws_and_tells_the_result() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let job = world.slow("frozen").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    agent.signal(rustix::process::Signal::STOP);
    std::fs::write(at.join("go"), "").unwrap();
    gone(runner(&agent, &task)).await;
    assert!(!world.tasks.by_uid(task.uid()).unwrap().phase().is_terminal());
    agent.signal(rustix::process::Signal::CONT);
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert_eq!(std::fs::read_to_string(at.join("runs")).unwrap(), "run\n");
}

#[tokio::test]
async fn a_task_ended_while_its_agent_was_away_is_ended_there_too_and_its_result_is_kept_for_view() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let job = world.slow("late").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    world
        .until(&task, |task| task.phase() == TaskPhase::Running)
        .await;
    let runner = runner(&agent, &task);
    world.door.shut();
    world.end_from_above(&task, TaskPhase::Unknown, "NodeLost").await;
    world.door.open();
    gone(runner).await;
    let late = world
        .until(&task, |task| {
            task.status.as_ref().is_some_and(|s| s.late_report.is_some())
        })
        .await;
    let status = late.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Unknown, "NodeLost")
    );
    assert_eq!(status.late_report.unwrap().phase, TaskPhase::Cancelled);
}

/// The runner keeps the fence by itself; only one that is stuck needs the agent.
#[cfg(unix)]
#[tokio::test]
async fn a_runner_that_does_not_keep_the_fence_is_ended_by_the_agent() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let job = world.slow("fenced").await;
    let task = world
        .bind_with(&job, "web1", 0, |spec| spec.fence_seconds = Some(3))
        .await;
    appears(&at.join("begun")).await;
    let runner = runner(&agent, &task);
    let pid = rustix::process::Pid::from_raw(runner as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    world.door.shut();
    gone(runner).await;
    world.door.open();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Failed, "Fenced")
    );
    assert!(status.started_steps);
}
