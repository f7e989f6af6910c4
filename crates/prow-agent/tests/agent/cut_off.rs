//! Agents cut off from the server.

use crate::world::{World, appears, gone, runner};
use api::task::TaskPhase;

#[tokio::test]
async fn work_goes_on_while_the_server_is_away_and_is_told_afterwards() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let script = format!(
        "echo before; touch {0}/begun; while [ ! -e {0}/go ]; do sleep 0.05 || :; done; i=0; while [ $i -lt 3000 ]; do echo \"line $i\"; i=$((i+1)); done",
        at.display()
    );
    let job = world.script("away", &script).await;
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
    let log = world.log(&task, "main").await;
    assert_eq!(log.lines().count(), 3001);
    assert!(log.ends_with("line 2999\n"));
}

#[tokio::test]
async fn an_agent_that_died_while_cut_off_ships_its_spool_when_it_is_back() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let script = format!(
        "echo before; touch {0}/begun; while [ ! -e {0}/go ]; do sleep 0.05 || :; done; echo after",
        at.display()
    );
    let job = world.script("spool", &script).await;
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

#[tokio::test]
async fn a_frozen_agent_thaws_and_tells_the_result() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let script = format!(
        "touch {0}/begun; while [ ! -e {0}/go ]; do sleep 0.05 || :; done; echo run >> {0}/runs",
        at.display()
    );
    let job = world.script("frozen", &script).await;
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
    let script = format!(
        "touch {0}/begun; while [ ! -e {0}/go ]; do sleep 0.05 || :; done",
        at.display()
    );
    let job = world.script("late", &script).await;
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
#[tokio::test]
async fn a_runner_that_does_not_keep_the_fence_is_ended_by_the_agent() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let script = format!("touch {0}/begun; sleep 1000; touch {0}/never", at.display());
    let job = world.script("fenced", &script).await;
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
    assert!(status.started_steps && !at.join("never").exists());
}
