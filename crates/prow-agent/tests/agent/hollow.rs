//! The hollow agents that load tests use do what real ones do, as far as the server can see.

use crate::world::{World, hang_guard};
use agent::hollow::{Counters, Identities, Options, register, run};
use api::{clock::SystemClock, task::TaskPhase};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::oneshot;

const NODES: usize = 8;
const TASKS: u32 = 40;

async fn all_tasks_end(world: &World, identities: Identities, names: &[String]) {
    for name in names {
        register(&world.client, name, 4, &SystemClock).await.unwrap();
    }
    let job = world.probe("nothing", &["exit", "0"]).await;
    let counters = Arc::new(Counters::default());
    let options = Options {
        server: world.back_door(),
        authority: world.authority(),
        identities,
        renew: Duration::from_secs(1),
        clock: Arc::new(SystemClock),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let fleet = tokio::spawn(run(options, counters.clone(), async {
        let _ = stopped.await;
    }));
    let mut tasks = Vec::new();
    for attempt in 0..TASKS {
        let node = &names[attempt as usize % names.len()];
        tasks.push(world.bind(&job, node, attempt).await);
    }
    for task in &tasks {
        let status = world.end(task).await.status.unwrap();
        assert_eq!(
            (status.phase, status.steps[0].exit_code),
            (TaskPhase::Succeeded, Some(0))
        );
        assert!(status.claim.is_some());
    }
    // Every node holds a Lease.
    let leases: kube::Api<k8s_openapi::api::coordination::v1::Lease> =
        kube::Api::namespaced(world.client.clone(), "prow-node-leases");
    hang_guard(async {
        while leases.list(&Default::default()).await.unwrap().items.len() < names.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    stop.send(()).unwrap();
    hang_guard(fleet).await.unwrap().unwrap();
    assert_eq!(counters.finished.load(Ordering::Relaxed), u64::from(TASKS));
    assert_eq!(counters.claimed.load(Ordering::Relaxed), u64::from(TASKS));
}

fn names() -> Vec<String> {
    (0..NODES).map(|n| format!("hollow-{n}")).collect()
}

#[tokio::test]
async fn a_fleet_behind_one_certificate() {
    let world = World::start().await;
    let identities = Identities::Shared {
        credentials: world.certificate("admin", "system:masters"),
        nodes: names(),
        connections: 3,
    };
    all_tasks_end(&world, identities, &names()).await;
}

#[tokio::test]
async fn a_fleet_with_a_certificate_each() {
    let world = World::start().await;
    let own = |name: String| {
        let credentials = world.certificate(&format!("system:node:{name}"), "system:nodes");
        (name, credentials)
    };
    let identities = Identities::Own(names().into_iter().map(own).collect());
    all_tasks_end(&world, identities, &names()).await;
}
