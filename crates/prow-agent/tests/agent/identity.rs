//! Who an agent is, and what it says of its host when something is wrong with it.

use crate::{
    programs::program,
    world::{Agent, World, hang_guard},
};
use agent::service::{self, Written};
use api::{
    clock::{Clock, ManualClock, SystemClock},
    task::TaskPhase,
};
use informer::{Informer, Options};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Waits until a condition of a node has this status.
async fn condition(world: &World, node: &str, condition: &str, status: &str) {
    let nodes = Informer::<api::Node>::start(world.client.clone(), Options::all());
    let mut changes = nodes.subscribe();
    let is =
        |n: &Arc<api::Node>| n.name() == node && n.condition(condition).is_some_and(|c| c.status == status);
    hang_guard(async {
        while !nodes.all().iter().any(is) {
            changes.next().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_certificate_is_renewed_in_time_and_a_wrong_clock_is_told() {
    let world = World::start().await;
    let mut agent = world.agent("web1").await;
    agent.kill();
    let certificate = agent.data.join("pki/client.pem");
    let old = std::fs::read(&certificate).unwrap();
    // The same folder, by a clock that is two months ahead.
    let clock = ManualClock::new(SystemClock.now());
    clock.advance(jiff::SignedDuration::from_hours(24 * 62));
    let settings = Written {
        server: Some(world.back_door()),
        ..Written::default()
    };
    let program = program("prow-agent").into();
    let settings = settings
        .settle(agent.data.clone(), program, None, Duration::from_secs(1))
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(service::run(settings, Arc::new(clock), async {
        let _ = stopped.await;
        service::Ending::Stop
    }));
    condition(&world, "web1", "ClockSkewed", "True").await;
    hang_guard(async {
        while std::fs::read(&certificate).unwrap() == old {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    stop.send(()).unwrap();
    hang_guard(running).await.unwrap().unwrap();
    // The new one is as good as the old.
    agent.start();
    condition(&world, "web1", "ClockSkewed", "False").await;
    let job = world.probe("after", &["exit", "0"]).await;
    let task = world.bind(&job, "web1", 0).await;
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
}

#[tokio::test]
async fn below_the_disk_floor_nothing_new_is_taken_and_old_folders_go() {
    let world = World::start().await;
    let mut agent = world.agent("web1").await;
    let job = world.probe("disk", &["exit", "0"]).await;
    let before = world.bind(&job, "web1", 0).await;
    world.end(&before).await;
    agent.kill();
    agent.arguments = vec!["--min-free-disk".into(), "1Pi".into()];
    agent.start();
    condition(&world, "web1", "DiskPressure", "True").await;
    hang_guard(async {
        while agent.task(&before).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let task = world.bind(&job, "web1", 1).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Rejected, "DiskPressure")
    );
    agent.kill();
    agent.arguments.clear();
    agent.start();
    condition(&world, "web1", "DiskPressure", "False").await;
    let task = world.bind(&job, "web1", 2).await;
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
}

#[tokio::test]
async fn a_server_of_another_authority_never_gets_the_token() {
    let (world, stranger) = (World::start().await, World::start().await);
    let mut agent = Agent::new(world.folder.path().join("web1"), stranger.back_door());
    agent.arguments = vec![
        "--token".into(),
        world.token().await,
        "--name".into(),
        "web1".into(),
    ];
    agent.start();
    hang_guard(async {
        while !agent.words().contains("cannot enrol yet") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(agent.words().contains("UnknownIssuer"), "{}", agent.words());
    assert!(!agent.data.join("pki/client.pem").exists());
}

#[tokio::test]
async fn without_token_and_without_a_free_name_there_is_a_plain_word() {
    let world = World::start().await;
    let mut nobody = Agent::new(world.folder.path().join("nobody"), world.back_door());
    nobody.start();
    assert!(!nobody.ended().await.success());
    assert!(
        nobody.words().contains("prow node token create"),
        "{}",
        nobody.words()
    );

    let _first = world.agent("web1").await;
    let mut second = Agent::new(world.folder.path().join("second"), world.back_door());
    second.arguments = vec![
        "--token".into(),
        world.token().await,
        "--name".into(),
        "web1".into(),
    ];
    second.start();
    assert!(!second.ended().await.success());
    assert!(second.words().contains("exists already"), "{}", second.words());
}
