//! The informer against a server that plays scripted watches.

use super::*;
use http::{Request, Response};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

type Lines = mpsc::UnboundedReceiver<String>;

/// Answers the n-th request with the n-th script; keeps what was asked.
#[derive(Clone, Default)]
struct Server {
    scripts: Arc<Mutex<VecDeque<(u16, Lines)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                server.asked.lock().push(request.uri().to_string());
                let next = server.scripts.lock().pop_front();
                let Some((code, lines)) = next else {
                    return std::future::pending().await;
                };
                let frames = UnboundedReceiverStream::new(lines);
                let frames =
                    futures::StreamExt::map(frames, |line| Ok::<_, std::convert::Infallible>(frame(line)));
                Ok::<_, std::convert::Infallible>(
                    Response::builder()
                        .status(code)
                        .body(StreamBody::new(frames))
                        .unwrap(),
                )
            }
        });
        Client::new(service, "default")
    }

    /// The watch that answers the next request.
    fn watch(&self) -> mpsc::UnboundedSender<String> {
        self.answer(200)
    }

    fn answer(&self, code: u16) -> mpsc::UnboundedSender<String> {
        let (send, receive) = mpsc::unbounded_channel();
        self.scripts.lock().push_back((code, receive));
        send
    }
}

fn frame(line: String) -> http_body::Frame<bytes::Bytes> {
    http_body::Frame::data(bytes::Bytes::from(line))
}

fn object(name: &str, uid: &str, version: u32, value: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"ops","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}},"data":{value}}}"#
    )
}

fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#) + "\n"
}

fn listed(version: u32) -> String {
    event(
        "BOOKMARK",
        &format!(
            r#"{{"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
        ),
    )
}

fn start(server: &Server) -> Informer<ConfigMap> {
    let options = Options::all()
        .index(|c: &ConfigMap| c.data.iter().flatten().map(|(k, v)| format!("{k}={v}")).collect());
    Informer::start(server.client(), options)
}

fn names(batch: &[Change<ConfigMap>]) -> Vec<String> {
    batch
        .iter()
        .map(|c| {
            let sign = if matches!(c, Change::Applied(_)) { '+' } else { '-' };
            format!("{sign}{}", c.object().metadata.name.as_deref().unwrap())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn lists_then_follows() {
    let server = Server::default();
    let watch = server.watch();
    let informer = start(&server);
    watch
        .send(event("ADDED", &object("a", "u1", 1, r#"{"k":"v"}"#)))
        .unwrap();
    watch.send(listed(5)).unwrap();
    informer.synced().await;
    assert_eq!(informer.indexed("k=v").len(), 1);
    let mut changes = informer.subscribe();
    assert_eq!(
        names(&changes.next().await),
        ["+a"],
        "a new consumer hears of what is there"
    );
    watch
        .send(event("MODIFIED", &object("a", "u1", 6, r#"{"k":"w"}"#)))
        .unwrap();
    assert_eq!(names(&changes.next().await), ["+a"]);
    assert!(informer.indexed("k=v").is_empty());
    assert_eq!(informer.indexed("k=w").len(), 1);
    watch.send(event("DELETED", &object("a", "u1", 7, "{}"))).unwrap();
    assert_eq!(names(&changes.next().await), ["-a"]);
    assert!(informer.get("ops", "a").is_none() && informer.by_uid("u1").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_neither_stops_the_watch_nor_looks_deleted() {
    let server = Server::default();
    let watch = server.watch();
    let informer = start(&server);
    watch
        .send(event("ADDED", &object("a", "u1", 1, r#"{"k":"v"}"#)))
        .unwrap();
    watch.send(event("ADDED", &object("bad", "u2", 1, "7"))).unwrap();
    watch.send(listed(5)).unwrap();
    informer.synced().await;
    let mut changes = informer.subscribe();
    changes.next().await;
    watch
        .send(event("MODIFIED", &object("a", "u1", 6, r#"["broken"]"#)))
        .unwrap();
    watch.send(event("ADDED", &object("c", "u3", 7, "{}"))).unwrap();
    assert_eq!(names(&changes.next().await), ["+c"]);
    assert!(
        informer.get("ops", "a").is_some(),
        "its last readable state is kept"
    );
    assert!(informer.get("ops", "bad").is_none());
}

#[tokio::test(start_paused = true)]
async fn goes_on_from_the_last_version_and_lists_anew_where_that_is_too_old() {
    let server = Server::default();
    let (first, second, third) = (server.watch(), server.watch(), server.watch());
    let informer = start(&server);
    for name in ["a", "b"] {
        first.send(event("ADDED", &object(name, name, 1, "{}"))).unwrap();
    }
    first.send(listed(5)).unwrap();
    informer.synced().await;
    let mut changes = informer.subscribe();
    changes.next().await;
    drop(first);
    second
        .send(event(
            "ERROR",
            r#"{"kind":"Status","code":410,"message":"too old","reason":"Expired"}"#,
        ))
        .unwrap();
    third.send(event("ADDED", &object("b", "b", 1, "{}"))).unwrap();
    third.send(listed(9)).unwrap();
    let mut seen = names(&changes.next().await);
    while !seen.contains(&"-a".to_owned()) {
        seen.extend(names(&changes.next().await));
    }
    let asked = server.asked.lock().clone();
    assert!(asked[0].contains("sendInitialEvents=true"), "{asked:?}");
    assert!(
        asked[1].ends_with("resourceVersion=5") && !asked[1].contains("sendInitialEvents"),
        "{asked:?}"
    );
    assert!(
        asked[2].contains("sendInitialEvents=true") && asked[2].ends_with("resourceVersion="),
        "{asked:?}"
    );
    assert_eq!(informer.interruptions(), 1, "an end in order is none");
}

/// CP-07.
#[tokio::test(start_paused = true)]
async fn a_server_that_calls_every_version_too_old_is_not_asked_at_full_speed() {
    let server = Server::default();
    for _ in 0..200 {
        let watch = server.watch();
        watch
            .send(event(
                "ERROR",
                r#"{"kind":"Status","code":410,"message":"too old","reason":"Expired"}"#,
            ))
            .unwrap();
    }
    let _informer = start(&server);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let asked = server.asked.lock().len();
    assert!((2..60).contains(&asked), "asked {asked} times in a minute");
}

#[tokio::test(start_paused = true)]
async fn changes_of_one_object_are_folded_but_a_successor_of_its_name_is_another() {
    let server = Server::default();
    let watch = server.watch();
    let informer = start(&server);
    watch.send(listed(1)).unwrap();
    informer.synced().await;
    let mut changes = informer.subscribe();
    for version in 2..50 {
        watch
            .send(event("MODIFIED", &object("a", "u1", version, "{}")))
            .unwrap();
    }
    watch
        .send(event("DELETED", &object("a", "u1", 50, "{}")))
        .unwrap();
    watch.send(event("ADDED", &object("a", "u2", 51, "{}"))).unwrap();
    while informer.by_uid("u2").is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(names(&changes.next().await), ["-a", "+a"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_tried_again() {
    let server = Server::default();
    drop(server.answer(503));
    let watch = server.watch();
    watch.send(listed(1)).unwrap();
    start(&server).synced().await;
    assert_eq!(server.asked.lock().len(), 2);
}
