//! The three kinds of patch.

use crate::harness::Api;
use crate::objects::{JOBS, MAPS, job, map};
use serde_json::json;

#[tokio::test]
async fn each_kind_of_patch_by_its_content_type() {
    let api = Api::start().await;
    let admin = api.admin();
    admin.post(MAPS, &map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let merged = admin
        .merge(
            &path,
            &json!({"data": {"n": null, "m": "1"}, "metadata": {"labels": {"x": "y"}}}),
        )
        .await
        .ok();
    assert_eq!(
        (&merged["data"], &merged["metadata"]["labels"]),
        (&json!({"m": "1"}), &json!({"x": "y"}))
    );
    let json = json!([{"op": "test", "path": "/data/m", "value": "1"}, {"op": "replace", "path": "/data/m", "value": "2"}]);
    let patched = admin
        .send("PATCH", &path, "application/json-patch+json", json.to_string())
        .await
        .ok();
    assert_eq!(patched["data"]["m"], "2");
    let failed = admin
        .send("PATCH", &path, "application/json-patch+json", json.to_string())
        .await;
    assert!(failed.code.is_client_error());
    let finalizers = json!({"metadata": {"finalizers": ["example.com/a"]}});
    admin
        .send(
            "PATCH",
            &path,
            "application/strategic-merge-patch+json",
            finalizers.to_string(),
        )
        .await
        .ok();
    let more = json!({"metadata": {"finalizers": ["example.com/b"]}});
    let strategic = admin
        .send(
            "PATCH",
            &path,
            "application/strategic-merge-patch+json",
            more.to_string(),
        )
        .await
        .ok();
    assert_eq!(
        strategic["metadata"]["finalizers"].as_array().unwrap().len(),
        2,
        "{strategic}"
    );
}

#[tokio::test]
async fn what_is_not_taken_is_refused_with_a_hint() {
    let api = Api::start().await;
    let admin = api.admin();
    admin.post(JOBS, &job("j")).await.ok();
    let path = format!("{JOBS}/j");
    admin
        .send("PATCH", &path, "application/apply-patch+yaml", "{}")
        .await
        .fails(415, "apply");
    admin
        .send("PATCH", &path, "application/strategic-merge-patch+json", "{}")
        .await
        .fails(415, "");
    admin
        .merge(
            &format!("{path}?fieldValidation=Strict"),
            &json!({"spec": {"suspnd": true}}),
        )
        .await
        .fails(400, "spec.suspnd");
    admin
        .merge(&format!("{JOBS}/none"), &json!({}))
        .await
        .fails(404, "not found");
    admin
        .merge(&path, &json!({"metadata": {"resourceVersion": "1"}}))
        .await
        .fails(409, "modified");
    admin
        .merge(&path, &json!({"metadata": {"name": "k"}}))
        .await
        .failure();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn patches_without_a_version_all_take_effect() {
    let api = Api::start().await;
    api.admin().post(MAPS, &map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (user, path) = (api.admin(), path.clone());
            tokio::spawn(async move {
                for i in 0..20 {
                    user.merge(&path, &json!({"data": {format!("w{writer}-{i}"): "1"}}))
                        .await
                        .ok();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(
        api.admin().get(&path).await.ok()["data"]
            .as_object()
            .unwrap()
            .len(),
        161
    );
}
