//! Who may start what.

use crate::world::{Agent, World, appears, gone};
use api::task::TaskPhase;
use std::process::Command;

#[tokio::test]
async fn of_an_agent_and_its_copy_one_works_and_nothing_runs_twice() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut original = world.agent("web1").await;
    original.kill();
    let copied = at.join("copy");
    let copy = Command::new("cp")
        .arg("-a")
        .arg(&original.data)
        .arg(&copied)
        .status();
    assert!(copy.unwrap().success());
    let mut copy = Agent::new(copied, world.back_door());
    for agent in [&mut original, &mut copy] {
        agent.arguments = vec!["--slots".into(), "20".into()];
    }
    original.start();
    copy.start();
    let job = world
        .script("once", &format!("echo run >> {}/runs", at.display()))
        .await;
    let mut tasks = Vec::new();
    for attempt in 0..10 {
        tasks.push(world.bind(&job, "web1", attempt).await);
    }
    for task in &tasks {
        let status = world.end(task).await.status.unwrap();
        assert_eq!(status.phase, TaskPhase::Succeeded, "{status:?}");
    }
    let runs = std::fs::read_to_string(at.join("runs")).unwrap();
    assert_eq!(runs.lines().count(), tasks.len());
    // The one that does not hold the Lease sees it renewed, and gives up.
    let gave_up = tokio::select! {
        () = gone(original.pid()) => &original,
        () = gone(copy.pid()) => &copy,
    };
    assert!(gave_up.words().contains("copied"), "{}", gave_up.words());
    let worker = if gave_up.pid() == copy.pid() {
        &original
    } else {
        &copy
    };
    let next = world.bind(&job, "web1", 10).await;
    world.end(&next).await;
    assert!(worker.task(&next).exists());
}

#[tokio::test]
async fn an_agent_frozen_past_its_lease_gives_up_when_it_thaws() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut frozen = world.agent("web1").await;
    let job = world
        .script("once", &format!("echo run >> {}/runs", at.display()))
        .await;
    let first = world.bind(&job, "web1", 0).await;
    world.end(&first).await;
    frozen.signal(rustix::process::Signal::STOP);
    let copied = at.join("copy");
    let copy = Command::new("cp")
        .arg("-a")
        .arg(&frozen.data)
        .arg(&copied)
        .status();
    assert!(copy.unwrap().success());
    let mut copy = Agent::new(copied, world.back_door());
    copy.start();
    // Bound while the one is frozen and the other does not yet know that.
    let second = world.bind(&job, "web1", 1).await;
    assert_eq!(world.end(&second).await.phase(), TaskPhase::Succeeded);
    assert!(
        copy.words().contains("waiting whether it lives"),
        "{}",
        copy.words()
    );
    frozen.signal(rustix::process::Signal::CONT);
    assert!(!frozen.ended().await.success());
    assert!(frozen.words().contains("copied"), "{}", frozen.words());
    let third = world.bind(&job, "web1", 2).await;
    assert_eq!(world.end(&third).await.phase(), TaskPhase::Succeeded);
    assert_eq!(
        std::fs::read_to_string(at.join("runs")).unwrap().lines().count(),
        3
    );
}

#[tokio::test]
async fn a_second_agent_on_the_same_folder_is_refused() {
    let world = World::start().await;
    let first = world.agent("web1").await;
    let mut second = Agent::new(first.data.clone(), world.back_door());
    second.start();
    assert!(!second.ended().await.success());
    assert!(first.words().contains("another agent is running on"));
}

#[tokio::test]
async fn what_the_host_has_no_room_for_is_rejected_at_no_cost() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut agent = world.agent("web1").await;
    agent.kill();
    agent.arguments = vec!["--slots".into(), "1".into()];
    agent.start();
    let script = format!(
        "touch {0}/begun; while [ ! -e {0}/go ]; do sleep 0.05 || :; done",
        at.display()
    );
    let job = world.script("full", &script).await;
    let first = world.bind(&job, "web1", 0).await;
    appears(&at.join("begun")).await;
    let second = world.bind(&job, "web1", 1).await;
    let status = world.end(&second).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Rejected, "NoRoom")
    );
    assert!(status.claim.is_none() && !agent.task(&second).exists());
    std::fs::write(at.join("go"), "").unwrap();
    world.end(&first).await;
    let third = world.bind(&job, "web1", 2).await;
    assert_eq!(world.end(&third).await.phase(), TaskPhase::Succeeded);
}

#[tokio::test]
async fn a_task_that_needs_what_this_agent_cannot_do_is_rejected() {
    let world = World::start().await;
    let _agent = world.agent("web1").await;
    let job = world.script("new", "echo never").await;
    let task = world
        .bind_with(&job, "web1", 0, |spec| spec.requires = vec!["teleport".into()])
        .await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Rejected, "FeatureMissing")
    );
    assert!(status.message.contains("teleport"));
}

#[tokio::test]
async fn a_token_enrols_one_host_only() {
    let world = World::start().await;
    let token = world.token().await;
    let host = |name: &str| {
        let mut agent = Agent::new(world.folder.path().join(name), world.back_door());
        agent.arguments = vec!["--token".into(), token.clone(), "--name".into(), name.into()];
        agent.start();
        agent
    };
    let _first = host("web1");
    world.ready("web1").await;
    let mut second = host("web2");
    assert!(!second.ended().await.success());
    assert!(second.words().contains("used up"), "{}", second.words());
}
