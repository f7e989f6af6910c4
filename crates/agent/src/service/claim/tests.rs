use super::*;
use api::{TaskStatus, clock::SystemClock};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use std::{collections::VecDeque, convert::Infallible, sync::Arc};

/// What happens to a request that changes something.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Carried out and answered.
    Answered,
    /// Carried out, the answer is lost.
    AnswerLost,
    /// Lost on the way.
    Lost,
    /// Somebody else's claim gets in first.
    Outrun,
    /// The Task changes first, but stays unclaimed.
    Touched,
}

/// One Task with a version, behind the API's rules of compare-and-swap.
#[derive(Clone)]
struct FakeApi(Arc<Mutex<State>>);

struct State {
    task: Option<Task>,
    fates: VecDeque<Fate>,
    claims: u32,
}

impl FakeApi {
    fn with(fates: &[Fate]) -> Self {
        let mut task = Task::new("t", api::TaskSpec::default());
        task.metadata.uid = Some("u".into());
        task.metadata.namespace = Some("default".into());
        task.metadata.resource_version = Some("1".into());
        Self(Arc::new(Mutex::new(State {
            task: Some(task),
            fates: fates.iter().copied().collect(),
            claims: 0,
        })))
    }

    fn task(&self) -> Box<Task> {
        Box::new(self.0.lock().task.clone().unwrap())
    }

    fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        kube::Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let method = request.method().clone();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut state = self.0.lock();
        if method == Method::GET {
            return match &state.task {
                Some(task) => json(StatusCode::OK, task),
                None => json(StatusCode::NOT_FOUND, &status(404)),
            };
        }
        let fate = state.fates.pop_front().unwrap_or(Fate::Answered);
        let patch: Value = serde_json::from_slice(&body).unwrap();
        match fate {
            Fate::Lost => return json(StatusCode::SERVICE_UNAVAILABLE, &status(503)),
            Fate::Outrun => state.write(&claim("another")),
            Fate::Touched => state.write(&json!({})),
            Fate::Answered | Fate::AnswerLost => {}
        }
        let Some(task) = &state.task else {
            return json(StatusCode::NOT_FOUND, &status(404));
        };
        if patch["metadata"]["resourceVersion"] != *task.metadata.resource_version.as_ref().unwrap() {
            return json(StatusCode::CONFLICT, &status(409));
        }
        state.claims += 1;
        state.write(&patch["status"]);
        if fate == Fate::AnswerLost {
            json(StatusCode::GATEWAY_TIMEOUT, &status(504))
        } else {
            json(StatusCode::OK, state.task.as_ref().unwrap())
        }
    }
}

impl State {
    fn write(&mut self, status: &Value) {
        let task = self.task.as_mut().unwrap();
        let mut now = serde_json::to_value(task.status.clone().unwrap_or_default()).unwrap();
        for (name, value) in status.as_object().unwrap() {
            now[name] = value.clone();
        }
        task.status = Some(serde_json::from_value(now).unwrap());
        let version: u64 = task.metadata.resource_version.as_ref().unwrap().parse().unwrap();
        task.metadata.resource_version = Some((version + 1).to_string());
    }
}

fn claim(nonce: &str) -> Value {
    json!({"phase": "Claimed", "claim": {
        "agentInstance": "somebody", "bootID": "b", "nonce": nonce, "time": "2026-01-01T00:00:00.000000Z",
    }})
}

fn json(code: StatusCode, body: &impl serde::Serialize) -> Response<Body> {
    let bytes = serde_json::to_vec(body).unwrap();
    Response::builder().status(code).body(Body::from(bytes)).unwrap()
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Test", "message": "test"})
}

struct World {
    _folder: tempfile::TempDir,
    home: Home,
    server: Server,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::open(&folder.path().join("agent")).unwrap();
    let clock = Arc::new(SystemClock);
    let authority = pki::Authority::open(&folder.path().join("ca"), clock.clone()).unwrap();
    let tls = pki::tls::client(authority.certificate(), None, &[]).unwrap();
    World {
        server: Server::new("https://localhost:1", tls, None, clock).unwrap(),
        home,
        _folder: folder,
    }
}

async fn attempt(world: &World, api: &FakeApi, step: Step, task: Box<Task>) -> Outcome {
    let claimer = Claimer {
        tasks: Api::namespaced(api.client(), "default"),
        home: &world.home,
        server: &world.server,
        clock: &SystemClock,
    };
    claimer
        .attempt(step, task, |_| Ok::<_, Infallible>(()))
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_requests_and_answers_there_is_one_claim_and_it_is_known() {
    use Fate::*;
    for fates in [
        vec![Answered],
        vec![AnswerLost],
        vec![Lost, Answered],
        vec![Lost, Lost, AnswerLost],
        vec![Touched, Answered],
        vec![Touched, Lost, Touched, AnswerLost],
    ] {
        let (world, api) = (world(), FakeApi::with(&fates));
        let outcome = attempt(&world, &api, Step::Claim, api.task()).await;
        let Outcome::Granted(task) = outcome else {
            panic!("{fates:?}: {outcome:?}")
        };
        assert_eq!(claim_of(&task).unwrap().nonce, world.home.nonce, "{fates:?}");
        assert_eq!(api.0.lock().claims, 1, "{fates:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_claimed_by_another_first_is_left_alone() {
    for fates in [vec![Fate::Outrun], vec![Fate::Lost, Fate::Outrun]] {
        let (world, api) = (world(), FakeApi::with(&fates));
        let outcome = attempt(&world, &api, Step::Claim, api.task()).await;
        let Outcome::Lost(Some(task)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(claim_of(&task).unwrap().nonce, "another");
        assert_eq!(api.0.lock().claims, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_with_a_stop_order_or_a_deletion_is_not_claimed() {
    let (world, api) = (world(), FakeApi::with(&[]));
    let mut task = api.task();
    task.spec.stop = Some(Default::default());
    assert!(matches!(
        attempt(&world, &api, Step::Claim, task).await,
        Outcome::Lost(_)
    ));
    assert_eq!(api.0.lock().claims, 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_gone_is_lost() {
    let (world, api) = (world(), FakeApi::with(&[Fate::Answered]));
    let task = api.task();
    api.0.lock().task = None;
    assert!(matches!(
        attempt(&world, &api, Step::Claim, task).await,
        Outcome::Lost(None)
    ));
}

#[tokio::test(start_paused = true)]
async fn only_an_own_claim_of_this_boot_is_resumed() {
    let (world, api) = (world(), FakeApi::with(&[]));
    let mut task = api.task();
    let own = |boot: &str| Claim {
        agent_instance: world.home.instance.clone(),
        boot_id: boot.to_owned(),
        nonce: "of an earlier process".into(),
        time: MicroTime("2026-01-01T00:00:00Z".parse().unwrap()),
    };
    let with = |claim: Claim| {
        Some(TaskStatus {
            phase: TaskPhase::Claimed,
            claim: Some(claim),
            ..TaskStatus::default()
        })
    };
    task.status = with(own("another boot"));
    assert!(matches!(
        attempt(&world, &api, Step::Resume, task.clone()).await,
        Outcome::Lost(_)
    ));
    task.status = with(own(&world.home.boot_id));
    api.0.lock().task = Some((*task).clone());
    let resumed = attempt(&world, &api, Step::Resume, task).await;
    let Outcome::Granted(task) = resumed else {
        panic!("{resumed:?}")
    };
    assert_eq!(task.phase(), TaskPhase::Running);
}

#[test]
fn an_acknowledgement_gives_no_right_after_thirty_seconds_since_the_sending() {
    let now = platform::boot_nanos();
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap();
    let task = || Box::new(Task::new("t", api::TaskSpec::default()));
    let before = |age: Duration| in_time(now.saturating_sub(nanos(age)), task());
    assert!(matches!(before(Duration::from_secs(1)), Outcome::Granted(_)));
    assert!(matches!(before(VALID), Outcome::Late(_)));
}
