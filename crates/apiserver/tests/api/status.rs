//! `status` is written apart from the rest.

use crate::harness::Api;
use crate::objects::{JOBS, job};
use serde_json::{Value, json};

const NODES: &str = "/apis/prow.windows/v1/nodes";

fn node() -> Value {
    json!({"apiVersion": "prow.windows/v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}})
}

#[tokio::test]
async fn status_and_spec_do_not_touch_each_other() {
    let api = Api::start().await;
    let admin = api.admin();
    let mut with_status = node();
    with_status["status"] = json!({"features": ["forged"]});
    let made = admin.post(NODES, &with_status).await.ok();
    assert!(
        made["status"]["features"].as_array().is_none_or(Vec::is_empty),
        "status was set by a create: {made}"
    );
    assert_eq!(made["metadata"]["generation"], 1);

    let mut status = made.clone();
    status["status"] = json!({"features": ["claim"]});
    status["spec"]["unschedulable"] = true.into();
    status["metadata"]["labels"] = json!({"role": "dc"});
    let reported = admin.put(&format!("{NODES}/n1/status"), &status).await.ok();
    assert_eq!(reported["status"]["features"], json!(["claim"]));
    assert!(
        reported["spec"].get("unschedulable").is_none_or(|u| u == false),
        "{reported}"
    );
    assert!(reported["metadata"].get("labels").is_none(), "{reported}");
    assert_eq!(reported["metadata"]["generation"], 1);

    let mut spec = reported.clone();
    spec["spec"]["unschedulable"] = true.into();
    spec["status"] = json!({});
    let cordoned = admin.put(&format!("{NODES}/n1"), &spec).await.ok();
    assert_eq!(cordoned["status"]["features"], json!(["claim"]));
    assert_eq!(
        (
            &cordoned["spec"]["unschedulable"],
            &cordoned["metadata"]["generation"]
        ),
        (&json!(true), &json!(2))
    );
    assert_eq!(admin.get(&format!("{NODES}/n1/status")).await.ok(), cordoned);
    let mut labelled = cordoned.clone();
    labelled["metadata"]["labels"] = json!({"role": "web"});
    assert_eq!(
        admin.put(&format!("{NODES}/n1"), &labelled).await.ok()["metadata"]["generation"],
        2
    );
}

#[tokio::test]
async fn what_the_server_keeps_raises_no_generation() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(JOBS, &job("j")).await.ok();
    // A manifest says nothing of `requestedBy`, which the server wrote and keeps.
    let mut manifest = job("j");
    manifest["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let replaced = admin.put(&format!("{JOBS}/j"), &manifest).await.ok();
    assert!(replaced["spec"]["requestedBy"].is_object(), "{replaced}");
    assert_eq!(replaced["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_status_patch_merges() {
    let api = Api::start().await;
    let admin = api.admin();
    admin.post(JOBS, &job("j")).await.ok();
    let path = format!("{JOBS}/j/status");
    admin
        .merge(&path, &json!({"status": {"phase": "Running", "active": 1}}))
        .await
        .ok();
    let job = admin
        .merge(
            &path,
            &json!({"status": {"active": 0}, "spec": {"suspend": true}}),
        )
        .await
        .ok();
    assert_eq!(job["status"]["phase"], "Running");
    assert!(job["spec"].get("suspend").is_none_or(|s| s == false), "{job}");
    admin
        .merge(&path, &json!({"status": {"phase": "Sideways"}}))
        .await
        .failure();
}

#[tokio::test]
async fn kinds_without_a_status_have_no_such_path() {
    let api = Api::start().await;
    let admin = api.admin();
    admin
        .get("/api/v1/namespaces/default/configmaps/x/status")
        .await
        .fails(404, "could not find");
    admin
        .get("/api/v1/namespaces/default/configmaps/x/scale")
        .await
        .fails(404, "could not find");
}
