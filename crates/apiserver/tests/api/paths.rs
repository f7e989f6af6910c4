//! What is beside the resources: discovery, health, version, metrics, reviews, other parts' routes, the in-process client.

use crate::harness::Api;
use crate::objects::{JOBS, MAPS, job, map};
use api::identity::Identity;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

#[tokio::test]
async fn discovery_lists_the_kinds_plain_and_aggregated() {
    let api = Api::start().await;
    let user = api.user("somebody", &[]);
    assert_eq!(user.get("/api").await.ok()["versions"], json!(["v1"]));
    let groups = user.get("/apis").await.ok();
    assert!(
        groups["groups"]
            .as_array()
            .unwrap()
            .iter()
            .any(|g| g["name"] == "prow.windows")
    );
    assert_eq!(user.get("/apis/prow.windows").await.ok()["kind"], "APIGroup");
    let resources = user.get("/apis/prow.windows/v1").await.ok();
    let jobs = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["name"] == "jobs")
        .unwrap();
    assert_eq!(
        (&jobs["kind"], &jobs["shortNames"]),
        (&json!("Job"), &json!(["pj"]))
    );
    assert!(
        user.get("/api/v1").await.ok()["resources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["name"] == "configmaps")
    );
    let aggregated = user.header(
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    );
    assert_eq!(
        aggregated.get("/apis").await.ok()["kind"],
        "APIGroupDiscoveryList"
    );
    assert_eq!(aggregated.get("/api").await.ok()["kind"], "APIGroupDiscoveryList");
    let index = aggregated.get("/openapi/v3").await.ok();
    let at = index["paths"]["apis/prow.windows/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(aggregated.get(&at).await.ok()["components"]["schemas"].is_object());
}

#[tokio::test]
async fn health_and_version_are_open_and_metrics_are_not() {
    let mut api = Api::start().await;
    let anonymous = api.anonymous();
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(&anonymous.get(path).await.text[..], b"ok");
    }
    let verbose = anonymous.get("/readyz?verbose").await;
    assert!(String::from_utf8_lossy(&verbose.text).contains("[+]store ok"));
    let version = anonymous.get("/version").await.ok();
    assert!(
        version["gitVersion"]
            .as_str()
            .unwrap()
            .starts_with("v1.37.0+prow-")
    );
    for path in ["/metrics", "/api", "/apis", MAPS, "/", "/nowhere"] {
        anonymous.get(path).await.fails(403, "system:anonymous");
    }
    api.admin().get(MAPS).await.ok();
    let metrics = String::from_utf8(api.admin().get("/metrics").await.text.to_vec()).unwrap();
    assert!(
        metrics.contains("apiserver_request_total{verb=\"list\",group=\"\",resource=\"configmaps\""),
        "{metrics}"
    );
    assert!(metrics.contains("prow_store_revision"));
    api.admin().get("/nowhere").await.fails(404, "could not find");
    api.admin()
        .get("/api/v1/gadgets")
        .await
        .fails(404, "could not find");
    api.stop().await;
}

#[tokio::test]
async fn anybody_may_ask_who_they_are_and_what_they_may() {
    let api = Api::start().await;
    let user = api.user("somebody", &["staff"]);
    let who = user
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({}))
        .await
        .ok();
    assert_eq!(
        who["status"]["userInfo"],
        json!({"username": "somebody", "groups": ["staff", "system:authenticated"]})
    );
    let may = |verb: &str, resource: &str| json!({"spec": {"resourceAttributes": {"verb": verb, "resource": resource, "group": "prow.windows", "namespace": "default"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(
        user.post(path, &may("create", "jobs")).await.ok()["status"]["allowed"],
        false
    );
    assert_eq!(
        api.admin().post(path, &may("create", "jobs")).await.ok()["status"]["allowed"],
        true
    );
    assert_eq!(
        api.node("n1").post(path, &may("delete", "tasks")).await.ok()["status"]["allowed"],
        false
    );
    let rules = json!({"spec": {"namespace": "default"}});
    let rules = api
        .admin()
        .post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &rules)
        .await
        .ok();
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));
    user.post(path, &json!({"spec": {}}))
        .await
        .fails(422, "resourceAttributes");
    user.get(path).await.fails(403, "cannot list");
    api.admin().get(path).await.fails(405, "");
    let (code, _, message) = user.get(JOBS).await.failure();
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "jobs.prow.windows is forbidden: User \"somebody\" cannot list resource \"jobs\" in API group \"prow.windows\" in the namespace \"default\""
    );
}

#[tokio::test]
async fn other_parts_serve_routes_behind_the_same_authentication() {
    let api = Api::start().await;
    let router = axum::Router::new().route(
        "/logs/v1/who",
        axum::routing::get(|axum::Extension(user): axum::Extension<Identity>| async move { user.name }),
    );
    assert!(api.server.mount(router));
    assert_eq!(
        &api.node("n1").get("/logs/v1/who").await.text[..],
        b"system:node:n1"
    );
    assert_eq!(&api.admin().get("/logs/v1/who").await.text[..], b"admin");
    api.anonymous()
        .get("/logs/v1/who")
        .await
        .fails(403, "system:anonymous");
    assert_eq!(api.admin().get("/apis").await.code, 200);
}

#[tokio::test]
async fn the_in_process_client_is_a_kube_client_with_an_identity() {
    let api = Api::start().await;
    let client = api.server.client(Identity::part("scheduler"));
    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client.clone());
    let made: ConfigMap = serde_json::from_value(map("a")).unwrap();
    maps.create(&PostParams::default(), &made).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"n": "7"}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.unwrap()["n"], "7");
    let jobs: kube::Api<api::Job> = kube::Api::default_namespaced(client);
    let made = jobs
        .create(&PostParams::default(), &serde_json::from_value(job("j")).unwrap())
        .await
        .unwrap();
    assert_eq!(
        jobs.list(&Default::default()).await.unwrap().items[0]
            .metadata
            .uid,
        made.metadata.uid
    );
    assert!(matches!(maps.get("none").await, Err(kube::Error::Api(status)) if status.code == 404));
    let nobody = api.server.client(Identity::anonymous());
    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(nobody);
    assert!(matches!(maps.get("a").await, Err(kube::Error::Api(status)) if status.code == 403));
}

#[tokio::test]
async fn built_in_objects_are_made_once() {
    let api = Api::start().await;
    let queue = json!({"apiVersion": "prow.windows/v1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 3}});
    api.server.ensure(&queue).await.unwrap();
    let path = "/apis/prow.windows/v1/queues/default";
    let made = api.admin().get(path).await.ok();
    api.server.ensure(&json!({"apiVersion": "prow.windows/v1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 9}})).await.unwrap();
    assert_eq!(api.admin().get(path).await.ok(), made);
    let namespaces = api.admin().get("/api/v1/namespaces").await.ok();
    let names: Vec<_> = namespaces["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "prow-node-leases", "prow-system"]);
    let wrong = json!({"apiVersion": "prow.windows/v1", "kind": "Queue", "metadata": {"name": "Bad Name"}, "spec": {}});
    assert!(
        api.server
            .ensure(&wrong)
            .await
            .unwrap_err()
            .to_string()
            .contains("metadata.name")
    );
}
