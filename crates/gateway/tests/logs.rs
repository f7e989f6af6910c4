//! Logs over HTTP: what agents may ship and readers may see, against an API that plays Tasks.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

#[path = "logs/fake_api.rs"]
mod fake_api;

use api::identity::Identity;
use api::task::Task;
use axum::Router;
use axum::body::Body;
use fake_api::FakeApi;
use gateway::Gateway;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use informer::{Informer, Options};
use logs::{Log, Logs};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tower::ServiceExt;

/// A gateway at work, with an API of its own.
struct Stage {
    api: FakeApi,
    seen: Informer<Task>,
    logs: Arc<dyn Logs>,
    gateway: Gateway,
    router: Router,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn with(tasks: impl IntoIterator<Item = Value>) -> Self {
        let api = FakeApi::default();
        tasks.into_iter().for_each(|task| drop(api.apply(task)));
        let folder = tempfile::tempdir().unwrap();
        let logs: Arc<dyn Logs> =
            Arc::new(logs::Sqlite::open(folder.path(), logs::Options::default()).unwrap());
        Self::over(api, logs, folder).await
    }

    async fn over(api: FakeApi, logs: Arc<dyn Logs>, folder: tempfile::TempDir) -> Self {
        let informer = Informer::<Task>::start(api.client(), Options::all());
        informer.synced().await;
        let gateway = Gateway::new(logs.clone(), informer.clone(), api.client());
        let router = gateway.router();
        let at_work = gateway.clone();
        tokio::spawn(async move { at_work.run().await });
        Self {
            api,
            seen: informer,
            logs,
            gateway,
            router,
            _folder: folder,
        }
    }

    /// Changes the Task and waits until the gateway can have seen it.
    async fn apply(&self, task: Value) {
        let mut changes = self.seen.subscribe();
        let version = self.api.apply(task);
        let seen = || {
            self.seen
                .get("ops", "web-0")
                .and_then(|task| task.metadata.resource_version.clone())
        };
        while seen() != Some(version.clone()) {
            changes.next().await;
        }
    }

    async fn send(
        &self,
        as_user: &Identity,
        request: http::request::Builder,
        body: impl Into<Body>,
    ) -> (StatusCode, Vec<u8>) {
        let request = request.extension(as_user.clone()).body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (
            status,
            response.into_body().collect().await.unwrap().to_bytes().to_vec(),
        )
    }

    /// Ships a range as the agent of `node-a`; the offset to go on from.
    async fn ship(&self, start: u64, bytes: &str) -> u64 {
        let (status, body) = self.send(&agent("node-a"), put(start), bytes.to_owned()).await;
        assert_eq!(status, 200, "{}", text(&body));
        serde_json::from_slice::<Value>(&body).unwrap()["next"]
            .as_u64()
            .unwrap()
    }

    async fn read(&self, query: &str) -> String {
        let (status, body) = self
            .send(&admin(), Request::get(format!("{READ}?{query}")), "")
            .await;
        assert_eq!(status, 200, "{}", text(&body));
        text(&body)
    }
}

const READ: &str = "/logs/v1/namespaces/ops/tasks/web-0/steps/patch";

fn put(start: u64) -> http::request::Builder {
    Request::put(format!(
        "/logs/v1/namespaces/ops/tasks/web-0/uid-1/steps/patch?start={start}"
    ))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn admin() -> Identity {
    Identity {
        name: "admin".into(),
        groups: vec!["system:masters".into()],
    }
}

fn agent(node: &str) -> Identity {
    Identity {
        name: format!("system:node:{node}"),
        groups: vec!["system:nodes".into(), "system:authenticated".into()],
    }
}

fn user() -> Identity {
    Identity {
        name: "eve".into(),
        groups: vec!["system:authenticated".into()],
    }
}

/// Task `ops/web-0`, uid `uid-1`, on `node-a`.
fn running() -> Value {
    json!({
        "apiVersion": "prow.windows/v1", "kind": "Task",
        "metadata": {"namespace": "ops", "name": "web-0", "uid": "uid-1"},
        "spec": {"jobRef": {"name": "web", "uid": "job-1", "workHash": "0"}, "nodeName": "node-a"},
        "status": {"phase": "Running", "steps": [{"name": "patch", "phase": "Running"}]},
    })
}

fn ended(log_bytes: u64) -> Value {
    let mut task = running();
    task["status"] = json!({"phase": "Succeeded", "steps": [{"name": "patch", "phase": "Succeeded", "logBytes": log_bytes}]});
    task
}

fn assert_refused(answer: &(StatusCode, Vec<u8>), code: u16, reason: &str, says: &str) {
    let status: Value =
        serde_json::from_slice(&answer.1).unwrap_or_else(|_| panic!("no JSON: {}", text(&answer.1)));
    assert_eq!(answer.0.as_u16(), code, "{status}");
    assert_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(code), &json!(reason))
    );
    assert!(status["message"].as_str().unwrap().contains(says), "{status}");
}

#[tokio::test]
async fn an_agent_ships_ranges_and_a_reader_gets_the_bytes() {
    let stage = Stage::with([running()]).await;
    assert_eq!(
        stage.ship(0, "").await,
        0,
        "an agent asks where to go on with an empty range"
    );
    assert_eq!(stage.ship(0, "one\n").await, 4);
    assert_eq!(stage.ship(0, "one\n").await, 4, "a repeat is harmless");
    assert_eq!(stage.ship(2, "e\ntwo\n").await, 4, "an overlap stores nothing");
    assert_eq!(stage.ship(4, "two\n").await, 8);
    assert_eq!(stage.read("").await, "one\ntwo\n");
    assert_eq!(stage.read("start=5").await, "wo\n");
    assert_eq!(stage.read("start=99").await, "");
    assert!(
        stage.api.gets().is_empty(),
        "what the watch has shown is not asked for again"
    );
}

#[tokio::test]
async fn a_packed_range_is_unpacked() {
    let stage = Stage::with([running()]).await;
    let packed = zstd::bulk::compress(&b"line\n".repeat(1000), 3).unwrap();
    let request = put(0).header("content-encoding", "zstd");
    assert_eq!(
        stage.send(&agent("node-a"), request, packed).await,
        (StatusCode::OK, br#"{"next":5000}"#.to_vec())
    );
    assert_eq!(stage.read("").await, "line\n".repeat(1000));
}

#[tokio::test]
async fn bodies_that_cannot_be_taken_are_refused_with_the_reason() {
    let stage = Stage::with([running()]).await;
    let agent = agent("node-a");
    let zstd = || put(0).header("content-encoding", "zstd");
    assert_refused(
        &stage.send(&agent, zstd(), "no frame").await,
        400,
        "BadRequest",
        "zstd",
    );
    let gzip = put(0).header("content-encoding", "gzip");
    assert_refused(
        &stage.send(&agent, gzip, "x").await,
        415,
        "UnsupportedMediaType",
        "gzip",
    );
    assert_refused(
        &stage.send(&agent, put(0), vec![b'x'; 5 << 20]).await,
        413,
        "RequestEntityTooLarge",
        "",
    );
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    assert_refused(
        &stage.send(&agent, zstd(), bomb).await,
        413,
        "RequestEntityTooLarge",
        "",
    );
    let path = "/logs/v1/namespaces/ops/tasks/web-0/uid-1/steps/patch";
    assert_refused(
        &stage.send(&agent, Request::put(path), "x").await,
        400,
        "BadRequest",
        "start",
    );
    let path = "/logs/v1/namespaces/ops/tasks/web-0/uid-1/steps/No%20Step?start=0";
    assert_refused(
        &stage.send(&agent, Request::put(path), "x").await,
        400,
        "BadRequest",
        "No Step",
    );
    assert_refused(
        &stage
            .send(&agent, Request::get(format!("{READ}?tail=-1")), "")
            .await,
        400,
        "BadRequest",
        "tail",
    );
    assert_eq!(stage.read("").await, "");
}

#[tokio::test]
async fn only_masters_and_the_agent_of_the_node_get_at_a_log() {
    let stage = Stage::with([running()]).await;
    stage.ship(0, "secret\n").await;
    for (who, why) in [
        (agent("node-b"), "node-b"),
        (user(), "system:masters"),
        (Identity::anonymous(), "anonymous"),
    ] {
        assert_refused(&stage.send(&who, put(0), "x").await, 403, "Forbidden", why);
        assert_refused(
            &stage.send(&who, Request::get(READ), "").await,
            403,
            "Forbidden",
            why,
        );
    }
    // A name that looks like an agent's, without the group an agent's certificate has.
    let forged = Identity {
        name: "system:node:node-a".into(),
        groups: vec!["system:authenticated".into()],
    };
    assert_refused(
        &stage.send(&forged, Request::get(READ), "").await,
        403,
        "Forbidden",
        "system:masters",
    );
    let nobody = stage
        .router
        .clone()
        .oneshot(Request::get(READ).body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(nobody.status(), 403);
    assert_eq!(stage.send(&agent("node-a"), Request::get(READ), "").await.0, 200);
    // Who may read nothing learns nothing about names either.
    let path = "/logs/v1/namespaces/ops/tasks/none/steps/patch";
    assert_refused(
        &stage.send(&user(), Request::get(path), "").await,
        403,
        "Forbidden",
        "",
    );
    assert_refused(
        &stage.send(&admin(), Request::get(path), "").await,
        404,
        "NotFound",
        "none",
    );
}

#[tokio::test]
async fn a_task_the_watch_has_not_shown_yet_is_asked_for() {
    let stage = Stage::with([]).await;
    stage.api.apply_unseen(running());
    assert_eq!(stage.ship(0, "early\n").await, 6);
    assert_eq!(
        stage.api.gets(),
        ["/apis/prow.windows/v1/namespaces/ops/tasks/web-0"]
    );
}

#[tokio::test]
async fn an_agent_is_told_to_drop_what_nobody_will_read() {
    let stage = Stage::with([running()]).await;
    stage.ship(0, "12345").await;
    let other = Request::put("/logs/v1/namespaces/ops/tasks/web-0/uid-2/steps/patch?start=0");
    assert_refused(
        &stage.send(&agent("node-a"), other, "x").await,
        410,
        "Gone",
        "uid-2",
    );
    let gone = Request::put("/logs/v1/namespaces/ops/tasks/none/uid-9/steps/patch?start=0");
    assert_refused(
        &stage.send(&agent("node-a"), gone, "x").await,
        410,
        "Gone",
        "none",
    );

    stage.apply(ended(8)).await;
    assert_eq!(
        stage.ship(5, "678").await,
        8,
        "the last range may come after the end of the Task"
    );
    assert_refused(
        &stage.send(&agent("node-a"), put(8), "more").await,
        410,
        "Gone",
        "complete with 8 bytes",
    );
    assert_eq!(stage.read("follow=true").await, "12345678");
}

#[tokio::test]
async fn the_last_lines_are_found_across_any_boundary() {
    let stage = Stage::with([running()]).await;
    let long = "x".repeat(100_000);
    let lines = ["first".to_owned(), long, String::new(), "last".to_owned()];
    let all = lines.join("\n") + "\n";
    let mut at = 0;
    for piece in all.as_bytes().chunks(33_333) {
        at = stage.ship(at, std::str::from_utf8(piece).unwrap()).await;
    }
    for (tail, from) in [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0), (5, 0), (1_000_000, 0)] {
        let rest = &lines[from..];
        let expected = if rest.is_empty() {
            String::new()
        } else {
            rest.join("\n") + "\n"
        };
        assert!(
            stage.read(&format!("tail={tail}")).await == expected,
            "the last {tail} lines"
        );
    }
    stage.ship(at, "unfinished").await;
    assert_eq!(stage.read("tail=1").await, "unfinished");
    assert_eq!(stage.read("tail=2").await, "last\nunfinished");
    let start = at - 5;
    assert_eq!(
        stage.read(&format!("tail=3&start={start}")).await,
        "last\nunfinished",
        "the later of both"
    );
}

#[tokio::test]
async fn a_reader_is_told_where_its_bytes_begin() {
    let stage = Stage::with([running()]).await;
    stage.ship(0, "one\ntwo\n").await;
    let request = Request::get(format!("{READ}?tail=1"))
        .extension(admin())
        .body(Body::empty())
        .unwrap();
    let response = stage.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["prow-log-start"], "4");
}

#[tokio::test]
async fn a_follower_gets_every_byte_and_ends_with_the_task() {
    let stage = Stage::with([running()]).await;
    stage.ship(0, "before\n").await;
    let mut follower = Follower::start(&stage, "follow=true").await;
    assert_eq!(follower.piece().await, "before\n");
    stage.ship(7, "after\n").await;
    assert_eq!(follower.piece().await, "after\n");
    // The status says how long the log is before its last range has come.
    stage.api.apply(ended(18));
    stage.ship(13, "last\n").await;
    assert_eq!(follower.rest().await, "last\n");
}

/// IO-11: a log has no files that are rotated, only ranges; followers meet the borders of hundreds of them.
#[tokio::test]
async fn followers_from_the_start_and_from_the_middle_get_every_number_once() {
    const LINES: usize = 6000;
    let stage = Stage::with([running()]).await;
    let lines: Vec<String> = (0..LINES)
        .map(|n| format!("{n:05} {}\n", "x".repeat(n % 97)))
        .collect();
    let all = lines.concat();
    let first = Follower::start(&stage, "follow=true").await;
    let middle = lines[..LINES / 2].concat().len();
    let second = Follower::start(&stage, &format!("follow=true&start={middle}")).await;
    let ship = async {
        let mut at = 0;
        while at < all.len() {
            // ranges end in the middle of lines
            let end = all.len().min(at + 1 + at % 2011);
            at = usize::try_from(stage.ship(at as u64, &all[at..end]).await).unwrap();
        }
        stage.api.apply(ended(all.len() as u64));
    };
    let ((), first, second) = tokio::join!(ship, first.rest(), second.rest());
    assert_eq!(first, all);
    assert_eq!(second, all[middle..]);
}

#[tokio::test]
async fn a_follower_ends_when_nothing_more_can_come() {
    for last in ["ended with all", "ended without a size", "deleted"] {
        let stage = Stage::with([running()]).await;
        stage.ship(0, "all\n").await;
        let mut follower = Follower::start(&stage, "follow=true").await;
        assert_eq!(follower.piece().await, "all\n");
        match last {
            "ended with all" => drop(stage.api.apply(ended(4))),
            "deleted" => stage.api.delete("ops", "web-0"),
            _ => {
                let mut lost = running();
                lost["status"] = json!({"phase": "Unknown"});
                stage.api.apply(lost);
            }
        }
        assert_eq!(follower.rest().await, "", "{last}");
    }
}

#[tokio::test]
async fn a_follower_waits_for_ranges_that_are_still_pending_after_the_end() {
    let stage = Stage::with([running()]).await;
    let mut follower = Follower::start(&stage, "follow=true&start=0").await;
    let mut pending = running();
    pending["status"] = json!({"phase": "Failed", "logsPending": true});
    stage.apply(pending).await;
    stage.ship(0, "late\n").await;
    assert_eq!(follower.piece().await, "late\n");
    stage.api.apply(ended(5));
    assert_eq!(follower.rest().await, "");
}

/// CT-05 for those who look on: the agent is gone for good.
#[tokio::test]
async fn a_follower_does_not_wait_for_ever_for_ranges_that_never_come() {
    for owed in [
        json!({"logsPending": true}),
        json!({"steps": [{"name": "patch", "phase": "Failed", "logBytes": 99}]}),
    ] {
        let mut stage = Stage::with([running()]).await;
        stage.router = stage.gateway.clone().patience(Duration::ZERO).router();
        stage.ship(0, "all that came\n").await;
        let mut follower = Follower::start(&stage, "follow=true").await;
        assert_eq!(follower.piece().await, "all that came\n");
        let mut status = json!({"phase": "Failed"});
        status
            .as_object_mut()
            .unwrap()
            .extend(owed.as_object().unwrap().clone());
        let mut owing = running();
        owing["status"] = status;
        stage.api.apply(owing);
        assert_eq!(follower.rest().await, "");
    }
}

#[tokio::test]
async fn logs_go_with_their_task() {
    let stage = Stage::with([running()]).await;
    stage.ship(0, "text\n").await;
    let log = Log::new("uid-1", "patch");
    stage.api.delete("ops", "web-0");
    while stage.logs.size(&log).await.unwrap() > 0 {
        tokio::task::yield_now().await;
    }
    assert_refused(
        &stage.send(&agent("node-a"), put(0), "late").await,
        410,
        "Gone",
        "drop",
    );
}

#[tokio::test]
async fn logs_of_tasks_that_went_while_the_server_was_down_are_removed_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let logs: Arc<dyn Logs> = Arc::new(logs::Sqlite::open(folder.path(), logs::Options::default()).unwrap());
    for uid in ["uid-0", "uid-1", "uid-2", "uid-3"] {
        logs.append(&Log::new(uid, "patch"), 0, "text\n".into())
            .await
            .unwrap();
    }
    let api = FakeApi::default();
    api.apply(running());
    let mut unreadable = running();
    unreadable["metadata"] = json!({"namespace": "ops", "name": "web-2", "uid": "uid-2"});
    unreadable["spec"] = json!({"nodeName": 7});
    api.apply(unreadable);
    let stage = Stage::over(api, logs, folder).await;
    while stage.logs.tasks().await.unwrap().len() > 2 {
        tokio::task::yield_now().await;
    }
    let mut kept = stage.logs.tasks().await.unwrap();
    kept.sort();
    assert_eq!(
        kept.iter().map(|uid| &**uid).collect::<Vec<_>>(),
        ["uid-1", "uid-2"],
        "a Task nobody can decode keeps its logs"
    );
    assert_eq!(stage.read("").await, "text\n");
}

#[tokio::test]
async fn closed_logs_ask_the_agent_to_come_again() {
    let stage = Stage::with([running()]).await;
    stage.logs.close().await.unwrap();
    let request = put(0).extension(agent("node-a")).body(Body::from("x")).unwrap();
    let response = stage.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["retry-after"], "5");
    let answer = (
        response.status(),
        response.into_body().collect().await.unwrap().to_bytes().to_vec(),
    );
    assert_refused(&answer, 503, "ServiceUnavailable", "closed");
}

/// A client that follows.
struct Follower(Body);

impl Follower {
    async fn start(stage: &Stage, query: &str) -> Self {
        let request = Request::get(format!("{READ}?{query}"))
            .extension(admin())
            .body(Body::empty())
            .unwrap();
        let response = stage.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Self(response.into_body())
    }

    async fn piece(&mut self) -> String {
        text(
            &self
                .0
                .frame()
                .await
                .expect("more to come")
                .unwrap()
                .into_data()
                .unwrap(),
        )
    }

    /// Everything up to the end, which must come.
    async fn rest(self) -> String {
        text(&self.0.collect().await.unwrap().to_bytes())
    }
}
