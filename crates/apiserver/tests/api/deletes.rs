//! Deleting: finalizers, propagation, preconditions, collections, namespaces, running Jobs.

use crate::harness::Api;
use crate::nodes::{NODES_JOB, task};
use crate::objects::{JOBS, MAPS, job, map};
use serde_json::json;

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_one_goes() {
    let api = Api::start().await;
    let admin = api.admin();
    let path = format!("{MAPS}/a");
    let mut held = map("a");
    held["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    admin.post(MAPS, &held).await.ok();
    let mut marked = admin.delete(&path).await.ok();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let again = admin.delete(&path).await.ok();
    assert_eq!(
        again["metadata"]["deletionTimestamp"],
        marked["metadata"]["deletionTimestamp"]
    );

    marked["metadata"]["finalizers"] = json!(["example.com/one", "example.com/three"]);
    admin.put(&path, &marked).await.fails(422, "metadata.finalizers");
    marked["metadata"]["finalizers"] = json!(["example.com/two"]);
    marked["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("deletionTimestamp");
    let mut last = admin.put(&path, &marked).await.ok();
    assert!(
        last["metadata"]["deletionTimestamp"].is_string(),
        "a client cannot take a delete back"
    );
    last["metadata"].as_object_mut().unwrap().remove("finalizers");
    admin.put(&path, &last).await.ok();
    admin.get(&path).await.fails(404, "not found");
}

#[tokio::test]
async fn propagation_policies_become_finalizers() {
    let api = Api::start().await;
    let admin = api.admin();
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let path = format!("{MAPS}/{}", policy.to_lowercase());
        admin.post(MAPS, &map(&policy.to_lowercase())).await.ok();
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        let marked = admin
            .send("DELETE", &path, "application/json", options.to_string())
            .await
            .ok();
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]));
    }
    admin.post(MAPS, &map("background")).await.ok();
    let gone = admin
        .delete(&format!("{MAPS}/background?propagationPolicy=Background"))
        .await
        .ok();
    assert_eq!(gone["status"], "Success");
    admin.post(MAPS, &map("x")).await.ok();
    admin
        .delete(&format!("{MAPS}/x?propagationPolicy=Sideways"))
        .await
        .fails(400, "Sideways");
}

#[tokio::test]
async fn preconditions_are_kept() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(MAPS, &map("a")).await.ok();
    let delete = |condition: serde_json::Value| {
        let admin = admin.clone();
        async move {
            let body = json!({"preconditions": condition}).to_string();
            admin
                .send("DELETE", &format!("{MAPS}/a"), "application/json", body)
                .await
        }
    };
    delete(json!({"uid": "other"})).await.fails(409, "UID");
    delete(json!({"resourceVersion": "1"})).await.fails(409, "");
    delete(json!({"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}))
        .await
        .ok();
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = Api::start().await;
    let admin = api.admin();
    for i in 0..6 {
        let mut object = map(&format!("m{i}"));
        object["metadata"]["labels"] = json!({"half": if i % 2 == 0 { "even" } else { "odd" }});
        admin.post(MAPS, &object).await.ok();
    }
    let deleted = admin
        .delete(&format!("{MAPS}?labelSelector=half%3Deven"))
        .await
        .ok();
    assert_eq!(deleted["items"].as_array().unwrap().len(), 3);
    let left = admin.get(MAPS).await.ok();
    let names: Vec<_> = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["m1", "m3", "m5"]);
}

#[tokio::test]
async fn a_namespace_stays_until_it_was_emptied_and_finalized() {
    let api = Api::start().await;
    let admin = api.admin();
    let path = "/api/v1/namespaces/ops";
    admin
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "ops"}}))
        .await
        .ok();
    let marked = admin.delete(path).await.ok();
    assert_eq!(marked["status"]["phase"], "Terminating");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    // A plain update cannot take `kubernetes` out; only `finalize` can.
    let mut plain = marked.clone();
    plain["spec"]["finalizers"] = json!([]);
    let kept = admin.put(path, &plain).await.ok();
    assert_eq!(kept["spec"]["finalizers"], json!(["kubernetes"]));
    admin.delete(path).await.ok();
    let mut finalized = admin.get(path).await.ok();
    finalized["spec"]["finalizers"] = json!([]);
    admin.put(&format!("{path}/finalize"), &finalized).await.ok();
    admin.get(path).await.fails(404, "not found");
}

#[tokio::test]
async fn a_running_job_is_cancelled_by_deleting_it_and_killed_by_a_grace_of_zero() {
    let api = Api::start().await;
    let admin = api.admin();
    let path = format!("{JOBS}/j");
    admin.post(JOBS, &job("j")).await.ok();
    admin
        .delete(&format!("{path}?propagationPolicy=Orphan"))
        .await
        .fails(403, "cannot be orphaned");
    let marked = admin.delete(&path).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["prow.windows/tracking"]));
    assert!(marked["spec"].get("cancel").is_none());
    let killed = admin.delete(&format!("{path}?gracePeriodSeconds=0")).await.ok();
    assert_eq!(killed["spec"]["cancel"]["force"], true);
}

#[tokio::test]
async fn tasks_are_deleted_by_the_control_plane_alone() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(JOBS, &job(NODES_JOB)).await.ok();
    let tasks = "/apis/prow.windows/v1/namespaces/default/tasks";
    admin.post(tasks, &task("t", "n1", &made)).await.ok();
    admin
        .delete(&format!("{tasks}/t"))
        .await
        .fails(403, "cancel the Job");
    let part = api.server.client(api::identity::Identity::part("job-controller"));
    let tasks: kube::Api<api::Task> = kube::Api::namespaced(part, "default");
    tasks.delete("t", &Default::default()).await.unwrap();
}
