//! Lists: selectors, pages of one snapshot, resource versions, forms.

use crate::harness::{Api, User};
use crate::objects::{JOBS, MAPS, job, map, version};
use serde_json::{Value, json};

async fn filled(count: usize) -> (Api, User) {
    let api = Api::start().await;
    let admin = api.admin();
    for i in 0..count {
        let mut object = map(&format!("m{i:02}"));
        object["metadata"]["labels"] =
            json!({"n": i.to_string(), "half": if i % 2 == 0 { "even" } else { "odd" }});
        admin.post(MAPS, &object).await.ok();
    }
    (api, admin)
}

fn names(list: &Value) -> Vec<String> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn pages_over_a_moving_collection_show_one_snapshot() {
    let (_api, admin) = filled(10).await;
    let first = admin.get(&format!("{MAPS}?limit=3")).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 7);
    let revision = first["metadata"]["resourceVersion"].clone();
    let mut seen = names(&first);
    let mut next = first["metadata"]["continue"].as_str().map(str::to_owned);
    while let Some(token) = next {
        // Between pages: one goes, one comes, one changes.
        admin.delete(&format!("{MAPS}/m09")).await;
        admin.post(MAPS, &map(&format!("m055-{}", seen.len()))).await.ok();
        admin.put(&format!("{MAPS}/m08"), &map("m08")).await.ok();
        let page = admin.get(&format!("{MAPS}?limit=3&continue={token}")).await.ok();
        assert_eq!(page["metadata"]["resourceVersion"], revision);
        seen.extend(names(&page));
        next = page["metadata"]["continue"].as_str().map(str::to_owned);
    }
    let expected: Vec<_> = (0..10).map(|i| format!("m{i:02}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn pages_go_across_namespaces() {
    let (_api, admin) = filled(3).await;
    admin
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "ops"}}))
        .await
        .ok();
    admin
        .post("/api/v1/namespaces/ops/configmaps", &map("m00"))
        .await
        .ok();
    let mut seen = Vec::new();
    let mut path = "/api/v1/configmaps?limit=2".to_owned();
    loop {
        let page = admin.get(&path).await.ok();
        seen.extend(page["items"].as_array().unwrap().iter().map(|o| {
            format!(
                "{}/{}",
                o["metadata"]["namespace"].as_str().unwrap(),
                o["metadata"]["name"].as_str().unwrap()
            )
        }));
        match page["metadata"]["continue"].as_str() {
            Some(token) => path = format!("/api/v1/configmaps?limit=2&continue={token}"),
            None => break,
        }
    }
    assert_eq!(seen, ["default/m00", "default/m01", "default/m02", "ops/m00"]);
}

#[tokio::test]
async fn a_token_that_is_gone_or_foreign_expires() {
    let (_api, admin) = filled(3).await;
    let token = |list: Value| list["metadata"]["continue"].as_str().unwrap().to_owned();
    let first = token(admin.get(&format!("{MAPS}?limit=1")).await.ok());
    for _ in 0..64 {
        admin.get(&format!("{MAPS}?limit=1")).await.ok();
    }
    let (code, reason, _) = admin
        .get(&format!("{MAPS}?limit=1&continue={first}"))
        .await
        .failure();
    assert_eq!((code, reason.as_str()), (410, "Expired"));
    let (_other, foreigner) = filled(3).await;
    let foreign = token(foreigner.get(&format!("{MAPS}?limit=1")).await.ok());
    admin
        .get(&format!("{MAPS}?limit=1&continue={foreign}"))
        .await
        .fails(410, "continue");
    admin
        .get(&format!("{MAPS}?limit=1&continue=rubbish"))
        .await
        .fails(400, "continue");
    admin.get(&format!("{MAPS}?limit=many")).await.fails(400, "limit");
}

#[tokio::test]
async fn selectors_choose() {
    let (_api, admin) = filled(6).await;
    for (query, expected) in [
        ("labelSelector=half%3Deven", vec!["m00", "m02", "m04"]),
        ("labelSelector=half%3Deven,n%21%3D2", vec!["m00", "m04"]),
        ("labelSelector=n+in+(1,5)", vec!["m01", "m05"]),
        ("labelSelector=%21half", vec![]),
        ("fieldSelector=metadata.name%3Dm03", vec!["m03"]),
        (
            "fieldSelector=metadata.name%21%3Dm03&labelSelector=half%3Dodd",
            vec!["m01", "m05"],
        ),
        (
            "fieldSelector=metadata.name%3Dm03&labelSelector=half%3Deven",
            vec![],
        ),
        ("labelSelector=half%3Deven&limit=2", vec!["m00", "m02"]),
    ] {
        assert_eq!(
            names(&admin.get(&format!("{MAPS}?{query}")).await.ok()),
            expected,
            "{query}"
        );
    }
    admin
        .get(&format!("{MAPS}?labelSelector=a%3D%3D%3Db"))
        .await
        .fails(400, "selector");
    admin
        .get(&format!("{MAPS}?fieldSelector=data.n%3D0"))
        .await
        .fails(400, "data.n");
}

#[tokio::test]
async fn selectable_fields_are_indexed_as_they_change() {
    let api = Api::start().await;
    let admin = api.admin();
    for name in ["a", "b", "c"] {
        admin.post(JOBS, &job(name)).await.ok();
        admin
            .merge(
                &format!("{JOBS}/{name}/status"),
                &json!({"status": {"phase": "Running"}}),
            )
            .await
            .ok();
    }
    admin
        .merge(
            &format!("{JOBS}/b/status"),
            &json!({"status": {"phase": "Succeeded"}}),
        )
        .await
        .ok();
    let having = async |phase: &str| {
        let list = admin
            .get(&format!(
                "/apis/prow.windows/v1/jobs?fieldSelector=status.phase%3D{phase}"
            ))
            .await
            .ok();
        names(&list)
    };
    assert_eq!(having("Running").await, ["a", "c"]);
    assert_eq!(having("Succeeded").await, ["b"]);
    assert!(having("Failed").await.is_empty());
    let paged = admin
        .get(&format!("{JOBS}?fieldSelector=status.phase%3DRunning&limit=1"))
        .await
        .ok();
    assert_eq!(names(&paged), ["a"]);
}

#[tokio::test]
async fn resource_versions_mean_what_they_mean_in_kubernetes() {
    let (_api, admin) = filled(3).await;
    let then = version(&json!({"metadata": admin.get(MAPS).await.ok()["metadata"]}));
    admin.delete(&format!("{MAPS}/m01")).await.ok();
    admin.post(MAPS, &map("m03")).await.ok();
    admin
        .put(&format!("{MAPS}/m02"), &{
            let mut m = map("m02");
            m["data"]["n"] = "9".into();
            m
        })
        .await
        .ok();
    let now = ["m00", "m02", "m03"];
    for query in [
        "",
        "resourceVersion=0",
        &format!("resourceVersion={then}"),
        &format!("resourceVersion={then}&resourceVersionMatch=NotOlderThan"),
    ] {
        assert_eq!(
            names(&admin.get(&format!("{MAPS}?{query}")).await.ok()),
            now,
            "{query}"
        );
    }
    let exact = admin
        .get(&format!(
            "{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"
        ))
        .await
        .ok();
    assert_eq!(names(&exact), ["m00", "m01", "m02"]);
    assert_eq!(
        (version(&exact), &exact["items"][2]["data"]["n"]),
        (then, &json!("0"))
    );
    admin
        .get(&format!("{MAPS}?resourceVersion=soon"))
        .await
        .fails(400, "resourceVersion");
    admin
        .get(&format!("{MAPS}?resourceVersionMatch=Exact"))
        .await
        .fails(400, "resourceVersionMatch");
}

#[tokio::test]
async fn an_exact_list_goes_back_as_far_as_the_history() {
    let api = Api::with(|options| options.history_bytes = 3_000).await;
    let admin = api.admin();
    let first = version(&admin.post(MAPS, &map("a")).await.ok());
    for i in 0..20 {
        admin.post(MAPS, &map(&format!("b{i}"))).await.ok();
    }
    let exact = |revision: u64| format!("{MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact");
    admin.get(&exact(first)).await.fails(410, "too old");
    assert_eq!(
        names(&admin.get(&exact(api.server.revision() - 2)).await.ok()).len(),
        19
    );
}

#[tokio::test]
async fn a_resource_version_of_the_future_is_waited_for_then_refused() {
    let (api, admin) = filled(1).await;
    let ahead = api.server.revision() + 1;
    let waiting = tokio::spawn({
        let admin = api.admin();
        async move { admin.get(&format!("{MAPS}?resourceVersion={ahead}")).await.ok() }
    });
    admin.post(MAPS, &map("new")).await.ok();
    assert_eq!(names(&waiting.await.unwrap()), ["m00", "new"]);
    let status = admin.get(&format!("{MAPS}?resourceVersion=999999")).await.json();
    assert_eq!(
        (&status["code"], &status["details"]["causes"][0]["reason"]),
        (&json!(504), &json!("ResourceVersionTooLarge"))
    );
}

#[tokio::test]
async fn tables_and_metadata_for_those_who_accept_them() {
    let (api, _) = filled(2).await;
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = api.admin().header("accept", kubectl).get(MAPS).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    assert_eq!(table["rows"][0]["cells"][0], "m00");
    assert!(table["metadata"]["resourceVersion"].is_string());
    let one = api
        .admin()
        .header("accept", kubectl)
        .get(&format!("{MAPS}/m01"))
        .await
        .ok();
    assert_eq!(one["rows"][0]["object"]["metadata"]["name"], "m01");
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let partial = api.admin().header("accept", partial).get(MAPS).await.ok();
    assert_eq!(partial["kind"], "PartialObjectMetadataList");
    assert_eq!(partial["items"][0]["metadata"]["name"], "m00");
    assert!(partial["items"][0].get("data").is_none());
}

#[tokio::test]
async fn a_long_list_comes_whole() {
    let api = Api::start().await;
    let admin = api.admin();
    let mut object = map("");
    object["data"]["n"] = "x".repeat(20_000).into();
    for i in 0..40 {
        object["metadata"]["name"] = format!("m{i:02}").into();
        admin.post(MAPS, &object).await.ok();
    }
    let list = admin.get(MAPS).await.ok();
    assert_eq!(names(&list).len(), 40);
    assert!(
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|o| o["data"]["n"].as_str().unwrap().len() == 20_000)
    );
}
