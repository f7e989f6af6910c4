//! Work that runs to its end.

use crate::world::World;
use api::task::{StepPhase, TaskPhase};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use serde_json::json;

#[tokio::test]
async fn a_task_is_claimed_run_and_told_of_with_its_log() {
    let world = World::start().await;
    let agent = world.agent("web1").await;
    let job = world.script("hello", "echo one; echo two >&2; exit 0").await;
    let task = world.bind(&job, "web1", 0).await;
    let ended = world.end(&task).await;
    let status = ended.status.clone().unwrap();
    assert_eq!(
        status.phase,
        TaskPhase::Succeeded,
        "{status:?}\n{}",
        agent.words()
    );
    assert_eq!(status.steps[0].exit_code, Some(0));
    assert!(status.started_steps && !status.logs_pending);
    let log = world.log(&task, "main").await;
    assert!(log.contains("one\n") && log.contains("two\n"), "{log}");
    let size = world
        .logs
        .size(&logs::Log::new(task.uid(), "main"))
        .await
        .unwrap();
    assert_eq!(status.steps[0].log_bytes, i64::try_from(size).ok());
    let claim = status.claim.unwrap();
    let instance = std::fs::read_to_string(agent.data.join("pki/instance")).unwrap();
    assert_eq!(claim.agent_instance, instance);
}

#[tokio::test]
async fn a_failing_step_is_told_with_its_code() {
    let world = World::start().await;
    let _agent = world.agent("web1").await;
    let job = world.script("fails", "echo broken; exit 7").await;
    let task = world.bind(&job, "web1", 0).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(status.phase, TaskPhase::Failed);
    assert_eq!(status.steps[0].phase, StepPhase::Failed);
    assert_eq!(status.steps[0].exit_code, Some(7));
}

#[tokio::test]
async fn a_node_says_what_it_is() {
    let world = World::start().await;
    let _agent = world.agent("web1").await;
    let nodes: Api<api::Node> = Api::all(world.client.clone());
    let node = nodes.get("web1").await.unwrap();
    let status = node.status.as_ref().unwrap();
    assert_eq!(status.node_info.operating_system, "linux");
    assert!(!status.node_info.boot_id.is_empty() && !status.node_info.kernel_version.is_empty());
    assert!(status.capacity.contains_key("slots") && status.capacity["memory"].value() > Some(1 << 20));
    assert!(status.versions.contains_key("sh"));
    assert!(
        status.features.contains(&"shell/sh".to_owned()),
        "{:?}",
        status.features
    );
    assert!(!status.features.contains(&"shell/cmd".to_owned()));
    for condition in ["PendingReboot", "MemoryPressure", "ContainerRuntimeReady"] {
        assert!(node.condition(condition).is_some(), "{condition}");
    }
    for condition in ["DiskPressure", "ClockSkewed", "RunnersDieWithAgent"] {
        assert_eq!(node.condition(condition).unwrap().status, "False", "{condition}");
    }
    // From the token, not from the agent.
    assert_eq!(node.metadata.labels.unwrap()["role"], "web");
}

#[tokio::test]
async fn work_too_long_for_the_task_is_read_from_the_job() {
    let world = World::start().await;
    let _agent = world.agent("web1").await;
    let script = format!("echo end of {}\n: {}\n", "a long script", "x".repeat(20_000));
    let job = world.script("long", &script).await;
    let task = world.bind(&job, "web1", 0).await;
    assert!(task.spec.work.is_none());
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert!(world.log(&task, "main").await.contains("end of a long script"));
}

#[tokio::test]
async fn other_work_than_the_task_names_is_never_run() {
    let world = World::start().await;
    let agent = world.agent("web1").await;
    let mark = world.folder.path().join("mark");
    let job = world.script("other", &format!("touch {}", mark.display())).await;
    let task = world
        .bind_with(&job, "web1", 0, |spec| spec.job_ref.work_hash = "0".repeat(64))
        .await;
    let ended = world.end(&task).await;
    assert_eq!(ended.phase(), TaskPhase::Failed);
    assert_eq!(ended.status.unwrap().reason, "WorkMismatch");
    assert!(!mark.exists() && !agent.task(&task).exists());
}

#[tokio::test]
async fn values_reach_the_step_and_stay_out_of_logs_and_folders() {
    let world = World::start().await;
    let agent = world.agent("web1").await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "db"}, "stringData": {"password": "hunter2-and-more"}}),
    )
    .unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "conf"}, "data": {"colour": "green"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let hash = api::names::sha256_hex("hunter2-and-more");
    let job = world
        .job(
            "values",
            json!({"steps": [{
                "name": "main", "shell": "sh",
                "script": format!("echo \"$COLOUR $PASSWORD\"; printf %s \"$PASSWORD\" | sha256sum | grep -q {hash}"),
                "env": [
                    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                    {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "colour"}}},
                ],
            }]}),
        )
        .await;
    let task = world.bind(&job, "web1", 0).await;
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    let log = world.log(&task, "main").await;
    assert!(log.contains("green ") && !log.contains("hunter2"), "{log}");
    let grep = std::process::Command::new("grep")
        .args(["-rl", "hunter2-and-more"])
        .arg(&agent.data)
        .output()
        .unwrap();
    assert!(
        grep.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&grep.stdout)
    );
    assert!(!agent.words().contains("hunter2"));
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_named_after_thirty_seconds() {
    let world = World::start().await;
    let _agent = world.agent("web1").await;
    let job = world
        .job(
            "missing",
            json!({"steps": [{
                "name": "main", "shell": "sh", "script": "echo never",
                "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "nowhere", "key": "k"}}}],
            }]}),
        )
        .await;
    let task = world.bind(&job, "web1", 0).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(status.phase, TaskPhase::Failed);
    assert_eq!(status.reason, "SecretUnavailable", "{status:?}");
    assert!(
        status.message.contains("nowhere") || status.steps[0].message.contains("nowhere"),
        "{status:?}"
    );
}

#[tokio::test]
async fn folders_of_finished_tasks_are_removed_when_their_time_is_up() {
    let world = World::start().await;
    let mut agent = world.agent("web1").await;
    let job = world.script("kept", "echo hi").await;
    let task = world.bind(&job, "web1", 0).await;
    world.end(&task).await;
    assert!(agent.task(&task).exists());
    // Now with no time to keep them: the folder of the earlier agent's task goes too.
    agent.kill();
    agent.arguments = vec!["--task-retention".into(), "0s".into()];
    agent.start();
    crate::world::hang_guard(async {
        while agent.task(&task).exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}
