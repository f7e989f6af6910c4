//! Deleting: Jobs that run, finished ones after their time, namespaces, successors of the same name.

use crate::{
    agent::{Plan, succeed},
    world::*,
};
use api::{
    Job,
    amount::Amount,
    clock::Clock,
    enrolment::{EXPIRES, NAMESPACE, TYPE, USED_AT},
    job::JobPhase,
    task::TaskPhase,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn deleting_a_running_job_cancels_it_and_takes_its_tasks_along() {
    for params in [DeleteParams::background(), DeleteParams::foreground()] {
        let world = World::start(2, |_| Plan::Run).await;
        world
            .job("j", |s| {
                s.completions = Some(4);
                s.parallelism = Some(Amount::Count(2));
            })
            .await;
        world.until("j", |s| s.active == 2).await;
        world.delete_job("j", &params).await;
        world
            .gone("the Job", async || {
                world.jobs().get_opt("j").await.unwrap().is_some()
            })
            .await;
        world
            .gone("a Task", async || !world.all_tasks().await.is_empty())
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_stays_until_what_runs_has_ended() {
    let world = World::start(1, |_| Plan::Run).await;
    world.job("j", |_| {}).await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    world.agents[0].freeze();
    world.delete_job("j", &DeleteParams::background()).await;
    world.until_task(|t| t.spec.stop.is_some()).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(world.jobs().get_opt("j").await.unwrap().is_some());
    world.agents[0].thaw();
    world
        .gone("the Job", async || {
            world.jobs().get_opt("j").await.unwrap().is_some()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn orphaned_tasks_of_a_finished_job_stay() {
    let world = World::start(1, |_| succeed()).await;
    world.job("j", |_| {}).await;
    world.finished("j").await;
    world.delete_job("j", &DeleteParams::orphan()).await;
    world
        .gone("the Job", async || {
            world.jobs().get_opt("j").await.unwrap().is_some()
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let tasks = world.all_tasks().await;
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0].metadata.owner_references, None);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_the_same_name_runs_anew_beside_what_its_forerunner_left() {
    let world = World::start(2, |_| Plan::Succeed(Duration::from_secs(1))).await;
    world.job("j", |s| s.completions = Some(3)).await;
    world.finished("j").await;
    world.delete_job("j", &DeleteParams::orphan()).await;
    world
        .gone("the Job", async || {
            world.jobs().get_opt("j").await.unwrap().is_some()
        })
        .await;
    let new = world.job("j", |s| s.completions = Some(3)).await;
    let status = world
        .until("j", |s| s.phase.is_terminal() && s.succeeded == 3)
        .await;
    assert_eq!(status.phase, JobPhase::Succeeded);
    let tasks = world.all_tasks().await;
    let ours = tasks.iter().filter(|t| t.spec.job_ref.uid == new.uid()).count();
    assert_eq!((tasks.len(), ours), (6, 3));
}

#[tokio::test(start_paused = true)]
async fn finished_jobs_go_after_their_time() {
    let world = World::start(1, |_| succeed()).await;
    world.job("j", |s| s.ttl_seconds_after_finished = Some(100)).await;
    world.finished("j").await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(world.jobs().get_opt("j").await.unwrap().is_some());
    world
        .gone("the Job", async || {
            world.jobs().get_opt("j").await.unwrap().is_some()
        })
        .await;
    world
        .gone("a Task", async || !world.all_tasks().await.is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn of_too_many_finished_jobs_the_oldest_go_but_named_ones_lose_only_their_tasks() {
    let options = controllers::Options {
        max_finished: 2,
        ..options()
    };
    let world = World::with(1, options, 1, |_| succeed()).await;
    world.job("named", |_| {}).await;
    world.finished("named").await;
    let mut made = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut job = world.jobs().get("named").await.unwrap();
        job = Job::new("", job.spec);
        job.metadata.name = None;
        job.metadata.generate_name = Some("gen-".into());
        let job = world.jobs().create(&PostParams::default(), &job).await.unwrap();
        world.finished(job.name()).await;
        made.push(job.name().to_owned());
    }
    world
        .gone("the oldest", async || {
            world.jobs().get_opt(&made[0]).await.unwrap().is_some()
        })
        .await;
    world
        .gone("its Tasks", async || world.all_tasks().await.len() > 2)
        .await;
    let named = world.status("named").await;
    assert_eq!(
        (named.phase, named.succeeded),
        (JobPhase::Succeeded, 1),
        "its status stays"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_emptied_before_it_goes() {
    let world = World::start(1, |_| Plan::Run).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), NS);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("settings".into());
    maps.create(&PostParams::default(), &map).await.unwrap();
    world.job("j", |_| {}).await;
    world.until_task(|t| t.phase() == TaskPhase::Running).await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.delete(NS, &DeleteParams::default()).await.unwrap();
    world
        .gone("the namespace", async || {
            namespaces.get_opt(NS).await.unwrap().is_some()
        })
        .await;
    assert!(world.all_tasks().await.is_empty() && maps.get_opt("settings").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_belonged_to_something_that_is_gone_is_collected() {
    let world = World::start(1, |_| succeed()).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), NS);
    let make = async |name: &str, owner: Option<&ConfigMap>| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.metadata.owner_references = owner.map(|o| {
            use kube::Resource as _;
            vec![o.owner_ref(&()).unwrap()]
        });
        maps.create(&PostParams::default(), &map).await.unwrap()
    };
    let owner = make("owner", None).await;
    make("child", Some(&owner)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(maps.get_opt("child").await.unwrap().is_some());
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
    world
        .gone("the child", async || {
            maps.get_opt("child").await.unwrap().is_some()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn events_expire() {
    let world = World::start(1, |_| succeed()).await;
    world.job("j", |_| {}).await;
    world.finished("j").await;
    world
        .gone("silence", async || world.events().await != ["Completed j"])
        .await;
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(world.events().await, ["Completed j"]);
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(world.events().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn enrolment_tokens_go_when_they_are_used_up_or_have_ended() {
    let world = World::start(0, |_| Plan::Run).await;
    let tokens: Api<Secret> = Api::namespaced(world.client.clone(), NAMESPACE);
    let ended = (world.clock.now() + Duration::from_secs(1800)).to_string();
    let far = (world.clock.now() + Duration::from_secs(86_400)).to_string();
    let used = world.clock.now().to_string();
    for (name, data) in [
        ("enrol-ended", vec![(EXPIRES, &ended)]),
        ("enrol-used", vec![(EXPIRES, &far), (USED_AT, &used)]),
        ("enrol-good", vec![(EXPIRES, &far)]),
        ("enrol-endless", vec![]),
    ] {
        let data = data.into_iter().map(|(key, text)| (key.to_owned(), text.clone()));
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..Default::default()
            },
            type_: Some(TYPE.into()),
            string_data: Some(data.collect()),
            ..Default::default()
        };
        tokens.create(&PostParams::default(), &secret).await.unwrap();
    }
    let names = async || {
        let list = tokens.list(&Default::default()).await.unwrap();
        list.items
            .into_iter()
            .filter_map(|s| s.metadata.name)
            .collect::<Vec<_>>()
    };
    // within the hour after their use a host may come back for its certificate
    tokio::time::sleep(Duration::from_secs(3500)).await;
    assert_eq!(names().await.len(), 4);
    world
        .gone("the used token", async || {
            names().await.contains(&"enrol-used".into())
        })
        .await;
    world
        .gone("the ended token", async || {
            names().await.contains(&"enrol-ended".into())
        })
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(names().await, ["enrol-endless", "enrol-good"]);
}
