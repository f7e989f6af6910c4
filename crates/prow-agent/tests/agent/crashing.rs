//! Agents and runners that die.

use crate::world::{World, appears, gone, hang_guard, kill, probe, runner};
use api::task::TaskPhase;
use serde_json::json;

#[tokio::test]
async fn a_step_goes_on_while_its_agent_is_dead_and_its_log_is_whole() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("slow").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    agent.kill();
    std::fs::write(at.join("go"), "").unwrap();
    gone(runner(&agent, &task)).await;
    assert!(!world.tasks.by_uid(task.uid()).unwrap().phase().is_terminal());
    agent.start();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(status.phase, TaskPhase::Succeeded);
    assert_eq!(world.log(&task, "main").await, "before\nafter\n");
    assert_eq!(std::fs::read_to_string(at.join("runs")).unwrap(), "run\n");
}

#[tokio::test]
async fn a_new_agent_attends_the_runner_of_the_old_one() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("slow").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    let first = runner(&agent, &task);
    for _ in 0..3 {
        agent.kill();
        agent.start();
        world
            .until(&task, |task| task.phase() == TaskPhase::Running)
            .await;
    }
    assert_eq!(runner(&agent, &task), first);
    std::fs::write(at.join("go"), "").unwrap();
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert_eq!(world.log(&task, "main").await, "before\nafter\n");
    assert_eq!(std::fs::read_to_string(at.join("runs")).unwrap(), "run\n");
}

#[tokio::test]
async fn a_killed_runner_is_told_when_nothing_of_it_lives_any_more() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let pids = at.join("pids");
    let tree = || std::fs::read_to_string(&pids).unwrap_or_default();
    let job = world.probe("lost", &["tree", "3", pids.to_str().unwrap()]).await;
    let task = world.bind(&job, "web1", 0).await;
    hang_guard(async {
        while tree().lines().count() < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await; // another program's file
        }
    })
    .await;
    kill(runner(&agent, &task));
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Failed, "RunnerLost")
    );
    assert!(status.started_steps);
    for pid in tree().lines() {
        let living = agent::platform::created(pid.parse().unwrap());
        assert!(living.is_none(), "a process of the lost run lives");
    }
    assert_eq!(world.log(&task, "main").await.lines().count(), 3, "one of each");
    let size = world
        .logs
        .size(&logs::Log::new(task.uid(), "main"))
        .await
        .unwrap();
    assert_eq!(status.steps[0].log_bytes, i64::try_from(size).ok());
}

#[tokio::test]
async fn rollback_and_finally_run_after_a_runner_was_killed() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let agent = world.agent("web1").await;
    let touch = |name: &str, file: &str| probe(name, &["append", at.join(file).to_str().unwrap(), "x"]);
    let main = probe("main", &["slow", at.to_str().unwrap()]);
    let job = world
        .job(
            "undone",
            json!({
                "steps": [main],
                "rollback": [touch("undo", "undone")],
                "finally": [touch("tidy", "tidied")],
            }),
        )
        .await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    kill(runner(&agent, &task));
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Failed, "RunnerLost")
    );
    assert!(at.join("undone").exists() && at.join("tidied").exists());
    assert_eq!(status.rollback, Some(api::task::RollbackOutcome::Succeeded));
}

#[tokio::test]
async fn agent_and_runner_killed_together_leave_a_truth_behind() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("both").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    agent.kill();
    kill(runner(&agent, &task));
    agent.start();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Failed, "RunnerLost")
    );
    assert_eq!(std::fs::read_to_string(at.join("runs")).unwrap(), "run\n");
}

#[cfg(unix)] // on Windows the living runner holds the folder
#[tokio::test]
async fn a_claimed_task_missing_in_the_folder_is_never_started() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("forgotten").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    let runner = runner(&agent, &task);
    agent.kill();
    std::fs::remove_dir_all(agent.task(&task)).unwrap();
    agent.start();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Unknown, "JournalLost")
    );
    assert_eq!(std::fs::read_to_string(at.join("runs")).unwrap(), "run\n");
    gone(runner).await;
}

#[tokio::test]
async fn a_restarted_agent_takes_its_lease_back_at_once() {
    let world = World::start().await;
    let mut agent = world.agent("web1").await;
    agent.kill();
    agent.start();
    let job = world.probe("next", &["exit", "0"]).await;
    let task = world.bind(&job, "web1", 0).await;
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert!(
        !agent.words().contains("waiting whether it lives"),
        "{}",
        agent.words()
    );
}

/// The end was told in a write whose answer was lost, then the agent died: the logs were never shipped and the Task waited for them for ever.
#[tokio::test]
async fn logs_are_shipped_though_an_earlier_agent_had_told_the_end() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    let job = world.slow("pending").await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    world
        .until(&task, |task| task.phase() == TaskPhase::Running)
        .await;
    world.door.shut();
    agent.kill();
    kill(runner(&agent, &task));
    let log = agent.task(&task).join("steps").join("00-main").join("log.cri");
    let size = std::fs::metadata(log).unwrap().len();
    world
        .write_status(
            &task,
            json!({"phase": "Failed", "reason": "RunnerLost", "logsPending": true,
                "steps": [{"name": "main", "phase": "Failed", "logBytes": size}]}),
        )
        .await;
    world.door.open();
    agent.start();
    let whole = world
        .until(&task, |task| {
            task.status.as_ref().is_some_and(|s| !s.logs_pending)
        })
        .await;
    let status = whole.status.unwrap();
    assert_eq!(status.reason, "RunnerLost");
    assert!(status.late_report.is_none());
    assert_eq!(world.log(&task, "main").await, "before\n");
}
