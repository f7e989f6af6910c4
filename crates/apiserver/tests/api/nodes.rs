//! The node authorizer: a taken-over host gets at nothing but its own work.

use crate::harness::{Api, User};
use crate::objects::{JOBS, MAPS, map};
use serde_json::{Value, json};

pub const NODES_JOB: &str = "work";
const TASKS: &str = "/apis/prow.windows/v1/namespaces/default/tasks";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const NODES: &str = "/apis/prow.windows/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/prow-node-leases/leases";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A Task of a Job, bound to a node.
pub fn task(name: &str, node: &str, job: &Value) -> Value {
    json!({"apiVersion": "prow.windows/v1", "kind": "Task", "metadata": {"name": name}, "spec": {
        "jobRef": {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "workHash": "0".repeat(64)},
        "nodeName": node, "index": 0, "count": 1, "attempt": 0}})
}

/// Two nodes with a Task each, of two Jobs that use a Secret and a ConfigMap each.
async fn fleet() -> (Api, User, User) {
    let api = Api::start().await;
    let admin = api.admin();
    for node in ["n1", "n2"] {
        admin
            .post(NODES, &json!({"metadata": {"name": node}, "spec": {}}))
            .await
            .ok();
        for (kind, path) in [("s", SECRETS), ("c", MAPS)] {
            admin
                .post(path, &json!({"metadata": {"name": format!("{kind}-{node}")}}))
                .await
                .ok();
        }
        let job = json!({"metadata": {"name": format!("j-{node}")}, "spec": {"steps": [{"name": "a", "command": ["x"], "env": [
            {"name": "S", "valueFrom": {"secretKeyRef": {"name": format!("s-{node}"), "key": "k"}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": format!("c-{node}"), "key": "k"}}}]}]}});
        let job = admin.post(JOBS, &job).await.ok();
        admin
            .post(TASKS, &task(&format!("t-{node}"), node, &job))
            .await
            .ok();
    }
    let agent = api.node("n1");
    (api, admin, agent)
}

#[tokio::test]
async fn an_agent_does_its_own_work() {
    let (_api, admin, agent) = fleet().await;
    for path in [
        format!("{NODES}/n1"),
        format!("{TASKS}/t-n1"),
        format!("{TASKS}/gone"), // 404 below, but not 403: it must learn that a Task is gone
        format!("{JOBS}/j-n1"),
        format!("{SECRETS}/s-n1"),
        format!("{MAPS}/c-n1"),
        "/apis/prow.windows/v1/tasks?fieldSelector=spec.nodeName%3Dn1".to_owned(),
        format!("{NODES}?fieldSelector=metadata.name%3Dn1"),
    ] {
        let code = agent.get(&path).await.code.as_u16();
        assert_eq!(code, if path.ends_with("gone") { 404 } else { 200 }, "{path}");
    }
    let claim = json!({"status": {"phase": "Claimed", "claim": {"agentInstance": "i", "bootID": "b", "nonce": "n", "time": "2026-01-01T00:00:00.000000Z"}}});
    agent.merge(&format!("{TASKS}/t-n1/status"), &claim).await.ok();
    agent
        .merge(
            &format!("{NODES}/n1/status"),
            &json!({"status": {"features": ["claim"]}}),
        )
        .await
        .ok();
    let lease = json!({"metadata": {"name": "n1"}, "spec": {"holderIdentity": "i/n"}});
    agent.post(LEASES, &lease).await.ok();
    agent
        .merge(
            &format!("{LEASES}/n1"),
            &json!({"spec": {"holderIdentity": "j/n"}}),
        )
        .await
        .ok();
    let event = json!({"metadata": {"generateName": "e-"}, "involvedObject": {"kind": "Task", "namespace": "default", "name": "t-n1"}, "reason": "Started", "message": "m", "type": "Normal"});
    agent.post(EVENTS, &event).await.ok();
    let mut watch = agent
        .watch("/apis/prow.windows/v1/tasks?watch=1&fieldSelector=spec.nodeName%3Dn1")
        .await;
    assert_eq!(watch.told().await.1, "t-n1");
    let _ = admin;
}

#[tokio::test]
async fn an_agent_is_refused_everything_else() {
    let (api, _admin, agent) = fleet().await;
    for path in [
        NODES.to_owned(),
        format!("{NODES}/n2"),
        format!("{TASKS}/t-n2"),
        TASKS.to_owned(),
        "/apis/prow.windows/v1/tasks?watch=1".to_owned(),
        "/apis/prow.windows/v1/tasks?fieldSelector=spec.nodeName%3Dn2".to_owned(),
        "/apis/prow.windows/v1/tasks?watch=1&fieldSelector=spec.nodeName%21%3Dn2".to_owned(),
        JOBS.to_owned(),
        format!("{JOBS}/j-n2"),
        SECRETS.to_owned(),
        format!("{SECRETS}?fieldSelector=metadata.name%3Ds-n1"),
        format!("{SECRETS}/s-n2"),
        format!("{MAPS}/c-n2"),
        format!("{MAPS}/s-n1"),
        format!("{LEASES}/n2"),
        LEASES.to_owned(),
        EVENTS.to_owned(),
        "/api/v1/namespaces".to_owned(),
        "/api/v1/namespaces/prow-system/secrets/enrol-x".to_owned(),
        "/apis/certificates.k8s.io/v1/certificatesigningrequests".to_owned(),
        "/metrics".to_owned(),
    ] {
        let (code, _, message) = agent.get(&path).await.failure();
        assert_eq!(code, 403, "{path}: {message}");
        assert!(message.contains("system:node:n1"), "{path}: {message}");
    }
    let nothing = json!({});
    for path in [
        format!("{NODES}/n1"),
        format!("{NODES}/n2/status"),
        format!("{TASKS}/t-n1"),
        format!("{TASKS}/t-n2/status"),
        format!("{JOBS}/j-n1"),
        format!("{JOBS}/j-n1/status"),
        format!("{SECRETS}/s-n1"),
        format!("{LEASES}/n2"),
    ] {
        agent.merge(&path, &nothing).await.fails(403, "cannot patch");
    }
    for path in [
        format!("{TASKS}/t-n1"),
        format!("{NODES}/n1"),
        format!("{LEASES}/n1"),
        TASKS.to_owned(),
    ] {
        agent.delete(&path).await.fails(403, "cannot delete");
    }
    for (path, object) in [
        (TASKS, json!({"metadata": {"name": "x"}})),
        (NODES, json!({"metadata": {"name": "n3"}})),
        (MAPS, map("x")),
        (LEASES, json!({"metadata": {"name": "n2"}})),
        (
            EVENTS,
            json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Task", "namespace": "default", "name": "t-n2"}}),
        ),
        (
            EVENTS,
            json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "n2"}}),
        ),
        (
            EVENTS,
            json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Job", "namespace": "default", "name": "j-n1"}}),
        ),
    ] {
        agent.post(path, &object).await.fails(403, "forbidden");
    }
    // The name alone is not enough, nor is the group.
    api.user("system:node:n1", &["people"])
        .get(&format!("{TASKS}/t-n1"))
        .await
        .fails(403, "cannot get");
    api.user("n1", &["system:nodes"])
        .get(&format!("{TASKS}/t-n1"))
        .await
        .fails(403, "cannot get");
}

#[tokio::test]
async fn a_secret_is_out_of_reach_once_the_task_has_ended() {
    let (_api, admin, agent) = fleet().await;
    agent.get(&format!("{SECRETS}/s-n1")).await.ok();
    admin
        .merge(
            &format!("{TASKS}/t-n1/status"),
            &json!({"status": {"phase": "Rejected"}}),
        )
        .await
        .ok();
    agent
        .get(&format!("{SECRETS}/s-n1"))
        .await
        .fails(403, "no Task of this node");
    agent
        .get(&format!("{JOBS}/j-n1"))
        .await
        .fails(403, "no Task of this node");
}

#[tokio::test]
async fn a_task_of_an_earlier_job_of_the_same_name_opens_nothing() {
    let (_api, admin, agent) = fleet().await;
    let mut stale = admin.get(&format!("{JOBS}/j-n2")).await.ok();
    stale["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    admin.post(TASKS, &task("stale", "n1", &stale)).await.ok();
    agent
        .get(&format!("{JOBS}/j-n2"))
        .await
        .fails(403, "no Task of this node");
    agent
        .get(&format!("{SECRETS}/s-n2"))
        .await
        .fails(403, "no Task of this node");
}

#[tokio::test]
async fn a_lock_lease_is_read_while_a_task_holds_it() {
    let (_api, admin, agent) = fleet().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for name in ["lock-iis", "lock-other"] {
        admin
            .post(leases, &json!({"metadata": {"name": name}, "spec": {}}))
            .await
            .ok();
    }
    let job = admin.get(&format!("{JOBS}/j-n1")).await.ok();
    let mut holder = task("holder", "n1", &job);
    holder["spec"]["locks"] = json!([{"name": "lock-iis"}]);
    admin.post(TASKS, &holder).await.ok();
    agent.get(&format!("{leases}/lock-iis")).await.ok();
    agent
        .get(&format!("{leases}/lock-other"))
        .await
        .fails(403, "holds it");
    agent
        .merge(&format!("{leases}/lock-iis"), &json!({}))
        .await
        .fails(403, "cannot patch");
}
