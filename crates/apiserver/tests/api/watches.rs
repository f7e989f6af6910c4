//! Watches: nothing missed, nothing twice, whatever happens around them.

use crate::harness::Api;
use crate::nodes::{NODES_JOB, task};
use crate::objects::{JOBS, MAPS, job, map, version};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn told(word: &str, name: &str) -> (String, String) {
    (word.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_tells_what_was_there_and_what_happens() {
    let api = Api::start().await;
    let admin = api.admin();
    admin.post(MAPS, &map("a")).await.ok();
    let mut watch = admin.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    let b = admin.post(MAPS, &map("b")).await.ok();
    assert_eq!(watch.next().await.unwrap(), json!({"type": "ADDED", "object": b}));
    let mut changed = b.clone();
    changed["data"]["n"] = "1".into();
    let changed = admin.put(&format!("{MAPS}/b"), &changed).await.ok();
    assert_eq!(
        watch.next().await.unwrap(),
        json!({"type": "MODIFIED", "object": changed})
    );
    admin.delete(&format!("{MAPS}/b")).await.ok();
    let gone = watch.next().await.unwrap();
    assert_eq!(
        (&gone["type"], &gone["object"]["data"]["n"]),
        (&json!("DELETED"), &json!("1"))
    );
    assert!(
        version(&gone["object"]) > version(&changed),
        "a deletion has a revision of its own"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_watch_resumed_at_any_point_misses_nothing_and_repeats_nothing() {
    const WRITERS: usize = 4;
    const WRITES: usize = 60;
    let api = Api::start().await;
    let start = api.server.revision();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let user = api.admin();
            tokio::spawn(async move {
                let name = format!("w{writer}");
                let path = format!("{MAPS}/{name}");
                for i in 0..WRITES {
                    match i % 5 {
                        0 => drop(user.post(MAPS, &map(&name)).await.ok()),
                        4 => drop(user.delete(&path).await.ok()),
                        _ => {
                            let mut object = map(&name);
                            object["data"]["n"] = i.to_string().into();
                            user.put(&path, &object).await.ok();
                        }
                    }
                }
            })
        })
        .collect();
    // One watch from start to end, and one that is broken off and resumed after every few events.
    let mut whole = api
        .admin()
        .watch(&format!("{MAPS}?watch=true&resourceVersion={start}"))
        .await;
    let resumed = {
        let user = api.admin();
        tokio::spawn(async move {
            let (mut seen, mut at) = (Vec::new(), start);
            while seen.len() < WRITERS * WRITES {
                let mut watch = user
                    .watch(&format!("{MAPS}?watch=true&resourceVersion={at}"))
                    .await;
                for _ in 0..(1 + seen.len() % 7).min(WRITERS * WRITES - seen.len()) {
                    let event = watch.next().await.unwrap();
                    at = version(&event["object"]);
                    seen.push(event);
                }
            }
            seen
        })
    };
    let mut seen = Vec::new();
    while seen.len() < WRITERS * WRITES {
        seen.push(whole.next().await.unwrap());
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(resumed.await.unwrap(), seen);
    let versions: Vec<_> = seen.iter().map(|event| version(&event["object"])).collect();
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    // Replayed, the events give what a list gives.
    let mut replayed: BTreeMap<String, Value> = BTreeMap::new();
    for event in &seen {
        let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
        match (event["type"].as_str().unwrap(), replayed.contains_key(&name)) {
            ("ADDED", false) | ("MODIFIED", true) => drop(replayed.insert(name, event["object"].clone())),
            ("DELETED", true) => drop(replayed.remove(&name)),
            other => panic!("{other:?} makes no sense for {name}"),
        }
    }
    let list = api.admin().get(MAPS).await.ok();
    assert_eq!(
        list["items"].as_array().unwrap(),
        &replayed.into_values().collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn selectors_turn_changes_into_comings_and_goings() {
    let api = Api::start().await;
    let admin = api.admin();
    let labelled = |value: &str| {
        let mut object = map("a");
        object["metadata"]["labels"] = json!({"env": value});
        object
    };
    let mut watch = admin
        .watch(&format!("{MAPS}?watch=1&labelSelector=env%3Dprod"))
        .await;
    admin.post(MAPS, &map("unrelated")).await.ok();
    admin.post(MAPS, &labelled("test")).await.ok();
    let path = format!("{MAPS}/a");
    admin.put(&path, &labelled("prod")).await.ok();
    assert_eq!(watch.told().await, told("ADDED", "a"));
    let left = admin.put(&path, &labelled("test")).await.ok();
    let gone = watch.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(
        gone["object"]["metadata"]["labels"]["env"], "prod",
        "as it was while it matched"
    );
    assert_eq!(version(&gone["object"]), version(&left));
    admin.put(&path, &labelled("prod")).await.ok();
    assert_eq!(watch.told().await, told("ADDED", "a"));
    admin.delete(&path).await.ok();
    assert_eq!(watch.told().await, told("DELETED", "a"));
}

#[tokio::test]
async fn a_watch_on_a_node_sees_that_nodes_tasks_only() {
    let api = Api::start().await;
    let admin = api.admin();
    let made = admin.post(JOBS, &job(NODES_JOB)).await.ok();
    let tasks = "/apis/prow.windows/v1/namespaces/default/tasks";
    let mut watch = admin
        .watch("/apis/prow.windows/v1/tasks?watch=1&fieldSelector=spec.nodeName%3Dn1")
        .await;
    for i in 0..10 {
        admin
            .post(tasks, &task(&format!("t{i}"), &format!("n{}", i % 3), &made))
            .await
            .ok();
    }
    for name in ["t1", "t4", "t7"] {
        assert_eq!(watch.told().await, told("ADDED", name));
    }
    admin
        .merge(
            &format!("{tasks}/t2/status"),
            &json!({"status": {"phase": "Rejected"}}),
        )
        .await
        .ok();
    admin
        .merge(
            &format!("{tasks}/t4/status"),
            &json!({"status": {"phase": "Rejected"}}),
        )
        .await
        .ok();
    assert_eq!(watch.told().await, told("MODIFIED", "t4"));
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let api = Api::start().await;
    let admin = api.admin();
    for name in ["a", "b"] {
        admin.post(MAPS, &map(name)).await.ok();
    }
    let query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watch = admin.watch(&format!("{MAPS}?{query}")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    assert_eq!(watch.told().await, told("ADDED", "b"));
    let end = watch.next().await.unwrap();
    assert_eq!(
        (&end["type"], &end["object"]["kind"]),
        (&json!("BOOKMARK"), &json!("ConfigMap"))
    );
    assert_eq!(
        end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(version(&end["object"]), api.server.revision());
    admin.post(MAPS, &map("c")).await.ok();
    assert_eq!(watch.told().await, told("ADDED", "c"));
    admin
        .get(&format!("{MAPS}?watch=1&sendInitialEvents=true"))
        .await
        .fails(400, "resourceVersionMatch");
}

#[tokio::test]
async fn a_bookmark_before_the_end_lets_an_idle_watch_resume() {
    let api = Api::start().await;
    let admin = api.admin();
    let start = api.server.revision();
    let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={start}");
    let mut watch = admin.watch(&format!("{MAPS}?{query}")).await;
    admin
        .post(
            "/api/v1/namespaces/default/secrets",
            &json!({"metadata": {"name": "s"}}),
        )
        .await
        .ok();
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        version(&bookmark["object"]),
        api.server.revision(),
        "what happened to other kinds is behind it"
    );
    assert!(watch.next().await.is_none(), "the watch ends at its timeout");
}

#[tokio::test]
async fn a_watcher_that_is_overrun_is_told_to_list_again() {
    let api = Api::with(|options| options.history_bytes = 20_000).await;
    let admin = api.admin();
    let first = admin.post(MAPS, &map("a")).await.ok();
    // A watcher that reads nothing while more happens than the history and the sockets between hold.
    let mut slow = admin
        .watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&first)))
        .await;
    let mut object = map("a");
    for i in 0..400 {
        object["data"]["n"] = format!("{i}-{}", "x".repeat(50_000)).into();
        admin.put(&format!("{MAPS}/a"), &object).await.ok();
    }
    let mut last = None;
    while let Some(event) = slow.next().await {
        last = Some(event);
    }
    let last = last.unwrap();
    assert_eq!(
        (&last["type"], &last["object"]["code"], &last["object"]["reason"]),
        (&json!("ERROR"), &json!(410), &json!("Expired"))
    );
    let mut late = admin
        .watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&first)))
        .await;
    assert_eq!(late.code, 200);
    assert_eq!(late.next().await.unwrap()["object"]["code"], 410);
    assert!(late.next().await.is_none());
}

/// CP-07.
#[tokio::test]
async fn a_version_too_old_or_too_new_is_told_for_every_kind() {
    let api = Api::start().await;
    let start = api.server.revision();
    for i in 0..20 {
        api.admin().post(MAPS, &map(&format!("m{i}"))).await.ok();
    }
    let head = api.server.revision();
    store::Store::compact(&*api.store, head).await.unwrap();
    // a server that starts now has no history of its own either
    let api = Api::over(api.store.clone(), |_| {}).await;
    let admin = api.admin();
    let mut paths = Vec::new();
    for group in [
        "/api/v1",
        "/apis/prow.windows/v1",
        "/apis/coordination.k8s.io/v1",
        "/apis/certificates.k8s.io/v1",
        "/apis/scheduling.k8s.io/v1",
    ] {
        let listed = admin.get(group).await.ok();
        for resource in listed["resources"].as_array().unwrap() {
            if resource["verbs"].as_array().unwrap().contains(&json!("watch")) {
                paths.push(format!("{group}/{}", resource["name"].as_str().unwrap()));
            }
        }
    }
    assert!(paths.len() >= 12, "{paths:?}");
    for path in &paths {
        let mut old = admin
            .watch(&format!("{path}?watch=1&resourceVersion={start}"))
            .await;
        let event = old.next().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["code"]),
            (&json!("ERROR"), &json!(410)),
            "{path}: {event}"
        );
        assert_eq!(old.next().await, None, "{path}");
    }
    // the server waits a little for such a version to come
    let future = futures::future::join_all(paths.iter().map(|path| {
        let path = format!("{path}?watch=1&resourceVersion={}", head + 1000);
        let user = api.admin(); // each with a connection of its own
        async move { user.get(&path).await }
    }));
    for answer in future.await {
        answer.fails(504, "Too large resource version");
    }
}

#[tokio::test]
async fn a_watch_from_the_future_is_refused() {
    let api = Api::start().await;
    let answer = api
        .admin()
        .get(&format!("{MAPS}?watch=1&resourceVersion=999999"))
        .await;
    answer.fails(504, "Too large resource version");
}

#[tokio::test]
async fn watches_end_when_the_server_stops() {
    let mut api = Api::start().await;
    let mut watch = api.admin().watch(&format!("{MAPS}?watch=1")).await;
    api.stop().await;
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watch_can_be_a_table_whose_columns_come_once() {
    let api = Api::start().await;
    let kubectl = api
        .admin()
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let mut watch = kubectl.watch(&format!("{MAPS}?watch=1")).await;
    api.admin().post(MAPS, &map("a")).await.ok();
    api.admin().post(MAPS, &map("b")).await.ok();
    let (first, second) = (watch.next().await.unwrap(), watch.next().await.unwrap());
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    assert!(
        first["object"]["columnDefinitions"]
            .as_array()
            .is_some_and(|c| !c.is_empty())
    );
    assert!(
        second["object"]["columnDefinitions"]
            .as_array()
            .is_none_or(Vec::is_empty),
        "{second}"
    );
}

#[tokio::test]
async fn a_watch_of_one_name_is_that_of_kubectl_wait() {
    let api = Api::start().await;
    let admin = api.admin();
    let mut watch = admin
        .watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dmine"))
        .await;
    for name in ["other", "mine", "another"] {
        admin.post(MAPS, &map(name)).await.ok();
    }
    assert_eq!(watch.told().await, told("ADDED", "mine"));
    admin.delete(&format!("{MAPS}/other")).await.ok();
    admin.delete(&format!("{MAPS}/mine")).await.ok();
    assert_eq!(watch.told().await, told("DELETED", "mine"));
}
