//! Creating, reading and replacing.

use crate::harness::Api;
use serde_json::{Value, json};
use std::collections::HashSet;

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const JOBS: &str = "/apis/prow.windows/v1/namespaces/default/jobs";

pub fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": "0"}})
}

pub fn job(name: &str) -> Value {
    json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"steps": [{"name": "hello", "command": ["echo", "hello"]}]}})
}

pub fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn an_object_is_created_read_replaced_and_deleted() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(MAPS, &map("a")).await;
    assert_eq!(made.code, 201);
    let made = made.ok();
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert!(made["metadata"]["creationTimestamp"].is_string() && version(&made) > 0);
    assert!(made["metadata"].get("selfLink").is_none());

    let path = format!("{MAPS}/a");
    assert_eq!(admin.get(&path).await.ok(), made);
    let mut new = made.clone();
    new["data"]["n"] = "1".into();
    let replaced = admin.put(&path, &new).await.ok();
    assert_eq!(replaced["data"]["n"], "1");
    assert!(version(&replaced) > version(&made));
    assert_eq!(replaced["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(admin.get(&path).await.ok(), replaced);

    let gone = admin.delete(&path).await.ok();
    assert_eq!(
        (&gone["kind"], &gone["status"]),
        (&json!("Status"), &json!("Success"))
    );
    assert_eq!(gone["details"]["uid"], made["metadata"]["uid"]);
    admin.get(&path).await.fails(404, "configmaps \"a\" not found");
    admin.put(&path, &replaced).await.fails(404, "not found");
    admin.delete(&path).await.fails(404, "not found");
}

#[tokio::test]
async fn a_name_is_given_once_and_generated_names_differ() {
    let api = Api::start().await;
    let admin = api.admin();
    admin.post(MAPS, &map("a")).await.ok();
    let (code, reason, message) = admin.post(MAPS, &map("a")).await.failure();
    assert_eq!(
        (code, reason.as_str(), message.as_str()),
        (409, "AlreadyExists", "configmaps \"a\" already exists")
    );

    let mut generated = map("");
    generated["metadata"] = json!({"generateName": "gen-"});
    let mut names = HashSet::new();
    for _ in 0..5 {
        let made = admin.post(MAPS, &generated).await.ok();
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 5);
}

#[tokio::test]
async fn names_are_checked_and_the_field_is_named() {
    let api = Api::start().await;
    let admin = api.admin();
    let answer = admin.post(MAPS, &map("Not_A_Name")).await;
    let status = answer.json();
    assert_eq!(answer.code, 422);
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.name");
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    admin.post(MAPS, &nameless).await.fails(422, "metadata.name");
    admin
        .post(JOBS, &job(&"x".repeat(64)))
        .await
        .fails(422, "metadata.name");
}

#[tokio::test]
async fn all_mistakes_are_told_at_once() {
    let api = Api::start().await;
    let mut bad = job("Bad Name");
    bad["metadata"]["labels"] = json!({"-x": "y"});
    bad["spec"]["steps"] =
        json!([{"name": "a", "command": ["x"]}, {"name": "a", "command": ["y"], "shell": "fish"}]);
    let status = api.admin().post(JOBS, &bad).await.json();
    assert_eq!(status["code"], 422, "{status}");
    let fields: Vec<_> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    for field in ["metadata.name", "metadata.labels", "spec.steps[1].name"] {
        assert!(fields.contains(&field), "{field} is not in {fields:?}");
    }
}

/// CP-09.
#[tokio::test]
async fn no_misspelt_misplaced_or_doubled_field_goes_unsaid() {
    let api = Api::start().await;
    let admin = api.admin();
    let body = |name: &str| {
        format!(
            r#"{{"apiVersion":"prow.windows/v1","kind":"Job","metadata":{{"name":"{name}"}},"spec":{{
                "taskTimeoutSecond":60,"steps":[{{"name":"a","command":["x"],"parallelism":2,"timeoutSeconds":1,"timeoutSeconds":2}}]}}}}"#
        )
    };
    let wrong = [
        "spec.taskTimeoutSecond",
        "spec.steps[0].parallelism",
        "spec.steps[0].timeoutSeconds",
    ];
    let (code, _, message) = admin
        .send(
            "POST",
            &format!("{JOBS}?fieldValidation=Strict"),
            "application/json",
            body("strict"),
        )
        .await
        .failure();
    assert_eq!(code, 400);
    assert!(wrong.iter().all(|path| message.contains(path)), "{message}");
    for (name, validation) in [
        ("raw", ""),
        ("warn", "?fieldValidation=Warn"),
        ("ignore", "?fieldValidation=Ignore"),
    ] {
        let answer = admin
            .send(
                "POST",
                &format!("{JOBS}{validation}"),
                "application/json",
                body(name),
            )
            .await;
        let warnings = answer.warnings().join("\n");
        assert!(
            wrong.iter().all(|path| warnings.contains(path)),
            "{name}: {warnings}"
        );
        answer.ok();
        let patch = json!({"spec": {"suspendd": true}});
        let answer = admin.merge(&format!("{JOBS}/{name}{validation}"), &patch).await;
        assert!(answer.warnings().join("\n").contains("spec.suspendd"), "{name}");
    }
}

#[tokio::test]
async fn unknown_and_duplicate_fields_are_refused_or_reported() {
    let api = Api::start().await;
    let admin = api.admin();
    let misspelt = r#"{"apiVersion":"prow.windows/v1","kind":"Job","metadata":{"name":"x"},
        "spec":{"steps":[{"name":"a","command":["x"],"shel":"sh"}],"suspend":true,"suspend":true}}"#;
    let strict = admin
        .send(
            "POST",
            &format!("{JOBS}?fieldValidation=Strict"),
            "application/json",
            misspelt,
        )
        .await;
    let (code, _, message) = strict.failure();
    assert_eq!(code, 400);
    assert!(
        message.contains("spec.steps[0].shel") && message.contains("did you mean \"shell\""),
        "{message}"
    );
    assert!(message.contains("duplicate field \"spec.suspend\""), "{message}");
    admin.get(&format!("{JOBS}/x")).await.fails(404, "not found");

    let warned = admin.send("POST", JOBS, "application/json", misspelt).await;
    let warnings = warned.warnings();
    assert!(
        warnings
            .iter()
            .any(|w| w.starts_with("299 - ") && w.contains("spec.steps[0].shel")),
        "{warnings:?}"
    );
    assert!(warned.ok()["spec"]["steps"][0].get("shel").is_none());

    admin
        .post(&format!("{JOBS}?fieldValidation=Loose"), &job("z"))
        .await
        .fails(400, "Loose");
}

#[tokio::test]
async fn bodies_are_json_or_yaml_and_a_bad_one_is_told_where() {
    let api = Api::start().await;
    let admin = api.admin();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n  a: b\n";
    let made = admin.send("POST", MAPS, "application/yaml", yaml).await.ok();
    assert_eq!(made["data"]["a"], "b");
    admin
        .send("POST", MAPS, "application/yaml", "a: b\n  c: [")
        .await
        .fails(400, "line 2");
    admin
        .send("POST", MAPS, "application/json", "{\"a\": }")
        .await
        .fails(400, "line 1");
    admin
        .send("POST", MAPS, "text/csv", "a,b")
        .await
        .fails(415, "text/csv");
    admin
        .send("POST", MAPS, "application/json", "")
        .await
        .fails(400, "the body is empty");
    admin
        .send("POST", MAPS, "application/json", "[]")
        .await
        .fails(400, "ConfigMap");
    let text = admin
        .clone()
        .header("accept", "application/yaml")
        .get(&format!("{MAPS}/yaml"))
        .await;
    assert!(String::from_utf8_lossy(&text.text).contains("kind: ConfigMap"));
    admin
        .clone()
        .header("accept", "image/png")
        .get(MAPS)
        .await
        .fails(406, "application/json");
}

#[tokio::test]
async fn the_object_must_be_what_the_path_says() {
    let api = Api::start().await;
    let admin = api.admin();
    let mut other = map("a");
    other["kind"] = "Secret".into();
    admin.post(MAPS, &other).await.fails(400, "Secret");
    let mut elsewhere = map("a");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    admin.post(MAPS, &elsewhere).await.fails(400, "namespace");
    admin.post(MAPS, &map("a")).await.ok();
    admin
        .put(&format!("{MAPS}/a"), &map("b"))
        .await
        .fails(400, "the name of the object (b)");
    // What is not said is taken from the path.
    let short = json!({"metadata": {"name": "short"}});
    assert_eq!(admin.post(MAPS, &short).await.ok()["kind"], "ConfigMap");
}

#[tokio::test]
async fn a_large_object_is_refused_with_the_limit() {
    let api = Api::start().await;
    let admin = api.admin();
    let mut large = map("large");
    large["data"]["n"] = "x".repeat(2 << 20).into();
    let (code, reason, message) = admin.post(MAPS, &large).await.failure();
    assert_eq!((code, reason.as_str()), (413, "RequestEntityTooLarge"));
    assert!(message.contains("1048576"), "{message}");
    admin.get(&format!("{MAPS}/large")).await.fails(404, "not found");
}

#[tokio::test]
async fn a_namespace_must_be_there_and_stay() {
    let api = Api::start().await;
    let admin = api.admin();
    admin
        .post("/api/v1/namespaces/nowhere/configmaps", &map("a"))
        .await
        .fails(404, "namespaces \"nowhere\" not found");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}});
    let made = admin.post("/api/v1/namespaces", &namespace).await.ok();
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    admin.delete("/api/v1/namespaces/ops").await.ok();
    let status = admin
        .post("/api/v1/namespaces/ops/configmaps", &map("a"))
        .await
        .json();
    assert_eq!(
        (&status["code"], &status["details"]["causes"][0]["reason"]),
        (&json!(403), &json!("NamespaceTerminating"))
    );
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_stores_nothing() {
    let api = Api::start().await;
    let admin = api.admin();
    let before = api.server.revision();
    let tried = admin.post(&format!("{JOBS}?dryRun=All"), &job("x")).await;
    assert_eq!(tried.code, 201);
    assert!(tried.ok()["metadata"]["uid"].is_string());
    admin.get(&format!("{JOBS}/x")).await.fails(404, "not found");
    assert_eq!(api.server.revision(), before);

    let made = admin.post(MAPS, &map("a")).await.ok();
    let mut new = made.clone();
    new["data"]["n"] = "1".into();
    assert_eq!(
        admin.put(&format!("{MAPS}/a?dryRun=All"), &new).await.ok()["data"]["n"],
        "1"
    );
    admin.delete(&format!("{MAPS}/a?dryRun=All")).await.ok();
    admin
        .post(&format!("{MAPS}?dryRun=All"), &map("a"))
        .await
        .fails(409, "already exists");
    assert_eq!(admin.get(&format!("{MAPS}/a")).await.ok(), made);
    admin
        .post(&format!("{MAPS}?dryRun=Some"), &map("b"))
        .await
        .fails(400, "dryRun");
}

#[tokio::test]
async fn the_later_of_two_writers_gets_a_conflict() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(MAPS, &map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let mut first = made.clone();
    first["data"]["n"] = "first".into();
    admin.put(&path, &first).await.ok();
    let mut second = made.clone();
    second["data"]["n"] = "second".into();
    let (code, reason, _) = admin.put(&path, &second).await.failure();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    let mut foreign = admin.get(&path).await.ok();
    foreign["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    admin.put(&path, &foreign).await.fails(409, "UID");
    assert_eq!(admin.get(&path).await.ok()["data"]["n"], "first");
    // Our kinds, like a CRD's, are never replaced blindly.
    admin.post(JOBS, &job("j")).await.ok();
    admin
        .put(&format!("{JOBS}/j"), &job("j"))
        .await
        .fails(422, "metadata.resourceVersion");
    admin.put(&path, &map("a")).await.ok();
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_not_made() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(JOBS, &job("j")).await.ok();
    assert_eq!(admin.put(&format!("{JOBS}/j"), &made).await.ok(), made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_is_lost_among_concurrent_writers() {
    const WRITERS: usize = 8;
    const EACH: usize = 20;
    let api = Api::start().await;
    api.admin().post(MAPS, &map("counter")).await.ok();
    let path = format!("{MAPS}/counter");
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let (user, path) = (api.admin(), path.clone());
        writers.push(tokio::spawn(async move {
            let mut conflicts = 0;
            for _ in 0..EACH {
                loop {
                    let mut object = user.get(&path).await.ok();
                    let n: usize = object["data"]["n"].as_str().unwrap().parse().unwrap();
                    object["data"]["n"] = (n + 1).to_string().into();
                    let answer = user.put(&path, &object).await;
                    if answer.code == 409 {
                        conflicts += 1;
                        continue;
                    }
                    answer.ok();
                    break;
                }
            }
            conflicts
        }));
    }
    let mut conflicts = 0;
    for writer in writers {
        conflicts += writer.await.unwrap();
    }
    assert_eq!(
        api.admin().get(&path).await.ok()["data"]["n"],
        (WRITERS * EACH).to_string()
    );
    assert!(conflicts > 0, "the writers never met, so nothing was tested");
}

#[tokio::test]
async fn a_server_started_on_a_store_serves_what_is_in_it() {
    let mut first = Api::start().await;
    let made = first.admin().post(MAPS, &map("a")).await.ok();
    first.stop().await;
    let second = Api::over(first.store.clone(), |_| {}).await;
    assert_eq!(second.admin().get(&format!("{MAPS}/a")).await.ok(), made);
    let old = format!("{MAPS}?watch=true&resourceVersion={}", version(&made) - 1);
    let mut watch = second.admin().watch(&old).await;
    assert_eq!(watch.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_one_of_two_servers_has_answered_the_other_shows() {
    let one = Api::with(|options| options.shared_store = true).await;
    let two = Api::over(one.store.clone(), |options| options.shared_store = true).await;
    let (first, second) = (one.admin(), two.admin());
    for i in 0..50 {
        let made = first.post(MAPS, &map(&format!("m{i}"))).await.ok();
        assert_eq!(second.get(&format!("{MAPS}/m{i}")).await.ok(), made);
        let list = second.get(MAPS).await.ok();
        assert_eq!(list["items"].as_array().unwrap().len(), i + 1);
    }
}
